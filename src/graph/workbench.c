/* workbench.c: plans, runs and stores one sample.
 *
 * All memory of a sample is one block, the arena: planning adds up what every step will need and reserves it once, so
 * that running only moves a pointer.  Each result has some slack behind it, because row kernels may read a little past
 * the last pixel.  A streamed image is never in the arena: its rows go from the decoder to the batch.
 */
#include "graph/workbench.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/grow.h"
#include "graph/slot_writer.h"
#include "op/planes.h"

enum {
    ALIGN = 64,
    SLACK = 64,
    WINDOW_BLEED = 128, /* bytes before and after rows of a window: a JPEG decoder starts up to 32 pixels before it */
};

dr__workbench *dr__workbench_new(void)
{
    dr__workbench *bench = dr__alloc_zero(1, sizeof *bench);
    if (!bench)
        return NULL;
    dr__record_init(&bench->record);
    dr__record_init(&bench->spare);
    bench->memory_limit = SIZE_MAX;
    bench->codecs = dr__codec_state_new();
    if (!bench->codecs)
        dr__workbench_free(&bench);
    return bench;
}

void dr__workbench_free(dr__workbench **bench)
{
    if (!bench || !*bench)
        return;
    dr__codec_state_free(&(*bench)->codecs);
    dr__record_free(&(*bench)->record);
    dr__record_free(&(*bench)->spare);
    dr__free_aligned((*bench)->arena);
    dr__free_aligned((*bench)->pars);
    dr__free_aligned((*bench)->early);
    dr__free_aligned((*bench)->early_scratch);
    dr__free(*bench);
    *bench = NULL;
}

/* Puts the op's name before an error, unless it is there: errors of codecs and kernels lack it. */
static dr_status prefix_op_name(const dr_op_def *def, dr_status status, dr_error *err)
{
    size_t n = strlen(def->name);
    if (status == DR_OK || !err || (!strncmp(err->text, def->name, n) && err->text[n] == ':'))
        return status;
    return dr__error_prefix(err, "%s", def->name);
}

/* --- plan --- */

/* What the record has of the input of a decode, where it was read in ranges. */
static const dr__record_part *part_for(const dr__workbench *b, const dr__step *step)
{
    return b->record.part.on && step->in == b->record.part.field ? &b->record.part : NULL;
}

static dr_task task_for(const dr__program *p, dr__workbench *b, const dr__node *node, dr_error *err)
{
    return (dr_task){
        .k = p->kernels,
        .conf = node->op.conf,
        .codecs = b->codecs,
        .reference = !p->fused,
        .seek = b->seek,
        .err = err,
    };
}

/* Gives a task all fields of its node, for run and inspect. */
static void set_fields(const dr__program *p, const dr__workbench *b, const dr__step *step,
                       const dr_view *fields[DR__NODE_FIELDS], dr_task *task)
{
    task->n_fields = p->graph->nodes[step->node].n_fields;
    for (int f = 0; f < task->n_fields; f++)
        fields[f] = &b->values[p->node_in[step->node][f]];
    task->fields = fields;
}

static bool add_bytes(size_t *total, size_t bytes)
{
    size_t padded;
    return dr__add_size(bytes, SLACK + ALIGN - 1, &padded) &&
           dr__add_size(*total, padded & ~(size_t)(ALIGN - 1), total);
}

static dr_status reserve_pars(const dr__program *p, dr__workbench *b, dr_error *err)
{
    if (b->pars && p->par_bytes <= b->pars_cap)
        return DR_OK;
    dr__free_aligned(b->pars);
    b->pars_cap = 0;
    b->pars = dr__alloc_aligned(p->par_bytes);
    if (!b->pars)
        return dr__fail(err, DR_ERR_NOMEM, "out of memory");
    b->pars_cap = p->par_bytes;
    memset(b->pars, 0, p->par_bytes);
    return DR_OK;
}

/* Reserves memory for the results of early steps; none is larger than the data set's field it starts from. */
static dr_status reserve_early(const dr__program *p, dr__workbench *b, dr_error *err)
{
    size_t total = 0, bytes = 0;
    for (int s = 0; s < p->n_steps; s++)
        if (p->steps[s].early && (!dr__desc_bytes_dense(&b->values[p->steps[s].root].desc, &bytes) ||
                                  !add_bytes(&total, bytes) || total > b->memory_limit))
            return dr__fail(err, DR_ERR_LIMIT, "field \"%s\" is too large", p->names[p->steps[s].root]);
    if (total <= b->early_cap)
        return DR_OK;
    dr__free_aligned(b->early);
    b->early_cap = 0;
    b->early = dr__alloc_aligned(total);
    if (!b->early)
        return dr__fail(err, DR_ERR_NOMEM, "out of memory");
    b->early_cap = total;
    return DR_OK;
}

static dr_status inspect(const dr__program *p, dr__workbench *b, int s, dr_error *err)
{
    const dr__node *node = &p->graph->nodes[p->steps[s].node];
    const dr_view *fields[DR__NODE_FIELDS];
    if (!p->steps[s].first || !node->op.def->inspect)
        return DR_OK;
    dr_task task = task_for(p, b, node, err);
    set_fields(p, b, &p->steps[s], fields, &task);
    return node->op.def->inspect(&task, b->pars + p->steps[s].par_at);
}

static dr_status draw(const dr__program *p, dr__workbench *b, int s, const dr__rng_name *name, dr_error *err)
{
    const dr__step *step = &p->steps[s];
    const dr__node *node = &p->graph->nodes[step->node];
    void *par = b->pars + step->par_at;
    if (node->op.def->flags & DR_OP_DECODE) {
        dr_task task = task_for(p, b, node, err);
        task.scale = b->scale[s];
        task.part = part_for(b, step);
        return node->op.def->peek(&task, &b->values[step->in], par);
    }
    if (step->first && node->op.def->flags & DR_OP_RANDOM) {
        dr_rng rng = dr__rng_open(name, node->id);
        DR_TRY(node->op.def->draw(node->op.conf, &rng, &b->values[p->node_in[step->node][0]].desc, par, err));
    }
    return node->op.def->flags & DR_OP_EARLY ? inspect(p, b, s, err) : DR_OK;
}

static dr_status reserve_early_scratch(dr__workbench *b, size_t bytes, dr_error *err)
{
    if (bytes <= b->early_scratch_cap)
        return DR_OK;
    dr__free_aligned(b->early_scratch);
    b->early_scratch_cap = 0;
    b->early_scratch = bytes <= b->memory_limit ? dr__alloc_aligned(bytes) : NULL;
    if (!b->early_scratch)
        return dr__fail(err, DR_ERR_NOMEM, "out of memory for %zu bytes", bytes);
    b->early_scratch_cap = bytes;
    return DR_OK;
}

/* Runs an early step, on boxes and the like: later shapes may depend on them before anything is decoded. */
static dr_status run_early(const dr__program *p, dr__workbench *b, const dr__step *step, size_t scratch, dr_error *err)
{
    const dr__node *node = &p->graph->nodes[step->node];
    const dr_view *fields[DR__NODE_FIELDS];
    dr_view *out = &b->values[step->out];
    size_t bytes = 0;
    DR_TRY(reserve_early_scratch(b, scratch, err));
    dr_task task = task_for(p, b, node, err);
    task.scratch = b->early_scratch;
    set_fields(p, b, step, fields, &task);
    dr__desc_bytes_dense(&out->desc, &bytes);
    out->data = b->early + b->early_used;
    add_bytes(&b->early_used, bytes);
    if (b->early_used > b->early_cap)
        return dr__fail(err, DR_ERR_LIMIT, "a result of %zu bytes is larger than field \"%s\", which it is made from",
                        bytes, p->names[step->root]);
    return dr__op_run(&node->op, &task, b->pars + step->par_at, &b->values[step->in], out);
}

/* The draws for an image apply to its masks only if these have the size of the image. */
static dr_status check_frame(const dr__program *p, const dr__workbench *b, const dr__step *step, dr_error *err)
{
    const dr_desc *in = &b->values[step->in].desc, *frame = &b->values[p->node_in[step->node][0]].desc;
    const bool plane = in->kind == DR_KIND_MASK, planes = in->kind == DR_KIND_MASKS && in->n_dims == 3;
    if (!(plane || planes) || !dr__is_image(frame) || frame->layout != DR_LAYOUT_HWC)
        return DR_OK;
    const int64_t h = planes ? in->dims[1] : dr__height(in), w = planes ? in->dims[2] : dr__width(in);
    if (h == dr__height(frame) && w == dr__width(frame))
        return DR_OK;
    return dr__fail(err, DR_ERR_ARG, "\"%s\" has %lldx%lld pixels, \"%s\" has %lldx%lld: they must be equal",
                    p->names[step->in], (long long)w, (long long)h, p->names[p->node_in[step->node][0]],
                    (long long)dr__width(frame), (long long)dr__height(frame));
}

static dr_status plan_step(const dr__program *p, dr__workbench *b, int s, const dr__rng_name *name, dr_error *err)
{
    const dr__step *step = &p->steps[s];
    const dr__node *node = &p->graph->nodes[step->node];
    const dr_desc *in = &b->values[step->in].desc;
    const void *par = b->pars + step->par_at;
    DR_TRY(check_frame(p, b, step, err));
    DR_TRY(draw(p, b, s, name, err));
    dr_plan plan = { 0 };
    DR_TRY(dr__op_plan(&node->op, par, in, &plan, err));
    b->values[step->out] = dr__view_dense(&plan.desc, NULL);
    if (step->early)
        return run_early(p, b, step, plan.scratch, err);
    b->scratch[s] = plan.scratch;
    b->scratch_most = DR_MAX(b->scratch_most, plan.scratch);
    return DR_OK;
}

/* The predicted cost of a step, given which part of a decoded image is needed. */
static double cost_of(const dr__program *p, const dr__workbench *b, int s)
{
    const dr__step *step = &p->steps[s];
    const dr__op *op = &p->graph->nodes[step->node].op;
    const dr_view *out = &b->values[step->out];
    const dr_desc *in = &b->values[step->in].desc;
    const void *par = b->pars + step->par_at;
    if (step->early || in->kind == DR_KIND_BOXES || in->kind == DR_KIND_KEYPOINTS) /* negligible */
        return 0;
    if (op->def->part_cost && step->windowed)
        return op->def->part_cost(op->conf, par, in, &out->window);
    return dr__op_cost(op, par, in, &out->desc);
}

static double cost_of_steps(const dr__program *p, const dr__workbench *b)
{
    double cost = 0;
    for (int s = 0; s < p->n_steps; s++)
        cost += cost_of(p, b, s);
    return cost;
}

static dr_rect join(dr_rect a, dr_rect b)
{
    int64_t x = DR_MIN(a.x, b.x), y = DR_MIN(a.y, b.y);
    return (dr_rect){ x, y, DR_MAX(a.x + a.w, b.x + b.w) - x, DR_MAX(a.y + a.h, b.y + b.h) - y };
}

/* Reduces the result of a windowed decode to what its readers need. */
static void set_window(const dr__program *p, dr__workbench *b, int value)
{
    dr_view *v = &b->values[value];
    dr_rect all = v->window, need = { 0 };
    bool first = true;
    for (int s = 0; s < p->n_steps; s++) {
        if (p->steps[s].in != value)
            continue;
        int node = p->steps[s].node;
        const dr__op *op = &p->graph->nodes[node].op;
        dr_rect part = all;
        if (op->def->region)
            op->def->region(op->conf, b->pars + p->par_at[node], &v->desc, &part);
        need = first ? part : join(need, part);
        first = false;
    }
    v->window = need;
}

static size_t bleed_bytes(const dr__step *step)
{
    return step->windowed ? WINDOW_BLEED : 0;
}

/* Bytes of a step's result in memory, with its window and bleed; sets its stride. */
static bool result_bytes(const dr__step *step, dr_view *v, size_t *bytes)
{
    if (!dr__is_image(&v->desc) || v->desc.layout != DR_LAYOUT_HWC)
        return dr__desc_bytes_dense(&v->desc, bytes);
    dr_desc part = dr__desc_resized(&v->desc, v->window.h, v->window.w);
    if (!dr__desc_bytes_dense(&part, bytes)) /* the product of all extents: each row fits as well */
        return false;
    size_t row = dr__row_bytes(&part) + 2 * bleed_bytes(step);
    v->stride = (ptrdiff_t)row;
    return dr__mul_size(row, (size_t)v->window.h, bytes);
}

/* Whether a step makes a result in the arena.  Steps of a tail and decodes that stream into one make none; early steps
 * have theirs elsewhere. */
static bool has_result(const dr__program *p, const dr__workbench *b, int s)
{
    return p->steps[s].tail < 0 && !p->steps[s].early && !b->streamed[s];
}

dr_status dr__sample_read(dr__workbench *b, const dr_dataset *set, uint64_t id, dr_error *err)
{
    b->record.max_bytes = DR_MAX(b->memory_limit, (size_t)DR__ENCODED_LEAST);
    b->record.part.on = false;
    b->record.ranged = (dr__ranged){ 0 };
    return dr__dataset_read(set, id, &b->record, err);
}

static dr_status reserve_arena(const dr__program *p, dr__workbench *b, dr_error *err)
{
    size_t total = 0;
    bool fits = add_bytes(&total, b->scratch_most);
    for (int s = 0; fits && s < p->n_steps; s++) {
        size_t bytes = 0;
        if (has_result(p, b, s))
            fits = result_bytes(&p->steps[s], &b->values[p->steps[s].out], &bytes) && add_bytes(&total, bytes);
    }
    if (!fits || total > b->memory_limit)
        return dr__fail(err, DR_ERR_LIMIT,
                        "needs %zu bytes of working memory, the limit is %zu, 1/%d of memory_limit: memory_limit must "
                        "be at least %llu for it",
                        total, b->memory_limit, DR__BENCH_PART,
                        total > SIZE_MAX / DR__BENCH_PART ? (unsigned long long)SIZE_MAX
                                                          : (unsigned long long)total * DR__BENCH_PART);
    if (total <= b->arena_cap && !dr__should_shrink(&b->n_small, b->arena_cap, total))
        return DR_OK;
    dr__free_aligned(b->arena);
    b->arena_cap = 0;
    size_t grown = DR_MIN(total + total / 4, b->memory_limit); /* 1/4 more, so that it rarely grows again */
    b->arena = dr__alloc_aligned(grown);
    if (!b->arena)
        return dr__fail(err, DR_ERR_NOMEM, "out of memory for %zu bytes", grown);
    b->arena_cap = grown;
    return DR_OK;
}

static uint8_t *arena_take(dr__workbench *b, size_t bytes)
{
    uint8_t *at = b->arena + b->arena_used;
    b->arena_used += (bytes + SLACK + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    return at;
}

static dr_status plan_all(const dr__program *p, dr__workbench *b, const dr__rng_name *name, dr_error *err)
{
    b->scratch_most = 0;
    b->early_used = 0;
    for (int s = 0; s < p->n_steps; s++)
        DR_TRY(prefix_op_name(p->graph->nodes[p->steps[s].node].op.def, plan_step(p, b, s, name, err), err));
    for (int s = 0; s < p->n_steps; s++)
        if (p->steps[s].windowed)
            set_window(p, b, p->steps[s].out);
    return DR_OK;
}

static bool can_stream(const dr__program *p, const dr__workbench *b, const dr__tail *tail)
{
    if (tail->decode_step < 0)
        return false;
    int from = p->steps[tail->decode_step].node, to = p->steps[tail->rows_step].node;
    const dr__op *decode = &p->graph->nodes[from].op, *rows = &p->graph->nodes[to].op;
    return decode->def->streams(b->pars + p->steps[tail->decode_step].par_at) &&
           (!rows->def->feeds || rows->def->feeds(rows->conf, b->pars + p->par_at[to], &b->values[tail->source].desc));
}

static size_t round_up(size_t bytes)
{
    return (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

/* Decides which decodes stream for this sample.  Such a decode and the step that takes its rows use their scratch at
 * the same time. */
static void choose_streams(const dr__program *p, dr__workbench *b)
{
    memset(b->streamed, 0, sizeof b->streamed);
    for (int t = 0; t < p->n_tails && !b->times; t++) {
        const dr__tail *tail = &p->tails[t];
        if (!can_stream(p, b, tail))
            continue;
        b->streamed[tail->decode_step] = true;
        b->scratch_most =
            DR_MAX(b->scratch_most, round_up(b->scratch[tail->rows_step]) + b->scratch[tail->decode_step]);
    }
}

/* Whether a node also has boxes or masks.  They refer to positions in the image at its stored size, so the image must
 * be decoded at that size. */
static bool has_positions(const dr__program *p, int node)
{
    for (int f = 0; f < p->graph->nodes[node].n_fields; f++)
        if ((DR__ON_PLACES & ~DR__ON_IMAGES) >> p->values[p->node_in[node][f]].kind & 1)
            return true;
    return false;
}

/* The largest divisor of the decoded size that still gives the reader at least as many pixels as it makes. */
static int choose_scale(const dr__program *p, const dr__workbench *b, int s)
{
    const dr__step *step = &p->steps[s];
    const dr__op *op = &p->graph->nodes[step->node].op;
    int reader;
    if (!op->def->may_scale || !op->def->may_scale(op->conf) || dr__program_output_of(p, step->out) >= 0 ||
        dr__program_readers(p, step->out, &reader) != 1 ||
        !(p->graph->nodes[p->steps[reader].node].op.def->flags & DR_OP_RESAMPLE) ||
        has_positions(p, p->steps[reader].node))
        return 1;
    int node = p->steps[reader].node;
    dr_rect from = b->values[step->out].window;
    const dr__op *next = &p->graph->nodes[node].op;
    if (next->def->region)
        next->def->region(next->conf, b->pars + p->par_at[node], &b->values[step->out].desc, &from);
    const dr_desc *to = &b->values[p->steps[reader].out].desc;
    int scale = 8;
    while (scale > 1 && (from.w / scale < dr__width(to) || from.h / scale < dr__height(to)))
        scale /= 2;
    return scale;
}

/* Draws, shapes and windows; with scaled decodes twice. */
static dr_status plan_steps(const dr__program *p, dr__workbench *b, const dr__rng_name *name, dr_error *err)
{
    DR_TRY(reserve_pars(p, b, err));
    for (int i = 0; i < p->n_inputs; i++)
        b->values[i] = b->record.fields[i];
    DR_TRY(reserve_early(p, b, err));
    for (int s = 0; s < p->n_steps; s++)
        b->scale[s] = 1;
    DR_TRY(plan_all(p, b, name, err));
    bool scaled = false;
    for (int s = 0; s < p->n_steps; s++) {
        b->scale[s] = choose_scale(p, b, s);
        scaled |= b->scale[s] > 1;
    }
    /* Drawn again for the smaller image: the same random numbers, so the same part of it. */
    return scaled ? plan_all(p, b, name, err) : DR_OK;
}

int dr__program_ranged_step(const dr__program *p, const char *field)
{
    int found = -1;
    for (int s = 0; s < p->n_steps; s++) {
        const dr__step *step = &p->steps[s];
        const dr__node *node = &p->graph->nodes[step->node];
        if (step->in >= p->n_inputs || strcmp(p->names[step->in], field) != 0)
            continue;
        if (found >= 0 || !step->windowed || !node->op.def->ranges)
            return -1;
        found = s;
    }
    return found >= 0 && dr__program_output_of(p, p->steps[found].in) < 0 ? found : -1;
}

bool dr__sample_ranges(const dr__program *p, dr__workbench *b, const dr__rng_name *name, int s, uint64_t gap,
                       dr__byte_ranges *ranges)
{
    const dr__step *step = &p->steps[s];
    const dr__node *node = &p->graph->nodes[step->node];
    if (plan_steps(p, b, name, NULL) != DR_OK)
        return false;
    b->cost = cost_of_steps(p, b);
    dr_task task = task_for(p, b, node, NULL);
    task.part = part_for(b, step);
    return node->op.def->ranges(&task, b->pars + step->par_at, &b->values[step->in], &b->values[step->out].window, gap,
                                ranges);
}

dr_status dr__sample_plan(const dr__program *p, dr__workbench *b, const dr__rng_name *name, dr_error *err)
{
    DR_TRY(plan_steps(p, b, name, err));
    b->cost = cost_of_steps(p, b);
    choose_streams(p, b);
    return reserve_arena(p, b, err);
}

/* --- run --- */

static void add_step_time(dr__workbench *b, int s, const dr__step *step, uint64_t ns)
{
    dr__step_time *t = &b->times[s];
    size_t in = 0, out = 0;
    dr__desc_bytes_dense(&b->values[step->in].desc, &in);
    dr__desc_bytes_dense(&b->values[step->out].desc, &out);
    t->ns += ns;
    t->in_bytes += in;
    t->out_bytes += out;
    t->calls++;
}

static dr_status run_step(const dr__program *p, dr__workbench *b, int s, uint8_t *scratch, dr_error *err)
{
    const dr__step *step = &p->steps[s];
    const dr__node *node = &p->graph->nodes[step->node];
    dr_view *out = &b->values[step->out];
    const dr_view *fields[DR__NODE_FIELDS];
    size_t bytes = 0;
    if (!(node->op.def->flags & DR_OP_EARLY))
        DR_TRY(prefix_op_name(node->op.def, inspect(p, b, s, err), err));
    result_bytes(step, out, &bytes);
    out->data = arena_take(b, bytes) + bleed_bytes(step);
    dr_task task = task_for(p, b, node, err);
    task.scratch = scratch;
    task.bleed = bleed_bytes(step);
    task.part = part_for(b, step);
    set_fields(p, b, step, fields, &task);
    return prefix_op_name(node->op.def, dr__op_run(&node->op, &task, b->pars + step->par_at, &b->values[step->in], out),
                          err);
}

dr_status dr__sample_run(const dr__program *p, dr__workbench *b, dr_error *err)
{
    b->arena_used = 0;
    uint8_t *scratch = arena_take(b, b->scratch_most);
    for (int s = 0; s < p->n_steps; s++) {
        if (!has_result(p, b, s))
            continue;
        uint64_t start = b->times ? dr__thread_cpu_ns() : 0;
        DR_TRY(run_step(p, b, s, scratch, err));
        if (b->times)
            add_step_time(b, s, &p->steps[s], dr__thread_cpu_ns() - start);
    }
    return DR_OK;
}

/* --- store --- */

dr_desc dr__sample_desc(const dr__program *p, const dr__workbench *b, int output)
{
    const dr__output *o = &p->outputs[output];
    const dr_desc *now = &b->values[o->value].desc;
    dr_desc d = *now;
    if (o->desc.layout == DR_LAYOUT_CHW && now->layout == DR_LAYOUT_HWC) {
        d.layout = DR_LAYOUT_CHW;
        d.dims[0] = now->dims[2], d.dims[1] = now->dims[0], d.dims[2] = now->dims[1];
    }
    return d;
}

/* Decodes row by row into the op that makes the tail's rows. */
static dr_status stream(const dr__program *p, dr__workbench *b, const dr__tail *tail, dr__row_sink *sink, dr_error *err)
{
    const dr__step *from = &p->steps[tail->decode_step], *to = &p->steps[tail->rows_step];
    const dr__node *decode = &p->graph->nodes[from->node], *rows = &p->graph->nodes[to->node];
    const dr_view *pixels = &b->values[from->out];
    dr__bands *bands = NULL;
    dr_task task = task_for(p, b, rows, err);
    task.scratch = b->arena;
    DR_TRY(prefix_op_name(
        rows->op.def,
        rows->op.def->feed(&task, b->pars + p->par_at[to->node], &pixels->desc, &b->values[to->out].desc, sink, &bands),
        err));
    task = task_for(p, b, decode, err);
    task.scratch = b->arena + round_up(b->scratch[tail->rows_step]);
    task.part = part_for(b, from);
    return prefix_op_name(
        decode->op.def,
        decode->op.def->stream(&task, b->pars + from->par_at, &b->values[from->in], &pixels->window, bands), err);
}

dr_status dr__sample_store(const dr__program *p, dr__workbench *b, int output, void *place, dr_error *err)
{
    const dr__output *o = &p->outputs[output];
    dr_desc desc = dr__sample_desc(p, b, output);
    dr_view out = dr__view_dense(&desc, place);
    if (o->tail < 0) {
        dr__slot_write_array(p->kernels, &b->values[o->value], &out);
        return DR_OK;
    }
    const dr__tail *tail = &p->tails[o->tail];
    bool mirror = false;
    if (tail->flip_step >= 0) {
        int node = p->steps[tail->flip_step].node;
        mirror = p->graph->nodes[node].op.def->mirrors(b->pars + p->par_at[node]);
    }
    dr__slot_writer sink;
    dr__slot_open(&sink, p->kernels, tail, mirror, &out);
    if (tail->rows_step < 0) {
        dr__slot_write_image(&sink, &b->values[tail->source]);
        return DR_OK;
    }
    if (tail->decode_step >= 0 && b->streamed[tail->decode_step])
        return stream(p, b, tail, &sink.rows, err);
    const dr__step *step = &p->steps[tail->rows_step];
    const dr__node *node = &p->graph->nodes[step->node];
    dr_task task = task_for(p, b, node, err);
    task.scratch = b->arena; /* the scratch of every step is at the start of the arena */
    return node->op.def->rows(&task, b->pars + p->par_at[step->node], &b->values[tail->source],
                              &b->values[step->out].desc, &sink.rows);
}

json_t *dr__sample_draws(const dr__program *p, const uint8_t *pars)
{
    json_t *all = json_object();
    for (int i = 0; all && i < p->graph->n_nodes; i++) {
        const dr__node *node = &p->graph->nodes[i];
        if (!(node->op.def->flags & DR_OP_RANDOM) || node->op.def->flags & DR_OP_BATCH)
            continue;
        char id[16];
        snprintf(id, sizeof id, "%u", node->id);
        json_t *draws = dr__op_draws_json(&node->op, pars + p->par_at[i]);
        json_object_set_new(draws, "op", json_string(node->op.def->name));
        json_object_set_new(all, id, draws);
    }
    return all;
}
