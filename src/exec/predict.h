/* predict.h: predicts the cost of a sample, and whether the sample is slow.
 *
 * Ops state their work in units before they run (dr_op_def.cost), from header facts and drawn parameters.  The
 * predictor learns the distribution of the units of this loader's samples, and how many nanoseconds a unit takes on
 * this machine. A sample is slow if it costs several times the median and runs long enough for parking to pay.
 *
 * A sample that was seen in an earlier pass also has a cost in the ledger (drapps/ledger.h).  Units reflect the random
 * draws of this pass; the ledger reflects what units cannot foresee.  The predictor tracks the errors of both and uses
 * the better one.
 *
 * All fields are atomic; no lock is needed.  After the first few hundred samples, one in eight is looked at.
 */
#ifndef DR_EXEC_PREDICT_H
#define DR_EXEC_PREDICT_H

#include <stdbool.h>

#include <drapps/ledger.h>

#include "exec/stats.h"

enum { DR__PAIRS = 256 };

typedef struct dr__predict {
    dr__histogram costs;                      /* units */
    atomic_uint_fast64_t slow_units;          /* threshold of slow samples; UINT64_MAX: not known yet */
    atomic_uint_fast64_t units, ns, slow_ns;  /* sums over samples, halved from time to time */
    atomic_uint_fast64_t n;                   /* samples looked at */
    atomic_uint_fast64_t pairs[DR__PAIRS];    /* units and nanoseconds of the last samples, a float each */
    uint64_t floor_ns;                        /* no shorter sample is slow */
    _Atomic double slow_factor;               /* multiple of the median cost that makes a sample slow */
    atomic_uint_fast64_t n_both;              /* samples with both units and a cost in the ledger */
    _Atomic double units_error, ledger_error; /* running means of |log(predicted / measured)| */
} dr__predict;

void dr__predict_init(dr__predict *p);

static inline bool dr__predict_is_slow(const dr__predict *p, double units)
{
    /* Relaxed: a stale threshold only changes which worker runs the sample. */
    return units > (double)atomic_load_explicit(&p->slow_units, memory_order_relaxed);
}

/* Sets slow_factor and updates the threshold. */
void dr__predict_set_slow_factor(dr__predict *p, double times);

/* Nanoseconds that a sample cost in earlier passes; 0: not known. */
static inline float dr__ledger_ns(const dr_ledger *ledger, uint64_t id)
{
    float ns = 0;
    if (ledger)
        dr_ledger_predict(ledger, &id, 1, &ns);
    return ns;
}

/* The predicted cost of a sample in units: by its ops, or by the ledger where that has been the better prediction.
 *
 * @param units      the cost that its ops state.
 * @param ledger_ns  the result of dr__ledger_ns. */
double dr__predict_cost(const dr__predict *p, double units, float ledger_ns);

/* Learns from a finished sample.
 *
 * @param place      its rank-local index, which decides whether the sample is looked at.
 * @param units      the cost that its ops stated.
 * @param ns         the time it took.
 * @param ledger_ns  the result of dr__ledger_ns before it ran. */
void dr__predict_learn(dr__predict *p, uint64_t place, double units, uint64_t ns, float ledger_ns);

/* The least time of a slow sample in nanoseconds; UINT64_MAX: not known yet. */
uint64_t dr__predict_slow_ns(const dr__predict *p);

/* The share of slow samples in the work, 0 .. 1. */
double dr__predict_slow_share(const dr__predict *p);

/* How well units predicted nanoseconds over the last samples: {"samples", "rank_correlation", "relative_error"}; the
 * latter two are null where nothing can be compared.  NULL: out of memory. */
json_t *dr__predict_json(const dr__predict *p);

/* Spearman's rank correlation of n pairs; equal values share their mean rank.  NAN: one side is constant. */
double dr__rank_correlation(const float *a, const float *b, int n);

#endif
