/* rng.h: counter-based randomness (Philox4x32-10).
 *
 * A stream is named by (seed, epoch, sample id, occurrence, op id) and nothing else: not by thread, worker, order of
 * execution or machine.  Two streams with different names are independent; the same name gives the same numbers
 * everywhere.
 */
#ifndef DR_BASE_RNG_H
#define DR_BASE_RNG_H

#include <stdint.h>

typedef struct dr_rng {
    uint32_t key[2];
    uint32_t counter[4];
    uint32_t block[4];
    unsigned used; /* words of block already handed out; 4: make a new one */
} dr_rng;

/* What a sample's random numbers depend on, apart from the op. */
typedef struct dr__rng_name {
    uint64_t seed;
    uint64_t epoch;
    uint64_t sample;
    uint32_t occurrence; /* 0 for the first time a sample stands in an epoch */
} dr__rng_name;

dr_rng dr__rng_open(const dr__rng_name *name, uint32_t op_id);

/* A stream of its own below an open one, for the ops nested in another (random_apply). */
dr_rng dr__rng_child(const dr_rng *rng, uint32_t index);

uint32_t dr__rng_u32(dr_rng *rng);
double dr__rng_unit(dr_rng *rng);                          /* [0, 1), 53 bits */
double dr__rng_uniform(dr_rng *rng, double lo, double hi); /* [lo, hi) */
uint64_t dr__rng_below(dr_rng *rng, uint64_t n);           /* [0, n), unbiased; n > 0 */
double dr__rng_normal(dr_rng *rng);                        /* mean 0, deviation 1 */
double dr__rng_gamma(dr_rng *rng, double shape);           /* scale 1, shape > 0 */
double dr__rng_beta(dr_rng *rng, double a, double b);

/* One Philox4x32-10 block: the building stone, public for tests against the published vectors. */
void dr__philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4]);

#endif
