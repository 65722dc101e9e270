/* predict.h: what a sample will cost, and whether that makes it slow.
 *
 * Ops state their work in units before they run (dr_op_def.cost), from header facts and drawn parameters.  What is
 * learnt here is how the units of this loader's samples are distributed, and how many nanoseconds a unit takes on this
 * machine.  A sample is slow when it costs several times the median, and long enough for parking it to pay.
 *
 * Everything is atomic; no lock is needed.  After some hundred samples only one in eight is looked at.
 */
#ifndef DR_EXEC_PREDICT_H
#define DR_EXEC_PREDICT_H

#include <stdbool.h>

#include "exec/stats.h"

enum { DR__PAIRS = 256 };

typedef struct dr__predict {
    dr__histogram costs;                     /* units */
    atomic_uint_fast64_t slow_units;         /* a sample above it is slow; UINT64_MAX: not known yet */
    atomic_uint_fast64_t units, ns, slow_ns; /* sums over the last samples; older ones fade */
    atomic_uint_fast64_t n;                  /* samples looked at */
    atomic_uint_fast64_t pairs[DR__PAIRS];   /* the last of them: units and nanoseconds, a float each */
    uint64_t floor_ns;                       /* nothing shorter is slow */
    _Atomic double slow_times;               /* the median is slow */
} dr__predict;

void dr__predict_init(dr__predict *p);

static inline bool dr__predict_is_slow(const dr__predict *p, double units)
{
    /* A value that is a little old decides only who runs it. */
    return units > (double)atomic_load_explicit(&p->slow_units, memory_order_relaxed);
}

/* How many times the median cost is slow; what is known so far counts at once. */
void dr__predict_set_times(dr__predict *p, double times);

/* A sample took `ns`; `place` is its own number, by which some are chosen to be looked at. */
void dr__predict_learn(dr__predict *p, uint64_t place, double units, uint64_t ns);

/* Nanoseconds that a slow sample takes at least; UINT64_MAX: not known yet. */
uint64_t dr__predict_slow_ns(const dr__predict *p);

/* The part of the work that slow samples are, 0 .. 1. */
double dr__predict_slow_share(const dr__predict *p);

/* How well units foretold nanoseconds: {"samples", "rank_correlation", "relative_error"} over the last ones; the
 * latter two are null where there is nothing to compare.  NULL: out of memory. */
json_t *dr__predict_json(const dr__predict *p);

/* Spearman's rank correlation of n pairs, equal values sharing their mean rank; NAN: one side is constant. */
double dr__rank_correlation(const float *a, const float *b, int n);

#endif
