/* lut_avx2.c: 8-bit pixels through tables, 8 pixels at a time.
 *
 * Indices come out of 64-bit words by shifting, and results go in through whole registers, which leaves one load per
 * value.  There are no gather instructions: where the CPU's microcode works around its gather bug they are many times
 * slower than this, and where it does not they would win a third.
 */
#include "kernel/level.h"

#include <immintrin.h>
#include <string.h>

#include "base/compiler.h"

/* 8 pixels of c channels are c words; value i of them. */
#define VALUE(q, i) ((uint8_t)((q)[(i) / 8] >> 8 * ((i) % 8)))

/* Table entry for channel k of the i-th pixel from the left of the output. */
#define AT(i) lut[k * 256 + VALUE(q, (mirror ? 7 - (i) : (i)) * channels + k)]

DR_INLINE void load_words(uint64_t q[4], const uint8_t *src, size_t x, size_t w, int channels, int mirror)
{
    const size_t first = mirror ? w - 8 - x : x;
    memcpy(q, src + first * (size_t)channels, 8 * (size_t)channels);
}

DR_INLINE void planar_f32(float *dst, ptrdiff_t plane, const uint8_t *src, size_t w, int channels, int mirror,
                          const float *lut)
{
    size_t x = 0;
    for (; x + 8 <= w; x += 8) {
        uint64_t q[4];
        load_words(q, src, x, w, channels, mirror);
        for (int k = 0; k < channels; k++) {
            const __m256 v = _mm256_setr_ps(AT(0), AT(1), AT(2), AT(3), AT(4), AT(5), AT(6), AT(7));
            _mm256_storeu_ps(dst + k * plane + x, v);
        }
    }
    for (; x < w; x++) {
        for (int k = 0; k < channels; k++)
            dst[k * plane + (ptrdiff_t)x] = lut[k * 256 + src[(mirror ? w - 1 - x : x) * (size_t)channels + (size_t)k]];
    }
}

DR_INLINE void planar_u16(uint16_t *dst, ptrdiff_t plane, const uint8_t *src, size_t w, int channels, int mirror,
                          const uint16_t *lut)
{
    size_t x = 0;
    for (; x + 8 <= w; x += 8) {
        uint64_t q[4];
        load_words(q, src, x, w, channels, mirror);
        for (int k = 0; k < channels; k++) {
            const __m128i v = _mm_setr_epi16((short)AT(0), (short)AT(1), (short)AT(2), (short)AT(3), (short)AT(4),
                                             (short)AT(5), (short)AT(6), (short)AT(7));
            _mm_storeu_si128((__m128i *)(dst + k * plane + x), v);
        }
    }
    for (; x < w; x++) {
        for (int k = 0; k < channels; k++)
            dst[k * plane + (ptrdiff_t)x] = lut[k * 256 + src[(mirror ? w - 1 - x : x) * (size_t)channels + (size_t)k]];
    }
}

/* The compiler makes one straight loop for each number of channels and direction. */
#define BY_SHAPE(function, ...)                                                                                        \
    do {                                                                                                               \
        if (channels == 3 && mirror)                                                                                   \
            function(__VA_ARGS__, src, w, 3, 1, lut);                                                                  \
        else if (channels == 3)                                                                                        \
            function(__VA_ARGS__, src, w, 3, 0, lut);                                                                  \
        else if (channels == 1 && mirror)                                                                              \
            function(__VA_ARGS__, src, w, 1, 1, lut);                                                                  \
        else if (channels == 1)                                                                                        \
            function(__VA_ARGS__, src, w, 1, 0, lut);                                                                  \
        else if (mirror)                                                                                               \
            function(__VA_ARGS__, src, w, channels, 1, lut);                                                           \
        else                                                                                                           \
            function(__VA_ARGS__, src, w, channels, 0, lut);                                                           \
    } while (0)

static void lut_planar_f32(float *dst, ptrdiff_t plane, const uint8_t *src, size_t w, int channels, int mirror,
                           const dr__lut_f32 *table)
{
    const float *lut = table->value;
    BY_SHAPE(planar_f32, dst, plane);
}

static void lut_planar_u16(uint16_t *dst, ptrdiff_t plane, const uint8_t *src, size_t w, int channels, int mirror,
                           const dr__lut_u16 *table)
{
    const uint16_t *lut = table->value;
    BY_SHAPE(planar_u16, dst, plane);
}

/* Interleaved output needs no rearranging: plain loops, one for each shape. */
DR_INLINE void packed_f32(float *dst, const uint8_t *src, size_t w, int channels, int mirror, const float *lut)
{
    const size_t c = (size_t)channels;
    for (size_t x = 0; x < w; x++) {
        const uint8_t *from = src + (mirror ? w - 1 - x : x) * c;
        for (size_t k = 0; k < c; k++)
            dst[x * c + k] = lut[k * 256 + from[k]];
    }
}

DR_INLINE void packed_u16(uint16_t *dst, const uint8_t *src, size_t w, int channels, int mirror, const uint16_t *lut)
{
    const size_t c = (size_t)channels;
    for (size_t x = 0; x < w; x++) {
        const uint8_t *from = src + (mirror ? w - 1 - x : x) * c;
        for (size_t k = 0; k < c; k++)
            dst[x * c + k] = lut[k * 256 + from[k]];
    }
}

static void lut_packed_f32(float *dst, const uint8_t *src, size_t w, int channels, int mirror, const float *lut)
{
    BY_SHAPE(packed_f32, dst);
}

static void lut_packed_u16(uint16_t *dst, const uint8_t *src, size_t w, int channels, int mirror, const uint16_t *lut)
{
    BY_SHAPE(packed_u16, dst);
}

/* Byte order that puts channel k of 16 pixels, as far as the `part`-th 16 of their 48 bytes has it, in place. */
static __m128i plane_order(int k, int part, int mirror)
{
    char order[16];
    for (int i = 0; i < 16; i++) {
        const int at = (mirror ? 15 - i : i) * 3 + k - part * 16;
        order[i] = (char)(at >= 0 && at < 16 ? at : -1);
    }
    return _mm_loadu_si128((const __m128i *)order);
}

/* Splits rows of 3 channels into planes; returns how many columns are done. */
static size_t split_3(uint8_t *dst, ptrdiff_t plane, const uint8_t *src, size_t w, int mirror)
{
    __m128i order[3][3];
    for (int i = 0; i < 9; i++)
        order[i / 3][i % 3] = plane_order(i / 3, i % 3, mirror);
    size_t x = 0;
    for (; x + 16 <= w; x += 16) {
        const __m128i *from = (const __m128i *)(src + (mirror ? w - 16 - x : x) * 3);
        const __m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1), c = _mm_loadu_si128(from + 2);
        for (int k = 0; k < 3; k++) {
            const __m128i ab = _mm_or_si128(_mm_shuffle_epi8(a, order[k][0]), _mm_shuffle_epi8(b, order[k][1]));
            const __m128i all = _mm_or_si128(ab, _mm_shuffle_epi8(c, order[k][2]));
            _mm_storeu_si128((__m128i *)(dst + k * plane + (ptrdiff_t)x), all);
        }
    }
    return x;
}

static void lut_planar_u8(uint8_t *dst, ptrdiff_t plane, const uint8_t *src, size_t w, int channels, int mirror,
                          const uint8_t *lut)
{
    const size_t done = !lut && channels == 3 ? split_3(dst, plane, src, w, mirror) : 0;
    for (int k = 0; k < channels; k++) {
        for (size_t x = done; x < w; x++) {
            const uint8_t v = src[(mirror ? w - 1 - x : x) * (size_t)channels + (size_t)k];
            dst[k * plane + (ptrdiff_t)x] = lut ? lut[k * 256 + v] : v;
        }
    }
}

/* 32 values: look up the low four bits in all 16 parts of the table, then let each high bit choose between halves. */
static inline __m256i look_up(__m256i v, const uint8_t *lut)
{
    const __m256i low = _mm256_and_si256(v, _mm256_set1_epi8(15));
    __m256i found[16];
    for (int i = 0; i < 16; i++) {
        const __m128i part = _mm_loadu_si128((const __m128i *)(lut + i * 16));
        found[i] = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(part), low);
    }
    for (int n = 8, bit = 4; n > 0; n /= 2, bit++) {
        const __m256i choice = _mm256_slli_epi16(v, 7 - bit);
        for (int i = 0; i < n; i++)
            found[i] = _mm256_blendv_epi8(found[2 * i], found[2 * i + 1], choice);
    }
    return found[0];
}

static void lut_u8(uint8_t *dst, const uint8_t *src, size_t n, const uint8_t *lut)
{
    size_t i = 0;
    for (; i + 32 <= n; i += 32)
        _mm256_storeu_si256((__m256i *)(dst + i), look_up(_mm256_loadu_si256((const __m256i *)(src + i)), lut));
    for (; i < n; i++)
        dst[i] = lut[src[i]];
}

void dr__lut_avx2(dr__kernels *k)
{
    k->lut_planar_f32 = lut_planar_f32;
    k->lut_packed_f32 = lut_packed_f32;
    k->lut_planar_u16 = lut_planar_u16;
    k->lut_packed_u16 = lut_packed_u16;
    k->lut_planar_u8 = lut_planar_u8;
    k->lut_u8 = lut_u8;
}
