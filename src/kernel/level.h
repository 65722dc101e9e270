/* level.h: the functions of each kernel file, for the table in kernel.c. */
#ifndef DR_KERNEL_LEVEL_H
#define DR_KERNEL_LEVEL_H

#include "kernel/kernel.h"

/* The C reference: each sets the pointers of its file. */
void dr__hflip_c(dr__kernels *k);
void dr__resample_c(dr__kernels *k);
void dr__lut_c(dr__kernels *k);
void dr__blend_c(dr__kernels *k);
void dr__gray_c(dr__kernels *k);
void dr__idct_c(dr__kernels *k);
void dr__upsample_c(dr__kernels *k);
void dr__ycc_c(dr__kernels *k);

/* Fallbacks of SIMD versions for coefficients beyond their range and for short rows. */
void dr__idct_8x8_c(uint8_t *dst, ptrdiff_t stride, const int16_t *coef, const int16_t *quant, int n);
void dr__resample_v_c(uint8_t *dst, const uint8_t *const *rows, const dr__taps *taps, size_t y, size_t bytes);

/* AVX2: the same, where the instructions help. */
void dr__hflip_avx2(dr__kernels *k);
void dr__resample_avx2(dr__kernels *k);
void dr__lut_avx2(dr__kernels *k);
void dr__blend_avx2(dr__kernels *k);
void dr__gray_avx2(dr__kernels *k);
void dr__idct_avx2(dr__kernels *k);
void dr__upsample_avx2(dr__kernels *k);
void dr__ycc_avx2(dr__kernels *k);

/* AVX-512 (see kernel.h) on top of AVX2, and its fallbacks. */
void dr__resample_avx512(dr__kernels *k);
void dr__lut_avx512(dr__kernels *k);
void dr__idct_avx512(dr__kernels *k);
void dr__upsample_avx512(dr__kernels *k);
void dr__ycc_avx512(dr__kernels *k);
void dr__idct_8x8_avx2(uint8_t *dst, ptrdiff_t stride, const int16_t *coef, const int16_t *quant, int n);
void dr__resample_h_avx2(uint8_t *const *dst, const uint8_t *const *src, int n_rows, int channels,
                         const dr__taps *taps);

/* NEON of 64-bit ARM. */
void dr__resample_neon(dr__kernels *k);
void dr__lut_neon(dr__kernels *k);
void dr__gray_neon(dr__kernels *k);
void dr__idct_neon(dr__kernels *k);
void dr__upsample_neon(dr__kernels *k);
void dr__ycc_neon(dr__kernels *k);

#endif
