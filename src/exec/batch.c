/* batch.c: allocating a batch, and the calls on a batch that a consumer holds. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "exec/exec.h"

static void free_items(struct dr__batch_field *f, uint64_t n_slots)
{
    for (uint64_t i = 0; f->items && i < n_slots; i++)
        dr__free_aligned(f->items[i].data);
    dr__free(f->items);
}

static void batch_free(dr_batch *b)
{
    for (int i = 0; b->fields && i < b->n_fields; i++) {
        struct dr__batch_field *f = &b->fields[i];
        dr__buf_free(&f->buf);
        dr__buf_free(&f->staging);
        free_items(f, b->n_slots);
        dr__free(f->sizes);
        dr__free(f->offsets);
    }
    for (uint64_t i = 0; b->draws && i < b->n_slots; i++)
        dr__free(b->draws[i]);
    dr__free(b->draws);
    dr__free(b->fields);
    dr__free(b->ids);
    dr__free(b->positions);
    dr__free(b->missing);
    json_decref(b->bad);
    dr__free(b->bad_text);
    dr__free(b);
}

/* The last batch of an epoch may be smaller, but gets the memory of a whole one, so that pooled buffers fit.  Pushed
 * batches may have any size: one of at most half of batch_size gets only what it needs. */
static uint64_t slots_to_allocate(const dr__exec *e, uint64_t n_slots)
{
    const bool small = e->o.pushed_order ? n_slots <= e->o.batch_size / 2 : e->order.n_local < e->o.batch_size;
    return small ? n_slots : DR_MAX(n_slots, e->o.batch_size);
}

static bool allocate_field(dr__exec *e, const dr_batch *b, struct dr__batch_field *f)
{
    size_t total;
    if (!dr__mul_size(f->bytes, slots_to_allocate(e, b->n_slots), &total))
        return false;
    f->buf = dr__buf_new(e->buffers, total);
    return f->buf;
}

static bool open_field(dr__exec *e, dr_batch *b, int i)
{
    const dr__output *o = &e->program->outputs[i];
    struct dr__batch_field *f = &b->fields[i];
    snprintf(f->name, sizeof f->name, "%s", o->name);
    f->collate = o->collate;
    f->desc = o->desc;
    if (o->collate != DR_COLLATE_STACK) {
        f->items = dr__alloc_zero(b->n_slots, sizeof *f->items);
        return f->items;
    }
    size_t staging;
    if (!dr__desc_bytes_dense(&o->desc, &f->bytes) || !dr__mul_size(f->bytes, b->n_staged, &staging))
        return false;
    if (!b->is_staged)
        return allocate_field(e, b, f);
    f->staging = dr__buf_new(e->buffers, staging);
    return f->staging;
}

bool dr__batch_allocate(dr__exec *e, dr_batch *b)
{
    bool ok = true;
    for (int i = 0; ok && i < b->n_fields; i++)
        ok = b->fields[i].collate != DR_COLLATE_STACK || allocate_field(e, b, &b->fields[i]);
    if (ok)
        b->n_staged = b->used;
    b->is_staged = !ok;
    return ok;
}

dr_batch *dr__batch_new(dr__exec *e, uint64_t number, uint64_t n_slots, uint64_t n_staged)
{
    dr_batch *b = dr__alloc_zero(1, sizeof *b);
    if (!b)
        return NULL;
    atomic_init(&b->refs, 1);
    atomic_init(&b->remaining, n_slots);
    b->generation = dr__fork_generation();
    b->number = number;
    b->epoch = e->order.epoch;
    b->n_slots = n_slots;
    b->n_staged = n_staged;
    b->is_staged = n_staged > 0;
    b->opened_ns = dr__now_ns();
    b->fields = dr__alloc_zero((size_t)e->program->n_outputs, sizeof *b->fields);
    b->ids = dr__alloc_zero(n_slots, sizeof *b->ids);
    b->positions = dr__alloc_zero(n_slots, sizeof *b->positions);
    b->missing = dr__alloc_zero(n_slots, 1);
    b->draws = e->o.keep_draws ? dr__alloc_zero(n_slots, sizeof *b->draws) : NULL;
    bool ok = b->fields && b->ids && b->positions && b->missing && (b->draws || !e->o.keep_draws);
    for (int i = 0; ok && i < e->program->n_outputs; i++, b->n_fields++)
        ok = open_field(e, b, i);
    if (ok)
        return b;
    b->n_fields = b->fields ? e->program->n_outputs : 0;
    batch_free(b);
    return NULL;
}

void *dr__batch_slot_memory(dr_batch *b, int field, uint64_t slot, const dr_desc *desc)
{
    struct dr__batch_field *f = &b->fields[field];
    if (f->collate == DR_COLLATE_STACK)
        return (slot < b->n_staged ? f->staging : f->buf)->data + slot * f->bytes;
    size_t bytes;
    if (!dr__desc_bytes_dense(desc, &bytes))
        return NULL;
    dr__free_aligned(f->items[slot].data); /* left by a failed attempt */
    atomic_fetch_add(&b->item_bytes, bytes);
    f->items[slot] = dr__view_dense(desc, dr__alloc_aligned(bytes));
    return f->items[slot].data;
}

dr_batch *dr_batch_ref(dr_batch *batch)
{
    atomic_fetch_add(&batch->refs, 1);
    return batch;
}

void dr_batch_unref(dr_batch **batch)
{
    if (!batch || !*batch)
        return;
    dr_batch *b = *batch;
    *batch = NULL;
    if (atomic_fetch_sub(&b->refs, 1) == 1)
        batch_free(b);
}

uint64_t dr_batch_samples(const dr_batch *batch)
{
    return batch->n_samples;
}

uint64_t dr_batch_number(const dr_batch *batch)
{
    return batch->number;
}

uint64_t dr_batch_epoch(const dr_batch *batch)
{
    return batch->epoch;
}

uint64_t dr_batch_padded(const dr_batch *batch)
{
    return batch->n_padded;
}

int dr_batch_fields(const dr_batch *batch)
{
    return batch->error.status ? 0 : batch->n_fields;
}

dr_status dr_batch_field_at(const dr_batch *batch, int i, dr_batch_field *out, dr_error *err)
{
    if (i < 0 || i >= dr_batch_fields(batch))
        return dr__fail(err, DR_ERR_ARG, "i must be 0 to %d, got %d", dr_batch_fields(batch) - 1, i);
    const struct dr__batch_field *f = &batch->fields[i];
    *out = (dr_batch_field){
        .name = f->name,
        .collate = f->collate,
        .array = f->array,
        .sizes = f->sizes,
        .offsets = f->offsets,
        .items = f->collate == DR_COLLATE_LIST ? f->items : NULL,
    };
    return DR_OK;
}

const uint64_t *dr_batch_ids(const dr_batch *batch)
{
    return batch->ids;
}

const uint64_t *dr_batch_positions(const dr_batch *batch)
{
    return batch->positions;
}

dr_status dr_batch_draws(const dr_batch *batch, uint64_t i, char **text, dr_error *err)
{
    if (!batch->draws)
        return dr__fail(err, DR_ERR_STATE, "keep_draws must be true to read draws, got false");
    if (i >= batch->n_samples)
        return dr__fail(err, DR_ERR_ARG, "i must be below the %llu samples of the batch, got %llu",
                        (unsigned long long)batch->n_samples, (unsigned long long)i);
    *text = dr__strdup(batch->draws[i] ? batch->draws[i] : "{}");
    return *text ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "out of memory");
}

const char *dr_batch_bad(const dr_batch *batch)
{
    return batch->bad_text ? batch->bad_text : "[]";
}

const dr_error *dr_batch_error(const dr_batch *batch)
{
    return batch->error.status ? &batch->error : NULL;
}
