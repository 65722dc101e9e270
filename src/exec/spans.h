/* spans.h: spans of a loader's workers and consumers in its trace.  Without a trace these calls do nothing. */
#ifndef DR_EXEC_SPANS_H
#define DR_EXEC_SPANS_H

#include <jansson.h>

#include "exec/lanes.h"
#include "trace/event.h"

struct dr__exec;

/* What a consumer did between two calls. */
typedef struct dr__consumer_times {
    pthread_t thread;
    uint64_t asked_ns;    /* when it began to wait; 0: it does not wait */
    uint64_t received_ns; /* when it received a batch, if it has not asked for another since; else 0 */
    uint64_t batch;
} dr__consumer_times;

/* Writes READ and WORK of a sample that is in its slot. */
void dr__spans_sample(struct dr__exec *e, const dr__workbench *bench, const dr__job *j, uint64_t bytes);

/* Writes FINISH and BATCH of a finished batch.
 *
 * @param finish_ns  when finishing began.
 * @param by         the worker that finished it; 0: a consumer. */
void dr__spans_batch(struct dr__exec *e, const dr_batch *b, uint64_t finish_ns, int by);

/* Writes WAIT of a call of dr_loader_next that began at start_ns, and the STEP before it.  Not under the pool lock.
 *
 * @param b  the batch, if status is DR_OK. */
void dr__spans_next(struct dr__exec *e, dr_status status, const dr_batch *b, uint64_t start_ns);

/* Writes an event with the members of `row`: a sample was skipped or replaced. */
void dr__spans_bad(struct dr__exec *e, json_t *row);

#endif
