/* probe.h: the interface of a probe, and functions for all probes.
 *
 * A probe is one file that ends in a const dr__probe_def, and a row in probe_defs.h.  It opens its files once, reads
 * them by pread at each tick, and sets sensors of the snapshot by dr__sense.  A file that is missing, damaged or cut
 * short makes sensors absent and has no other effect.  Nothing is allocated after open.
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

/* What all probes use: where to look, and memory to read files into. */
typedef struct dr__host {
    const char *root;
    bool redirected; /* root is the tree of another machine: only files may be read */
    uint32_t n_cpus; /* CPUs online, set by the cpu probe; 0: unknown */
    dr__hooks pipelines;
    dr__own_cpu own;
    atomic_ullong busy_ns; /* sum of dr_monitor_add_busy */
    char *text;            /* the last file read, zero-terminated; valid until the next read */
    size_t text_cap;
} dr__host;

typedef struct dr__probe_def {
    const char *name, *summary;
    size_t state_size;
    void (*open)(void *state, dr__host *host); /* state is zeroed */
    /* elapsed_ns: since the last call; 0 at the first.  `out` has the sensors of the probes before it in the table. */
    void (*read)(void *state, dr__host *host, uint64_t now_ns, uint64_t elapsed_ns, dr_snapshot *out);
    void (*close)(void *state); /* may be NULL */
} dr__probe_def;

extern const dr__probe_def *const dr__probe_table[]; /* ends with NULL */

/* --- files below the root --- */

typedef struct dr__procfile {
    int fd; /* -1: missing */
} dr__procfile;

bool dr__procfile_open(dr__procfile *file, const dr__host *host, const char *format, ...) DR_PRINTF(3, 4);
void dr__procfile_close(dr__procfile *file);

/* Reads the file from its start into host->text; false: missing or empty. */
bool dr__procfile_read(const dr__procfile *file, dr__host *host);

/* Reads the number that a file begins with. */
bool dr__procfile_u64(const dr__procfile *file, dr__host *host, uint64_t *out);

/* Opens, reads and closes a file: for numbers that do not change. */
bool dr__procfile_once(dr__host *host, uint64_t *out, const char *format, ...) DR_PRINTF(3, 4);

/* --- files of this process's cgroup (group.c) --- */

/* Opens a file in the process's group and in each group above it, own group first.
 *
 * @param controller       the version 1 controller.
 * @param v1_name, v2_name  the name of the file in each version.
 * @param files            room for `cap` files.
 * @param v1               set: the controller has a version 1 hierarchy.
 * @return how many files were opened. */
int dr__group_open(dr__host *host, const char *controller, const char *v1_name, const char *v2_name,
                   dr__procfile *files, int cap, bool *v1);

/* The time for which the quota has throttled the process's group, summed over CPUs (probe_quota.c).  false: not known.
 */
bool dr__throttled_ns(const char *root, uint64_t *out);

/* --- text --- */

/* Parses the next number of the line; false, with *at unchanged: there is none, or it overflows. */
bool dr__next_u64(const char **at, uint64_t *out);

/* Parses up to `cap` numbers of the line; returns how many. */
int dr__next_u64s(const char **at, uint64_t *out, int cap);

/* The start of the next line; NULL after the last. */
const char *dr__next_line(const char *at);

/* The text after `key` in the first line that begins with it; NULL: there is none. */
const char *dr__after_key(const char *text, const char *key);

/* --- snapshots --- */

/* Sets a sensor to `value` and its level to value / full, at most 1.  The sensor stays absent if the value is negative
 * or not finite, or if `full` is not positive. */
void dr__sense(dr_snapshot *out, dr_sensor sensor, double value, double full);

static inline bool dr__is_present(const dr_snapshot *s, dr_sensor sensor)
{
    return s->present >> sensor & 1;
}

/* The increase of a counter; 0 if it fell, as sums over devices that come and go do. */
static inline uint64_t dr__counter_delta(uint64_t before, uint64_t now)
{
    return now > before ? now - before : 0;
}

#endif
