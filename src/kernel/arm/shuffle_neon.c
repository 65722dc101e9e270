/* shuffle_neon.c: byte planes of elements of 2 and 4 bytes by the loads and stores that take planes apart. */
#include "kernel/codec_kernel.h"

#include <arm_neon.h>

static void shuffle(uint8_t *dst, const uint8_t *src, size_t n, size_t size)
{
    size_t i = 0;
    for (; size == 2 && i + 16 <= n; i += 16) {
        const uint8x16x2_t x = vld2q_u8(src + i * 2);
        vst1q_u8(dst + i, x.val[0]);
        vst1q_u8(dst + n + i, x.val[1]);
    }
    for (; size == 4 && i + 16 <= n; i += 16) {
        const uint8x16x4_t x = vld4q_u8(src + i * 4);
        for (size_t k = 0; k < 4; k++)
            vst1q_u8(dst + k * n + i, x.val[k]);
    }
    dr__shuffle_part(dst, src, i, n, size);
}

static void unshuffle(uint8_t *dst, const uint8_t *src, size_t n, size_t size)
{
    size_t i = 0;
    for (; size == 2 && i + 16 <= n; i += 16) {
        const uint8x16x2_t x = { { vld1q_u8(src + i), vld1q_u8(src + n + i) } };
        vst2q_u8(dst + i * 2, x);
    }
    for (; size == 4 && i + 16 <= n; i += 16) {
        const uint8x16x4_t x = { { vld1q_u8(src + i), vld1q_u8(src + n + i), vld1q_u8(src + 2 * n + i),
                                   vld1q_u8(src + 3 * n + i) } };
        vst4q_u8(dst + i * 4, x);
    }
    dr__unshuffle_part(dst, src, i, n, size);
}

void dr__shuffle_neon(dr__codec_kernels *k)
{
    k->shuffle = shuffle;
    k->unshuffle = unshuffle;
}
