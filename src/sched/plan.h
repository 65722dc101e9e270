/* plan.h: what a plan of some seconds would bring: parts with a number of workers and a depth each.
 *
 * In a part, workers fill or drain the batches that lie ready (as fluids): while some are there the consumer takes what
 * it wants, and where as many are there as may be, workers make what it takes.  What lies ready in the end is worth
 * what it would cost to make then.
 */
#ifndef DR_SCHED_PLAN_H
#define DR_SCHED_PLAN_H

#include "sched/plant_model.h"

typedef struct dr__plan_part {
    double seconds;
    const dr_weights *weights;
    double workers, room; /* samples that may lie ready */
} dr__plan_part;

/* The reward of a part, in reward times seconds.  fill: samples that lie ready, before and after. */
double dr__plan_part_value(const dr__plant_model *m, const dr__plan_part *part, double margin, double *fill);

/* What a sample that lies ready is worth: the power and CPU time that it takes. */
double dr__plan_sample_cost(const dr__plant_model *m, const dr_weights *weights);

#endif
