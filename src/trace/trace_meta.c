/* trace_meta.c: META, the first record of a trace: the run, the machine, and the names of sensors, knobs and so on. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/limits.h"
#include "trace/wire.h"

#define NAME(id, name, ...) name,
static const char *const sensor_names[] = { DR_SENSOR_MAP(NAME) };
static const char *const flow_names[] = { DR_FLOW_MAP(NAME) };
static const char *const knob_names[] = { DR_KNOB_MAP(NAME) };
static const char *const term_names[] = { DR_TERM_MAP(NAME) };
static const char *const bound_names[] = { DR_BOUND_MAP(NAME) };
static const char *const span_names[] = { DR_SPAN_MAP(NAME) };

static const struct table {
    const char *name;
    const char *const *names;
    size_t n;
    size_t offset; /* of its dr__numbers in dr__tables */
} tables[] = {
    { "sensors", sensor_names, DR_COUNT(sensor_names), offsetof(dr__tables, sensors) },
    { "flow", flow_names, DR_COUNT(flow_names), offsetof(dr__tables, flow) },
    { "knobs", knob_names, DR_COUNT(knob_names), offsetof(dr__tables, knobs) },
    { "terms", term_names, DR_COUNT(term_names), offsetof(dr__tables, terms) },
    { "bounds", bound_names, DR_COUNT(bound_names), offsetof(dr__tables, bounds) },
    { "spans", span_names, DR_COUNT(span_names), offsetof(dr__tables, spans) },
};

/* --- writing --- */

static json_t *names_of(const struct table *t)
{
    json_t *list = json_array();
    for (size_t i = 0; i < t->n; i++)
        json_array_append_new(list, json_string(t->names[i]));
    return list;
}

static json_t *all_names(void)
{
    json_t *o = json_object();
    for (size_t i = 0; i < DR_COUNT(tables); i++)
        json_object_set_new(o, tables[i].name, names_of(&tables[i]));
    return o;
}

static json_t *machine(void)
{
    char host[256] = "";
    dr__limits limits;
    dr__limits_read("", &limits);
    gethostname(host, sizeof host - 1);
    json_t *o = json_pack("{s:f, s:I}", "cpus", limits.cpus, "memory", (json_int_t)limits.memory_limit);
    json_object_set_new(o, "host", json_string(host)); /* omitted if it is not UTF-8 */
    return o;
}

dr_status dr__meta_make(const char *meta, const dr_trace_options *o, uint64_t start_ns, char **out, dr_error *err)
{
    json_error_t why;
    json_t *all = json_loads(meta ? meta : "{}", 0, &why);
    *out = NULL;
    if (!json_is_object(all)) {
        dr__fail(err, DR_ERR_ARG, "trace: meta must be a JSON object: %s", all ? "got another value" : why.text);
        json_decref(all);
        return DR_ERR_ARG;
    }
    json_object_set_new(all, "drapps", json_string(DR_VERSION));
    json_object_set_new(all, "pid", json_integer(getpid()));
    json_object_set_new(all, "machine", machine());
    json_object_set_new(all, "clock",
                        json_pack("{s:s, s:I, s:I}", "name", "CLOCK_MONOTONIC", "start_ns", (json_int_t)start_ns,
                                  "unix_ns", (json_int_t)dr__clock_ns(CLOCK_REALTIME)));
    json_object_set_new(all, "trace",
                        json_pack("{s:I, s:f}", "max_bytes", (json_int_t)o->max_bytes, "spans_per_s",
                                  DR_MIN(o->spans_per_s, 1e300))); /* JSON has no infinity */
    json_object_set_new(all, "tables", all_names());
    char *text = json_dumps(all, JSON_COMPACT);
    json_decref(all);
    *out = text ? dr__strdup(text) : NULL;
    free(text);
    if (!*out)
        return dr__fail(err, DR_ERR_NOMEM, "trace: out of memory");
    if (strlen(*out) <= DR__MAX_PAYLOAD)
        return DR_OK;
    dr__free(*out);
    *out = NULL;
    return dr__fail(err, DR_ERR_LIMIT, "trace: meta takes more than %d bytes", DR__MAX_PAYLOAD);
}

/* --- reading --- */

static int find(const struct table *t, const char *name)
{
    for (size_t i = 0; name && i < t->n; i++)
        if (!strcmp(t->names[i], name))
            return (int)i;
    return -1;
}

static void number(const struct table *t, const json_t *names, dr__numbers *out)
{
    out->n = (int)DR_MIN(json_array_size(names), (size_t)DR__MAX_NAMES);
    for (int i = 0; i < out->n; i++)
        out->own[i] = (int16_t)find(t, json_string_value(json_array_get(names, (size_t)i)));
}

dr_status dr__meta_tables(const char *text, size_t length, dr__tables *out, dr_error *err)
{
    json_error_t why;
    json_t *meta = json_loadb(text, length, 0, &why);
    if (!json_is_object(meta)) {
        dr__fail(err, DR_ERR_FORMAT, "the description is not a JSON object: %s", meta ? "another value" : why.text);
        json_decref(meta);
        return DR_ERR_FORMAT;
    }
    const json_t *all = json_object_get(meta, "tables");
    for (size_t i = 0; i < DR_COUNT(tables); i++)
        number(&tables[i], json_object_get(all, tables[i].name), (dr__numbers *)((char *)out + tables[i].offset));
    json_decref(meta);
    return DR_OK;
}
