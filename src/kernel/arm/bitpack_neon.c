/* bitpack_neon.c: groups of 256 numbers, the eight lanes as two vectors.  Shifts by 32 and more give 0. */
#include "kernel/codec_kernel.h"

#include <arm_neon.h>

enum { ROWS = DR__PACK_GROUP / DR__PACK_LANES };

static void unpack(uint32_t *dst, const uint8_t *src, unsigned width, uint32_t base)
{
    const uint32x4_t mask = vdupq_n_u32(width ? UINT32_MAX >> (32 - width) : 0), add = vdupq_n_u32(base);
    for (unsigned half = 0; half < 2; half++) {
        uint32x4_t word = vdupq_n_u32(0);
        unsigned shift = 32, read = 0;
        for (unsigned i = 0; i < ROWS; i++) {
            uint32x4_t x = vshlq_u32(word, vdupq_n_s32(-(int)shift));
            if (shift + width > 32) {
                word = vreinterpretq_u32_u8(vld1q_u8(src + read++ * 32 + half * 16));
                x = vorrq_u32(x, vshlq_u32(word, vdupq_n_s32((int)(32 - shift))));
                shift -= 32;
            }
            shift += width;
            vst1q_u32(dst + i * DR__PACK_LANES + half * 4, vaddq_u32(vandq_u32(x, mask), add));
        }
    }
}

void dr__bitpack_neon(dr__codec_kernels *k)
{
    k->unpack = unpack;
}
