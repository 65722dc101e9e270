/* read_ahead.h: samples read ahead of the workers, by threads that do nothing else.
 *
 * A reader claims one sample, reads it (or finds it in the cache) and leaves it with its bytes, as a slow sample is
 * parked (lanes.h).  Workers take what was fetched, and read themselves only while fewer samples are being fetched than
 * there are workers: fetched ones would wait meanwhile.  What could not be read, or kept within the budget, they read
 * again, so that all that can be wrong with a sample is dealt with in one place.
 */
#ifndef DR_EXEC_READ_AHEAD_H
#define DR_EXEC_READ_AHEAD_H

#include "exec/lanes.h"

/* Workers find the next one while the readers are held up for a moment. */
enum { DR__READ_AHEAD_PER_WORKER = 4 };

struct dr__exec;
struct dr__claim;

/* pool lock */
typedef struct dr__read_ahead {
    dr__parked *head, *tail; /* fetched, in the order of their places */
    int n;                   /* of them */
    int active;              /* being read */
    size_t largest;          /* bytes of the largest record, */
    uint64_t largest_at;     /* when so many samples were claimed */
} dr__read_ahead;

/* pool lock: a sample to read; false: none now. */
bool dr__read_ahead_claim(struct dr__exec *e, struct dr__claim *claim);

/* Reads it.  Not under the lock. */
void dr__read_ahead_work(struct dr__exec *e, struct dr__claim *claim, dr__workbench *bench);

/* pool lock: it was read, and is left for a worker. */
void dr__read_ahead_done(struct dr__exec *e, struct dr__claim *claim);

/* pool lock: a fetched sample to run, or NULL. */
dr__parked *dr__read_ahead_take(struct dr__exec *e);

/* pool lock: forgets what was fetched. */
void dr__read_ahead_clear(dr__read_ahead *fetch);

#endif
