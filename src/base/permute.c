/* permute.c: a Feistel network over the smallest even number of bits that holds n, walked until the value is below n.
 *
 * The network is a bijection of [0, 4^h) with 4^h < 4n, so the walk takes under four steps on average and always
 * ends.  Philox is the round function: eight rounds of it are far more than a shuffle needs.
 */
#include "base/permute.h"

#include "base/rng.h"

enum { ROUNDS = 8 };

static uint64_t mix(uint64_t half, uint32_t round, unsigned half_bits, const uint32_t key[2])
{
    uint32_t counter[4] = { (uint32_t)half, round, half_bits, 0x5045524Du }, block[4];
    dr__philox(key, counter, block);
    return block[0] & (((uint64_t)1 << half_bits) - 1);
}

static uint64_t feistel(uint64_t x, unsigned half_bits, const uint32_t key[2])
{
    uint64_t left = x >> half_bits, right = x & (((uint64_t)1 << half_bits) - 1);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint64_t next = left ^ mix(right, round, half_bits, key);
        left = right;
        right = next;
    }
    return left << half_bits | right;
}

static uint64_t feistel_inverse(uint64_t x, unsigned half_bits, const uint32_t key[2])
{
    uint64_t left = x >> half_bits, right = x & (((uint64_t)1 << half_bits) - 1);
    for (uint32_t round = ROUNDS; round-- > 0;) {
        uint64_t before = right ^ mix(left, round, half_bits, key);
        right = left;
        left = before;
    }
    return left << half_bits | right;
}

static unsigned half_bits_of(uint64_t n)
{
    unsigned half_bits = 1;
    while (half_bits < 32 && ((uint64_t)1 << (2 * half_bits)) < n)
        half_bits++;
    return half_bits;
}

uint64_t dr__permute(uint64_t n, uint64_t key, uint64_t i)
{
    const uint32_t k[2] = { (uint32_t)key, (uint32_t)(key >> 32) };
    unsigned half_bits = half_bits_of(n);
    do
        i = feistel(i, half_bits, k);
    while (i >= n);
    return i;
}

uint64_t dr__permute_inverse(uint64_t n, uint64_t key, uint64_t i)
{
    const uint32_t k[2] = { (uint32_t)key, (uint32_t)(key >> 32) };
    unsigned half_bits = half_bits_of(n);
    do
        i = feistel_inverse(i, half_bits, k);
    while (i >= n);
    return i;
}

uint64_t dr__permute_key(uint64_t seed, uint64_t a, uint64_t b)
{
    dr__rng_name name = { .seed = seed, .epoch = a, .sample = b };
    dr_rng rng = dr__rng_open(&name, 0x4F524452u);
    return (uint64_t)dr__rng_u32(&rng) << 32 | dr__rng_u32(&rng);
}
