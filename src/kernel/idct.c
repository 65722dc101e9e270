/* idct.c: JPEG's inverse DCT, the accurate integer kind (Loeffler, Ligtenberg and Moschytz with 12 multiplications).
 *
 * Two passes of eight one-dimensional transforms with 13 fraction bits in the weights; pass 1 keeps two fraction bits.
 * For coefficients of a real image this is libjpeg's jidctint.c.  For others the bits are those of its x86 SIMD
 * version, which multiplies and adds inputs in 16 bits that wrap, and clips to 16 bits after each pass.
 */
#include "kernel/level.h"

enum { WEIGHT_BITS = 13, PASS1_BITS = 2, PASS1_SHIFT = WEIGHT_BITS - PASS1_BITS };
enum { PASS2_SHIFT = WEIGHT_BITS + PASS1_BITS + 3 };

static int16_t wrap16(int v)
{
    return (int16_t)(uint16_t)v;
}

static int32_t clip(int32_t v, int32_t least, int32_t most)
{
    return v < least ? least : v > most ? most : v;
}

/* One transform of in[0], in[step], ... to out[0], out[step], ..., rounded and clipped to 16 bits.  The weights of one
 * output sum up to at most 64571, so that sums of 16-bit inputs stay within 32 bits. */
static void transform(int16_t *out, const int16_t *in, int step, int shift)
{
    const int32_t in1 = in[step], in2 = in[2 * step], in3 = in[3 * step];
    const int32_t in5 = in[5 * step], in6 = in[6 * step], in7 = in[7 * step];
    const int32_t low = wrap16(in[0] + in[4 * step]) * 8192, high = wrap16(in[0] - in[4 * step]) * 8192;
    const int32_t turned_low = in2 * 10703 + in6 * 4433, turned_high = in2 * 4433 - in6 * 10704;
    const int32_t even[4] = { low + turned_low, high + turned_high, high - turned_high, low - turned_low };
    const int32_t sum37 = wrap16(in7 + in3), sum15 = wrap16(in5 + in1);
    const int32_t common37 = sum37 * -6436 + sum15 * 9633, common15 = sum37 * 9633 + sum15 * 6437;
    const int32_t odd[4] = { in7 * -7373 + in1 * 4926 + common15, in5 * -20995 + in3 * 4177 + common37,
                             in5 * -4176 - in3 * 20995 + common15, in7 * -4927 - in1 * 7373 + common37 };
    const int32_t half = 1 << (shift - 1);
    for (int i = 0; i < 4; i++) {
        out[i * step] = (int16_t)clip((even[i] + odd[i] + half) >> shift, INT16_MIN, INT16_MAX);
        out[(7 - i) * step] = (int16_t)clip((even[i] - odd[i] + half) >> shift, INT16_MIN, INT16_MAX);
    }
}

static int only_row_0(const int16_t *coef)
{
    for (int i = 8; i < 64; i++)
        if (coef[i])
            return 0;
    return 1;
}

/* Pass 1, columns.  Where only row 0 is there a column is constant; then the SIMD version does not clip. */
static void columns(int16_t *out, const int16_t *coef, const int16_t *quant)
{
    int16_t in[64];
    const int constant = only_row_0(coef);
    for (int i = 0; i < 64; i++)
        in[i] = wrap16(coef[i] * quant[i]);
    for (int x = 0; x < 8; x++) {
        if (!constant)
            transform(out + x, in + x, 8, PASS1_SHIFT);
        for (int y = 0; constant && y < 8; y++)
            out[y * 8 + x] = wrap16(in[x] * (1 << PASS1_BITS));
    }
}

void dr__idct_8x8_c(uint8_t *dst, ptrdiff_t stride, const int16_t *coef, const int16_t *quant, int n)
{
    for (int i = 0; i < n; i++, dst += 8, coef += 64) {
        int16_t half_done[64], row[8];
        columns(half_done, coef, quant);
        for (int y = 0; y < 8; y++) {
            transform(row, half_done + (ptrdiff_t)y * 8, 1, PASS2_SHIFT);
            for (int x = 0; x < 8; x++)
                dst[y * stride + x] = (uint8_t)(clip(row[x], -128, 127) + 128);
        }
    }
}

void dr__idct_c(dr__kernels *k)
{
    k->idct_8x8 = dr__idct_8x8_c;
}
