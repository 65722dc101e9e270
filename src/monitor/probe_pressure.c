/* probe_pressure.c: pressure stall information: how long some task waited, from the running totals of /proc/pressure.
 */
#include "monitor/probe.h"

#include <string.h>

static const struct {
    const char *path;
    dr_sensor sensor;
} rows[] = {
    { "/proc/pressure/cpu", DR_SENSOR_PRESSURE_CPU },
    { "/proc/pressure/memory", DR_SENSOR_PRESSURE_MEMORY },
    { "/proc/pressure/io", DR_SENSOR_PRESSURE_IO },
};

enum { N_ROWS = DR_COUNT(rows) };

struct state {
    dr__procfile files[N_ROWS];
    uint64_t total_us[N_ROWS];
    bool primed[N_ROWS];
};

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=123" */
static bool read_total(const char *text, uint64_t *out)
{
    const char *at = dr__after_key(text, "some ");
    while (at && *at && *at != '\n') {
        const char *value = at + 6;
        if (!strncmp(at, "total=", 6))
            return dr__next_u64(&value, out);
        at++;
    }
    return false;
}

static void open_files(void *state, dr__host *host)
{
    struct state *s = state;
    for (int i = 0; i < N_ROWS; i++)
        dr__procfile_open(&s->files[i], host, "%s", rows[i].path);
}

static void tick(void *state, dr__host *host, uint64_t now_ns, uint64_t elapsed_ns, dr_snapshot *out)
{
    (void)now_ns;
    struct state *s = state;
    for (int i = 0; i < N_ROWS; i++) {
        uint64_t total;
        bool found = dr__procfile_read(&s->files[i], host) && read_total(host->text, &total);
        if (found && s->primed[i] && elapsed_ns) {
            double waited = (double)dr__counter_delta(s->total_us[i], total) * 1e3 / (double)elapsed_ns;
            dr__sense(out, rows[i].sensor, DR_MIN(waited, 1), 1);
        }
        s->primed[i] = found;
        if (found)
            s->total_us[i] = total;
    }
}

static void close_files(void *state)
{
    struct state *s = state;
    for (int i = 0; i < N_ROWS; i++)
        dr__procfile_close(&s->files[i]);
}

const dr__probe_def dr__probe_pressure = {
    .name = "pressure",
    .summary = "time in which tasks waited for CPU, memory or storage",
    .state_size = sizeof(struct state),
    .open = open_files,
    .read = tick,
    .close = close_files,
};
