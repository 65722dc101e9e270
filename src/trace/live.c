/* live.c: the writer of a live file.
 *
 * The file is mapped.  A reader copies it with read() and compares the sequence number before and after (a seqlock):
 * the writer only stores, and a reader that collides with it tries again.  All pages are allocated when the file is
 * made, so that no store can fail later when the disk or the memory is full.
 */
#include <drapps/live.h>

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/spread.h"
#include "base/thread.h"
#include "trace/live_layout.h"
#include "trace/live_place.h"

#ifndef DR_VERSION
#define DR_VERSION "unknown"
#endif

struct dr_live {
    int folder, fd; /* fd holds the lock that marks the writer as alive */
    char file[64];
    unsigned number;     /* in this process, from 1 on */
    unsigned generation; /* fork generation: a child neither writes nor removes the file */
    dr__live_head *head; /* the mapped file */
    size_t bytes;
    uint64_t *state;
    dr__live_map map;
};

/* --- making a file --- */

static void copy_text(char *to, size_t room, const char *from)
{
    snprintf(to, room, "%s", from ? from : "");
}

static void read_command(char *out, size_t room)
{
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, out, room - 1) : 0;
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return;
    while (n > 0 && !out[n - 1])
        n--;
    for (ssize_t i = 0; i < n; i++)
        if ((unsigned char)out[i] < ' ')
            out[i] = ' ';
}

/* Another process may remove the file as abandoned before it is locked: then another name is tried. */
static bool create_locked(dr_live *live)
{
    for (int i = 0; i < 8; i++) {
        struct stat s;
        snprintf(live->file, sizeof live->file, "%d-%llx-%u" DR__LIVE_SUFFIX, (int)getpid(),
                 (unsigned long long)dr__now_ns(), live->number);
        live->fd = openat(live->folder, live->file, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (live->fd < 0)
            return false;
        if (flock(live->fd, LOCK_EX) == 0 && fstat(live->fd, &s) == 0 && s.st_nlink > 0)
            return true;
        unlinkat(live->folder, live->file, 0);
        close(live->fd);
        live->fd = -1;
    }
    return false;
}

static bool map_file(dr_live *live)
{
    dr__live_head head = { 0 };
    dr__live_head_init(&head);
    if (posix_fallocate(live->fd, 0, head.bytes) != 0)
        return false;
    void *p = mmap(NULL, head.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, live->fd, 0);
    if (p == MAP_FAILED)
        return false;
    live->head = p;
    live->bytes = head.bytes;
    live->state = (uint64_t *)((char *)p + head.state_at);
    dr__live_map_of(&head, &live->map);
    return true;
}

static void fill_head(dr_live *live, const char *name, const char *policy)
{
    dr__live_head head = { .pid = (int32_t)getpid(),
                           .pid_space = dr__live_pid_namespace(),
                           .started_ns = dr__now_ns() };
    dr__live_head_init(&head);
    head.loader = live->number;
    head.start_ticks = dr__live_start_ticks(head.pid);
    copy_text(head.version, sizeof head.version, DR_VERSION);
    copy_text(head.name, sizeof head.name, name);
    copy_text(head.policy, sizeof head.policy, policy);
    read_command(head.command, sizeof head.command);
    dr__live_write_names((char *)live->head + head.names_at);
    live->state[DR__LIVE_TIME] = head.started_ns;
    char magic[sizeof head.magic];
    memcpy(magic, head.magic, sizeof magic);
    memset(head.magic, 0, sizeof head.magic);
    memcpy(live->head, &head, sizeof head);
    atomic_thread_fence(memory_order_release); /* a reader that sees the magic sees the rest */
    memcpy(live->head->magic, magic, sizeof magic);
}

dr_live *dr_live_open(const char *name, const char *policy)
{
    static atomic_uint counter;
    int folder = dr__live_folder_make();
    dr_live *live = folder >= 0 ? dr__alloc_zero(1, sizeof *live) : NULL;
    if (!live) {
        if (folder >= 0)
            close(folder);
        return NULL;
    }
    *live = (dr_live){ .folder = folder, .fd = -1, .generation = dr__fork_generation() };
    live->number = atomic_fetch_add(&counter, 1) + 1;
    dr__live_sweep(folder);
    if (create_locked(live) && map_file(live)) {
        dr_live_spreads(live, (dr_spread[DR_N_SPREADS]){ 0 }, DR_N_SPREADS); /* writes the ends of the bins */
        fill_head(live, name, policy);
    } else {
        dr_live_close(&live);
    }
    return live;
}

/* The name is removed before the lock is released, so that no reader finds a file without a writer. */
void dr_live_close(dr_live **livep)
{
    dr_live *live = livep ? *livep : NULL;
    if (!live)
        return;
    *livep = NULL;
    if (live->fd >= 0) {
        if (live->generation == dr__fork_generation())
            unlinkat(live->folder, live->file, 0);
        close(live->fd);
    }
    if (live->head)
        munmap(live->head, live->bytes);
    close(live->folder);
    dr__free(live);
}

/* --- writing --- */

static _Atomic uint64_t *sequence(dr_live *live)
{
    return (_Atomic uint64_t *)&live->state[DR__LIVE_SEQ];
}

/* false: no file, or it belongs to the parent process. */
static bool begin(dr_live *live)
{
    if (!live || live->generation != dr__fork_generation())
        return false;
    atomic_fetch_add_explicit(sequence(live), 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); /* the odd number is visible before the stores that follow */
    return true;
}

static void end(dr_live *live)
{
    atomic_fetch_add_explicit(sequence(live), 1,
                              memory_order_release); /* the even number is visible after all stores */
}

static void put_double(dr_live *live, size_t at, double value)
{
    memcpy(&live->state[at], &value, sizeof value);
}

static void put_doubles(dr_live *live, size_t at, const double *values, int n, int room)
{
    if (values && n > 0)
        memcpy(&live->state[at], values, (size_t)DR_MIN(n, room) * sizeof *values);
}

void dr_live_put(dr_live *live, const dr_snapshot *snapshot, const double *flow, int n_flow, const double *knobs,
                 int n_knobs)
{
    if (!begin(live))
        return;
    const dr__live_map *map = &live->map;
    live->state[DR__LIVE_TIME] = dr__now_ns();
    if (snapshot) {
        const uint32_t n_cpus = DR_MIN(snapshot->n_cpus, (uint32_t)DR_MAX_CPUS);
        live->state[DR__LIVE_PRESENT] = snapshot->present;
        live->state[DR__LIVE_MODELLED] = snapshot->modelled;
        live->state[DR__LIVE_CPUS] = n_cpus;
        put_doubles(live, map->values, snapshot->value, DR_N_SENSORS, DR_N_SENSORS);
        put_doubles(live, map->levels, snapshot->level, DR_N_SENSORS, DR_N_SENSORS);
        for (uint32_t i = 0; i < n_cpus; i++)
            put_double(live, map->cpu + i, (double)snapshot->cpu[i]);
    }
    put_doubles(live, map->flow, flow, n_flow, DR_N_FLOWS);
    put_doubles(live, map->knobs, knobs, n_knobs, DR_N_KNOBS);
    end(live);
}

static void put_spread(dr_live *live, size_t at, const dr_spread *spread)
{
    put_double(live, at + DR__LIVE_SUM, spread->sum);
    for (size_t i = 0; i < DR_SPREAD_BINS; i++) {
        put_double(live, at + DR__LIVE_BINS + 2 * i, dr__spread_end((int)i));
        live->state[at + DR__LIVE_BINS + 2 * i + 1] = spread->n[i];
    }
}

void dr_live_spreads(dr_live *live, const dr_spread *spreads, int n)
{
    if (!begin(live))
        return;
    for (int i = 0; i < DR_MIN(n, DR_N_SPREADS); i++)
        put_spread(live, live->map.spreads + (size_t)i * live->map.spread_words, &spreads[i]);
    end(live);
}

static void put_decision(dr_live *live, size_t slot, const dr_decision *d)
{
    const size_t at = live->map.decisions + slot * live->map.decision_words;
    live->state[at + DR__LIVE_NUMBER] = d->number;
    live->state[at + DR__LIVE_WHEN] = d->time_ns;
    live->state[at + DR__LIVE_BOUND] = (uint64_t)d->bound;
    live->state[at + DR__LIVE_CHANGED] = d->changed;
    live->state[at + DR__LIVE_GUARDED] = d->guarded;
    put_double(live, at + DR__LIVE_REWARD, d->reward);
    put_doubles(live, at + DR__LIVE_BEFORE, d->before, DR_N_KNOBS, DR_N_KNOBS);
    put_doubles(live, at + DR__LIVE_BEFORE + DR_N_KNOBS, d->after, DR_N_KNOBS, DR_N_KNOBS);
    copy_text((char *)&live->state[at + DR__LIVE_BEFORE + 2 * DR_N_KNOBS], DR_MAX_REASON, d->reason);
}

void dr_live_decision(dr_live *live, const dr_decision *d)
{
    if (!d || !begin(live))
        return;
    put_decision(live, DR__LIVE_KEPT, d);
    if (d->changed || d->guarded)
        put_decision(live, (size_t)(live->state[DR__LIVE_DECIDED]++ % DR__LIVE_KEPT), d);
    if (d->bound >= 0 && d->bound < DR_N_BOUNDS)
        live->state[live->map.bounds + (size_t)d->bound]++;
    for (int i = 0; i < DR_N_KNOBS; i++)
        live->state[live->map.turns + (size_t)i] += d->changed >> i & 1;
    end(live);
}
