/* boxes.h: rectangles that go with an image: x0, y0, x1, y1 in its pixels, float32, as torchvision's XYXY.
 *
 * An op that moves pixels moves boxes alike when both are among its node's fields.  Boxes do not know the size of their
 * image: they look at it.
 */
#ifndef DR_OP_BOX_BOXES_H
#define DR_OP_BOX_BOXES_H

#include "op/op.h"

/* The first image among the node's fields; NULL: there is none. */
const dr_desc *dr__boxes_image(const dr_task *task);

/* Likewise; an error that names the op where there is none. */
dr_status dr__boxes_frame(const dr_task *task, const char *op, const dr_desc **frame);

/* The first boxes among the node's fields; likewise, and where they have no data yet. */
dr_status dr__boxes_among(const dr_task *task, const char *op, const dr_view **boxes);

/* For plan: boxes keep their description.  For ops that also treat images. */
dr_status dr__boxes_plan(const dr_desc *in, const char *op, dr_plan *out, dr_error *err);

/* Each coordinate times a ratio of the width or height, or moved. */
void dr__boxes_scale(const dr_view *in, dr_view *out, double x, double y);
void dr__boxes_shift(const dr_view *in, dr_view *out, double x, double y);

/* For run: mirrored within their image (top to bottom where `upright`), or as they are; edges change places, so that
 * x0 <= x1 stays true. */
dr_status dr__boxes_flip(const dr_task *task, const char *op, bool mirror, bool upright, const dr_view *in,
                         dr_view *out);

/* Seen from the corner of a part of the image, and cut off where that ends. */
void dr__boxes_crop(const dr_view *in, dr_view *out, const dr_rect *part);

/* What lies outside a size is cut off, in place. */
void dr__boxes_clamp(dr_view *boxes, int64_t width, int64_t height);

#endif
