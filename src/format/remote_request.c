/* remote_request.c: requests for samples, as JSON. */
#include "format/remote_request.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"

enum { MOST_RANGES = 1 << 20, MOST_OUTPUTS = 16384 };

static dr_status wrong(dr_error *err, const char *what)
{
    return dr__fail(err, DR_ERR_FORMAT, "request: %s", what);
}

static dr_status no_memory(dr_error *err)
{
    return dr__fail(err, DR_ERR_NOMEM, "request: out of memory");
}

/* --- parsing --- */

static bool take_number(const json_t *v, uint64_t most, uint64_t *out)
{
    if (!json_is_integer(v) || json_integer_value(v) < 0 || (uint64_t)json_integer_value(v) > most)
        return false;
    *out = (uint64_t)json_integer_value(v);
    return true;
}

/* A number, or a text of digits. */
static bool take_u64(const json_t *v, uint64_t *out)
{
    const char *text = json_string_value(v);
    if (!text)
        return take_number(v, UINT64_MAX, out);
    const size_t n = strlen(text);
    *out = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9' || *out > (UINT64_MAX - (uint64_t)(text[i] - '0')) / 10)
            return false;
        *out = *out * 10 + (uint64_t)(text[i] - '0');
    }
    return n > 0;
}

static bool take_hex(const json_t *v, uint64_t *out)
{
    const char *text = json_string_value(v);
    if (!text || strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
        return false;
    *out = strtoull(text, NULL, 16);
    return true;
}

static dr_status take_codec(const json_t *v, dr__remote_request *r, uint8_t *out, dr_error *err)
{
    const char *spec = json_string_value(v);
    *out = DR__REMOTE_NO_CODEC;
    if (json_is_null(v) || (spec && !strcmp(spec, "none")))
        return DR_OK;
    if (!spec || !*spec || json_string_length(v) >= DR_CODEC_SPEC_TEXT || strlen(spec) != json_string_length(v))
        return wrong(err, "a codec is null or its spec");
    for (int i = 0; i < r->n_codecs; i++)
        if (!strcmp(spec, r->codecs[i])) {
            *out = (uint8_t)i;
            return DR_OK;
        }
    if (r->n_codecs == DR__REMOTE_CODECS)
        return dr__fail(err, DR_ERR_LIMIT, "request: more than %d codecs", DR__REMOTE_CODECS);
    *out = (uint8_t)r->n_codecs;
    memcpy(r->codecs[r->n_codecs++], spec, strlen(spec) + 1);
    return DR_OK;
}

static dr_status take_ranges(const json_t *list, dr__remote_request *r, dr__remote_entry *e, dr_error *err)
{
    const size_t n = json_array_size(list);
    if (!json_is_array(list))
        return wrong(err, "the ranges of a sample are a list");
    if (n > DR__REMOTE_RANGES || r->n_ranges + n > MOST_RANGES)
        return dr__fail(err, DR_ERR_LIMIT, "request: %zu ranges of one sample; %d are allowed, and %d of all", n,
                        DR__REMOTE_RANGES, MOST_RANGES);
    dr__remote_range *grown = dr__grow(r->ranges, &r->ranges_cap, r->n_ranges + n, sizeof *grown);
    if (!grown)
        return no_memory(err);
    r->ranges = grown;
    e->by_ranges = true;
    e->first_range = (uint32_t)r->n_ranges;
    e->n_ranges = (uint32_t)n;
    for (size_t i = 0; i < n; i++) {
        const json_t *pair = json_array_get(list, i);
        dr__remote_range *range = &r->ranges[r->n_ranges];
        if (json_array_size(pair) != 2 || !take_number(json_array_get(pair, 0), INT64_MAX, &range->offset) ||
            !take_number(json_array_get(pair, 1), INT64_MAX, &range->size))
            return wrong(err, "a range is [offset, size]");
        r->n_ranges++;
    }
    return DR_OK;
}

static dr_status take_entry(const json_t *v, dr__remote_request *r, dr_error *err)
{
    dr__remote_entry *e = &r->entries[r->n_entries];
    const size_t n = json_array_size(v);
    uint64_t occurrence, prefix;
    if (n < 4 || n > 6 || !take_number(json_array_get(v, 0), INT64_MAX, &e->id) ||
        !take_number(json_array_get(v, 1), UINT32_MAX, &occurrence) ||
        !take_number(json_array_get(v, 2), UINT16_MAX, &prefix))
        return wrong(err, "a sample is [id, occurrence, prefix, codec], and then may have ranges and their stamp");
    e->occurrence = (uint32_t)occurrence;
    e->prefix = (uint16_t)prefix;
    DR_TRY(take_codec(json_array_get(v, 3), r, &e->codec, err));
    if (n > 4 && e->prefix)
        return wrong(err, "a sample has either ranges or a prefix");
    if (n > 4)
        DR_TRY(take_ranges(json_array_get(v, 4), r, e, err));
    if (n > 5 && !take_hex(json_array_get(v, 5), &e->stamp))
        return wrong(err, "a stamp has 16 hexadecimal digits");
    if (e->prefix && !r->graph)
        return wrong(err, "a prefix needs a graph");
    r->n_entries++;
    return DR_OK;
}

static dr_status take_samples(const json_t *list, size_t most, dr__remote_request *r, dr_error *err)
{
    const size_t n = json_array_size(list);
    if (!json_is_array(list) || !n)
        return wrong(err, "\"samples\" is a list of at least one sample");
    if (n > most)
        return dr__fail(err, DR_ERR_LIMIT, "request: %zu samples; %zu are allowed", n, most);
    r->entries = dr__alloc_zero(n, sizeof *r->entries);
    if (!r->entries)
        return no_memory(err);
    for (size_t i = 0; i < n; i++)
        DR_TRY(take_entry(json_array_get(list, i), r, err));
    return DR_OK;
}

static dr_status take_graph(const json_t *v, dr__remote_request *r, dr_error *err)
{
    if (!v)
        return DR_OK;
    if (!json_is_object(v))
        return wrong(err, "\"graph\" is an object");
    char *text = json_dumps(v, JSON_COMPACT | JSON_SORT_KEYS);
    r->graph = text ? dr__strdup(text) : NULL;
    free(text); /* jansson's */
    return r->graph ? DR_OK : no_memory(err);
}

static dr_status take_outputs(const json_t *v, dr__remote_request *r, dr_error *err)
{
    const char *text = json_string_value(v);
    if (!v)
        return DR_OK;
    if (!text || json_string_length(v) > MOST_OUTPUTS || strlen(text) != json_string_length(v))
        return wrong(err, "\"outputs\" is a text: names of fields with commas between them");
    r->outputs = dr__strdup(text);
    return r->outputs ? DR_OK : no_memory(err);
}

static dr_status only_known(json_t *o, const char *const *known, dr_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach(o, key, value)
    {
        int i = 0;
        while (known[i] && strcmp(known[i], key) != 0)
            i++;
        if (!known[i])
            return dr__fail(err, DR_ERR_FORMAT, "request: \"%.60s\" is not known", key);
    }
    return DR_OK;
}

/* What requests for many samples and for one have in common. */
static dr_status take_common(json_t *o, const char *const *known, dr__remote_request *r, dr_error *err)
{
    if (!json_is_object(o))
        return wrong(err, "it is no JSON object");
    DR_TRY(only_known(o, known, err));
    if (!take_u64(json_object_get(o, "seed"), &r->seed) || !take_u64(json_object_get(o, "epoch"), &r->epoch))
        return wrong(err, "\"seed\" and \"epoch\" are whole numbers that are not negative");
    const json_t *ops = json_object_get(o, "ops");
    const json_t *set = json_object_get(o, "set");
    if ((ops && !take_hex(ops, &r->ops)) || (set && !take_hex(set, &r->set)))
        return wrong(err, "\"ops\" and \"set\" have 16 hexadecimal digits");
    DR_TRY(take_graph(json_object_get(o, "graph"), r, err));
    return take_outputs(json_object_get(o, "outputs"), r, err);
}

static dr_status parse_many(json_t *o, size_t most, dr__remote_request *r, dr_error *err)
{
    static const char *const known[] = { "seed", "epoch", "ops", "set", "outputs", "graph", "samples", NULL };
    DR_TRY(take_common(o, known, r, err));
    return take_samples(json_object_get(o, "samples"), most, r, err);
}

static dr_status parse_one(json_t *o, dr__remote_request *r, dr_error *err)
{
    static const char *const known[] = { "seed",  "epoch",  "ops",        "set",   "outputs",
                                         "graph", "prefix", "occurrence", "codec", NULL };
    const json_t *occurrence = json_object_get(o, "occurrence"), *codec = json_object_get(o, "codec");
    uint64_t prefix, times = 0;
    DR_TRY(take_common(o, known, r, err));
    if (!take_number(json_object_get(o, "prefix"), UINT16_MAX, &prefix) ||
        (occurrence && !take_number(occurrence, UINT32_MAX, &times)))
        return wrong(err, "\"prefix\" and \"occurrence\" are whole numbers");
    if (prefix && !r->graph)
        return wrong(err, "a prefix needs a graph");
    r->entries = dr__alloc_zero(1, sizeof *r->entries);
    if (!r->entries)
        return no_memory(err);
    r->n_entries = 1;
    r->entries[0] =
        (dr__remote_entry){ .prefix = (uint16_t)prefix, .occurrence = (uint32_t)times, .codec = DR__REMOTE_NO_CODEC };
    return codec ? take_codec(codec, r, &r->entries[0].codec, err) : DR_OK;
}

static json_t *load(const void *data, size_t size, dr_error *err)
{
    json_error_t why;
    json_t *o = size ? json_loadb(data, size, JSON_REJECT_DUPLICATES, &why) : NULL;
    if (!o)
        dr__fail(err, DR_ERR_FORMAT, "request: no JSON: %.150s", size ? why.text : "it is empty");
    return o;
}

dr_status dr__remote_request_parse(const void *data, size_t size, size_t most_entries, dr__remote_request *out,
                                   dr_error *err)
{
    *out = (dr__remote_request){ 0 };
    json_t *o = load(data, size, err);
    const dr_status status = o ? parse_many(o, most_entries, out, err) : DR_ERR_FORMAT;
    json_decref(o);
    if (status != DR_OK)
        dr__remote_request_free(out);
    return status;
}

dr_status dr__remote_request_parse_single(const void *data, size_t size, dr__remote_request *out, dr_error *err)
{
    *out = (dr__remote_request){ 0 };
    json_t *o = load(data, size, err);
    const dr_status status = o ? parse_one(o, out, err) : DR_ERR_FORMAT;
    json_decref(o);
    if (status != DR_OK)
        dr__remote_request_free(out);
    return status;
}

void dr__remote_request_free(dr__remote_request *r)
{
    dr__free(r->graph);
    dr__free(r->outputs);
    dr__free(r->entries);
    dr__free(r->ranges);
    *r = (dr__remote_request){ 0 };
}

/* --- writing --- */

static void put_u64(dr__text *out, const char *before, uint64_t value)
{
    char text[64];
    const char *quote = value > INT64_MAX ? "\"" : "";
    const int n = snprintf(text, sizeof text, "%s%s%" PRIu64 "%s", before, quote, value, quote);
    dr__text_add(out, text, (size_t)n);
}

/* A member that is left out where it is 0. */
static void put_hex(dr__text *out, const char *name, uint64_t value)
{
    char text[64];
    const int n = value ? snprintf(text, sizeof text, ",\"%s\":\"%016" PRIx64 "\"", name, value) : 0;
    dr__text_add(out, text, (size_t)n);
}

static void put_json(dr__text *out, const char *text)
{
    json_t *value = json_string(text);
    char *quoted = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
    if (quoted)
        dr__text_say(out, quoted);
    else
        out->failed = true;
    free(quoted); /* jansson's */
    json_decref(value);
}

static void put_ranges(dr__text *out, const dr__remote_range *ranges, const dr__remote_entry *e)
{
    char text[32];
    for (uint32_t i = 0; i < e->n_ranges; i++) {
        put_u64(out, i ? ",[" : ",[[", ranges[i].offset);
        put_u64(out, ",", ranges[i].size);
        dr__text_say(out, "]");
    }
    dr__text_say(out, e->n_ranges ? "]" : ",[]");
    const int n = e->stamp ? snprintf(text, sizeof text, ",\"%016" PRIx64 "\"", e->stamp) : 0;
    dr__text_add(out, text, (size_t)n);
}

static void put_entry(dr__text *out, const dr__remote_request *r, const dr__remote_entry *e)
{
    put_u64(out, "[", e->id);
    put_u64(out, ",", e->occurrence);
    put_u64(out, ",", e->prefix);
    dr__text_say(out, ",");
    if (e->codec == DR__REMOTE_NO_CODEC)
        dr__text_say(out, "null");
    else
        put_json(out, r->codecs[e->codec]);
    if (e->by_ranges)
        put_ranges(out, r->ranges + e->first_range, e);
    dr__text_say(out, "]");
}

void dr__remote_request_put(dr__text *out, const dr__remote_request *r)
{
    put_u64(out, "{\"seed\":", r->seed);
    put_u64(out, ",\"epoch\":", r->epoch);
    put_hex(out, "ops", r->ops);
    put_hex(out, "set", r->set);
    if (r->outputs) {
        dr__text_say(out, ",\"outputs\":");
        put_json(out, r->outputs);
    }
    if (r->graph) {
        dr__text_say(out, ",\"graph\":");
        dr__text_say(out, r->graph);
    }
    dr__text_say(out, ",\"samples\":[");
    for (size_t i = 0; i < r->n_entries; i++) {
        if (i)
            dr__text_say(out, ",");
        put_entry(out, r, &r->entries[i]);
    }
    dr__text_say(out, "]}");
}
