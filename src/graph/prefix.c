/* prefix.c: where to cut, and two programs made of one. */
#include "graph/prefix.h"

#include <stdio.h>
#include <string.h>

#include <drapps/store.h>

#include "base/alloc.h"
#include "base/text.h"

static const dr_op_def *def_of(const dr__program *p, int node)
{
    return p->graph->nodes[node].op.def;
}

/* A decode at a fraction of the size looks at the op that reads it: both stay together. */
static bool parts_scaled_decode(const dr__program *p, int cut)
{
    for (int s = 0; s < p->n_steps; s++) {
        const dr__op *op = &p->graph->nodes[p->steps[s].node].op;
        if (p->steps[s].node >= cut || !op->def->may_scale || !op->def->may_scale(op->conf))
            continue;
        for (int r = 0; r < p->n_steps; r++)
            if (p->steps[r].in == p->steps[s].out && p->steps[r].node >= cut)
                return true;
    }
    return false;
}

/* How many nodes the first part has. */
static int choose_cut(const dr__program *p)
{
    int cut = 0;
    while (cut < p->graph->n_nodes && !(def_of(p, cut)->flags & (DR_OP_RANDOM | DR_OP_INEXACT | DR_OP_BATCH)))
        cut++;
    while (cut > 0 && (def_of(p, cut - 1)->flags & DR_OP_POINTWISE_U8 || parts_scaled_decode(p, cut)))
        cut--;
    return cut;
}

/* The node that makes a value; -1: it is read from the data set. */
static int maker_of(const dr__program *p, int value)
{
    for (int s = 0; s < p->n_steps; s++)
        if (p->steps[s].out == value)
            return p->steps[s].node;
    return -1;
}

/* A node may look at a field that it makes nothing of: the image that boxes lie in.
 * Those of batches work on outputs. */
static bool needed_after(const dr__program *p, int value, int cut)
{
    for (int node = cut; node < p->graph->n_nodes; node++)
        for (int f = 0; f < p->graph->nodes[node].n_fields && !(def_of(p, node)->flags & DR_OP_BATCH); f++)
            if (p->node_in[node][f] == value)
                return true;
    return dr__program_output_of(p, value) >= 0;
}

/* Finds the values that cross the cut, as fields of the second part, and returns how many there are; no more than
 * DR_STORE_FIELDS are noted.  Their names are unique: a value that was hidden by a later one of its name has no reader
 * after that.  *n_made: how many of them the first part has made. */
static int find_fields(const dr__program *p, int cut, dr__field fields[DR_STORE_FIELDS], int *n_made)
{
    int n = 0;
    *n_made = 0;
    for (int v = 0; v < p->n_values; v++) {
        int maker = maker_of(p, v);
        if (maker >= cut || !needed_after(p, v, cut))
            continue;
        *n_made += maker >= 0;
        if (n < DR_STORE_FIELDS) {
            snprintf(fields[n].name, sizeof fields[n].name, "%s", p->names[v]);
            fields[n].desc = p->values[v];
        }
        n++;
    }
    return n;
}

/* The nodes `from` .. `to` - 1 as a graph of their own; their ids, which key randomness, stay. */
static dr_status part_of(dr_graph *graph, int from, int to, dr_graph **out, dr_error *err)
{
    const char *text;
    DR_TRY(dr_graph_json(graph, &text, err));
    json_t *whole = json_loads(text, 0, NULL), *nodes = json_array(), *all = json_object_get(whole, "nodes");
    for (int i = from; i < to; i++)
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

/* Compiles the nodes `from` .. `to` - 1.  Takes the texts of `outputs` in any case. */
static dr_status compile_part(const dr__program *p, int from, int to, const dr__field *fields, int n_fields,
                              struct outputs *outputs, dr__program_options *options, dr__program **out, dr_error *err)
{
    dr_graph *graph = NULL;
    options->outputs = outputs->names.text;
    options->collate = outputs->rules.text;
    options->part = true;
    dr_status status = outputs->names.failed || outputs->rules.failed
                           ? dr__fail(err, DR_ERR_NOMEM, "cache: out of memory")
                           : part_of(p->graph, from, to, &graph, err);
    if (status == DR_OK)
        status = dr__program_compile(graph, fields, n_fields, options, out, err);
    dr_graph_free(&graph);
    dr__free(outputs->names.text);
    dr__free(outputs->rules.text);
    return status;
}

static dr_status make_head(const dr__program *p, int cut, const dr__field *in, int n_in, const dr__field *kept,
                           int n_kept, dr__prefix *out, dr_error *err)
{
    struct outputs outputs = { 0 };
    dr__program_options o = { .layout = "NHWC" };
    for (int i = 0; i < n_kept; i++)
        add_output(&outputs, kept[i].name, "list");
    DR_TRY(compile_part(p, 0, cut, in, n_in, &outputs, &o, &out->head, err));
    out->json = dr__graph_identity(out->head->graph);
    return out->json ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "cache: out of memory");
}

static dr_status make_rest(const dr__program *p, int cut, const dr__field *kept, int n_kept,
                           const dr__program_options *options, dr__prefix *out, dr_error *err)
{
    static const char *const rules_of[] = { "stack", "pad", "ragged", "list" };
    struct outputs outputs = { 0 };
    dr__program_options o = *options;
    for (int i = 0; i < p->n_outputs; i++)
        add_output(&outputs, p->outputs[i].name, rules_of[p->outputs[i].collate]);
    return compile_part(p, cut, p->graph->n_nodes, kept, n_kept, &outputs, &o, &out->rest, err);
}

dr_status dr__prefix_split(const dr__program *whole, const dr__field *fields, int n_fields,
                           const dr__program_options *options, dr__prefix *out, dr_error *err)
{
    *out = (dr__prefix){ 0 };
    dr__field kept[DR_STORE_FIELDS];
    int cut = choose_cut(whole), n_made, n_kept = find_fields(whole, cut, kept, &n_made);
    if (!n_made || n_kept > DR_STORE_FIELDS) {
        snprintf(out->why, sizeof out->why, "%s",
                 n_made ? "more fields than a stored sample can have"
                        : "no op before the first random one that is worth it");
        return DR_OK;
    }
    dr_error why = { 0 };
    dr_status status = make_head(whole, cut, fields, n_fields, kept, n_kept, out, &why);
    if (status == DR_OK)
        status = make_rest(whole, cut, kept, n_kept, options, out, &why);
    if (status == DR_OK)
        return DR_OK;
    dr__prefix_free(out);
    if (status == DR_ERR_NOMEM)
        return dr__fail(err, status, "%s", why.text);
    snprintf(out->why, sizeof out->why, "its ops cannot be parted: %.130s", why.text);
    return DR_OK;
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
