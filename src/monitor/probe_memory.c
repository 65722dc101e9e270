/* probe_memory.c: memory used and available, within the container's limit.
 *
 * With a limit below the machine's memory, the use of the cgroup counts, less the inactive file pages, which the kernel
 * drops first.  That part is read once a second, since the kernel sums it over all CPUs.  Of the limits of the group
 * and the groups above it, the one that leaves the least memory counts.
 */
#include "monitor/probe.h"

#include <unistd.h>

enum { MAX_LEVELS = 8 };
static const uint64_t stat_every_ns = 1000000000u;

struct state {
    dr__procfile meminfo, statm;
    dr__procfile limit[MAX_LEVELS], usage[MAX_LEVELS], stat[MAX_LEVELS]; /* from the process's group up */
    int n_limits, n_usages, n_stats;
    bool v1;
    uint64_t droppable[MAX_LEVELS], next_stat_ns;
};

/* The limit and the use of a group. */
struct group_use {
    uint64_t limit, used;
};

static void open_files(void *state, dr__host *host)
{
    struct state *s = state;
    bool v1;
    dr__procfile_open(&s->meminfo, host, "/proc/meminfo");
    dr__procfile_open(&s->statm, host, "/proc/self/statm");
    s->n_limits = dr__group_open(host, "memory", "memory.limit_in_bytes", "memory.max", s->limit, MAX_LEVELS, &s->v1);
    s->n_usages = dr__group_open(host, "memory", "memory.usage_in_bytes", "memory.current", s->usage, s->n_limits, &v1);
    s->n_stats = dr__group_open(host, "memory", "memory.stat", "memory.stat", s->stat, s->n_limits, &v1);
}

static bool read_kb(const char *text, const char *key, uint64_t *out)
{
    const char *at = dr__after_key(text, key);
    if (!at || !dr__next_u64(&at, out) || *out > UINT64_MAX / 1024)
        return false;
    *out *= 1024;
    return true;
}

static void read_droppable(struct state *s, dr__host *host, int level)
{
    const char *key = s->v1 ? "total_inactive_file " : "inactive_file ";
    const char *at =
        level < s->n_stats && dr__procfile_read(&s->stat[level], host) ? dr__after_key(host->text, key) : NULL;
    if (!at || !dr__next_u64(&at, &s->droppable[level]))
        s->droppable[level] = 0;
}

/* false: the group has no limit below the machine's memory ("max" in version 2), or its files cannot be read. */
static bool read_group(struct state *s, dr__host *host, int level, bool with_stat, uint64_t total,
                       struct group_use *out)
{
    if (!dr__procfile_u64(&s->limit[level], host, &out->limit) || !out->limit || out->limit >= total)
        return false;
    if (with_stat)
        read_droppable(s, host, level);
    if (level >= s->n_usages || !dr__procfile_u64(&s->usage[level], host, &out->used))
        return false;
    out->used -= DR_MIN(out->used, s->droppable[level]);
    return true;
}

static uint64_t bytes_left(struct group_use r)
{
    return r.limit - DR_MIN(r.used, r.limit);
}

/* The group with the least memory left, from the process's group up to the machine. */
static struct group_use find_tightest(struct state *s, dr__host *host, uint64_t now_ns, uint64_t total,
                                      uint64_t available)
{
    struct group_use least = { total, total - available }, group;
    const bool with_stat = now_ns >= s->next_stat_ns;
    bool limited = false;
    if (with_stat)
        s->next_stat_ns = now_ns + stat_every_ns;
    for (int level = 0; level < s->n_limits; level++)
        if (read_group(s, host, level, with_stat, total, &group) &&
            (!limited || bytes_left(group) < bytes_left(least))) {
            least = group;
            limited = true;
        }
    return least;
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
    uint64_t total, available;
    if (!dr__procfile_read(&s->meminfo, host) || !read_kb(host->text, "MemTotal:", &total) || !total ||
        !read_kb(host->text, "MemAvailable:", &available))
        return;
    available = DR_MIN(available, total);
    const struct group_use group_use = find_tightest(s, host, now_ns, total, available);
    available = DR_MIN(available, bytes_left(group_use));
    dr__sense(out, DR_SENSOR_MEM_USED, (double)group_use.used, (double)group_use.limit);
    dr__sense(out, DR_SENSOR_MEM_AVAILABLE, (double)available, (double)group_use.limit);
    sense_own(s, host, group_use.limit, out);
}

static void close_all(dr__procfile *files, int n)
{
    for (int i = 0; i < n; i++)
        dr__procfile_close(&files[i]);
}

static void close_files(void *state)
{
    struct state *s = state;
    dr__procfile_close(&s->meminfo);
    dr__procfile_close(&s->statm);
    close_all(s->limit, s->n_limits);
    close_all(s->usage, s->n_usages);
    close_all(s->stat, s->n_stats);
}

const dr__probe_def dr__probe_memory = {
    .name = "memory",
    .summary = "memory used and available within the container's limit",
    .state_size = sizeof(struct state),
    .open = open_files,
    .read = tick,
    .close = close_files,
};
