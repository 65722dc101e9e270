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

/* A number as the sum of two doubles, the second far below the first. */
struct pair {
    double hi, lo;
};

static struct pair sum_of(double big, double small)
{
    double hi = big + small;
    return (struct pair){ hi, (big - hi) + small };
}

/* sin and cos of r.hi + r.lo in [-pi/4, pi/4].  The largest term stays apart from the rest until the end, which keeps
 * the result within a little more than half an ulp: PIL's matrices come from a libm that is as close. */
static struct pair sin_core(struct pair r)
{
    double z = r.hi * r.hi, sum = 0.0;
    for (int n = 18; n >= 2; n -= 2)
        sum = -z / (n * (n + 1)) * (1.0 + sum);
    return sum_of(r.hi, r.hi * sum + r.lo * (1.0 - z / 2.0));
}

static struct pair cos_core(struct pair r)
{
    double z = r.hi * r.hi, z_lo = fma(r.hi, r.hi, -z), sum = 0.0;
    for (int n = 17; n >= 3; n -= 2)
        sum = -z / (n * (n + 1)) * (1.0 + sum);
    struct pair first = sum_of(1.0, -z / 2.0);
    return sum_of(first.hi, first.lo - (z / 2.0 * sum + (z_lo / 2.0 + r.hi * r.lo)));
}

/* x = k * pi/2 + r. */
static struct pair reduce(double x, int *quadrant)
{
    static const double p1 = 1.57079632673412561417e+00, p2 = 6.07710050630396597660e-11,
                        p3 = 2.02226624879595063154e-21;
    double k = dr__round_even(x / 1.57079632679489661923);
    *quadrant = (int)((int64_t)k & 3);
    double near = x - k * p1, step = k * p2, r = near - step; /* both products are exact: p1 and p2 have 33 bits */
    double back = near - r;
    return sum_of(r, (back - step) - k * p3);
}

static struct pair negative(struct pair p)
{
    return (struct pair){ -p.hi, -p.lo };
}

static struct pair sin_pair(double x)
{
    int q;
    struct pair r = reduce(x, &q), v = q & 1 ? cos_core(r) : sin_core(r);
    return q & 2 ? negative(v) : v;
}

static struct pair cos_pair(double x)
{
    int q;
    struct pair r = reduce(x, &q), v = q & 1 ? sin_core(r) : cos_core(r);
    return q == 1 || q == 2 ? negative(v) : v;
}

double dr__sin(double x)
{
    return sin_pair(x).hi;
}

double dr__cos(double x)
{
    return cos_pair(x).hi;
}

double dr__tan(double x)
{
    struct pair s = sin_pair(x), c = cos_pair(x);
    double q = s.hi / c.hi;
    double rest = fma(-q, c.hi, s.hi) + (s.lo - q * c.lo); /* what the quotient leaves over; fma is exact by IEEE 754 */
    return q + rest / c.hi;
}

double dr__pow(double x, double y)
{
    if (y == 0.0)
        return 1.0;
    return x <= 0.0 ? 0.0 : dr__exp(y * dr__log(x));
}
