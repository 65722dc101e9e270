/* resample_avx2.c: both passes of the resampling with pairs of 16-bit products.
 *
 * A coefficient has 22 bits and a sign, too many for vpmaddwd.  It is taken apart as upper * 2048 + lower; both halves
 * are multiplied and summed on their own, and (uppers << 11) + lowers is the 32-bit sum of the reference, since all of
 * this is arithmetic modulo 2^32.  Two taps cost two vpmaddwd this way, against four multiply uops by vpmulld.
 *
 * Horizontal: a 128-bit lane holds one output pixel (4 sums of 32 bits), the two lanes of a register two rows, and
 * the coefficients are broadcast.  Vertical: 32 neighbouring bytes at a time.
 */
#include "kernel/level.h"

#include <immintrin.h>
#include <string.h>

#include "base/compiler.h"

enum { FRACTION = 22, HALF = 1 << (FRACTION - 1), UPPER = 11 };

struct sums {
    __m256i upper, lower;
};

static inline __m256i pair_at(const int16_t *split)
{
    int32_t pair;
    memcpy(&pair, split, sizeof pair);
    return _mm256_set1_epi32(pair);
}

/* clip8 comes with the packing that follows. */
static inline __m256i finish(struct sums s)
{
    const __m256i sum = _mm256_add_epi32(_mm256_slli_epi32(s.upper, UPPER), s.lower);
    return _mm256_srai_epi32(sum, FRACTION);
}

static inline struct sums start_sums(void)
{
    return (struct sums){ _mm256_setzero_si256(), _mm256_set1_epi32(HALF) };
}

/* Adds pixels, given as pairs of 16 bits, times two taps. */
static inline struct sums add_pair(struct sums s, __m256i pixels, __m256i upper, __m256i lower)
{
    s.upper = _mm256_add_epi32(s.upper, _mm256_madd_epi16(pixels, upper));
    s.lower = _mm256_add_epi32(s.lower, _mm256_madd_epi16(pixels, lower));
    return s;
}

/* ---- horizontal ---- */

static inline __m256i two_rows(const uint8_t *a, const uint8_t *b)
{
    const __m128i low = _mm_loadu_si128((const __m128i *)a), high = _mm_loadu_si128((const __m128i *)b);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

/* Byte order that pairs each channel of pixel `first` with the next pixel's, widened to 16 bits. */
static inline __m256i pair_order(int channels, int first)
{
    const int a = first * channels, b = a + channels;
    const char last_a = channels == 4 ? (char)(a + 3) : -1, last_b = channels == 4 ? (char)(b + 3) : -1;
    return _mm256_broadcastsi128_si256(_mm_setr_epi8((char)a, -1, (char)b, -1, (char)(a + 1), -1, (char)(b + 1), -1,
                                                     (char)(a + 2), -1, (char)(b + 2), -1, last_a, -1, last_b, -1));
}

/* One output pixel of rows r[0] and r[1], and of r[2] and r[3], whose first taps are `at` bytes into the rows.  n_taps
 * 2 or 4: all there are; 0: n_blocks times four. */
DR_INLINE void sum_pixel(__m256i out[2], const uint8_t *const r[4], ptrdiff_t at, const int16_t *split, int n_blocks,
                         int channels, int n_taps)
{
    const __m256i order01 = pair_order(channels, 0), order23 = pair_order(channels, 2);
    struct sums s[2] = { start_sums(), start_sums() };
    for (int block = 0; block < (n_taps ? 1 : n_blocks); block++, split += 8, at += 4 * channels) {
        for (int i = 0; i < 2; i++) {
            const __m256i bytes = two_rows(r[2 * i] + at, r[2 * i + 1] + at);
            s[i] = add_pair(s[i], _mm256_shuffle_epi8(bytes, order01), pair_at(split), pair_at(split + 4));
            if (n_taps != 2)
                s[i] = add_pair(s[i], _mm256_shuffle_epi8(bytes, order23), pair_at(split + 2), pair_at(split + 6));
        }
    }
    out[0] = finish(s[0]);
    out[1] = finish(s[1]);
}

/* 4 pixels of 2 rows, one 128-bit half each, without the unused fourth byte where channels == 3. */
static inline __m256i pack_pixels(const __m256i px[4], int channels)
{
    const __m256i words01 = _mm256_packs_epi32(px[0], px[1]), words23 = _mm256_packs_epi32(px[2], px[3]);
    const __m256i bytes = _mm256_packus_epi16(words01, words23);
    if (channels == 4)
        return bytes;
    const __m128i dense = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    return _mm256_shuffle_epi8(bytes, _mm256_broadcastsi128_si256(dense));
}

static inline void store_pixels(uint8_t *dst, __m128i bytes, size_t size)
{
    if (size >= 16) {
        _mm_storeu_si128((__m128i *)dst, bytes);
    } else {
        uint8_t rest[16];
        _mm_storeu_si128((__m128i *)rest, bytes);
        memcpy(dst, rest, size);
    }
}

/* n <= 4 pixels from column x on, of 4 rows; columns past n repeat the last and are not stored.  Of 3-channel pixels a
 * store may run 4 bytes into the next ones, which are written later. */
DR_INLINE void resample_4(uint8_t *const dst[4], const uint8_t *const src[4], const dr__taps *t, int x, int n,
                          int channels, int n_taps)
{
    const ptrdiff_t step = n_taps ? 8 : (ptrdiff_t)t->stride * 2;
    __m256i top[4], bottom[4];
    for (int i = 0; i < 4; i++) {
        const ptrdiff_t column = x + (i < n ? i : n - 1);
        __m256i px[2];
        sum_pixel(px, src, (ptrdiff_t)t->start[column] * channels, t->split + column * step, t->stride / 4, channels,
                  n_taps);
        top[i] = px[0];
        bottom[i] = px[1];
    }
    const __m256i a = pack_pixels(top, channels), b = pack_pixels(bottom, channels);
    const size_t at = (size_t)x * (size_t)channels, left = (size_t)(t->n_out - x) * (size_t)channels;
    store_pixels(dst[0] + at, _mm256_castsi256_si128(a), left);
    store_pixels(dst[1] + at, _mm256_extracti128_si256(a, 1), left);
    store_pixels(dst[2] + at, _mm256_castsi256_si128(b), left);
    store_pixels(dst[3] + at, _mm256_extracti128_si256(b, 1), left);
}

DR_INLINE void resample_4_rows(uint8_t *const dst[4], const uint8_t *const src[4], const dr__taps *taps, int channels,
                               int n_taps)
{
    const dr__taps t = *taps; /* a copy of its own, since stores of bytes might change any other */
    int x = 0;
    for (; x + 4 <= t.n_out; x += 4)
        resample_4(dst, src, &t, x, 4, channels, n_taps);
    if (x < t.n_out)
        resample_4(dst, src, &t, x, t.n_out - x, channels, n_taps);
}

DR_INLINE void resample_colour(uint8_t *const dst[4], const uint8_t *const src[4], const dr__taps *t, int channels)
{
    if (t->max_size <= 2)
        resample_4_rows(dst, src, t, channels, 2);
    else if (t->max_size <= 4)
        resample_4_rows(dst, src, t, channels, 4);
    else
        resample_4_rows(dst, src, t, channels, 0);
}

/* One grey pixel of 4 rows: each lane has a row's four taps twice, times the uppers and times the lowers. */
static inline __m128i sum_grey(const uint8_t *const r[4], const dr__taps *t, int x)
{
    const __m256i order =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, -1, 1, -1, 2, -1, 3, -1, 0, -1, 1, -1, 2, -1, 3, -1));
    const int16_t *split = t->split + (ptrdiff_t)x * t->stride * 2;
    ptrdiff_t at = t->start[x];
    __m256i sum02 = _mm256_setzero_si256(), sum13 = sum02;
    for (int left = t->stride; left > 0; left -= 4, split += 8, at += 4) {
        const __m256i coef = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)split));
        const __m256i rows02 = _mm256_shuffle_epi8(two_rows(r[0] + at, r[2] + at), order);
        const __m256i rows13 = _mm256_shuffle_epi8(two_rows(r[1] + at, r[3] + at), order);
        sum02 = _mm256_add_epi32(sum02, _mm256_madd_epi16(rows02, coef));
        sum13 = _mm256_add_epi32(sum13, _mm256_madd_epi16(rows13, coef));
    }
    /* Lanes: upper and lower of rows 0 and 1; of rows 2 and 3. */
    const __m256i both = _mm256_hadd_epi32(sum02, sum13);
    const __m256i ordered = _mm256_permutevar8x32_epi32(both, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
    const __m128i upper = _mm256_castsi256_si128(ordered), lower = _mm256_extracti128_si256(ordered, 1);
    const __m128i sum = _mm_add_epi32(_mm_add_epi32(_mm_slli_epi32(upper, UPPER), lower), _mm_set1_epi32(HALF));
    const __m128i words = _mm_packs_epi32(_mm_srai_epi32(sum, FRACTION), _mm_setzero_si128());
    return _mm_packus_epi16(words, words);
}

static void resample_grey(uint8_t *const dst[4], const uint8_t *const src[4], const dr__taps *t)
{
    for (int x = 0; x < t->n_out; x++) {
        const uint32_t rows = (uint32_t)_mm_cvtsi128_si32(sum_grey(src, t, x));
        for (int y = 0; y < 4; y++)
            dst[y][x] = (uint8_t)(rows >> 8 * y);
    }
}

void dr__resample_h_avx2(uint8_t *const *dst, const uint8_t *const *src, int n_rows, int channels, const dr__taps *taps)
{
    const uint8_t *from[4];
    uint8_t *to[4];
    for (int y = 0; y < 4; y++) { /* rows that are missing repeat the last */
        from[y] = src[DR_MIN(y, n_rows - 1)];
        to[y] = dst[DR_MIN(y, n_rows - 1)];
    }
    if (channels == 1)
        resample_grey(to, from, taps);
    else if (channels == 3)
        resample_colour(to, from, taps, 3);
    else
        resample_colour(to, from, taps, 4);
}

/* ---- vertical ---- */

/* Adds two taps of 32 bytes; s[i] has the bytes in the order in which unpacking leaves them. */
static inline void add_rows(struct sums s[4], __m256i a, __m256i b, const int16_t *split)
{
    const __m256i zero = _mm256_setzero_si256(), upper = pair_at(split), lower = pair_at(split + 4);
    const __m256i low = _mm256_unpacklo_epi8(a, b), high = _mm256_unpackhi_epi8(a, b);
    s[0] = add_pair(s[0], _mm256_unpacklo_epi8(low, zero), upper, lower);
    s[1] = add_pair(s[1], _mm256_unpackhi_epi8(low, zero), upper, lower);
    s[2] = add_pair(s[2], _mm256_unpacklo_epi8(high, zero), upper, lower);
    s[3] = add_pair(s[3], _mm256_unpackhi_epi8(high, zero), upper, lower);
}

/* Packing by lanes undoes the order of unpacking by lanes. */
static inline __m256i pack_sums(const struct sums s[4])
{
    const __m256i words0 = _mm256_packs_epi32(finish(s[0]), finish(s[1]));
    const __m256i words1 = _mm256_packs_epi32(finish(s[2]), finish(s[3]));
    return _mm256_packus_epi16(words0, words1);
}

/* 32 bytes at `at`; n is a constant for the small counts. */
DR_INLINE void sum_rows(uint8_t *dst, const uint8_t *const *rows, const int16_t *split, int n, size_t at)
{
    struct sums s[4] = { start_sums(), start_sums(), start_sums(), start_sums() };
    for (int j = 0; j < n; j += 2) {
        const __m256i a = _mm256_loadu_si256((const __m256i *)(rows[j] + at));
        const __m256i b = j + 1 < n ? _mm256_loadu_si256((const __m256i *)(rows[j + 1] + at)) : _mm256_setzero_si256();
        add_rows(s, a, b, split + j / 4 * 8 + j % 4);
    }
    _mm256_storeu_si256((__m256i *)(dst + at), pack_sums(s));
}

/* At least 32 bytes; the last 32 overlap the ones before. */
DR_INLINE void sum_row(uint8_t *dst, const uint8_t *const *rows, const int16_t *split, int n, size_t bytes)
{
    for (size_t at = 0; at + 32 <= bytes; at += 32)
        sum_rows(dst, rows, split, n, at);
    if (bytes % 32)
        sum_rows(dst, rows, split, n, bytes - 32);
}

/* Fewer than 32 bytes: as the reference. */
static void sum_short_row(uint8_t *dst, const uint8_t *const *rows, const int32_t *coef, int n, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        int32_t sum = HALF;
        for (int j = 0; j < n; j++)
            sum += rows[j][i] * coef[j];
        sum >>= FRACTION;
        dst[i] = (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
    }
}

static void resample_v(uint8_t *dst, const uint8_t *const *rows, const dr__taps *taps, size_t y, size_t bytes)
{
    const int n = taps->size[y];
    const int16_t *split = taps->split + y * (size_t)taps->stride * 2;
    if (bytes < 32)
        sum_short_row(dst, rows, taps->coef + y * (size_t)taps->stride, n, bytes);
    else if (n == 2)
        sum_row(dst, rows, split, 2, bytes);
    else if (n == 3)
        sum_row(dst, rows, split, 3, bytes);
    else if (n == 4)
        sum_row(dst, rows, split, 4, bytes);
    else
        sum_row(dst, rows, split, n, bytes);
}

void dr__resample_avx2(dr__kernels *k)
{
    k->resample_h = dr__resample_h_avx2;
    k->resample_v = resample_v;
}
