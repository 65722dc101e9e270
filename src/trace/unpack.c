/* unpack.c: decodes records (wire.h) from untrusted bytes. */
#include <string.h>

#include "base/compiler.h"
#include "trace/wire.h"

static dr_status get_number(dr_cursor *c, uint64_t *out, dr_error *err)
{
    uint64_t value = 0;
    uint8_t byte;
    for (int shift = 0; shift < 64; shift += 7) {
        DR_TRY(dr__cursor_u8(c, &byte, err));
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (!(byte & 0x80)) {
            *out = value;
            return DR_OK;
        }
    }
    return dr__fail(err, DR_ERR_FORMAT, "%s: a number takes more than ten bytes", c->what);
}

static int64_t unzigzag(uint64_t value)
{
    return (int64_t)(value >> 1 ^ (0 - (value & 1)));
}

dr_status dr__unpack_time(dr_cursor *c, uint64_t start_ns, uint64_t *time_ns, dr_error *err)
{
    uint64_t value = 0;
    DR_TRY(get_number(c, &value, err));
    *time_ns = start_ns + (uint64_t)unzigzag(value);
    return DR_OK;
}

static dr_status get_float(dr_cursor *c, float *out, dr_error *err)
{
    uint32_t bits = 0;
    DR_TRY(dr__cursor_u32(c, &bits, err));
    memcpy(out, &bits, sizeof bits);
    return DR_OK;
}

static dr_status get_double(dr_cursor *c, double *out, dr_error *err)
{
    uint64_t bits = 0;
    DR_TRY(get_number(c, &bits, err));
    if (!(bits & 1)) {
        *out = (double)unzigzag(bits >> 1);
        return DR_OK;
    }
    DR_TRY(dr__cursor_u64(c, &bits, err));
    memcpy(out, &bits, sizeof bits);
    return DR_OK;
}

/* Reads a count of at most `most`. */
static dr_status get_count(dr_cursor *c, uint64_t most, uint64_t *out, dr_error *err)
{
    DR_TRY(get_number(c, out, err));
    if (*out > most)
        return dr__fail(err, DR_ERR_FORMAT, "%s: a count must be at most %llu, got %llu", c->what,
                        (unsigned long long)most, (unsigned long long)*out);
    return DR_OK;
}

static dr_status get_text(dr_cursor *c, char *out, size_t room, dr_error *err)
{
    uint64_t n = 0;
    const uint8_t *bytes = NULL;
    DR_TRY(get_count(c, dr__cursor_left(c), &n, err));
    DR_TRY(dr__cursor_bytes(c, (size_t)n, &bytes, err));
    n = DR_MIN(n, room - 1);
    memcpy(out, bytes, (size_t)n);
    out[n] = '\0';
    return DR_OK;
}

/* This version's number of the row that the file numbers i; -1: unknown. */
static int local_index(const dr__numbers *numbers, uint64_t i)
{
    return i < (uint64_t)numbers->n ? numbers->own[i] : -1;
}

static dr_status get_sensor(dr_cursor *c, dr_snapshot *s, int own, bool modelled, dr_error *err)
{
    float value = 0;
    const uint8_t *level = NULL;
    DR_TRY(get_float(c, &value, err));
    DR_TRY(dr__cursor_bytes(c, 2, &level, err));
    if (own < 0)
        return DR_OK;
    s->present |= (uint64_t)1 << own;
    s->modelled |= (uint64_t)modelled << own;
    s->value[own] = (double)value;
    s->level[own] = (level[0] | level[1] << 8) / 65535.0;
    return DR_OK;
}

static dr_status get_cpus(dr_cursor *c, dr_snapshot *s, dr_error *err)
{
    uint64_t n = 0;
    const uint8_t *use = NULL;
    DR_TRY(get_count(c, DR_MAX_CPUS, &n, err));
    DR_TRY(dr__cursor_bytes(c, (size_t)n, &use, err));
    s->n_cpus = (uint32_t)n;
    for (uint64_t i = 0; i < n; i++)
        s->cpu[i] = (float)use[i] / 255.0f;
    return DR_OK;
}

dr_status dr__unpack_snapshot(dr_cursor *c, uint64_t start_ns, const dr__tables *t, dr_snapshot *s, dr_error *err)
{
    uint64_t present = 0, modelled = 0;
    *s = (dr_snapshot){ 0 };
    DR_TRY(dr__unpack_time(c, start_ns, &s->time_ns, err));
    DR_TRY(get_number(c, &s->number, err));
    DR_TRY(get_number(c, &present, err));
    DR_TRY(get_number(c, &modelled, err));
    for (uint64_t i = 0; i < DR__MAX_NAMES; i++)
        if (present >> i & 1)
            DR_TRY(get_sensor(c, s, local_index(&t->sensors, i), modelled >> i & 1, err));
    return get_cpus(c, s, err);
}

dr_status dr__unpack_flow(dr_cursor *c, uint64_t start_ns, const dr__tables *t, uint64_t *time_ns,
                          double flow[DR_N_FLOWS], dr_error *err)
{
    uint64_t n = 0;
    memset(flow, 0, DR_N_FLOWS * sizeof *flow);
    DR_TRY(dr__unpack_time(c, start_ns, time_ns, err));
    DR_TRY(get_count(c, DR__MAX_NAMES, &n, err));
    for (uint64_t i = 0; i < n; i++) {
        const int own = local_index(&t->flow, i);
        double value = 0;
        DR_TRY(get_double(c, &value, err));
        if (own >= 0)
            flow[own] = value;
    }
    return DR_OK;
}

static dr_status get_pairs(dr_cursor *c, const dr__numbers *numbers, double *first, double *second, dr_error *err)
{
    uint64_t n = 0;
    DR_TRY(get_count(c, DR__MAX_NAMES, &n, err));
    for (uint64_t i = 0; i < n; i++) {
        const int own = local_index(numbers, i);
        double a = 0, b = 0;
        DR_TRY(get_double(c, &a, err));
        DR_TRY(get_double(c, &b, err));
        if (own >= 0)
            first[own] = a, second[own] = b;
    }
    return DR_OK;
}

dr_status dr__unpack_decision(dr_cursor *c, uint64_t start_ns, const dr__tables *t, dr_decision *d, dr_error *err)
{
    uint64_t bound = 0, changed = 0, guarded = 0;
    *d = (dr_decision){ 0 };
    DR_TRY(dr__unpack_time(c, start_ns, &d->time_ns, err));
    DR_TRY(get_number(c, &d->number, err));
    DR_TRY(get_number(c, &bound, err));
    DR_TRY(get_number(c, &changed, err));
    DR_TRY(get_number(c, &guarded, err));
    DR_TRY(get_pairs(c, &t->knobs, d->before, d->after, err));
    DR_TRY(get_pairs(c, &t->terms, d->term, d->weight, err));
    DR_TRY(get_double(c, &d->reward, err));
    DR_TRY(get_text(c, d->reason, sizeof d->reason, err));
    const int own = local_index(&t->bounds, bound);
    d->bound = own < 0 ? DR_BOUND_UNKNOWN : own;
    d->guarded = guarded != 0;
    for (uint64_t i = 0; i < DR__MAX_NAMES; i++)
        if (changed >> i & 1 && local_index(&t->knobs, i) >= 0)
            d->changed |= 1u << local_index(&t->knobs, i);
    return DR_OK;
}

dr_status dr__unpack_span(dr_cursor *c, uint64_t start_ns, const dr__tables *t, dr_span *s, dr_error *err)
{
    uint64_t duration = 0, kind = 0, thread = 0;
    *s = (dr_span){ 0 };
    DR_TRY(dr__unpack_time(c, start_ns, &s->begin_ns, err));
    DR_TRY(get_number(c, &duration, err));
    DR_TRY(get_number(c, &kind, err));
    DR_TRY(get_number(c, &thread, err));
    uint64_t *const numbers[] = { &s->epoch, &s->batch, &s->slot, &s->position, &s->id, &s->bytes };
    for (size_t i = 0; i < DR_COUNT(numbers); i++)
        DR_TRY(get_number(c, numbers[i], err));
    DR_TRY(get_float(c, &s->cost, err));
    DR_TRY(get_text(c, s->key, sizeof s->key, err));
    if (dr__cursor_left(c) > 0) /* missing in older files */
        DR_TRY(get_number(c, &s->cpu_ns, err));
    s->end_ns = s->begin_ns + duration;
    s->slow = kind & 1;
    s->thread = (int32_t)unzigzag(thread);
    s->kind = local_index(&t->spans, kind >> 1);
    return s->kind < 0 ? DR_AGAIN : DR_OK;
}
