/* shmpool.h: a task board and blocks in shared memory, by which worker processes make batches for a main process.
 *
 * The main process posts batches of slots.  Workers (other processes) claim slots, make samples and put them into
 * shared blocks; the worker that completes a batch finishes it.  No thread of the main process takes part, so workers
 * continue while the main process computes:
 *
 *     main process                    shared memory (one memfd)              worker w
 *
 *     dr_shmpool_post ────────────►   batch: slots, request   ────────────►  dr_shmpool_claim_next
 *                                     block: a sample,        ◄────────────  dr_shmpool_place, dr_shmpool_block_new
 *                                     or a batch's slab       ◄────────────  dr_shmpool_done
 *     dr_shmpool_next  ◄───────────   batch ready             ◄────────────  dr_shmpool_finish
 *     dr_shmpool_block_release ───►   block free, its pages stay warm
 *
 * The content of requests, samples and results is up to the caller: here they are bytes.
 *
 * A worker may die at any instruction.  The lock is robust, waiting leaves nothing behind, and dr_shmpool_reap returns
 * the slots that a dead worker had claimed to the others.  Nothing has a name in a file system: the memory is gone with
 * the last process.
 *
 * All processes of a shmpool must be in one PID namespace: process numbers say who holds a block.
 *
 * Threads: all calls may be made from any thread of their process, unless noted.  The calls of one worker number must
 * come from one thread at a time.
 */
#ifndef DRAPPS_SHMPOOL_H
#define DRAPPS_SHMPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drapps/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dr_shmpool dr_shmpool;

/* A piece of shared memory: the same number in every process.  0: none. */
typedef uint64_t dr_shmpool_block;

typedef struct dr_shmpool_options {
    size_t size;            /* sizeof(dr_shmpool_options), so that it can grow */
    int max_workers;        /* worker numbers are 0 to max_workers - 1; at most 256 */
    int max_batches;        /* posted and not yet taken; at most 1024 */
    uint64_t address_space; /* of the blocks, in bytes; memory is used as it is touched.  0: twice what the machine has,
                               or as much of that as can be mapped */
    uint64_t keep_free;     /* bytes of free blocks whose pages stay warm; more goes back to the system.  0: what the
                               last batches needed at once and a quarter more; at least twice the largest batch so far,
                               but of that no more than 32 MB */
    bool in_order;          /* true: sample s of a batch goes to slot s of it, and batches are taken in the order of
                               posting.  false: a sample goes to the batch that is being filled when it is done, and
                               batches are taken as they become ready.  Samples do not mix across
                               dr_shmpool_post_end, nor with batches of `keep` */
    bool lanes;             /* slow samples are started early by a part of the workers; see "lanes" below */
    int max_attempts;       /* a slot at which this many workers died fails (DR_SHMPOOL_DIED); 0: 3 */
    int reorder_window;     /* out of order, a batch is claimed only while at most this many of the batches posted
                               before it are unfinished, which bounds how late a sample can be; at most 1024;
                               0: 32 */
} dr_shmpool_options;

/**
 * Set all options to their defaults.
 *
 * @param options The options to fill, `size` included.
 */
DR_API void dr_shmpool_defaults(dr_shmpool_options *options);

/**
 * Make a shmpool and map its memory.  The caller is its main process.  A child made by fork has the mapping, too, and
 * may use the shmpool as a worker; a process that was started otherwise calls dr_shmpool_join.
 *
 * @param options The options, from dr_shmpool_defaults.
 * @param out     The shmpool.  The caller owns one reference.
 * @param err     The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG for an option out of its range; DR_ERR_NOMEM or DR_ERR_IO where memory cannot be made or
 *         mapped; DR_ERR_UNSUPPORTED where the system has no robust locks.
 */
DR_API dr_status dr_shmpool_open(const dr_shmpool_options *options, dr_shmpool **out, dr_error *err);

/**
 * Get the descriptor of the memory, for dr_shmpool_join in another process.
 *
 * @param shmpool The shmpool.
 *
 * @return The descriptor, which stays the shmpool's; -1 after dr_shmpool_close_fd.
 */
DR_API int dr_shmpool_fd(const dr_shmpool *shmpool);

/**
 * Close the descriptor.  The memory stays mapped.  Call it once no further process will join: a block that is
 * held for long then holds no descriptor.
 *
 * @param shmpool The shmpool.
 */
DR_API void dr_shmpool_close_fd(dr_shmpool *shmpool);

/**
 * Map a shmpool in a process that was not forked from its main process.
 *
 * @param fd  The descriptor.  It stays the caller's.
 * @param out The shmpool.  The caller owns one reference.
 * @param err The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG for a closed descriptor; DR_ERR_FORMAT where it is no shmpool of this version; DR_ERR_NOMEM
 *         or DR_ERR_IO.
 */
DR_API dr_status dr_shmpool_join(int fd, dr_shmpool **out, dr_error *err);

/**
 * Take a further reference.  A holder of a block takes one, so that the memory stays until the last block is released.
 *
 * @param shmpool The shmpool.
 *
 * @return The shmpool.
 */
DR_API dr_shmpool *dr_shmpool_ref(dr_shmpool *shmpool);

/**
 * Drop a reference; the last one unmaps the memory of this process.  Safe in a forked child.
 *
 * @param shmpool Set to NULL.  NULL, or a pointer to NULL, is fine.
 */
DR_API void dr_shmpool_unref(dr_shmpool **shmpool);

/**
 * Refuse further posts, and tell every worker to leave.  Results and blocks stay.
 *
 * @param shmpool The shmpool.
 */
DR_API void dr_shmpool_close(dr_shmpool *shmpool);

/* --- the main process --- */

typedef struct dr_shmpool_post_options {
    size_t size;         /* sizeof(dr_shmpool_post_options) */
    uint64_t tag;        /* the caller's number for the batch; comes back with the result */
    uint32_t n_slots;    /* 1 or more */
    const void *request; /* copied; workers see it with each claim */
    size_t request_bytes;
    const float *cost_ns;  /* predicted cost of each slot, n_slots of them; 0: unknown.  NULL: all unknown */
    int worker;            /* only this worker may claim the batch, in the order of posting; -1: any worker */
    uint32_t min_claim_ns; /* a claim takes as many slots as are predicted to take so long, at least one, so that cheap
                              samples are not handed over one by one; UINT32_MAX: always the whole batch */
    bool keep;             /* slots stay in this batch even out of order.  Always so for batches that are claimed
                              whole */
} dr_shmpool_post_options;

/**
 * Post a batch.
 *
 * @param shmpool The shmpool.
 * @param options The batch.  Borrowed during the call.
 * @param err     The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_AGAIN when max_batches are posted and not taken; DR_ERR_ARG; DR_ERR_CANCELLED after
 *         dr_shmpool_close; DR_ERR_NOMEM where the address space is used up.
 */
DR_API dr_status dr_shmpool_post(dr_shmpool *shmpool, const dr_shmpool_post_options *options, dr_error *err);

/**
 * End the posts of an epoch: out of order, samples posted before this call do not mix with those posted later.  Batches
 * have the sizes that were posted, in the order of posting, so that only the last one of an epoch is smaller.
 *
 * @param shmpool The shmpool.
 */
DR_API void dr_shmpool_post_end(dr_shmpool *shmpool);

/* What became of a sample. */
enum {
    DR_SHMPOOL_OK = 0,
    DR_SHMPOOL_BAD = 1,   /* the worker could not make it: dr_shmpool_done with `bad` */
    DR_SHMPOOL_DIED = 2,  /* max_attempts workers died at it */
    DR_SHMPOOL_STUCK = 3, /* given up by dr_shmpool_give_up */
};

typedef struct dr_shmpool_sample {
    uint64_t tag;           /* of the batch it was posted with, */
    uint32_t slot;          /* and its slot there */
    uint16_t worker;        /* that made it last */
    uint8_t state;          /* DR_SHMPOOL_OK, ... */
    uint8_t attempts;       /* how often a worker began it */
    uint64_t ns;            /* the time it took; 0: unknown.  A claim of several samples gives each its part */
    uint64_t end_ns;        /* monotonic: when it was done */
    dr_shmpool_block block; /* what the worker put there: a sample, or (DR_SHMPOOL_BAD) its error; 0: nothing */
} dr_shmpool_sample;

/* A batch that is ready.  The caller owns head, slab, items and the blocks of bad samples, and releases them
 * (dr_shmpool_block_release).  Blocks of good samples were freed. */
typedef struct dr_shmpool_result {
    uint64_t tag;          /* in order: of the post.  Out of order: of the first sample's post */
    uint64_t number;       /* counts results from 0 */
    uint32_t n_samples;    /* slots in use */
    uint16_t worker;       /* that finished it */
    bool failed;           /* the worker reported an error, which is in head */
    dr_shmpool_block head; /* from dr_shmpool_finish */
    size_t head_bytes;
    dr_shmpool_block slab;            /* the batch's common block; 0: none */
    uint64_t opened_ns, ready_ns;     /* monotonic: its first sample was begun; dr_shmpool_finish was called */
    const dr_shmpool_sample *samples; /* n_samples of them, in `items`: valid until that is released */
    dr_shmpool_block items;
} dr_shmpool_result;

/**
 * Take the next ready batch.
 *
 * @param shmpool    The shmpool.
 * @param timeout_ms The longest wait; -1: no limit.
 * @param out        The batch.  The caller owns its blocks.
 * @param err        The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_AGAIN after that time, or when dr_shmpool_wake was called; DR_END when every posted batch was
 *         taken.
 */
DR_API dr_status dr_shmpool_next(dr_shmpool *shmpool, int timeout_ms, dr_shmpool_result *out, dr_error *err);

/**
 * Wake every thread of the main process that waits in dr_shmpool_next.
 *
 * @param shmpool The shmpool.
 */
DR_API void dr_shmpool_wake(dr_shmpool *shmpool);

/**
 * Discard everything that is posted.  Workers finish what they have claimed, and it is thrown away.
 *
 * @param shmpool    The shmpool.
 * @param timeout_ms The longest wait for that.
 * @param err        The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_AGAIN while some worker is still busy with it (see dr_shmpool_worker_at).
 */
DR_API dr_status dr_shmpool_clear(dr_shmpool *shmpool, int timeout_ms, dr_error *err);

/**
 * Limit what is begun: no further batch is begun while `batches` are ready or being made, nor while `bytes` of blocks
 * are in use.  What was taken by dr_shmpool_next does not count.  At least one batch always continues.
 *
 * @param shmpool The shmpool.
 * @param batches The limit of batches; 0: none.
 * @param bytes   The limit of bytes; 0: none; UINT64_MAX: as it is (a controller may have set it).
 */
DR_API void dr_shmpool_set_window(dr_shmpool *shmpool, uint32_t batches, uint64_t bytes);

/**
 * Limit the CPUs that the workers use together, on average over some claims.  What counts is the CPU time of the worker
 * processes with all their threads, from their first claim on.  While it is used up, workers wait in
 * dr_shmpool_claim_next before they make further samples.  What is begun is completed, and the excess is
 * deducted later.  May be changed at any time.
 *
 * @param shmpool The shmpool.
 * @param cpus    The limit; 0: none.
 * @param err     The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG for a number below 0, or no number.
 */
DR_API dr_status dr_shmpool_set_ceiling(dr_shmpool *shmpool, double cpus, dr_error *err);

/* --- workers --- */

/* Kinds of claims. */
enum {
    DR_SHMPOOL_WORK = 1,   /* make the samples of some slots */
    DR_SHMPOOL_FINISH = 2, /* all samples of a batch are there: make its result */
    DR_SHMPOOL_LEAVE = 3,  /* end the process: the worker was dismissed, or the shmpool is closed */
};

typedef struct dr_shmpool_claim {
    int kind;            /* DR_SHMPOOL_WORK, ... */
    uint32_t batch;      /* a handle for dr_shmpool_finish */
    uint64_t tag;        /* of the batch */
    uint32_t first, n;   /* work: slots of the batch it was posted with */
    uint32_t n_slots;    /* of the batch */
    bool whole;          /* work: the claim is the whole batch; the caller may finish it without another claim */
    const void *request; /* of the batch it was posted with; borrowed until the claim is over */
    size_t request_bytes;
    dr_shmpool_block slab;            /* finish: the batch's common block; it stays the batch's */
    const dr_shmpool_sample *samples; /* finish: n_slots of them; borrowed until the batch is finished */
} dr_shmpool_claim;

/**
 * Attach a worker, or the replacement of one that was reaped.
 *
 * @param shmpool The shmpool.
 * @param worker  The number of the worker.
 * @param pid     Its process, for dr_shmpool_worker_at.
 * @param err     The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG for a number out of range; DR_ERR_STATE where another process has it and was not reaped.
 */
DR_API dr_status dr_shmpool_attach(dr_shmpool *shmpool, int worker, int pid, dr_error *err);

/**
 * Claim the next thing to do.  A claim is over when all its slots are done, or its batch is finished.  To be called in
 * the worker's process, whose CPU time counts (dr_shmpool_set_ceiling).
 *
 * @param shmpool    The shmpool.
 * @param worker     The number of the worker, which has no claim.
 * @param timeout_ms The longest wait; -1: no limit.
 * @param out        The claim.
 * @param err        The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_AGAIN after that time; DR_ERR_ARG; DR_ERR_STATE where the worker has a claim.
 */
DR_API dr_status dr_shmpool_claim_next(dr_shmpool *shmpool, int worker, int timeout_ms, dr_shmpool_claim *out,
                                       dr_error *err);

/**
 * Say that the worker begins slot first + i of its claim: one store, no lock.  dr_shmpool_worker_at shows it.
 *
 * @param shmpool The shmpool.
 * @param worker  The number of the worker.
 * @param i       The slot, counted from the first of the claim.  Nothing happens when the claim has no such slot.
 */
DR_API void dr_shmpool_begin(dr_shmpool *shmpool, int worker, uint32_t i);

/**
 * Get the slot of a sample in its batch.
 *
 * @param shmpool    The shmpool.
 * @param worker     The number of the worker.
 * @param i          The slot, counted from the first of the claim.
 * @param slab_bytes Not 0: make the batch's common block of this size, if it has none yet.  A large one may wait some
 *                   milliseconds for the block that the main process is about to release.
 * @param slot       The slot in the batch that the sample goes to.
 * @param slab       The batch's common block, which stays the batch's.  0: there is none, or it has another size.
 * @param err        The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_STATE without a claim; DR_ERR_ARG where the claim has no such slot; DR_ERR_NOMEM.
 */
DR_API dr_status dr_shmpool_place(dr_shmpool *shmpool, int worker, uint32_t i, size_t slab_bytes, uint32_t *slot,
                                  dr_shmpool_block *slab, dr_error *err);

/**
 * Hand over n slots of a claim, from first + i on.  Slots that were done before stay as they are.
 *
 * @param shmpool The shmpool.
 * @param worker  The number of the worker.
 * @param i       The first slot, counted from the first of the claim.
 * @param n       How many.
 * @param block   Of one slot (n = 1): what was made beside the slab.  The batch takes it.  0: nothing.
 * @param bad     The block is the error of a sample that could not be made.
 * @param finish  Set to true when the batch is complete and this worker has to finish it now.
 * @param out     Then: the claim, of kind DR_SHMPOOL_FINISH.
 * @param err     The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_STATE without a claim; DR_ERR_ARG where the claim has no such slots, or a block is given for
 *         several.
 */
DR_API dr_status dr_shmpool_done(dr_shmpool *shmpool, int worker, uint32_t i, uint32_t n, dr_shmpool_block block,
                                 bool bad, bool *finish, dr_shmpool_claim *out, dr_error *err);

/**
 * Hand over the result of a batch that this worker claimed to finish, or claimed whole.  Blocks of good samples are
 * freed.
 *
 * @param shmpool    The shmpool.
 * @param worker     The number of the worker.
 * @param batch      The handle from the claim.
 * @param head       The result, or its error.  The batch takes it.  0: none; the slab is the result.
 * @param head_bytes Bytes of the head that are in use.
 * @param failed     The head is an error.
 * @param err        The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_STATE where the worker has no such claim.
 */
DR_API dr_status dr_shmpool_finish(dr_shmpool *shmpool, int worker, uint32_t batch, dr_shmpool_block head,
                                   size_t head_bytes, bool failed, dr_error *err);

/* --- supervising workers: by the main process, or by the process that started them ---
 *
 * Calls without a status do nothing for a number that is no worker's. */

/* What a worker does now. */
typedef struct dr_shmpool_worker_state {
    int pid;                           /* 0: never attached, or reaped */
    int kind;                          /* DR_SHMPOOL_WORK, DR_SHMPOOL_FINISH, or 0: it waits */
    uint64_t tag;                      /* of the batch, */
    uint32_t slot;                     /* and the slot */
    uint64_t since_ns;                 /* monotonic: when it began that */
    uint64_t claims, samples, busy_ns; /* totals */
} dr_shmpool_worker_state;

/**
 * Get what a worker does now.
 *
 * @param shmpool The shmpool.
 * @param worker  The number of the worker.
 * @param out     The state, copied without a lock: its parts may be of different moments.
 * @param err     The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG for a number out of range.
 */
DR_API dr_status dr_shmpool_worker_at(dr_shmpool *shmpool, int worker, dr_shmpool_worker_state *out, dr_error *err);

/* A slot that is made again. */
typedef struct dr_shmpool_redo {
    uint64_t tag;
    uint32_t slot;
} dr_shmpool_redo;

/**
 * Reap a worker whose process is gone: its claimed slots go to the others, and blocks that it had not handed over are
 * freed.
 *
 * @param shmpool The shmpool.
 * @param worker  The number of the worker.
 * @param redone  The slots that are made again, up to `room` of them.
 * @param room    The size of `redone`.
 *
 * @return How many slots are made again; may be more than `room`.
 */
DR_API uint32_t dr_shmpool_reap(dr_shmpool *shmpool, int worker, dr_shmpool_redo *redone, uint32_t room);

/**
 * Give up the slot that a worker is at (DR_SHMPOOL_STUCK).  To be called after its process was ended and before
 * dr_shmpool_reap.
 *
 * @param shmpool The shmpool.
 * @param worker  The number of the worker.
 */
DR_API void dr_shmpool_give_up(dr_shmpool *shmpool, int worker);

/**
 * Ask a worker to leave at the end of its claim, or once it is attached.  Holds until it is reaped.
 *
 * @param shmpool The shmpool.
 * @param worker  The number of the worker.
 */
DR_API void dr_shmpool_dismiss(dr_shmpool *shmpool, int worker);

/* --- blocks --- */

/**
 * Make a block, 64-byte aligned; warm where one was freed before.
 *
 * @param shmpool The shmpool.
 * @param worker  The worker that owns it until it is handed over; -1: the main process.
 * @param bytes   Its size.
 * @param out     The block.
 * @param err     The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG for a number out of range; DR_ERR_NOMEM where the address space is used up.
 */
DR_API dr_status dr_shmpool_block_new(dr_shmpool *shmpool, int worker, size_t bytes, dr_shmpool_block *out,
                                      dr_error *err);

/**
 * Get the memory of a block.
 *
 * @param shmpool The shmpool.
 * @param block   The block.
 *
 * @return Where the block is mapped in this process.  Borrowed until it is released.
 */
DR_API void *dr_shmpool_block_data(const dr_shmpool *shmpool, dr_shmpool_block block);

/**
 * Get the size of a block.
 *
 * @param shmpool The shmpool.
 * @param block   The block.
 *
 * @return The size that the block was made with.
 */
DR_API size_t dr_shmpool_block_bytes(const dr_shmpool *shmpool, dr_shmpool_block block);

/**
 * Release a block.  Needs no lock of any language.  Does nothing for block 0, and in a process that forked after it got
 * the block.
 *
 * @param shmpool The shmpool.
 * @param block   The block.
 */
DR_API void dr_shmpool_block_release(dr_shmpool *shmpool, dr_shmpool_block block);

/* --- lanes ---
 *
 * A slot is slow when its predicted cost is above the threshold, and while it runs, when it has run longer than that.
 * With `lanes`, workers at slow slots are limited to the slow samples' part of the predicted work: at least one, and
 * never all while there are fast slots to claim.  A worker that finds no fast slot helps with the slow ones.
 *
 * Slow slots are claimed one at a time, before their turn: in order, those of the oldest batch that has some, the
 * longest first; out of order, the longest of all, but first those that are late by half of reorder_window.  In order,
 * a worker that is alone makes one batch after the other.  Out of order, while the main process has had fewer than four
 * batches of a group and none is ready, the shortest slots come first, where costs are known. */

/**
 * Set from which cost on a sample is slow.
 *
 * @param shmpool The shmpool.
 * @param slow_ns The threshold; 0: derived from the times seen.
 */
DR_API void dr_shmpool_set_threshold(dr_shmpool *shmpool, uint64_t slow_ns);

/**
 * Set the median cost of samples, known from an earlier run.  Before enough times are seen, a multiple of it is the
 * threshold.  Slots that are posted already stay as they are.
 *
 * @param shmpool   The shmpool.
 * @param median_ns The median; 0: unknown.  Then no slot is slow until enough times are seen.
 */
DR_API void dr_shmpool_expect(dr_shmpool *shmpool, uint64_t median_ns);

/**
 * Get counters since the shmpool was opened, as JSON: batches, samples, slow_samples, redone, workers, slow_workers,
 * threshold_ns, mean_ns, bytes (in use), peak_bytes, free_bytes.
 *
 * @param shmpool The shmpool.
 * @param text    The text.  The caller owns it (dr_text_free).
 * @param err     The reason of a failure.  May be NULL.
 *
 * @return DR_OK or DR_ERR_NOMEM.
 */
DR_API dr_status dr_shmpool_stats(dr_shmpool *shmpool, char **text, dr_error *err);

/* --- where the code of workers waits --- */

enum { DR_SHMPOOL_WHERE_BYTES = 96, DR_SHMPOOL_MAX_WAITS = 8 };

typedef struct dr_shmpool_blocked_time {
    char where[DR_SHMPOOL_WHERE_BYTES]; /* a function and its place: "Slow.__call__ (train.py:12)" */
    uint64_t ns;                        /* for which its code was blocked, in the samples that were profiled */
} dr_shmpool_blocked_time;

/**
 * Report that a worker's code was blocked: neither on a CPU nor in line for one.  Where there are many functions, those
 * with the longest waits are kept.
 *
 * @param shmpool The shmpool.
 * @param where   The function.  Copied; a longer text is cut.
 * @param ns      For how long.
 */
DR_API void dr_shmpool_waited(dr_shmpool *shmpool, const char *where, uint64_t ns);

/**
 * Get where workers waited, the longest wait first.
 *
 * @param shmpool The shmpool.
 * @param out     Filled with up to DR_SHMPOOL_MAX_WAITS functions.
 *
 * @return How many there are.
 */
DR_API size_t dr_shmpool_waits(dr_shmpool *shmpool, dr_shmpool_blocked_time out[DR_SHMPOOL_MAX_WAITS]);

#ifdef __cplusplus
}
#endif
#endif
