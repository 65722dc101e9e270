/* normals.c: tables of the ziggurat, and numbers from it. */
#include "base/normals.h"

#include <math.h>

#include "base/fmath.h"

/* For 128 layers: where the tail begins, and the area of each layer (Marsaglia and Tsang). */
static const double tail = 3.442619855899, area = 9.91256303526217e-3;

static double density(double x)
{
    return dr__exp(-0.5 * x * x);
}

void dr__normals_init(dr__normals *t)
{
    t->x[0] = area / density(tail); /* the lowest layer with the tail's area laid out beside it */
    t->x[1] = tail;
    for (int i = 2; i < DR__NORMAL_LAYERS; i++)
        t->x[i] = sqrt(-2.0 * dr__log(area / t->x[i - 1] + density(t->x[i - 1])));
    t->x[DR__NORMAL_LAYERS] = 0.0;
    for (int i = 0; i < DR__NORMAL_LAYERS; i++)
        t->ratio[i] = t->x[i + 1] / t->x[i];
}

static double from_tail(dr_rng *rng, bool negative)
{
    for (;;) {
        double x = dr__log(1.0 - dr__rng_unit(rng)) / tail, y = dr__log(1.0 - dr__rng_unit(rng));
        if (-2.0 * y >= x * x)
            return negative ? x - tail : tail - x;
    }
}

double dr__normals_next(const dr__normals *t, dr_rng *rng)
{
    for (;;) {
        uint32_t bits = dr__rng_u32(rng);
        int i = bits & (DR__NORMAL_LAYERS - 1);
        double u = ((double)(bits >> 8) + 0.5) * (1.0 / 8388608.0) - 1.0; /* (-1, 1) */
        if (fabs(u) < t->ratio[i])
            return u * t->x[i];
        if (i == 0)
            return from_tail(rng, u < 0);
        double x = u * t->x[i], above = density(t->x[i]), below = density(t->x[i + 1]);
        if (above + dr__rng_unit(rng) * (below - above) < density(x))
            return x;
    }
}
