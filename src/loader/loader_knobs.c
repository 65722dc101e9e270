/* loader_knobs.c: the knobs of a loader. */
#include "loader/loader_knobs.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "codec/bytes/byte_codec.h"
#include "exec/cache_stage.h"
#include "exec/offload_stage.h"
#include "sched/tables.h"

/* pool lock */
static double get(const dr__exec *e, int knob)
{
    switch (knob) {
    case DR_KNOB_WORKERS:
        return e->knobs.workers;
    case DR_KNOB_READERS:
        return e->knobs.readers;
    case DR_KNOB_PREFETCH:
        return e->knobs.prefetch;
    case DR_KNOB_PREFETCH_BYTES:
        return (double)e->knobs.prefetch_bytes;
    case DR_KNOB_LANE_SHARE:
        return atomic_load(&e->lanes.share);
    case DR_KNOB_LANE_THRESHOLD:
        return atomic_load(&e->lanes.predict.slow_factor);
    case DR_KNOB_CPU_CEILING:
        return e->knobs.ceiling.cpus;
    case DR_KNOB_CODEC:
        return e->knobs.codec;
    case DR_KNOB_OFFLOAD:
        return e->knobs.offload;
    default:
        return e->knobs.priority;
    }
}

/* pool lock */
static void put(dr__exec *e, int knob, double value)
{
    switch (knob) {
    case DR_KNOB_WORKERS:
        e->knobs.workers = (int)value;
        break;
    case DR_KNOB_READERS:
        e->knobs.readers = (int)value;
        break;
    case DR_KNOB_PREFETCH:
        e->knobs.prefetch = (int)value;
        dr__bufpool_keep(e->buffers, (e->knobs.prefetch + 2) * e->program->n_outputs);
        break;
    case DR_KNOB_PREFETCH_BYTES:
        e->knobs.prefetch_bytes = (uint64_t)value;
        break;
    case DR_KNOB_LANE_SHARE:
        dr__lane_set_share(&e->lanes, value);
        break;
    case DR_KNOB_LANE_THRESHOLD:
        dr__predict_set_slow_factor(&e->lanes.predict, value);
        break;
    case DR_KNOB_CPU_CEILING:
        dr__ceiling_set(&e->knobs.ceiling, value, dr__now_ns());
        break;
    case DR_KNOB_CODEC:
        e->knobs.codec = (int)value;
        break;
    case DR_KNOB_OFFLOAD:
        e->knobs.offload = value;
        dr__offload_set_share(e, value);
        break;
    default:
        e->knobs.priority = (int)value;
    }
}

/* Sets a knob and returns its previous value. */
static double exchange(dr__exec *e, int knob, double value)
{
    dr__pool_lock();
    const double before = get(e, knob);
    put(e, knob, value);
    dr__cond_broadcast(&e->changed); /* with workers = 0 a consumer works itself */
    dr__pool_unlock();
    return before;
}

static dr_status check(int knob, double value, dr_error *err)
{
    const dr__knob_row *r = dr__knob_row_of(knob);
    const bool whole = dr_knob_is_whole(knob);
    if (!(value >= r->least && value <= r->most) || (whole && value != (double)(int64_t)value))
        return dr__fail(err, DR_ERR_ARG, "%s must be %s from %g to %g, got %g", r->name, whole ? "an int" : "a number",
                        r->least, r->most, value);
    if (knob == DR_KNOB_CODEC && !dr__cache_has_codec((int)value)) {
        char all[400] = "-1 (chosen)";
        for (const dr_byte_codec *const *c = dr__byte_codecs; *c; c++) {
            const size_t used = strlen(all);
            snprintf(all + used, sizeof all - used, ", %d (%s)", (*c)->wire_id, (*c)->name);
        }
        return dr__fail(err, DR_ERR_ARG, "codec must be one of %s, got %g", all, value);
    }
    return DR_OK;
}

dr_status dr__knob_set(dr_loader *l, int knob, double value, dr_error *err)
{
    DR_TRY(check(knob, value, err));
    const double before = exchange(&l->exec, knob, value);
    if (knob == DR_KNOB_CODEC)
        dr__cache_set_codec(&l->exec, (int)value);
    const dr_status status = dr__pool_resize(err);
    if (status == DR_OK) {
        dr__trace_set(l->exec.trace, dr_knob_name(knob), value);
    } else { /* no thread could be started: back to the previous value */
        exchange(&l->exec, knob, before);
        dr__pool_resize(NULL);
    }
    return status;
}

double dr__knob_get(dr_loader *l, int knob)
{
    dr__pool_lock();
    const double value = get(&l->exec, knob);
    dr__pool_unlock();
    return value;
}

static dr_status find(const char *name, int *knob, dr_error *err)
{
    char all[200] = "";
    *knob = dr_knob_find(name);
    if (*knob >= 0)
        return DR_OK;
    for (int i = 0; i < DR_N_KNOBS; i++) {
        const size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", dr_knob_name(i));
    }
    return dr__fail(err, DR_ERR_NOT_FOUND, "knob must be one of %s, got \"%s\"", all, name);
}

dr_status dr_loader_set(dr_loader *l, const char *name, double value, dr_error *err)
{
    int knob;
    DR_TRY(dr__loader_check(l, err));
    DR_TRY(find(name, &knob, err));
    return dr__adapt_set(l, knob, value, err);
}

dr_status dr_loader_get(dr_loader *l, const char *name, double *value, dr_error *err)
{
    int knob;
    DR_TRY(dr__loader_check(l, err));
    DR_TRY(find(name, &knob, err));
    *value = dr__knob_get(l, knob);
    return DR_OK;
}
