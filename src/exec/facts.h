/* facts.h: what a loader reports to the monitor at each tick: how full its queues are and how long its stages take.
 *
 * A worker reads, decodes and augments a sample in one go, mostly fused.  So the queue of `fetch` holds the samples
 * that wait for a worker, `decode` is the time of everything but reading, and `augment` has no queue and no time.
 */
#ifndef DR_EXEC_FACTS_H
#define DR_EXEC_FACTS_H

#include <drapps/sched.h>

#include "exec/exec.h"
#include "monitor/pipeline_facts.h"

typedef struct dr__facts {
    dr__exec *exec;
    bool begun; /* `before` has been filled */
    double before[DR_N_FLOWS];
    double finish_before; /* s */
    uint64_t before_ns;
    dr__pipeline_facts last; /* times keep their last value until a newer one is measured */
} dr__facts;

void dr__facts_init(dr__facts *facts, dr__exec *e);

/* A dr__pipeline_fn; user: a dr__facts, used by one thread at a time. */
void dr__facts_fill(void *user, dr__pipeline_facts *out);

#endif
