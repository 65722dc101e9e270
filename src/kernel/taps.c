/* taps.c: the resampling filters of PIL and of torch as tables of integer coefficients.
 *
 * Every operation on doubles happens in the order of the original, so that the rounded coefficients are the same.
 *
 * Torch multiplies 8-bit pixels by 16-bit coefficients, with as many fraction bits as the largest weight of the axis
 * allows.  Shifted to 22 fraction bits they give the same sums, so that the kernels serve both libraries.
 */
#include "kernel/taps.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

#include "base/compiler.h"
#include "base/fmath.h"

enum { FRACTION = 22, UPPER = 11, TORCH_BITS = 15 };

static const double supports[] = {
    [DR__FILTER_NEAREST] = 0.0,       [DR__FILTER_LANCZOS] = 3.0, [DR__FILTER_BILINEAR] = 1.0,
    [DR__FILTER_BICUBIC] = 2.0,       [DR__FILTER_BOX] = 0.5,     [DR__FILTER_HAMMING] = 1.0,
    [DR__FILTER_NEAREST_EXACT] = 0.0,
};

/* ---- the filters ---- */

static inline double box(double x)
{
    return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
}

static inline double bilinear(double x)
{
    x = fabs(x);
    return x < 1.0 ? 1.0 - x : 0.0;
}

static inline double hamming(double x)
{
    x = fabs(x);
    if (x == 0.0)
        return 1.0;
    if (x >= 1.0)
        return 0.0;
    x = x * DR_PI;
    return dr__sin(x) / x * (0.54f + 0.46f * dr__cos(x)); /* PIL's constants are floats */
}

static inline double bicubic(double x)
{
    x = fabs(x);
    if (x < 1.0)
        return (1.5 * x - 2.5) * x * x + 1;
    if (x < 2.0)
        return (((x - 5) * x + 8) * x - 4) * -0.5;
    return 0.0;
}

/* torch's cubic filter without antialiasing: a = -0.75 instead of -0.5. */
static inline double sharp_bicubic(double x)
{
    const double a = -0.75;
    x = fabs(x);
    if (x < 1.0)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    if (x < 2.0)
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
    return 0.0;
}

static inline double sinc(double x)
{
    if (x == 0.0)
        return 1.0;
    x = x * DR_PI;
    return dr__sin(x) / x;
}

static inline double lanczos(double x)
{
    return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0;
}

/* ---- the tables ---- */

/* Input pixels per output pixel, and how far the filter reaches to either side. */
struct reach {
    double scale, stretch, support;
};

static struct reach reach_of(int n_in, int n_out, dr__filter filter)
{
    struct reach r;
    r.scale = (double)n_in / n_out;
    r.stretch = r.scale < 1.0 ? 1.0 : r.scale;
    r.support = supports[filter] * r.stretch;
    return r;
}

static int round_up_4(int n)
{
    return (n + 3) & ~3;
}

int dr__taps_room(int n_in, int n_out, dr__filter filter, dr__resize_rule rule)
{
    if (rule == DR__RULE_TORCH_ALIASED)
        return 4;
    const int span = (int)(2 * reach_of(n_in, n_out, filter).support) + 2; /* both ends are rounded */
    return round_up_4(DR_MIN(span, n_in));
}

size_t dr__taps_weights(int n_in, int n_out, dr__filter filter, dr__resize_rule rule)
{
    const size_t room = (size_t)dr__taps_room(n_in, n_out, filter, rule);
    return rule == DR__RULE_PIL ? room : room * (size_t)n_out;
}

static void find_spans(dr__taps *t, int n_in, struct reach r)
{
    t->max_size = 0;
    for (int i = 0; i < t->n_out; i++) {
        const double centre = (i + 0.5) * r.scale;
        const int first = DR_MAX((int)(centre - r.support + 0.5), 0);
        const int end = DR_MIN((int)(centre + r.support + 0.5), n_in);
        t->start[i] = first;
        t->size[i] = end - first;
        t->max_size = DR_MAX(t->max_size, end - first);
    }
    t->stride = round_up_4(DR_MAX(t->max_size, 1));
}

static inline int32_t fixed_point(double weight)
{
    return (int32_t)((weight < 0 ? -0.5 : 0.5) + weight * (1 << FRACTION));
}

static void split_row(int16_t *split, const int32_t *coef, int n)
{
    for (int j = 0; j < n; j += 4, split += 8, coef += 4) {
        for (int i = 0; i < 4; i++) {
            split[i] = (int16_t)(coef[i] >> UPPER);
            split[4 + i] = (int16_t)(coef[i] & ((1 << UPPER) - 1));
        }
    }
}

/* Output i's weights, and their sum. */
DR_INLINE double weigh(const dr__taps *t, int i, struct reach r, double *weights, double (*filter)(double))
{
    const double centre = (i + 0.5) * r.scale, shrink = 1.0 / r.stretch;
    const int size = t->size[i], first = t->start[i];
    double sum = 0.0;
    for (int j = 0; j < size; j++) {
        weights[j] = filter((j + first - centre + 0.5) * shrink);
        sum += weights[j];
    }
    return sum;
}

/* Inlined once per filter: a call for each weight would cost more than the weight. */
DR_INLINE void fill(dr__taps *t, double *weights, struct reach r, double (*filter)(double))
{
    for (int i = 0; i < t->n_out; i++) {
        const int size = t->size[i];
        int32_t *coef = t->coef + (ptrdiff_t)i * t->stride;
        const double sum = weigh(t, i, r, weights, filter);
        for (int j = 0; j < size; j++)
            coef[j] = fixed_point(sum != 0.0 ? weights[j] / sum : weights[j]);
        for (int j = size; j < t->stride; j++)
            coef[j] = 0;
        split_row(t->split + (ptrdiff_t)i * t->stride * 2, coef, t->stride);
    }
}

static void fill_pil(dr__taps *t, double *weights, struct reach r, dr__filter filter)
{
    switch (filter) {
    case DR__FILTER_BILINEAR:
        fill(t, weights, r, bilinear);
        break;
    case DR__FILTER_BICUBIC:
        fill(t, weights, r, bicubic);
        break;
    case DR__FILTER_LANCZOS:
        fill(t, weights, r, lanczos);
        break;
    case DR__FILTER_BOX:
        fill(t, weights, r, box);
        break;
    case DR__FILTER_HAMMING:
        fill(t, weights, r, hamming);
        break;
    case DR__FILTER_NEAREST:
    case DR__FILTER_NEAREST_EXACT:
        assert(!"nearest neighbours have no coefficients");
        break;
    }
}

/* ---- torch ---- */

/* Both return the largest weight; row i's weights are at weights + i * stride. */
DR_INLINE double weigh_all(const dr__taps *t, double *weights, struct reach r, double (*filter)(double))
{
    double most = 0.0;
    for (int i = 0; i < t->n_out; i++, weights += t->stride) {
        const double sum = weigh(t, i, r, weights, filter);
        for (int j = 0; j < t->size[i] && sum != 0.0; j++) {
            weights[j] /= sum;
            most = DR_MAX(most, weights[j]);
        }
    }
    return most;
}

/* Two or four neighbours, whatever the scale; those outside of the image are the pixel at its edge. */
DR_INLINE double weigh_aliased(dr__taps *t, double *weights, int n_in, int reach, double (*filter)(double))
{
    double most = 0.0;
    t->max_size = 0;
    t->stride = 4;
    for (int i = 0; i < t->n_out; i++, weights += 4) {
        const double at = (i + 0.5) * t->scale - 0.5, place = reach == 1 && at < 0 ? 0.0 : at;
        const int index = DR_MIN((int)floorf((float)place), n_in - 1); /* torch's detour by float */
        const double part = DR_MIN(DR_MAX(place - index, 0.0), 1.0);
        const int first = index - reach + 1, start = DR_MAX(first, 0);
        const int size = DR_MIN(index + reach + 1, n_in) - start;
        for (int j = 0; j < 4; j++)
            weights[j] = 0.0;
        for (int j = 0; j < 2 * reach; j++) {
            double *w = &weights[DR_MIN(DR_MAX(first + j, 0), n_in - 1) - start];
            *w += filter(j + 1 - reach - part);
            most = DR_MAX(most, *w);
        }
        t->start[i] = start;
        t->size[i] = size;
        t->max_size = DR_MAX(t->max_size, size);
    }
    return most;
}

/* How many bits of fraction the coefficients can have. */
static int torch_precision(double most)
{
    int precision = 0;
    while (precision < FRACTION && (int)(0.5 + most * (1 << (precision + 1))) < 1 << TORCH_BITS)
        precision++;
    return precision;
}

static void round_all(dr__taps *t, const double *weights, double most)
{
    const int precision = torch_precision(most), zeros = FRACTION - precision;
    for (int i = 0; i < t->n_out; i++, weights += t->stride) {
        int32_t *coef = t->coef + (ptrdiff_t)i * t->stride;
        for (int j = 0; j < t->stride; j++) {
            const double v = j < t->size[i] ? weights[j] * (1 << precision) : 0.0;
            coef[j] = (int32_t)(v < 0 ? -0.5 + v : 0.5 + v) * (1 << zeros);
        }
        split_row(t->split + (ptrdiff_t)i * t->stride * 2, coef, t->stride);
    }
}

static void fill_torch(dr__taps *t, double *weights, struct reach r, dr__filter filter)
{
    assert(filter == DR__FILTER_BILINEAR || filter == DR__FILTER_BICUBIC);
    const bool cubic = filter == DR__FILTER_BICUBIC;
    round_all(t, weights, cubic ? weigh_all(t, weights, r, bicubic) : weigh_all(t, weights, r, bilinear));
}

static void fill_aliased(dr__taps *t, double *weights, int n_in, dr__filter filter)
{
    assert(filter == DR__FILTER_BILINEAR || filter == DR__FILTER_BICUBIC);
    const bool cubic = filter == DR__FILTER_BICUBIC;
    round_all(t, weights,
              cubic ? weigh_aliased(t, weights, n_in, 2, sharp_bicubic) : weigh_aliased(t, weights, n_in, 1, bilinear));
}

void dr__taps_fill(dr__taps *t, double *weights, int n_in, int n_out, dr__filter filter, dr__resize_rule rule)
{
    const struct reach r = reach_of(n_in, n_out, filter);
    t->n_out = n_out;
    t->scale = r.scale;
    if (rule == DR__RULE_TORCH_ALIASED) {
        fill_aliased(t, weights, n_in, filter);
        return;
    }
    find_spans(t, n_in, r);
    assert(t->stride <= dr__taps_room(n_in, n_out, filter, rule));
    if (rule == DR__RULE_TORCH)
        fill_torch(t, weights, r, filter);
    else
        fill_pil(t, weights, r, filter);
}

/* ---- nearest neighbours ---- */

static void nearest_pil(int32_t *start, int n_in, int n_out)
{
    const double scale = (double)n_in / n_out;
    double at = scale * 0.5;
    for (int i = 0; i < n_out; i++) {
        start[i] = at < n_in ? (int32_t)at : -1;
        at += scale;
    }
}

/* Torch computes coordinates in float32, of the output pixel's corner or of its centre.  The latter is rounded once (by
 * a fused multiply-add) before the half that was subtracted is added back. */
static void nearest_torch(int32_t *start, int n_in, int n_out, bool exact)
{
    const float scale = (float)n_in / (float)n_out;
    for (int i = 0; i < n_out; i++) {
        const float middle = (float)((i + 0.5) * scale - 0.5);
        const float at = exact ? DR_MAX(middle, 0.0f) + 0.5f : (float)i * scale;
        start[i] = DR_MIN((int32_t)at, n_in - 1);
    }
}

void dr__taps_nearest(int32_t *start, int n_in, int n_out, dr__filter filter, dr__resize_rule rule)
{
    if (rule == DR__RULE_PIL)
        nearest_pil(start, n_in, n_out);
    else
        nearest_torch(start, n_in, n_out, filter == DR__FILTER_NEAREST_EXACT);
}
