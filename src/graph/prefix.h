/* prefix.h: cutting a program in two: what is the same in every epoch, and can be kept, and the rest.
 *
 * The first part is the longest run of nodes at the beginning of the graph that draw nothing and give the same bytes on
 * every machine.  Ops at its end that are one look-up in a table (type, normalisation) are left to the rest: there they
 * cost next to nothing, and here they would make of each byte four.
 */
#ifndef DR_GRAPH_PREFIX_H
#define DR_GRAPH_PREFIX_H

#include "graph/program.h"

typedef struct dr__prefix {
    dr__program *head; /* makes the fields that are kept; NULL: there is nothing to keep */
    dr__program *rest; /* from them to the outputs of the whole program */
    char *json;        /* canonical text of the first part */
    char why[160];     /* without head: why */
} dr__prefix;

/* `fields`, `options`: those that `whole` was made with.  Finding nothing to keep is no failure. */
dr_status dr__prefix_split(const dr__program *whole, const dr__field *fields, int n_fields,
                           const dr__program_options *options, dr__prefix *out, dr_error *err);
void dr__prefix_free(dr__prefix *prefix);

/* What is kept, for people: "decode, resize -> image uint8 HWC (?, ?, 3), label int64 ()"; returns text. */
const char *dr__prefix_explain(const dr__prefix *prefix, char *text, size_t size);

#endif
