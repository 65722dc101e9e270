/* random_graph.h: graphs drawn from the op table, with settings drawn from the tables of their parameters. */
#ifndef DR_TESTS_RANDOM_GRAPH_H
#define DR_TESTS_RANDOM_GRAPH_H

#include <drapps/graph.h>

/* The test's own generator: x is its state. */
uint64_t dice(uint64_t *x, uint64_t below);

typedef struct random_graph {
    dr_graph *graph;
    char outputs[256]; /* every field that is left at the end */
    char collate[256]; /* all images as lists */
} random_graph;

/* A graph that compiles against the set; it has up to n_ops ops on the set's images and masks.  used[i] is raised where
 * row i of the op table was taken. */
random_graph random_graph_of(dr_dataset *set, int n_ops, uint64_t *x, unsigned *used);

#endif
