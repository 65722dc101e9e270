/* chain.c: drawing, planning and running several ops one after the other.
 *
 * Intermediate shapes are not stored: plan and run walk the chain in the same way and compute the same layout of the
 * scratch:  | even results | odd results | scratch of the op at work |
 */
#include "op/chain.h"

#include <jansson.h>

#include "op/box/boxes.h"
#include "op/planes.h"

enum { READ_PAST = 64 }; /* kernels may read a little past the last row */

/* Sizes of the three parts of the scratch. */
struct layout {
    size_t result[2];
    size_t scratch;
};

static size_t align64(size_t n)
{
    return (n + 63) & ~(size_t)63;
}

static int place(const dr__chain *chain, int i)
{
    return chain->order ? (int)chain->order[i] : i;
}

static const dr__op *op_at(const dr__chain *chain, int i)
{
    return &chain->ops[place(chain, i)];
}

size_t dr__chain_par_bytes(const dr__chain *chain)
{
    size_t bytes = 0;
    for (int i = 0; i < chain->n; i++)
        bytes += dr__op_par_bytes(&chain->ops[i]);
    return bytes;
}

/* The par of the op that runs as the i-th; NULL stays NULL. */
static const void *par_at(const dr__chain *chain, const void *par, int i)
{
    const char *at = par;
    for (int k = 0; at && k < place(chain, i); k++)
        at += dr__op_par_bytes(&chain->ops[k]);
    return at;
}

/* What follows an image or volume has nothing to follow in an op that leaves places as they are. */
static bool passes(const dr__op *op, const dr_desc *in)
{
    const unsigned leading = DR__KIND(IMAGE) | DR__KIND(VOLUME), kind = 1u << in->kind;
    return !(kind & leading) && !(dr__op_kinds(op) & kind) && !dr__op_moves(op);
}

static dr_status plan_one(const dr__op *op, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    *out = (dr_plan){ .desc = *in };
    return passes(op, in) ? DR_OK : dr__op_plan(op, par, in, out, err);
}

dr_status dr__chain_draw(const dr__chain *chain, dr_rng *rng, const dr_desc *in, void *par, dr_error *err)
{
    dr_desc desc = *in;
    for (int i = 0; i < chain->n; i++) {
        const dr__op *op = op_at(chain, i);
        void *at = (void *)par_at(chain, par, i);
        dr_rng child = dr__rng_child(rng, (uint32_t)place(chain, i));
        dr_plan plan;
        if (op->def->draw)
            DR_TRY(op->def->draw(op->conf, &child, &desc, at, err));
        DR_TRY(plan_one(op, at, &desc, &plan, err));
        desc = plan.desc;
    }
    return DR_OK;
}

/* Counts the i-th result, which is one in between unless it is the last. */
static dr_status add_result(struct layout *layout, const dr__chain *chain, int i, const dr_plan *plan, dr_error *err)
{
    size_t bytes;
    layout->scratch = DR_MAX(layout->scratch, plan->scratch);
    if (i == chain->n - 1 || !dr__desc_known(&plan->desc))
        return DR_OK;
    if (!dr__desc_bytes_dense(&plan->desc, &bytes) || bytes > SIZE_MAX / 4)
        return dr__fail(err, DR_ERR_LIMIT, "%s: its result is too large", op_at(chain, i)->def->name);
    layout->result[i % 2] = DR_MAX(layout->result[i % 2], align64(bytes + READ_PAST));
    return DR_OK;
}

static dr_status lay_out(const dr__chain *chain, const void *par, const dr_desc *in, struct layout *layout,
                         dr_desc *last, dr_error *err)
{
    *layout = (struct layout){ 0 };
    *last = *in;
    for (int i = 0; i < chain->n; i++) {
        dr_plan plan;
        DR_TRY(plan_one(op_at(chain, i), par_at(chain, par, i), last, &plan, err));
        DR_TRY(add_result(layout, chain, i, &plan, err));
        *last = plan.desc;
    }
    return DR_OK;
}

dr_status dr__chain_plan(const dr__chain *chain, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    struct layout layout;
    DR_TRY(lay_out(chain, par, in, &layout, &out->desc, err));
    out->scratch = layout.result[0] + layout.result[1] + layout.scratch;
    return DR_OK;
}

double dr__chain_cost(const dr__chain *chain, const void *par, const dr_desc *in)
{
    dr_desc desc = *in;
    double sum = 0.0;
    for (int i = 0; i < chain->n; i++) {
        const dr__op *op = op_at(chain, i);
        const void *at = par_at(chain, par, i);
        dr_plan plan;
        if (plan_one(op, at, &desc, &plan, NULL) != DR_OK)
            break;
        if (passes(op, &desc))
            continue;
        sum += dr__op_cost(op, at, &desc, &plan.desc);
        desc = plan.desc;
    }
    return sum;
}

/* frame: the image that boxes and key points lie in, as the ops before have left it; it has no pixels. */
static dr_status run_one(const dr__op *op, const dr_task *task, const dr_view *frame, uint8_t *scratch, const void *par,
                         const dr_view *in, dr_view *out)
{
    dr_task inner = *task;
    inner.conf = op->conf;
    inner.scratch = scratch;
    inner.fields = &frame;
    inner.n_fields = dr__is_image(&frame->desc);
    if (!passes(op, &in->desc))
        return dr__op_run(op, &inner, par, in, out);
    dr__view_copy(out, in);
    return DR_OK;
}

static dr_status step_frame(const dr__op *op, const void *par, dr_view *frame, dr_error *err)
{
    dr_plan plan;
    if (!dr__is_image(&frame->desc))
        return DR_OK;
    DR_TRY(plan_one(op, par, &frame->desc, &plan, err));
    frame->desc = plan.desc;
    return DR_OK;
}

dr_status dr__chain_run(const dr__chain *chain, dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    struct layout layout;
    dr_desc last;
    DR_TRY(lay_out(chain, par, &in->desc, &layout, &last, task->err));
    uint8_t *results[2] = { task->scratch, task->scratch + layout.result[0] };
    uint8_t *scratch = results[1] + layout.result[1];
    const dr_desc *image = dr__boxes_image(task);
    dr_view from = *in, frame = { .desc = image ? *image : (dr_desc){ 0 } };
    for (int i = 0; i < chain->n; i++) {
        const void *at = par_at(chain, par, i);
        dr_plan plan;
        DR_TRY(plan_one(op_at(chain, i), at, &from.desc, &plan, task->err));
        dr_view between = dr__view_dense(&plan.desc, results[i % 2]);
        dr_view *to = i == chain->n - 1 ? out : &between;
        DR_TRY(run_one(op_at(chain, i), task, &frame, scratch, at, &from, to));
        DR_TRY(step_frame(op_at(chain, i), at, &frame, task->err));
        from = *to;
    }
    return DR_OK;
}

json_t *dr__chain_draws(const dr__chain *chain, const void *par)
{
    json_t *list = json_array();
    for (int i = 0; i < chain->n; i++) {
        const dr__op *op = op_at(chain, i);
        json_t *draws = dr__op_draws_json(op, par_at(chain, par, i));
        json_object_set_new(draws, "op", json_string(op->def->name));
        if (json_array_append_new(list, draws)) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

dr_status dr__chain_either(const dr_desc *a, const dr_desc *b, const char *op, dr_desc *out, dr_error *err)
{
    char text_a[128], text_b[128];
    *out = *a;
    if (a->kind != b->kind || a->dtype != b->dtype || a->layout != b->layout || a->n_dims != b->n_dims)
        return dr__fail(err, DR_ERR_ARG, "%s: its result may be %s or %s; all ways must keep type and layout", op,
                        dr__desc_text_of(a, text_a, sizeof text_a), dr__desc_text_of(b, text_b, sizeof text_b));
    for (int i = 0; i < a->n_dims; i++)
        if (a->dims[i] != b->dims[i])
            out->dims[i] = DR_UNKNOWN;
    return DR_OK;
}
