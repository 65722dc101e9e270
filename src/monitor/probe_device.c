/* probe_device.c: an accelerator without a driver to ask, such as an OpenCL device or an emulated one: the program that
 * uses it reports busy times (dr_monitor_add_busy).
 *
 * A time is reported after a step, which may be longer than an interval: the excess counts in the following intervals.
 */
#include "monitor/probe.h"

static const uint64_t max_pending_ns = 10000000000u; /* more is dropped */

struct state {
    uint64_t seen_ns, pending_ns;
};

static void open_nothing(void *state, dr__host *host)
{
    (void)state, (void)host;
}

static void tick(void *state, dr__host *host, uint64_t now_ns, uint64_t elapsed_ns, dr_snapshot *out)
{
    (void)now_ns;
    struct state *s = state;
    const uint64_t busy_ns = atomic_load_explicit(&host->busy_ns, memory_order_relaxed);
    s->pending_ns = DR_MIN(s->pending_ns + dr__counter_delta(s->seen_ns, busy_ns), max_pending_ns);
    s->seen_ns = busy_ns;
    if (!busy_ns || !elapsed_ns)
        return;
    const uint64_t part_ns = DR_MIN(s->pending_ns, elapsed_ns);
    s->pending_ns -= part_ns;
    if (!dr__is_present(out, DR_SENSOR_GPU_BUSY))
        dr__sense(out, DR_SENSOR_GPU_BUSY, (double)part_ns / (double)elapsed_ns, 1);
}

const dr__probe_def dr__probe_device = {
    .name = "device",
    .summary = "use of an accelerator, as reported by the program that uses it",
    .state_size = sizeof(struct state),
    .open = open_nothing,
    .read = tick,
};
