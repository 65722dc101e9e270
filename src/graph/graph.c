/* graph.c: builds a graph node by node, and reads and writes its JSON. */
#include "graph/graph_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { GRAPH_VERSION = 1 };

dr_status dr_graph_new(dr_graph **out, dr_error *err)
{
    *out = dr__alloc_zero(1, sizeof **out);
    if (!*out)
        return dr__fail(err, DR_ERR_NOMEM, "graph: out of memory");
    (*out)->next_id = 1;
    return DR_OK;
}

void dr_graph_free(dr_graph **graph)
{
    if (!graph || !*graph)
        return;
    for (int i = 0; i < (*graph)->n_nodes; i++)
        dr__op_close(&(*graph)->nodes[i].op);
    dr__free((*graph)->json);
    dr__free(*graph);
    *graph = NULL;
}

static dr_status set_name(char out[DR__NAME], const char *name, size_t n, const char *op, dr_error *err)
{
    if (!n || n >= DR__NAME || memchr(name, ',', n))
        return dr__fail(err, DR_ERR_ARG, "%s: a field name must have 1 to %d characters, got \"%.*s\"", op,
                        DR__NAME - 1, (int)DR_MIN(n, 80), name);
    memcpy(out, name, n);
    out[n] = 0;
    return DR_OK;
}

/* Splits "a,b" into names; *n: how many. */
static dr_status split_names(const char *text, char names[][DR__NAME], int *n, const char *op, dr_error *err)
{
    *n = 0;
    for (const char *p = text;; p++) {
        size_t length = strcspn(p, ",");
        if (*n == DR__NODE_FIELDS)
            return dr__fail(err, DR_ERR_LIMIT, "%s: fields must be at most %d names, got more", op, DR__NODE_FIELDS);
        DR_TRY(set_name(names[(*n)++], p, length, op, err));
        p += length;
        if (!*p)
            return DR_OK;
    }
}

const char *dr__default_fields(const dr_op_def *def)
{
    return def->reads ? def->reads : def->flags & DR_OP_BATCH ? "image,label" : "image";
}

static dr_status name_fields(dr__node *node, const char *fields, const char *outputs, const char *op, dr_error *err)
{
    int n_out;
    DR_TRY(split_names(fields, node->in, &node->n_fields, op, err));
    DR_TRY(split_names(outputs && *outputs ? outputs : fields, node->out, &n_out, op, err));
    if (n_out != node->n_fields)
        return dr__fail(err, DR_ERR_ARG, "%s: outputs must be as many names as fields (%d), got %d", op, node->n_fields,
                        n_out);
    return DR_OK;
}

static dr_status add_node(dr_graph *graph, const char *op, const json_t *params, const char *fields,
                          const char *outputs, uint32_t id, dr_error *err)
{
    const dr_op_def *def = dr__op_find(op);
    if (!def)
        return dr__fail(err, DR_ERR_NOT_FOUND, "no op \"%s\" (`drapps ops` lists them)", op);
    if (graph->n_nodes == DR__MAX_NODES)
        return dr__fail(err, DR_ERR_LIMIT, "a graph has at most %d nodes", DR__MAX_NODES);
    dr__node *node = &graph->nodes[graph->n_nodes];
    *node = (dr__node){ .id = id };
    const bool named = (fields && *fields) || (outputs && *outputs);
    if (named)
        DR_TRY(name_fields(node, fields && *fields ? fields : dr__default_fields(def), outputs, op, err));
    DR_TRY(dr__op_open(def, params, &node->op, err));
    if (!named && !dr__op_kinds(&node->op))
        DR_TRY(name_fields(node, dr__default_fields(def), def->makes, op, err));
    graph->n_nodes++;
    graph->next_id = DR_MAX(graph->next_id, id + 1);
    dr__free(graph->json);
    graph->json = NULL;
    return DR_OK;
}

dr_status dr_graph_add(dr_graph *graph, const char *op, const char *params, const char *fields, const char *outputs,
                       dr_error *err)
{
    json_t *object = NULL;
    if (params && *params) {
        json_error_t where;
        object = json_loads(params, 0, &where);
        if (!object)
            return dr__fail(err, DR_ERR_ARG, "%s: parameters must be JSON: %s (column %d)", op, where.text,
                            where.column);
    }
    dr_status status = add_node(graph, op, object, fields, outputs, graph->next_id, err);
    json_decref(object);
    return status;
}

static json_t *names_json(const char names[][DR__NAME], int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_string(names[i]));
    return list;
}

static bool is_in_place(const dr__node *node)
{
    for (int i = 0; i < node->n_fields; i++)
        if (strcmp(node->in[i], node->out[i]))
            return false;
    return true;
}

static bool has_default_fields(const dr__node *node)
{
    const char *at = dr__default_fields(node->op.def);
    for (int i = 0; i < node->n_fields; i++) {
        size_t n = strcspn(at, ",");
        if (!n || strlen(node->in[i]) != n || strncmp(node->in[i], at, n))
            return false;
        at += n + (at[n] == ',');
    }
    return !*at;
}

/* standard: write the fields even if they are the op's default fields. */
static json_t *node_json(const dr__node *node, bool standard)
{
    json_t *o = json_pack("{s:s, s:i, s:I}", "op", node->op.def->name, "version", node->op.def->version, "id",
                          (json_int_t)node->id);
    json_t *params = dr__params_write(node->op.def->params, node->op.conf, 0);
    if (params && json_object_size(params))
        json_object_set(o, "params", params);
    json_decref(params);
    if (node->n_fields && (standard || !has_default_fields(node)))
        json_object_set_new(o, "fields", names_json(node->in, node->n_fields));
    if (!is_in_place(node))
        json_object_set_new(o, "outputs", names_json(node->out, node->n_fields));
    return o;
}

static char *canonical_text(const dr_graph *graph, bool identity)
{
    json_t *nodes = json_array();
    for (int i = 0; i < graph->n_nodes; i++) {
        const dr__node *node = &graph->nodes[i];
        json_array_append_new(nodes, node_json(node, !identity && dr__op_kinds(&node->op)));
    }
    json_t *document = json_pack("{s:i, s:o}", "version", GRAPH_VERSION, "nodes", nodes);
    char *text = document ? dr__canonical(document) : NULL;
    json_decref(document);
    return text;
}

char *dr__graph_identity(const dr_graph *graph)
{
    return canonical_text(graph, true);
}

dr_status dr_graph_json(dr_graph *graph, const char **text, dr_error *err)
{
    if (!graph->json)
        graph->json = canonical_text(graph, false);
    if (!graph->json)
        return dr__fail(err, DR_ERR_NOMEM, "graph: out of memory");
    *text = graph->json;
    return DR_OK;
}

static dr_status join_names(const json_t *list, char *out, size_t size, const char *op, dr_error *err)
{
    size_t n = 0;
    out[0] = 0;
    if (list && !json_is_array(list))
        return dr__fail(err, DR_ERR_FORMAT, "%s: fields and outputs must be lists of names", op);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        if (!name || n + strlen(name) + 2 > size)
            return dr__fail(err, DR_ERR_FORMAT, "%s: fields must be a short list of names", op);
        n += (size_t)snprintf(out + n, size - n, "%s%s", i ? "," : "", name);
    }
    return DR_OK;
}

static dr_status read_node(dr_graph *graph, const json_t *o, dr_error *err)
{
    const char *op = json_string_value(json_object_get(o, "op"));
    if (!op)
        return dr__fail(err, DR_ERR_FORMAT, "graph: a node has no \"op\"");
    const dr_op_def *def = dr__op_find(op);
    json_int_t version = json_integer_value(json_object_get(o, "version"));
    if (def && json_object_get(o, "version") && version != def->version)
        return dr__fail(err, DR_ERR_UNSUPPORTED, "%s: graph was made with version %lld of the op, this is %d", op,
                        (long long)version, def->version);
    const json_t *given_id = json_object_get(o, "id");
    if (given_id && !json_is_integer(given_id))
        return dr__fail(err, DR_ERR_FORMAT, "%s: id must be an int", op);
    json_int_t id = json_integer_value(given_id);
    if (id < 0 || id > UINT32_MAX - 1)
        return dr__fail(err, DR_ERR_FORMAT, "%s: id must be 0 to %u, got %lld", op, UINT32_MAX - 1, (long long)id);
    char fields[DR__NODE_FIELDS * DR__NAME], outputs[DR__NODE_FIELDS * DR__NAME];
    DR_TRY(join_names(json_object_get(o, "fields"), fields, sizeof fields, op, err));
    DR_TRY(join_names(json_object_get(o, "outputs"), outputs, sizeof outputs, op, err));
    return add_node(graph, op, json_object_get(o, "params"), fields, outputs, id ? (uint32_t)id : graph->next_id, err);
}

dr_status dr_graph_from_json(const char *text, dr_graph **out, dr_error *err)
{
    json_error_t where;
    json_t *document = json_loads(text, JSON_REJECT_DUPLICATES, &where);
    if (!document)
        return dr__fail(err, DR_ERR_FORMAT, "graph: %s (line %d, column %d)", where.text, where.line, where.column);
    dr_status status = dr_graph_new(out, err);
    json_t *nodes = json_object_get(document, "nodes");
    json_int_t version = json_integer_value(json_object_get(document, "version"));
    if (status == DR_OK && (!json_is_array(nodes) || version != GRAPH_VERSION))
        status = dr__fail(err, DR_ERR_FORMAT, "graph: must be {\"version\": %d, \"nodes\": [...]}", GRAPH_VERSION);
    for (size_t i = 0; status == DR_OK && i < json_array_size(nodes); i++)
        status = read_node(*out, json_array_get(nodes, i), err);
    json_decref(document);
    if (status != DR_OK)
        dr_graph_free(out);
    return status;
}

dr_status dr__graph_copy(dr_graph *graph, dr_graph **out, dr_error *err)
{
    const char *text;
    DR_TRY(dr_graph_json(graph, &text, err));
    return dr_graph_from_json(text, out, err);
}

void dr_text_free(char **text)
{
    if (!text)
        return;
    dr__free(*text);
    *text = NULL;
}
