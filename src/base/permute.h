/* permute.h: a keyed permutation of 0 .. n-1 in O(1) memory: the shuffled order of an epoch. */
#ifndef DR_BASE_PERMUTE_H
#define DR_BASE_PERMUTE_H

#include <stdint.h>

/* Where i (< n) goes.  For each key a bijection of [0, n); different keys give unrelated ones. */
uint64_t dr__permute(uint64_t n, uint64_t key, uint64_t i);

/* Back again: dr__permute_inverse(n, key, dr__permute(n, key, i)) is i. */
uint64_t dr__permute_inverse(uint64_t n, uint64_t key, uint64_t i);

/* A key from a seed and two more numbers (epoch, source). */
uint64_t dr__permute_key(uint64_t seed, uint64_t a, uint64_t b);

#endif
