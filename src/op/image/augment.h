/* augment.h: the primitives that auto_augment, rand_augment, trivial_augment_wide and aug_mix choose from.
 *
 * What is drawn is a list of steps: a primitive and its magnitude, sign included, in torchvision's units (a shear,
 * pixels, degrees, factor - 1, bits, part of 255).  The ops differ in how they draw it; all run it with dr__aug_run.
 */
#ifndef DR_OP_IMAGE_AUGMENT_H
#define DR_OP_IMAGE_AUGMENT_H

#include "op/image/turn.h"
#include "op/op.h"

/* Values are seen in draws: pinned. */
typedef enum dr__aug_id {
    DR__AUG_IDENTITY = 0,
    DR__AUG_SHEAR_X = 1,
    DR__AUG_SHEAR_Y = 2,
    DR__AUG_TRANSLATE_X = 3,
    DR__AUG_TRANSLATE_Y = 4,
    DR__AUG_ROTATE = 5,
    DR__AUG_BRIGHTNESS = 6,
    DR__AUG_COLOR = 7,
    DR__AUG_CONTRAST = 8,
    DR__AUG_SHARPNESS = 9,
    DR__AUG_POSTERIZE = 10,
    DR__AUG_SOLARIZE = 11,
    DR__AUG_AUTOCONTRAST = 12,
    DR__AUG_EQUALIZE = 13,
    DR__AUG_INVERT = 14,
    DR__AUG_N = 15,
} dr__aug_id;

/* How the magnitudes of a primitive are spread over bins 0 .. n-1. */
typedef enum dr__aug_spread {
    DR__SPREAD_NONE = 0, /* it has no magnitude: 0 */
    DR__SPREAD_LINEAR,   /* from lo to hi */
    DR__SPREAD_WIDTH,    /* from lo to hi, times the image's width */
    DR__SPREAD_HEIGHT,   /* likewise its height */
    DR__SPREAD_BITS,     /* whole numbers from lo down by hi */
} dr__aug_spread;

typedef struct dr__aug_range {
    dr__aug_id id;
    dr__aug_spread spread;
    double lo, hi;
    bool with_sign; /* negative half of the time */
} dr__aug_range;

/* The settings that the four ops share. */
typedef struct dr__aug_style {
    int interpolation; /* dr__affine_filter */
    dr_reals fill;     /* none: 0; one for all channels; or one for each */
} dr__aug_style;

#define DR__AUG_STYLE_PARAMS(type, filters, filter)                                                                    \
    { "interpolation",                                                                                                 \
      DR_P_ENUM,                                                                                                       \
      offsetof(type, style.interpolation),                                                                             \
      filter,                                                                                                          \
      0,                                                                                                               \
      0,                                                                                                               \
      0,                                                                                                               \
      0,                                                                                                               \
      filters,                                                                                                         \
      "how shears, shifts and turns sample the image" },                                                               \
    {                                                                                                                  \
        "fill", DR_P_REALS, offsetof(type, style.fill), "null", 0, 255, 0, 4, NULL,                                    \
            "value outside the image: one, or one for each channel; null: 0"                                           \
    }

/* What was drawn: equally long lists. */
typedef struct dr__aug_steps {
    dr_ints ops; /* dr__aug_id */
    dr_reals magnitudes;
} dr__aug_steps;

#define DR__AUG_STEP_DRAWS(type)                                                                                       \
    { "ops",                                                                                                           \
      DR_P_INTS,                                                                                                       \
      offsetof(type, steps.ops),                                                                                       \
      NULL,                                                                                                            \
      0,                                                                                                               \
      DR__AUG_N - 1,                                                                                                   \
      0,                                                                                                               \
      DR_PARAM_LIST,                                                                                                   \
      NULL,                                                                                                            \
      "0 identity, 1 shear x, 2 shear y, 3 translate x, 4 translate y, 5 rotate, 6 brightness, 7 color, 8 contrast, "  \
      "9 sharpness, 10 posterize, 11 solarize, 12 autocontrast, 13 equalize, 14 invert" },                             \
    {                                                                                                                  \
        "magnitudes", DR_P_REALS, offsetof(type, steps.magnitudes), NULL, -1e9, 1e9, 0, DR_PARAM_LIST, NULL,           \
            "of each of them, with its sign"                                                                           \
    }

/* Magnitude of bin i of n (n >= 2) for an image of that size, sign not counted. */
double dr__aug_magnitude(const dr__aug_range *range, int n_bins, int i, const dr_desc *in);

/* Appends a step: the magnitude of bin i with a drawn sign where the range has one. */
void dr__aug_push(dr__aug_steps *steps, const dr__aug_range *range, int n_bins, int i, const dr_desc *in, dr_rng *rng);

/* plan of all four: checks the input and the fill, asks for the scratch of dr__aug_run. */
dr_status dr__aug_plan(const dr__aug_style *style, const dr_desc *in, const char *op, dr_plan *out, dr_error *err);

/* Work units of all steps. */
double dr__aug_cost(const dr__aug_steps *steps, const dr_desc *in);

/* One way to compute the primitives: a function for each id. */
typedef void dr__aug_fn(const dr_task *task, const dr__aug_style *style, double magnitude, const dr_view *in,
                        dr_view *out);

extern dr__aug_fn *const dr__aug_pil[DR__AUG_N];    /* as torchvision on PIL images */
extern dr__aug_fn *const dr__aug_tensor[DR__AUG_N]; /* as torchvision on tensors; nearest or bilinear, no invert */

/* Does steps first .. first + n - 1 one after the other, from in to out, which do not overlap. */
void dr__aug_run(const dr_task *task, dr__aug_fn *const *fns, const dr__aug_style *style, const dr__aug_steps *steps,
                 int first, int n, const dr_view *in, dr_view *out);

/* cost and run of the ops that do all that was drawn, as torchvision on PIL images.  Their conf begins with
 * dr__aug_style, their par with dr__aug_steps. */
double dr__aug_list_cost(const void *conf, const void *par, const dr_desc *in);
dr_status dr__aug_list_run(dr_task *task, const void *par, const dr_view *in, dr_view *out);

#endif
