/* hash_avx512.c: XXH3 by the inline functions of xxhash.h, which take the instructions that this file is compiled for.
 */
#include "kernel/codec_kernel.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

static uint64_t hash(const void *data, size_t size, uint64_t seed)
{
    return XXH3_64bits_withSeed(data, size, seed);
}

void dr__hash_avx512(dr__codec_kernels *k)
{
    k->hash = hash;
}
