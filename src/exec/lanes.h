/* lanes.h: samples that will be slow, read already and set aside until a worker may take the time.
 *
 * A slow sample is run at once while fewer workers are at slow samples than these are of the work (or, with a share
 * that was set, while slow samples had less than that share of the work), or while nothing else could be done; else,
 * and while its worker has claimed others with it, it is parked with its bytes, and its worker goes on.  One worker
 * may always be at them, and while fast samples can be claimed never all.  A sample that runs for as long as slow ones
 * do counts as one of them. Workers with nothing else to do take parked samples: in order those of the oldest batch
 * first, then the longest; one of them stays free for the fast samples for which a consumer is about to make room.
 */
#ifndef DR_EXEC_LANES_H
#define DR_EXEC_LANES_H

#include <drapps/loader.h>
#include <drapps/store.h>

#include "exec/predict.h"
#include "graph/workbench.h"

struct dr__exec;

/* A sample in flight. */
typedef struct dr__job {
    uint64_t local, position;
    dr__sample_ref ref;
    dr_batch *batch; /* NULL until a slot is known */
    uint64_t slot;
    bool slow;   /* its lane */
    bool unread; /* fetched in vain: its worker reads it */
    bool left_out;
    uint64_t read_ns, run_ns;
    double cost;                   /* predicted, in units; of samples that were planned */
    uint64_t read_at_ns;           /* when reading began */
    int reader;                    /* worker that read it; -1, -2, ...: reader */
    uint64_t since_ns;             /* when it was read, or taken up again */
    uint64_t since_cpu_ns, cpu_ns; /* the thread's CPU time then, and what run_ns took of it; 0 without a trace */
    /* see cache_stage.h */
    const dr__program *program; /* what runs: all, what is to be kept, or what follows on it */
    dr_store_key key;           /* what it is kept under */
    uint64_t made_ns;           /* time of making what is kept, within run_ns */
} dr__job;

typedef struct dr__parked {
    struct dr__parked *next;
    dr__job job;
    double cost;
    dr__record record;
    size_t counted; /* of its bytes, in dr__lanes.bytes */
} dr__parked;

/* pool lock, but for what is atomic. */
typedef struct dr__lanes {
    dr__predict predict;
    dr__parked *parked; /* in the order in which they are taken up */
    dr__parked *spare;  /* used before, with warm memory */
    size_t bytes;       /* of the records of both, and of fetched samples */
    int running;        /* workers at samples that were predicted to be slow */
    atomic_uint_fast64_t slow_samples;
    _Atomic double share;       /* of the work, for slow samples while there are others; 0: as it comes */
    atomic_int_fast64_t credit; /* with a share: units that slow samples have to get; below 0: had too early */
} dr__lanes;

/* A sample predicted to be slow was read and planned: true: it is parked, and the bench has another record.  false: run
 * it, and call dr__lane_leave then.  more: the worker has fast samples left to do. */
bool dr__lane_park(struct dr__exec *e, dr__workbench *bench, const dr__job *job, bool more);
void dr__lane_leave(struct dr__exec *e);

/* pool lock: a parked sample to run, or NULL.  within_share: only while slow samples have fewer workers than their
 * share; else because there is nothing else to do. */
dr__parked *dr__lane_take(struct dr__exec *e, bool within_share);

/* pool lock: a sample that was taken cannot be run, and the epoch fails; NULL: none was.  Its memory stays here. */
void dr__lane_drop(struct dr__exec *e, dr__parked **parked);

/* The bytes of a parked or fetched sample, if it has any, go to the bench. */
void dr__lane_unpark(struct dr__exec *e, dr__parked *parked, dr__workbench *bench);

/* A given share of the work for slow samples, or 0. */
void dr__lane_set_share(dr__lanes *lanes, double share);

/* A sample that is not slow is run. */
void dr__lane_book(dr__lanes *lanes, double units);

/* pool lock: one to set a sample aside with, and one that is not needed any more.  NULL: out of memory. */
dr__parked *dr__lane_new(dr__lanes *lanes);
void dr__lane_keep(dr__lanes *lanes, dr__parked *parked);

/* pool lock: its record has changed. */
void dr__lane_count(dr__lanes *lanes, dr__parked *parked);

/* pool lock: forgets what is parked, and frees all memory. */
void dr__lane_clear(dr__lanes *lanes);

#endif
