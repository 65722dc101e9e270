/* geometry.h: what the ops share that crop, pad and turn images: sizes, fill colours, borders. */
#ifndef DR_OP_IMAGE_GEOMETRY_H
#define DR_OP_IMAGE_GEOMETRY_H

#include "op/op.h"

enum { DR__PIXEL_MAX = DR_PARAM_LIST * 8 }; /* bytes of the largest pixel that can be filled */

/* A size setting: one number is a square, two are height and width. */
static inline int64_t dr__size_height(const dr_ints *size)
{
    return size->v[0];
}

static inline int64_t dr__size_width(const dr_ints *size)
{
    return size->v[size->n > 1];
}

static inline size_t dr__pixel_bytes(const dr_desc *d)
{
    return dr_dtype_size(d->dtype) * (size_t)dr__channels(d);
}

/* Writes one element.  Integers take the whole part, kept within their range; bool is "not zero". */
void dr__element_store(dr_dtype dtype, uint8_t *at, double value);

/* One pixel of d's type from a fill setting: one number for all channels or one for each; none, and masks always: 0.
 * Wrong counts are an error that names the op. */
dr_status dr__fill_pixel(const dr_reals *fill, const dr_desc *d, const char *op, uint8_t pixel[DR__PIXEL_MAX],
                         dr_error *err);

/* How an image goes on beyond its edge, as numpy.pad names it. */
typedef enum dr__border {
    DR__BORDER_CONSTANT = 0,
    DR__BORDER_EDGE,
    DR__BORDER_REFLECT,
    DR__BORDER_SYMMETRIC,
} dr__border;

extern const char *const dr__border_names[];

/* The sides of a padding setting in the order left, top, right, bottom: none, one for all, two for x and y, or four. */
dr_status dr__padding_sides(const dr_ints *padding, const char *op, int64_t sides[4], dr_error *err);

/* An error that names the op when negative sides cut the whole image away. */
dr_status dr__padding_fits(const dr_desc *in, const int64_t sides[4], const char *op, dr_error *err);

/* A canvas cut from an image that is continued beyond its edges: crop, pad, and both at once. */
typedef struct dr__placing {
    dr_rect from; /* the part of the image that counts; the border continues this part */
    int64_t x, y; /* the canvas's first pixel, relative to `from`; negative: in the border */
    dr__border border;
    uint8_t fill[DR__PIXEL_MAX];
} dr__placing;

/* The whole image, seen from its pixel (x, y). */
dr__placing dr__placing_at(const dr_desc *in, int64_t x, int64_t y);

/* The image with `sides` added (cut, where negative), seen from the padded image's pixel (x, y). */
dr__placing dr__placing_padded(const dr_desc *in, const int64_t sides[4], dr__border border, int64_t x, int64_t y);

/* Fills a whole output view. The input view may be a window that holds dr__place_region. */
void dr__place(const dr__placing *p, const dr_view *in, dr_view *out);

/* The same row by row; scratch has dr__place_scratch bytes. */
void dr__place_rows(const dr__placing *p, const dr_view *in, const dr_desc *out, uint8_t *scratch, dr__row_sink *sink);
size_t dr__place_scratch(const dr_desc *out); /* 0 while the size is not known */

/* The same from rows that are pushed (dr_op_def.feed): where the canvas lies inside the image, so that its rows are
 * those of the region. */
bool dr__place_feeds(const dr__placing *p, int64_t width, int64_t height);
struct dr__bands *dr__place_feed(uint8_t *scratch, dr__row_sink *sink);

/* The part of the image that a canvas of that size reads; at least one pixel. */
dr_rect dr__place_region(const dr__placing *p, int64_t width, int64_t height);

#endif
