/* probe_device.c: an accelerator that no driver tells of, such as an OpenCL device or an emulated one: who runs it says
 * for how long it was busy.
 *
 * That is said after a step, which may be longer than an interval: what is more than the interval counts in the next
 * ones.
 */
#include "monitor/probe.h"

static const uint64_t most_owed_ns = 10000000000u; /* what was said beyond that is forgotten */

struct state {
    uint64_t seen_ns, owed_ns;
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
    s->owed_ns = DR_MIN(s->owed_ns + dr__went(s->seen_ns, busy_ns), most_owed_ns);
    s->seen_ns = busy_ns;
    if (!busy_ns || !elapsed_ns)
        return;
    const uint64_t part_ns = DR_MIN(s->owed_ns, elapsed_ns);
    s->owed_ns -= part_ns;
    if (!dr__has(out, DR_SENSOR_GPU_BUSY))
        dr__sense(out, DR_SENSOR_GPU_BUSY, (double)part_ns / (double)elapsed_ns, 1);
}

const dr__probe_def dr__probe_device = {
    .name = "device",
    .summary = "use of an accelerator, as told by who runs it",
    .state_size = sizeof(struct state),
    .open = open_nothing,
    .read = tick,
};
