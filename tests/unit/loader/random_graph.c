/* random_graph.c: draws settings until the op takes them, and ops until the graph compiles. */
#include "unit/cm.h"

#include "unit/loader/random_graph.h"

#include <jansson.h>

#include "graph/program.h"

enum { MOST_NODES = 16, MOST_FIELDS = 4 };

static dr_error err;

uint64_t dice(uint64_t *x, uint64_t below)
{
    uint64_t z = (*x += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (z ^ (z >> 31)) % below;
}

/* The part of a range that small images can be treated with. */
static double number(const dr_param *p, bool whole, uint64_t *x)
{
    double lo = p->min > -8 ? p->min : -8, hi = p->max < 40 ? p->max : whole ? 40 : 4;
    double v = lo + (hi - lo) * (double)dice(x, 1001) / 1000;
    return whole ? (double)(int64_t)v : v;
}

static int by_value(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static json_t *list(const dr_param *p, bool whole, uint64_t *x)
{
    double v[DR_PARAM_LIST];
    int most = p->n_max < 4 ? p->n_max : 4;
    int n = p->n_min + (int)dice(x, (uint64_t)(most - p->n_min + 1));
    for (int i = 0; i < n; i++)
        v[i] = number(p, whole, x);
    qsort(v, (size_t)n, sizeof v[0], by_value); /* most pairs are a range */
    json_t *all = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(all, whole ? json_integer((json_int_t)v[i]) : json_real(v[i]));
    return all;
}

static json_t *settings(const dr_op_def *def, int depth, uint64_t *x);

static json_t *nested(int depth, uint64_t *x)
{
    size_t n_ops = 0;
    json_t *all = json_array();
    while (dr__op_table[n_ops])
        n_ops++;
    for (uint64_t n = 1 + dice(x, 3); n > 0; n--) {
        const dr_op_def *def = dr__op_table[dice(x, n_ops)];
        json_array_append_new(all, json_pack("{s:s, s:o}", "op", def->name, "params", settings(def, depth + 1, x)));
    }
    return all;
}

static json_t *value(const dr_param *p, int depth, uint64_t *x)
{
    int n = 0;
    switch (p->type) {
    case DR_P_REAL:
        return json_real(number(p, false, x));
    case DR_P_INT:
        return json_integer((json_int_t)number(p, true, x));
    case DR_P_BOOL:
        return json_boolean((int)dice(x, 2));
    case DR_P_ENUM:
        while (p->choices[n])
            n++;
        return json_string(p->choices[dice(x, (uint64_t)n)]);
    case DR_P_REALS:
        return list(p, false, x);
    case DR_P_INTS:
        return list(p, true, x);
    case DR_P_OPS:
        return depth < 2 ? nested(depth, x) : json_array();
    case DR_P_TEXT:
        break;
    }
    return json_string("");
}

static json_t *settings(const dr_op_def *def, int depth, uint64_t *x)
{
    json_t *o = json_object();
    for (const dr_param *p = def->params; p && p->name; p++)
        if (!p->fallback || dice(x, 2))
            json_object_set_new(o, p->name, value(p, depth, x));
    return o;
}

/* Names of fields at hand. */
typedef struct fields {
    char names[MOST_FIELDS][16];
    int n;
} fields;

static json_t *draw_node(const fields *f, bool masks, uint64_t *x, int *row, char made[16])
{
    size_t n_ops = 0;
    while (dr__op_table[n_ops])
        n_ops++;
    *row = (int)dice(x, n_ops);
    const dr_op_def *def = dr__op_table[*row];
    const char *name = f->names[dice(x, (uint64_t)f->n)];
    json_t *node = json_pack("{s:s, s:o, s:[s]}", "op", def->name, "params", settings(def, 0, x), "fields", name);
    made[0] = 0;
    if (masks && !strcmp(name, "image") && dice(x, 3) == 0) {
        json_array_append_new(json_object_get(node, "fields"), json_string("mask"));
    } else if (f->n < MOST_FIELDS && dice(x, 4) == 0) {
        snprintf(made, 16, "view%d", f->n);
        json_object_set_new(node, "outputs", json_pack("[s]", made));
    }
    return node;
}

static dr_graph *build(const json_t *nodes)
{
    dr_graph *g = NULL;
    json_t *whole = json_pack("{s:i, s:O}", "version", 1, "nodes", nodes);
    char *text = json_dumps(whole, 0);
    if (dr_graph_from_json(text, &g, &err) != DR_OK)
        g = NULL;
    free(text);
    json_decref(whole);
    return g;
}

/* Does it fit the data?  The standard op of batches is left to its own tests. */
static bool compiles(dr_dataset *set, dr_graph *g, const char *outputs)
{
    dr__program_options o = { .outputs = outputs, .reference = true, .any_shape = true };
    dr__program *p = NULL;
    bool good = dr__program_compile(g, set->fields, set->n_fields, &o, &p, &err) == DR_OK && !p->n_batch_nodes;
    dr__program_free(&p);
    return good;
}

static void name_outputs(random_graph *r, const fields *f, bool masks, bool labels)
{
    r->outputs[0] = r->collate[0] = 0;
    for (int i = 0; i < f->n; i++) {
        strcat(strcat(r->outputs, i ? "," : ""), f->names[i]);
        strcat(strcat(strcat(r->collate, i ? "," : ""), f->names[i]), "=list");
    }
    strcat(r->outputs, masks ? ",mask" : "");
    strcat(r->collate, masks ? ",mask=list" : "");
    strcat(r->outputs, labels ? ",label" : "");
}

random_graph random_graph_of(dr_dataset *set, int n_ops, uint64_t *x, unsigned *used)
{
    fields f = { { "image" }, 1 };
    bool masks = false, labels = false, encoded = false;
    for (int i = 0; i < dr_dataset_fields(set); i++) {
        dr_desc d;
        const char *name = dr_dataset_field(set, i, &d);
        masks |= !strcmp(name, "mask");
        labels |= !strcmp(name, "label");
        encoded |= !strcmp(name, "image") && d.kind == DR_KIND_BYTES;
    }
    json_t *nodes = encoded ? json_pack("[{s:s}]", "op", "decode") : json_array();
    random_graph r = { build(nodes), "", "" };
    for (int tries = 0, n = 0; n < n_ops && tries < 400; tries++) {
        int row;
        char made[16];
        json_t *node = draw_node(&f, masks, x, &row, made);
        json_t *longer = json_copy(nodes);
        json_array_append_new(longer, node);
        dr_graph *g = build(longer);
        fields now = f;
        if (made[0])
            strcpy(now.names[now.n++], made);
        random_graph next = { g, "", "" };
        name_outputs(&next, &now, masks, labels);
        if (g && compiles(set, g, next.outputs)) {
            dr_graph_free(&r.graph);
            r.graph = g;
            json_decref(nodes);
            nodes = json_incref(longer);
            f = now;
            used[row]++;
            n++;
        } else {
            dr_graph_free(&g);
        }
        json_decref(longer);
    }
    name_outputs(&r, &f, masks, labels);
    json_decref(nodes);
    return r;
}
