/* op_harness.h: one op on one image (or volume, or boxes), without a graph.
 *
 * Opens the op from JSON text, draws with a given name, plans, and runs with exactly the planned scratch.  Output and
 * scratch stand between guard bytes; breaking them is reported by harness_guards_intact.
 */
#ifndef OP_HARNESS_H
#define OP_HARNESS_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/alloc.h"
#include "kernel/kernel.h"
#include "op/batch.h"
#include "op/op.h"

enum { HARNESS_GUARD = 64, HARNESS_GUARD_BYTE = 0xA5 };

struct op_run {
    dr__op op;
    void *par;
    dr_plan plan;
    dr_view out;
    uint8_t *out_block, *scratch_block; /* with guards on both sides */
    size_t out_bytes;
    const dr_view *other; /* the node's first field, where the one in hand is the second; NULL: it is the only one */
    uint8_t prefill;      /* what output and scratch hold before the run */
    dr_error err;
};

static inline uint8_t *harness_block(size_t bytes, uint8_t prefill)
{
    uint8_t *block = dr__alloc_aligned(bytes + 2 * HARNESS_GUARD);
    if (block) {
        memset(block, HARNESS_GUARD_BYTE, bytes + 2 * HARNESS_GUARD);
        memset(block + HARNESS_GUARD, prefill, bytes);
    }
    return block;
}

static inline bool harness_block_intact(const uint8_t *block, size_t bytes)
{
    for (size_t i = 0; i < HARNESS_GUARD; i++)
        if (block[i] != HARNESS_GUARD_BYTE || block[HARNESS_GUARD + bytes + i] != HARNESS_GUARD_BYTE)
            return false;
    return true;
}

static inline bool harness_guards_intact(const struct op_run *r)
{
    return harness_block_intact(r->out_block, r->out_bytes) && harness_block_intact(r->scratch_block, r->plan.scratch);
}

static inline void harness_close(struct op_run *r)
{
    dr__op_close(&r->op);
    dr__free(r->par);
    dr__free_aligned(r->out_block);
    dr__free_aligned(r->scratch_block);
    *r = (struct op_run){ 0 };
}

static inline dr_status harness_open(struct op_run *r, const char *op, const char *params)
{
    const dr_op_def *def = dr__op_find(op);
    json_t *json = json_loads(params, 0, NULL);
    *r = (struct op_run){ 0 };
    dr_status status = def && json ? dr__op_open(def, json, &r->op, &r->err)
                                   : dr__fail(&r->err, DR_ERR_ARG, "no op %s, or no JSON: %s", op, params);
    json_decref(json);
    return status;
}

/* Draws for a field of that description; keeps the par. */
static inline dr_status harness_draw(struct op_run *r, const dr__rng_name *name, const dr_desc *in)
{
    dr_rng rng = dr__rng_open(name, 1);
    if (!r->par)
        r->par = dr__alloc_zero(1, dr__op_par_bytes(&r->op) + 16);
    return r->op.def->draw ? r->op.def->draw(r->op.conf, &rng, in, r->par, &r->err) : DR_OK;
}

/* Plans with the par in hand and makes room. */
static inline dr_status harness_plan(struct op_run *r, const dr_desc *in)
{
    r->plan = (dr_plan){ 0 };
    DR_TRY(r->op.def->plan(r->op.conf, r->par, in, &r->plan, &r->err));
    if (!dr__desc_bytes_dense(&r->plan.desc, &r->out_bytes))
        return dr__fail(&r->err, DR_ERR_STATE, "%s: plan with par leaves the shape open", r->op.def->name);
    dr__free_aligned(r->out_block);
    dr__free_aligned(r->scratch_block);
    r->out_block = harness_block(r->out_bytes, r->prefill);
    r->scratch_block = harness_block(r->plan.scratch, r->prefill);
    r->out = dr__view_dense(&r->plan.desc, r->out_block + HARNESS_GUARD);
    return DR_OK;
}

static inline dr_task harness_task(struct op_run *r, const dr__kernels *k)
{
    return (dr_task){ .k = k, .conf = r->op.conf, .scratch = r->scratch_block + HARNESS_GUARD, .err = &r->err };
}

/* As the graph: early ops look before they plan, others before they run. */
static inline dr_status harness_look(struct op_run *r, dr_task *task, bool early)
{
    bool now = r->op.def->inspect && !!(r->op.def->flags & DR_OP_EARLY) == early;
    return now ? r->op.def->inspect(task, r->par) : DR_OK;
}

static inline dr_status harness_run(struct op_run *r, const dr__kernels *k, const dr_view *in)
{
    const dr_view *fields[2] = { r->other ? r->other : in, in };
    dr_task task = { .k = k, .conf = r->op.conf, .err = &r->err, .fields = fields, .n_fields = r->other ? 2 : 1 };
    DR_TRY(harness_look(r, &task, true));
    DR_TRY(harness_plan(r, &in->desc));
    task.scratch = r->scratch_block + HARNESS_GUARD;
    DR_TRY(harness_look(r, &task, false));
    return r->op.def->run(&task, r->par, in, &r->out);
}

/* All of it; r must be closed in any case. */
static inline dr_status harness_do(struct op_run *r, const char *op, const char *params, uint64_t seed,
                                   const dr_view *in)
{
    DR_TRY(harness_open(r, op, params));
    DR_TRY(harness_draw(r, &(dr__rng_name){ .seed = seed }, &in->desc));
    return harness_run(r, dr__kernels_best(), in);
}

static inline void harness_fill(dr_view *v, size_t bytes, uint64_t seed);

/* Likewise a volume; a mask has the classes 0 to 3. */
static inline dr_view harness_volume(dr_kind kind, dr_dtype dtype, int64_t c, int64_t d, int64_t h, int64_t w)
{
    dr_desc desc = dr__desc_volume(dtype, (int64_t[]){ c, d, h, w });
    size_t bytes = 0;
    desc.kind = kind;
    for (int i = 0; i < 3; i++)
        desc.spacing[i] = 1.0 + 0.5 * i;
    dr__desc_bytes_dense(&desc, &bytes);
    dr_view v = dr__view_dense(&desc, dr__alloc(bytes));
    harness_fill(&v, bytes, (uint64_t)(d * 31 + w));
    for (size_t i = 0; kind == DR_KIND_VOLUME_MASK && dtype == DR_U8 && i < bytes; i++)
        v.data[i] &= 3;
    return v;
}

/* Some boxes; the memory is static. */
static inline dr_view harness_boxes(void)
{
    static float v[] = { 2, 1, 7, 8, 0, 0, 30, 20, 10, 5, 12, 40, -3, 2, 9, 9, 5, 5, 5, 5 };
    dr_desc d = { .kind = DR_KIND_BOXES, .dtype = DR_F32, .n_dims = 2, .dims = { 5, 4 } };
    return dr__view_dense(&d, v);
}

/* A dense image with values that differ from place to place; freed by dr__free. */
static inline dr_view harness_image(dr_dtype dtype, int64_t h, int64_t w, int64_t c)
{
    dr_desc d = dr__desc_image(dtype, h, w, c);
    size_t bytes = 0;
    dr__desc_bytes_dense(&d, &bytes);
    dr_view v = dr__view_dense(&d, dr__alloc(bytes));
    harness_fill(&v, bytes, (uint64_t)(h * 31 + w));
    return v;
}

static inline void harness_fill(dr_view *view, size_t bytes, uint64_t seed)
{
    dr_view v = *view;
    dr_dtype dtype = v.desc.dtype;
    dr_rng rng = dr__rng_open(&(dr__rng_name){ .seed = seed }, 7);
    if (dtype == DR_F32 || dtype == DR_F16 || dtype == DR_BF16)
        for (size_t i = 0; i < bytes; i += dr_dtype_size(dtype)) {
            float unit = (float)dr__rng_unit(&rng);
            uint16_t half = (uint16_t)(0x3800 + dr__rng_u32(&rng) % 0x400); /* 0.5 to 1 as float16 */
            memcpy(v.data + i, dtype == DR_F32 ? (void *)&unit : (void *)&half, dr_dtype_size(dtype));
        }
    else
        for (size_t i = 0; i < bytes; i++)
            v.data[i] = (uint8_t)dr__rng_u32(&rng);
}

#endif
