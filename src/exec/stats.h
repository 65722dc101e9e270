/* stats.h: counters and times of a loader.  Every counter is atomic and only grows. */
#ifndef DR_EXEC_STATS_H
#define DR_EXEC_STATS_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdint.h>

#include <drapps/sched.h>

enum { DR__HISTOGRAM = 40 * 8 };

/* Times in eight bins per octave: quantiles are exact to 1/8, and never too low. */
typedef struct dr__histogram {
    atomic_uint_fast64_t n[DR__HISTOGRAM];
    atomic_uint_fast64_t count, sum_ns, max_ns;
} dr__histogram;

typedef struct dr__stats {
    atomic_uint_fast64_t samples, batches, epochs, bad_samples, bytes_read;
    atomic_uint_fast64_t read_ns, work_ns; /* summed over workers */
    dr__histogram wait;                    /* of consumers, per batch */
    dr__histogram batch;                   /* from the first claim of a batch to its end */
    atomic_uint_fast64_t delivered;        /* samples in batches that consumers took */
    atomic_uint_fast64_t finish_ns;        /* finishing batches, once their samples are complete */
    atomic_uint_fast64_t slow_ns;          /* of work_ns: samples of the slow lane */
    atomic_uint_fast64_t cache_hits, cache_misses;
    _Atomic double codec[5];     /* of the sample that was kept last: number, v, rho, compat, U; all 0: none was */
    atomic_uint_fast64_t cpu_ns; /* CPU time of the threads that worked for it */
} dr__stats;

void dr__histogram_add(dr__histogram *h, uint64_t ns);

/* Halves the counts, so that new values weigh more.  Values that other threads add meanwhile may be lost. */
void dr__histogram_fade(dr__histogram *h);

/* The quantile q of all values, exact to 1/8 and never too low. */
uint64_t dr__histogram_quantile(const dr__histogram *h, double q);

/* Adds the histogram to a spread (drapps/sched.h), which has been zeroed. */
void dr__histogram_spread(const dr__histogram *h, dr_spread *out);

/* {"count", "mean_ns", "p50_ns", "p95_ns", "p99_ns", "max_ns"}; NULL: out of memory. */
json_t *dr__histogram_json(const dr__histogram *h);

#endif
