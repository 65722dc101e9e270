/* kernel.h: the inner loops.
 *
 * The C version is the definition; a faster one replaces its pointer where the CPU has the instructions, and gives
 * the same bits.  Kernels take pointers, strides and sizes, allocate nothing and cannot fail.  Each level lives in
 * its own files (x86/NAME_avx2.c, arm/NAME_neon.c) built with its own flags.  tests/checkkernel compares every
 * pointer of every level with C.
 */
#ifndef DR_KERNEL_KERNEL_H
#define DR_KERNEL_KERNEL_H

#include <stddef.h>
#include <stdint.h>

/* One axis of a resampling: output i is the sum of size[i] >= 0 inputs from start[i] on, weighted by coef[i * stride]
 * and following, which are fractions of 1 << 22; unused ones are 0.  `split` holds the same numbers for CPUs that
 * multiply pairs of 16 bits: each four coefficients are four upper parts and then four lower parts, so that
 * coef = upper * 2048 + lower with 0 <= lower < 2048. */
typedef struct dr__taps {
    int n_out;
    int stride;   /* a multiple of 4 */
    int max_size; /* the largest size[i] */
    double scale; /* inputs per output: start[i + n] <= start[i] + n * scale + 1 */
    int32_t *start;
    int32_t *size;
    int32_t *coef;
    int16_t *split;
} dr__taps;

#define DR__RESAMPLE_OVERREAD(taps, channels) ((size_t)(taps)->stride * (size_t)(channels) + 64)

/* A table of 256 results for each of up to 4 channels, and the same for CPUs that look up bytes: bytes[k][i] is byte i,
 * lowest first, of channel k's results.  `value` is the caller's to fill; then dr__lut_*_prepare fills `bytes`. */
enum { DR__LUT_CHANNELS = 4 };

typedef struct dr__lut_f32 {
    float value[DR__LUT_CHANNELS * 256];
    uint8_t bytes[DR__LUT_CHANNELS][4][256];
} dr__lut_f32;

typedef struct dr__lut_u16 {
    uint16_t value[DR__LUT_CHANNELS * 256];
    uint8_t bytes[DR__LUT_CHANNELS][2][256];
} dr__lut_u16;

void dr__lut_f32_prepare(dr__lut_f32 *lut);
void dr__lut_u16_prepare(dr__lut_u16 *lut);

typedef struct dr__kernels {
    /* dst[i] = src[w - 1 - i] for w pixels of `pixel` bytes each; no overlap. */
    void (*hflip_row)(uint8_t *dst, const uint8_t *src, size_t w, size_t pixel);

    /* Horizontal pass of PIL's resampling for 1 to 4 rows of 8-bit pixels with c = 1, 3 or 4 interleaved channels.
     * Output pixel x, channel k = clip8(((1 << 21) + sum over j < size[x] of src[(start[x] + j) * c + k] *
     * coef[x * stride + j]) >> 22).  A source row may be read, never used, up to DR__RESAMPLE_OVERREAD(taps, c) bytes
     * past its last used pixel: callers see to it that those bytes exist. */
    void (*resample_h)(uint8_t *const *dst, const uint8_t *const *src, int n_rows, int channels, const dr__taps *taps);

    /* Vertical pass for output row y: dst[i] = clip8(((1 << 21) + sum over j < size[y] of rows[j][i] *
     * coef[y * stride + j]) >> 22) for `bytes` bytes; rows[j] is input row start[y] + j. */
    void (*resample_v)(uint8_t *dst, const uint8_t *const *rows, const dr__taps *taps, size_t y, size_t bytes);

    /* One row of interleaved 8-bit pixels (c <= 4) through a table of 256 floats per channel into c planes:
     * dst[k * plane + x] = lut->value[k * 256 + src[x' * c + k]], x' = x or, mirrored, w - 1 - x. */
    void (*lut_planar_f32)(float *dst, ptrdiff_t plane, const uint8_t *src, size_t w, int channels, int mirror,
                           const dr__lut_f32 *lut);

    /* The same to interleaved output: dst[x * c + k] = lut[k * 256 + src[x' * c + k]]. */
    void (*lut_packed_f32)(float *dst, const uint8_t *src, size_t w, int channels, int mirror, const float *lut);

    /* The same with 16-bit results (float16 or bfloat16 bit patterns, or 16-bit integers). */
    void (*lut_planar_u16)(uint16_t *dst, ptrdiff_t plane, const uint8_t *src, size_t w, int channels, int mirror,
                           const dr__lut_u16 *lut);
    void (*lut_packed_u16)(uint16_t *dst, const uint8_t *src, size_t w, int channels, int mirror, const uint16_t *lut);

    /* The same with 8-bit results; lut NULL: values as they are. */
    void (*lut_planar_u8)(uint8_t *dst, ptrdiff_t plane, const uint8_t *src, size_t w, int channels, int mirror,
                          const uint8_t *lut);

    /* dst[i] = lut[src[i]]. */
    void (*lut_u8)(uint8_t *dst, const uint8_t *src, size_t n, const uint8_t *lut);

    /* PIL's ImageChops blend of two 8-bit rows: dst = clip8(a + f * (b - a)) in float, truncated (PIL's
     * Image.blend: values outside [0, 255] clip when f is outside [0, 1]). */
    void (*blend_u8)(uint8_t *dst, const uint8_t *a, const uint8_t *b, size_t n, float f);

    /* JPEG: n blocks of 64 coefficients (natural order, 32-byte aligned) one after the other, times their quantisation
     * steps (natural order, 32-byte aligned), through the accurate inverse DCT to 8x8 pixels each, side by side: block
     * i fills columns 8i to 8i + 7 of eight rows `stride` bytes apart.  The bits of libjpeg-turbo's SIMD version of
     * JDCT_ISLOW, its wrapping and saturating 16-bit arithmetic for absurd coefficients included. */
    void (*idct_8x8)(uint8_t *dst, ptrdiff_t stride, const int16_t *coef, const int16_t *quant, int n);

    /* JPEG: n chroma samples to 2n, with libjpeg's "fancy" weights 3:1 between neighbours.  src[-1] and src[n] are
     * read: the neighbours, or at the image's border copies of src[0] and src[n - 1].  Up to 64 bytes past src[n] and
     * before src[-1] may be read and are not used; 2n bytes are written.
     *   upsample_h2    dst[2i] = (3 src[i] + src[i-1] + 1) >> 2, dst[2i+1] = (3 src[i] + src[i+1] + 2) >> 2
     *   upsample_h2v2  with s[i] = 3 near[i] + far[i]:
     *                  dst[2i] = (3 s[i] + s[i-1] + 8) >> 4, dst[2i+1] = (3 s[i] + s[i+1] + 7) >> 4
     *   upsample_v2    n to n: dst[i] = (3 near[i] + far[i] + bias) >> 2 */
    void (*upsample_h2)(uint8_t *dst, const uint8_t *src, size_t n);
    void (*upsample_h2v2)(uint8_t *dst, const uint8_t *near, const uint8_t *far, size_t n);
    void (*upsample_v2)(uint8_t *dst, const uint8_t *near, const uint8_t *far, size_t n, int bias);

    /* JPEG: n pixels of full-range YCbCr to interleaved RGB with libjpeg's tables (16 fraction bits).  Up to 64 bytes
     * past the inputs may be read and are not used; 3n bytes are written. */
    void (*ycc_to_rgb)(uint8_t *dst, const uint8_t *y, const uint8_t *cb, const uint8_t *cr, size_t n);

    /* PIL's "L" of RGB: (r * 19595 + g * 38470 + b * 7471 + 0x8000) >> 16, n pixels of 3 bytes. */
    void (*rgb_to_l)(uint8_t *dst, const uint8_t *src, size_t n);
} dr__kernels;

/* Levels of instruction sets, highest last.  DRAPPS_CPU=c|avx2|avx512|neon caps it.  AVX512 means F, BW, VL, VBMI and
 * VNNI (Ice Lake, Zen 4 and later); NEON is that of 64-bit ARM, which every such CPU has. */
typedef enum dr__cpu_level { DR__CPU_C = 0, DR__CPU_AVX2 = 1, DR__CPU_AVX512 = 2, DR__CPU_NEON = 3 } dr__cpu_level;

/* Fills `k` for a level: the C reference, then the kernels that the level replaces. */
void dr__kernels_fill(dr__kernels *k, dr__cpu_level level);

/* The kernels of this machine (chosen once), and the C reference. */
const dr__kernels *dr__kernels_best(void);
const dr__kernels *dr__kernels_c(void);

#endif
