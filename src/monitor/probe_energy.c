/* probe_energy.c: power of the CPU packages from the energy counters in /sys/class/powercap (RAPL).  Tested on trees
 * written by hand, not on hardware.
 *
 * Without counters, or if only root may read them, the power is modelled and marked so in `modelled`: 0.7 W for each
 * idle CPU and 3.5 W for each busy one, the order of magnitude of a server's hardware thread.
 */
#include "monitor/probe.h"

enum { MAX_ZONES = 16 };
static const double idle_w = 0.7, busy_w = 3.5;

struct state {
    struct zone {
        dr__procfile energy;
        uint64_t range_uj, before_uj; /* the counter wraps at range_uj */
    } zones[MAX_ZONES];
    int n_zones;
    double limit_w;
    bool primed;
};

static void open_zone(struct state *s, dr__host *host, int number)
{
    struct zone *z = &s->zones[s->n_zones];
    uint64_t limit_uw;
    if (!dr__procfile_open(&z->energy, host, "/sys/class/powercap/intel-rapl:%d/energy_uj", number))
        return;
    if (!dr__procfile_once(host, &z->range_uj, "/sys/class/powercap/intel-rapl:%d/max_energy_range_uj", number))
        z->range_uj = 0;
    if (dr__procfile_once(host, &limit_uw, "/sys/class/powercap/intel-rapl:%d/constraint_0_power_limit_uw", number))
        s->limit_w += (double)limit_uw * 1e-6;
    s->n_zones++;
}

static void open_files(void *state, dr__host *host)
{
    for (int i = 0; i < MAX_ZONES; i++)
        open_zone(state, host, i);
}

/* The energy since the last reading; false: it is the first one, or a counter could not be read. */
static bool read_joules(struct state *s, dr__host *host, double *out)
{
    bool primed = s->primed;
    *out = 0;
    s->primed = s->n_zones > 0;
    for (int i = 0; i < s->n_zones; i++) {
        struct zone *z = &s->zones[i];
        uint64_t now;
        if (!dr__procfile_u64(&z->energy, host, &now)) {
            s->primed = false;
            continue;
        }
        uint64_t lap = now < z->before_uj ? z->range_uj - DR_MIN(z->before_uj, z->range_uj) + now : now - z->before_uj;
        *out += (double)lap * 1e-6;
        z->before_uj = now;
    }
    return primed && s->primed;
}

static void tick(void *state, dr__host *host, uint64_t now_ns, uint64_t elapsed_ns, dr_snapshot *out)
{
    (void)now_ns;
    struct state *s = state;
    double joules;
    bool measured = read_joules(s, host, &joules);
    if (measured && elapsed_ns) {
        double power = joules * 1e9 / (double)elapsed_ns;
        s->limit_w = DR_MAX(s->limit_w, 1);
        dr__sense(out, DR_SENSOR_POWER, power, s->limit_w);
    } else if (!s->primed && dr__is_present(out, DR_SENSOR_CPU_TOTAL)) {
        double n = host->n_cpus;
        dr__sense(out, DR_SENSOR_POWER, n * idle_w + out->value[DR_SENSOR_CPU_TOTAL] * (busy_w - idle_w), n * busy_w);
        out->modelled |= (uint64_t)1 << DR_SENSOR_POWER;
    }
}

static void close_files(void *state)
{
    struct state *s = state;
    for (int i = 0; i < s->n_zones; i++)
        dr__procfile_close(&s->zones[i].energy);
}

const dr__probe_def dr__probe_energy = {
    .name = "energy",
    .summary = "power of the CPU packages, measured or modelled",
    .state_size = sizeof(struct state),
    .open = open_files,
    .read = tick,
    .close = close_files,
};
