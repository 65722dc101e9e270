/* svb_avx2.c: StreamVByte: four numbers for each control byte, by one byte shuffle. */
#include "kernel/codec_kernel.h"

#include <immintrin.h>

/* The bytes of number i of control byte c: how many, where they begin, and byte j of it (0xff: a zero). */
#define BYTES(c, i) ((((c) >> 2 * (i)) & 3) + 1)
#define BEGIN_1(c) BYTES(c, 0)
#define BEGIN_2(c) (BEGIN_1(c) + BYTES(c, 1))
#define BEGIN_3(c) (BEGIN_2(c) + BYTES(c, 2))
#define PLACE(c, i, begin, j) (uint8_t)((j) < BYTES(c, i) ? (begin) + (j) : 0xff)
#define NUMBER(c, i, begin) PLACE(c, i, begin, 0), PLACE(c, i, begin, 1), PLACE(c, i, begin, 2), PLACE(c, i, begin, 3)
#define ROW(c)                                                                                                         \
    {                                                                                                                  \
        NUMBER(c, 0, 0), NUMBER(c, 1, BEGIN_1(c)), NUMBER(c, 2, BEGIN_2(c)), NUMBER(c, 3, BEGIN_3(c))                  \
    }
#define ROWS_4(c) ROW(c), ROW((c) + 1), ROW((c) + 2), ROW((c) + 3)
#define ROWS_16(c) ROWS_4(c), ROWS_4((c) + 4), ROWS_4((c) + 8), ROWS_4((c) + 12)
#define ROWS_64(c) ROWS_16(c), ROWS_16((c) + 16), ROWS_16((c) + 32), ROWS_16((c) + 48)

static const uint8_t places[256][16] = { ROWS_64(0), ROWS_64(64), ROWS_64(128), ROWS_64(192) };

static void svb_decode(uint32_t *dst, const uint8_t *control, const uint8_t *data, const uint8_t *end, size_t n)
{
    size_t i = 0;
    for (; i + 4 <= n && end - data >= 16; i += 4) {
        const unsigned c = control[i / 4];
        const __m128i bytes = _mm_loadu_si128((const __m128i *)data);
        const __m128i place = _mm_loadu_si128((const __m128i *)places[c]);
        _mm_storeu_si128((__m128i *)(dst + i), _mm_shuffle_epi8(bytes, place));
        data += BEGIN_3(c) + BYTES(c, 3);
    }
    dr__svb_decode_scalar(dst, control, data, i, n);
}

void dr__svb_avx2(dr__codec_kernels *k)
{
    k->svb_decode = svb_decode;
}
