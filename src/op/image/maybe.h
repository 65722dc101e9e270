/* maybe.h: what the ops share that treat an image with probability p and hand it on as it is otherwise.
 *
 * Such an op has `double p` as the first member of its conf and dr__maybe as its par.
 */
#ifndef DR_OP_IMAGE_MAYBE_H
#define DR_OP_IMAGE_MAYBE_H

#include "op/op.h"

typedef struct dr__maybe {
    bool applied;
} dr__maybe;

extern const dr_param dr__maybe_draws[];

/* The draw callback: applied with the probability that conf begins with. */
dr_status dr__maybe_draw(const void *conf, dr_rng *rng, const dr_desc *in, void *par, dr_error *err);

/* True when run has only to copy: it was not drawn, or the field is a mask, which has no colour. */
static inline bool dr__maybe_skips(const void *par, const dr_view *in)
{
    return !((const dr__maybe *)par)->applied || in->desc.kind == DR_KIND_MASK;
}

/* The run of an op that has nothing else to know: `change` for what is not skipped. */
dr_status dr__maybe_run(dr_task *task, const void *par, const dr_view *in, dr_view *out,
                        void (*change)(const dr_task *task, const dr_view *in, dr_view *out));

#endif
