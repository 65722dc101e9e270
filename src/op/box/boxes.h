/* boxes.h: rectangles that go with an image: x0, y0, x1, y1 in its pixels, float32, as torchvision's XYXY; and key
 * points, x and y, and maybe a third number that stays as it is.
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

/* For plan: boxes and key points keep their description.  For ops that also treat images. */
dr_status dr__boxes_plan(const dr_desc *in, const char *op, dr_plan *out, dr_error *err);

/* Each coordinate times a ratio of the width or height, or moved. */
void dr__boxes_scale(const dr_view *in, dr_view *out, double x, double y);
void dr__boxes_shift(const dr_view *in, dr_view *out, double x, double y);

/* For run: mirrored within their image (top to bottom where `upright`), or as they are; edges of boxes change places,
 * so that x0 <= x1 stays true; key points tell the middles of pixels, as torchvision has it: x becomes width - 1 - x.
 */
dr_status dr__boxes_flip(const dr_task *task, const char *op, bool mirror, bool upright, const dr_view *in,
                         dr_view *out);

/* Seen from the corner of a part of the image; boxes are cut off where that ends. */
void dr__boxes_crop(const dr_view *in, dr_view *out, const dr_rect *part);

/* The smallest box around the corners that a map (dr__affine_forward) sends those of a box to; float32 as in torch. */
void dr__box_affine(const double m[6], const float in[4], float out[4]);
void dr__boxes_affine(const dr_view *in, dr_view *out, const double m[6]);

/* What boxes have outside a size is cut off, in place.  Key points stay. */
void dr__boxes_clamp(dr_view *boxes, int64_t width, int64_t height);

#endif
