/* facts.h: what a loader tells the monitor at each tick: how full its queues are, how long its stages take.
 *
 * A worker takes a sample through reading, decoding and augmenting in one go, mostly fused.  So the samples that wait
 * for a worker are the queue of `fetch`, and `decode` is the time of all that is not reading; `augment` has no queue
 * and no time of its own.
 */
#ifndef DR_EXEC_FACTS_H
#define DR_EXEC_FACTS_H

#include <drapps/sched.h>

#include "exec/exec.h"
#include "monitor/pipeline_facts.h"

typedef struct dr__facts {
    dr__exec *exec;
    bool begun; /* `before` is one tick old */
    double before[DR_N_FLOWS];
    double finish_before; /* s */
    uint64_t before_ns;
    dr__pipeline_facts last; /* times: what was measured last stays until something else is */
} dr__facts;

void dr__facts_init(dr__facts *facts, dr__exec *e);

/* A dr__pipeline_fn; user: a dr__facts, used by one thread at a time. */
void dr__facts_fill(void *user, dr__pipeline_facts *out);

#endif
