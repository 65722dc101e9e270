/* chain.h: ops one after the other on one field: what random_apply, random_choice and random_order hold.
 *
 * The pars of the ops stand one after the other in the order of the list.  Each op draws from a stream of its own,
 * numbered by its place in the list, and sees the shape that the ops before it left.  Results in between live in the
 * scratch, in two buffers that take turns.
 */
#ifndef DR_OP_CHAIN_H
#define DR_OP_CHAIN_H

#include "op/op.h"

typedef struct dr__chain {
    const dr__op *ops;
    int n;
    const int64_t *order; /* places in ops, as they run; NULL: as listed */
} dr__chain;

size_t dr__chain_par_bytes(const dr__chain *chain);

/* As the callbacks of dr_op_def.  `par` has dr__chain_par_bytes bytes, zeroed before draw; NULL in plan while the graph
 * is built.  plan fills all of out. */
dr_status dr__chain_draw(const dr__chain *chain, dr_rng *rng, const dr_desc *in, void *par, dr_error *err);
dr_status dr__chain_plan(const dr__chain *chain, const void *par, const dr_desc *in, dr_plan *out, dr_error *err);
double dr__chain_cost(const dr__chain *chain, const void *par, const dr_desc *in);
dr_status dr__chain_run(const dr__chain *chain, dr_task *task, const void *par, const dr_view *in, dr_view *out);

/* [{"op": name, ... what it drew}, ...] as they run; owned by the caller. NULL: out of memory. */
struct json_t *dr__chain_draws(const dr__chain *chain, const void *par);

/* For the graph's build: what is certain of an output that is either a or b.  Extents may differ, and are then unknown;
 * anything else is an error that names `op`. */
dr_status dr__chain_either(const dr_desc *a, const dr_desc *b, const char *op, dr_desc *out, dr_error *err);

#endif
