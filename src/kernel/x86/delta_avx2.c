/* delta_avx2.c: differences and their sums for elements of 4 bytes; C serves the other sizes. */
#include "kernel/codec_kernel.h"

#include <immintrin.h>
#include <string.h>

static void delta_4(uint8_t *dst, const uint8_t *src, size_t n)
{
    size_t i = n ? 1 : 0;
    if (n)
        dr__delta_scalar(dst, src, 1, 4);
    for (; i + 8 <= n; i += 8) {
        const __m256i x = _mm256_loadu_si256((const __m256i *)(src + i * 4));
        const __m256i d = _mm256_sub_epi32(x, _mm256_loadu_si256((const __m256i *)(src + i * 4 - 4)));
        const __m256i z = _mm256_xor_si256(_mm256_add_epi32(d, d), _mm256_srai_epi32(d, 31));
        _mm256_storeu_si256((__m256i *)(dst + i * 4), z);
    }
    for (; i < n; i++) {
        uint32_t x, last;
        memcpy(&x, src + i * 4, 4);
        memcpy(&last, src + i * 4 - 4, 4);
        const uint32_t d = x - last, z = d << 1 ^ (0 - (d >> 31));
        memcpy(dst + i * 4, &z, 4);
    }
}

static void undelta_4(uint8_t *dst, const uint8_t *src, size_t n)
{
    __m256i last = _mm256_setzero_si256();
    const __m256i one = _mm256_set1_epi32(1), end = _mm256_set1_epi32(7);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256i z = _mm256_loadu_si256((const __m256i *)(src + i * 4));
        const __m256i sign = _mm256_sub_epi32(_mm256_setzero_si256(), _mm256_and_si256(z, one));
        __m256i x = _mm256_xor_si256(_mm256_srli_epi32(z, 1), sign);
        x = _mm256_add_epi32(x, _mm256_slli_si256(x, 4));
        x = _mm256_add_epi32(x, _mm256_slli_si256(x, 8));
        /* The lower half's sum, 0 below, is added to the upper half. */
        const __m256i carry = _mm256_shuffle_epi32(_mm256_permute2x128_si256(x, x, 0x08), 0xff);
        x = _mm256_add_epi32(_mm256_add_epi32(x, carry), last);
        _mm256_storeu_si256((__m256i *)(dst + i * 4), x);
        last = _mm256_permutevar8x32_epi32(x, end);
    }
    uint32_t sum = (uint32_t)_mm256_extract_epi32(last, 0);
    for (; i < n; i++) {
        uint32_t z;
        memcpy(&z, src + i * 4, 4);
        sum += z >> 1 ^ (0 - (z & 1));
        memcpy(dst + i * 4, &sum, 4);
    }
}

static void delta(uint8_t *dst, const uint8_t *src, size_t n, size_t size)
{
    if (size == 4)
        delta_4(dst, src, n);
    else
        dr__delta_scalar(dst, src, n, size);
}

static void undelta(uint8_t *dst, const uint8_t *src, size_t n, size_t size)
{
    if (size == 4)
        undelta_4(dst, src, n);
    else
        dr__undelta_scalar(dst, src, n, size);
}

void dr__delta_avx2(dr__codec_kernels *k)
{
    k->delta = delta;
    k->undelta = undelta;
}
