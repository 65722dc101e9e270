/* graph.h: what is done with a sample: a graph of ops over named fields.
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
 * Nothing is checked against data until the graph meets a data set in dr_loader_open or dr_graph_explain.
 * A graph belongs to one thread while it is built; a loader copies it.
 */
#ifndef DRAPPS_GRAPH_H
#define DRAPPS_GRAPH_H

#include <drapps/data.h>
#include <drapps/dataset.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dr_graph dr_graph;

DR_API dr_status dr_graph_new(dr_graph **out, dr_error *err);
DR_API void dr_graph_free(dr_graph **graph);

/* Adds a node at the end.  params: JSON object of the op's settings (NULL or "": defaults).  fields: names separated
 * by commas, drawn together.  NULL: all fields of the kinds that the op knows, so that masks, boxes and key points
 * follow their image, label volumes their volume; "image" where outputs are given, or for ops that know no kinds
 * (decode).  outputs: as many names (NULL: each field in place).  The node gets the
 * next free id, which keys its randomness. */
DR_API dr_status dr_graph_add(dr_graph *graph, const char *op, const char *params, const char *fields,
                              const char *outputs, dr_error *err);

/* The canonical JSON form (RFC 8785, defaults omitted, each op with its version and id): equal graphs have equal text.
 * The text belongs to the graph and is valid until it changes or is freed. */
DR_API dr_status dr_graph_json(dr_graph *graph, const char **text, dr_error *err);
DR_API dr_status dr_graph_from_json(const char *text, dr_graph **out, dr_error *err);

/* Checks the graph against a data set: types, shapes, field names.  Writes what would run, with shapes after each op
 * and which ops are fused, into *text (to be freed by dr_text_free). */
DR_API dr_status dr_graph_explain(dr_graph *graph, const dr_dataset *set, char **text, dr_error *err);

/* Tables as JSON, for front ends: every op with its parameters, codec, format.  Static text. */
DR_API const char *dr_ops_json(void);
DR_API const char *dr_codecs_json(void);
DR_API const char *dr_formats_json(void);

DR_API void dr_text_free(char **text);

#ifdef __cplusplus
}
#endif
#endif
