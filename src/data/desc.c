/* desc.c: descriptions of arrays: sizes, comparisons, texts, checks. */
#include "data/desc.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

size_t dr_dtype_size(dr_dtype dtype)
{
    switch (dtype) {
#define DR_DTYPE_CASE(name, value, bytes, text)                                                                        \
    case DR_##name:                                                                                                    \
        return bytes;
        DR_DTYPE_MAP(DR_DTYPE_CASE)
#undef DR_DTYPE_CASE
    }
    return 0;
}

const char *dr_dtype_name(dr_dtype dtype)
{
    switch (dtype) {
#define DR_DTYPE_CASE(name, value, bytes, text)                                                                        \
    case DR_##name:                                                                                                    \
        return text;
        DR_DTYPE_MAP(DR_DTYPE_CASE)
#undef DR_DTYPE_CASE
    }
    return "?";
}

dr_dtype dr_dtype_parse(const char *name)
{
#define DR_DTYPE_TEST(id, value, bytes, text)                                                                          \
    if (!strcmp(name, text))                                                                                           \
        return DR_##id;
    DR_DTYPE_MAP(DR_DTYPE_TEST)
#undef DR_DTYPE_TEST
    return (dr_dtype)0;
}

dr_desc dr__desc_image(dr_dtype dtype, int64_t height, int64_t width, int64_t channels)
{
    return (dr_desc){
        .kind = DR_KIND_IMAGE,
        .dtype = dtype,
        .layout = DR_LAYOUT_HWC,
        .n_dims = 3,
        .dims = { height, width, channels },
    };
}

dr_desc dr__desc_volume(dr_dtype dtype, const int64_t dims[4])
{
    return (dr_desc){
        .kind = DR_KIND_VOLUME,
        .dtype = dtype,
        .n_dims = 4,
        .dims = { dims[0], dims[1], dims[2], dims[3] },
    };
}

dr_desc dr__desc_bytes(int64_t size)
{
    return (dr_desc){ .kind = DR_KIND_BYTES, .dtype = DR_U8, .n_dims = 1, .dims = { size } };
}

dr_desc dr__desc_text(int64_t size)
{
    return (dr_desc){ .kind = DR_KIND_TEXT, .dtype = DR_U8, .n_dims = 1, .dims = { size } };
}

dr_desc dr__desc_scalar(dr_dtype dtype)
{
    return (dr_desc){ .kind = DR_KIND_ARRAY, .dtype = dtype };
}

dr_desc dr__desc_resized(const dr_desc *d, int64_t height, int64_t width)
{
    dr_desc out = *d;
    int first = d->layout == DR_LAYOUT_CHW ? 1 : 0;
    out.dims[first] = height;
    out.dims[first + 1] = width;
    return out;
}

bool dr__desc_known(const dr_desc *d)
{
    for (int i = 0; i < d->n_dims; i++)
        if (d->dims[i] < 0)
            return false;
    return true;
}

bool dr__desc_equal(const dr_desc *a, const dr_desc *b)
{
    if (a->kind != b->kind || a->dtype != b->dtype || a->layout != b->layout || a->n_dims != b->n_dims)
        return false;
    for (int i = 0; i < a->n_dims; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    return a->device.type == b->device.type && a->device.id == b->device.id;
}

bool dr__desc_bytes_dense(const dr_desc *d, size_t *bytes)
{
    size_t n = dr_dtype_size(d->dtype);
    for (int i = 0; i < d->n_dims; i++)
        if (d->dims[i] < 0 || !dr__mul_size(n, (size_t)d->dims[i], &n))
            return false;
    *bytes = n;
    return true;
}

size_t dr__row_bytes(const dr_desc *d)
{
    size_t n = dr_dtype_size(d->dtype) * (size_t)dr__width(d);
    return d->layout == DR_LAYOUT_CHW ? n : n * (size_t)dr__channels(d);
}

const char *dr__desc_text_of(const dr_desc *d, char *text, size_t size)
{
    static const char *const kinds[] = {
        [DR_KIND_ARRAY] = "",
        [DR_KIND_IMAGE] = "image ",
        [DR_KIND_MASK] = "mask ",
        [DR_KIND_BOXES] = "boxes ",
        [DR_KIND_BYTES] = "bytes ",
        [DR_KIND_TEXT] = "text ",
        [DR_KIND_VOLUME] = "volume ",
        [DR_KIND_VOLUME_MASK] = "volume mask ",
        [DR_KIND_KEYPOINTS] = "keypoints ",
        [DR_KIND_LABELS] = "labels ",
        [DR_KIND_MASKS] = "masks ",
    };
    static const char *const layouts[] = { "", "HWC ", "CHW " };
    int n = snprintf(text, size, "%s%s %s(", kinds[d->kind], dr_dtype_name(d->dtype), layouts[d->layout]);
    for (int i = 0; i < d->n_dims && n >= 0 && (size_t)n < size; i++) {
        const char *gap = i ? ", " : "";
        if (d->dims[i] < 0)
            n += snprintf(text + n, size - (size_t)n, "%s?", gap);
        else
            n += snprintf(text + n, size - (size_t)n, "%s%lld", gap, (long long)d->dims[i]);
    }
    if (n >= 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, ")");
    return text;
}

dr_view dr__view_dense(const dr_desc *d, void *data)
{
    dr_view v = { .data = data, .desc = *d };
    if (dr__is_image(d)) {
        v.stride = (ptrdiff_t)dr__row_bytes(d);
        v.window = (dr_rect){ 0, 0, dr__width(d), dr__height(d) };
    }
    return v;
}

void dr__view_copy(dr_view *out, const dr_view *in)
{
    size_t bytes = 0;
    if (!dr__is_image(&in->desc)) {
        if (dr__desc_bytes_dense(&in->desc, &bytes) && bytes)
            memcpy(out->data, in->data, bytes);
        return;
    }
    size_t row = dr__row_bytes(&in->desc);
    int64_t rows = dr__height(&in->desc);
    if (in->desc.layout == DR_LAYOUT_CHW)
        rows *= dr__channels(&in->desc);
    for (int64_t y = 0; y < rows; y++)
        memcpy(out->data + y * out->stride, in->data + y * in->stride, row);
}

dr_status dr__want_image(const dr_desc *in, unsigned types, const char *op, dr_error *err)
{
    char text[128];
    if (!dr__is_image(in) || in->layout != DR_LAYOUT_HWC)
        return dr__fail(err, DR_ERR_ARG, "%s: needs a decoded image (HWC), got %s%s", op,
                        dr__desc_text_of(in, text, sizeof text),
                        in->kind == DR_KIND_BYTES ? "; put decode before it" : "");
    if (!(types >> in->dtype & 1u))
        return dr__fail(err, DR_ERR_ARG, "%s: does not work on %s images%s", op, dr_dtype_name(in->dtype),
                        in->dtype != DR_U8 && types >> DR_U8 & 1u ? "; put it before normalize and to_dtype" : "");
    return DR_OK;
}

dr_status dr__want_volume(const dr_desc *in, unsigned types, const char *op, dr_error *err)
{
    char text[128];
    if (!dr__is_volume(in) || in->n_dims != 4)
        return dr__fail(err, DR_ERR_ARG, "%s: needs a decoded volume, got %s%s", op,
                        dr__desc_text_of(in, text, sizeof text),
                        in->kind == DR_KIND_BYTES ? "; put decode_volume before it" : "");
    if (!(types >> in->dtype & 1u))
        return dr__fail(err, DR_ERR_ARG, "%s: does not work on %s volumes", op, dr_dtype_name(in->dtype));
    return DR_OK;
}

dr_status dr__want_points(const dr_desc *in, const char *op, dr_error *err)
{
    char text[128];
    const int64_t last = in->n_dims > 0 ? in->dims[in->n_dims - 1] : 0;
    if (in->kind == DR_KIND_BOXES)
        return dr__want_boxes(in, op, err);
    if (in->kind != DR_KIND_KEYPOINTS || in->dtype != DR_F32 || (last != 2 && last != 3))
        return dr__fail(err, DR_ERR_ARG, "%s: needs key points as float32 (..., 2) or (..., 3), got %s", op,
                        dr__desc_text_of(in, text, sizeof text));
    return DR_OK;
}

dr_status dr__want_boxes(const dr_desc *in, const char *op, dr_error *err)
{
    char text[128];
    if (in->kind != DR_KIND_BOXES || in->dtype != DR_F32 || in->n_dims != 2 || in->dims[1] != 4)
        return dr__fail(err, DR_ERR_ARG, "%s: needs boxes as float32 (n, 4), got %s", op,
                        dr__desc_text_of(in, text, sizeof text));
    return DR_OK;
}
