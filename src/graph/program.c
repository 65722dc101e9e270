/* program.c: compiles a graph and the fields of a data set into numbered values and steps. */
#include "graph/program.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "op/batch.h"
#include "op/planes.h"

int dr__program_find_value(const dr__program *p, const char *name)
{
    for (int v = p->n_values - 1; v >= 0; v--)
        if (!strcmp(p->names[v], name))
            return v;
    return -1;
}

static dr_status fail_no_field(const dr__program *p, const char *who, const char *name, dr_error *err)
{
    char known[256] = "";
    size_t n = 0;
    for (int v = 0; v < p->n_values && n < sizeof known; v++)
        if (dr__program_find_value(p, p->names[v]) == v)
            n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "", p->names[v]);
    return dr__fail(err, DR_ERR_NOT_FOUND, "%s: no field \"%s\"; there are %s", who, name, known);
}

static dr_status new_value(dr__program *p, const char *name, const dr_desc *desc, int *value, dr_error *err)
{
    if (p->n_values == DR__MAX_VALUES)
        return dr__fail(err, DR_ERR_LIMIT, "graph: more than %d intermediate results", DR__MAX_VALUES);
    *value = p->n_values++;
    snprintf(p->names[*value], DR__NAME, "%s", name);
    p->values[*value] = *desc;
    return DR_OK;
}

/* The data set's field that an early step on this value starts from; -1: the value is not available early. */
static int early_root(const dr__program *p, int value)
{
    dr_kind kind = p->values[value].kind;
    const unsigned early = DR__KIND(ARRAY) | DR__KIND(BOXES) | DR__KIND(KEYPOINTS) | DR__KIND(LABELS);
    if (value < p->n_inputs)
        return early >> kind & 1 ? value : -1;
    for (int s = 0; s < p->n_steps; s++)
        if (p->steps[s].out == value)
            return p->steps[s].early ? p->steps[s].root : -1;
    return -1;
}

static bool passes_through(const dr__program *p, const dr__node *node, int field, int in)
{
    return node->op.def->passes && node->op.def->passes(&p->values[in]) && !strcmp(node->in[field], node->out[field]);
}

static dr_status add_step(dr__program *p, int node_index, int field, dr_error *err)
{
    const dr__node *node = &p->graph->nodes[node_index];
    const dr_op_def *def = node->op.def;
    int in = p->node_in[node_index][field];
    if (p->n_steps == DR__MAX_STEPS)
        return dr__fail(err, DR_ERR_LIMIT, "graph: more than %d steps", DR__MAX_STEPS);
    dr_plan plan = { 0 };
    if (dr__op_plan(&node->op, NULL, &p->values[in], &plan, err) != DR_OK)
        return dr__error_prefix(err, "field \"%s\"", node->in[field]);
    dr__step *step = &p->steps[p->n_steps++];
    *step = (dr__step){ .node = node_index, .field = field, .in = in, .tail = -1 };
    step->first = p->n_steps < 2 || step[-1].node != node_index;
    step->root = def->flags & DR_OP_EARLY ? early_root(p, in) : -1;
    step->early = step->root >= 0;
    return new_value(p, node->out[field], &plan.desc, &step->out, err);
}

static dr_status find_inputs(dr__program *p, int node_index, dr_error *err)
{
    const dr__node *node = &p->graph->nodes[node_index];
    for (int f = 0; f < node->n_fields; f++) {
        p->node_in[node_index][f] = dr__program_find_value(p, node->in[f]);
        if (p->node_in[node_index][f] < 0)
            return fail_no_field(p, node->op.def->name, node->in[f], err);
    }
    return DR_OK;
}

static dr_status add_nodes(dr__program *p, dr_error *err)
{
    for (int i = 0; i < p->graph->n_nodes; i++) {
        const dr__node *node = &p->graph->nodes[i];
        if (node->op.def->flags & DR_OP_BATCH) {
            p->batch_nodes[p->n_batch_nodes++] = i;
            continue;
        }
        if (p->n_batch_nodes)
            return dr__fail(err, DR_ERR_ARG, "%s stands after %s, which works on whole batches and must come last",
                            node->op.def->name, p->graph->nodes[p->batch_nodes[0]].op.def->name);
        p->par_at[i] = p->par_bytes;
        p->par_bytes += dr__op_par_bytes(&node->op);
        DR_TRY(dr__program_name_fields(p, i, err));
        DR_TRY(find_inputs(p, i, err));
        DR_TRY(dr__program_check_fields(p, i, err));
        for (int f = 0; f < node->n_fields; f++) {
            if (passes_through(p, node, f, p->node_in[i][f]))
                continue;
            DR_TRY(add_step(p, i, f, err));
            const bool own = f > 0 && node->op.def->flags & DR_OP_DECODE;
            p->steps[p->n_steps - 1].par_at = own ? p->par_bytes : p->par_at[i];
            p->par_bytes += own ? dr__op_par_bytes(&node->op) : 0;
        }
    }
    return DR_OK;
}

/* The collate rule with that name, or -1. */
static int parse_rule(const char *text, size_t n)
{
    static const char *const rules[] = { "stack", "pad", "ragged", "list" };
    for (int i = 0; i < (int)DR_COUNT(rules); i++)
        if (strlen(rules[i]) == n && !strncmp(text, rules[i], n))
            return i;
    return -1;
}

static int find_output(const dr__program *p, const char *name)
{
    for (int i = 0; i < p->n_outputs; i++)
        if (!strcmp(p->outputs[i].name, name))
            return i;
    return -1;
}

/* Fails unless the rules have the form "field=rule,..." and name existing fields. */
static dr_status check_rules(const dr__program *p, const char *rules, dr_error *err)
{
    for (const char *at = rules; at && *at; at += strcspn(at, ","), at += *at == ',') {
        char name[DR__NAME];
        size_t n = strcspn(at, "=,"), length = strcspn(at, ",");
        if (at[n] != '=' || n >= sizeof name)
            return dr__fail(err, DR_ERR_ARG, "collate must be field=rule,..., got \"%.*s\"", (int)length, at);
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        if (strcmp(name, "*") && dr__program_find_value(p, name) < 0)
            return fail_no_field(p, "collate", name, err);
        if (parse_rule(at + n + 1, length - n - 1) < 0)
            return dr__fail(err, DR_ERR_ARG, "collate: a rule must be stack, pad, ragged or list, got \"%.*s\"",
                            (int)(length - n - 1), at + n + 1);
    }
    return DR_OK;
}

/* Fails on a rule for a field that is not delivered, which would have no effect. */
static dr_status check_rules_delivered(const dr__program *p, const char *rules, dr_error *err)
{
    char names[256] = "";
    size_t n = 0;
    for (int i = 0; i < p->n_outputs && n < sizeof names; i++)
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", i ? ", " : "", p->outputs[i].name);
    for (const char *at = rules; at && *at; at += strcspn(at, ","), at += *at == ',') {
        char name[DR__NAME];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, "="), at);
        if (strcmp(name, "*") && find_output(p, name) < 0)
            return dr__fail(err, DR_ERR_ARG,
                            "collate: field \"%s\" is not delivered, only %s: add it to outputs, or leave its rule out",
                            name, names);
    }
    return DR_OK;
}

/* The rule for a field, from checked rules; -1: none. */
static int rule_for(const char *rules, const char *name)
{
    int rule = -1;
    for (const char *at = rules; at && *at; at += strcspn(at, ","), at += *at == ',') {
        size_t n = strcspn(at, "=");
        if (strlen(name) == n && !strncmp(at, name, n))
            rule = parse_rule(at + n + 1, strcspn(at, ",") - n - 1);
    }
    return rule;
}

/* The rule for a field that no rule names and whose shape depends on the sample.  Boxes and the like become lists. */
static int rule_for_unknown(const dr__program_options *o, dr_kind kind)
{
    const int rule = rule_for(o->collate, "*");
    return rule >= 0 ? rule : o->any_shape || DR__ON_INSTANCES >> kind & 1 ? DR_COLLATE_LIST : DR_COLLATE_STACK;
}

static dr_desc batch_desc(const dr_desc *value, bool planar)
{
    dr_desc d = *value;
    if (d.kind == DR_KIND_IMAGE && d.layout == DR_LAYOUT_HWC && d.n_dims == 3 && planar) {
        d.layout = DR_LAYOUT_CHW;
        d.dims[0] = value->dims[2], d.dims[1] = value->dims[0], d.dims[2] = value->dims[1];
    }
    return d;
}

static dr_status add_output(dr__program *p, const char *name, const dr__program_options *o, dr_error *err)
{
    int value = dr__program_find_value(p, name), rule = rule_for(o->collate, name);
    if (value < 0)
        return fail_no_field(p, "outputs", name, err);
    if (p->n_outputs == DR__MAX_OUTPUTS)
        return dr__fail(err, DR_ERR_LIMIT, "more than %d outputs", DR__MAX_OUTPUTS);
    const dr_desc *desc = &p->values[value];
    bool blob = desc->kind == DR_KIND_BYTES || desc->kind == DR_KIND_TEXT;
    if (rule < 0)
        rule = blob ? DR_COLLATE_LIST : dr__desc_known(desc) ? DR_COLLATE_STACK : rule_for_unknown(o, desc->kind);
    char text[128];
    if (rule == DR_COLLATE_STACK && !dr__desc_known(desc))
        return dr__fail(err, DR_ERR_ARG,
                        "field \"%s\" is %s: samples of different shape cannot be stacked; end with an op that fixes "
                        "the size (%s), or collate %s=list, pad or ragged",
                        name, dr__desc_text_of(desc, text, sizeof text),
                        desc->kind == DR_KIND_VOLUME || desc->kind == DR_KIND_VOLUME_MASK
                            ? "pad_volume and random_balanced_crop"
                            : "random_resized_crop, or resize and center_crop",
                        name);
    dr__output *out = &p->outputs[p->n_outputs++];
    *out = (dr__output){ .value = value, .tail = -1, .collate = (dr_collate)rule };
    snprintf(out->name, DR__NAME, "%s", name);
    out->desc = out->delivered = batch_desc(desc, !o->layout || strcmp(o->layout, "NHWC"));
    return DR_OK;
}

/* Adds the fields that belong to an image: masks, boxes, their labels. */
static dr_status add_followers(dr__program *p, const dr__program_options *o, dr_error *err)
{
    const unsigned kinds = DR__KIND(MASK) | DR__ON_INSTANCES;
    for (int v = 0; v < p->n_values; v++) { /* in the order of the data set's fields */
        const int latest = dr__program_find_value(p, p->names[v]);
        if (kinds >> p->values[latest].kind & 1 && find_output(p, p->names[v]) < 0)
            DR_TRY(add_output(p, p->names[v], o, err));
    }
    return DR_OK;
}

static dr_status add_default_outputs(dr__program *p, const dr__program_options *o, dr_error *err)
{
    if (dr__program_find_value(p, "image") >= 0) {
        DR_TRY(add_output(p, "image", o, err));
        if (dr__program_find_value(p, "label") >= 0)
            DR_TRY(add_output(p, "label", o, err));
        return add_followers(p, o, err);
    }
    for (int v = 0; v < p->n_values; v++)
        if (dr__program_find_value(p, p->names[v]) == v)
            DR_TRY(add_output(p, p->names[v], o, err));
    return DR_OK;
}

static dr_status add_outputs(dr__program *p, const dr__program_options *o, dr_error *err)
{
    if (o->layout && strcmp(o->layout, "NCHW") && strcmp(o->layout, "NHWC"))
        return dr__fail(err, DR_ERR_ARG, "layout must be NCHW or NHWC, got \"%s\"", o->layout);
    DR_TRY(check_rules(p, o->collate, err));
    if (!o->outputs || !*o->outputs)
        DR_TRY(add_default_outputs(p, o, err));
    for (const char *s = o->outputs; s && *s; s += strcspn(s, ","), s += *s == ',') {
        char name[DR__NAME];
        snprintf(name, sizeof name, "%.*s", (int)DR_MIN(strcspn(s, ","), sizeof name - 1), s);
        DR_TRY(add_output(p, name, o, err));
    }
    DR_TRY(check_rules_delivered(p, o->collate, err));
    if (!o->part)
        DR_TRY(dr__program_check_followers(p, NULL, err));
    dr__program_prune(p);
    return DR_OK;
}

/* Checks a batch op, which works in place on stacked outputs, and updates their descriptions. */
static dr_status check_batch_node(dr__program *p, const dr__node *node, dr_error *err)
{
    const dr_op_def *def = node->op.def;
    dr_desc in[DR__BATCH_OP_FIELDS], out[DR__BATCH_OP_FIELDS];
    int at[DR__BATCH_OP_FIELDS];
    size_t scratch;
    if (node->n_fields != def->batch->n_fields)
        return dr__fail(err, DR_ERR_ARG, "%s: fields must be %d names, got %d", def->name, def->batch->n_fields,
                        node->n_fields);
    for (int f = 0; f < node->n_fields; f++) {
        at[f] = find_output(p, node->in[f]);
        if (at[f] < 0 || p->outputs[at[f]].collate != DR_COLLATE_STACK)
            return dr__fail(err, DR_ERR_ARG, "%s: field \"%s\" must be a stacked output of the loader", def->name,
                            node->in[f]);
        if (strcmp(node->in[f], node->out[f]))
            return dr__fail(err, DR_ERR_ARG, "%s: works in place, \"%s\" cannot become \"%s\"", def->name, node->in[f],
                            node->out[f]);
        in[f] = p->outputs[at[f]].delivered;
    }
    DR_TRY(def->batch->plan(node->op.conf, in, out, &scratch, err));
    for (int f = 0; f < node->n_fields; f++)
        p->outputs[at[f]].delivered = out[f];
    return DR_OK;
}

int dr__program_readers(const dr__program *p, int value, int *reader)
{
    int n = 0;
    *reader = -1;
    for (int s = 0; s < p->n_steps; s++)
        if (p->steps[s].in == value) {
            *reader = s;
            n++;
        }
    return n;
}

int dr__program_output_of(const dr__program *p, int value)
{
    for (int i = 0; i < p->n_outputs; i++)
        if (p->outputs[i].value == value)
            return i;
    return -1;
}

static dr_status compile(dr__program *p, dr_graph *graph, const dr__field *fields, int n_fields,
                         const dr__program_options *o, dr_error *err)
{
    DR_TRY(dr__graph_copy(graph, &p->graph, err));
    for (int i = 0; i < n_fields; i++) {
        int value;
        DR_TRY(new_value(p, fields[i].name, &fields[i].desc, &value, err));
    }
    p->n_inputs = n_fields; /* early_root reads it */
    DR_TRY(add_nodes(p, err));
    DR_TRY(add_outputs(p, o, err));
    for (int i = 0; i < p->n_batch_nodes; i++)
        DR_TRY(check_batch_node(p, &p->graph->nodes[p->batch_nodes[i]], err));
    p->fused = !o->reference;
    p->kernels = o->reference ? dr__kernels_c() : dr__kernels_best();
    return p->fused ? dr__program_fuse(p, o->late_store, err) : DR_OK;
}

dr_status dr__program_compile(dr_graph *graph, const dr__field *fields, int n_fields,
                              const dr__program_options *options, dr__program **out, dr_error *err)
{
    *out = dr__alloc_zero(1, sizeof **out);
    if (!*out)
        return dr__fail(err, DR_ERR_NOMEM, "graph: out of memory");
    dr_status status = compile(*out, graph, fields, n_fields, options, err);
    if (status != DR_OK)
        dr__program_free(out);
    return status;
}

void dr__program_free(dr__program **program)
{
    if (!program || !*program)
        return;
    dr_graph_free(&(*program)->graph);
    dr__free((*program)->tails);
    dr__free(*program);
    *program = NULL;
}
