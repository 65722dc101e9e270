/* prefix.c: where to cut, and two programs made of one. */
#include "graph/prefix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drapps/store.h>

#include "base/alloc.h"
#include "base/text.h"

static const dr_op_def *def_of(const dr__program *p, int node)
{
    return p->graph->nodes[node].op.def;
}

/* Which nodes the first part has.  Every value that they read is made by them, or a field of the data set. */
typedef struct cut {
    bool head[DR__MAX_NODES];
} cut;

static const char *op_name(const dr__program *p, int node)
{
    return def_of(p, node)->name;
}

static bool is_fixed(const dr__program *p, int node)
{
    return !(def_of(p, node)->flags & (DR_OP_RANDOM | DR_OP_INEXACT | DR_OP_BATCH));
}

/* A decode at a fraction of the size looks at the op that reads it: both stay together.  The decode; -1: none is
 * parted. */
static int parted_decode(const dr__program *p, const cut *c)
{
    for (int s = 0; s < p->n_steps; s++) {
        const dr__op *op = &p->graph->nodes[p->steps[s].node].op;
        if (!c->head[p->steps[s].node] || !op->def->may_scale || !op->def->may_scale(op->conf))
            continue;
        for (int r = 0; r < p->n_steps; r++)
            if (p->steps[r].in == p->steps[s].out && !c->head[p->steps[r].node])
                return p->steps[s].node;
    }
    return -1;
}

static cut first_nodes(int n)
{
    cut c = { { false } };
    for (int i = 0; i < n; i++)
        c.head[i] = true;
    return c;
}

static cut choose_cut(const dr__program *p)
{
    int n = 0;
    while (n < p->graph->n_nodes && is_fixed(p, n))
        n++;
    for (; n > 0; n--) {
        const cut c = first_nodes(n);
        if (!(def_of(p, n - 1)->flags & DR_OP_POINTWISE_U8) && parted_decode(p, &c) < 0)
            break;
    }
    return first_nodes(n);
}

/* The node that makes a value; -1: it is read from the data set. */
static int maker_of(const dr__program *p, int value)
{
    for (int s = 0; s < p->n_steps; s++)
        if (p->steps[s].out == value)
            return p->steps[s].node;
    return -1;
}

/* --- a place of the user's choice --- */

/* The node that a user names: by its number, or by its op where there is one of that name. */
static dr_status find_node(const dr__program *p, const char *at, int *node, dr_error *err)
{
    char *end;
    const int n = p->graph->n_nodes;
    const long number = strtol(at, &end, 10);
    *node = -1;
    if (*at && !*end) {
        *node = number >= 0 && number < n ? (int)number : -1;
        return *node >= 0 ? DR_OK : dr__fail(err, DR_ERR_ARG, "cache_at must be an op, 0 to %d, got \"%s\"", n - 1, at);
    }
    for (int i = 0; i < n; i++) {
        if (strcmp(op_name(p, i), at) != 0)
            continue;
        if (*node >= 0)
            return dr__fail(err, DR_ERR_ARG,
                            "cache_at=\"%s\": there are several ops of that name; give a number: %d, %d", at, *node, i);
        *node = i;
    }
    return *node >= 0 ? DR_OK : dr__fail(err, DR_ERR_ARG, "cache_at=\"%s\": the pipeline has no such op", at);
}

/* A node and all that it depends on. */
static void take(const dr__program *p, cut *c, int node)
{
    c->head[node] = true;
    for (int i = node; i >= 0; i--)
        for (int f = 0; c->head[i] && f < p->graph->nodes[i].n_fields; f++) {
            const int maker = p->node_in[i][f] >= 0 ? maker_of(p, p->node_in[i][f]) : -1;
            if (maker >= 0)
                c->head[maker] = true;
        }
}

/* In two programs the nodes of the first part all come before those of the second: a field must not be written by one
 * of the second part, and later by one of the first. */
static bool keeps_order(const dr__program *p, const cut *c)
{
    for (int s = 0; s < p->n_steps; s++)
        for (int r = s + 1; r < p->n_steps; r++)
            if (!c->head[p->steps[s].node] && c->head[p->steps[r].node] &&
                !strcmp(p->names[p->steps[s].out], p->names[p->steps[r].out]))
                return false;
    return true;
}

/* Behind one node: with all nodes before it, so that branches are kept together; where some of these draw, with those
 * that it depends on. */
static dr_status cut_at(const dr__program *p, const char *at, cut *out, dr_error *err)
{
    int node, decode;
    bool all = true;
    DR_TRY(find_node(p, at, &node, err));
    *out = first_nodes(node + 1);
    for (int i = 0; i <= node; i++)
        all = all && is_fixed(p, i);
    if (!all) {
        *out = (cut){ { false } };
        take(p, out, node);
    }
    for (int i = 0; i <= node; i++)
        if (out->head[i] && !is_fixed(p, i))
            return dr__fail(err, DR_ERR_ARG,
                            "cache_at=\"%s\": its output is not the same in every epoch: op %d (%s) %s", at, i,
                            op_name(p, i),
                            def_of(p, i)->flags & DR_OP_RANDOM    ? "is random"
                            : def_of(p, i)->flags & DR_OP_INEXACT ? "does not give the same bytes on every machine"
                                                                  : "works on whole batches");
    if ((decode = parted_decode(p, out)) >= 0)
        return dr__fail(err, DR_ERR_ARG,
                        "cache_at=\"%s\": op %d (%s) with fast_decode depends on the op that reads it; name a later "
                        "op",
                        at, decode, op_name(p, decode));
    if (!keeps_order(p, out))
        return dr__fail(err, DR_ERR_ARG, "cache_at=\"%s\": a random op before it writes to one of its fields", at);
    return DR_OK;
}

/* --- what is kept --- */

/* A node may look at a field that it makes nothing of: the image that boxes lie in.
 * Those of batches work on outputs. */
static bool needed_after(const dr__program *p, int value, const cut *c)
{
    for (int node = 0; node < p->graph->n_nodes; node++)
        for (int f = 0; f < p->graph->nodes[node].n_fields && !c->head[node] && !(def_of(p, node)->flags & DR_OP_BATCH);
             f++)
            if (p->node_in[node][f] == value)
                return true;
    return dr__program_output_of(p, value) >= 0;
}

/* Finds the values that cross the cut, as fields of the second part, and returns how many there are; no more than
 * DR_STORE_FIELDS are noted.  *n_made: how many of them the first part has made; *unique: no two have one name.  Behind
 * the first nodes they never have: a value that was hidden by a later one of its name has no reader after that. */
static int find_fields(const dr__program *p, const cut *c, dr__field fields[DR_STORE_FIELDS], int *n_made, bool *unique)
{
    int n = 0;
    *n_made = 0;
    *unique = true;
    for (int v = 0; v < p->n_values; v++) {
        const int maker = maker_of(p, v);
        if ((maker >= 0 && !c->head[maker]) || !needed_after(p, v, c))
            continue;
        *n_made += maker >= 0;
        for (int i = 0; i < n && i < DR_STORE_FIELDS; i++)
            *unique = *unique && strcmp(fields[i].name, p->names[v]) != 0;
        if (n < DR_STORE_FIELDS) {
            snprintf(fields[n].name, sizeof fields[n].name, "%s", p->names[v]);
            fields[n].desc = p->values[v];
        }
        n++;
    }
    return n;
}

/* The nodes of one part as a graph of their own; their ids, which key randomness, stay. */
static dr_status part_of(dr_graph *graph, const cut *c, bool head, dr_graph **out, dr_error *err)
{
    const char *text;
    DR_TRY(dr_graph_json(graph, &text, err));
    json_t *whole = json_loads(text, 0, NULL), *nodes = json_array(), *all = json_object_get(whole, "nodes");
    for (int i = 0; i < graph->n_nodes; i++)
        if (c->head[i] == head)
            json_array_append(nodes, json_array_get(all, (size_t)i));
    json_object_set_new(whole, "nodes", nodes);
    char *part = whole ? dr__canonical(whole) : NULL;
    json_decref(whole);
    dr_status status = part ? dr_graph_from_json(part, out, err) : dr__fail(err, DR_ERR_NOMEM, "cache: out of memory");
    dr__free(part);
    return status;
}

/* Names of outputs and their rules of collation, as dr__program_options has them. */
struct outputs {
    dr__text names, rules;
};

static void add_output(struct outputs *o, const char *name, const char *rule)
{
    const char *comma = o->names.n ? "," : "";
    dr__text_say(&o->names, comma);
    dr__text_say(&o->names, name);
    dr__text_say(&o->rules, comma);
    dr__text_say(&o->rules, name);
    dr__text_say(&o->rules, "=");
    dr__text_say(&o->rules, rule);
}

/* Compiles the nodes of one part.  Takes the texts of `outputs` in any case. */
static dr_status compile_part(const dr__program *p, const cut *c, bool head, const dr__field *fields, int n_fields,
                              struct outputs *outputs, dr__program_options *options, dr__program **out, dr_error *err)
{
    dr_graph *graph = NULL;
    options->outputs = outputs->names.text;
    options->collate = outputs->rules.text;
    options->part = true;
    dr_status status = outputs->names.failed || outputs->rules.failed
                           ? dr__fail(err, DR_ERR_NOMEM, "cache: out of memory")
                           : part_of(p->graph, c, head, &graph, err);
    if (status == DR_OK)
        status = dr__program_compile(graph, fields, n_fields, options, out, err);
    dr_graph_free(&graph);
    dr__free(outputs->names.text);
    dr__free(outputs->rules.text);
    return status;
}

static dr_status make_head(const dr__program *p, const cut *c, const dr__field *in, int n_in, const dr__field *kept,
                           int n_kept, dr__prefix *out, dr_error *err)
{
    struct outputs outputs = { 0 };
    dr__program_options o = { .layout = "NHWC" };
    for (int i = 0; i < n_kept; i++)
        add_output(&outputs, kept[i].name, "list");
    DR_TRY(compile_part(p, c, true, in, n_in, &outputs, &o, &out->head, err));
    out->json = dr__graph_identity(out->head->graph);
    return out->json ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "cache: out of memory");
}

static dr_status make_rest(const dr__program *p, const cut *c, const dr__field *kept, int n_kept,
                           const dr__program_options *options, dr__prefix *out, dr_error *err)
{
    static const char *const rules_of[] = { "stack", "pad", "ragged", "list" };
    struct outputs outputs = { 0 };
    dr__program_options o = *options;
    for (int i = 0; i < p->n_outputs; i++)
        add_output(&outputs, p->outputs[i].name, rules_of[p->outputs[i].collate]);
    return compile_part(p, c, false, kept, n_kept, &outputs, &o, &out->rest, err);
}

/* Why nothing can be stored there; NULL: it can. */
static const char *why_not(int n_kept, int n_made, bool unique)
{
    return !n_made                    ? "no op before the first random one is worth storing"
           : n_kept > DR_STORE_FIELDS ? "more fields than a stored sample can have"
           : !unique                  ? "an op behind it reads a field as it was before"
                                      : NULL;
}

/* Makes both parts; nothing is made, and out->why says why, where they cannot be. */
static dr_status make_parts(const dr__program *p, const cut *c, const dr__field *fields, int n_fields,
                            const dr__field *kept, int n_kept, const dr__program_options *options, dr__prefix *out,
                            dr_error *err)
{
    dr_error why = { 0 };
    dr_status status = make_head(p, c, fields, n_fields, kept, n_kept, out, &why);
    if (status == DR_OK)
        status = make_rest(p, c, kept, n_kept, options, out, &why);
    if (status == DR_OK)
        return DR_OK;
    dr__prefix_free(out);
    if (status == DR_ERR_NOMEM)
        return dr__fail(err, status, "%s", why.text);
    snprintf(out->why, sizeof out->why, "its ops cannot be split: %.130s", why.text);
    return DR_OK;
}

static dr_status split(const dr__program *whole, const cut *c, const dr__field *fields, int n_fields,
                       const dr__program_options *options, dr__prefix *out, dr_error *err)
{
    dr__field kept[DR_STORE_FIELDS];
    int n_made;
    bool unique;
    const int n_kept = find_fields(whole, c, kept, &n_made, &unique);
    const char *none = why_not(n_kept, n_made, unique);
    if (!none)
        return make_parts(whole, c, fields, n_fields, kept, n_kept, options, out, err);
    snprintf(out->why, sizeof out->why, "%s", none);
    return DR_OK;
}

dr_status dr__prefix_split(const dr__program *whole, const dr__field *fields, int n_fields,
                           const dr__program_options *options, const char *at, dr__prefix *out, dr_error *err)
{
    *out = (dr__prefix){ 0 };
    cut c;
    if (at)
        DR_TRY(cut_at(whole, at, &c, err));
    else
        c = choose_cut(whole);
    DR_TRY(split(whole, &c, fields, n_fields, options, out, err));
    if (at && !out->head)
        return dr__fail(err, DR_ERR_ARG, "cache_at=\"%s\": %s", at,
                        strstr(out->why, "no op before") ? "none of its results is used later" : out->why);
    return DR_OK;
}

dr_status dr__prefix_cut(const dr__program *whole, const dr__field *fields, int n_fields, int n_nodes,
                         const dr__program_options *options, dr__prefix *out, dr_error *err)
{
    *out = (dr__prefix){ 0 };
    if (n_nodes > 0 && dr__prefix_parts_scaled_decode(whole, n_nodes))
        return dr__fail(err, DR_ERR_ARG, "%s: goes with the decode before it, which looks at its size",
                        def_of(whole, n_nodes)->name);
    const cut c = n_nodes > 0 ? first_nodes(n_nodes) : choose_cut(whole);
    return split(whole, &c, fields, n_fields, options, out, err);
}

bool dr__prefix_parts_scaled_decode(const dr__program *p, int n_nodes)
{
    const cut c = first_nodes(n_nodes);
    return parted_decode(p, &c) >= 0;
}

int dr__prefix_fields(const dr__program *p, int n_nodes, dr__field fields[DR_STORE_FIELDS], int *n_made)
{
    const cut c = first_nodes(n_nodes);
    bool unique;
    return find_fields(p, &c, fields, n_made, &unique);
}

/* --- another machine --- */

/* Why an op cannot run on another machine; NULL: it can.  A draw is the same everywhere: a counter-based generator
 * makes it of seed, epoch, sample, occurrence and node. */
static const char *why_not_elsewhere(const dr_op_def *def)
{
    return def->flags & DR_OP_BATCH     ? "works on whole batches"
           : def->flags & DR_OP_INEXACT ? "does not give the same bytes on every machine"
                                        : NULL;
}

dr_status dr__prefix_offload(const dr__program *whole, const dr__field *fields, int n_fields, int n_nodes,
                             const dr__program_options *options, dr__prefix *out, dr_error *err)
{
    *out = (dr__prefix){ 0 };
    if (n_nodes < 0 || n_nodes > whole->graph->n_nodes)
        return dr__fail(err, DR_ERR_ARG, "offload: the prefix must be 0 to %d ops, got %d", whole->graph->n_nodes,
                        n_nodes);
    for (int i = 0; i < n_nodes; i++)
        if (why_not_elsewhere(def_of(whole, i)))
            return dr__fail(err, DR_ERR_UNSUPPORTED, "offload: op %d (%s) %s", i, op_name(whole, i),
                            why_not_elsewhere(def_of(whole, i)));
    const cut c = first_nodes(n_nodes);
    const int decode = parted_decode(whole, &c);
    if (decode >= 0)
        return dr__fail(err, DR_ERR_UNSUPPORTED,
                        "offload: prefix %d: op %d (%s) with fast_decode depends on the op that reads it", n_nodes,
                        decode, op_name(whole, decode));
    DR_TRY(split(whole, &c, fields, n_fields, options, out, err));
    return out->head || !n_nodes
               ? DR_OK
               : dr__fail(err, DR_ERR_UNSUPPORTED, "offload: prefix %d: %s", n_nodes,
                          strstr(out->why, "no op before") ? "none of its results is used later" : out->why);
}

int dr__prefix_offload_most(const dr__program *whole)
{
    int n = 0;
    while (n < whole->graph->n_nodes && !why_not_elsewhere(def_of(whole, n)))
        n++;
    while (n > 0 && dr__prefix_parts_scaled_decode(whole, n))
        n--;
    return n;
}

bool dr__prefix_fits(const dr__program *p, const dr__record *record)
{
    if (record->n_fields != p->n_inputs)
        return false;
    for (int i = 0; i < p->n_inputs; i++) {
        const dr_desc *have = &record->fields[i].desc, *want = &p->values[i];
        if (have->kind != want->kind || have->dtype != want->dtype || have->layout != want->layout ||
            have->n_dims != want->n_dims)
            return false;
        for (int k = 0; k < want->n_dims; k++)
            if (want->dims[k] != DR_UNKNOWN && have->dims[k] != want->dims[k])
                return false;
    }
    return true;
}

void dr__prefix_free(dr__prefix *prefix)
{
    dr__program_free(&prefix->head);
    dr__program_free(&prefix->rest);
    dr__free(prefix->json);
    prefix->json = NULL;
}

const char *dr__prefix_explain(const dr__prefix *prefix, char *text, size_t size)
{
    const dr__program *p = prefix->head;
    char desc[128];
    size_t n = 0;
    for (int i = 0; i < p->graph->n_nodes && n < size; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%s", i ? ", " : "", def_of(p, i)->name);
    for (int i = 0; i < p->n_outputs && n < size; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%s %s", i ? ", " : " -> ", p->outputs[i].name,
                              dr__desc_text_of(&p->outputs[i].desc, desc, sizeof desc));
    return text;
}
