/* loader_trace.c: opens the trace of a loader and writes its description of the run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "loader/loader_internal.h"

enum { OPS_SAMPLES = 32, OPS_NS = 100000000 }; /* limits of measuring the ops */

/* Settings when the loader was opened; later changes of knobs are events in the trace. */
static json_t *settings_of(const dr__exec *e)
{
    const dr_loader_options *o = &e->o;
    return json_pack("{s:I, s:I, s:b, s:b, s:i, s:i, s:I, s:I, s:I, s:b, s:b}", "batch_size", (json_int_t)o->batch_size,
                     "seed", (json_int_t)o->seed, "shuffle", o->shuffle, "in_order", o->in_order, "workers",
                     e->knobs.workers, "prefetch", e->knobs.prefetch, "rank", (json_int_t)o->rank, "world",
                     (json_int_t)o->world_size, "memory_limit", (json_int_t)o->memory_limit, "lanes", o->lanes,
                     "pushed_order", o->pushed_order);
}

static json_t *describe(const dr_loader *l)
{
    const dr_dataset *set = l->exec.set;
    json_t *meta = json_object(), *graph = json_loads(l->graph_text, JSON_DECODE_ANY, NULL);
    json_object_set_new(meta, "kind", json_string("threads"));
    json_object_set_new(meta, "data", json_string(set->name)); /* left out where it is not UTF-8 */
    json_object_set_new(meta, "format", json_string(set->format));
    json_object_set_new(meta, "samples", json_integer((json_int_t)set->n_samples));
    json_object_set_new(meta, "settings", settings_of(&l->exec));
    json_object_set_new(meta, "graph", graph);
    return meta;
}

json_t *dr__loader_trace_json(const dr_loader *l)
{
    dr_error err = { 0 };
    if (!l->exec.trace)
        return json_null();
    const dr_status status = dr_trace_status(l->exec.trace, &err);
    json_t *o = json_object();
    json_object_set_new(o, "path", json_string(dr_trace_path(l->exec.trace))); /* left out where it is not UTF-8 */
    json_object_set_new(o, "state", json_string(status == DR_OK ? "writing" : status == DR_END ? "limit" : "failed"));
    json_object_set_new(o, "error", status < 0 ? json_string(err.text) : json_null());
    return o;
}

dr_status dr__loader_trace(dr_loader *l, dr_error *err)
{
    dr_trace_options o;
    dr_trace_defaults(&o);
    o.spans_per_s = l->exec.o.trace_spans;
    json_t *meta = l->graph_text ? describe(l) : NULL;
    char *text = meta ? json_dumps(meta, JSON_COMPACT) : NULL;
    json_decref(meta);
    if (!text)
        return dr__fail(err, DR_ERR_NOMEM, "loader: out of memory");
    dr_status status = dr_trace_open(l->exec.o.trace, text, &o, &l->exec.trace, err);
    free(text);
    return status;
}

void dr_loader_note(dr_loader *l, const char *json)
{
    if (dr__loader_check(l, NULL) == DR_OK && json)
        dr_trace_text(l->exec.trace, dr__now_ns(), json);
}

void dr__loader_trace_ops(dr_loader *l)
{
    dr__exec *e = &l->exec;
    char *costs = NULL;
    if (!e->trace || e->run.failed || !atomic_load(&e->stats.samples) || dr_trace_status(e->trace, NULL) != DR_OK ||
        dr__loader_profile(l, OPS_SAMPLES, dr__now_ns() + OPS_NS, &costs, NULL) != DR_OK)
        return;
    static const char form[] = "{\"event\":\"ops\",\"profile\":%s}";
    const size_t room = sizeof form + strlen(costs);
    char *text = dr__alloc(room);
    if (text) {
        snprintf(text, room, form, costs);
        dr_trace_text(e->trace, dr__now_ns(), text);
    }
    dr__free(text);
    dr_text_free(&costs);
}
