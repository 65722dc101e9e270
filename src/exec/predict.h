/* predict.h: what a sample will cost, and whether that makes it slow.
 *
 * Ops state their work in units before they run (dr_op_def.cost), from header facts and drawn parameters.  What is
 * learnt here is how the units of this loader's samples are distributed, and how many nanoseconds a unit takes on this
 * machine.  A sample is slow when it costs several times the median, and long enough for parking it to pay.
 *
 * A sample that was seen in an earlier pass has a remembered cost, too (drapps/ledger.h).  Which of the two counts is
 * learnt: units know this pass's random draws, the ledger knows what units do not foresee.
 *
 * Everything is atomic; no lock is needed.  After some hundred samples only one in eight is looked at.
 */
#ifndef DR_EXEC_PREDICT_H
#define DR_EXEC_PREDICT_H

#include <stdbool.h>

#include <drapps/ledger.h>

#include "exec/stats.h"

enum { DR__PAIRS = 256 };

typedef struct dr__predict {
    dr__histogram costs;                      /* units */
    atomic_uint_fast64_t slow_units;          /* a sample above it is slow; UINT64_MAX: not known yet */
    atomic_uint_fast64_t units, ns, slow_ns;  /* sums over the last samples; older ones fade */
    atomic_uint_fast64_t n;                   /* samples looked at */
    atomic_uint_fast64_t pairs[DR__PAIRS];    /* the last of them: units and nanoseconds, a float each */
    uint64_t floor_ns;                        /* nothing shorter is slow */
    _Atomic double slow_times;                /* the median is slow */
    atomic_uint_fast64_t n_both;              /* samples looked at that had units and a remembered cost */
    _Atomic double units_error, ledger_error; /* how far these were off, as logarithms; means that fade */
} dr__predict;

void dr__predict_init(dr__predict *p);

static inline bool dr__predict_is_slow(const dr__predict *p, double units)
{
    /* A value that is a little old decides only who runs it. */
    return units > (double)atomic_load_explicit(&p->slow_units, memory_order_relaxed);
}

/* How many times the median cost is slow; what is known so far counts at once. */
void dr__predict_set_times(dr__predict *p, double times);

/* Nanoseconds that a sample cost in earlier passes; 0: not known. */
static inline float dr__ledger_ns(const dr_ledger *ledger, uint64_t id)
{
    float ns = 0;
    if (ledger)
        dr_ledger_predict(ledger, &id, 1, &ns);
    return ns;
}

/* What a sample will cost, in units: by its ops, or by what it cost before where that has been the better prediction.
 * known_ns: dr__ledger_ns. */
double dr__predict_cost(const dr__predict *p, double units, float known_ns);

/* A sample took `ns`; `place` is its own number, by which some are chosen to be looked at.  known_ns: what the ledger
 * said before. */
void dr__predict_learn(dr__predict *p, uint64_t place, double units, uint64_t ns, float known_ns);

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
