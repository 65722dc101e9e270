/* taps.c: PIL's resampling filters as tables of integer coefficients.
 *
 * Every double operation happens in PIL's order, so that the rounded coefficients are the same.
 */
#include "kernel/taps.h"

#include <assert.h>
#include <math.h>

#include "base/compiler.h"
#include "base/fmath.h"

enum { FRACTION = 22, UPPER = 11 };

static const double supports[] = {
    [DR__FILTER_NEAREST] = 0.0, [DR__FILTER_LANCZOS] = 3.0, [DR__FILTER_BILINEAR] = 1.0,
    [DR__FILTER_BICUBIC] = 2.0, [DR__FILTER_BOX] = 0.5,     [DR__FILTER_HAMMING] = 1.0,
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

int dr__taps_room(int n_in, int n_out, dr__filter filter)
{
    const int span = (int)(2 * reach_of(n_in, n_out, filter).support) + 2; /* both ends are rounded */
    return round_up_4(DR_MIN(span, n_in));
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

/* Inlined once per filter: a call for each weight would cost more than the weight. */
DR_INLINE void fill(dr__taps *t, double *weights, struct reach r, double (*filter)(double))
{
    const double shrink = 1.0 / r.stretch;
    for (int i = 0; i < t->n_out; i++) {
        const double centre = (i + 0.5) * r.scale;
        const int size = t->size[i], first = t->start[i];
        int32_t *coef = t->coef + (ptrdiff_t)i * t->stride;
        double sum = 0.0;
        for (int j = 0; j < size; j++) {
            weights[j] = filter((j + first - centre + 0.5) * shrink);
            sum += weights[j];
        }
        for (int j = 0; j < size; j++)
            coef[j] = fixed_point(sum != 0.0 ? weights[j] / sum : weights[j]);
        for (int j = size; j < t->stride; j++)
            coef[j] = 0;
        split_row(t->split + (ptrdiff_t)i * t->stride * 2, coef, t->stride);
    }
}

void dr__taps_fill(dr__taps *t, double *weights, int n_in, int n_out, dr__filter filter)
{
    const struct reach r = reach_of(n_in, n_out, filter);
    t->n_out = n_out;
    t->scale = r.scale;
    find_spans(t, n_in, r);
    assert(t->stride <= dr__taps_room(n_in, n_out, filter));
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
        assert(!"nearest neighbour has no coefficients");
        break;
    }
}

void dr__taps_nearest(int32_t *start, int n_in, int n_out)
{
    const double scale = (double)n_in / n_out;
    double at = scale * 0.5;
    for (int i = 0; i < n_out; i++) {
        start[i] = at < n_in ? (int32_t)at : -1;
        at += scale;
    }
}
