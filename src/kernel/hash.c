/* hash.c: XXH3 of 64 bits, by the library that is installed, which is mostly built for the oldest CPUs. */
#include "kernel/codec_kernel.h"

#include <xxhash.h>

static uint64_t hash(const void *data, size_t size, uint64_t seed)
{
    return XXH3_64bits_withSeed(data, size, seed);
}

void dr__hash_c(dr__codec_kernels *k)
{
    k->hash = hash;
}
