/* offload_report.c: the knob of an offload, its statistics, and what people and traces are told. */
#include <inttypes.h>
#include <stdio.h>

#include "base/compiler.h"
#include "exec/offload_parts.h"
#include "source/transfer.h"
#include "trace/event.h"

void dr__offload_set_share(dr__exec *e, double share)
{
    if (e->offload)
        atomic_store(&e->offload->share, share);
}

static const char *phase_name(const dr__offload *o)
{
    static const char *const names[] = { [DR__OFFLOAD_FIXED] = "fixed",
                                         [DR__OFFLOAD_MEASURING] = "measuring",
                                         [DR__OFFLOAD_PROBING] = "trying cuts",
                                         [DR__OFFLOAD_PLANNED] = "planned" };
    return names[atomic_load(&o->phase)];
}

static void set_count(json_t *o, const char *name, uint64_t value)
{
    json_object_set_new(o, name, json_integer((json_int_t)value));
}

void dr__offload_stats(dr__exec *e, json_t *json)
{
    dr__offload *o = e->offload;
    dr__remote_counts c = { 0 };
    if (o)
        dr__remote_client_counts(o->client, &c);
    set_count(json, "remote_requests", c.requests);
    set_count(json, "remote_bytes", c.bytes);
    set_count(json, "remote_busy_ns", c.busy_ns);
    set_count(json, "offload_samples", o ? atomic_load(&o->samples) : 0);
    set_count(json, "offload_plain", o ? atomic_load(&o->plain) : 0);
    set_count(json, "offload_packed", o ? atomic_load(&o->packed) : 0);
    set_count(json, "offload_shed", o ? atomic_load(&o->shed) : 0);
    set_count(json, "offload_failed", o ? atomic_load(&o->failed) : 0);
    set_count(json, "offload_server_ns", o ? atomic_load(&o->server_ns) : 0);
    set_count(json, "segment_samples", o ? atomic_load(&o->segments.samples) : 0);
    set_count(json, "segment_bytes", o ? atomic_load(&o->segments.bytes) : 0);
    set_count(json, "segment_stored", o ? atomic_load(&o->segments.stored) : 0);
    set_count(json, "segment_failed", o ? atomic_load(&o->segments.failed) : 0);
    if (o)
        pthread_mutex_lock(&o->lock);
    set_count(json, "offload_plans", o ? o->n_plans : 0);
    set_count(json, "offload_planned", o ? e->set->n_places - DR_MIN(o->per_cut[0], e->set->n_places) : 0);
    json_object_set_new(json, "offload_phase", json_string(o ? phase_name(o) : ""));
    json_object_set_new(json, "offload_policy", json_string(o ? o->policy->name : ""));
    json_object_set_new(json, "offload_why", json_string(o ? o->why : ""));
    if (o)
        pthread_mutex_unlock(&o->lock);
}

/* lock: "decode 12, random_resized_crop 40". */
static void list_cuts(const dr__offload *o, char *text, size_t size)
{
    size_t n = 0;
    text[0] = 0;
    if (o->n_segments)
        n += (size_t)snprintf(text, size, "%" PRIu64 " in segments", o->n_segments);
    for (int k = 1; k < o->n_cuts && n < size; k++)
        if (o->per_cut[k])
            n += (size_t)snprintf(text + n, size - n, "%s%" PRIu64 " behind %s%s", n ? ", " : "", o->per_cut[k],
                                  o->cuts[k].name, o->cuts[k].codec ? " (compressed)" : "");
}

void dr__offload_explain(dr__exec *e, char *text, size_t size)
{
    dr__offload *o = e->offload;
    dr__transfer_stats transfers;
    char cuts[600], trouble[320] = "";
    text[0] = 0;
    if (!o)
        return;
    dr__transfer_get_stats(&transfers);
    if (transfers.waiting && transfers.trouble[0])
        snprintf(trouble, sizeof trouble, "; requests are being repeated: %s", transfers.trouble);
    pthread_mutex_lock(&o->lock);
    list_cuts(o, cuts, sizeof cuts);
    int n = snprintf(text, size, "offload: %s (%s), %s: %s", o->mode, o->policy->name, phase_name(o), o->why);
    if (o->n_plans && n > 0 && (size_t)n < size)
        n += snprintf(text + n, size - (size_t)n,
                      "; plans %s; %.1f of %.1f MB, %.3g of %.3g s an epoch; link %.1f MB/s, server %.2g CPUs",
                      cuts[0] ? cuts : "no sample", o->after.bytes * 1e-6, o->before.bytes * 1e-6, o->after.epoch_s,
                      o->before.epoch_s, o->rates.link_bytes_s * 1e-6, o->rates.server_cpus);
    pthread_mutex_unlock(&o->lock);
    if (n > 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n,
                 "; so far %" PRIu64 " samples prepared by the server, %" PRIu64 " shed, %" PRIu64 " in segments%s\n",
                 atomic_load(&o->samples), atomic_load(&o->shed), atomic_load(&o->segments.samples), trouble);
}

void dr__offload_trace(dr__exec *e)
{
    dr__offload *o = e->offload;
    if (!o || !e->trace)
        return;
    const dr__segments *s = &o->segments;
    dr__trace_event(e->trace, "offloaded",
                    "\"plain\":%" PRIu64 ",\"samples\":%" PRIu64 ",\"packed\":%" PRIu64 ",\"shed\":%" PRIu64
                    ",\"segments\":%" PRIu64 ",\"segment_bytes\":%" PRIu64 ",\"segment_stored\":%" PRIu64,
                    atomic_load(&o->plain), atomic_load(&o->samples), atomic_load(&o->packed), atomic_load(&o->shed),
                    atomic_load(&s->samples), atomic_load(&s->bytes), atomic_load(&s->stored));
}
