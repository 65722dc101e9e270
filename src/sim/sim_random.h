/* sim_random.h: a small generator for simulations: xoshiro256+ seeded by splitmix64.
 *
 * Not Philox (base/rng.h): a simulation draws in the order of its events, some numbers a tick, and needs no names.
 */
#ifndef DR_SIM_RANDOM_H
#define DR_SIM_RANDOM_H

#include <math.h>
#include <stdint.h>

typedef struct dr__sim_rng {
    uint64_t s[4];
} dr__sim_rng;

static inline void dr__sim_seed(dr__sim_rng *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        uint64_t z = (seed += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        r->s[i] = z ^ (z >> 31);
    }
}

static inline double dr__sim_unit(dr__sim_rng *r) /* [0, 1) */
{
    uint64_t *s = r->s, out = s[0] + s[3], t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = s[3] << 45 | s[3] >> 19;
    return (double)(out >> 11) * 0x1p-53;
}

static inline double dr__sim_between(dr__sim_rng *r, double low, double high)
{
    return low + (high - low) * dr__sim_unit(r);
}

/* Uniform on a logarithmic scale; low > 0. */
static inline double dr__sim_log_between(dr__sim_rng *r, double low, double high)
{
    return low * pow(high / low, dr__sim_unit(r));
}

static inline double dr__sim_exponential(dr__sim_rng *r)
{
    return -log(1 - dr__sim_unit(r));
}

static inline double dr__sim_normal(dr__sim_rng *r)
{
    const double u = dr__sim_exponential(r), angle = 6.283185307179586 * dr__sim_unit(r);
    return sqrt(2 * u) * cos(angle);
}

/* Lognormal with mean 1. */
static inline double dr__sim_lognormal(dr__sim_rng *r, double cv)
{
    const double v = log(1 + cv * cv);
    return cv > 0 ? exp(sqrt(v) * dr__sim_normal(r) - v / 2) : 1;
}

#endif
