/* desc.h: helpers for dr_desc and dr_view. */
#ifndef DR_DATA_DESC_H
#define DR_DATA_DESC_H

#include <stdbool.h>

#include <drapps/data.h>

#include "base/error.h"

/* Height, width and channels of an image or mask, whatever its layout; a 2-D array has one channel. */
static inline int64_t dr__height(const dr_desc *d)
{
    return d->layout == DR_LAYOUT_CHW ? d->dims[1] : d->dims[0];
}

static inline int64_t dr__width(const dr_desc *d)
{
    return d->layout == DR_LAYOUT_CHW ? d->dims[2] : d->dims[1];
}

static inline int64_t dr__channels(const dr_desc *d)
{
    if (d->n_dims < 3)
        return 1;
    return d->layout == DR_LAYOUT_CHW ? d->dims[0] : d->dims[2];
}

static inline bool dr__is_image(const dr_desc *d)
{
    return d->kind == DR_KIND_IMAGE || d->kind == DR_KIND_MASK;
}

static inline bool dr__is_volume(const dr_desc *d)
{
    return d->kind == DR_KIND_VOLUME || d->kind == DR_KIND_VOLUME_MASK;
}

/* Descriptions of a volume (spacing not known), an HWC image, bytes, a text, and a scalar. */
dr_desc dr__desc_volume(dr_dtype dtype, const int64_t dims[4]);
dr_desc dr__desc_image(dr_dtype dtype, int64_t height, int64_t width, int64_t channels);
dr_desc dr__desc_bytes(int64_t size);
dr_desc dr__desc_text(int64_t size);
dr_desc dr__desc_scalar(dr_dtype dtype);

/* The description of an image with another height and width. */
dr_desc dr__desc_resized(const dr_desc *d, int64_t height, int64_t width);

/* Whether all extents are known. */
bool dr__desc_known(const dr_desc *d);

bool dr__desc_equal(const dr_desc *a, const dr_desc *b);

/* Bytes of a dense array; false: they overflow or are not known. */
bool dr__desc_bytes_dense(const dr_desc *d, size_t *bytes);

/* Bytes of one row of an HWC image, one row of a plane of a CHW image. */
size_t dr__row_bytes(const dr_desc *d);

/* Writes "image uint8 HWC (480, 640, 3)", with "?" for unknown extents; returns text. */
const char *dr__desc_text_of(const dr_desc *d, char *text, size_t size);

/* A view of a whole dense array. */
dr_view dr__view_dense(const dr_desc *d, void *data);

/* Copies pixels (or bytes) between views of equal desc; both hold their whole arrays. */
void dr__view_copy(dr_view *out, const dr_view *in);

/* Checks of ops: fail with an error that names the op unless `in` is an HWC image or mask of one of `types` (a set of
 * 1 << dr_dtype). */
dr_status dr__want_image(const dr_desc *in, unsigned types, const char *op, dr_error *err);

/* The same for a volume or a volume mask. */
dr_status dr__want_volume(const dr_desc *in, unsigned types, const char *op, dr_error *err);

/* Whether `d` describes boxes or key points. */
static inline bool dr__is_points(const dr_desc *d)
{
    return d->kind == DR_KIND_BOXES || d->kind == DR_KIND_KEYPOINTS;
}

/* The same for boxes or key points: float32, x and y first in each row. */
dr_status dr__want_points(const dr_desc *in, const char *op, dr_error *err);

/* The same for boxes: float32, n x 4. */
dr_status dr__want_boxes(const dr_desc *in, const char *op, dr_error *err);

#endif
