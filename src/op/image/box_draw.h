/* box_draw.h: the random rectangle of random_resized_crop and random_erasing. */
#ifndef DR_OP_IMAGE_BOX_DRAW_H
#define DR_OP_IMAGE_BOX_DRAW_H

#include "op/op.h"

/* The logarithms of a range of ratios, made once by init. */
typedef struct dr__box_range {
    double scale[2];
    double log_ratio[2];
} dr__box_range;

/* Both lists must be two positive numbers; else an error that names the op. */
dr_status dr__box_range_of(const dr_reals *scale, const dr_reals *ratio, const char *op, dr__box_range *range,
                           dr_error *err);

/* One try: sides of a rectangle whose area is a uniform part of width * height, and whose ratio a / b is log-uniform.
 * Rounded as Python rounds. */
void dr__box_draw(const dr__box_range *range, dr_rng *rng, int64_t width, int64_t height, int64_t *a, int64_t *b);

#endif
