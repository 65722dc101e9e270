/* plan_text.c: what is being packed, as a text that a folder keeps, and how two of them differ. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "pack/pack_internal.h"

char *dr__plan_text(const dr_pack *p)
{
    char fingerprint[20];
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, p->set->fingerprint);
    json_t *codecs = json_object();
    for (int i = 0; i < p->m.n_fields; i++)
        if (p->m.fields[i].codec[0])
            json_object_set_new(codecs, p->m.fields[i].member, json_string(p->m.fields[i].codec));
    json_t *o =
        json_pack("{s:o, s:I, s:s, s:I, s:s, s:I, s:I, s:b, s:s}", "codecs", codecs, "generation",
                  (json_int_t)p->m.generation, "source", fingerprint, "samples", (json_int_t)p->set->n_samples, "name",
                  p->name, "shard_bytes", (json_int_t)p->o.shard_bytes, "shard_samples", (json_int_t)p->o.shard_samples,
                  "keep_bad", (int)p->o.keep_bad, "prefix", p->m.prefix ? p->m.prefix : "");
    char *text = o ? dr__canonical(o) : NULL;
    json_decref(o);
    return text;
}

/* --- what differs between the plan of a folder and that of this call --- */

/* A value of a plan, for people. */
static void say_value(dr__text *t, const char *key, const json_t *value)
{
    char number[32];
    if (!strcmp(key, "prefix") && json_is_string(value)) {
        json_t *graph = json_loads(json_string_value(value), 0, NULL), *node;
        size_t i;
        json_array_foreach(json_object_get(graph, "nodes"), i, node)
        {
            const char *op = json_string_value(json_object_get(node, "op"));
            dr__text_say(t, i ? ", " : "");
            dr__text_say(t, op ? op : "?");
        }
        dr__text_say(t, json_array_size(json_object_get(graph, "nodes")) ? "" : "none");
        json_decref(graph);
    } else if (json_is_object(value)) {
        const char *name;
        json_t *spec;
        size_t n = 0;
        json_object_foreach((json_t *)value, name, spec)
        {
            dr__text_say(t, n++ ? "," : "");
            dr__text_say(t, name);
            dr__text_say(t, "=");
            dr__text_say(t, json_is_string(spec) ? json_string_value(spec) : "?");
        }
        dr__text_say(t, n ? "" : "none");
    } else if (json_is_integer(value)) {
        snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        dr__text_say(t, number);
    } else if (json_is_string(value)) {
        dr__text_say(t, json_string_value(value));
    } else {
        dr__text_say(t, json_is_true(value) ? "true" : json_is_false(value) ? "false" : "none");
    }
}

/* A set or journal without bad samples is what one that may have them would be, too. */
static bool is_same_value(const char *key, const json_t *then, const json_t *now)
{
    return json_equal(then, now) || (!strcmp(key, "keep_bad") && json_is_false(then));
}

/* Names what differs between two plans, as "shard_bytes: 1000 then, 2000 now; ...". */
static dr__text differences(const json_t *then, const json_t *now)
{
    static const char *const keys[][2] = {
        { "source", "the data" },
        { "samples", "samples" },
        { "prefix", "ops" },
        { "codecs", "codec" },
        { "name", "name" },
        { "shard_bytes", "shard_bytes" },
        { "shard_samples", "shard_samples" },
        { "keep_bad", "keep_bad" },
        { "generation", "generation (append)" },
    };
    dr__text t = { 0 };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *key = keys[i][0];
        const json_t *a = json_object_get(then, key), *b = json_object_get(now, key);
        if (is_same_value(key, a, b))
            continue;
        dr__text_say(&t, t.n ? "; " : "");
        dr__text_say(&t, keys[i][1]);
        if (!strcmp(key, "source")) {
            dr__text_say(&t, ": files were added, removed or renamed, or it is another data set");
            continue;
        }
        dr__text_say(&t, ": ");
        say_value(&t, key, a);
        dr__text_say(&t, " then, ");
        say_value(&t, key, b);
        dr__text_say(&t, " now");
    }
    return t;
}

dr_status dr__plan_check(const dr_pack *p, const char *then, const char *what, const char *advice, dr_error *err)
{
    if (then && !strcmp(then, p->m.plan))
        return DR_OK;
    json_t *old = then ? json_loads(then, 0, NULL) : NULL, *now = json_loads(p->m.plan, 0, NULL);
    dr__text found = differences(old, now);
    dr_status status = DR_OK;
    if (!now || found.failed)
        status = dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", p->folder);
    else if (found.n)
        status = dr__fail(err, DR_ERR_STATE, "%s: %s (%.600s); %s", p->folder, what, found.text, advice);
    dr__free(found.text);
    json_decref(old);
    json_decref(now);
    return status;
}
