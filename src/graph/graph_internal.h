/* graph_internal.h: the struct of a graph: nodes over named fields, as the user has added them. */
#ifndef DR_GRAPH_GRAPH_INTERNAL_H
#define DR_GRAPH_GRAPH_INTERNAL_H

#include <jansson.h>

#include <drapps/graph.h>

#include "op/op.h"

enum { DR__NODE_FIELDS = 8, DR__NAME = 64, DR__MAX_NODES = 256 };

typedef struct dr__node {
    uint32_t id; /* keys the node's random draws; kept when a graph is copied or split */
    dr__op op;
    int n_fields; /* 0: no field is named; the op acts on all fields of its kinds (dr__op_kinds) */
    bool found;   /* the program found the fields by their kinds */
    char in[DR__NODE_FIELDS][DR__NAME];
    char out[DR__NODE_FIELDS][DR__NAME];
} dr__node;

struct dr_graph {
    int n_nodes;
    dr__node nodes[DR__MAX_NODES];
    uint32_t next_id;
    char *json; /* canonical text, made on demand; NULL: stale */
};

/* The fields that an op acts on if none is named and none is of a kind that it knows. */
const char *dr__default_fields(const dr_op_def *def);

/* A deep copy. */
dr_status dr__graph_copy(dr_graph *graph, dr_graph **out, dr_error *err);

/* The canonical text that identifies a program's graph in saved states and in the keys of stored samples.  It names
 * all fields but default fields.  Owned by the caller (dr__free).  NULL: out of memory. */
char *dr__graph_identity(const dr_graph *graph);

/* The canonical text (RFC 8785) of a JSON value; owned by the caller (dr__free).  NULL: out of memory. */
char *dr__canonical(const json_t *value);

#endif
