/* fmath.c: exp, log, sin, cos, pow from plain double arithmetic.
 *
 * exp and log reduce to a short interval (ln 2 split in two parts, so that the reduction is exact) and sum a series;
 * sin and cos reduce by pi/2 in three parts.  Series rather than fitted polynomials: short, obvious, and fast enough
 * for a few calls a sample.
 */
#include "base/fmath.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static const double ln2_hi = 6.93147180369123816490e-01; /* 33 bits: k * ln2_hi is exact for |k| < 2^20 */
static const double ln2_lo = 1.90821492927058770002e-10;

static double scale2(double x, int k)
{
    /* Two factors, so that results near the ends of the range round once. */
    int half = k / 2;
    uint64_t a = (uint64_t)(1023 + half) << 52, b = (uint64_t)(1023 + k - half) << 52;
    double fa, fb;
    memcpy(&fa, &a, sizeof fa);
    memcpy(&fb, &b, sizeof fb);
    return x * fa * fb;
}

double dr__round_even(double x)
{
    /* Adding and taking away 2^52 rounds halves to even in the default rounding mode. */
    const double big = 4503599627370496.0;
    if (!(x < big && x > -big))
        return x;
    volatile double y = x < 0 ? x - big : x + big;
    return x < 0 ? y + big : y - big;
}

double dr__exp(double x)
{
    if (!(x > -700.0))
        return x != x ? x : 0.0;
    if (x > 700.0)
        return HUGE_VAL;
    double k = dr__round_even(x / 0.69314718055994530942);
    double r = (x - k * ln2_hi) - k * ln2_lo; /* |r| < 0.35 */
    double sum = 0.0;
    for (int n = 17; n >= 1; n--) /* Horner: 1 + r/1 (1 + r/2 (1 + ...)) */
        sum = r / n * (1.0 + sum);
    return scale2(1.0 + sum, (int)k);
}

double dr__log(double x)
{
    int k;
    double m = frexp(x, &k); /* exact: no rounding in it; m in [0.5, 1) */
    if (m < 0.70710678118654752440) {
        m *= 2.0;
        k--;
    }
    double s = (m - 1.0) / (m + 1.0), z = s * s; /* log m = 2 atanh s, |s| < 0.172 */
    double sum = 0.0;
    for (int n = 23; n >= 3; n -= 2)
        sum = z * (1.0 / n + sum);
    return k * ln2_hi + (2.0 * s + (2.0 * s * sum + k * ln2_lo));
}

/* sin and cos on [-pi/4, pi/4]. */
static double sin_core(double r)
{
    double z = r * r, sum = 0.0;
    for (int n = 18; n >= 2; n -= 2)
        sum = -z / (n * (n + 1)) * (1.0 + sum);
    return r + r * sum;
}

static double cos_core(double r)
{
    double z = r * r, sum = 0.0;
    for (int n = 17; n >= 3; n -= 2)
        sum = -z / (n * (n + 1)) * (1.0 + sum);
    return 1.0 - (z / 2.0) * (1.0 + sum);
}

/* x = k * pi/2 + r. */
static double reduce(double x, int *quadrant)
{
    static const double p1 = 1.57079632673412561417e+00, p2 = 6.07710050630396597660e-11,
                        p3 = 2.02226624879595063154e-21;
    double k = dr__round_even(x / 1.57079632679489661923);
    *quadrant = (int)((int64_t)k & 3);
    return ((x - k * p1) - k * p2) - k * p3;
}

double dr__sin(double x)
{
    int q;
    double r = reduce(x, &q);
    double v = q & 1 ? cos_core(r) : sin_core(r);
    return q & 2 ? -v : v;
}

double dr__cos(double x)
{
    int q;
    double r = reduce(x, &q);
    double v = q & 1 ? sin_core(r) : cos_core(r);
    return q == 1 || q == 2 ? -v : v;
}

double dr__tan(double x)
{
    return dr__sin(x) / dr__cos(x);
}

double dr__pow(double x, double y)
{
    if (y == 0.0)
        return 1.0;
    return x <= 0.0 ? 0.0 : dr__exp(y * dr__log(x));
}
