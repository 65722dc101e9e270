/* stage_shuffle.c: byte planes and bit planes of elements: the parts of numbers that are alike come together. */
#include <string.h>

#include "codec/array/array_stage.h"
#include "kernel/codec_kernel.h"

static bool takes_all(dr__elem in)
{
    return in.size > 0;
}

static dr__elem makes_bytes(dr__elem in)
{
    (void)in;
    return DR__ELEM_BYTES;
}

static size_t same_size(size_t n, dr__elem in)
{
    return n * in.size;
}

static size_t shuffle(const uint8_t *data, size_t n, dr__elem in, uint8_t *out, dr__stage_note *note)
{
    (void)note;
    if (in.size == 1)
        memcpy(out, data, n);
    else
        dr__codec_kernels_best()->shuffle(out, data, n, in.size);
    return n * in.size;
}

static bool unshuffle(const uint8_t *data, size_t size, uint8_t *out, size_t n, dr__elem in)
{
    if (size != n * in.size)
        return false;
    if (in.size == 1)
        memcpy(out, data, n);
    else
        dr__codec_kernels_best()->unshuffle(out, data, n, in.size);
    return true;
}

/* Up to seven elements at the end stay as they are. */
static size_t bitshuffle(const uint8_t *data, size_t n, dr__elem in, uint8_t *out, dr__stage_note *note)
{
    (void)note;
    const size_t whole = n / 8 * 8, bytes = whole * in.size;
    dr__codec_kernels_best()->bitshuffle(out, data, whole, in.size);
    memcpy(out + bytes, data + bytes, (n - whole) * in.size);
    return n * in.size;
}

static bool bitunshuffle(const uint8_t *data, size_t size, uint8_t *out, size_t n, dr__elem in)
{
    if (size != n * in.size)
        return false;
    const size_t whole = n / 8 * 8, bytes = whole * in.size;
    dr__codec_kernels_best()->bitunshuffle(out, data, whole, in.size);
    memcpy(out + bytes, data + bytes, (n - whole) * in.size);
    return true;
}

const dr__array_stage dr__stage_shuffle = {
    .name = "shuffle",
    .summary = "byte planes: the first bytes of all elements, then the second ones ...",
    .wire_id = DR__STAGE_SHUFFLE,
    .kind = DR__STAGE_FILTER,
    .fixed = true,
    .ratio = 1,
    .takes = takes_all,
    .makes = makes_bytes,
    .bound = same_size,
    .encode = shuffle,
    .decode = unshuffle,
};

const dr__array_stage dr__stage_bitshuffle = {
    .name = "bitshuffle",
    .summary = "bit planes: the lowest bits of all elements, then the next ones ...",
    .wire_id = DR__STAGE_BITSHUFFLE,
    .kind = DR__STAGE_FILTER,
    .fixed = true,
    .ratio = 1,
    .takes = takes_all,
    .makes = makes_bytes,
    .bound = same_size,
    .encode = bitshuffle,
    .decode = bitunshuffle,
};
