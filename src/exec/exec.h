/* exec.h: running a program over the samples of an epoch, on many threads, into batches.
 *
 *   order -> claim (a few consecutive samples of a batch) -> worker: read, plan, run, store -> slot of a batch
 *         -> the last sample of a batch finishes it -> ready -> consumer
 *
 * One pool of threads serves all loaders of a process (pool.c).  Workers pull: a free thread claims the next samples of
 * a loader that has room (claim.c), so nothing is queued and cancelling is only to stop claiming.  Fetchers, if there
 * are any, pull too, and read ahead of them (read_ahead.c).
 *
 * Locks, outermost first: a loader's lock (starting and saving), that of its knobs, dr__pool_lock (all scheduling state
 * below), a buffer pool's lock, the trace's lock.  After a loader's lock, and never with these three: a cache's lock,
 * its store's write_lock, its store's lock.  No op, codec or callback runs under any of them.
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
#include "exec/read_ahead.h"
#include "exec/pushed_order.h"
#include "exec/lanes.h"
#include "exec/prefetch_window.h"
#include "exec/stats.h"
#include "exec/spans.h"
#include "graph/workbench.h"

enum { DR__RING = 128, DR__MAX_WORKERS = 256, DR__MAX_REPLACE = 16 };

/* out of order: what became of a sample. */
enum {
    DR__DONE_DELIVERED = 1, /* or left out */
    DR__DONE_BEFORE = 2,    /* delivered before the state that this run goes on from was saved */
    DR__DONE_WORKED = 4,    /* has its slot, or is bad */
};

struct dr_batch {
    atomic_int refs;
    unsigned generation; /* of the process that made it */
    uint64_t number;     /* in the epoch, of this rank */
    uint64_t epoch;
    uint64_t n_slots;   /* samples it was made for */
    uint64_t n_samples; /* samples it has, once finished */
    uint64_t n_booked;  /* positions that are done with it: its samples', and behind them, with equal_batches,
                           those of samples left out */
    bool is_staged;     /* it was opened before there was memory for it, and has none yet; pool lock */
    atomic_uint_fast64_t n_staged; /* slots outside its memory: the first ones.  Changed with the pool lock, to those in
                                     use when it moves in: for each of them it means the same before and after */
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
        dr_view *items;   /* one a slot, memory owned; pad, ragged, list */
        int64_t *sizes;   /* pad */
        int64_t *offsets; /* ragged */
    } * fields;
    uint64_t *ids, *positions;      /* one a slot */
    uint8_t *missing;               /* one a slot: left out */
    char **draws;                   /* one a slot, JSON; NULL without keep_draws */
    json_t *bad;                    /* pool lock until delivered */
    char *bad_text;                 /* set when delivered */
    atomic_size_t item_bytes;       /* of fields that are not stacked */
    atomic_uint_fast64_t remaining; /* slots still being worked on; who takes the last one finishes the batch */
    uint64_t used;                  /* slots given out; pool lock */
    bool ready;                     /* pool lock */
    dr_error error;                 /* status != 0: this batch failed; pool lock until ready */
    uint64_t opened_ns, ready_ns;
};

/* A consumer that waits in dr_loader_next. */
typedef struct dr__waiter {
    struct dr__waiter *next;
} dr__waiter;

/* What the consumers do.  With several of them, one that waits decides. */
typedef enum dr__consumer { DR__CONSUMER_AWAY, DR__CONSUMER_WAITS, DR__CONSUMER_STEPS } dr__consumer;

/* --- the parts of a loader at work; each names the file that owns it --- */

/* loader/loader_knobs.c: settings that change while the loader runs; pool lock. */
typedef struct dr__knobs {
    int workers;
    int readers;
    int prefetch;
    uint64_t prefetch_bytes; /* for batches, within the budget; 0: the budget alone */
    int priority;            /* -1, 0, 1 */
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
    size_t item_bytes;    /* most that the fields of one batch which are not stacked have taken so far */
} dr__budget;

/* order.c: the epoch that runs, or the part of it that is left after a resume; pool lock. */
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
    uint64_t delivered_samples; /* or left out, or delivered before a resume */
} dr__progress;

/* consume.c: whether the loader runs, and the error that ended it; pool lock. */
typedef struct dr__run {
    bool running;
    bool cancelled;
    bool failed;
    dr_error error; /* valid if failed */
    int active;     /* claims that workers are at */
} dr__run;

/* flow.c: what the consumers do, and for how long; pool lock. */
typedef struct dr__consumers {
    dr__waiter *queue; /* all that wait, the first to come at the head */
    int waiting;       /* of them, asleep */
    dr__consumer state;
    uint64_t since_ns;         /* when `state` began */
    uint64_t wait_ns, step_ns; /* spent so until since_ns, over all epochs */
    uint64_t unserved_ns;      /* waited by calls that timed out; added to the wait of the next batch */
    dr__consumer_times times;  /* for the trace */
} dr__consumers;

/* claim.c: batches whose first samples are made before the batch has memory; pool lock. */
typedef struct dr__staging {
    uint64_t deferred_ns; /* when the memory of the batch opened last was first deferred; 0: it was not */
    bool off;             /* deferring did not help: not again in this epoch */
} dr__staging;

/* unordered.c: samples go into whichever batch is being filled. */
typedef struct dr__unordered {
    bool on;           /* fixed when the loader is opened; the rest: pool lock */
    dr_batch *filling; /* takes the next finished sample */
    uint8_t *marks;    /* DR__DONE_* of each sample of this rank, at local % n_marks */
    uint64_t n_marks;
    uint64_t worked_below; /* every sample below has been worked on */
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

/* One loader at work. */
typedef struct dr__exec {
    /* fixed when the loader is opened */
    dr__program *program;
    dr_dataset *set;
    dr_loader_options o;
    dr__bufpool *buffers;
    struct dr__seek_store *seek; /* NULL: none; owned by the loader */
    struct dr__cache *cache;     /* NULL: none; see cache_stage.h */
    unsigned generation;
    dr_trace *trace;   /* NULL: none */
    dr_ledger *ledger; /* what samples cost before; NULL: none; owned by the loader */
    dr__replacements replacements;

    dr__stats stats; /* atomic */
    dr__budget budget;
    dr__knobs knobs;
    dr__lanes lanes;           /* slow samples, parked */
    dr__read_ahead read_ahead; /* samples read by readers */

    /* pool lock: the epoch that runs */
    dr__run run;
    dr__order order;
    dr__pushed pushed; /* pushed order: the queue of batches */
    dr__progress progress;
    dr__staging staging;
    dr__unordered unordered;
    dr__bad bad;
    dr__consumers consumers;
    dr_batch *ring[DR__RING]; /* opened and not delivered, at number % DR__RING; unordered: anywhere */
    struct {                  /* consume.c: the consumer that works itself, with workers = 0 */
        dr__workbench *bench;
        bool busy;
    } caller;
    dr__cond changed; /* a batch is ready, or the run has ended */
    struct dr__exec *next;
} dr__exec;

/* Some consecutive samples to work on. */
typedef struct dr__claim {
    uint64_t first, n;      /* rank-local places from base on */
    dr_batch *batch;        /* theirs; NULL if unordered */
    uint64_t slot;          /* of the first */
    dr__push *push;         /* given order: where they stand */
    dr__parked *slow;       /* instead of all that: a sample of the slow lane */
    dr__parked *read_ahead; /* or one that was fetched; of a reader: where it is to be left */
    double reserved_ns;     /* see dr__ceiling_take */
} dr__claim;

/* --- order.c: which sample stands where --- */

/* Samples and batches of this rank from position `base` of the order on. */
void dr__order_count(const dr__exec *e, uint64_t base, uint64_t *n_local, uint64_t *n_batches);

/* The position in the order of a rank-local place, and whether it is a repeat that pads. */
uint64_t dr__order_position(const dr__exec *e, uint64_t local, bool *padding);

/* The sample at a position of an epoch's order. */
dr__sample_ref dr__order_sample(const dr_dataset *set, uint64_t seed, uint64_t epoch, bool shuffle, uint64_t position);

/* Which of n candidates replaces a bad sample: the one rule, for loaders of every kind.  bad: the names of the sample
 * that was bad in its own place, also where a replacement was bad, too; attempt: 0, 1, ... below DR__MAX_REPLACE. */
uint64_t dr__replacement(const dr__rng_name *bad, uint32_t attempt, uint64_t n);

/* The sample of a set that replaces a bad one.  Its occurrence is one that no sample of an epoch's order has. */
dr__sample_ref dr__replacement_sample(const dr_dataset *set, const dr__rng_name *bad, uint32_t attempt);

/* The occurrence that keys the draws of a replacement: not those of its own place in the epoch. */
static inline uint32_t dr__replacement_occurrence(uint32_t attempt)
{
    return 0x80000000u | attempt;
}

/* --- batch.c --- */

/* n_staged: 0, or fewer than n_slots: these first slots get memory of their own, the others with dr__batch_allocate.
 * NULL: out of memory. */
dr_batch *dr__batch_new(dr__exec *e, uint64_t number, uint64_t n_slots, uint64_t n_staged);

/* pool lock: the memory of the whole batch; staged slots that were not given out yet are there, too.
 * false: there is none. */
bool dr__batch_allocate(dr__exec *e, dr_batch *batch);

/* Room for output i of the sample on the bench, in its slot.  NULL: out of memory. */
void *dr__batch_place(dr_batch *batch, int field, uint64_t slot, const dr_desc *desc);

/* Called by whoever completes the last slot: staged samples copied, left-out slots closed up, batch ops, padding and
 * joining. */
dr_status dr__batch_finish(dr__exec *e, dr_batch *batch, dr_error *err);

/* The same of a batch that failed: says which samples are lost with it, and lets go of its memory. */
void dr__batch_lose(dr_batch *batch);

/* Makes it a finished batch without samples; false: out of memory. */
bool dr__batch_empty(dr_batch *batch);

/* --- sample.c --- */

/* Works a claim off: every sample of it ends in a slot, or is noted as bad.  Not under the lock. */
void dr__claim_work(dr__exec *e, const dr__claim *claim, dr__workbench *bench);

/* Does an error of a batch cost that batch alone?  Else it ends the epoch. */
bool dr__exec_outlives(const dr__exec *e, dr_status status);

/* Reads the one sample of a claim into bench->record, for whoever runs the job then.  false: nothing is left to do for
 * it.  Not under the lock. */
bool dr__claim_read(dr__exec *e, const dr__claim *claim, dr__workbench *bench, dr__job *job);

/* equal_batches: a batch of which all samples were left out gets another one, chosen as DR_BAD_REPLACE does.  Not under
 * the lock; no slot of it is being worked on. */
dr_status dr__batch_replace_empty(dr__exec *e, dr_batch *batch, int by, dr_error *err);

/* --- pool.c: threads --- */

void dr__pool_lock(void);
void dr__pool_unlock(void);
pthread_mutex_t *dr__pool_mutex(void);

/* Adds and removes a loader.  Removing ends threads that no loader needs; its claims are over by then, see
 * dr__exec_stop. */
dr_status dr__pool_add(dr__exec *e, dr_error *err);
void dr__pool_remove(dr__exec *e);

/* pool lock: new work or room may be there. */
void dr__pool_wake(void);

/* pool lock: the same for one thread: a reader or a worker of the loader. */
void dr__pool_wake_one(const dr__exec *e, bool reader);

/* pool lock: the loaders, by dr__exec.next. */
const dr__exec *dr__pool_execs(void);

/* pool lock: what was put off is to be looked at again then. */
void dr__pool_look_at(uint64_t ns);

/* Starts threads, or tells some to leave, as the loaders ask for it.  Waits for nobody: who leaves does so when its
 * sample is done, and is joined by a later call.  Not under the lock. */
dr_status dr__pool_resize(dr_error *err);

/* pool lock: workers that have been at one sample of this loader since before `ns`, known slow ones apart. */
int dr__pool_busy_since(const dr__exec *e, uint64_t ns);

/* A thread, and the sample that it is at. */
typedef struct dr__at {
    uint64_t id, since_ns;
    int worker; /* 1, 2, ...; readers -1, -2, ... */
} dr__at;

/* pool lock: what the threads are at for this loader, at most `cap` of them; how many. */
size_t dr__pool_running(const dr__exec *e, dr__at *out, size_t cap);

/* --- claim.c: what a loader has to do next --- */

/* pool lock: the next samples of this loader; false: none now. */
bool dr__claim_next(dr__exec *e, dr__claim *claim);

/* pool lock: one that is to be read; it does not count as active. */
bool dr__claim_one(dr__exec *e, dr__claim *claim);

/* pool lock: are there samples that could be claimed, apart from parked ones? */
bool dr__claim_is_open(const dr__exec *e);

/* pool lock: will there be some once a consumer takes what is ready? */
bool dr__claim_will_open(const dr__exec *e);

/* pool lock: a claim was worked off. */
void dr__claim_over(dr__exec *e, dr__claim *claim);

/* --- consume.c --- */

dr_status dr__exec_next(dr__exec *e, int timeout_ms, dr_batch **out, dr_error *err);
dr_status dr__exec_start(dr__exec *e, uint64_t epoch, uint64_t base, uint64_t first_batch, const uint8_t *done,
                         dr_error *err);

/* pool lock: everything was delivered. */
bool dr__exec_is_over(const dr__exec *e);

/* Gives up what runs: no claim is left when it returns. */
void dr__exec_stop(dr__exec *e);

/* Marks `n` slots of a batch as done; the last one makes it ready.  by: the worker, 0: a consumer. */
void dr__slots_done(dr__exec *e, dr_batch *batch, uint64_t n, int by);

/* pool lock: ends the epoch with an error that every consumer gets. */
void dr__exec_fail(dr__exec *e, const dr_error *err);

/* --- flow.c: what a scheduler and a monitor see of it --- */

/* pool lock: consumers wait, do something else, or are not there, from now on. */
void dr__consumer_is(dr__exec *e, dr__consumer what);

/* Everything that is known of a flow (DR_N_FLOWS of them, drapps/sched.h); the rest is left as it is. */
void dr__exec_flow(dr__exec *e, double *flow);

/* How long single waits and batches took: DR_N_SPREADS of them, zeroed. */
void dr__exec_spreads(dr__exec *e, dr_spread *spreads);

/* Time since a consumer last asked for a batch; 0 while one waits, UINT64_MAX where none is there. */
uint64_t dr__exec_idle_ns(dr__exec *e);

/* How full its queues are, 0 .. 1: samples that nobody has begun, samples that were fetched (NAN without readers),
 * slow ones that are parked, as parts of those that may be in flight; and of the batches that may be, those that are
 * ready. */
typedef struct dr__fill {
    double unclaimed, fetched, parked, ready;
} dr__fill;

dr__fill dr__exec_fill(dr__exec *e);

/* --- unordered.c: samples that go to whatever batch is being filled (dr__unordered) --- */

/* pool lock: makes the marks of an epoch; `done`: delivered before the state was saved, one byte a sample, or NULL. */
dr_status dr__unordered_begin(dr__exec *e, const uint8_t *done, dr_error *err);

/* pool lock: where the samples that may be claimed now end. */
uint64_t dr__unordered_window(const dr__exec *e);

/* Takes a slot of the batch that is being filled, opening one if need be. */
dr_status dr__unordered_take_slot(dr__exec *e, dr_batch **batch, uint64_t *slot, dr_error *err);

/* Books a sample as worked on, and whether it was left out; the last one of the epoch closes the batch being filled. */
void dr__unordered_worked(dr__exec *e, uint64_t local, bool left_out, int by);

/* Closes the batch being filled, if no further sample will come. */
void dr__unordered_close(dr__exec *e);

/* pool lock: a batch was delivered. */
void dr__unordered_delivered(dr__exec *e, const dr_batch *batch);

/* The rank-local place of a position of the order, from base on. */
uint64_t dr__unordered_local(const dr__exec *e, uint64_t position);

/* Was it delivered before the state that this run goes on from was saved? */
bool dr__unordered_was_delivered(const dr__exec *e, uint64_t local);

#endif
