/* read_ahead.h: readers: threads that read samples ahead of the workers.
 *
 * A reader claims one sample, reads it (or finds it in the cache) and queues it with its bytes, in an entry of the kind
 * that holds a parked sample (lanes.h).  Workers take queued samples.  They read themselves only while the readers have
 * fewer samples in hand than there are workers, since queued samples wait during such a read.  A sample that a reader
 * could not read, or keep within the budget, is read again by its worker, so that errors are handled in one place.
 */
#ifndef DR_EXEC_READ_AHEAD_H
#define DR_EXEC_READ_AHEAD_H

#include "exec/lanes.h"

/* Samples that may be queued per worker: a reserve while readers are delayed. */
enum { DR__READ_AHEAD_PER_WORKER = 4, DR__READ_AHEAD_PER_READER = 2 };

/* pool lock: how many samples may be read ahead: enough that no worker waits, and that every reader has a sample to
 * read. */
int dr__read_ahead_most(const struct dr__exec *e);

struct dr__exec;
struct dr__claim;

/* pool lock */
typedef struct dr__read_ahead {
    dr__parked *head, *tail; /* the queue, by rank-local index */
    int n;                   /* samples in the queue */
    int active;              /* samples that are being read */
    size_t largest;          /* bytes of the largest record */
    uint64_t largest_at;     /* progress.claimed when it was read */
} dr__read_ahead;

/* pool lock: claims a sample to read.  false: there is none now. */
bool dr__read_ahead_claim(struct dr__exec *e, struct dr__claim *claim);

/* Reads the sample of a claim.  Not under the pool lock. */
void dr__read_ahead_work(struct dr__exec *e, struct dr__claim *claim, dr__workbench *bench);

/* pool lock: ends the claim and queues the sample for a worker. */
void dr__read_ahead_done(struct dr__exec *e, struct dr__claim *claim);

/* pool lock: takes the first queued sample; NULL: there is none. */
dr__parked *dr__read_ahead_take(struct dr__exec *e);

/* pool lock: frees the queue. */
void dr__read_ahead_clear(dr__read_ahead *fetch);

#endif
