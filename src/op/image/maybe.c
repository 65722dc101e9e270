/* maybe.c: the shared draw and run of ops that are applied with probability p. */
#include "op/image/maybe.h"

const dr_param dr__maybe_draws[] = {
    DR_BOOLEAN(dr__maybe, applied, NULL, "applied to this sample"),
    { 0 },
};

dr_status dr__maybe_draw(const void *conf, dr_rng *rng, const dr_desc *in, void *par, dr_error *err)
{
    (void)in, (void)err;
    ((dr__maybe *)par)->applied = dr__rng_unit(rng) < *(const double *)conf;
    return DR_OK;
}

dr_status dr__maybe_run(dr_task *task, const void *par, const dr_view *in, dr_view *out,
                        void (*change)(const dr_task *task, const dr_view *in, dr_view *out))
{
    if (dr__maybe_skips(par, in))
        dr__view_copy(out, in);
    else
        change(task, in, out);
    return DR_OK;
}
