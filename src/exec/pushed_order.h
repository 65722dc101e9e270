/* pushed_order.h: batches that the caller pushes, with the ids of their samples.
 *
 * Pushed batches wait in a queue until all their samples are claimed.  A sample that is pushed again in an epoch has
 * the next occurrence, so that its draws differ.
 */
#ifndef DR_EXEC_PUSHED_ORDER_H
#define DR_EXEC_PUSHED_ORDER_H

#include <stdbool.h>

#include "base/error.h"
#include "format/dataset_internal.h"

/* One pushed batch. */
typedef struct dr__push {
    struct dr__push *next;
    int refs;          /* one of the queue, and one of each claim; pool lock */
    uint64_t first;    /* index of its first sample among those pushed in this run */
    uint64_t position; /* position of its first sample in the epoch, skipped ones included */
    uint64_t number;   /* of the batch in the epoch */
    uint64_t n;
    dr__sample_ref samples[];
} dr__push;

/* How often each id was pushed: a bit for the first time, and a table of repeated ids. */
typedef struct dr__occurrences {
    uint8_t *seen;
    struct dr__repeat {
        uint64_t id;
        uint32_t n; /* 0: a free row */
    } * repeats;
    size_t cap, used; /* rows */
} dr__occurrences;

typedef struct dr__pushed {
    dr__occurrences times;  /* loader's lock */
    dr__push *head, **tail; /* batches with unclaimed samples; pool lock, as below */
    uint64_t positions;     /* samples pushed or skipped in the epoch */
    uint64_t numbers;       /* batches pushed or skipped in the epoch */
} dr__pushed;

/* Starts a new count of ids below n_ids. */
dr_status dr__occurrences_begin(dr__occurrences *times, uint64_t n_ids, dr_error *err);
void dr__occurrences_free(dr__occurrences *times);

/* Reserves rows, so that the next n calls of dr__occurrences_count cannot fail. */
dr_status dr__occurrences_reserve(dr__occurrences *times, uint64_t n, dr_error *err);

/* Counts an id and returns how often it was counted before. */
uint32_t dr__occurrences_count(dr__occurrences *times, uint64_t id);

struct dr__exec;

/* The calls behind dr_loader_start, dr_loader_push_occurrences, dr_loader_push_past and dr_loader_push_end.  The
 * loader's lock is held, the pool lock is not. */
dr_status dr__pushed_begin(struct dr__exec *e, dr_error *err);
dr_status dr__pushed_push(struct dr__exec *e, const uint64_t *ids, const uint64_t *times, uint64_t n, dr_error *err);
dr_status dr__pushed_skip(struct dr__exec *e, const uint64_t *ids, uint64_t n, uint64_t batches, dr_error *err);
dr_status dr__pushed_end(struct dr__exec *e, dr_error *err);

/* pool lock: claims the next n samples of the first batch in the queue; returns a reference for the claim. */
dr__push *dr__pushed_claim(dr__pushed *given, uint64_t first, uint64_t n);

/* pool lock: a batch of n_slots was delivered; updates the size of the largest batch that is in flight. */
void dr__pushed_delivered(struct dr__exec *e, uint64_t n_slots);

/* pool lock */
void dr__push_unref(dr__push **push);
void dr__pushed_clear(dr__pushed *given);

#endif
