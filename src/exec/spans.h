/* spans.h: what the workers and consumers of a loader write into its trace.  Without a trace, nothing. */
#ifndef DR_EXEC_SPANS_H
#define DR_EXEC_SPANS_H

#include <jansson.h>

#include "exec/lanes.h"
#include "trace/event.h"

struct dr__exec;

/* Where a consumer stands between two calls. */
typedef struct dr__consumer_times {
    pthread_t thread;
    uint64_t asked_ns; /* it waits since then; 0: it does not */
    uint64_t given_ns; /* it got a batch then, and has not asked for another; 0: none */
    uint64_t batch;
} dr__consumer_times;

/* A sample is in its slot: READ and WORK. */
void dr__spans_sample(struct dr__exec *e, const dr__workbench *bench, const dr__job *j, uint64_t bytes);

/* A batch is put together by a worker (0: a consumer), which began at finish_ns: FINISH and BATCH. */
void dr__spans_batch(struct dr__exec *e, const dr_batch *b, uint64_t finish_ns, int by);

/* A consumer asked at start_ns and now has an answer, a batch if that is DR_OK: WAIT, and the STEP before.  Not under
 * the pool lock. */
void dr__spans_next(struct dr__exec *e, dr_status status, const dr_batch *b, uint64_t start_ns);

/* A sample was left out or replaced: an event with the members of `row`. */
void dr__spans_bad(struct dr__exec *e, json_t *row);

#endif
