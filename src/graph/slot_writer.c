/* slot_writer.c: writes rows through look-up tables, and copies arrays with a change of layout. */
#include "graph/slot_writer.h"

#include <string.h>

static void store_planar(dr__slot_writer *s, int64_t y, const uint8_t *row, size_t w, int c)
{
    const dr_desc *d = &s->out.desc;
    ptrdiff_t plane = (ptrdiff_t)(d->dims[1] * d->dims[2]);
    size_t at = (size_t)y * w;
    switch (d->dtype) {
    case DR_F32:
        s->k->lut_planar_f32((float *)s->out.data + at, plane, row, w, c, s->mirror, &s->tail->lut);
        break;
    case DR_U8:
        s->k->lut_planar_u8(s->out.data + at, plane, row, w, c, s->mirror, s->tail->has_lut ? s->tail->lut8 : NULL);
        break;
    default:
        s->k->lut_planar_u16((uint16_t *)s->out.data + at, plane, row, w, c, s->mirror, &s->tail->lut16);
        break;
    }
}

static void store_packed(dr__slot_writer *s, int64_t y, const uint8_t *row, size_t w, int c)
{
    size_t at = (size_t)y * w * (size_t)c;
    switch (s->out.desc.dtype) {
    case DR_F32:
        s->k->lut_packed_f32((float *)s->out.data + at, row, w, c, s->mirror, s->tail->lut.value);
        break;
    case DR_U8:
        /* Packed bytes with a table are rare and have no kernel: mirror or copy, then look up. */
        if (s->mirror)
            s->k->hflip_row(s->out.data + at, row, w, (size_t)c);
        else
            memcpy(s->out.data + at, row, w * (size_t)c);
        for (size_t i = 0; s->tail->has_lut && i < w * (size_t)c; i++)
            s->out.data[at + i] = s->tail->lut8[i % (size_t)c * 256 + s->out.data[at + i]];
        break;
    default:
        s->k->lut_packed_u16((uint16_t *)s->out.data + at, row, w, c, s->mirror, s->tail->lut16.value);
        break;
    }
}

static void store_row(dr__row_sink *rows, int64_t y, const uint8_t *row)
{
    dr__slot_writer *s = (dr__slot_writer *)rows;
    size_t w = (size_t)dr__width(&s->out.desc);
    int c = (int)dr__channels(&s->out.desc);
    if (s->out.desc.layout == DR_LAYOUT_CHW)
        store_planar(s, y, row, w, c);
    else
        store_packed(s, y, row, w, c);
}

void dr__slot_open(dr__slot_writer *sink, const dr__kernels *k, const dr__tail *tail, bool mirror, const dr_view *out)
{
    *sink = (dr__slot_writer){ .rows = { store_row }, .k = k, .tail = tail, .mirror = mirror, .out = *out };
}

void dr__slot_write_image(dr__slot_writer *sink, const dr_view *image)
{
    for (int64_t y = 0; y < dr__height(&image->desc); y++)
        store_row(&sink->rows, y, image->data + y * image->stride);
}

static void split_row_32(uint32_t *dst, size_t plane, const uint32_t *src, size_t w, size_t c)
{
    for (size_t k = 0; k < c; k++)
        for (size_t x = 0; x < w; x++)
            dst[k * plane + x] = src[x * c + k];
}

/* Splits one row of pixels of any type into planes, `plane` bytes apart. */
static void split_row(uint8_t *dst, size_t plane, const uint8_t *src, size_t w, size_t c, size_t element)
{
    if (element == 4) {
        split_row_32((uint32_t *)dst, plane / 4, (const uint32_t *)src, w, c);
        return;
    }
    for (size_t k = 0; k < c; k++)
        for (size_t x = 0; x < w; x++)
            memcpy(dst + k * plane + x * element, src + (x * c + k) * element, element);
}

void dr__slot_write_array(const dr__kernels *k, const dr_view *in, dr_view *out)
{
    if (out->desc.layout != DR_LAYOUT_CHW || in->desc.layout != DR_LAYOUT_HWC) {
        dr__view_copy(out, in);
        return;
    }
    size_t w = (size_t)dr__width(&in->desc), h = (size_t)dr__height(&in->desc), c = (size_t)dr__channels(&in->desc);
    size_t element = dr_dtype_size(in->desc.dtype), plane = w * h * element;
    for (size_t y = 0; y < h; y++) {
        const uint8_t *row = in->data + (ptrdiff_t)y * in->stride;
        if (element == 1 && c <= 4)
            k->lut_planar_u8(out->data + y * w, (ptrdiff_t)(w * h), row, w, (int)c, 0, NULL);
        else
            split_row(out->data + y * w * element, plane, row, w, c, element);
    }
}
