/* bitpack_avx2.c: groups of 256 numbers, the eight lanes at once.  Shifts by 32 and more give 0. */
#include "kernel/codec_kernel.h"

#include <immintrin.h>

enum { ROWS = DR__PACK_GROUP / DR__PACK_LANES };

static void pack(uint8_t *dst, const uint32_t *src, unsigned width)
{
    __m256i word = _mm256_setzero_si256();
    unsigned fill = 0;
    for (unsigned i = 0; i < ROWS && width; i++) {
        const __m256i in = _mm256_loadu_si256((const __m256i *)(src + i * DR__PACK_LANES));
        word = _mm256_or_si256(word, _mm256_sll_epi32(in, _mm_cvtsi32_si128((int)fill)));
        fill += width;
        if (fill < 32)
            continue;
        _mm256_storeu_si256((__m256i *)dst, word);
        dst += sizeof word;
        fill -= 32;
        word = _mm256_srl_epi32(in, _mm_cvtsi32_si128(fill ? (int)(width - fill) : 32));
    }
}

static void unpack(uint32_t *dst, const uint8_t *src, unsigned width, uint32_t base)
{
    const __m256i mask = _mm256_set1_epi32((int)(width ? UINT32_MAX >> (32 - width) : 0));
    const __m256i add = _mm256_set1_epi32((int)base);
    __m256i word = _mm256_setzero_si256(); /* the words that the next row begins in */
    unsigned shift = 32, read = 0;         /* bits of them that were used; words read of each lane */
    for (unsigned i = 0; i < ROWS; i++) {
        __m256i x = _mm256_srl_epi32(word, _mm_cvtsi32_si128((int)shift));
        if (shift + width > 32) {
            word = _mm256_loadu_si256((const __m256i *)(src + read++ * sizeof word));
            x = _mm256_or_si256(x, _mm256_sll_epi32(word, _mm_cvtsi32_si128((int)(32 - shift))));
            shift -= 32;
        }
        shift += width;
        x = _mm256_add_epi32(_mm256_and_si256(x, mask), add);
        _mm256_storeu_si256((__m256i *)(dst + i * DR__PACK_LANES), x);
    }
}

void dr__bitpack_avx2(dr__codec_kernels *k)
{
    k->pack = pack;
    k->unpack = unpack;
}
