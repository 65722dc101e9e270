/* probe_quota.c: CPU time that this process's cgroup uses of its quota, and the time for which the quota throttled it.
 *
 * The quota is read at each tick, in the group and each group above it, since it may change while a program runs.
 */
#include "monitor/probe.h"

enum { MAX_LEVELS = 8, STAT_BYTES = 8192 };

struct state {
    dr__procfile usage, stat, quotas[MAX_LEVELS], periods[MAX_LEVELS]; /* periods: version 1 only */
    int n_quotas, n_periods;
    bool v1, usage_v1;
    uint64_t used_ns, throttled_ns;
    bool primed_use, primed_throttle;
};

static void open_files(void *state, dr__host *host)
{
    struct state *s = state;
    bool v1;
    s->n_quotas = dr__group_open(host, "cpu", "cpu.cfs_quota_us", "cpu.max", s->quotas, MAX_LEVELS, &s->v1);
    if (s->v1)
        s->n_periods = dr__group_open(host, "cpu", "cpu.cfs_period_us", "", s->periods, MAX_LEVELS, &v1);
    if (!dr__group_open(host, "cpu", "cpu.stat", "cpu.stat", &s->stat, 1, &v1))
        s->stat.fd = -1;
    if (!dr__group_open(host, "cpuacct", "cpuacct.usage", "cpu.stat", &s->usage, 1, &s->usage_v1))
        s->usage.fd = -1;
}

/* The quota of one group in CPUs; 0: none ("-1" in version 1, "max" in version 2). */
static double read_quota(struct state *s, dr__host *host, int i)
{
    uint64_t n[2] = { 0 };
    const char *at = host->text;
    if (!dr__procfile_read(&s->quotas[i], host) || !dr__next_u64(&at, &n[0]))
        return 0;
    bool period =
        s->v1 ? s->n_periods == s->n_quotas && dr__procfile_u64(&s->periods[i], host, &n[1]) : dr__next_u64(&at, &n[1]);
    return period && n[1] ? (double)n[0] / (double)n[1] : 0;
}

static double tightest_quota(struct state *s, dr__host *host)
{
    double least = 0;
    for (int i = 0; i < s->n_quotas; i++) {
        double cpus = read_quota(s, host, i);
        if (cpus > 0 && (least == 0 || cpus < least))
            least = cpus;
    }
    return least;
}

static bool read_us(const char *text, const char *key, uint64_t *out_ns)
{
    const char *at = dr__after_key(text, key);
    if (!at || !dr__next_u64(&at, out_ns) || *out_ns > UINT64_MAX / 1000)
        return false;
    *out_ns *= 1000;
    return true;
}

static bool read_use(struct state *s, dr__host *host, uint64_t *out_ns)
{
    if (s->usage_v1)
        return dr__procfile_u64(&s->usage, host, out_ns);
    return dr__procfile_read(&s->usage, host) && read_us(host->text, "usage_usec ", out_ns);
}

static bool read_throttled(struct state *s, dr__host *host, uint64_t *out_ns)
{
    if (!dr__procfile_read(&s->stat, host))
        return false;
    if (read_us(host->text, "throttled_usec ", out_ns))
        return true;
    const char *at = dr__after_key(host->text, "throttled_time ");
    return at && dr__next_u64(&at, out_ns);
}

bool dr__throttled_ns(const char *root, uint64_t *out)
{
    char text[STAT_BYTES];
    bool v1;
    struct state s = { .stat.fd = -1 };
    dr__host host = { .root = root, .text = text, .text_cap = sizeof text };
    const bool found =
        dr__group_open(&host, "cpu", "cpu.stat", "cpu.stat", &s.stat, 1, &v1) && read_throttled(&s, &host, out);
    dr__procfile_close(&s.stat);
    return found;
}

static void tick(void *state, dr__host *host, uint64_t now_ns, uint64_t elapsed_ns, dr_snapshot *out)
{
    (void)now_ns;
    struct state *s = state;
    uint64_t used, throttled;
    double quota = tightest_quota(s, host);
    bool use = read_use(s, host, &used), held = read_throttled(s, host, &throttled);
    double full = quota > 0 ? quota : host->n_cpus;
    if (use && s->primed_use && elapsed_ns)
        dr__sense(out, DR_SENSOR_QUOTA_USED, (double)dr__counter_delta(s->used_ns, used) / (double)elapsed_ns, full);
    /* Throttled time is a sum over CPUs, so it may exceed the elapsed time. */
    if (held && s->primed_throttle && elapsed_ns)
        dr__sense(out, DR_SENSOR_THROTTLED,
                  DR_MIN((double)dr__counter_delta(s->throttled_ns, throttled) / (double)elapsed_ns, 1), 1);
    s->primed_use = use;
    s->primed_throttle = held;
    s->used_ns = use ? used : 0;
    s->throttled_ns = held ? throttled : 0;
}

static void close_files(void *state)
{
    struct state *s = state;
    dr__procfile_close(&s->usage);
    dr__procfile_close(&s->stat);
    for (int i = 0; i < s->n_quotas; i++)
        dr__procfile_close(&s->quotas[i]);
    for (int i = 0; i < s->n_periods; i++)
        dr__procfile_close(&s->periods[i]);
}

const dr__probe_def dr__probe_quota = {
    .name = "quota",
    .summary = "CPU quota of the cgroup, its use, and the time throttled by it",
    .state_size = sizeof(struct state),
    .open = open_files,
    .read = tick,
    .close = close_files,
};
