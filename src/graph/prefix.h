/* prefix.h: splits a program in two: a deterministic first part, whose results can be stored, and the rest.
 *
 * By itself, the first part is the longest run of nodes at the start of the graph that draw nothing and give the same
 * bytes on every machine.  Ops at its end that are one look-up in a table (type, normalisation) go to the second part:
 * they cost little there, and would make the stored samples four times as large.
 */
#ifndef DR_GRAPH_PREFIX_H
#define DR_GRAPH_PREFIX_H

#include <drapps/store.h>

#include "graph/program.h"

typedef struct dr__prefix {
    dr__program *head; /* the first part; makes the stored fields; NULL: nothing is worth storing */
    dr__program *rest; /* the second part; from these fields to the outputs of the whole program */
    char *json;        /* canonical text of the first part's graph */
    char why[160];     /* the reason why there is no head */
} dr__prefix;

/* Splits a program.
 *
 * @param fields, options  those that `whole` was compiled with.
 * @param at  the number of a node, or the name of its op.  Its output is stored, with the outputs of all branches
 *            before it; where nodes before it draw, the first part is that node and those it depends on.  NULL: as
 *            above.
 * @return DR_OK, also if `at` is NULL and there is nothing to store; DR_ERR_ARG: nothing can be stored at `at`;
 *         DR_ERR_NOMEM. */
dr_status dr__prefix_split(const dr__program *whole, const dr__field *fields, int n_fields,
                           const dr__program_options *options, const char *at, dr__prefix *out, dr_error *err);

/* Splits a program behind its first `n_nodes` nodes; -1: as above.  No node before it may be random or inexact. */
dr_status dr__prefix_cut(const dr__program *whole, const dr__field *fields, int n_fields, int n_nodes,
                         const dr__program_options *options, dr__prefix *out, dr_error *err);
void dr__prefix_free(dr__prefix *prefix);

/* Splits a program behind its first `n_nodes` nodes, to run the first part on another machine.
 *
 * Nodes before the cut may be random: what they draw depends on seed, epoch, sample, occurrence and node id alone, and
 * the nodes of both parts keep their ids.  So head and rest together make the bytes of the whole, wherever each runs.
 * Which values cross the cut depends on the outputs of `whole`: both machines must compile it with the same fields,
 * graph and option `outputs`.
 *
 * @param n_nodes  0: nothing runs elsewhere, and nothing is made (out->head is NULL).
 * @return DR_OK; DR_ERR_UNSUPPORTED: a node before the cut works on whole batches or is not exact between machines, a
 *         decode at a fraction of the size would be parted from its reader, or nothing that is made crosses the cut;
 *         DR_ERR_ARG: there are not so many nodes; DR_ERR_NOMEM. */
dr_status dr__prefix_offload(const dr__program *whole, const dr__field *fields, int n_fields, int n_nodes,
                             const dr__program_options *options, dr__prefix *out, dr_error *err);

/* The most nodes that may run on another machine.  Fewer may still be refused: see above. */
int dr__prefix_offload_most(const dr__program *whole);

/* Whether a record has the fields that a program begins with.  One that came from another machine may not. */
bool dr__prefix_fits(const dr__program *program, const dr__record *record);

/* Whether a split behind `n_nodes` nodes separates a decode at a fraction of the size from the op that it looks at. */
bool dr__prefix_parts_scaled_decode(const dr__program *p, int n_nodes);

/* Finds the values that cross a split behind the first `n_nodes` nodes, as fields of the second part.
 *
 * @param n_made  receives how many of them the first part makes.
 * @return their number; no more than DR_STORE_FIELDS are noted. */
int dr__prefix_fields(const dr__program *p, int n_nodes, dr__field fields[DR_STORE_FIELDS], int *n_made);

/* Describes what is stored: "decode, resize -> image uint8 HWC (?, ?, 3), label int64 ()".  Returns text. */
const char *dr__prefix_explain(const dr__prefix *prefix, char *text, size_t size);

#endif
