/* shuffle_avx2.c: byte planes of elements of 2, 4 and 8 bytes, 32 elements at a time. */
#include "kernel/codec_kernel.h"

#include <immintrin.h>

#define LOAD(p) _mm256_loadu_si256((const __m256i *)(p))
#define STORE(p, x) _mm256_storeu_si256((__m256i *)(p), x)

static void shuffle_2(uint8_t *dst, const uint8_t *src, size_t n)
{
    const __m256i low = _mm256_set1_epi16(0xff);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const __m256i a = LOAD(src + i * 2), b = LOAD(src + i * 2 + 32);
        const __m256i first = _mm256_packus_epi16(_mm256_and_si256(a, low), _mm256_and_si256(b, low));
        const __m256i second = _mm256_packus_epi16(_mm256_srli_epi16(a, 8), _mm256_srli_epi16(b, 8));
        STORE(dst + i, _mm256_permute4x64_epi64(first, 0xd8));
        STORE(dst + n + i, _mm256_permute4x64_epi64(second, 0xd8));
    }
    dr__shuffle_part(dst, src, i, n, 2);
}

static void unshuffle_2(uint8_t *dst, const uint8_t *src, size_t n)
{
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const __m256i first = _mm256_permute4x64_epi64(LOAD(src + i), 0xd8);
        const __m256i second = _mm256_permute4x64_epi64(LOAD(src + n + i), 0xd8);
        STORE(dst + i * 2, _mm256_unpacklo_epi8(first, second));
        STORE(dst + i * 2 + 32, _mm256_unpackhi_epi8(first, second));
    }
    dr__unshuffle_part(dst, src, i, n, 2);
}

/* Four vectors of 8 elements of 4 bytes to four planes of 32 bytes. */
static inline void planes_4(__m256i v[4])
{
    const __m256i order =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    const __m256i gather = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    for (int k = 0; k < 4; k++) /* 8 bytes of each plane */
        v[k] = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(v[k], order), gather);
    const __m256i t0 = _mm256_unpacklo_epi64(v[0], v[1]), t1 = _mm256_unpackhi_epi64(v[0], v[1]);
    const __m256i t2 = _mm256_unpacklo_epi64(v[2], v[3]), t3 = _mm256_unpackhi_epi64(v[2], v[3]);
    v[0] = _mm256_permute2x128_si256(t0, t2, 0x20);
    v[1] = _mm256_permute2x128_si256(t1, t3, 0x20);
    v[2] = _mm256_permute2x128_si256(t0, t2, 0x31);
    v[3] = _mm256_permute2x128_si256(t1, t3, 0x31);
}

static void shuffle_4(uint8_t *dst, const uint8_t *src, size_t n)
{
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256i v[4];
        for (int k = 0; k < 4; k++)
            v[k] = LOAD(src + i * 4 + k * 32);
        planes_4(v);
        for (int k = 0; k < 4; k++)
            STORE(dst + (size_t)k * n + i, v[k]);
    }
    dr__shuffle_part(dst, src, i, n, 4);
}

static void unshuffle_4(uint8_t *dst, const uint8_t *src, size_t n)
{
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const __m256i p0 = LOAD(src + i), p1 = LOAD(src + n + i);
        const __m256i p2 = LOAD(src + 2 * n + i), p3 = LOAD(src + 3 * n + i);
        const __m256i l01 = _mm256_unpacklo_epi8(p0, p1), h01 = _mm256_unpackhi_epi8(p0, p1);
        const __m256i l23 = _mm256_unpacklo_epi8(p2, p3), h23 = _mm256_unpackhi_epi8(p2, p3);
        const __m256i a = _mm256_unpacklo_epi16(l01, l23), b = _mm256_unpackhi_epi16(l01, l23);
        const __m256i c = _mm256_unpacklo_epi16(h01, h23), d = _mm256_unpackhi_epi16(h01, h23);
        STORE(dst + i * 4, _mm256_permute2x128_si256(a, b, 0x20));
        STORE(dst + i * 4 + 32, _mm256_permute2x128_si256(c, d, 0x20));
        STORE(dst + i * 4 + 64, _mm256_permute2x128_si256(a, b, 0x31));
        STORE(dst + i * 4 + 96, _mm256_permute2x128_si256(c, d, 0x31));
    }
    dr__unshuffle_part(dst, src, i, n, 4);
}

/* The lower or upper four bytes of 8 elements of 8 bytes. */
static inline __m256i halves(const uint8_t *src, int upper)
{
    const __m256 a = _mm256_loadu_ps((const float *)(const void *)src);
    const __m256 b = _mm256_loadu_ps((const float *)(const void *)(src + 32));
    const __m256 picked = upper ? _mm256_shuffle_ps(a, b, 0xdd) : _mm256_shuffle_ps(a, b, 0x88);
    return _mm256_permute4x64_epi64(_mm256_castps_si256(picked), 0xd8);
}

static void shuffle_8(uint8_t *dst, const uint8_t *src, size_t n)
{
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        for (int upper = 0; upper < 2; upper++) {
            __m256i v[4];
            for (int k = 0; k < 4; k++)
                v[k] = halves(src + i * 8 + k * 64, upper);
            planes_4(v);
            for (int k = 0; k < 4; k++)
                STORE(dst + (size_t)(upper * 4 + k) * n + i, v[k]);
        }
    }
    dr__shuffle_part(dst, src, i, n, 8);
}

static void unshuffle_8(uint8_t *dst, const uint8_t *src, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m128i p[8];
        for (int k = 0; k < 8; k++)
            p[k] = _mm_loadu_si128((const __m128i *)(src + (size_t)k * n + i));
        for (int high = 0; high < 2; high++) { /* 8 elements each */
            __m128i b[4];
            for (int k = 0; k < 4; k++)
                b[k] = high ? _mm_unpackhi_epi8(p[2 * k], p[2 * k + 1]) : _mm_unpacklo_epi8(p[2 * k], p[2 * k + 1]);
            const __m128i w0 = _mm_unpacklo_epi16(b[0], b[1]), w1 = _mm_unpackhi_epi16(b[0], b[1]);
            const __m128i w2 = _mm_unpacklo_epi16(b[2], b[3]), w3 = _mm_unpackhi_epi16(b[2], b[3]);
            __m128i *out = (__m128i *)(dst + (i + (size_t)high * 8) * 8);
            _mm_storeu_si128(out, _mm_unpacklo_epi32(w0, w2));
            _mm_storeu_si128(out + 1, _mm_unpackhi_epi32(w0, w2));
            _mm_storeu_si128(out + 2, _mm_unpacklo_epi32(w1, w3));
            _mm_storeu_si128(out + 3, _mm_unpackhi_epi32(w1, w3));
        }
    }
    dr__unshuffle_part(dst, src, i, n, 8);
}

static void shuffle(uint8_t *dst, const uint8_t *src, size_t n, size_t size)
{
    switch (size) {
    case 2:
        shuffle_2(dst, src, n);
        break;
    case 4:
        shuffle_4(dst, src, n);
        break;
    case 8:
        shuffle_8(dst, src, n);
        break;
    default:
        dr__shuffle_part(dst, src, 0, n, size);
        break;
    }
}

static void unshuffle(uint8_t *dst, const uint8_t *src, size_t n, size_t size)
{
    switch (size) {
    case 2:
        unshuffle_2(dst, src, n);
        break;
    case 4:
        unshuffle_4(dst, src, n);
        break;
    case 8:
        unshuffle_8(dst, src, n);
        break;
    default:
        dr__unshuffle_part(dst, src, 0, n, size);
        break;
    }
}

void dr__shuffle_avx2(dr__codec_kernels *k)
{
    k->shuffle = shuffle;
    k->unshuffle = unshuffle;
}
