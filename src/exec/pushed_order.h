/* pushed_order.h: an order that the caller gives, batch by batch.
 *
 * Pushed batches stand in a queue until all their samples are claimed.  A sample that is pushed again in an epoch has
 * the next occurrence, by which its draws differ.
 */
#ifndef DR_EXEC_PUSHED_ORDER_H
#define DR_EXEC_PUSHED_ORDER_H

#include <stdbool.h>

#include "base/error.h"
#include "format/dataset_internal.h"

/* Some samples that were pushed together. */
typedef struct dr__push {
    struct dr__push *next;
    int refs;          /* the queue's, and one for each claim; pool lock */
    uint64_t first;    /* place of its first sample among all that are to be made */
    uint64_t position; /* and among all that were pushed or passed over */
    uint64_t number;   /* of the batch */
    uint64_t n;
    dr__sample_ref samples[];
} dr__push;

/* How often each id was pushed: a bit for the first time, a table of those that came again. */
typedef struct dr__occurrences {
    uint8_t *seen;
    struct dr__again {
        uint64_t id;
        uint32_t n; /* 0: a free row */
    } * again;
    size_t cap, used; /* rows */
} dr__occurrences;

typedef struct dr__pushed {
    dr__occurrences times;  /* loader's lock */
    dr__push *head, **tail; /* not yet claimed to the end; pool lock, as the rest */
    uint64_t positions;     /* samples pushed or passed over */
    uint64_t numbers;       /* batches, likewise */
} dr__pushed;

/* Begins to count anew; ids are below n_ids. */
dr_status dr__occurrences_begin(dr__occurrences *times, uint64_t n_ids, dr_error *err);
void dr__occurrences_free(dr__occurrences *times);

/* Room for n more, so that dr__occurrences_count cannot fail n times. */
dr_status dr__occurrences_reserve(dr__occurrences *times, uint64_t n, dr_error *err);

/* How often the id was counted before. */
uint32_t dr__occurrences_count(dr__occurrences *times, uint64_t id);

struct dr__exec;

/* Not under the pool lock; the loader's lock is held. */
dr_status dr__pushed_begin(struct dr__exec *e, dr_error *err);
dr_status dr__pushed_push(struct dr__exec *e, const uint64_t *ids, const uint64_t *times, uint64_t n,
                          dr_error *err); /* times: the occurrence of each; NULL: counted */
dr_status dr__pushed_past(struct dr__exec *e, const uint64_t *ids, uint64_t n, uint64_t batches, dr_error *err);
dr_status dr__pushed_end(struct dr__exec *e, dr_error *err);

/* pool lock: the next n samples of the queue's first batch are claimed; the claim's reference to it. */
dr__push *dr__pushed_claim(dr__pushed *given, uint64_t first, uint64_t n);

/* pool lock: a batch of so many slots is delivered; notes how large the largest is of those that are not. */
void dr__pushed_left(struct dr__exec *e, uint64_t n_slots);

/* pool lock */
void dr__push_unref(dr__push **push);
void dr__pushed_clear(dr__pushed *given);

#endif
