/* planes.h: an op's plan, cost and run, with masks of objects treated plane by plane.
 *
 * An op that moves a mask need not know that there are n x height x width of them (DR_KIND_MASKS): it sees one after
 * the other.  Whoever calls an op calls it by these.
 */
#ifndef DR_OP_PLANES_H
#define DR_OP_PLANES_H

#include "op/op.h"

dr_status dr__op_plan(const dr__op *op, const void *par, const dr_desc *in, dr_plan *out, dr_error *err);
dr_status dr__op_run(const dr__op *op, dr_task *task, const void *par, const dr_view *in, dr_view *out);

/* What the op says, or else the bytes of `out`, its planned result. */
double dr__op_cost(const dr__op *op, const void *par, const dr_desc *in, const dr_desc *out);

#endif
