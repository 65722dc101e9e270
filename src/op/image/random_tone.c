/* random_tone.c: seven ops that change the tones of an image with probability p, and hand it on as it is otherwise.
 *
 * They differ in a setting and in what they call; the number of channels stays. */
#include "op/image/adjust.h"
#include "op/image/maybe.h"
#include "op/op_defs.h"

/* Each op has p, and those of the others that its params name. */
struct conf {
    double p; /* first: dr__maybe_draw reads it */
    double sharpness_factor;
    double threshold;
    int64_t bits;
    int backend;
};

/* --- what is changed --- */

static bool on_tensors(const dr_task *task)
{
    return ((const struct conf *)task->conf)->backend == DR__BACKEND_TENSOR;
}

static void autocontrast(const dr_task *task, const dr_view *in, dr_view *out)
{
    (on_tensors(task) ? dr__tensor_autocontrast : dr__tone_autocontrast)(task, in, out);
}

static void grayscale(const dr_task *task, const dr_view *in, dr_view *out)
{
    (on_tensors(task) ? dr__tensor_grey : dr__to_grey)(task, in, out);
}

static void posterize(const dr_task *task, const dr_view *in, dr_view *out)
{
    dr__tone_posterize(task, in, out, (int)((const struct conf *)task->conf)->bits);
}

static void solarize(const dr_task *task, const dr_view *in, dr_view *out)
{
    dr__tone_solarize(task, in, out, ((const struct conf *)task->conf)->threshold);
}

/* Blends with a smoothed copy: below 1 softer, above 1 sharper. */
static void sharpness(const dr_task *task, const dr_view *in, dr_view *out)
{
    (on_tensors(task) ? dr__tensor_sharpness
                      : dr__adjust_sharpness)(task, in, out, ((const struct conf *)task->conf)->sharpness_factor);
}

static unsigned sharpness_channels(const struct conf *conf)
{
    return DR__GREY | DR__RGB | (conf->backend == DR__BACKEND_PIL ? DR__RGBA : 0);
}

/* --- the ops --- */

#define CHANCE(default_p, of) DR_REAL(struct conf, p, default_p, 0, 1, "chance that a sample is " of)

/* planner: dr__colour_plan or dr__adjust_plan; then the parameters. */
#define TONE(op, does, changed, planner, channels, ...)                                                                \
    static const dr_param op##_params[] = { __VA_ARGS__, { 0 } };                                                      \
    static dr_status op##_plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)      \
    {                                                                                                                  \
        (void)conf, (void)par;                                                                                         \
        return planner(in, channels, #op, out, err);                                                                   \
    }                                                                                                                  \
    static dr_status op##_run(dr_task *task, const void *par, const dr_view *in, dr_view *out)                         \
    {                                                                                                                  \
        return dr__maybe_run(task, par, in, out, changed);                                                             \
    }                                                                                                                  \
    const dr_op_def dr__op_##op = {                                                                                    \
        .name = #op,                                                                                                   \
        .version = 1,                                                                                                  \
        .summary = does " with probability p",                                                                         \
        .params = op##_params,                                                                                         \
        .draws = dr__maybe_draws,                                                                                      \
        .conf_size = sizeof(struct conf),                                                                              \
        .par_size = sizeof(dr__maybe),                                                                                 \
        .flags = DR_OP_RANDOM,                                                                                         \
        .kinds = DR__ON_IMAGES,                                                                                        \
        .draw = dr__maybe_draw,                                                                                        \
        .plan = op##_plan,                                                                                             \
        .run = op##_run,                                                                                               \
    }

TONE(random_adjust_sharpness, "change the sharpness of an image", sharpness, dr__adjust_plan, sharpness_channels(conf),
     DR_REAL(struct conf, sharpness_factor, NULL, 0, 1e6, "0 is blurred, 1 the image, 2 twice as sharp"),
     CHANCE("0.5", "sharpened"), DR__BACKEND_PARAM(struct conf));

TONE(random_autocontrast, "stretch the values of each channel to 0 to 255", autocontrast, dr__colour_plan,
     DR__GREY | DR__RGB, CHANCE("0.5", "stretched"), DR__BACKEND_PARAM(struct conf));

TONE(random_equalize, "flatten the histogram of each channel", dr__tone_equalize, dr__colour_plan, DR__GREY | DR__RGB,
     CHANCE("0.5", "equalized"));

TONE(random_grayscale, "make an image grey", grayscale, dr__adjust_plan, DR__GREY | DR__RGB, CHANCE("0.1", "made grey"),
     DR__BACKEND_PARAM(struct conf));

TONE(random_invert, "invert the colours of an image", dr__tone_invert, dr__colour_plan, DR__GREY | DR__RGB,
     CHANCE("0.5", "inverted"));

TONE(random_posterize, "keep the highest bits of each value", posterize, dr__colour_plan, DR__GREY | DR__RGB,
     DR_INT(struct conf, bits, NULL, 1, 8, "how many bits of each value stay"), CHANCE("0.5", "posterized"));

TONE(random_solarize, "invert the values from a threshold on", solarize, dr__colour_plan, DR__GREY | DR__RGB,
     DR_REAL(struct conf, threshold, NULL, -1e6, 1e6, "values from here on are inverted"), CHANCE("0.5", "solarized"));
