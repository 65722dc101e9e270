/* codec_kernel.h: the inner loops of the array codecs, a table apart from that of the images (kernel.h), so that the
 * compression library needs none of those.
 *
 * The C version is the definition; a faster one gives the same bits.  Kernels take any alignment, allocate nothing and
 * cannot fail.  Inputs and outputs do not overlap.  tests/checkkernel compares every pointer of every level with C.
 */
#ifndef DR_KERNEL_CODEC_KERNEL_H
#define DR_KERNEL_CODEC_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "kernel/kernel.h"

/* Values of one group of packed bits: 8 lanes of 32. */
enum { DR__PACK_GROUP = 256, DR__PACK_LANES = 8 };

typedef struct dr__codec_kernels {
    /* Byte j of element i goes to dst[j * n + i], and back: n elements of `size` bytes. */
    void (*shuffle)(uint8_t *dst, const uint8_t *src, size_t n, size_t size);
    void (*unshuffle)(uint8_t *dst, const uint8_t *src, size_t n, size_t size);

    /* Bit b of byte j of element i goes to bit i % 8 of dst[(j * 8 + b) * n / 8 + i / 8], and back; n is a multiple of
     * 8. */
    void (*bitshuffle)(uint8_t *dst, const uint8_t *src, size_t n, size_t size);
    void (*bitunshuffle)(uint8_t *dst, const uint8_t *src, size_t n, size_t size);

    /* Differences of n little-endian integers of `size` bytes (1, 2, 4, 8) to their predecessors, the first to 0,
     * modulo 2^bits; small ones of either sign become small numbers: 0, -1, 1, -2 ... are 0, 1, 2, 3.  And back. */
    void (*delta)(uint8_t *dst, const uint8_t *src, size_t n, size_t size);
    void (*undelta)(uint8_t *dst, const uint8_t *src, size_t n, size_t size);

    /* A group of 256 numbers below 2^width (0 <= width <= 32) to 8 * width little-endian words, and back, plus `base`
     * modulo 2^32: number i is in lane i % 8, and from bit (i / 8) * width on of the words of that lane, which are 8
     * words apart. */
    void (*pack)(uint8_t *dst, const uint32_t *src, unsigned width);
    void (*unpack)(uint32_t *dst, const uint8_t *src, unsigned width, uint32_t base);

    /* StreamVByte: n numbers of 1 to 4 bytes; `control` has their lengths less 1, two bits each.  Up to 16 bytes may be
     * read from any place before `end`, none behind it; the lengths were checked to end at `end`. */
    void (*svb_decode)(uint32_t *dst, const uint8_t *control, const uint8_t *data, const uint8_t *end, size_t n);

    /* XXH3 of 64 bits with a seed. */
    uint64_t (*hash)(const void *data, size_t size, uint64_t seed);
} dr__codec_kernels;

/* Fills `k` for a level: C first, then what the level replaces. */
void dr__codec_kernels_fill(dr__codec_kernels *k, dr__cpu_level level);

/* The kernels of this machine, chosen once. */
const dr__codec_kernels *dr__codec_kernels_best(void);

/* What each file offers to the table. */
void dr__shuffle_c(dr__codec_kernels *k);
void dr__bitshuffle_c(dr__codec_kernels *k);
void dr__delta_c(dr__codec_kernels *k);
void dr__bitpack_c(dr__codec_kernels *k);
void dr__svb_c(dr__codec_kernels *k);
void dr__hash_c(dr__codec_kernels *k);
void dr__shuffle_avx2(dr__codec_kernels *k);
void dr__bitshuffle_avx2(dr__codec_kernels *k);
void dr__delta_avx2(dr__codec_kernels *k);
void dr__bitpack_avx2(dr__codec_kernels *k);
void dr__svb_avx2(dr__codec_kernels *k);
void dr__hash_avx2(dr__codec_kernels *k);
void dr__hash_avx512(dr__codec_kernels *k);
void dr__shuffle_neon(dr__codec_kernels *k);
void dr__bitpack_neon(dr__codec_kernels *k);

/* The C versions that SIMD leaves tails and odd sizes to: elements first .. n - 1 of n. */
void dr__shuffle_part(uint8_t *dst, const uint8_t *src, size_t first, size_t n, size_t size);
void dr__unshuffle_part(uint8_t *dst, const uint8_t *src, size_t first, size_t n, size_t size);
void dr__bitshuffle_part(uint8_t *dst, const uint8_t *src, size_t first, size_t n, size_t size);
void dr__bitunshuffle_part(uint8_t *dst, const uint8_t *src, size_t first, size_t n, size_t size);
void dr__undelta_scalar(uint8_t *dst, const uint8_t *src, size_t n, size_t size);
void dr__delta_scalar(uint8_t *dst, const uint8_t *src, size_t n, size_t size);
void dr__svb_decode_scalar(uint32_t *dst, const uint8_t *control, const uint8_t *data, size_t first, size_t n);

#endif
