/* spans.c: writes the spans of a loader's samples, batches and consumers. */
#include "exec/spans.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "exec/exec.h"

/* Copies the end of the key: file names differ, folders mostly do not. */
static void copy_key(const dr__exec *e, uint64_t id, char out[64])
{
    char key[512];
    e->set->def->key(e->set, id, key, sizeof key);
    const size_t n = strlen(key), skip = n > 63 ? n - 63 : 0;
    memcpy(out, key + skip, n - skip + 1);
}

void dr__spans_sample(dr__exec *e, const dr__workbench *bench, const dr__job *j, uint64_t bytes)
{
    if (!e->trace || !dr__trace_wants_span(e->trace, DR_SPAN_WORK, j->read_ns + j->run_ns, 2))
        return;
    dr_span s = { .kind = DR_SPAN_READ,
                  .thread = j->reader,
                  .begin_ns = j->read_at_ns,
                  .end_ns = j->read_at_ns + j->read_ns,
                  .epoch = e->order.epoch,
                  .batch = j->batch->number,
                  .slot = j->slot,
                  .position = j->position,
                  .id = j->ref.id,
                  .bytes = bytes,
                  .cost = (float)bench->cost,
                  .slow = j->slow };
    copy_key(e, j->ref.id, s.key);
    dr__trace_put_span(e->trace, &s);
    s.kind = DR_SPAN_WORK;
    s.thread = bench->worker;
    s.begin_ns = j->since_ns;
    s.end_ns = j->since_ns + j->run_ns;
    s.cpu_ns = j->cpu_ns;
    dr__trace_put_span(e->trace, &s);
}

static void put(dr__exec *e, const dr_batch *b, int kind, int thread, uint64_t begin_ns, uint64_t end_ns)
{
    const dr_span s = { .kind = kind,
                        .thread = thread,
                        .begin_ns = begin_ns,
                        .end_ns = end_ns,
                        .epoch = b->epoch,
                        .batch = b->number,
                        .slot = b->n_samples,
                        .bytes = b->n_samples * e->budget.sample_bytes + atomic_load(&b->item_bytes) };
    dr_trace_span(e->trace, &s);
}

void dr__spans_batch(dr__exec *e, const dr_batch *b, uint64_t finish_ns, int by)
{
    if (!e->trace)
        return;
    const uint64_t now = dr__now_ns();
    put(e, b, DR_SPAN_FINISH, by, finish_ns, now);
    put(e, b, DR_SPAN_BATCH, by, b->opened_ns, now);
}

/* pool lock: returns the consumer's times before this call and stores those after it.  With several consumers only the
 * last caller is followed: steps of others are omitted, never ascribed to the wrong thread. */
static dr__consumer_times advance_times(dr__exec *e, dr_status status, const dr_batch *b, uint64_t start_ns,
                                        uint64_t now)
{
    dr__consumer_times before = e->consumers.times;
    if (!pthread_equal(before.thread, pthread_self()))
        before = (dr__consumer_times){ 0 };
    before.asked_ns = before.asked_ns ? before.asked_ns : start_ns;
    e->consumers.times = (dr__consumer_times){ .thread = pthread_self() };
    if (status == DR_OK) {
        e->consumers.times.received_ns = now;
        e->consumers.times.batch = b->number;
    } else if (status == DR_AGAIN) {
        e->consumers.times.asked_ns = before.asked_ns;
    }
    return before;
}

void dr__spans_next(dr__exec *e, dr_status status, const dr_batch *b, uint64_t start_ns)
{
    if (!e->trace)
        return;
    const uint64_t now = dr__now_ns();
    dr__pool_lock();
    const dr__consumer_times before = advance_times(e, status, b, start_ns, now);
    const uint64_t epoch = e->order.epoch;
    dr__pool_unlock();
    if (before.received_ns) {
        const dr_span step = { .kind = DR_SPAN_STEP,
                               .begin_ns = before.received_ns,
                               .end_ns = start_ns,
                               .epoch = epoch,
                               .batch = before.batch };
        dr_trace_span(e->trace, &step);
    }
    if (status == DR_OK)
        put(e, b, DR_SPAN_WAIT, 0, before.asked_ns, now);
}

void dr__spans_bad(dr__exec *e, json_t *row)
{
    json_t *event = e->trace ? json_pack("{s:s, s:I}", "event", "bad", "epoch", (json_int_t)e->order.epoch) : NULL;
    if (!event)
        return;
    json_object_update(event, row);
    char *text = json_dumps(event, JSON_COMPACT);
    if (text)
        dr_trace_text(e->trace, dr__now_ns(), text);
    free(text);
    json_decref(event);
}
