/* stage_svb.c: StreamVByte: integers below 2^32 as 1 to 4 bytes.
 *
 * Two bits for each number, four numbers in a byte, say how many bytes it has, less 1; after all of these come the
 * bytes of the numbers.
 */
#include "codec/array/integers.h"

#include "base/compiler.h"
#include "kernel/codec_kernel.h"

enum { TILE = 1024 }; /* numbers decoded at a time; a multiple of 4 */

static bool takes(dr__elem in)
{
    return dr__is_integer(in) && in.size > 1;
}

static dr__elem makes(dr__elem in)
{
    (void)in;
    return DR__ELEM_BYTES;
}

static size_t bound(size_t n, dr__elem in)
{
    (void)in;
    return (n + 3) / 4 + 4 * n;
}

static size_t encode(const uint8_t *data, size_t n, dr__elem in, uint8_t *out, dr__stage_note *note)
{
    (void)note;
    const dr__elem as_unsigned = { DR__ELEM_UINT, in.size };
    uint8_t *at = out + (n + 3) / 4;
    memset(out, 0, (n + 3) / 4);
    for (size_t i = 0; i < n; i++) {
        const uint64_t x = dr__integer_at(data + i * in.size, as_unsigned);
        if (x > UINT32_MAX)
            return 0;
        const unsigned more = (x > 0xff) + (x > 0xffff) + (x > 0xffffff);
        out[i / 4] = (uint8_t)(out[i / 4] | more << i % 4 * 2);
        for (unsigned b = 0; b <= more; b++)
            *at++ = (uint8_t)(x >> 8 * b);
    }
    return (size_t)(at - out);
}

/* The bytes of n numbers. */
static size_t data_bytes(const uint8_t *control, size_t n)
{
    size_t sum = n;
    for (size_t i = 0; i < n / 4; i++) {
        const unsigned c = control[i];
        sum += (c & 3) + (c >> 2 & 3) + (c >> 4 & 3) + (c >> 6);
    }
    for (size_t i = n / 4 * 4; i < n; i++)
        sum += control[i / 4] >> i % 4 * 2 & 3;
    return sum;
}

static bool decode(const uint8_t *data, size_t size, uint8_t *out, size_t n, dr__elem in)
{
    const size_t n_control = (n + 3) / 4;
    if (size < n_control || size - n_control != data_bytes(data, n))
        return false;
    const uint8_t *at = data + n_control, *end = data + size;
    const dr__codec_kernels *k = dr__codec_kernels_best();
    uint32_t x[TILE];
    for (size_t i = 0; i < n; i += TILE) {
        const size_t m = DR_MIN(n - i, (size_t)TILE);
        k->svb_decode(x, data + i / 4, at, end, m);
        at += data_bytes(data + i / 4, m);
        dr__integers_put(out + i * in.size, x, m, in.size, 0);
    }
    return true;
}

const dr__array_stage dr__stage_svb = {
    .name = "svb",
    .summary = "StreamVByte: integers below 2^32 as 1 to 4 bytes",
    .wire_id = DR__STAGE_SVB,
    .kind = DR__STAGE_TOKEN,
    .ratio = 7, /* five bytes for four numbers of 8 */
    .takes = takes,
    .makes = makes,
    .bound = bound,
    .encode = encode,
    .decode = decode,
};
