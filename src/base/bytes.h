/* bytes.h: numbers and zeros in memory. */
#ifndef DR_BASE_BYTES_H
#define DR_BASE_BYTES_H

#include <stdint.h>

#include "base/compiler.h"

/* Eight bytes at any address, the first one on top; compilers make one load of it. */
static inline uint64_t dr__load_be64(const uint8_t *p)
{
    return (uint64_t)p[0] << 56 | (uint64_t)p[1] << 48 | (uint64_t)p[2] << 40 | (uint64_t)p[3] << 32 |
           (uint64_t)p[4] << 24 | (uint64_t)p[5] << 16 | (uint64_t)p[6] << 8 | (uint64_t)p[7];
}

/* Zeros to 128 bytes that are aligned to 32. */
DR_INLINE void dr__clear_128(void *p)
{
    dr__words *words = p;
    for (unsigned i = 0; i < 128 / sizeof *words; i++)
        words[i] = (dr__words){ 0 };
}

#endif
