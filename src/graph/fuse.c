/* fuse.c: decides which decodes make only a window, which outputs end in a tail, and which decodes stream into one. */
#include <string.h>

#include "base/alloc.h"
#include "graph/program.h"
#include "kernel/half.h"

static const dr_op_def *def_of(const dr__program *p, int step)
{
    return p->graph->nodes[p->steps[step].node].op.def;
}

/* The step that made a value, if the value has one reader and is no output; else -1. */
static int sole_maker(const dr__program *p, int value)
{
    int reader;
    if (dr__program_readers(p, value, &reader) != 1 || dr__program_output_of(p, value) >= 0)
        return -1;
    for (int s = 0; s < p->n_steps; s++)
        if (p->steps[s].out == value)
            return s;
    return -1;
}

static bool read_by_windows_only(const dr__program *p, int value)
{
    int reader;
    if (!dr__program_readers(p, value, &reader) || dr__program_output_of(p, value) >= 0)
        return false;
    for (int s = 0; s < p->n_steps; s++)
        if (p->steps[s].in == value && !(def_of(p, s)->flags & DR_OP_WINDOW))
            return false;
    return true;
}

static void find_windows(dr__program *p)
{
    for (int s = 0; s < p->n_steps; s++)
        p->steps[s].windowed = def_of(p, s)->flags & DR_OP_DECODE && dr__is_image(&p->values[p->steps[s].out]) &&
                               read_by_windows_only(p, p->steps[s].out);
}

static bool deterministic_lut(const dr__program *p, int step)
{
    const dr_op_def *def = def_of(p, step);
    return def->flags & DR_OP_POINTWISE_U8 && !(def->flags & DR_OP_RANDOM);
}

/* Makes the tables of 256 results per channel for the ops at steps[0 .. n), in the order in which they run. */
static void compose_lut(dr__program *p, dr__tail *tail, const int *steps, int n, dr_dtype dtype, int channels)
{
    float in[DR__LUT_CHANNELS * 256], *values = tail->lut.value;
    for (int i = 0; i < channels * 256; i++)
        values[i] = (float)(i & 255);
    dr_dtype in_dtype = DR_U8;
    for (int i = 0; i < n; i++) {
        const dr__node *node = &p->graph->nodes[p->steps[steps[i]].node];
        memcpy(in, values, sizeof in);
        node->op.def->lut(node->op.conf, channels, in_dtype, in, values);
        in_dtype = p->values[p->steps[steps[i]].out].dtype;
    }
    tail->has_lut = n > 0;
    for (int i = 0; i < channels * 256; i++) {
        if (dtype == DR_F16)
            tail->lut16.value[i] = dr__f32_to_f16(values[i]);
        else if (dtype == DR_BF16)
            tail->lut16.value[i] = dr__f32_to_bf16(values[i]);
        else if (dtype == DR_U8)
            tail->lut8[i] = (uint8_t)values[i];
    }
    dr__lut_f32_prepare(&tail->lut);
    dr__lut_u16_prepare(&tail->lut16);
}

static bool can_end_in_tail(const dr_desc *d)
{
    return d->dtype == DR_F32 || d->dtype == DR_F16 || d->dtype == DR_BF16 || d->dtype == DR_U8;
}

/* Walks back from an output over type and normalisation, then one mirror, then one op that makes rows. */
static void build_tail(dr__program *p, dr__output *out, dr__tail *tail)
{
    int luts[DR__MAX_STEPS], n = 0, index = p->n_tails;
    int value = out->value;
    const dr_desc *end = &p->values[value];
    int channels = (int)dr__channels(end);
    int maker = -1, reader;
    for (int s = 0; s < p->n_steps; s++)
        if (p->steps[s].out == value)
            maker = s;
    if (dr__program_readers(p, value, &reader) != 0)
        return;
    while (maker >= 0 && deterministic_lut(p, maker)) {
        luts[n++] = maker;
        value = p->steps[maker].in;
        maker = sole_maker(p, value);
    }
    *tail = (dr__tail){ .rows_step = -1, .flip_step = -1, .decode_step = -1 };
    if (p->values[value].dtype != DR_U8 || !dr__is_image(&p->values[value]))
        return;
    if (maker >= 0 && def_of(p, maker)->mirrors) {
        tail->flip_step = maker;
        value = p->steps[maker].in;
        maker = sole_maker(p, value);
    }
    if (maker >= 0 && def_of(p, maker)->rows) {
        tail->rows_step = maker;
        value = p->steps[maker].in;
    }
    if (!n && tail->flip_step < 0 && tail->rows_step < 0)
        return;
    tail->source = value;
    for (int i = 0; i < n / 2; i++) {
        int swap = luts[i];
        luts[i] = luts[n - 1 - i];
        luts[n - 1 - i] = swap;
    }
    compose_lut(p, tail, luts, n, end->dtype, channels);
    for (int i = 0; i < n; i++)
        p->steps[luts[i]].tail = index;
    if (tail->flip_step >= 0)
        p->steps[tail->flip_step].tail = index;
    if (tail->rows_step >= 0)
        p->steps[tail->rows_step].tail = index;
    out->tail = p->n_tails++;
}

/* Streams if the tail alone reads a decode, and both can work on bands of rows. */
static void find_stream(dr__program *p, dr__tail *tail)
{
    int decode = tail->rows_step >= 0 ? sole_maker(p, tail->source) : -1;
    if (decode >= 0 && p->steps[decode].windowed && def_of(p, decode)->stream && def_of(p, tail->rows_step)->feed)
        tail->decode_step = decode;
}

dr_status dr__program_fuse(dr__program *p, bool late_store, dr_error *err)
{
    find_windows(p);
    p->tails = dr__alloc_zero((size_t)p->n_outputs, sizeof *p->tails);
    if (!p->tails)
        return dr__fail(err, DR_ERR_NOMEM, "graph: out of memory");
    for (int i = 0; i < p->n_outputs; i++) {
        dr__output *out = &p->outputs[i];
        const dr_desc *d = &p->values[out->value];
        if (d->kind == DR_KIND_IMAGE && d->layout == DR_LAYOUT_HWC && can_end_in_tail(d) && dr__channels(d) > 0 &&
            dr__channels(d) <= DR__LUT_CHANNELS)
            build_tail(p, out, &p->tails[p->n_tails]);
    }
    for (int i = 0; i < p->n_tails && !late_store; i++)
        find_stream(p, &p->tails[i]);
    return DR_OK;
}
