/* voxels.c: helpers of the ops on volumes. */
#include "op/volume/voxels.h"

#include <string.h>

#include "op/image/numeric.h"

dr_status dr__volume_size(const dr_ints *size, int64_t out[3], const char *op, dr_error *err)
{
    if (size->n == 2)
        return dr__fail(err, DR_ERR_ARG, "%s: size must be one number, or depth, height and width, got two numbers",
                        op);
    for (int i = 0; i < 3; i++)
        out[i] = size->v[size->n == 3 ? i : 0];
    return DR_OK;
}

int64_t dr__channel_voxels(const dr_desc *d)
{
    return d->dims[1] * d->dims[2] * d->dims[3];
}

int64_t dr__voxels(const dr_desc *d)
{
    return d->dims[0] * dr__channel_voxels(d);
}

void dr__voxels_load(dr_dtype dtype, const uint8_t *src, float *dst, size_t n)
{
    if (dtype == DR_I8)
        for (size_t i = 0; i < n; i++)
            dst[i] = ((const int8_t *)src)[i];
    else if (dtype == DR_I16)
        for (size_t i = 0; i < n; i++)
            dst[i] = ((const int16_t *)src)[i];
    else if (dtype == DR_I32)
        for (size_t i = 0; i < n; i++)
            dst[i] = (float)((const int32_t *)src)[i];
    else
        dr__floats_load(dtype, src, dst, n);
}

dr_desc dr__volume_resized(const dr_desc *d, const int64_t size[3])
{
    dr_desc out = *d;
    for (int i = 0; i < 3; i++)
        out.dims[1 + i] = size[i];
    return out;
}

void dr__volume_cut(const dr_view *in, const int64_t at[3], dr_view *out)
{
    const int64_t *from = in->desc.dims, *to = out->desc.dims;
    size_t element = dr_dtype_size(in->desc.dtype), row = (size_t)to[3] * element;
    uint8_t *dst = out->data;
    for (int64_t c = 0; c < to[0]; c++)
        for (int64_t z = 0; z < to[1]; z++)
            for (int64_t y = 0; y < to[2]; y++, dst += row) {
                int64_t start = ((c * from[1] + at[0] + z) * from[2] + at[1] + y) * from[3] + at[2];
                memcpy(dst, in->data + (size_t)start * element, row);
            }
}

bool dr__passes_masks(const dr_desc *in)
{
    return in->kind == DR_KIND_VOLUME_MASK;
}
