/* shared.h: what the processes of a shmpool share: the board (batches, slots, workers) and the arena (blocks).
 *
 *   ┌───────┬──────────────┬──────────────┬─────────────┬──────────────────────────────────────┐
 *   │ board │ entries      │ workers      │ nodes       │ space of the blocks                  │
 *   └───────┴──────────────┴──────────────┴─────────────┴──────────────────────────────────────┘
 *
 * An entry is a post and a batch in one: a post of n slots also opens a batch with room for n samples.  In order,
 * sample s of the post goes to place s of the same entry.  Out of order, samples go to the oldest batch of their group
 * that has room; as the room of all batches is what was posted, each batch is filled in the end.  A group ends at
 * dr_shmpool_post_end.
 *
 * One robust lock protects all of it.  Fields are either *told* or *derived*.  A told field is the truth: it changes by
 * one store, after everything it speaks of was written (dr__step between them).  Derived fields (counts, lists, hints)
 * can be computed from the told ones.  So a process that dies while it holds the lock leaves told fields that are
 * right, and whoever gets the lock next computes the others anew (dr__repair).  dr_shmpool_reap then undoes what the
 * dead process was at.  Where two told fields change together, this is the order, and what dr__repair makes of the
 * half:
 *
 *   place:   slot.placed, then sample.state = TAKEN        TAKEN is set again from the slots
 *   done:    sample.state, then slot.state, then block     the slot follows its sample, the batch gets the block
 *   slab:    entry.slab, then block                        the batch gets the block
 *   finish:  entry.batch = READY, then blocks              the batch gets its head, the samples' blocks are freed
 *   claim:   worker's claim, then slot.state               slots that are not CLAIMED by the worker are not its own
 *   block:   neighbour's node, then node.next              see arena.h
 *
 * The bucket of CPU time cannot be computed and need not be: it fills up again (meter.c).
 */
#ifndef DR_SHMPOOL_SHARED_H
#define DR_SHMPOOL_SHARED_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <drapps/shmpool.h>
#include <drapps/sched.h>

#include "base/ceiling.h"
#include "shmpool/arena.h"

enum {
    DR__SHMPOOL_MAGIC = 0x43524557,
    DR__TIME_BUCKETS = 256,
};

/* Slots.  Told: state, worker, placed, batch, place. */
enum { DR__SLOT_WAITING, DR__SLOT_CLAIMED, DR__SLOT_OVER };

struct dr__slot {
    uint8_t state;
    uint8_t attempts;
    uint8_t placed; /* batch and place are set, for good */
    uint8_t slow;
    uint16_t worker;
    float cost_ns; /* 0: unknown */
    uint32_t batch, place;
};

/* Samples, beyond DR_SHMPOOL_*.  Told, but for DR__TAKEN. */
enum { DR__TAKEN = 254, DR__EMPTY = 255 };

/* Batches.  Told. */
enum { DR__FILLING, DR__COMPLETE, DR__FINISHING, DR__READY, DR__GONE };

struct dr__entry {
    /* the post */
    uint8_t live; /* told; the first to be set last */
    uint8_t keep, whole_only, dropped;
    int32_t worker;
    uint32_t n_slots, min_claim_ns;
    uint64_t seq, tag, group;
    dr_shmpool_block items; /* slots, then the request */
    uint64_t request_bytes;
    uint32_t n_waiting, n_claimed, n_over, n_slow, n_redo, first_waiting; /* derived */
    uint64_t slow_ns, fast_ns;                                            /* derived: predicted cost of what waits */

    /* the batch */
    uint8_t batch; /* told */
    uint8_t failed, finish_attempts;
    uint16_t finisher;
    dr_shmpool_block samples, slab, head;
    uint64_t slab_bytes, head_bytes, opened_ns, ready_ns;
    uint32_t n_taken, n_done; /* derived */
};

/* Aligned so that dr_shmpool_begin does not disturb other workers. */
struct dr__worker {
    _Alignas(64) int32_t pid;
    atomic_uint wake; /* futex */
    uint32_t waits;   /* sleeps on wake, and nobody woke it yet */
    uint32_t dismissed;
    uint8_t held;       /* by the ceiling: it looks again later */
    uint8_t metered;    /* its claim has taken reserved_ns out of the ceiling */
    double reserved_ns; /* 0 without a claim of work */
    uint64_t cpu_ns;    /* CPU time of its process when it last came for a claim; 0: unknown */
    /* From here on written by the worker alone while it lives, which reads it without the lock too. */
    uint8_t kind;      /* of the claim; 0: none */
    uint8_t slow;      /* the claim is a slow slot */
    uint8_t finishing; /* a batch, while it may have a claim of slots too */
    uint8_t warm;      /* this process has made a sample */
    uint32_t entry, first, n, finish_entry;
    atomic_uint at; /* slot of the claim, from 0 */
    atomic_ullong since_ns;
    uint64_t mark_ns; /* end of what was timed last */
    uint64_t claims, samples, busy_ns;
};

/* Times of samples: buckets of a quarter of an octave. */
struct dr__times {
    uint64_t count, sum_ns;
    uint32_t bucket[DR__TIME_BUCKETS];
    uint64_t expected_ns;  /* the median before enough is seen; 0: unknown */
    uint64_t threshold_ns; /* computed; 0: nothing is known */
    double slow_times;     /* of the median: above that a sample is slow; 0: the standard */
};

struct dr__board {
    uint32_t magic;
    uint32_t n_entries, max_workers, max_batches, max_attempts, reorder_window;
    bool in_order, lanes;
    uint64_t map_bytes, entries_at, workers_at; /* from the start of the memory */
    pthread_mutex_t lock;

    uint64_t tail;                   /* told: seq of the next post */
    uint64_t group;                  /* told */
    uint64_t served_group, n_served; /* a hint: of which the main process got the last batch; how many of it */
    uint64_t head, open, fill, take; /* derived: oldest live, not over, with room, not taken */
    uint64_t n_untaken, n_complete, started_slots; /* derived */
    uint64_t n_dropped;                            /* derived */
    uint64_t taken_ns, taken_bytes;                /* the main process's last take: when, and the size of its slab, */
    dr_shmpool_block taken_slab;                   /* which is this; 0: the main process let go of it */
    uint64_t hold_ns;                              /* for how long the main process mostly holds a slab; 0: unknown */
    bool held_back;                                /* a worker found slots, but the window was closed */

    uint32_t window_batches;
    uint64_t window_bytes;
    uint64_t set_threshold_ns;
    struct dr__times times;
    dr__ceiling ceiling; /* of the CPU time of the workers */

    atomic_uint ready; /* futex: the main process waits on it */
    atomic_uint ready_waiters;
    atomic_uint wakes; /* by dr_shmpool_wake */
    atomic_bool closed;

    atomic_ullong wait_ns, step_ns; /* of the consumer */
    atomic_ullong consumer_left_ns; /* with a batch or without; 0: it is here */
    atomic_ullong waited_ns;        /* for a batch that is not there yet; the next line: for those that came */
    atomic_ullong wait_sum_ns, wait_n[DR_SPREAD_BINS];
    uint64_t latency_n[DR_SPREAD_BINS];
    uint64_t taken_samples, latency_ns, slow_ns, n_bad, n_died;
    uint32_t batch_samples; /* of the last one taken */

    dr_shmpool_blocked_time waits[DR_SHMPOOL_MAX_WAITS]; /* hints: not computed again after a death */
    uint64_t n_results, n_batches, n_samples, n_slow_samples, n_redone, n_deaths;
    struct dr__arena arena;
};

/* One in each process (and copied by fork). */
struct dr_shmpool {
    atomic_int refs;
    int fd;
    char *base;
    struct dr__board *board;
    struct dr__entry *entries;
    struct dr__worker *workers;
};

/* --- task_board.c --- */

void dr__shmpool_lock(dr_shmpool *c);
void dr__shmpool_unlock(dr_shmpool *c);

/* Computes the derived fields; frees what is over. */
void dr__repair(dr_shmpool *c);

/* Whom to wake once the lock is free. */
struct dr__wakes {
    uint64_t workers[4]; /* bits */
    bool main;
};

void dr__wake_some(dr_shmpool *c, struct dr__wakes *wakes, uint32_t n); /* of those that wait */
void dr__wake_worker(dr_shmpool *c, struct dr__wakes *wakes, uint32_t worker);
void dr__wake_main(dr_shmpool *c, struct dr__wakes *wakes);

/* Unlocks, then wakes. */
void dr__shmpool_unlock_wake(dr_shmpool *c, const struct dr__wakes *wakes);

/* Unlocks, then wakes everybody, whether they are known to wait or not. */
void dr__shmpool_unlock_wake_all(dr_shmpool *c);

/* When a wait of so many milliseconds ends; negative: never. */
uint64_t dr__deadline(int timeout_ms);

/* Sleeps until *word is not `seen`, a signal came, or some time is over: the caller looks again.  False, and no sleep:
 * the deadline is over. */
bool dr__sleep(atomic_uint *word, unsigned seen, uint64_t deadline);

static inline bool dr__is_worker(const dr_shmpool *c, int worker)
{
    return worker >= 0 && worker < (int)c->board->max_workers;
}

/* --- entry.c: entries, with the lock held --- */

static inline struct dr__entry *dr__entry_of(const dr_shmpool *c, uint64_t seq)
{
    return &c->entries[seq % c->board->n_entries];
}

struct dr__slot *dr__slots(const dr_shmpool *c, const struct dr__entry *e);
dr_shmpool_sample *dr__samples(const dr_shmpool *c, const struct dr__entry *e);
uint64_t dr__batch_tag(const dr_shmpool *c, const struct dr__entry *e); /* out of order: of its first sample */
const void *dr__request(const dr_shmpool *c, const struct dr__entry *e);

/* Gives a slot its place in a batch.  begun_ns: when its sample was begun; 0: now. */
void dr__slot_place(dr_shmpool *c, struct dr__entry *e, uint32_t slot, uint64_t begun_ns);

/* The slot is over: what became of its sample.  Takes the block. */
struct dr__sample_end {
    uint8_t state; /* DR_SHMPOOL_* */
    uint64_t ns, begun_ns;
    dr_shmpool_block block;
};

void dr__slot_over(dr_shmpool *c, struct dr__entry *e, uint32_t slot, const struct dr__sample_end *end);

/* Lets go of what an entry does not need any more. */
void dr__entry_sweep(dr_shmpool *c, struct dr__entry *e);

/* Blocks of an entry that is over; nothing where they are freed already. */
void dr__entry_free(dr_shmpool *c, struct dr__entry *e);

/* The batch is ready with what is in its head fields; blocks of good samples are freed. */
void dr__batch_ready(dr_shmpool *c, struct dr__entry *e);

/* Moves on the hints head, open, fill and take. */
void dr__board_advance(dr_shmpool *c);

/* The slot's cost, or what samples took on average; 0: nothing is known. */
uint64_t dr__slot_cost(const dr_shmpool *c, const struct dr__slot *s);

/* Counts a slot that waits in (+1) or out (-1). */
void dr__count_waiting(const dr_shmpool *c, struct dr__entry *e, uint32_t slot, int sign);

/* --- choose.c: what a worker does next --- */

struct dr__choice {
    int kind; /* 0: nothing */
    struct dr__entry *entry;
    uint32_t first, n;
};

void dr__choose(dr_shmpool *c, int worker, struct dr__choice *out);

/* --- shmpool_claim.c --- */

/* Whether slots i to i + n - 1 are some of the worker's claim. */
dr_status dr__check_claim(const dr_shmpool *c, int worker, uint32_t i, uint32_t n, dr_error *err);

/* --- meter.c: CPU time of the workers under the ceiling; the first three with the lock held --- */

/* A worker comes for a claim and its process has used so much: the claim before is settled.  0: there is no ceiling. */
void dr__meter_read(dr_shmpool *c, int worker, uint64_t cpu_ns);

/* A worker wants to begin a claim of work.  True: it may, and has a reservation until dr__meter_read.  False: it should
 * look again at *until_ns. */
bool dr__meter_begin(dr_shmpool *c, int worker, uint64_t now_ns, uint64_t *until_ns);

/* The worker is gone: what it had reserved goes back. */
void dr__meter_forget(dr_shmpool *c, int worker);

double dr__shmpool_ceiling(dr_shmpool *c);

/* --- place.c --- */

/* The main process lets go of the slab that it took last, or takes the next one. */
void dr__slab_was_held(struct dr__board *b);

/* --- times.c --- */

void dr__times_add(struct dr__times *t, uint64_t ns, uint32_t n);
uint64_t dr__times_mean(const struct dr__times *t);

/* The median of what will be seen, as far as that is known beforehand. */
void dr__times_expect(struct dr__times *t, uint64_t ns);

/* From where on a sample is slow, as a multiple of the median. */
void dr__times_set_slow(struct dr__times *t, double times);
double dr__times_slow(const struct dr__times *t);

/* Above it, a sample is slow; UINT64_MAX: not known yet. */
uint64_t dr__threshold(const struct dr__board *b);

/* --- shmpool_flow.c --- */

void dr__consumer_comes(dr_shmpool *c, uint64_t now);
void dr__consumer_leaves(dr_shmpool *c, uint64_t came_ns, dr_status with); /* with: what it got */

/* --- post.c --- */

void dr__shmpool_set_bytes(dr_shmpool *c, uint64_t bytes); /* of the window */
void dr__shmpool_set_lane(dr_shmpool *c, double times);    /* of the median: from there on a sample is slow */
uint64_t dr__shmpool_bytes(dr_shmpool *c);
double dr__shmpool_lane(dr_shmpool *c);

/* Finds zeros. */
void dr__shmpool_spreads(dr_shmpool *c, dr_spread spreads[DR_N_SPREADS]);

/* --- for tests --- */

/* A point between two told fields.  In tests the process may kill itself at the n-th. */
void dr__step(void);
void dr__step_die_at(long n); /* 0: never */

#endif
