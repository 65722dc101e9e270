/* probe.h: what a probe is, and what all of them use.
 *
 * A probe is one file that ends in a const dr__probe_def, and a row in probe_defs.h.  It opens its files once, reads
 * them again by pread at each tick, and puts what it finds into the snapshot by dr__sense.  A file that is missing,
 * damaged or cut short makes sensors absent and nothing else.  Nothing is allocated after open.
 */
#ifndef DR_MONITOR_PROBE_H
#define DR_MONITOR_PROBE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drapps/monitor.h>

#include "base/compiler.h"
#include "monitor/hooks.h"
#include "monitor/own.h"

/* What probes are handed: where to look, and memory to read files into. */
typedef struct dr__host {
    const char *root;
    bool redirected; /* the tree of another machine: only files count */
    uint32_t n_cpus; /* online, as the cpu probe found; 0: unknown */
    dr__hooks pipelines;
    dr__own own;
    atomic_ullong busy_ns; /* of an accelerator, as told so far */
    char *text;            /* the last file read, with a zero byte at its end; valid until the next read */
    size_t text_cap;
} dr__host;

typedef struct dr__probe_def {
    const char *name, *summary;
    size_t state_size;
    void (*open)(void *state, dr__host *host); /* state is zeroed */
    /* elapsed_ns: since the last call; 0 at the first.  Probes see what those before them in the table put into out. */
    void (*read)(void *state, dr__host *host, uint64_t now_ns, uint64_t elapsed_ns, dr_snapshot *out);
    void (*close)(void *state); /* may be NULL */
} dr__probe_def;

extern const dr__probe_def *const dr__probe_table[]; /* ends with NULL */

/* --- files below the root --- */

typedef struct dr__procfile {
    int fd; /* -1: not there */
} dr__procfile;

bool dr__procfile_open(dr__procfile *file, const dr__host *host, const char *format, ...) DR_PRINTF(3, 4);
void dr__procfile_close(dr__procfile *file);

/* Reads from the start into host->text; false when there is nothing. */
bool dr__procfile_read(const dr__procfile *file, dr__host *host);

/* The number that a file begins with. */
bool dr__procfile_u64(const dr__procfile *file, dr__host *host, uint64_t *out);

/* Opens, reads and closes: for what does not change. */
bool dr__procfile_once(dr__host *host, uint64_t *out, const char *format, ...) DR_PRINTF(3, 4);

/* --- files of our cgroup (group.c) --- */

/* Opens `name` in our group of a controller and in each group above it, own first, at most `cap`; returns how many.
 * Version 1 if the controller has a hierarchy of its own, else version 2: *v1 says which.  Names differ by version. */
int dr__group_open(dr__host *host, const char *controller, const char *v1_name, const char *v2_name,
                   dr__procfile *files, int cap, bool *v1);

/* Time in which the quota held our group back, since the group is there, summed over CPUs (probe_quota.c).  False: not
 * known. */
bool dr__throttled_ns(const char *root, uint64_t *out);

/* --- text --- */

/* The next number of the line; false, and *at unmoved, when none is there or it does not fit. */
bool dr__next_u64(const char **at, uint64_t *out);

/* Up to cap numbers of the line, one after the other; returns how many. */
int dr__next_u64s(const char **at, uint64_t *out, int cap);

/* The start of the next line; NULL after the last. */
const char *dr__next_line(const char *at);

/* What follows `key` in the first line that begins with it; NULL without one. */
const char *dr__after_key(const char *text, const char *key);

/* --- snapshots --- */

/* Sets a sensor: level is value / full within [0, 1].  A value that is not finite or below 0, or a full scale that is
 * not above 0, leaves it absent. */
void dr__sense(dr_snapshot *out, dr_sensor sensor, double value, double full);

static inline bool dr__has(const dr_snapshot *s, dr_sensor sensor)
{
    return s->present >> sensor & 1;
}

/* How far a counter went; 0 if it fell, as counters of devices that come and go do. */
static inline uint64_t dr__went(uint64_t before, uint64_t now)
{
    return now > before ? now - before : 0;
}

#endif
