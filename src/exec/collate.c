/* collate.c: from filled slots to a finished batch. */
#include <string.h>

#include "base/alloc.h"
#include "exec/exec.h"
#include "op/batch.h"

static void copy_staged(dr_batch *b)
{
    for (int i = 0; i < b->n_fields; i++) {
        struct dr__batch_field *f = &b->fields[i];
        if (f->staging)
            memcpy(f->buf->data, f->staging->data, b->n_staged * f->bytes);
        dr__buf_free(&f->staging);
    }
}

/* Moves the samples together over the skipped slots, in order.  The positions of skipped samples go behind them. */
static void compact_slots(dr_batch *b)
{
    uint64_t to = 0;
    for (uint64_t from = 0; from < b->n_slots; from++) {
        if (b->missing[from])
            continue;
        if (to != from) {
            const uint64_t left_out = b->positions[to];
            b->ids[to] = b->ids[from];
            b->positions[to] = b->positions[from];
            b->positions[from] = left_out;
            if (b->draws) {
                char *hold = b->draws[to];
                b->draws[to] = b->draws[from];
                b->draws[from] = hold;
            }
            for (int i = 0; i < b->n_fields; i++) {
                struct dr__batch_field *f = &b->fields[i];
                if (f->collate == DR_COLLATE_STACK) {
                    memcpy(f->buf->data + to * f->bytes, f->buf->data + from * f->bytes, f->bytes);
                } else {
                    dr_view hold = f->items[to];
                    f->items[to] = f->items[from];
                    f->items[from] = hold;
                }
            }
        }
        to++;
    }
    b->n_samples = to;
}

/* The description of n stacked samples: one more extent in front. */
static dr_desc stacked(const dr_desc *one, uint64_t n)
{
    dr_desc d = *one;
    memmove(d.dims + 1, d.dims, sizeof d.dims - sizeof d.dims[0]);
    d.dims[0] = (int64_t)n;
    d.n_dims = one->n_dims + 1;
    return d;
}

static void set_array(struct dr__batch_field *f, const dr_desc *one, uint64_t n)
{
    f->array = (dr_view){ .data = f->buf ? f->buf->data : NULL, .desc = stacked(one, n) };
}

static dr_status no_memory(const struct dr__batch_field *f, dr_error *err)
{
    return dr__fail(err, DR_ERR_NOMEM, "field \"%s\": out of memory for the batch", f->name);
}

static dr_status check_same_rank(const struct dr__batch_field *f, const dr_batch *b, dr_error *err)
{
    for (uint64_t i = 1; i < b->n_samples; i++)
        if (f->items[i].desc.n_dims != f->items[0].desc.n_dims || f->items[i].desc.dtype != f->items[0].desc.dtype)
            return dr__fail(err, DR_ERR_ARG, "field \"%s\": samples differ in type or number of dimensions", f->name);
    return DR_OK;
}

/* Copies a dense array into the corner of a larger one. */
static void copy_corner(uint8_t *dst, const int64_t *room, const uint8_t *src, const int64_t *dims, int n,
                        size_t element)
{
    if (n == 0) {
        memcpy(dst, src, element);
        return;
    }
    size_t inner = element, inner_room = element;
    for (int i = 1; i < n; i++) {
        inner *= (size_t)dims[i];
        inner_room *= (size_t)room[i];
    }
    for (int64_t i = 0; i < dims[0]; i++) {
        if (n == 1)
            memcpy(dst + (size_t)i * element, src + (size_t)i * element, element);
        else
            copy_corner(dst + (size_t)i * inner_room, room + 1, src + (size_t)i * inner, dims + 1, n - 1, element);
    }
}

/* Pads each sample with zeros to the largest extents of the batch; f->sizes has the true extents. */
static dr_status pad(dr__exec *e, dr_batch *b, struct dr__batch_field *f, dr_error *err)
{
    DR_TRY(check_same_rank(f, b, err));
    dr_desc most = b->n_samples ? f->items[0].desc : f->desc;
    int n = most.n_dims;
    for (uint64_t i = 0; i < b->n_samples; i++)
        for (int d = 0; d < n; d++)
            most.dims[d] = DR_MAX(most.dims[d], f->items[i].desc.dims[d]);
    size_t bytes = 0, total;
    if (b->n_samples && !dr__desc_bytes_dense(&most, &bytes))
        return no_memory(f, err);
    if (!dr__mul_size(bytes, b->n_samples, &total) || !(f->buf = dr__buf_new(e->buffers, total)) ||
        !(f->sizes = dr__alloc_zero(b->n_samples * (size_t)n, sizeof *f->sizes)))
        return no_memory(f, err);
    memset(f->buf->data, 0, total);
    for (uint64_t i = 0; i < b->n_samples; i++) {
        const dr_view *v = &f->items[i];
        copy_corner(f->buf->data + i * bytes, most.dims, v->data, v->desc.dims, n, dr_dtype_size(most.dtype));
        memcpy(f->sizes + i * (size_t)n, v->desc.dims, (size_t)n * sizeof *f->sizes);
    }
    set_array(f, &most, b->n_samples);
    return DR_OK;
}

/* Joins the samples along their first extent. */
static dr_status join_ragged(dr__exec *e, dr_batch *b, struct dr__batch_field *f, dr_error *err)
{
    DR_TRY(check_same_rank(f, b, err));
    dr_desc all = b->n_samples ? f->items[0].desc : f->desc;
    if (all.n_dims == 0)
        return dr__fail(err, DR_ERR_ARG, "field \"%s\": a scalar cannot be ragged", f->name);
    f->offsets = dr__alloc_zero(b->n_samples + 1, sizeof *f->offsets);
    if (!f->offsets)
        return no_memory(f, err);
    for (uint64_t i = 0; i < b->n_samples; i++) {
        for (int d = 1; d < all.n_dims; d++)
            if (f->items[i].desc.dims[d] != all.dims[d])
                return dr__fail(err, DR_ERR_ARG, "field \"%s\": ragged samples may differ in their first extent only",
                                f->name);
        f->offsets[i + 1] = f->offsets[i] + f->items[i].desc.dims[0];
    }
    all.dims[0] = f->offsets[b->n_samples];
    size_t total, at = 0;
    if (!dr__desc_bytes_dense(&all, &total) || !(f->buf = dr__buf_new(e->buffers, total)))
        return no_memory(f, err);
    for (uint64_t i = 0; i < b->n_samples; i++) {
        size_t bytes = 0;
        dr__desc_bytes_dense(&f->items[i].desc, &bytes);
        memcpy(f->buf->data + at, f->items[i].data, bytes);
        at += bytes;
    }
    f->array = (dr_view){ .data = f->buf->data, .desc = all };
    return DR_OK;
}

static void drop_items(struct dr__batch_field *f, uint64_t n_slots)
{
    for (uint64_t i = 0; i < n_slots; i++)
        dr__free_aligned(f->items[i].data);
    dr__free(f->items);
    f->items = NULL;
}

static struct dr__batch_field *find_field(dr_batch *b, const char *name)
{
    for (int i = 0; i < b->n_fields; i++)
        if (!strcmp(b->fields[i].name, name))
            return &b->fields[i];
    return NULL;
}

/* Runs one op on the whole batch; a field whose description changes gets new memory. */
static dr_status run_batch_op(dr__exec *e, dr_batch *b, const dr__node *node, dr_error *err)
{
    const dr_op_def *def = node->op.def;
    dr_desc in[DR__BATCH_OP_FIELDS], out[DR__BATCH_OP_FIELDS];
    dr_view from[DR__BATCH_OP_FIELDS], to[DR__BATCH_OP_FIELDS];
    struct dr__batch_field *fields[DR__BATCH_OP_FIELDS];
    dr__buf *fresh[DR__BATCH_OP_FIELDS] = { 0 };
    size_t scratch = 0;
    for (int i = 0; i < def->batch->n_fields; i++) {
        fields[i] = find_field(b, node->in[i]);
        in[i] = fields[i]->desc;
        from[i] = fields[i]->array;
    }
    DR_TRY(def->batch->plan(node->op.conf, in, out, &scratch, err));
    uint8_t *block = dr__alloc_aligned(scratch + def->par_size + 64);
    if (!block)
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", def->name);
    void *par = block + ((scratch + 63) & ~(size_t)63);
    dr__rng_name name = { e->o.seed, b->epoch, b->number * e->o.world_size + e->o.rank, UINT32_MAX };
    dr_rng rng = dr__rng_open(&name, node->id);
    dr_status status = def->batch->draw(node->op.conf, &rng, in, (int64_t)b->n_samples, par, err);
    for (int i = 0; status == DR_OK && i < def->batch->n_fields; i++) {
        size_t bytes;
        to[i] = from[i];
        if (dr__desc_equal(&in[i], &out[i]))
            continue;
        to[i].desc = stacked(&out[i], b->n_samples);
        if (!dr__desc_bytes_dense(&to[i].desc, &bytes) || !(fresh[i] = dr__buf_new(e->buffers, bytes)))
            status = no_memory(fields[i], err);
        else
            to[i].data = fresh[i]->data;
    }
    dr_task task = { .k = e->program->kernels, .conf = node->op.conf, .scratch = block, .err = err };
    if (status == DR_OK && b->n_samples)
        status = def->batch->run(&task, par, from, to);
    for (int i = 0; i < def->batch->n_fields; i++) {
        if (!fresh[i])
            continue;
        dr__buf_free(&fields[i]->buf);
        fields[i]->buf = fresh[i];
        fields[i]->desc = out[i];
        fields[i]->array = to[i];
    }
    dr__free_aligned(block);
    return status;
}

bool dr__batch_make_empty(dr_batch *b)
{
    bool ok = true;
    b->n_samples = 0;
    for (int i = 0; i < b->n_fields; i++) {
        struct dr__batch_field *f = &b->fields[i];
        dr_desc one = f->desc;
        for (int d = 0; d < one.n_dims; d++)
            one.dims[d] = DR_MAX(one.dims[d], 0); /* no sample tells the extents that are DR_UNKNOWN */
        set_array(f, &one, 0);
        if (f->collate == DR_COLLATE_RAGGED) {
            one.dims[0] = 0;
            f->array.desc = one;
            ok &= (f->offsets = dr__alloc_zero(1, sizeof *f->offsets)) != NULL;
        }
    }
    return ok;
}

void dr__batch_discard(dr_batch *b)
{
    b->n_samples = 0;
    for (uint64_t i = 0; i < b->n_slots; i++) {
        if (b->missing[i])
            continue;
        b->ids[b->n_samples] = b->ids[i];
        b->positions[b->n_samples++] = b->positions[i];
    }
    for (int i = 0; i < b->n_fields; i++) {
        dr__buf_free(&b->fields[i].buf);
        dr__buf_free(&b->fields[i].staging);
    }
}

dr_status dr__batch_finish(dr__exec *e, dr_batch *b, dr_error *err)
{
    copy_staged(b);
    compact_slots(b);
    if (b->n_samples == 0)
        return dr__batch_make_empty(b) ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "out of memory for a batch");
    for (int i = 0; i < b->n_fields; i++) {
        struct dr__batch_field *f = &b->fields[i];
        if (f->collate == DR_COLLATE_STACK)
            set_array(f, &f->desc, b->n_samples);
        else if (f->collate == DR_COLLATE_PAD)
            DR_TRY(pad(e, b, f, err));
        else if (f->collate == DR_COLLATE_RAGGED)
            DR_TRY(join_ragged(e, b, f, err));
        if (f->items && f->collate != DR_COLLATE_LIST)
            drop_items(f, b->n_slots);
    }
    for (int i = 0; i < e->program->n_batch_nodes; i++)
        DR_TRY(run_batch_op(e, b, &e->program->graph->nodes[e->program->batch_nodes[i]], err));
    return DR_OK;
}
