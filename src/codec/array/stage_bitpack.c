/* stage_bitpack.c: integers in as few bits as the largest of 256 neighbours needs.
 *
 * Each group of 256 numbers is one byte `head`, then
 *   0 .. 32     numbers of so many bits
 *   64 .. 96    the base, as one element, and what is to be added to it, of head - 64 bits
 *   255         the elements as they are, because they differ by 2^32 or more
 * The bits of a full group are in the layout of dr__codec_kernels.pack; those of the last one, if it has fewer numbers,
 * follow each other, lowest first, up to a whole byte.
 */
#include "codec/array/integers.h"

#include "base/compiler.h"
#include "kernel/codec_kernel.h"

enum { GROUP = DR__PACK_GROUP, WITH_BASE = 64, AS_THEY_ARE = 255 };

static bool takes(dr__elem in)
{
    return dr__is_integer(in);
}

static dr__elem makes(dr__elem in)
{
    (void)in;
    return DR__ELEM_BYTES;
}

static size_t n_groups(size_t n)
{
    return n / GROUP + (n % GROUP != 0);
}

static size_t bound(size_t n, dr__elem in)
{
    return n * in.size + n_groups(n) * (1u + in.size) + (in.size < 4 ? GROUP : 0);
}

static unsigned bits_of(uint64_t x)
{
    unsigned bits = 0;
    for (unsigned step = 32; step; step /= 2)
        if (x >> step) {
            bits += step;
            x >>= step;
        }
    return bits + (unsigned)x;
}

static size_t packed_bytes(size_t n, unsigned width)
{
    return n == GROUP ? (size_t)width * (GROUP / 8) : (n * width + 7) / 8;
}

/* Numbers one after the other, at most 255 of them. */
static void pack_few(uint8_t *out, const uint32_t *x, size_t n, unsigned width)
{
    uint64_t bits = 0;
    unsigned fill = 0;
    for (size_t i = 0; i < n; i++) {
        bits |= (uint64_t)x[i] << fill;
        for (fill += width; fill >= 8; fill -= 8, bits >>= 8)
            *out++ = (uint8_t)bits;
    }
    if (fill)
        *out = (uint8_t)bits;
}

static void unpack_few(uint32_t *x, const uint8_t *data, size_t n, unsigned width)
{
    const uint64_t mask = ((uint64_t)1 << width) - 1;
    uint64_t bits = 0;
    unsigned fill = 0;
    for (size_t i = 0; i < n; i++) {
        for (; fill < width; fill += 8)
            bits |= (uint64_t)*data++ << fill;
        x[i] = (uint32_t)(bits & mask);
        bits >>= width;
        fill -= width;
    }
}

/* The least and the largest of a group; signed elements are compared as such. */
static void range_of(const uint8_t *data, size_t n, dr__elem in, uint64_t *least, uint64_t *most)
{
    const uint64_t turn = in.kind == DR__ELEM_INT ? (uint64_t)1 << 63 : 0; /* makes the order that of unsigned ones */
    uint64_t low = UINT64_MAX, high = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t x = dr__integer_at(data + i * in.size, in) ^ turn;
        low = DR_MIN(low, x);
        high = DR_MAX(high, x);
    }
    *least = low ^ turn;
    *most = high ^ turn;
}

static size_t encode_group(const uint8_t *data, size_t n, dr__elem in, uint8_t *out)
{
    uint64_t least, most;
    range_of(data, n, in, &least, &most);
    const uint64_t range = most - least;
    const bool is_small = least <= UINT32_MAX && most <= UINT32_MAX; /* and not negative, which is far above */
    if (range > UINT32_MAX) {
        *out = AS_THEY_ARE;
        memcpy(out + 1, data, n * in.size);
        return 1 + n * in.size;
    }
    unsigned width = bits_of(range);
    const bool based = !is_small || packed_bytes(n, bits_of(most)) > packed_bytes(n, width) + in.size;
    if (!based)
        width = bits_of(most);
    uint8_t *at = out;
    *at++ = (uint8_t)(width + (based ? WITH_BASE : 0));
    if (based) {
        memcpy(at, &least, in.size);
        at += in.size;
    }
    uint32_t x[GROUP];
    for (size_t i = 0; i < n; i++)
        x[i] = (uint32_t)(dr__integer_at(data + i * in.size, in) - (based ? least : 0));
    if (n == GROUP)
        dr__codec_kernels_best()->pack(at, x, width);
    else
        pack_few(at, x, n, width);
    return (size_t)(at - out) + packed_bytes(n, width);
}

static size_t encode(const uint8_t *data, size_t n, dr__elem in, uint8_t *out, dr__stage_note *note)
{
    (void)note;
    uint8_t *at = out;
    for (size_t i = 0; i < n; i += GROUP)
        at += encode_group(data + i * in.size, DR_MIN(n - i, (size_t)GROUP), in, at);
    return (size_t)(at - out);
}

/* Decodes a group; returns the bytes that it took, 0 where it does not fit. */
static size_t decode_group(const uint8_t *data, size_t size, uint8_t *out, size_t n, dr__elem in)
{
    const unsigned head = size ? *data : 0;
    if (size && head == AS_THEY_ARE && size > n * in.size) {
        memcpy(out, data + 1, n * in.size);
        return 1 + n * in.size;
    }
    const bool based = head >= WITH_BASE;
    const unsigned width = based ? head - WITH_BASE : head;
    const size_t begin = 1u + (based ? in.size : 0u);
    if (width > 32 || size < begin + packed_bytes(n, width))
        return 0;
    uint64_t base = 0;
    memcpy(&base, data + 1, begin - 1);
    uint32_t x[GROUP];
    if (n == GROUP)
        dr__codec_kernels_best()->unpack(x, data + begin, width, 0);
    else
        unpack_few(x, data + begin, n, width);
    dr__integers_put(out, x, n, in.size, base);
    return begin + packed_bytes(n, width);
}

static bool decode(const uint8_t *data, size_t size, uint8_t *out, size_t n, dr__elem in)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i += GROUP) {
        const size_t took = decode_group(data + at, size - at, out + i * in.size, DR_MIN(n - i, (size_t)GROUP), in);
        if (!took)
            return false;
        at += took;
    }
    return at == size;
}

const dr__array_stage dr__stage_bitpack = {
    .name = "bitpack",
    .summary = "integers in as few bits as 256 neighbours need, above the least of them",
    .wire_id = DR__STAGE_BITPACK,
    .kind = DR__STAGE_TOKEN,
    .ratio = GROUP * 8, /* equal numbers: one byte for a group */
    .takes = takes,
    .makes = makes,
    .bound = bound,
    .encode = encode,
    .decode = decode,
};
