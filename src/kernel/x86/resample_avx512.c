/* resample_avx512.c: both passes of the resampling with 512-bit registers (VBMI's byte permutation, VNNI's sums).
 *
 * The arithmetic is that of resample_avx2.c.  Horizontal: 16 neighbouring output bytes at a time.  Where their taps lie
 * in the source is the same for all rows, so the byte permutation is made once for four rows.
 */
#include "kernel/level.h"

#include <immintrin.h>
#include <string.h>

#include "base/compiler.h"

enum { FRACTION = 22, HALF = 1 << (FRACTION - 1), UPPER = 11 };

struct sums {
    __m512i upper, lower;
};

static inline struct sums start_sums(void)
{
    return (struct sums){ _mm512_setzero_si512(), _mm512_set1_epi32(HALF) };
}

static inline struct sums add_pair(struct sums s, __m512i pixels, __m512i upper, __m512i lower)
{
    s.upper = _mm512_dpwssd_epi32(s.upper, pixels, upper);
    s.lower = _mm512_dpwssd_epi32(s.lower, pixels, lower);
    return s;
}

static inline __m512i finish(struct sums s)
{
    return _mm512_srai_epi32(_mm512_add_epi32(_mm512_slli_epi32(s.upper, UPPER), s.lower), FRACTION);
}

/* ---- horizontal ---- */

/* The largest input pixels per output pixel for which 64 bytes hold four taps of 16 output bytes: the taps of 6 pixels
 * of 3 channels, or 4 of 4, start at most 5 * 3.2 + 1 = 17 pixels apart. */
#define MAX_SCALE 3.2

/* Output byte i of 16 is channel (phase + i) % c of the group's pixel (phase + i) / c. */
struct shape {
    __m512i pixel, channel;
};

DR_INLINE struct shape shape_of(int channels, int phase)
{
    int32_t pixel[16], channel[16];
    for (int i = 0; i < 16; i++) {
        pixel[i] = (phase + i) / channels;
        channel[i] = (phase + i) % channels;
    }
    return (struct shape){ _mm512_loadu_si512(pixel), _mm512_loadu_si512(channel) };
}

/* Byte permutation that puts taps 0 and 1 of each output byte into the low bytes of a pair of 16 bits. */
DR_INLINE __m512i tap_order(const dr__taps *t, int x, int n_pixels, struct shape shape, int channels)
{
    const __m256i starts = _mm256_maskz_loadu_epi32((__mmask8)((1u << n_pixels) - 1), t->start + x);
    const __m512i relative = _mm512_sub_epi32(_mm512_castsi256_si512(starts), _mm512_set1_epi32(t->start[x]));
    const __m512i pixel = _mm512_permutexvar_epi32(shape.pixel, relative);
    const __m512i at =
        channels == 4 ? _mm512_slli_epi32(pixel, 2) : _mm512_add_epi32(_mm512_add_epi32(pixel, pixel), pixel);
    const __m512i first = _mm512_add_epi32(at, shape.channel);
    const __m512i second = _mm512_slli_epi32(_mm512_add_epi32(first, _mm512_set1_epi32(channels)), 16);
    return _mm512_or_si512(first, second);
}

/* Four coefficients of each of n <= 6 pixels, one pixel in 128 bits. */
struct coefs {
    __m512i first, last; /* pixels 0 to 3; 4 and 5 */
};

DR_INLINE struct coefs load_coefs(const int16_t *split, ptrdiff_t step, int n)
{
    __m128i v[6];
    for (int i = 0; i < 6; i++)
        v[i] = i < n ? _mm_loadu_si128((const __m128i *)(split + i * step)) : _mm_setzero_si128();
    const __m512i first =
        _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_set_m128i(v[1], v[0])), _mm256_set_m128i(v[3], v[2]), 1);
    return (struct coefs){ first, _mm512_castsi256_si512(_mm256_set_m128i(v[5], v[4])) };
}

/* Pair `which` of 4 (upper parts of taps 0 and 1, of 2 and 3, lower parts of both) for each output byte. */
static inline __m512i pick_pair(struct coefs c, __m512i pixel, int which)
{
    const __m512i index = _mm512_add_epi32(_mm512_slli_epi32(pixel, 2), _mm512_set1_epi32(which));
    return _mm512_permutex2var_epi32(c.first, index, c.last);
}

/* The sums of 16 output bytes of 4 rows as bytes, 128 bits a row. */
static inline __m512i pack_rows(const struct sums s[4])
{
    const __m512i words01 = _mm512_packs_epi32(finish(s[0]), finish(s[1]));
    const __m512i words23 = _mm512_packs_epi32(finish(s[2]), finish(s[3]));
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_permutexvar_epi32(order, _mm512_packus_epi16(words01, words23));
}

DR_INLINE void store_rows(uint8_t *const dst[4], size_t at, size_t n, __m512i rows)
{
    const __m128i v[4] = { _mm512_castsi512_si128(rows), _mm512_extracti32x4_epi32(rows, 1),
                           _mm512_extracti32x4_epi32(rows, 2), _mm512_extracti32x4_epi32(rows, 3) };
    for (int y = 0; y < 4; y++) {
        if (n == 16)
            _mm_storeu_si128((__m128i *)(dst[y] + at), v[y]);
        else
            _mm_mask_storeu_epi8(dst[y] + at, (__mmask16)((1u << n) - 1), v[y]);
    }
}

/* n <= 16 output bytes from column x on, beginning with its channel `phase`.  n_taps 2 or 4: all there are; 0: any. */
DR_INLINE void resample_16(uint8_t *const dst[4], const uint8_t *const src[4], const dr__taps *t, int x, size_t n,
                           int channels, int phase, int n_taps)
{
    const __mmask64 low_bytes = 0x5555555555555555u;
    const struct shape shape = shape_of(channels, phase);
    const int n_pixels = (phase + (int)n + channels - 1) / channels;
    const __m512i order01 = tap_order(t, x, n_pixels, shape, channels);
    const __m512i order23 = _mm512_add_epi8(order01, _mm512_set1_epi16((short)(2 * channels)));
    const ptrdiff_t step = n_taps ? 8 : (ptrdiff_t)t->stride * 2;
    const int16_t *split = t->split + x * step;
    ptrdiff_t at = (ptrdiff_t)t->start[x] * channels;
    struct sums s[4] = { start_sums(), start_sums(), start_sums(), start_sums() };
    for (int block = 0; block < (n_taps ? 1 : t->stride / 4); block++, split += 8, at += 4 * channels) {
        const struct coefs c = load_coefs(split, step, n_pixels);
        const __m512i upper01 = pick_pair(c, shape.pixel, 0), upper23 = pick_pair(c, shape.pixel, 1);
        const __m512i lower01 = pick_pair(c, shape.pixel, 2), lower23 = pick_pair(c, shape.pixel, 3);
        for (int y = 0; y < 4; y++) {
            const __m512i bytes = _mm512_loadu_si512(src[y] + at);
            s[y] = add_pair(s[y], _mm512_maskz_permutexvar_epi8(low_bytes, order01, bytes), upper01, lower01);
            if (n_taps != 2)
                s[y] = add_pair(s[y], _mm512_maskz_permutexvar_epi8(low_bytes, order23, bytes), upper23, lower23);
        }
    }
    store_rows(dst, (size_t)(x * channels + phase), n, pack_rows(s));
}

DR_INLINE void resample_3(uint8_t *const dst[4], const uint8_t *const src[4], const dr__taps *t, int n_taps)
{
    int x = 0;
    for (; x + 16 <= t->n_out; x += 16) {
        resample_16(dst, src, t, x, 16, 3, 0, n_taps);
        resample_16(dst, src, t, x + 5, 16, 3, 1, n_taps);
        resample_16(dst, src, t, x + 10, 16, 3, 2, n_taps);
    }
    for (; x < t->n_out; x += 5)
        resample_16(dst, src, t, x, (size_t)DR_MIN(5, t->n_out - x) * 3, 3, 0, n_taps);
}

DR_INLINE void resample_4(uint8_t *const dst[4], const uint8_t *const src[4], const dr__taps *t, int n_taps)
{
    int x = 0;
    for (; x + 4 <= t->n_out; x += 4)
        resample_16(dst, src, t, x, 16, 4, 0, n_taps);
    if (x < t->n_out)
        resample_16(dst, src, t, x, (size_t)(t->n_out - x) * 4, 4, 0, n_taps);
}

DR_INLINE void resample_colour(uint8_t *const dst[4], const uint8_t *const src[4], const dr__taps *taps, int channels,
                               int n_taps)
{
    const dr__taps t = *taps; /* a copy of its own, since stores of bytes might change any other */
    if (channels == 3)
        resample_3(dst, src, &t, n_taps);
    else
        resample_4(dst, src, &t, n_taps);
}

static void resample_h(uint8_t *const *dst, const uint8_t *const *src, int n_rows, int channels, const dr__taps *taps)
{
    if (channels == 1 || taps->scale > MAX_SCALE) {
        dr__resample_h_avx2(dst, src, n_rows, channels, taps);
        return;
    }
    const uint8_t *from[4];
    uint8_t *to[4];
    for (int y = 0; y < 4; y++) { /* rows that are missing repeat the last */
        from[y] = src[DR_MIN(y, n_rows - 1)];
        to[y] = dst[DR_MIN(y, n_rows - 1)];
    }
    if (channels == 4)
        resample_colour(to, from, taps, 4, 0);
    else if (taps->max_size <= 2)
        resample_colour(to, from, taps, 3, 2);
    else if (taps->max_size <= 4)
        resample_colour(to, from, taps, 3, 4);
    else
        resample_colour(to, from, taps, 3, 0);
}

/* ---- vertical ---- */

static inline __m512i pair_at(const int16_t *split)
{
    int32_t pair;
    memcpy(&pair, split, sizeof pair);
    return _mm512_set1_epi32(pair);
}

static inline void add_rows(struct sums s[4], __m512i a, __m512i b, const int16_t *split)
{
    const __m512i zero = _mm512_setzero_si512(), upper = pair_at(split), lower = pair_at(split + 4);
    const __m512i low = _mm512_unpacklo_epi8(a, b), high = _mm512_unpackhi_epi8(a, b);
    s[0] = add_pair(s[0], _mm512_unpacklo_epi8(low, zero), upper, lower);
    s[1] = add_pair(s[1], _mm512_unpackhi_epi8(low, zero), upper, lower);
    s[2] = add_pair(s[2], _mm512_unpacklo_epi8(high, zero), upper, lower);
    s[3] = add_pair(s[3], _mm512_unpackhi_epi8(high, zero), upper, lower);
}

/* The 64 bytes at `at` that `mask` names; n is a constant for the small counts. */
DR_INLINE void sum_rows(uint8_t *dst, const uint8_t *const *rows, const int16_t *split, int n, size_t at,
                        __mmask64 mask)
{
    struct sums s[4] = { start_sums(), start_sums(), start_sums(), start_sums() };
    for (int j = 0; j < n; j += 2) {
        const __m512i a = _mm512_maskz_loadu_epi8(mask, rows[j] + at);
        const __m512i b = j + 1 < n ? _mm512_maskz_loadu_epi8(mask, rows[j + 1] + at) : _mm512_setzero_si512();
        add_rows(s, a, b, split + j / 4 * 8 + j % 4);
    }
    const __m512i words0 = _mm512_packs_epi32(finish(s[0]), finish(s[1]));
    const __m512i words1 = _mm512_packs_epi32(finish(s[2]), finish(s[3]));
    _mm512_mask_storeu_epi8(dst + at, mask, _mm512_packus_epi16(words0, words1));
}

DR_INLINE void sum_row(uint8_t *dst, const uint8_t *const *rows, const int16_t *split, int n, size_t bytes)
{
    size_t at = 0;
    for (; at + 64 <= bytes; at += 64)
        sum_rows(dst, rows, split, n, at, ~(__mmask64)0);
    if (at < bytes)
        sum_rows(dst, rows, split, n, at, ~(__mmask64)0 >> (64 - (bytes - at)));
}

static void resample_v(uint8_t *dst, const uint8_t *const *rows, const dr__taps *taps, size_t y, size_t bytes)
{
    const int n = taps->size[y];
    const int16_t *split = taps->split + y * (size_t)taps->stride * 2;
    if (n == 2)
        sum_row(dst, rows, split, 2, bytes);
    else if (n == 3)
        sum_row(dst, rows, split, 3, bytes);
    else if (n == 4)
        sum_row(dst, rows, split, 4, bytes);
    else
        sum_row(dst, rows, split, n, bytes);
}

void dr__resample_avx512(dr__kernels *k)
{
    k->resample_h = resample_h;
    k->resample_v = resample_v;
}
