/* metrics_text.c: writes the live files of this process as OpenMetrics 1.0 text.
 *
 * A family is a row of the tables of sched.h and monitor.h.  Its name ends in its unit, as the format requires: "wait",
 * a sum in s, is drapps_wait_seconds_total; "bytes_read" is drapps_read_bytes_total.  Metrics of a loader have the
 * labels loader (its number in the process) and name (of its data set); those of the machine have no labels.
 */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <drapps/live.h>
#include <drapps/metrics.h>
#include <drapps/sched.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/text.h"
#include "monitor/probe.h"

typedef enum kind { SUM, GAUGE } kind;

typedef struct family {
    const char *name, *unit, *doc;
    kind kind;
} family;

static const family flows[] = {
#define ROW(id, name, kind, unit, doc) { name, unit, doc, kind },
    DR_FLOW_MAP(ROW)
#undef ROW
};

static const family sensors[] = {
#define ROW(id, name, unit, full, doc) { name, unit, doc, GAUGE },
    DR_SENSOR_MAP(ROW)
#undef ROW
};

/* Without units: those of knobs are words for people ("threads or processes"). */
static const family knobs[] = {
#define ROW(id, name, unit, least, most, cooldown, doc) { name, "", doc, GAUGE },
    DR_KNOB_MAP(ROW)
#undef ROW
};

/* The family names are spelled out, because they must differ from those of the sums. */
static const struct {
    const char *name, *family, *doc;
} spreads[] = {
    { "wait", "drapps_consumer_wait_seconds", "how long the consumer waited for a batch" },
    { "latency", "drapps_batch_latency_seconds", "from a batch's first sample begun to the batch ready" },
};

static const struct {
    const char *ours, *theirs;
} units[] = {
    { "s", "seconds" },
    { "W", "watts" },
    { "share", "ratio" },
    { "bytes/s", "bytes_per_second" },
};

/* --- text --- */

/* Escapes backslash, quote and end of line, as in label values and help texts. */
static void append_escaped(dr__text *p, const char *text)
{
    for (; *text; text++)
        if (*text == '\n')
            dr__text_say(p, "\\n");
        else {
            if (*text == '\\' || *text == '"')
                dr__text_say(p, "\\");
            dr__text_add(p, text, 1);
        }
}

static void append_label(dr__text *p, const char *before, const char *name, const char *value)
{
    dr__text_say(p, before);
    dr__text_say(p, name);
    dr__text_say(p, "=\"");
    append_escaped(p, value);
    dr__text_say(p, "\"");
}

/* Uses jansson, which ignores the locale. */
static void append_number(dr__text *p, const json_t *value)
{
    char text[64];
    size_t n = json_dumpb(value, text, sizeof text, JSON_ENCODE_ANY);
    dr__text_say(p, " ");
    dr__text_add(p, text, DR_MIN(n, sizeof text));
    dr__text_say(p, "\n");
}

/* Ignores the locale. */
static void seconds_text(uint64_t ns, char *out, size_t room)
{
    snprintf(out, room, "%" PRIu64 ".%09" PRIu64, ns / 1000000000, ns % 1000000000);
}

/* --- families --- */

static const char *unit_of(const family *f)
{
    for (size_t i = 0; i < DR_COUNT(units); i++)
        if (!strcmp(units[i].ours, f->unit))
            return units[i].theirs;
    return f->unit;
}

/* The name of a family: a unit at the start moves to the end, so "bytes_limit" becomes limit_bytes. */
static void family_name(const char *prefix, const family *f, char *out, size_t room)
{
    const char *unit = unit_of(f), *name = f->name;
    const size_t n = strlen(unit), all = strlen(name);
    const bool last = n && all >= n && !strcmp(name + all - n, unit);
    if (n && !strncmp(name, unit, n) && name[n] == '_')
        name += n + 1;
    snprintf(out, room, "%s%s%s%s", prefix, name, n && !last ? "_" : "", last ? "" : unit);
}

static void append_head(dr__text *p, const char *name, const char *type, const char *unit, const char *doc)
{
    dr__text_say(p, "# TYPE ");
    dr__text_say(p, name);
    dr__text_say(p, " ");
    dr__text_say(p, type);
    if (*unit) {
        dr__text_say(p, "\n# UNIT ");
        dr__text_say(p, name);
        dr__text_say(p, " ");
        dr__text_say(p, unit);
    }
    dr__text_say(p, "\n# HELP ");
    dr__text_say(p, name);
    dr__text_say(p, " ");
    append_escaped(p, doc);
    dr__text_say(p, "\n");
}

static const char *text_of(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));
    return text ? text : "";
}

/* Writes the opening brace and the labels of a loader; the caller closes the brace. */
static void append_loader_labels(dr__text *p, const json_t *loader)
{
    char number[24];
    snprintf(number, sizeof number, "%lld", (long long)json_integer_value(json_object_get(loader, "loader")));
    append_label(p, "{", "loader", number);
    append_label(p, ",", "name", text_of(loader, "name"));
}

/* Writes one family over all loaders.  part: "flow" or "knobs". */
static void append_family(dr__text *p, const char *prefix, const family *f, const json_t *loaders, const char *part)
{
    char name[128];
    size_t i;
    json_t *loader;
    bool begun = false;
    family_name(prefix, f, name, sizeof name);
    json_array_foreach(loaders, i, loader)
    {
        const json_t *value = json_object_get(json_object_get(loader, part), f->name);
        if (!value)
            continue;
        if (!begun)
            append_head(p, name, f->kind == SUM ? "counter" : "gauge", unit_of(f), f->doc);
        begun = true;
        dr__text_say(p, name);
        dr__text_say(p, f->kind == SUM ? "_total" : "");
        append_loader_labels(p, loader);
        dr__text_say(p, "}");
        append_number(p, value);
    }
}

static void append_build(dr__text *p)
{
    append_head(p, "drapps_build", "info", "", "the version of drapps");
    append_label(p, "drapps_build_info{", "version", DR_VERSION);
    dr__text_say(p, "} 1\n");
}

static void append_loaders(dr__text *p, const json_t *loaders)
{
    size_t i;
    json_t *loader;
    if (!json_array_size(loaders))
        return;
    append_head(p, "drapps_loader", "info", "", "the loaders of this process");
    json_array_foreach(loaders, i, loader)
    {
        dr__text_say(p, "drapps_loader_info");
        append_loader_labels(p, loader);
        append_label(p, ",", "policy", text_of(loader, "policy"));
        dr__text_say(p, "} 1\n");
    }
}

/* Writes a counter for each name of a part of the live files, with the name as a label. */
static void append_counts(dr__text *p, const json_t *loaders, const char *family, const char *part, const char *label,
                          const char *doc)
{
    size_t i;
    json_t *loader, *count;
    const char *name;
    if (!json_array_size(loaders))
        return;
    append_head(p, family, "counter", "", doc);
    json_array_foreach(loaders, i, loader) json_object_foreach(json_object_get(loader, part), name, count)
    {
        dr__text_say(p, family);
        dr__text_say(p, "_total");
        append_loader_labels(p, loader);
        append_label(p, ",", label, name);
        dr__text_say(p, "}");
        append_number(p, count);
    }
}

/* --- histograms --- */

static void append_sample_start(dr__text *p, const char *family, const char *part, const json_t *loader)
{
    dr__text_say(p, family);
    dr__text_say(p, part);
    append_loader_labels(p, loader);
}

static void append_integer(dr__text *p, uint64_t value)
{
    char text[32];
    snprintf(text, sizeof text, " %" PRIu64 "\n", value);
    dr__text_say(p, text);
}

/* Buckets are cumulative: each counts all values up to its end. */
static void append_bucket(dr__text *p, const char *family, const json_t *loader, const json_t *end, uint64_t below)
{
    char text[48] = "+Inf";
    if (json_is_real(end))
        seconds_text((uint64_t)llround(json_real_value(end) * 1e9), text, sizeof text);
    append_sample_start(p, family, "_bucket", loader);
    append_label(p, ",", "le", text);
    dr__text_say(p, "}");
    append_integer(p, below);
}

static void append_spread(dr__text *p, const char *family, const json_t *loader, const json_t *spread)
{
    size_t i;
    json_t *bin;
    uint64_t below = 0;
    json_array_foreach(json_object_get(spread, "bins"), i, bin)
    {
        below += (uint64_t)json_integer_value(json_array_get(bin, 1));
        append_bucket(p, family, loader, json_array_get(bin, 0), below);
    }
    append_sample_start(p, family, "_count", loader);
    dr__text_say(p, "}");
    append_integer(p, below);
    append_sample_start(p, family, "_sum", loader);
    dr__text_say(p, "}");
    append_number(p, json_object_get(spread, "sum"));
}

static void append_spreads(dr__text *p, const json_t *loaders)
{
    size_t i;
    json_t *loader;
    for (size_t k = 0; k < DR_COUNT(spreads) && json_array_size(loaders); k++) {
        append_head(p, spreads[k].family, "histogram", "seconds", spreads[k].doc);
        json_array_foreach(loaders, i, loader)
        {
            const json_t *spread = json_object_get(json_object_get(loader, "spreads"), spreads[k].name);
            if (spread)
                append_spread(p, spreads[k].family, loader, spread);
        }
    }
}

static void append_rewards(dr__text *p, const json_t *loaders)
{
    size_t i;
    json_t *loader;
    bool begun = false;
    json_array_foreach(loaders, i, loader)
    {
        const json_t *last = json_object_get(loader, "last");
        if (!json_object_get(last, "reward"))
            continue;
        if (!begun)
            append_head(p, "drapps_reward", "gauge", "", "the reward of the last decision");
        begun = true;
        dr__text_say(p, "drapps_reward");
        append_loader_labels(p, loader);
        dr__text_say(p, "}");
        append_number(p, json_object_get(last, "reward"));
    }
}

/* --- the machine --- */

/* The loader with the newest snapshot. */
static const json_t *newest(const json_t *loaders)
{
    size_t i;
    json_t *loader;
    const json_t *found = NULL;
    json_array_foreach(loaders, i, loader) if (!found || json_integer_value(json_object_get(loader, "time_ns")) >
                                                             json_integer_value(json_object_get(found, "time_ns")))
        found = loader;
    return found;
}

static void append_sensors(dr__text *p, const json_t *loader)
{
    for (size_t i = 0; i < DR_COUNT(sensors); i++) {
        char name[128];
        const json_t *value = json_object_get(json_object_get(loader, "sensors"), sensors[i].name);
        if (!value)
            continue;
        family_name("drapps_sensor_", &sensors[i], name, sizeof name);
        append_head(p, name, "gauge", unit_of(&sensors[i]), sensors[i].doc);
        dr__text_say(p, name);
        append_number(p, value);
    }
}

static void append_cpus(dr__text *p, const json_t *loader)
{
    size_t i;
    json_t *use;
    const json_t *list = json_object_get(loader, "cpu");
    if (!json_array_size(list))
        return;
    append_head(p, "drapps_cpu_use_ratio", "gauge", "ratio", "use of each CPU");
    json_array_foreach(list, i, use)
    {
        char number[24];
        snprintf(number, sizeof number, "%zu", i);
        append_label(p, "drapps_cpu_use_ratio{", "cpu", number);
        dr__text_say(p, "}");
        append_number(p, use);
    }
}

/* Reads the group's counter itself, so that nothing is missed between two snapshots. */
static void append_throttled(dr__text *p)
{
    char text[48];
    uint64_t ns;
    if (!dr__throttled_ns("", &ns))
        return;
    append_head(p, "drapps_cpu_throttled_seconds", "counter", "seconds",
                "time for which the quota throttled the cgroup of this process, summed over CPUs, since it was made");
    seconds_text(ns, text, sizeof text);
    dr__text_say(p, "drapps_cpu_throttled_seconds_total ");
    dr__text_say(p, text);
    dr__text_say(p, "\n");
}

static dr_status return_text(dr__text *p, char **text, dr_error *err)
{
    if (!p->failed) {
        *text = p->text;
        return DR_OK;
    }
    dr__free(p->text);
    return dr__fail(err, DR_ERR_NOMEM, "metrics: out of memory");
}

dr_status dr_metrics_text(char **text, dr_error *err)
{
    char *live;
    dr__text p = { 0 };
    *text = NULL;
    DR_TRY(dr_live_read((int)getpid(), &live, err));
    json_t *loaders = json_loads(live, 0, NULL);
    dr__free(live);
    append_build(&p);
    append_loaders(&p, loaders);
    for (size_t i = 0; i < DR_COUNT(flows); i++)
        append_family(&p, "drapps_", &flows[i], loaders, "flow");
    for (size_t i = 0; i < DR_COUNT(knobs); i++)
        append_family(&p, "drapps_knob_", &knobs[i], loaders, "knobs");
    append_spreads(&p, loaders);
    append_counts(&p, loaders, "drapps_decisions", "bounds", "bound",
                  "decisions of the policy, by what limited the pipeline");
    append_counts(&p, loaders, "drapps_turns", "turns", "knob",
                  "decisions of the policy that changed a knob, by the knob");
    append_rewards(&p, loaders);
    append_sensors(&p, newest(loaders));
    append_cpus(&p, newest(loaders));
    append_throttled(&p);
    dr__text_say(&p, "# EOF\n");
    json_decref(loaders);
    return return_text(&p, text, err);
}
