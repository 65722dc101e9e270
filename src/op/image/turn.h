/* turn.h: what random_rotation and random_affine share: settings of angles, filters, and rasters of views. */
#ifndef DR_OP_IMAGE_TURN_H
#define DR_OP_IMAGE_TURN_H

#include "kernel/affine.h"
#include "op/op.h"

/* The filters that PIL can sample with, in the order of dr__affine_filter. */
extern const char *const dr__turn_filters[];

/* A range of angles: one number d means -d to d. */
dr_status dr__angle_range(const dr_reals *setting, const char *name, const char *op, double range[2], dr_error *err);

/* x and y, or nothing. */
dr_status dr__check_center(const dr_reals *center, const char *op, dr_error *err);

/* A center setting as seen from the middle of the image: what torchvision's arithmetic on tensors takes. */
void dr__center_from_middle(const dr_reals *center, const dr_desc *in, double from_middle[2]);

/* uint8 images of 1, 3 or 4 channels; masks of any element type. */
dr_status dr__want_turnable(const dr_desc *in, const char *op, dr_error *err);

/* Masks are sampled by nearest neighbour, whatever is set. */
dr__affine_filter dr__turn_filter(int setting, const dr_desc *in);

/* About a nanosecond each: the work of sampling an image. */
double dr__turn_cost(int setting, const dr_desc *in);

static inline dr__raster dr__raster_of(const dr_view *v)
{
    return (dr__raster){ v->data, v->stride, dr__width(&v->desc), dr__height(&v->desc) };
}

#endif
