/* burn.h: the parts of burn, the project's generator of contention. */
#ifndef DRAPPS_TOOLS_BURN_H
#define DRAPPS_TOOLS_BURN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BURN_MAX_STEPS = 100000 };

/* --- how much, when (burn_pattern.c) --- */

enum burn_shape { BURN_STEADY, BURN_STEP, BURN_PERIODIC, BURN_RANDOM, BURN_TRACE };

struct burn_step {
    double at_s, level; /* from then on */
};

struct burn_pattern {
    enum burn_shape shape;
    double level, period_s;
    uint64_t seed;
    struct burn_step *steps; /* of a trace, in order of time; owned */
    size_t n_steps;
};

/* The shape of that name; false: none. */
bool burn_shape_parse(const char *name, enum burn_shape *out);

/* Reads lines "seconds level", '#' begins a comment.  On failure says why on stderr. */
bool burn_trace_read(const char *path, struct burn_pattern *p);

/* The level, in [0, 1], at a time since the start. */
double burn_level(const struct burn_pattern *p, double at_s);

/* --- what with (burn_load.c) --- */

struct burn_load {
    size_t size_bytes;   /* memory: each thread's buffer; io: the file */
    const char *path;    /* io: the folder of the file */
    atomic_ullong moved; /* bytes so far, all threads */
};

/* A kind of load: makes what a thread needs, does a little work (some 100 us), and ends.  begin says why it failed. */
struct burn_kind {
    const char *name, *summary;
    void *(*begin)(struct burn_load *load);
    void (*work)(struct burn_load *load, void *state);
    void (*end)(struct burn_load *load, void *state);
};

/* NULL for a name that is none. */
const struct burn_kind *burn_kind_find(const char *name);

#endif
