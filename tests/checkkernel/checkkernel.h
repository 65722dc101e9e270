/* checkkernel.h: what a kernel check is written with: random numbers, guarded memory, comparison. */
#ifndef DR_TESTS_CHECKKERNEL_H
#define DR_TESTS_CHECKKERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "kernel/codec_kernel.h"
#include "kernel/kernel.h"

/* A check, called once for each level above C that this CPU has: compares `simd` with `ref`. */
#define CHECK_KERNEL(kernel) void check_##kernel(const dr__kernels *ref, const dr__kernels *simd)

CHECK_KERNEL(hflip_row);
CHECK_KERNEL(resample_h);
CHECK_KERNEL(resample_v);
CHECK_KERNEL(lut_planar_f32);
CHECK_KERNEL(lut_packed_f32);
CHECK_KERNEL(lut_planar_u16);
CHECK_KERNEL(lut_packed_u16);
CHECK_KERNEL(lut_planar_u8);
CHECK_KERNEL(lut_u8);
CHECK_KERNEL(blend_u8);
CHECK_KERNEL(rgb_to_l);
CHECK_KERNEL(idct_8x8);
CHECK_KERNEL(upsample_h2);
CHECK_KERNEL(upsample_h2v2);
CHECK_KERNEL(upsample_v2);
CHECK_KERNEL(ycc_to_rgb);

/* The same for the kernels of the array codecs. */
#define CHECK_CODEC_KERNEL(kernel) void check_##kernel(const dr__codec_kernels *ref, const dr__codec_kernels *simd)

CHECK_CODEC_KERNEL(shuffle);
CHECK_CODEC_KERNEL(unshuffle);
CHECK_CODEC_KERNEL(bitshuffle);
CHECK_CODEC_KERNEL(bitunshuffle);
CHECK_CODEC_KERNEL(delta);
CHECK_CODEC_KERNEL(undelta);
CHECK_CODEC_KERNEL(pack);
CHECK_CODEC_KERNEL(unpack);
CHECK_CODEC_KERNEL(svb_decode);
CHECK_CODEC_KERNEL(hash);

/* Bytes between guard bytes, in a ring of blocks that is reused: at most GUARDED_LIVE are alive at once. */
enum { GUARDED_LIVE = 16, GUARD = 64 };

struct guarded {
    uint8_t *p;
    size_t size;
};

struct guarded guarded_random(size_t size);
struct guarded guarded_blank(size_t size);

/* Fails when the bytes or the guards of `got` differ from `want`'s; the text says for which case. */
void expect_same(const struct guarded *got, const struct guarded *want, const char *format, ...) DR_PRINTF(3, 4);

uint32_t rnd(void);
size_t rnd_below(size_t n);

/* 0, 1 and small sizes often, else below n. */
size_t rnd_size(size_t n);

#endif
