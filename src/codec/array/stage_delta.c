/* stage_delta.c: differences of neighbours; of floats, those of their bits as integers. */
#include "codec/array/array_stage.h"
#include "kernel/codec_kernel.h"

static bool takes(dr__elem in)
{
    return in.size != 3;
}

static dr__elem makes(dr__elem in)
{
    return (dr__elem){ DR__ELEM_UINT, in.size };
}

static size_t bound(size_t n, dr__elem in)
{
    return n * in.size;
}

static size_t encode(const uint8_t *data, size_t n, dr__elem in, uint8_t *out, dr__stage_note *note)
{
    (void)note;
    dr__codec_kernels_best()->delta(out, data, n, in.size);
    return n * in.size;
}

static bool decode(const uint8_t *data, size_t size, uint8_t *out, size_t n, dr__elem in)
{
    if (size != n * in.size)
        return false;
    dr__codec_kernels_best()->undelta(out, data, n, in.size);
    return true;
}

const dr__array_stage dr__stage_delta = {
    .name = "delta",
    .summary = "differences of neighbours: for numbers that change little",
    .wire_id = DR__STAGE_DELTA,
    .kind = DR__STAGE_FILTER,
    .fixed = true,
    .ratio = 1,
    .takes = takes,
    .makes = makes,
    .bound = bound,
    .encode = encode,
    .decode = decode,
};
