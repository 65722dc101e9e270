/* graph.h: graphs of ops over named fields, which say what is done with each sample.
 *
 * A graph is built node by node, or from its JSON.  Each node runs one op on one or more fields:
 *
 *   dr_graph *g = NULL;
 *   dr_graph_new(&g, &err);
 *   dr_graph_add(g, "decode", "{}", NULL, NULL, &err);                        // field "image", in place
 *   dr_graph_add(g, "random_resized_crop", "{\"size\":224}", "image", "a", &err); // two views of one image:
 *   dr_graph_add(g, "random_resized_crop", "{\"size\":224}", "image", "b", &err); // two nodes, two draws
 *   dr_graph_add(g, "random_horizontal_flip", "{}", "image,mask", NULL, &err);    // one draw for both fields
 *
 * Nothing is checked against data until the graph meets a data set in dr_loader_open or dr_graph_explain.  One thread
 * at a time may use a graph.  A loader copies it.
 */
#ifndef DRAPPS_GRAPH_H
#define DRAPPS_GRAPH_H

#include <drapps/data.h>
#include <drapps/dataset.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dr_graph dr_graph;

/**
 * Make an empty graph.
 *
 * @param out The graph, which the caller frees by dr_graph_free.
 * @param err The reason of a failure.  May be NULL.
 *
 * @return DR_OK or DR_ERR_NOMEM.
 */
DR_API dr_status dr_graph_new(dr_graph **out, dr_error *err);

/**
 * Free a graph.
 *
 * @param graph The graph; set to NULL.  A pointer to NULL is allowed.
 */
DR_API void dr_graph_free(dr_graph **graph);

/**
 * Add a node at the end.  It gets the next free id, which keys its randomness.
 *
 * @param graph   The graph.
 * @param op      Name of the op, as in dr_ops_json.
 * @param params  Settings of the op, a JSON object.  NULL or "": all defaults.
 * @param fields  Names of the fields, separated by commas; one draw serves all.  NULL: all fields of the kinds that the
 *                op acts on, so that masks, boxes and key points follow their image, label volumes their volume;
 *                "image" where outputs are given, or for ops that know no kinds (decode).
 * @param outputs As many names for the results.  NULL: each field in place.
 * @param err     The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_NOT_FOUND for an op or setting that does not exist; DR_ERR_ARG for a value that is not allowed;
 *         DR_ERR_LIMIT or DR_ERR_NOMEM.  After a failure the graph is as before.
 */
DR_API dr_status dr_graph_add(dr_graph *graph, const char *op, const char *params, const char *fields,
                              const char *outputs, dr_error *err);

/**
 * Write a graph as canonical JSON (RFC 8785; defaults omitted; each op with its version and id).  Equal graphs have
 * equal texts.
 *
 * @param graph The graph.
 * @param text  Receives the text, which belongs to the graph and is valid until the graph changes or is freed.
 * @param err   The reason of a failure.  May be NULL.
 *
 * @return DR_OK or DR_ERR_NOMEM.
 */
DR_API dr_status dr_graph_json(dr_graph *graph, const char **text, dr_error *err);

/**
 * Make a graph from its JSON.
 *
 * @param text The JSON, as dr_graph_json writes it; need not be canonical.
 * @param out  The graph, which the caller frees by dr_graph_free.
 * @param err  The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_FORMAT where the text is no such JSON; DR_ERR_UNSUPPORTED where an op has another version in
 *         this build; what dr_graph_add returns.
 */
DR_API dr_status dr_graph_from_json(const char *text, dr_graph **out, dr_error *err);

/**
 * Check a graph against a data set (types, shapes, names of fields) and describe what would run: the shape after each
 * op, and which ops are fused.
 *
 * @param graph The graph.
 * @param set   The data set.
 * @param text  Receives the description, which the caller frees by dr_text_free.
 * @param err   The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_NOT_FOUND for a field that does not exist; DR_ERR_ARG where an op cannot take its field;
 *         DR_ERR_LIMIT or DR_ERR_NOMEM.
 */
DR_API dr_status dr_graph_explain(dr_graph *graph, const dr_dataset *set, char **text, dr_error *err);

/**
 * List the edges of a graph at which samples could be stored: before the first node, and after each.
 *
 * @param graph The graph.
 * @param set   The data set.
 * @param text  Receives a JSON array of n + 1 objects for n nodes, which the caller frees by dr_text_free: "nodes", how
 *              many nodes are before the edge; "after", the op of the last of these; "why", why samples must not be
 *              stored there ("": they may); "fields", what would be stored of a sample: the "name" and "form" of each
 *              field, and its "bytes" where all samples have the same number.
 * @param err   The reason of a failure.  May be NULL.
 *
 * @return What dr_graph_explain returns.
 */
DR_API dr_status dr_graph_cuts(dr_graph *graph, const dr_dataset *set, char **text, dr_error *err);

/**
 * List every op, as JSON for front ends: name, version, parameters, what it draws, the kinds it acts on.
 *
 * @return A static text.
 *
 * @note May be called from any thread.
 */
DR_API const char *dr_ops_json(void);

/**
 * List every codec of this build, as JSON: name, kind ("image", "volume", "audio", "bytes"), library, file name
 * extensions.
 *
 * @return A static text.
 *
 * @note May be called from any thread.
 */
DR_API const char *dr_codecs_json(void);

/**
 * List every format, as JSON: name and the paths that it opens.
 *
 * @return A static text.
 *
 * @note May be called from any thread.
 */
DR_API const char *dr_formats_json(void);

/**
 * Free a text that a call of libdrapps handed out to be freed.
 *
 * @param text The text; set to NULL.  A pointer to NULL is allowed.
 */
DR_API void dr_text_free(char **text);

#ifdef __cplusplus
}
#endif
#endif
