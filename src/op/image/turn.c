/* turn.c: settings of the ops that sample an image by an affine map. */
#include "op/image/turn.h"

const char *const dr__turn_filters[] = { "nearest", "bilinear", "bicubic", NULL };

dr_status dr__angle_range(const dr_reals *setting, const char *name, const char *op, double range[2], dr_error *err)
{
    if (setting->n == 1 && setting->v[0] < 0)
        return dr__fail(err, DR_ERR_ARG, "%s: %s must not be negative if it is a single number, got %g", op, name,
                        setting->v[0]);
    range[0] = setting->n == 1 ? -setting->v[0] : setting->v[0];
    range[1] = setting->n == 1 ? setting->v[0] : setting->v[1];
    return DR_OK;
}

dr_status dr__check_center(const dr_reals *center, const char *op, dr_error *err)
{
    if (center->n == 1)
        return dr__fail(err, DR_ERR_ARG, "%s: center must be x and y, got one number", op);
    return DR_OK;
}

void dr__center_from_middle(const dr_reals *center, const dr_desc *in, double from_middle[2])
{
    const double extent[2] = { (double)dr__width(in), (double)dr__height(in) };
    for (int i = 0; i < 2; i++)
        from_middle[i] = center->n ? center->v[i] - extent[i] * 0.5 : 0;
}

dr_status dr__want_turnable(const dr_desc *in, const char *op, dr_error *err)
{
    int64_t channels = dr__channels(in);
    if (in->kind == DR_KIND_MASK)
        return dr__want_image(in, ~0u, op, err);
    DR_TRY(dr__want_image(in, 1u << DR_U8, op, err));
    if (channels >= 0 && channels != 1 && channels != 3 && channels != 4)
        return dr__fail(err, DR_ERR_ARG, "%s: image must have 1, 3 or 4 channels, got %lld", op, (long long)channels);
    return DR_OK;
}

dr__affine_filter dr__turn_filter(int setting, const dr_desc *in)
{
    return in->kind == DR_KIND_MASK ? DR__AFFINE_NEAREST : (dr__affine_filter)setting;
}

double dr__turn_cost(int setting, const dr_desc *in)
{
    static const double ns[] = { 3, 20, 60 };
    return ns[dr__turn_filter(setting, in)] * (double)dr__width(in) * (double)dr__height(in);
}
