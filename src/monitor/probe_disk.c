/* probe_disk.c: bytes, queue and latency of the disks from /proc/diskstats; if that is missing, only the bytes, from
 * the cgroup's io.stat.
 *
 * Only whole disks count: partitions and stacked devices (dm, md, loop, zram) would count twice.
 */
#include "monitor/probe.h"

#include <string.h>

enum {
    READS,
    READ_MERGED,
    READ_SECTORS,
    READ_MS,
    WRITES,
    WRITE_MERGED,
    WRITE_SECTORS,
    WRITE_MS,
    NOW,
    BUSY_MS,
    QUEUE_MS
};
enum { N_FIELDS = QUEUE_MS + 1, MAX_DISKS = 64, NAME = 32, SECTOR = 512, QUEUE_FULL = 32 };
static const double latency_full_s = 0.1, bandwidth_floor = 100e6;

struct sums {
    uint64_t requests, bytes, request_ms, queue_ms;
    uint64_t busy_ms[MAX_DISKS];
    int n_disks;
};

struct state {
    dr__procfile stats, group;
    struct sums before;
    bool primed;
    double peak;
};

static void open_files(void *state, dr__host *host)
{
    struct state *s = state;
    bool v1;
    s->peak = bandwidth_floor;
    s->group.fd = -1;
    if (!dr__procfile_open(&s->stats, host, "/proc/diskstats") &&
        (!dr__group_open(host, "io", "", "io.stat", &s->group, 1, &v1) || v1))
        dr__procfile_close(&s->group);
}

static bool is_stacked(const char *name)
{
    static const char *const kinds[] = { "loop", "ram", "zram", "dm-", "md", "sr", "fd" };
    for (size_t i = 0; i < DR_COUNT(kinds); i++)
        if (!strncmp(name, kinds[i], strlen(kinds[i])))
            return true;
    return false;
}

/* Whether `name` is a partition of `disk`: sda1 of sda, nvme0n1p2 of nvme0n1.  Partitions are listed after their disk.
 */
static bool is_part_of(const char *name, const char *disk)
{
    size_t n = strlen(disk);
    if (!n || strncmp(name, disk, n) || !name[n])
        return false;
    name += n + (name[n] == 'p');
    return *name && name[strspn(name, "0123456789")] == 0;
}

static bool read_line(const char *at, char *name, uint64_t *fields)
{
    uint64_t numbers[2];
    if (dr__next_u64s(&at, numbers, 2) < 2)
        return false;
    at += strspn(at, " ");
    size_t n = strcspn(at, " \n");
    if (!n || n >= NAME)
        return false;
    memcpy(name, at, n);
    name[n] = 0;
    at += n;
    return dr__next_u64s(&at, fields, N_FIELDS) == N_FIELDS;
}

static void add_disk(struct sums *sum, const uint64_t *f)
{
    sum->requests += f[READS] + f[WRITES];
    sum->bytes += (f[READ_SECTORS] + f[WRITE_SECTORS]) * SECTOR;
    sum->request_ms += f[READ_MS] + f[WRITE_MS];
    sum->queue_ms += f[QUEUE_MS];
    if (sum->n_disks < MAX_DISKS)
        sum->busy_ms[sum->n_disks++] = f[BUSY_MS];
}

static bool read_stats(const char *text, struct sums *out)
{
    char disk[NAME] = "", name[NAME];
    uint64_t fields[N_FIELDS];
    *out = (struct sums){ 0 };
    for (; text; text = dr__next_line(text)) {
        if (!read_line(text, name, fields) || is_stacked(name) || is_part_of(name, disk))
            continue;
        memcpy(disk, name, sizeof disk);
        add_disk(out, fields);
    }
    return out->n_disks > 0;
}

/* Lines "8:0 rbytes=1 wbytes=2 rios=3 ..." */
static bool read_group(const char *text, struct sums *out)
{
    static const char *const keys[] = { "rbytes=", "wbytes=" };
    bool found = false;
    *out = (struct sums){ 0 };
    for (size_t i = 0; i < DR_COUNT(keys); i++)
        for (const char *at = text; (at = strstr(at, keys[i]));) {
            uint64_t bytes;
            at += strlen(keys[i]);
            if (dr__next_u64(&at, &bytes)) {
                out->bytes += bytes;
                found = true;
            }
        }
    return found;
}

static void sense_requests(const struct sums *a, const struct sums *b, double elapsed_s, dr_snapshot *out)
{
    uint64_t requests = dr__counter_delta(a->requests, b->requests);
    double waited_s = (double)dr__counter_delta(a->request_ms, b->request_ms) * 1e-3, busiest = 0;
    for (int i = 0; i < DR_MIN(a->n_disks, b->n_disks); i++)
        busiest = DR_MAX(busiest, (double)dr__counter_delta(a->busy_ms[i], b->busy_ms[i]) * 1e-3 / elapsed_s);
    dr__sense(out, DR_SENSOR_DISK_BUSY, DR_MIN(busiest, 1), 1);
    dr__sense(out, DR_SENSOR_DISK_QUEUE, (double)dr__counter_delta(a->queue_ms, b->queue_ms) * 1e-3 / elapsed_s,
              QUEUE_FULL);
    dr__sense(out, DR_SENSOR_DISK_LATENCY, requests ? waited_s / (double)requests : 0, latency_full_s);
}

static void tick(void *state, dr__host *host, uint64_t now_ns, uint64_t elapsed_ns, dr_snapshot *out)
{
    (void)now_ns;
    struct state *s = state;
    struct sums now;
    bool disks = dr__procfile_read(&s->stats, host) && read_stats(host->text, &now);
    bool found = disks || (dr__procfile_read(&s->group, host) && read_group(host->text, &now));
    if (found && s->primed && elapsed_ns) {
        double elapsed_s = (double)elapsed_ns * 1e-9;
        double rate = (double)dr__counter_delta(s->before.bytes, now.bytes) / elapsed_s;
        s->peak = DR_MAX(s->peak, rate);
        dr__sense(out, DR_SENSOR_DISK_BANDWIDTH, rate, s->peak);
        if (disks)
            sense_requests(&s->before, &now, elapsed_s, out);
    }
    s->primed = found;
    if (found)
        s->before = now;
}

static void close_files(void *state)
{
    struct state *s = state;
    dr__procfile_close(&s->stats);
    dr__procfile_close(&s->group);
}

const dr__probe_def dr__probe_disk = {
    .name = "disk",
    .summary = "bandwidth, queue and latency of the disks",
    .state_size = sizeof(struct state),
    .open = open_files,
    .read = tick,
    .close = close_files,
};
