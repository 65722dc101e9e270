/* disturb.h: what changes while a simulation runs and nobody in it decides: tenants, quotas, links, prices.
 *
 * A scenario has rows of disturbances with ranges; an instance draws one of each by its seed.  Signals change at most
 * every 100 ms.
 */
#ifndef DR_SIM_DISTURB_H
#define DR_SIM_DISTURB_H

#include "sim/sim_random.h"

/* X(id, name, at rest, doc). */
#define DR__SIGNAL_MAP(X)                                                                                              \
    X(TENANT, "tenant", 0, "threads of others that want a CPU, as a share of the CPUs")                                \
    X(QUOTA, "quota", 1, "the container's CPUs, as a share of the CPUs; 1: the machine's own quota")                   \
    X(LINK, "link", 1, "share of the link's bandwidth that is left")                                                   \
    X(DISK, "disk", 1, "share of the storage's speed that is left")                                                    \
    X(REMOTE, "remote", 1, "share of the storage server's CPUs that is left")                                          \
    X(ACCEL, "accel", 1, "multiple of the time of a step: others use the accelerator")                                 \
    X(COST, "cost", 1, "multiple of the CPU time of samples")                                                          \
    X(STEP, "step", 1, "multiple of the time of a step: the model or its resolution changes")                          \
    X(MEMORY, "memory", 0.3, "share of the memory that others use")                                                    \
    X(PRICE, "price", 1, "multiple of the weight of host CPU")                                                         \
    X(ENERGY, "energy", 0, "weight of energy that is added")

typedef enum dr__signal_of {
#define DR__SIGNAL_ENUM(id, name, rest, doc) DR__SIGNAL_##id,
    DR__SIGNAL_MAP(DR__SIGNAL_ENUM)
#undef DR__SIGNAL_ENUM
        DR__N_SIGNALS
} dr__signal_of;

typedef enum dr__shape {
    DR__SHAPE_CONST,    /* high, always */
    DR__SHAPE_STEPS,    /* another level between low and high after each period */
    DR__SHAPE_PERIODIC, /* high for the duty's share of each period, else low; periods vary by 5 % */
    DR__SHAPE_BURSTS,   /* the same with exponential lengths: a Markov chain of two states */
    DR__SHAPE_RAMP,     /* from low to high over a period, then stays */
    DR__SHAPE_WALK,     /* a bounded random walk between low and high that goes the way in about a period */
} dr__shape;

/* A row of a scenario.  Levels and times are drawn between the two numbers. */
typedef struct dr__disturb_row {
    dr__signal_of signal;
    dr__shape shape;
    double low[2], high[2], period_s[2], duty[2];
} dr__disturb_row;

typedef struct dr__disturb {
    const dr__disturb_row *row; /* NULL: none */
    double low, high, period_s, duty;
    double begun_s, next_s; /* of the present phase: its begin and end */
    double value;
    int on;
} dr__disturb;

extern const char *const dr__signal_names[DR__N_SIGNALS];

void dr__disturb_draw(dr__disturb *d, const dr__disturb_row *row, dr__sim_rng *rng);

/* The value at a time; times never go back. */
double dr__disturb_at(dr__disturb *d, double time_s, dr__sim_rng *rng);

void dr__signals_rest(double now[DR__N_SIGNALS]);

#endif
