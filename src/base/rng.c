/* rng.c: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011).
 *
 * A name has more bits than one Philox counter, so it is folded in two steps: seed as key and (epoch, sample) as
 * counter give a block, whose first half becomes the key of the stream; occurrence and op id stand in the stream's
 * counter beside the running block number.
 */
#include "base/rng.h"

#include <math.h>

#include "base/fmath.h"

static uint32_t mulhi(uint32_t a, uint32_t b)
{
    return (uint32_t)(((uint64_t)a * b) >> 32);
}

void dr__philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4])
{
    uint32_t k0 = key[0], k1 = key[1];
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    for (int round = 0; round < 10; round++) {
        uint32_t hi0 = mulhi(0xD2511F53u, c0), lo0 = 0xD2511F53u * c0;
        uint32_t hi1 = mulhi(0xCD9E8D57u, c2), lo1 = 0xCD9E8D57u * c2;
        c0 = hi1 ^ c1 ^ k0;
        c1 = lo1;
        c2 = hi0 ^ c3 ^ k1;
        c3 = lo0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

static void halves(uint64_t v, uint32_t out[2])
{
    out[0] = (uint32_t)v;
    out[1] = (uint32_t)(v >> 32);
}

dr_rng dr__rng_open(const dr__rng_name *name, uint32_t op_id)
{
    uint32_t seed[2], counter[4], folded[4];
    halves(name->seed, seed);
    halves(name->sample, counter);
    halves(name->epoch, counter + 2);
    dr__philox(seed, counter, folded);
    return (dr_rng){
        .key = { folded[0], folded[1] },
        .counter = { 0, op_id, name->occurrence, folded[2] },
        .used = 4,
    };
}

dr_rng dr__rng_child(const dr_rng *rng, uint32_t index)
{
    /* The top bit of the block number is never reached by draws, so that a child's key block is its parent's alone. */
    uint32_t counter[4] = { 0x80000000u | index, rng->counter[1], rng->counter[2], rng->counter[3] };
    uint32_t folded[4];
    dr__philox(rng->key, counter, folded);
    return (dr_rng){
        .key = { folded[0], folded[1] },
        .counter = { 0, rng->counter[1], rng->counter[2], folded[2] },
        .used = 4,
    };
}

uint32_t dr__rng_u32(dr_rng *rng)
{
    if (rng->used == 4) {
        dr__philox(rng->key, rng->counter, rng->block);
        rng->counter[0]++;
        rng->used = 0;
    }
    return rng->block[rng->used++];
}

double dr__rng_unit(dr_rng *rng)
{
    uint64_t hi = dr__rng_u32(rng) >> 5, lo = dr__rng_u32(rng) >> 6;
    return (double)(hi << 26 | lo) * (1.0 / 9007199254740992.0);
}

double dr__rng_uniform(dr_rng *rng, double lo, double hi)
{
    return lo + (hi - lo) * dr__rng_unit(rng);
}

uint64_t dr__rng_below(dr_rng *rng, uint64_t n)
{
    /* Rejection keeps it unbiased; the loop ends after one round but for one time in 2^64 / n. */
    uint64_t limit = UINT64_MAX - UINT64_MAX % n;
    uint64_t v;
    do {
        v = (uint64_t)dr__rng_u32(rng) << 32;
        v |= dr__rng_u32(rng);
    } while (v >= limit);
    return v % n;
}

double dr__rng_normal(dr_rng *rng)
{
    /* Box-Muller; 1 - u lies in (0, 1]. */
    double r = sqrt(-2.0 * dr__log(1.0 - dr__rng_unit(rng)));
    return r * dr__cos(2.0 * DR_PI * dr__rng_unit(rng));
}

double dr__rng_gamma(dr_rng *rng, double shape)
{
    /* Marsaglia and Tsang 2000; shapes below 1 are lifted by one and scaled back. */
    if (shape < 1.0) {
        double u = 1.0 - dr__rng_unit(rng);
        return dr__rng_gamma(rng, shape + 1.0) * dr__pow(u, 1.0 / shape);
    }
    double d = shape - 1.0 / 3.0, c = 1.0 / sqrt(9.0 * d);
    for (;;) {
        double x = dr__rng_normal(rng), v = 1.0 + c * x;
        if (v <= 0.0)
            continue;
        v = v * v * v;
        double u = 1.0 - dr__rng_unit(rng);
        if (dr__log(u) < 0.5 * x * x + d - d * v + d * dr__log(v))
            return d * v;
    }
}

double dr__rng_beta(dr_rng *rng, double a, double b)
{
    double x = dr__rng_gamma(rng, a), y = dr__rng_gamma(rng, b);
    return x + y > 0.0 ? x / (x + y) : 0.5;
}
