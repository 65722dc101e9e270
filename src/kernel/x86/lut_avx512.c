/* lut_avx512.c: 8-bit pixels through tables, 64 values at a time.
 *
 * 256 bytes are four registers, and one permutation looks up 64 bytes in a register.  A table of wider values is a
 * table of bytes for each byte of a value (see dr__lut_f32), whose results are interleaved.  A channel is done along
 * the whole row, so that its tables stay in registers.  Picking a channel out of the pixels is a permutation as well,
 * of the one to four registers that 64 pixels fill.
 *
 * Permutations of one register merged under a mask take fewer steps on Intel's CPUs than those of two registers.
 * Stores go through the caches.  Streaming ones would save the writer of large images time, but cost whoever reads
 * results that are still cached, and would need a fence before a batch is handed over.
 */
#include "kernel/level.h"

#include <immintrin.h>

#include "base/compiler.h"

struct table {
    __m512i part[4];
};

DR_INLINE struct table load_table(const uint8_t *table)
{
    struct table t;
    for (int i = 0; i < 4; i++)
        t.part[i] = _mm512_loadu_si512(table + 64 * i);
    return t;
}

/* The lower six bits are looked up in all four parts, the upper two choose between them. */
DR_INLINE __m512i look_up(const struct table *t, __m512i v)
{
    const __mmask64 bit_7 = _mm512_movepi8_mask(v), bit_6 = _mm512_movepi8_mask(_mm512_add_epi8(v, v));
    const __m512i first = _mm512_permutexvar_epi8(v, t->part[0]), third = _mm512_permutexvar_epi8(v, t->part[2]);
    const __m512i lower = _mm512_mask_permutexvar_epi8(first, bit_6, v, t->part[1]);
    const __m512i upper = _mm512_mask_permutexvar_epi8(third, bit_6, v, t->part[3]);
    return _mm512_mask_blend_epi8(bit_7, lower, upper);
}

/* The lowest n of 64 bits; none for n <= 0. */
static inline __mmask64 lowest(ptrdiff_t n)
{
    return n >= 64 ? ~(__mmask64)0 : n <= 0 ? 0 : ((__mmask64)1 << n) - 1;
}

/* In which order the values of 64 pixels are looked up, so that interleaving bytes, which is done within each quarter
 * of a register, leaves results of `size` bytes in a row. */
DR_INLINE __m512i pixel_order(int size)
{
    _Alignas(64) static const uint8_t order[3][64] = {
        { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
          22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
          44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63 },
        { 0,  1,  2,  3,  4,  5,  6,  7,  32, 33, 34, 35, 36, 37, 38, 39, 8,  9,  10, 11, 12, 13,
          14, 15, 40, 41, 42, 43, 44, 45, 46, 47, 16, 17, 18, 19, 20, 21, 22, 23, 48, 49, 50, 51,
          52, 53, 54, 55, 24, 25, 26, 27, 28, 29, 30, 31, 56, 57, 58, 59, 60, 61, 62, 63 },
        { 0,  1,  2,  3,  16, 17, 18, 19, 32, 33, 34, 35, 48, 49, 50, 51, 4,  5,  6,  7,  20, 21,
          22, 23, 36, 37, 38, 39, 52, 53, 54, 55, 8,  9,  10, 11, 24, 25, 26, 27, 40, 41, 42, 43,
          56, 57, 58, 59, 12, 13, 14, 15, 28, 29, 30, 31, 44, 45, 46, 47, 60, 61, 62, 63 },
    };
    return _mm512_load_si512(order[size / 2]);
}

/* Where the bytes of channel k of n <= 64 pixels are, in the order of pixel_order.  No product is beyond a byte. */
DR_INLINE __m512i byte_order(int size, size_t n, int channels, int k, int mirror)
{
    const __m512i at = _mm512_mullo_epi16(pixel_order(size), _mm512_set1_epi16((short)channels));
    return mirror ? _mm512_sub_epi8(_mm512_set1_epi8((char)(((int)n - 1) * channels + k)), at)
                  : _mm512_add_epi8(_mm512_set1_epi8((char)k), at);
}

/* The bytes that `order` names, out of n pixels. */
DR_INLINE __m512i pick(const uint8_t *src, size_t n, int channels, __m512i order)
{
    const __m512i part = _mm512_and_si512(order, _mm512_set1_epi8((char)0xc0));
    const ptrdiff_t bytes = (ptrdiff_t)n * channels;
    __m512i v = _mm512_permutexvar_epi8(order, _mm512_maskz_loadu_epi8(lowest(bytes), src));
    for (int i = 1; i < channels; i++) {
        const __mmask64 here = _mm512_cmpeq_epi8_mask(part, _mm512_set1_epi8((char)(64 * i)));
        const __m512i pixels = _mm512_maskz_loadu_epi8(lowest(bytes - 64 * i), src + 64 * i);
        v = _mm512_mask_permutexvar_epi8(v, here, order, pixels);
    }
    return v;
}

/* Stores n values, of which `found` has the `size` bytes. */
DR_INLINE void store(uint8_t *dst, size_t n, const __m512i *found, int size)
{
    __m512i out[4] = { found[0] };
    if (size > 1) {
        out[0] = _mm512_unpacklo_epi8(found[0], found[1]);
        out[1] = _mm512_unpackhi_epi8(found[0], found[1]);
    }
    if (size > 2) {
        const __m512i low[2] = { out[0], out[1] };
        const __m512i high[2] = { _mm512_unpacklo_epi8(found[2], found[3]), _mm512_unpackhi_epi8(found[2], found[3]) };
        for (int i = 0; i < 4; i += 2) {
            out[i] = _mm512_unpacklo_epi16(low[i / 2], high[i / 2]);
            out[i + 1] = _mm512_unpackhi_epi16(low[i / 2], high[i / 2]);
        }
    }
    for (int i = 0; i < size; i++)
        _mm512_mask_storeu_epi8(dst + 64 * i, lowest((ptrdiff_t)n * size - 64 * i), out[i]);
}

/* n <= 64 pixels of one channel; tables NULL: values as they are. */
DR_INLINE void convert(uint8_t *dst, const uint8_t *src, size_t n, int channels, __m512i order,
                       const struct table *tables, int size)
{
    const __m512i v = pick(src, n, channels, order);
    __m512i found[4] = { v };
    for (int i = 0; i < size && tables; i++)
        found[i] = look_up(&tables[i], v);
    store(dst, n, found, size);
}

/* One channel of a row; `bytes` are `size` tables of 256, or NULL. */
DR_INLINE void channel(uint8_t *dst, const uint8_t *src, size_t w, int channels, int k, int mirror,
                       const uint8_t *bytes, int size)
{
    struct table tables[4];
    for (int i = 0; i < size && bytes; i++)
        tables[i] = load_table(bytes + 256 * i);
    const __m512i order = byte_order(size, 64, channels, k, mirror);
    size_t x = 0;
    for (; x + 64 <= w; x += 64)
        convert(dst + x * (size_t)size, src + (mirror ? w - 64 - x : x) * (size_t)channels, 64, channels, order,
                bytes ? tables : NULL, size);
    if (x < w)
        convert(dst + x * (size_t)size, src + (mirror ? 0 : x) * (size_t)channels, w - x, channels,
                byte_order(size, w - x, channels, k, mirror), bytes ? tables : NULL, size);
}

/* All channels, to `plane` bytes apart.  The compiler makes straight loops for the usual numbers of channels. */
DR_INLINE void planar(void *dst, ptrdiff_t plane, const uint8_t *src, size_t w, int channels, int mirror,
                      const uint8_t *bytes, int size)
{
    for (int k = 0; k < channels; k++) {
        uint8_t *to = (uint8_t *)dst + k * plane;
        const uint8_t *from = bytes ? bytes + 256 * size * k : NULL;
        if (channels == 3)
            channel(to, src, w, 3, k, mirror, from, size);
        else if (channels == 1)
            channel(to, src, w, 1, k, mirror, from, size);
        else
            channel(to, src, w, channels, k, mirror, from, size);
    }
}

static void lut_planar_f32(float *dst, ptrdiff_t plane, const uint8_t *src, size_t w, int channels, int mirror,
                           const dr__lut_f32 *lut)
{
    planar(dst, plane * 4, src, w, channels, mirror, lut->bytes[0][0], 4);
}

static void lut_planar_u16(uint16_t *dst, ptrdiff_t plane, const uint8_t *src, size_t w, int channels, int mirror,
                           const dr__lut_u16 *lut)
{
    planar(dst, plane * 2, src, w, channels, mirror, lut->bytes[0][0], 2);
}

static void lut_planar_u8(uint8_t *dst, ptrdiff_t plane, const uint8_t *src, size_t w, int channels, int mirror,
                          const uint8_t *lut)
{
    if (lut) /* decided here, not for each value */
        planar(dst, plane, src, w, channels, mirror, lut, 1);
    else
        planar(dst, plane, src, w, channels, mirror, NULL, 1);
}

static void lut_u8(uint8_t *dst, const uint8_t *src, size_t n, const uint8_t *lut)
{
    channel(dst, src, n, 1, 0, 0, lut, 1);
}

void dr__lut_avx512(dr__kernels *k)
{
    k->lut_planar_f32 = lut_planar_f32;
    k->lut_planar_u16 = lut_planar_u16;
    k->lut_planar_u8 = lut_planar_u8;
    k->lut_u8 = lut_u8;
}
