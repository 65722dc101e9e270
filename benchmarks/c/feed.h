/* feed.h: batches that threads make and a consumer reads: what the bare loop needs to be like a loader at work.
 *
 * The ring holds four batches.  Threads fill it in the order of the samples; when all samples of a batch are made, the
 * consumer's thread reads it, and the others go on meanwhile.
 */
#ifndef DR_BENCH_FEED_H
#define DR_BENCH_FEED_H

#include <pthread.h>
#include <stddef.h>

#include "work.h"

enum { BATCH = 64, BATCHES = 4, RING = BATCH * BATCHES };

struct feed {
    pthread_mutex_t lock;
    pthread_cond_t filled, emptied;
    const float *ring;    /* RING samples */
    size_t samples;       /* of this run */
    size_t made[BATCHES]; /* samples of the batch that lies there; lock */
    size_t n_read;        /* batches; lock */
    size_t samples_read;  /* the consumer's, as what follows */
    uint64_t read_ns;     /* CPU time */
};

void feed_open(struct feed *feed, const float *ring);
void feed_close(struct feed *feed);

/* Before a run; no thread may be in a call. */
void feed_begin(struct feed *feed, size_t samples);

/* Waits until the consumer has read what lies where this sample goes. */
void feed_wait_for_room(struct feed *feed, size_t sample);

/* The sample is in the ring. */
void feed_sample_made(struct feed *feed, size_t sample);

/* The consumer, a thread's function: reads every batch of the run.
 *
 * It adds up one float of each 64-byte line in eight sums, as NumPy does for the consumer of the other measurements
 * (workload.read_batch).  It differs in that no interpreter is around it, and in that it lets go of a batch as soon as
 * it has read it, not when it has the next one. */
void *feed_read(void *feed);

#endif
