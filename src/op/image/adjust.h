/* adjust.h: the colour changes that ops are made of, with Pillow's arithmetic or torch's, on uint8 HWC images.
 *
 * Each reads `in` and writes `out` of the same shape (grey: its own number of channels).  They may be the same
 * memory, but for those of sharpness and grey.  task->scratch has dr__adjust_scratch bytes.  A fourth channel
 * is alpha and stays as it is.
 */
#ifndef DR_OP_IMAGE_ADJUST_H
#define DR_OP_IMAGE_ADJUST_H

#include "op/image/backend.h"
#include "op/op.h"

/* Scratch for any one of the functions below. */
size_t dr__adjust_scratch(const dr_desc *in);

/* A check for plan: uint8 HWC, and for images (masks pass) one of the channel counts in the set `channels` of
 * 1 << count.  Unknown channels pass. */
dr_status dr__want_colour(const dr_desc *in, unsigned channels, const char *op, dr_error *err);

/* plan of an op that keeps its input's shape: that check, and with dr__adjust_plan the scratch from above. */
dr_status dr__colour_plan(const dr_desc *in, unsigned channels, const char *op, dr_plan *out, dr_error *err);
dr_status dr__adjust_plan(const dr_desc *in, unsigned channels, const char *op, dr_plan *out, dr_error *err);

enum { DR__GREY = 1 << 1, DR__RGB = 1 << 3, DR__RGBA = 1 << 4 };

/* Blends with black, with the mean grey, with its own grey, with its smoothed self: 0 gives those, 1 the image. */
void dr__adjust_brightness(const dr_task *task, const dr_view *in, dr_view *out, double factor);
void dr__adjust_contrast(const dr_task *task, const dr_view *in, dr_view *out, double factor);
void dr__adjust_saturation(const dr_task *task, const dr_view *in, dr_view *out, double factor);
void dr__adjust_sharpness(const dr_task *task, const dr_view *in, dr_view *out, double factor);

/* Turns the hue by `factor` (-0.5 to 0.5) of the colour circle; 1 or 3 channels. */
void dr__adjust_hue(const dr_task *task, const dr_view *in, dr_view *out, double factor);

/* The same with the arithmetic of torchvision's v2 on tensors; 1 or 3 channels. */
void dr__tensor_brightness(const dr_task *task, const dr_view *in, dr_view *out, double factor);
void dr__tensor_contrast(const dr_task *task, const dr_view *in, dr_view *out, double factor);
void dr__tensor_saturation(const dr_task *task, const dr_view *in, dr_view *out, double factor);
void dr__tensor_sharpness(const dr_task *task, const dr_view *in, dr_view *out, double factor);
void dr__tensor_hue(const dr_task *task, const dr_view *in, dr_view *out, double factor);
void dr__tensor_autocontrast(const dr_task *task, const dr_view *in, dr_view *out);
void dr__tensor_grey(const dr_task *task, const dr_view *in, dr_view *out);

/* a * b + c rounded once, as torch's kernels do on machines that have such an instruction; for a and b whose product
 * has room in a double beside c. */
static inline float dr__fused(float a, float b, float c)
{
    return (float)((double)a * (double)b + (double)c);
}

/* Some of these one after the other, as the random ops do.  `parts` says which, in order; `factor` has one for each of
 * the four.  Masks are copied.  The cost is that of the parts, with `base` more to a byte. */
enum { DR__BRIGHTNESS, DR__CONTRAST, DR__SATURATION, DR__HUE, DR__COLOUR_PARTS };

void dr__adjust_parts(const dr_task *task, int backend, const dr_ints *parts, const double *factor, const dr_view *in,
                      dr_view *out);
double dr__adjust_cost(const dr_ints *parts, double base, const dr_desc *in);

/* How a par with `double factor[DR__COLOUR_PARTS]` shows one of them. */
#define DR__FACTOR_DRAW(type, name, part, what)                                                                        \
    {                                                                                                                  \
#name, DR_P_REAL, offsetof(type, factor[part]), NULL, -0.5, 1e6, 0, 0, NULL,                                   \
            what ", where it is among the parts"                                                                       \
    }

/* Tables for every value of a channel; 1 or 3 channels. */
void dr__tone_invert(const dr_task *task, const dr_view *in, dr_view *out);
void dr__tone_posterize(const dr_task *task, const dr_view *in, dr_view *out, int bits);
void dr__tone_solarize(const dr_task *task, const dr_view *in, dr_view *out, double threshold);
void dr__tone_autocontrast(const dr_task *task, const dr_view *in, dr_view *out);
void dr__tone_equalize(const dr_task *task, const dr_view *in, dr_view *out);

/* Luminance in each of out's channels (1 or 3, or 4 with in's alpha). */
void dr__to_grey(const dr_task *task, const dr_view *in, dr_view *out);

/* Every colour byte through one table of 256. */
void dr__tone_table(const dr_task *task, const dr_view *in, dr_view *out, const uint8_t *table);

/* A table made of each channel's histogram, and every byte through its channel's; 1 or 3 channels. */
void dr__tone_by_histogram(const dr_task *task, const dr_view *in, dr_view *out,
                           void (*build)(const uint32_t *hist, uint8_t *table));

/* n bytes of the middle row under Pillow's SMOOTH filter: 3 x 3 ones with a 5 in the middle, over 13.  The first and
 * the last pixel stay as they are. */
void dr__smooth_row(uint8_t *dst, const uint8_t *above, const uint8_t *row, const uint8_t *below, size_t n,
                    size_t pixel);

#endif
