/* cuts.c: the edges of a graph, at which what the nodes before them make could be stored, as JSON.
 *
 * An edge is legal while every node before it draws nothing, gives the same bytes on every machine and works on single
 * samples.  So the first node that does not ends them, and gives the reason for all later edges.
 */
#include <stdio.h>

#include <drapps/store.h>

#include "graph/prefix.h"

/* Why no edge after this op is legal; NULL: it hinders none. */
static const char *why_op_ends(const dr_op_def *def)
{
    if (def->flags & DR_OP_RANDOM)
        return "draws at random";
    if (def->flags & DR_OP_INEXACT)
        return "may give other bytes on another machine";
    return def->flags & DR_OP_BATCH ? "works on whole batches" : NULL;
}

/* Why this one edge is not legal, though an earlier or later one may be; "": it is. */
static const char *why_edge_not(const dr__program *p, int cut, int n_fields, int n_made)
{
    if (dr__prefix_parts_scaled_decode(p, cut))
        return "a decode at a fraction of the size depends on the op that follows";
    if (n_fields > DR_STORE_FIELDS)
        return "more fields than a stored sample can have";
    return cut && !n_made ? "nothing that is made before it is used after it" : "";
}

static json_t *field_json(const dr__field *field)
{
    char text[128];
    size_t bytes = 0;
    json_t *o = json_pack("{s:s, s:s}", "name", field->name, "form", dr__desc_text_of(&field->desc, text, sizeof text));
    if (dr__desc_bytes_dense(&field->desc, &bytes)) /* else it depends on the sample */
        json_object_set_new(o, "bytes", json_integer((json_int_t)bytes));
    return o;
}

static json_t *edge_json(const dr__program *p, int cut, const char *why)
{
    dr__field fields[DR_STORE_FIELDS];
    int n_made, n = dr__prefix_fields(p, cut, fields, &n_made);
    json_t *list = json_array();
    for (int i = 0; i < n && i < DR_STORE_FIELDS; i++)
        json_array_append_new(list, field_json(&fields[i]));
    const dr_op_def *last = cut ? p->graph->nodes[cut - 1].op.def : NULL;
    return json_pack("{s:i, s:s, s:s, s:o}", "nodes", cut, "after", last ? last->name : "", "why",
                     *why ? why : why_edge_not(p, cut, n, n_made), "fields", list);
}

static json_t *edges_json(const dr__program *p)
{
    json_t *edges = json_array();
    char why[160] = "";
    for (int cut = 0; cut <= p->graph->n_nodes; cut++) {
        const dr_op_def *def = cut ? p->graph->nodes[cut - 1].op.def : NULL;
        if (def && !*why && why_op_ends(def))
            snprintf(why, sizeof why, "%s %s", def->name, why_op_ends(def));
        json_array_append_new(edges, edge_json(p, cut, why));
    }
    return edges;
}

dr_status dr_graph_cuts(dr_graph *graph, const dr_dataset *set, char **text, dr_error *err)
{
    dr__program_options options = { .part = true, .any_shape = true };
    dr__program *program = NULL;
    DR_TRY(dr__program_compile(graph, set->fields, set->n_fields, &options, &program, err));
    json_t *edges = edges_json(program);
    *text = edges ? dr__canonical(edges) : NULL;
    json_decref(edges);
    dr__program_free(&program);
    return *text ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "cuts: out of memory");
}
