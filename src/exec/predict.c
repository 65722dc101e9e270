/* predict.c: learns how predicted costs relate to times, and which samples are slow. */
#include "exec/predict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

enum {
    SLOW_FACTOR = 4,        /* default of slow_factor */
    FLOOR_NS = 200000,      /* no shorter sample is slow */
    MIN_SAMPLES = 32,       /* before any sample is slow, and between updates of the threshold */
    SAMPLE_ALL_BELOW = 256, /* the first samples are all looked at, later ones 1 in 8 */
    FADE_AFTER = 1024,      /* samples after which the sums are halved */
};

static const double CLEARLY_BETTER = 0.8; /* the ledger is used if its error is below this part of the units' error */
static const double ERROR_WEIGHT = 1.0 / 64; /* of a new error in the running mean */

void dr__predict_init(dr__predict *p)
{
    memset(p, 0, sizeof *p);
    atomic_init(&p->slow_units, UINT64_MAX);
    p->floor_ns = FLOOR_NS;
    atomic_init(&p->slow_factor, SLOW_FACTOR);
}

static double ns_of_unit(const dr__predict *p)
{
    const uint64_t units = atomic_load(&p->units), ns = atomic_load(&p->ns);
    return units ? (double)ns / (double)units : 0;
}

static void set_threshold(dr__predict *p)
{
    const double ratio = ns_of_unit(p);
    if (ratio <= 0)
        return; /* the ops state no costs */
    const double floor_units = (double)p->floor_ns / ratio;
    const double units = atomic_load(&p->slow_factor) * (double)dr__histogram_quantile(&p->costs, 0.5);
    atomic_store(&p->slow_units, (uint64_t)DR_MIN(DR_MAX(units, floor_units), 1e18));
}

void dr__predict_set_slow_factor(dr__predict *p, double times)
{
    atomic_store(&p->slow_factor, times);
    if (atomic_load(&p->n) >= MIN_SAMPLES)
        set_threshold(p);
}

/* Additions by other threads may be lost; the sums are estimates. */
static void fade(atomic_uint_fast64_t *sum)
{
    atomic_store(sum, atomic_load(sum) / 2);
}

static uint64_t pack(float units, float ns)
{
    uint32_t a, b;
    memcpy(&a, &units, sizeof a);
    memcpy(&b, &ns, sizeof b);
    return (uint64_t)a << 32 | b;
}

static void unpack(uint64_t pair, float *units, float *ns)
{
    const uint32_t a = (uint32_t)(pair >> 32), b = (uint32_t)pair;
    memcpy(units, &a, sizeof a);
    memcpy(ns, &b, sizeof b);
}

double dr__predict_cost(const dr__predict *p, double units, float ledger_ns)
{
    if (!(ledger_ns > 0) || atomic_load_explicit(&p->n_both, memory_order_relaxed) < MIN_SAMPLES)
        return units;
    const double ratio = ns_of_unit(p);
    const bool better = atomic_load(&p->ledger_error) < CLEARLY_BETTER * atomic_load(&p->units_error);
    return better && ratio > 0 ? ledger_ns / ratio : units;
}

static void update_mean(_Atomic double *mean, double now)
{
    atomic_store(mean, atomic_load(mean) + (now - atomic_load(mean)) * ERROR_WEIGHT);
}

/* Updates the errors of both predictions. */
static void compare(dr__predict *p, double units, uint64_t ns, float ledger_ns)
{
    const double ratio = ns_of_unit(p);
    if (!(ledger_ns > 0) || !(units > 0) || !(ratio > 0) || !ns)
        return;
    atomic_fetch_add(&p->n_both, 1);
    update_mean(&p->units_error, fabs(log(units * ratio / (double)ns)));
    update_mean(&p->ledger_error, fabs(log(ledger_ns / (double)ns)));
}

void dr__predict_learn(dr__predict *p, uint64_t place, double units, uint64_t ns, float ledger_ns)
{
    if (atomic_load_explicit(&p->n, memory_order_relaxed) >= SAMPLE_ALL_BELOW && place * 0x9E3779B97F4A7C15u >> 61)
        return;
    const uint64_t n = atomic_fetch_add(&p->n, 1), whole = (uint64_t)DR_MIN(units, 1e15);
    dr__histogram_add(&p->costs, whole);
    compare(p, units, ns, ledger_ns);
    atomic_fetch_add(&p->units, whole);
    atomic_fetch_add(&p->ns, ns);
    if (dr__predict_is_slow(p, units))
        atomic_fetch_add(&p->slow_ns, ns);
    atomic_store(&p->pairs[n % DR__PAIRS], pack((float)units, (float)ns));
    if (n % FADE_AFTER == FADE_AFTER - 1) {
        fade(&p->units);
        fade(&p->ns);
        fade(&p->slow_ns);
        dr__histogram_fade(&p->costs);
    }
    if (n % MIN_SAMPLES == MIN_SAMPLES - 1)
        set_threshold(p);
}

uint64_t dr__predict_slow_ns(const dr__predict *p)
{
    const uint64_t units = atomic_load(&p->slow_units);
    return units == UINT64_MAX ? UINT64_MAX : (uint64_t)((double)units * ns_of_unit(p));
}

double dr__predict_slow_share(const dr__predict *p)
{
    const uint64_t all = atomic_load(&p->ns), slow = atomic_load(&p->slow_ns);
    return all ? DR_MIN((double)slow / (double)all, 1.0) : 0;
}

/* --- quality of the prediction --- */

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Twice the rank of x among n sorted values, from 0; equal values share their mean rank. */
static double twice_rank(const float *sorted, int n, float x)
{
    int below = 0, upto = 0;
    for (int i = 0; i < n; i++) {
        below += sorted[i] < x;
        upto += sorted[i] <= x;
    }
    return below + upto - 1;
}

double dr__rank_correlation(const float *a, const float *b, int n)
{
    float sorted_a[DR__PAIRS], sorted_b[DR__PAIRS];
    double aa = 0, bb = 0, ab = 0;
    memcpy(sorted_a, a, (size_t)n * sizeof *a);
    memcpy(sorted_b, b, (size_t)n * sizeof *b);
    qsort(sorted_a, (size_t)n, sizeof *a, by_value);
    qsort(sorted_b, (size_t)n, sizeof *b, by_value);
    for (int i = 0; i < n; i++) {
        const double x = twice_rank(sorted_a, n, a[i]) - (n - 1), y = twice_rank(sorted_b, n, b[i]) - (n - 1);
        aa += x * x;
        bb += y * y;
        ab += x * y;
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : NAN;
}

static json_t *number_or_null(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

json_t *dr__predict_json(const dr__predict *p)
{
    float units[DR__PAIRS], ns[DR__PAIRS];
    const int n = (int)DR_MIN(atomic_load(&p->n), (uint64_t)DR__PAIRS);
    const double ratio = ns_of_unit(p);
    double error = 0;
    for (int i = 0; i < n; i++) {
        unpack(atomic_load(&p->pairs[i]), &units[i], &ns[i]);
        error += fabs(units[i] * ratio - ns[i]) / DR_MAX(ns[i], 1.0);
    }
    return json_pack("{s:i, s:o, s:o}", "samples", n, "rank_correlation",
                     number_or_null(n ? dr__rank_correlation(units, ns, n) : NAN), "relative_error",
                     number_or_null(n && ratio > 0 ? error / n : NAN));
}
