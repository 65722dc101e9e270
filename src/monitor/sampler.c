/* sampler.c: see sampler.h. */
#include "monitor/sampler.h"

#include "base/alloc.h"

enum { TEXT_CAP = 128 << 10 }; /* enough for the CPU lines of /proc/stat with 1024 CPUs */

dr_status dr__sampler_open(dr__sampler *s, const char *root, dr_error *err)
{
    *s = (dr__sampler){ 0 };
    dr__hooks_init(&s->host.pipelines);
    dr__own_cpu_init(&s->host.own);
    s->root = dr__strdup(root);
    s->host.text_cap = TEXT_CAP;
    s->host.text = dr__alloc(TEXT_CAP);
    if (!s->root || !s->host.text)
        return dr__fail(err, DR_ERR_NOMEM, "monitor: no memory for %d bytes of text", TEXT_CAP);
    s->host.root = s->root;
    s->host.redirected = *root != 0;
    for (int i = 0; dr__probe_table[i]; i++) {
        const dr__probe_def *probe = dr__probe_table[i];
        s->states[i] = dr__alloc_zero(1, probe->state_size ? probe->state_size : 1);
        if (!s->states[i])
            return dr__fail(err, DR_ERR_NOMEM, "monitor: no memory for probe %s", probe->name);
    }
    return DR_OK;
}

static void open_probes(dr__sampler *s)
{
    for (int i = 0; dr__probe_table[i]; i++)
        dr__probe_table[i]->open(s->states[i], &s->host);
}

void dr__sampler_close(dr__sampler *s)
{
    for (int i = 0; dr__probe_table[i]; i++) {
        if (s->n_ticks && dr__probe_table[i]->close)
            dr__probe_table[i]->close(s->states[i]);
        dr__free(s->states[i]);
    }
    dr__free(s->host.text);
    dr__free(s->root);
    dr__own_cpu_destroy(&s->host.own);
    dr__hooks_destroy(&s->host.pipelines);
}

void dr__sampler_tick(dr__sampler *s, uint64_t now_ns, dr_snapshot *out)
{
    if (!s->n_ticks)
        open_probes(s);
    uint64_t elapsed_ns = s->n_ticks ? now_ns - s->last_ns : 0;
    *out = (dr_snapshot){ .time_ns = now_ns, .number = ++s->n_ticks };
    for (int i = 0; dr__probe_table[i]; i++)
        dr__probe_table[i]->read(s->states[i], &s->host, now_ns, elapsed_ns, out);
    s->last_ns = now_ns;
}
