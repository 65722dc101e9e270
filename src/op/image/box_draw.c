/* box_draw.c: random rectangles by area and ratio, as torchvision draws them. */
#include "op/image/box_draw.h"

#include <math.h>

#include "base/fmath.h"

dr_status dr__box_range_of(const dr_reals *scale, const dr_reals *ratio, const char *op, dr__box_range *range,
                           dr_error *err)
{
    const dr_reals *const lists[] = { scale, ratio };
    for (int i = 0; i < 2; i++) {
        const double *v = lists[i]->v;
        if (v[0] > v[1])
            return dr__fail(err, DR_ERR_ARG, "%s: %s must be (least, most), got (%g, %g)", op, i ? "ratio" : "scale",
                            v[0], v[1]);
    }
    for (int i = 0; i < 2; i++) {
        if (ratio->v[i] <= 0)
            return dr__fail(err, DR_ERR_ARG, "%s: ratio must be positive, got %g", op, ratio->v[i]);
        range->scale[i] = scale->v[i];
        range->log_ratio[i] = dr__log(ratio->v[i]);
    }
    return DR_OK;
}

void dr__box_draw(const dr__box_range *range, dr_rng *rng, int64_t width, int64_t height, int64_t *a, int64_t *b)
{
    double area = (double)(width * height) * dr__rng_uniform(rng, range->scale[0], range->scale[1]);
    double ratio = dr__exp(dr__rng_uniform(rng, range->log_ratio[0], range->log_ratio[1]));
    *a = (int64_t)dr__round_even(sqrt(area * ratio));
    *b = (int64_t)dr__round_even(sqrt(area / ratio));
}
