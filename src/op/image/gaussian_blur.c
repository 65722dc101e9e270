/* gaussian_blur: blur with a Gaussian window of a given size and a random width.
 *
 * torchvision convolves a float32 image with the outer product of two windows; here the two windows are applied one
 * after the other (rows reflected at the border, as there), which is less work and differs in the last bits of a float:
 * a result that lies within 1e-4 of a half may round the other way.
 */
#include "base/fmath.h"
#include "op/image/adjust.h"
#include "op/op_defs.h"

enum { MAX_WINDOW = 255 };

struct conf {
    dr_ints kernel_size; /* x, y */
    dr_reals sigma;
};

struct par {
    double sigma;
};

static const dr_param params[] = {
    DR_INT_LIST(struct conf, kernel_size, NULL, 1, MAX_WINDOW, 1, 2, "size of the window, odd; or (x, y)"),
    DR_REAL_LIST(struct conf, sigma, "[0.1, 2.0]", 1e-6, 1e6, 1, 2, "deviation in pixels; or (least, most)"),
    { 0 },
};

static const dr_param draws[] = {
    DR_REAL(struct par, sigma, NULL, 1e-6, 1e6, "deviation in pixels"),
    { 0 },
};

static int64_t size_x(const struct conf *c)
{
    return c->kernel_size.v[0];
}

static int64_t size_y(const struct conf *c)
{
    return c->kernel_size.v[c->kernel_size.n - 1];
}

static dr_status init(void *conf, dr_error *err)
{
    const struct conf *c = conf;
    if (size_x(c) % 2 == 0 || size_y(c) % 2 == 0)
        return dr__fail(err, DR_ERR_ARG, "gaussian_blur: kernel_size must be odd, got (%lld, %lld)",
                        (long long)size_x(c), (long long)size_y(c));
    if (c->sigma.v[0] > c->sigma.v[c->sigma.n - 1])
        return dr__fail(err, DR_ERR_ARG, "gaussian_blur: sigma must have the least number first, got (%g, %g)",
                        c->sigma.v[0], c->sigma.v[c->sigma.n - 1]);
    return DR_OK;
}

static dr_status draw(const void *conf, dr_rng *rng, const dr_desc *in, void *par, dr_error *err)
{
    const struct conf *c = conf;
    (void)in, (void)err;
    ((struct par *)par)->sigma = dr__rng_uniform(rng, c->sigma.v[0], c->sigma.v[c->sigma.n - 1]);
    return DR_OK;
}

static dr_status check_size(int64_t window, int64_t extent, const char *side, dr_error *err)
{
    if (extent == DR_UNKNOWN || window / 2 < extent)
        return DR_OK; /* else there is not enough image to reflect */
    return dr__fail(err, DR_ERR_ARG,
                    "gaussian_blur: image must be at least %lld pixels %s for kernel_size %lld, got %lld",
                    (long long)window / 2 + 1, side, (long long)window, (long long)extent);
}

/* Floats of one row with the reflected pixels at both ends. */
static size_t padded_row(const struct conf *c, const dr_desc *d)
{
    return (size_t)((dr__width(d) + size_x(c) - 1) * dr__channels(d));
}

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    const struct conf *c = conf;
    (void)par;
    DR_TRY(dr__want_colour(in, DR__GREY | DR__RGB | DR__RGBA, "gaussian_blur", err));
    out->desc = *in;
    if (in->kind == DR_KIND_MASK)
        return DR_OK;
    DR_TRY(check_size(size_x(c), dr__width(in), "wide", err));
    DR_TRY(check_size(size_y(c), dr__height(in), "high", err));
    if (dr__desc_known(in))
        out->scratch = (padded_row(c, in) + dr__row_bytes(in)) * sizeof(float);
    return DR_OK;
}

static double cost(const void *conf, const void *par, const dr_desc *in)
{
    const struct conf *c = conf;
    (void)par;
    return 0.15 * (double)(4 + size_x(c) + size_y(c)) * (double)dr__row_bytes(in) * (double)dr__height(in);
}

/* softmax(-(x / sigma)^2) over n places between -lim and lim; rounded to float where torch rounds. */
static void make_window(float *window, int n, double sigma)
{
    static const double half_root = 0.35355339059327376220; /* 1 / (2 sqrt 2) */
    float lim = (float)((n - 1) * half_root), step = n > 1 ? 2.0f * lim / (float)(n - 1) : 0.0f;
    float sum = 0.0f;
    for (int i = 0; i < n; i++) {
        float x = i < n / 2 ? -lim + step * (float)i : lim - step * (float)(n - 1 - i);
        float ratio = x / (float)sigma;
        window[i] = (float)dr__exp(-(double)(ratio * ratio)); /* the largest exponent, in the middle, is 0 */
        sum += window[i];
    }
    for (int i = 0; i < n; i++)
        window[i] /= sum;
}

static int64_t reflect(int64_t i, int64_t n)
{
    return i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
}

/* Row y of the image blurred downwards. */
static void blur_down(float *dst, const dr_view *in, int64_t y, const float *window, int64_t n_window)
{
    size_t n = dr__row_bytes(&in->desc);
    for (int64_t j = 0; j < n_window; j++) {
        const uint8_t *src = in->data + reflect(y + j - n_window / 2, dr__height(&in->desc)) * in->stride;
        float f = window[j];
        if (j == 0)
            for (size_t i = 0; i < n; i++)
                dst[i] = f * (float)src[i];
        else
            for (size_t i = 0; i < n; i++)
                dst[i] += f * (float)src[i];
    }
}

static void reflect_ends(float *padded, int64_t w, int channels, int64_t half)
{
    float *row = padded + half * channels;
    for (int64_t x = 1; x <= half; x++) {
        for (int c = 0; c < channels; c++) {
            row[-x * channels + c] = row[x * channels + c];
            row[(w - 1 + x) * channels + c] = row[(w - 1 - x) * channels + c];
        }
    }
}

/* The padded row blurred sideways, in `sums`, then rounded (halves to even) to bytes. */
static void blur_across(uint8_t *dst, const float *padded, float *sums, size_t n, int channels, const float *window,
                        int64_t n_window)
{
    const float big = 8388608.0f; /* 2^23: adding it rounds */
    for (size_t i = 0; i < n; i++)
        sums[i] = window[0] * padded[i];
    for (int64_t j = 1; j < n_window; j++) {
        const float *src = padded + j * channels;
        for (size_t i = 0; i < n; i++)
            sums[i] += window[j] * src[i];
    }
    for (size_t i = 0; i < n; i++)
        dst[i] = (uint8_t)(int)(sums[i] + big - big);
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    const struct conf *c = task->conf;
    double sigma = ((const struct par *)par)->sigma;
    if (in->desc.kind == DR_KIND_MASK) {
        dr__view_copy(out, in);
        return DR_OK;
    }
    float across[MAX_WINDOW], down[MAX_WINDOW];
    make_window(across, (int)size_x(c), sigma);
    make_window(down, (int)size_y(c), sigma);
    int channels = (int)dr__channels(&in->desc);
    float *padded = (float *)task->scratch, *sums = padded + padded_row(c, &in->desc);
    for (int64_t y = 0; y < dr__height(&in->desc); y++) {
        blur_down(padded + size_x(c) / 2 * channels, in, y, down, size_y(c));
        reflect_ends(padded, dr__width(&in->desc), channels, size_x(c) / 2);
        blur_across(out->data + y * out->stride, padded, sums, dr__row_bytes(&in->desc), channels, across, size_x(c));
    }
    return DR_OK;
}

const dr_op_def dr__op_gaussian_blur = {
    .name = "gaussian_blur",
    .version = 1,
    .summary = "blur with a Gaussian window of random width",
    .params = params,
    .draws = draws,
    .conf_size = sizeof(struct conf),
    .par_size = sizeof(struct par),
    .flags = DR_OP_RANDOM,
    .kinds = DR__ON_IMAGES,
    .init = init,
    .draw = draw,
    .plan = plan,
    .cost = cost,
    .run = run,
};
