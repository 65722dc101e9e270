/* probe_cpu.c: use of the CPUs from /proc/stat, own use from the CPU clocks of processes.
 *
 * The kernel counts in hundredths of a second, so differences over less than 90 ms would be mostly rounding: until then
 * the probe repeats its last values.  Busy time is user, nice, system, irq and softirq; user includes guests.
 *
 * Most kernels measure idle time exactly, but sample the rest at each timer tick: a load that runs in step with the
 * ticks is counted wrongly by 10 % and more.  So a CPU's use is the time, by the clock, in which it was not idle.
 */
#include "monitor/probe.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, N_TIMES };
enum { MIN_SPAN_NS = 90000000, TICKS_HZ = 100 };

struct times {
    uint64_t busy, idle, io_wait, steal; /* idle without io_wait */
};

struct reading {
    struct times all;
    struct times cpu[DR_MAX_CPUS];
    uint32_t n_cpus, n_online; /* highest CPU number + 1; CPUs listed, also those beyond DR_MAX_CPUS */
    uint64_t own_ns, at_ns;
};

struct state {
    dr__procfile stat, self;
    struct reading before, now;
    dr_snapshot last; /* the sensors at `before` */
    bool primed;
};

/* Parses the times of one line; false: it ends before the idle time. */
static bool read_times(const char *at, struct times *out)
{
    uint64_t t[N_TIMES] = { 0 };
    if (dr__next_u64s(&at, t, N_TIMES) <= IDLE)
        return false;
    out->busy = t[USER] + t[NICE] + t[SYSTEM] + t[IRQ] + t[SOFTIRQ];
    out->idle = t[IDLE];
    out->io_wait = t[IOWAIT];
    out->steal = t[STEAL];
    return true;
}

static bool read_stat(const char *text, struct reading *r)
{
    if (strncmp(text, "cpu ", 4) || !read_times(text + 4, &r->all))
        return false;
    r->n_cpus = r->n_online = 0;
    memset(r->cpu, 0, sizeof r->cpu);
    while ((text = dr__next_line(text)) && !strncmp(text, "cpu", 3)) {
        const char *at = text + 3;
        uint64_t i;
        struct times t;
        if (!dr__next_u64(&at, &i) || !read_times(at, &t))
            continue;
        r->n_online++;
        if (i >= DR_MAX_CPUS)
            continue;
        r->cpu[i] = t;
        r->n_cpus = DR_MAX(r->n_cpus, (uint32_t)i + 1);
    }
    return r->n_online > 0;
}

/* For a redirected tree: user and system time, fields 14 and 15.  Fields are counted after the program's name, which
 * may contain any character. */
static bool read_self(const char *text, uint64_t *out_ns)
{
    const char *at = strrchr(text, ')');
    for (int field = 3; at && field <= 14; field++) {
        at = strchr(at + 1, ' ');
        at = at ? at + strspn(at, " ") - 1 : NULL;
    }
    uint64_t t[2];
    if (!at || dr__next_u64s(&at, t, 2) < 2)
        return false;
    *out_ns = (t[0] + t[1]) * (1000000000u / TICKS_HZ);
    return true;
}

static bool read_own(struct state *s, dr__host *host, uint64_t *out_ns)
{
    if (host->redirected)
        return dr__procfile_read(&s->self, host) && read_self(host->text, out_ns);
    *out_ns = dr__own_cpu_ns(&host->own);
    return true;
}

/* Shares of the time between two readings. */
struct shares {
    double busy, io_wait, steal;
};

/* `span`: the CPU time between the readings, by the clock.  If the counters differ from it by more than half, they are
 * of another machine or damaged, and their own sum is the time.  In doubles, so that damaged counters cannot wrap
 * around to a share above 1. */
static struct shares shares_of(const struct times *a, const struct times *b, double span)
{
    double busy = (double)dr__counter_delta(a->busy, b->busy), idle = (double)dr__counter_delta(a->idle, b->idle);
    double io_wait = (double)dr__counter_delta(a->io_wait, b->io_wait),
           steal = (double)dr__counter_delta(a->steal, b->steal);
    double counted = busy + idle + io_wait + steal;
    double all = fabs(counted - span) <= span / 2 ? span : counted;
    if (!(all > 0))
        return (struct shares){ 0 };
    return (struct shares){
        /* without busy ticks, a gap between idle time and the clock is a tick read early or late, not use */
        .busy = busy > 0 ? DR_MAX(1 - (idle + io_wait + steal) / all, 0) : 0,
        .io_wait = DR_MIN(io_wait / all, 1),
        .steal = DR_MIN(steal / all, 1),
    };
}

/* Hundredths of a second between two readings. */
static double span_of(const struct reading *a, const struct reading *b)
{
    return (double)(b->at_ns - a->at_ns) * (TICKS_HZ * 1e-9);
}

static void sense_each(const struct reading *a, const struct reading *b, dr_snapshot *out)
{
    double busiest = 0;
    out->n_cpus = b->n_cpus;
    for (uint32_t i = 0; i < b->n_cpus; i++) {
        double use = shares_of(&a->cpu[i], &b->cpu[i], span_of(a, b)).busy;
        out->cpu[i] = (float)use;
        busiest = DR_MAX(busiest, use);
    }
    dr__sense(out, DR_SENSOR_CPU_BUSIEST, busiest, 1);
}

static void sense_all(const struct reading *a, const struct reading *b, bool own_known, dr_snapshot *out)
{
    double n = b->n_online;
    struct shares shares = shares_of(&a->all, &b->all, n * span_of(a, b));
    double total = n * shares.busy;
    dr__sense(out, DR_SENSOR_CPU_TOTAL, total, n);
    dr__sense(out, DR_SENSOR_CPU_STEAL, n * shares.steal, n);
    dr__sense(out, DR_SENSOR_IO_WAIT, n * shares.io_wait, n);
    if (!own_known)
        return;
    double own = (double)dr__counter_delta(a->own_ns, b->own_ns) / (double)(b->at_ns - a->at_ns);
    own = DR_MIN(own, n);
    dr__sense(out, DR_SENSOR_CPU_OWN, own, n);
    dr__sense(out, DR_SENSOR_CPU_FOREIGN, DR_MAX(total - own, 0), n);
}

/* Copies the sensors of this probe from one snapshot to another. */
static void copy_sensors(const dr_snapshot *from, dr_snapshot *out)
{
    for (int i = DR_SENSOR_CPU_TOTAL; i <= DR_SENSOR_IO_WAIT; i++) {
        out->value[i] = from->value[i];
        out->level[i] = from->level[i];
    }
    out->present |= from->present;
    out->n_cpus = from->n_cpus;
    memcpy(out->cpu, from->cpu, from->n_cpus * sizeof out->cpu[0]);
}

static void open_files(void *state, dr__host *host)
{
    struct state *s = state;
    dr__procfile_open(&s->stat, host, "/proc/stat");
    dr__procfile_open(&s->self, host, "/proc/self/stat");
}

static void tick(void *state, dr__host *host, uint64_t now_ns, uint64_t elapsed_ns, dr_snapshot *out)
{
    (void)elapsed_ns;
    struct state *s = state;
    if (s->primed && now_ns - s->before.at_ns < MIN_SPAN_NS) {
        copy_sensors(&s->last, out);
        return;
    }
    bool found = dr__procfile_read(&s->stat, host) && read_stat(host->text, &s->now);
    host->n_cpus = found ? s->now.n_online : 0;
    if (!found) {
        s->primed = false;
        return;
    }
    bool own_known = read_own(s, host, &s->now.own_ns);
    s->now.at_ns = now_ns;
    s->last.present = 0;
    s->last.n_cpus = s->now.n_cpus;
    memset(s->last.cpu, 0, sizeof s->last.cpu);
    if (s->primed) {
        sense_all(&s->before, &s->now, own_known, &s->last);
        sense_each(&s->before, &s->now, &s->last);
    }
    s->before = s->now;
    s->primed = true;
    copy_sensors(&s->last, out);
}

static void close_files(void *state)
{
    struct state *s = state;
    dr__procfile_close(&s->stat);
    dr__procfile_close(&s->self);
}

const dr__probe_def dr__probe_cpu = {
    .name = "cpu",
    .summary = "use of the CPUs, own and foreign",
    .state_size = sizeof(struct state),
    .open = open_files,
    .read = tick,
    .close = close_files,
};
