/* graph_internal.h: nodes over named fields, as the user built them. */
#ifndef DR_GRAPH_GRAPH_INTERNAL_H
#define DR_GRAPH_GRAPH_INTERNAL_H

#include <jansson.h>

#include <drapps/graph.h>

#include "op/op.h"

enum { DR__NODE_FIELDS = 8, DR__NAME = 64, DR__MAX_NODES = 256 };

typedef struct dr__node {
    uint32_t id; /* keys the node's randomness; stays with it through every rewriting */
    dr__op op;
    int n_fields; /* 0: none are named, the op acts on the fields of the kinds it knows (dr__op_kinds) */
    bool found;   /* a program found its fields, by their kinds */
    char in[DR__NODE_FIELDS][DR__NAME];
    char out[DR__NODE_FIELDS][DR__NAME];
} dr__node;

struct dr_graph {
    int n_nodes;
    dr__node nodes[DR__MAX_NODES];
    uint32_t next_id;
    char *json; /* canonical text, made when asked for; NULL: stale */
};

/* What an op acts on where no fields are named and there is none of a kind it knows. */
const char *dr__standard_fields(const dr_op_def *def);

/* A deep copy. */
dr_status dr__graph_copy(dr_graph *graph, dr_graph **out, dr_error *err);

/* The canonical text of a graph whose fields are all named (a program's): what stands for it in saved states and keys
 * of stored data.  A node on what was the only field before there were kinds ("image") does not name it.  Owned by the
 * caller (dr__free).  NULL: out of memory. */
char *dr__graph_identity(const dr_graph *graph);

/* Canonical text (RFC 8785) of a JSON value; owned by the caller (dr__free).  NULL: out of memory. */
char *dr__canonical(const json_t *value);

#endif
