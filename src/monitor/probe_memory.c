/* probe_memory.c: memory in use and to be had, within the container's limit.
 *
 * With a limit below the machine's memory, the cgroup counts: its use without the file pages that are dropped first.
 * That part is read once a second, as the kernel has to add it up over all CPUs.
 */
#include "monitor/probe.h"

#include <unistd.h>

enum { MAX_LEVELS = 8 };
static const uint64_t stat_every_ns = 1000000000u;

struct state {
    dr__procfile meminfo, statm, usage, stat, limits[MAX_LEVELS];
    int n_limits;
    bool v1;
    uint64_t droppable, next_stat_ns;
};

static void open_files(void *state, dr__host *host)
{
    struct state *s = state;
    bool v1;
    dr__procfile_open(&s->meminfo, host, "/proc/meminfo");
    dr__procfile_open(&s->statm, host, "/proc/self/statm");
    s->n_limits = dr__group_open(host, "memory", "memory.limit_in_bytes", "memory.max", s->limits, MAX_LEVELS, &s->v1);
    if (!dr__group_open(host, "memory", "memory.usage_in_bytes", "memory.current", &s->usage, 1, &v1))
        s->usage.fd = -1;
    if (!dr__group_open(host, "memory", "memory.stat", "memory.stat", &s->stat, 1, &v1))
        s->stat.fd = -1;
}

static bool read_kb(const char *text, const char *key, uint64_t *out)
{
    const char *at = dr__after_key(text, key);
    if (!at || !dr__next_u64(&at, out) || *out > UINT64_MAX / 1024)
        return false;
    *out *= 1024;
    return true;
}

/* The tightest limit; "max" of version 2 is no number. */
static uint64_t read_limit(struct state *s, dr__host *host, uint64_t total)
{
    uint64_t limit;
    for (int i = 0; i < s->n_limits; i++)
        if (dr__procfile_u64(&s->limits[i], host, &limit) && limit > 0)
            total = DR_MIN(total, limit);
    return total;
}

static bool read_group_use(struct state *s, dr__host *host, uint64_t now_ns, uint64_t *used)
{
    if (now_ns >= s->next_stat_ns) {
        s->next_stat_ns = now_ns + stat_every_ns;
        s->droppable = 0;
        const char *key = s->v1 ? "total_inactive_file " : "inactive_file ";
        const char *at = dr__procfile_read(&s->stat, host) ? dr__after_key(host->text, key) : NULL;
        if (at && !dr__next_u64(&at, &s->droppable))
            s->droppable = 0;
    }
    if (!dr__procfile_u64(&s->usage, host, used))
        return false;
    *used -= DR_MIN(*used, s->droppable);
    return true;
}

static void sense_own(struct state *s, dr__host *host, uint64_t limit, dr_snapshot *out)
{
    uint64_t pages[2]; /* of the address space, resident */
    const char *at = host->text;
    if (dr__procfile_read(&s->statm, host) && dr__next_u64s(&at, pages, 2) == 2)
        dr__sense(out, DR_SENSOR_MEM_OWN, (double)pages[1] * (double)sysconf(_SC_PAGESIZE), (double)limit);
}

static void tick(void *state, dr__host *host, uint64_t now_ns, uint64_t elapsed_ns, dr_snapshot *out)
{
    (void)elapsed_ns;
    struct state *s = state;
    uint64_t total, available, used;
    if (!dr__procfile_read(&s->meminfo, host) || !read_kb(host->text, "MemTotal:", &total) || !total ||
        !read_kb(host->text, "MemAvailable:", &available))
        return;
    available = DR_MIN(available, total);
    uint64_t limit = read_limit(s, host, total);
    if (limit == total || !read_group_use(s, host, now_ns, &used))
        used = total - available;
    available = DR_MIN(available, limit - DR_MIN(used, limit));
    dr__sense(out, DR_SENSOR_MEM_USED, (double)used, (double)limit);
    dr__sense(out, DR_SENSOR_MEM_AVAILABLE, (double)available, (double)limit);
    sense_own(s, host, limit, out);
}

static void close_files(void *state)
{
    struct state *s = state;
    dr__procfile_close(&s->meminfo);
    dr__procfile_close(&s->statm);
    dr__procfile_close(&s->usage);
    dr__procfile_close(&s->stat);
    for (int i = 0; i < s->n_limits; i++)
        dr__procfile_close(&s->limits[i]);
}

const dr__probe_def dr__probe_memory = {
    .name = "memory",
    .summary = "memory used and available within the container's limit",
    .state_size = sizeof(struct state),
    .open = open_files,
    .read = tick,
    .close = close_files,
};
