/* exec.h: the executor: runs a program over the samples of an epoch, on many threads, into batches.
 *
 *   order -> claim (a few consecutive samples of a batch) -> worker: read, plan, run, store -> slot of a batch
 *         -> the last sample of a batch finishes it -> ready -> consumer
 *
 * One pool of threads serves all loaders of a process (pool.c).  Workers pull: a free thread claims the next samples of
 * a loader that has room (claim.c), so nothing is queued, and cancelling means that nothing more is claimed.  Readers,
 * if there are any, also pull, and read ahead of the workers (read_ahead.c).
 *
 * Locks, outermost first: a loader's lock (starting and saving), that of its knobs, dr__pool_lock (all scheduling state
 * below), a buffer pool's lock, the trace's lock.  After a loader's lock, and never with these three: a cache's lock,
 * its store's write_lock, its store's lock; an offload's lock; a remote client's lock.  No op, codec or callback runs
 * under any of them.
 */
#ifndef DR_EXEC_EXEC_H
#define DR_EXEC_EXEC_H

#include <stdatomic.h>

#include <drapps/ledger.h>
#include <drapps/loader.h>

#include "base/ceiling.h"
#include "base/limits.h"
#include "base/thread.h"
#include "data/bufpool.h"
#include "exec/range_stage.h"
#include "exec/read_ahead.h"
#include "exec/pushed_order.h"
#include "exec/lanes.h"
#include "exec/prefetch_window.h"
#include "exec/stats.h"
#include "exec/spans.h"
#include "graph/workbench.h"

enum { DR__RING = 128, DR__MAX_WORKERS = 256, DR__MAX_REPLACE = 16 };

/* Unordered loaders: marks of a sample. */
enum {
    DR__DONE_DELIVERED = 1, /* delivered or skipped */
    DR__DONE_BEFORE = 2,    /* delivered before the resumed state was saved */
    DR__DONE_WORKED = 4,    /* has its slot, or is bad */
};

struct dr_batch {
    atomic_int refs;
    unsigned generation; /* fork generation of the process that made it */
    uint64_t number;     /* in the epoch, of this rank */
    uint64_t epoch;
    uint64_t n_slots;     /* samples it was made for */
    uint64_t n_samples;   /* samples it has; valid once finished */
    uint64_t n_accounted; /* valid entries of `positions`: those of its samples, and, with equal_batches, behind them
                             those of skipped samples */
    bool is_staged;       /* its memory is deferred (claim.c); pool lock */
    atomic_uint_fast64_t n_staged; /* the first slots, which lie in the staging area.  Set under the pool lock to the
                                      number of slots in use when the batch gets its memory, so that no slot in use
                                      moves */
    uint64_t n_padded;
    int n_fields;
    struct dr__batch_field {
        char name[DR__NAME];
        dr_collate collate;
        dr_desc desc;     /* of one sample */
        size_t bytes;     /* of one sample; stack only */
        dr__buf *buf;     /* stack, pad, ragged */
        dr__buf *staging; /* stack: the first n_staged samples, until the batch is finished */
        dr_view array;    /* set when finished */
        dr_view *items;   /* pad, ragged, list: one per slot, memory owned */
        int64_t *sizes;   /* pad */
        int64_t *offsets; /* ragged */
    } * fields;
    uint64_t *ids, *positions;      /* one per slot */
    uint8_t *missing;               /* one per slot: 1: skipped */
    char **draws;                   /* one per slot, JSON; NULL without keep_draws */
    json_t *bad;                    /* pool lock until delivered */
    char *bad_text;                 /* set when delivered */
    atomic_size_t item_bytes;       /* of fields that are not stacked */
    atomic_uint_fast64_t remaining; /* unfinished slots; the thread that completes the last one finishes the batch */
    uint64_t used;                  /* slots claimed; pool lock */
    bool ready;                     /* pool lock */
    dr_error error;                 /* status != 0: this batch failed; pool lock until ready */
    uint64_t opened_ns, ready_ns;
};

/* A consumer that waits in dr_loader_next. */
typedef struct dr__waiter {
    struct dr__waiter *next;
} dr__waiter;

/* What the consumers do.  With several consumers, it is WAITS while any of them waits. */
typedef enum dr__consumer { DR__CONSUMER_AWAY, DR__CONSUMER_WAITS, DR__CONSUMER_STEPS } dr__consumer;

/* --- the parts of dr__exec; each names the file that owns it --- */

/* loader/loader_knobs.c: settings that change while the loader runs; pool lock. */
typedef struct dr__knobs {
    int workers;
    int readers;
    int prefetch;
    uint64_t prefetch_bytes; /* for batches, within the budget; 0: the budget alone */
    int priority;            /* -1, 0, 1 */
    int codec;               /* of what a cache keeps, by wire id; -1: chosen */
    double offload;          /* share of what is planned for a server that it prepares */
    dr__ceiling ceiling;     /* of the CPU time of the threads */
} dr__knobs;

/* prefetch_window.c: memory of batches and samples. */
typedef struct dr__budget {
    /* fixed when the loader is opened */
    size_t sample_bytes;        /* of a sample's stacked fields */
    size_t largest_field_bytes; /* of the largest of these fields */
    size_t batch_bytes;         /* limit for batches that no consumer holds; shared by loaders without a memory_limit */
    size_t bench_bytes;         /* limit for one worker's intermediate results */
    /* pool lock */
    uint64_t batch_slots; /* samples of a batch; pushed order: of the largest batch in flight, if that is more */
    size_t item_bytes;    /* largest size so far of the fields of one batch that are not stacked */
} dr__budget;

/* order.c: the running epoch, or the rest of it after a resume; pool lock. */
typedef struct dr__order {
    uint64_t epoch;
    uint64_t base;        /* position of the order that batch 0 of this run starts at */
    uint64_t first_batch; /* number of that batch in the epoch */
    uint64_t n_local;     /* samples of this rank from base on; pushed order: pushed so far */
    uint64_t n_batches;   /* batches of this rank from base on */
    bool complete;        /* n_local and n_batches are final */
} dr__order;

/* claim.c (what is claimed and opened) and consume.c (what is delivered): how far the run has come; pool lock. */
typedef struct dr__progress {
    uint64_t claimed, finished; /* samples */
    uint64_t opened, delivered; /* batches */
    uint64_t oldest;            /* all batches with lower numbers are delivered */
    uint64_t delivered_samples; /* skipped ones and those delivered before a resume included */
} dr__progress;

/* consume.c: whether the loader runs, and the error that ended it; pool lock. */
typedef struct dr__run {
    bool running;
    bool cancelled;
    atomic_bool abandoned; /* it was stopped or cancelled: requests to servers need not be waited for; no lock */
    bool failed;
    dr_error error; /* valid if failed */
    int active;     /* claims that workers hold */
} dr__run;

/* flow.c: what the consumers do, and for how long; pool lock. */
typedef struct dr__consumers {
    dr__waiter *queue; /* consumers in dr_loader_next, the one that has waited longest at the head */
    int waiting;       /* consumers that sleep */
    dr__consumer state;
    uint64_t since_ns;         /* when `state` began */
    uint64_t wait_ns, step_ns; /* time in these states until since_ns, over all epochs */
    uint64_t unserved_ns;      /* time waited by calls that timed out; added to the wait of the next batch */
    dr__consumer_times times;  /* for the trace */
} dr__consumers;

/* claim.c: batches whose first samples are made before the batch has memory; pool lock. */
typedef struct dr__staging {
    uint64_t deferred_ns; /* when the memory of the newest batch was first deferred; 0: it was not */
    bool off;             /* deferring was in vain: not again in this epoch */
} dr__staging;

/* unordered.c: samples go into whichever batch is being filled. */
typedef struct dr__unordered {
    bool on;           /* fixed when the loader is opened; the rest: pool lock */
    dr_batch *filling; /* the batch that receives the next finished sample */
    uint8_t *marks;    /* DR__DONE_* of each sample of this rank, at local % n_marks */
    uint64_t n_marks;
    uint64_t worked_below; /* every sample below it is finished */
} dr__unordered;

/* sample.c: bad samples; pool lock. */
typedef struct dr__bad {
    uint64_t n;         /* in this epoch */
    json_t *unreported; /* belong to no delivered batch: the next batch reports them */
} dr__bad;

/* sample.c: samples that may replace bad ones; fixed before the first epoch. */
typedef struct dr__replacements {
    uint64_t *ids; /* NULL: all */
    uint64_t n;
} dr__replacements;

/* The executor of one loader. */
typedef struct dr__exec {
    /* fixed when the loader is opened */
    dr__program *program;
    dr_dataset *set;
    dr_loader_options o;
    dr__bufpool *buffers;
    struct dr__seek_store *seek; /* NULL: none; owned by the loader */
    struct dr__cache *cache;     /* NULL: none; see cache_stage.h */
    struct dr__offload *offload; /* NULL: none; see offload_stage.h */
    bool far;                    /* samples come over a network */
    unsigned generation;
    dr_trace *trace;   /* NULL: none */
    dr_ledger *ledger; /* costs of samples in earlier passes; NULL: none; owned by the loader */
    dr__replacements replacements;

    dr__range_stage ranges;

    dr__stats stats; /* atomic */
    dr__budget budget;
    dr__knobs knobs;
    dr__lanes lanes;           /* slow samples, parked */
    dr__read_ahead read_ahead; /* samples read by readers */

    /* pool lock: the running epoch */
    dr__run run;
    dr__order order;
    dr__pushed pushed; /* pushed order: the queue of batches */
    dr__progress progress;
    dr__staging staging;
    dr__unordered unordered;
    dr__bad bad;
    dr__consumers consumers;
    dr_batch *ring[DR__RING]; /* batches in flight, at index number % DR__RING; unordered: at any index */
    struct {                  /* consume.c: the consumer that works itself (workers = 0) */
        dr__workbench *bench;
        bool busy;
    } caller;
    dr__cond changed; /* a batch is ready, or the run has ended */
    struct dr__exec *next;
} dr__exec;

/* What a worker or reader has taken: consecutive samples, or one parked sample. */
typedef struct dr__claim {
    uint64_t first, n;      /* samples, by rank-local index from base on */
    dr_batch *batch;        /* the batch of the samples; NULL: unordered */
    uint64_t slot;          /* of the first sample */
    dr__push *push;         /* pushed order: the pushed batch of the samples; else NULL */
    dr__parked *slow;       /* worker: a sample of the slow lane instead; else NULL */
    dr__parked *read_ahead; /* worker: a sample that was read ahead instead; reader: where to put the one it reads */
    double reserved_ns;     /* see dr__ceiling_take */
} dr__claim;

/* --- order.c: the order of an epoch --- */

/* Counts the samples and batches of this rank from position `base` of the order on. */
void dr__order_count(const dr__exec *e, uint64_t base, uint64_t *n_local, uint64_t *n_batches);

/* The position in the order of a rank-local index; *padding: it is beyond the end and repeats an earlier sample. */
uint64_t dr__order_position(const dr__exec *e, uint64_t local, bool *padding);

/* The sample at a position of an epoch's order. */
dr__sample_ref dr__order_sample(const dr_dataset *set, uint64_t seed, uint64_t epoch, bool shuffle, uint64_t position);

/* Chooses which of n candidates replaces a bad sample.  Loaders of every kind use this rule.
 *
 * @param bad      the original bad sample, also where an earlier replacement was bad as well.
 * @param attempt  0, 1, ... below DR__MAX_REPLACE.
 * @return 0 to n - 1. */
uint64_t dr__replacement(const dr__rng_name *bad, uint32_t attempt, uint64_t n);

/* The sample of a data set that replaces a bad one.  Its occurrence is one that no sample of an epoch's order has. */
dr__sample_ref dr__replacement_sample(const dr_dataset *set, const dr__rng_name *bad, uint32_t attempt);

/* The occurrence that keys the draws of a replacement, so that they differ from those at its own position. */
static inline uint32_t dr__replacement_occurrence(uint32_t attempt)
{
    return 0x80000000u | attempt;
}

/* --- batch.c --- */

/* Makes a batch.
 *
 * @param n_staged  0: the batch gets its memory now.  Else, below n_slots: only a staging area for the first n_staged
 *                  slots; dr__batch_allocate gets the memory.
 * @return the batch, or NULL: out of memory. */
dr_batch *dr__batch_new(dr__exec *e, uint64_t number, uint64_t n_slots, uint64_t n_staged);

/* pool lock: gives a staged batch its memory; staged slots that were not claimed yet lie there, too.
 * false: out of memory. */
bool dr__batch_allocate(dr__exec *e, dr_batch *batch);

/* The memory of one field in a slot, allocated if the field is not stacked.  NULL: out of memory. */
void *dr__batch_slot_memory(dr_batch *batch, int field, uint64_t slot, const dr_desc *desc);

/* Finishes a batch whose slots are complete: copies staged samples, closes up skipped slots, pads and joins, runs batch
 * ops. */
dr_status dr__batch_finish(dr__exec *e, dr_batch *batch, dr_error *err);

/* Finishes a batch that failed: keeps the ids and positions of its samples and frees its fields. */
void dr__batch_discard(dr_batch *batch);

/* Makes the batch a finished one without samples.  false: out of memory. */
bool dr__batch_make_empty(dr_batch *batch);

/* --- sample.c --- */

/* Works on a claim: every sample ends in a slot, is parked, or is recorded as bad.  Not under the pool lock. */
void dr__claim_work(dr__exec *e, const dr__claim *claim, dr__workbench *bench);

/* Whether an error costs its batch alone; else it ends the epoch. */
bool dr__exec_survives(const dr__exec *e, dr_status status);

/* Reads the one sample of a reader's claim into bench->record and fills in the job, which a worker runs later.
 * false: the sample needs no work.  Not under the pool lock. */
bool dr__claim_read(dr__exec *e, const dr__claim *claim, dr__workbench *bench, dr__job *job);

/* equal_batches: gives a batch whose samples were all skipped another sample, chosen as by DR_BAD_REPLACE.  All slots
 * of the batch must be complete.  Not under the pool lock. */
dr_status dr__batch_replace_empty(dr__exec *e, dr_batch *batch, int by, dr_error *err);

/* --- pool.c: threads --- */

void dr__pool_lock(void);
void dr__pool_unlock(void);
pthread_mutex_t *dr__pool_mutex(void);

/* Adds a loader, or removes one that dr__exec_stop has stopped.  Threads that no loader needs then end. */
dr_status dr__pool_add(dr__exec *e, dr_error *err);
void dr__pool_remove(dr__exec *e);

/* pool lock: wakes the threads that wait for work. */
void dr__pool_wake(void);

/* pool lock: wakes one thread: a reader or a worker that may serve the loader. */
void dr__pool_wake_one(const dr__exec *e, bool reader);

/* pool lock: the first loader; the others follow by dr__exec.next. */
const dr__exec *dr__pool_execs(void);

/* pool lock: one thread of a team looks for work again at time `ns`, because a claim was deferred. */
void dr__pool_wake_at(uint64_t ns);

/* Starts threads, or tells threads to leave, as the loaders' knobs say.  Does not wait for samples: a thread leaves
 * after its sample and is joined by a later call.  Not under the pool lock. */
dr_status dr__pool_resize(dr_error *err);

/* pool lock: counts the workers that have been at one sample of this loader since before `ns`; samples of the slow lane
 * do not count. */
int dr__pool_busy_since(const dr__exec *e, uint64_t ns);

/* A sample that a thread is working on. */
typedef struct dr__running_sample {
    uint64_t id, since_ns;
    int worker; /* 1, 2, ...; readers -1, -2, ... */
} dr__running_sample;

/* pool lock: lists the samples of this loader that threads are working on, at most `cap`; returns how many. */
size_t dr__pool_running(const dr__exec *e, dr__running_sample *out, size_t cap);

/* --- claim.c --- */

/* pool lock: claims the next work of this loader for a worker.  false: there is none now. */
bool dr__claim_next(dr__exec *e, dr__claim *claim);

/* pool lock: claims one sample for a reader; it does not count as active.  false: there is none now. */
bool dr__claim_for_reader(dr__exec *e, dr__claim *claim);

/* pool lock: whether samples other than parked ones can be claimed. */
bool dr__claim_is_open(const dr__exec *e);

/* pool lock: whether there will be such samples once a consumer takes the batches that are ready. */
bool dr__claim_will_open(const dr__exec *e);

/* pool lock: ends a claim of dr__claim_next. */
void dr__claim_done(dr__exec *e, dr__claim *claim);

/* --- consume.c --- */

/* As dr_loader_next. */
dr_status dr__exec_next(dr__exec *e, int timeout_ms, dr_batch **out, dr_error *err);

/* Stops the running epoch and starts another one.
 *
 * @param base         the position of the order to start at.
 * @param first_batch  the number of the first batch.
 * @param done         unordered: which samples were delivered before the state was saved, one byte each; or NULL. */
dr_status dr__exec_start(dr__exec *e, uint64_t epoch, uint64_t base, uint64_t first_batch, const uint8_t *done,
                         dr_error *err);

/* pool lock: whether all batches of the epoch are delivered. */
bool dr__exec_is_finished(const dr__exec *e);

/* Abandons the running epoch and waits for its claims to end. */
void dr__exec_stop(dr__exec *e);

/* Marks `n` slots of a batch as complete; the last one makes the batch ready.  by: number of the worker; 0: a
 * consumer. */
void dr__slots_done(dr__exec *e, dr_batch *batch, uint64_t n, int by);

/* pool lock: ends the epoch with an error that every consumer receives. */
void dr__exec_fail(dr__exec *e, const dr_error *err);

/* --- flow.c: what the controller and the monitor read --- */

/* pool lock: sets what the consumers do from now on. */
void dr__consumer_set_state(dr__exec *e, dr__consumer what);

/* Fills in the flow of a loader: DR_N_FLOWS values (drapps/sched.h), of which unknown ones stay as they are. */
void dr__exec_flow(dr__exec *e, double *flow);

/* Adds how long single waits and batches took to DR_N_SPREADS zeroed spreads. */
void dr__exec_spreads(dr__exec *e, dr_spread *spreads);

/* Time since a consumer last asked for a batch; 0: one waits; UINT64_MAX: there is no consumer. */
uint64_t dr__exec_idle_ns(dr__exec *e);

/* How full the queues are, 0 .. 1.  unclaimed, parked (slow) and ready relate to what the prefetch window allows;
 * fetched relates to what may be read ahead, NAN without readers. */
typedef struct dr__fill {
    double unclaimed, fetched, parked, ready;
} dr__fill;

dr__fill dr__exec_fill(dr__exec *e);

/* --- unordered.c: finished samples go to the batch that is being filled --- */

/* pool lock: makes the marks of an epoch.  done: as for dr__exec_start. */
dr_status dr__unordered_begin(dr__exec *e, const uint8_t *done, dr_error *err);

/* pool lock: the end of the samples that may be claimed now. */
uint64_t dr__unordered_window(const dr__exec *e);

/* Takes a slot of the batch being filled; opens a batch if there is none. */
dr_status dr__unordered_take_slot(dr__exec *e, dr_batch **batch, uint64_t *slot, dr_error *err);

/* Marks a sample as finished, or as skipped (left_out).  The last sample of the epoch closes the batch being filled. */
void dr__unordered_sample_done(dr__exec *e, uint64_t local, bool left_out, int by);

/* Closes the batch being filled, if no more samples will come. */
void dr__unordered_close(dr__exec *e);

/* pool lock: marks the samples of a batch as delivered. */
void dr__unordered_delivered(dr__exec *e, const dr_batch *batch);

/* The rank-local index of a position of the order, from base on. */
uint64_t dr__unordered_local(const dr__exec *e, uint64_t position);

/* Whether a sample was delivered before the resumed state was saved. */
bool dr__unordered_was_delivered(const dr__exec *e, uint64_t local);

#endif
