/* numeric.c: element types to float32 and back. */
#include "op/image/numeric.h"

#include <string.h>

#include "kernel/half.h"

static float f32_of_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static float f32_of_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = h >> 10 & 0x1fu, fraction = h & 0x3ffu;
    if (exponent == 31)
        return f32_of_bits(sign | 0x7f800000u | fraction << 13);
    if (exponent)
        return f32_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
    float small = (float)fraction * (1.0f / 16777216.0f); /* subnormal: units of 2^-24, exact */
    return sign ? -small : small;
}

static uint16_t load16(const uint8_t *at)
{
    uint16_t v;
    memcpy(&v, at, sizeof v);
    return v;
}

static float load_one(dr_dtype dtype, const uint8_t *at)
{
    float v;
    switch (dtype) {
    case DR_U8:
        return at[0];
    case DR_U16:
        return load16(at);
    case DR_F16:
        return f32_of_f16(load16(at));
    case DR_BF16:
        return f32_of_bits((uint32_t)load16(at) << 16);
    default:
        memcpy(&v, at, sizeof v);
        return v;
    }
}

static unsigned whole(float v, float most)
{
    return (unsigned)(v > 0.0f ? (v < most ? v : most) : 0.0f);
}

static void store_one(dr_dtype dtype, uint8_t *at, float v)
{
    uint16_t v16;
    switch (dtype) {
    case DR_U8:
        at[0] = (uint8_t)whole(v, 255);
        return;
    case DR_U16:
        v16 = (uint16_t)whole(v, 65535);
        break;
    case DR_F16:
        v16 = dr__f32_to_f16(v);
        break;
    case DR_BF16:
        v16 = dr__f32_to_bf16(v);
        break;
    default:
        memcpy(at, &v, sizeof v);
        return;
    }
    memcpy(at, &v16, sizeof v16);
}

void dr__floats_load(dr_dtype dtype, const uint8_t *src, float *dst, size_t n)
{
    size_t size = dr_dtype_size(dtype);
    for (size_t i = 0; i < n; i++)
        dst[i] = load_one(dtype, src + i * size);
}

void dr__floats_store(dr_dtype dtype, uint8_t *dst, const float *src, size_t n)
{
    size_t size = dr_dtype_size(dtype);
    for (size_t i = 0; i < n; i++)
        store_one(dtype, dst + i * size, src[i]);
}

float dr__float_as(dr_dtype dtype, float v)
{
    uint8_t held[4];
    store_one(dtype, held, v);
    return load_one(dtype, held);
}

enum { CHUNK = 256, MAX_TABLE = 4 };

static void map_row(const dr_desc *from, const uint8_t *src, const dr_desc *to, uint8_t *dst, dr__value_fn f,
                    const void *how)
{
    size_t n = (size_t)(dr__width(from) * dr__channels(from)), in_size = dr_dtype_size(from->dtype);
    int channels = (int)dr__channels(from), k = 0;
    float v[CHUNK];
    for (size_t i = 0; i < n; i += CHUNK) {
        size_t m = DR_MIN(n - i, (size_t)CHUNK);
        dr__floats_load(from->dtype, src + i * in_size, v, m);
        for (size_t j = 0; j < m; j++, k = k + 1 == channels ? 0 : k + 1)
            v[j] = f(how, k, v[j]);
        dr__floats_store(to->dtype, dst + i * dr_dtype_size(to->dtype), v, m);
    }
}

/* 8-bit values are few: each channel's 256 results are computed once. */
static void map_bytes(const dr__kernels *k, const dr_view *in, dr_view *out, dr__value_fn f, const void *how)
{
    int channels = (int)dr__channels(&in->desc);
    float table[MAX_TABLE * 256];
    uint16_t table16[MAX_TABLE * 256];
    for (int i = 0; i < channels * 256; i++)
        table[i] = f(how, i / 256, (float)(i & 255));
    dr__floats_store(out->desc.dtype, (uint8_t *)table16, table,
                     (size_t)(out->desc.dtype == DR_F32 ? 0 : channels * 256));
    size_t w = (size_t)dr__width(&in->desc);
    for (int64_t y = 0; y < dr__height(&in->desc); y++) {
        const uint8_t *src = in->data + y * in->stride;
        uint8_t *dst = out->data + y * out->stride;
        if (out->desc.dtype == DR_F32)
            k->lut_packed_f32((float *)dst, src, w, channels, 0, table);
        else
            k->lut_packed_u16((uint16_t *)dst, src, w, channels, 0, table16);
    }
}

static bool suits_table(const dr_view *in, const dr_view *out)
{
    return in->desc.dtype == DR_U8 && dr_dtype_size(out->desc.dtype) > 1 && dr__channels(&in->desc) <= MAX_TABLE &&
           dr__width(&in->desc) * dr__height(&in->desc) > 256;
}

void dr__map_values(const dr__kernels *k, const dr_view *in, dr_view *out, dr__value_fn f, const void *how)
{
    if (suits_table(in, out)) {
        map_bytes(k, in, out, f, how);
        return;
    }
    for (int64_t y = 0; y < dr__height(&in->desc); y++)
        map_row(&in->desc, in->data + y * in->stride, &out->desc, out->data + y * out->stride, f, how);
}
