/* shmpool.h: worker processes that make batches together, in memory that they share with the process that trains.
 *
 * The owner (the process that trains) posts batches of slots; workers (other processes) claim slots, make samples, put
 * them into shared blocks, and whoever completes a batch finishes it.  No thread of the owner takes part, so workers go
 * on while the owner computes:
 *
 *   owner                             shared memory                          worker
 *   dr_shmpool_post ───────────────►  batch: slots, request                ◄───  dr_shmpool_claim_next
 *                                     block: room for a sample or a batch  ◄───  dr_shmpool_block_new, dr_shmpool_place
 *   dr_shmpool_next ◄───────────────  batch ready                          ◄───  dr_shmpool_done, dr_shmpool_finish
 *   dr_shmpool_block_release ──────►  block free, its pages stay warm
 *
 * What is in a request, a sample and a result is the caller's business: bytes here.
 *
 * A worker may die at any instruction.  The lock is robust, waiting leaves nothing behind, and dr_shmpool_reap gives
 * the slots that the dead worker had claimed to the others.  Nothing has a name in a file system: when the last process
 * is gone, so is the memory.
 *
 * All processes of a shmpool must be in one PID namespace: process numbers say whose a block is.
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
    int max_workers;        /* worker numbers are 0 .. max_workers - 1; at most 256 */
    int max_batches;        /* posted and not yet taken by the owner; at most 1024 */
    uint64_t address_space; /* of the blocks; memory is used as it is touched.  0: twice what the machine has,
                               or as much of that as can be mapped */
    uint64_t keep_free;     /* bytes of free blocks whose pages stay warm; what is above goes back to the system.
                               0: what the last batches needed at once and a quarter more; at least twice the largest
                               batch so far, but of that no more than 32 MB */
    bool in_order;      /* true: sample s of a batch goes to slot s of it, batches are taken in the order of posting.
                           false: a sample goes to the batch that is being filled when it is done, ready batches are
                           taken as they come.  Groups of one kind (below) only mix among themselves */
    bool lanes;         /* slow samples are started early by a part of the workers (below) */
    int max_attempts;   /* a slot whose worker died so often is failed (DR_SHMPOOL_DIED); 0: 3 */
    int reorder_window; /* out of order, a post is claimed only when the posts up to so many before it are over: so far
                      may a sample be from its turn; at most 1024; 0: 32 */
} dr_shmpool_options;

DR_API void dr_shmpool_defaults(dr_shmpool_options *options);

/* The owner makes the memory and has it mapped.  A child made by fork has the mapping too and may use the shmpool as a
 * worker; a process that was started otherwise gets the descriptor and joins. */
DR_API dr_status dr_shmpool_open(const dr_shmpool_options *options, dr_shmpool **out, dr_error *err);
DR_API int dr_shmpool_fd(const dr_shmpool *shmpool); /* -1 after dr_shmpool_close_fd */
DR_API void
dr_shmpool_close_fd(dr_shmpool *shmpool); /* when nobody joins any more: blocks that are held keep the memory alone */
DR_API dr_status dr_shmpool_join(int fd, dr_shmpool **out, dr_error *err); /* the descriptor stays the caller's */

/* Counted: dr_shmpool_open and dr_shmpool_join give one reference; a holder of a block takes one more, so that the
 * memory is there until the last block was let go.  Pure C; safe in a forked child, where it only unmaps. */
DR_API dr_shmpool *dr_shmpool_ref(dr_shmpool *shmpool);
DR_API void dr_shmpool_unref(dr_shmpool **shmpool);

/* No more posts; every worker is told to leave.  Results and blocks stay. */
DR_API void dr_shmpool_close(dr_shmpool *shmpool);

/* --- the owner --- */

typedef struct dr_shmpool_post_options {
    size_t size;
    uint64_t tag;        /* the caller's number for the batch; comes back with the result */
    uint32_t n_slots;    /* 1 or more */
    const void *request; /* copied; workers see it with each claim */
    size_t request_bytes;
    const float *cost_ns;  /* predicted cost of each slot, n_slots of them; 0: unknown.  NULL: all unknown */
    int worker;            /* only this worker may claim it, in the order of posting; -1: any */
    uint32_t min_claim_ns; /* a claim takes as many slots as are predicted to take so long (at least one), so that cheap
                              samples are not handed over one by one; UINT32_MAX: always the whole batch */
    bool keep; /* slots keep to this batch even when the shmpool is not in order: a batch whose samples belong
                  together.  Always so when the whole batch is claimed at once */
} dr_shmpool_post_options;

/* DR_AGAIN: max_batches are under way. */
DR_API dr_status dr_shmpool_post(dr_shmpool *shmpool, const dr_shmpool_post_options *options, dr_error *err);

/* No further batch is posted in this epoch: out of order, samples posted before it do not mix with those posted later.
 * Batches have the sizes that were posted, in the order of posting, so only an epoch's last one is smaller. */
DR_API void dr_shmpool_post_end(dr_shmpool *shmpool);

enum {
    DR_SHMPOOL_OK = 0,
    DR_SHMPOOL_BAD = 1,   /* the worker said that the sample could not be made: dr_shmpool_done with `bad` */
    DR_SHMPOOL_DIED = 2,  /* max_attempts workers died at it */
    DR_SHMPOOL_STUCK = 3, /* given up by dr_shmpool_give_up */
};

/* What became of one sample. */
typedef struct dr_shmpool_sample {
    uint64_t tag;    /* the batch it was posted with, */
    uint32_t slot;   /* and its place there */
    uint16_t worker; /* who made it last */
    uint8_t state;   /* DR_SHMPOOL_* */
    uint8_t attempts;
    uint64_t ns;            /* the time it took; 0: unknown (a claim of several samples gives each its part) */
    uint64_t end_ns;        /* monotonic: when it was done */
    dr_shmpool_block block; /* what the worker put there for it: a sample, or (DR_SHMPOOL_BAD) its error; 0: nothing */
} dr_shmpool_sample;

/* A batch that is ready.  The three blocks are the caller's, to be released, and those of bad samples. */
typedef struct dr_shmpool_result {
    uint64_t tag;          /* in order: of the post.  Out of order: of the first sample's post */
    uint64_t number;       /* counts results from 0 */
    uint32_t n_samples;    /* slots in use */
    uint16_t worker;       /* who finished it */
    bool failed;           /* the finisher reported an error: head says which */
    dr_shmpool_block head; /* from dr_shmpool_finish */
    size_t head_bytes;
    dr_shmpool_block slab;        /* the batch's common block, 0 without */
    uint64_t opened_ns, ready_ns; /* its first sample was begun; dr_shmpool_finish was called */
    const dr_shmpool_sample
        *samples;           /* one a slot.  Blocks of bad samples are the caller's; those of good ones were freed */
    dr_shmpool_block items; /* where the samples are: they are valid until it is released */
} dr_shmpool_result;

/* The next ready batch.  timeout_ms: -1 waits for ever; DR_AGAIN after that time, or when dr_shmpool_wake was called;
 * DR_END when nothing is posted that was not taken.  Any number of threads may call it. */
DR_API dr_status dr_shmpool_next(dr_shmpool *shmpool, int timeout_ms, dr_shmpool_result *out, dr_error *err);

/* Wakes every thread of the owner that waits in dr_shmpool_next. */
DR_API void dr_shmpool_wake(dr_shmpool *shmpool);

/* Gives up everything that is posted: what is claimed is finished by the workers and thrown away.  Waits up to
 * timeout_ms for that; DR_AGAIN: some worker is still at it (see dr_shmpool_worker_at). */
DR_API dr_status dr_shmpool_clear(dr_shmpool *shmpool, int timeout_ms, dr_error *err);

/* Two limits, either of which closes the window: no further batch is begun while `batches` are ready or being made, nor
 * while `bytes` of blocks are in use (what was taken by dr_shmpool_next does not count).  At least one batch always
 * goes on.  0: no limit of that kind.  bytes UINT64_MAX: as it is (a controller may have turned it:
 * shmpool_controller.h). */
DR_API void dr_shmpool_set_window(dr_shmpool *shmpool, uint32_t batches, uint64_t bytes);

/* CPUs that the workers may use together, on average over some claims; 0: no ceiling.  What counts is the CPU time of
 * the worker processes, with all their threads, from their first claim on.  While it is used up, workers wait in
 * dr_shmpool_claim_next before they make further samples; what is begun is made to its end, batches whose samples are
 * there are finished, and what that took is made up for later.  May be changed at any time (a controller does:
 * shmpool_controller.h).  DR_ERR_ARG: it is below 0, or no number. */
DR_API dr_status dr_shmpool_set_ceiling(dr_shmpool *shmpool, double cpus, dr_error *err);

/* --- workers --- */

enum {
    DR_SHMPOOL_WORK = 1,   /* make the samples of some slots */
    DR_SHMPOOL_FINISH = 2, /* all samples of a batch are there: make the result of them */
    DR_SHMPOOL_LEAVE = 3,  /* end the process: dismissed, or the shmpool is closed */
};

typedef struct dr_shmpool_claim {
    int kind;       /* DR_SHMPOOL_WORK, DR_SHMPOOL_FINISH, DR_SHMPOOL_LEAVE */
    uint32_t batch; /* a handle for the calls below */
    uint64_t tag;
    uint32_t first, n;   /* work: slots of the batch it was posted with */
    uint32_t n_slots;    /* of the batch */
    bool whole;          /* work: the claim is the whole batch; the caller may finish it without another claim */
    const void *request; /* of the batch it was posted with; valid until the claim is over */
    size_t request_bytes;
    dr_shmpool_block slab;            /* finish: the batch's common block */
    const dr_shmpool_sample *samples; /* finish: n_slots of them */
} dr_shmpool_claim;

/* A worker says that it is there (again); pid: for dr_shmpool_worker_at. */
DR_API dr_status dr_shmpool_attach(dr_shmpool *shmpool, int worker, int pid, dr_error *err);

/* The next thing to do; DR_AGAIN after timeout_ms.  A claim is over when all its slots are done, or it is finished.  To
 * be called in the worker's process, whose CPU time counts (dr_shmpool_set_ceiling). */
DR_API dr_status dr_shmpool_claim_next(dr_shmpool *shmpool, int worker, int timeout_ms, dr_shmpool_claim *out,
                                       dr_error *err);

/* The worker begins slot first + i of its claim: one store, no lock.  It is what others see of it.  Nothing happens
 * when the claim has no such slot. */
DR_API void dr_shmpool_begin(dr_shmpool *shmpool, int worker, uint32_t i);

/* Where slot first + i of the claim goes.  *slab: the batch's common block, made now when slab_bytes is not 0 and it
 * has none yet (all callers for a batch must ask for the same number of bytes, else *slab is 0 for the later one).
 * A large one may wait some milliseconds for the block that the owner is about to release. */
DR_API dr_status dr_shmpool_place(dr_shmpool *shmpool, int worker, uint32_t i, size_t slab_bytes, uint32_t *slot,
                                  dr_shmpool_block *slab, dr_error *err);

/* Slots first + i .. first + i + n - 1 are done; those that were so before stay as they are.  block: for one slot
 * (n = 1), what was put there beside the slab; it belongs to the batch now.  bad: it is the error of a sample that
 * could not be made.  *finish: the batch is complete and this worker should finish it at once, as if it had claimed it:
 * *out is filled. */
DR_API dr_status dr_shmpool_done(dr_shmpool *shmpool, int worker, uint32_t i, uint32_t n, dr_shmpool_block block,
                                 bool bad, bool *finish, dr_shmpool_claim *out, dr_error *err);

/* The result of a batch that this worker claimed to finish, or claimed whole.  The samples' blocks are freed, but for
 * those of bad samples; the head belongs to the batch. */
DR_API dr_status dr_shmpool_finish(dr_shmpool *shmpool, int worker, uint32_t batch, dr_shmpool_block head,
                                   size_t head_bytes, bool failed, dr_error *err);

/* --- looking after workers: by the owner, or by whoever started them ---
 *
 * Calls without a status do nothing for a number that is no worker's. */

/* What a worker does now. */
typedef struct dr_shmpool_at {
    int pid;  /* 0: never attached, or buried */
    int kind; /* DR_SHMPOOL_WORK, DR_SHMPOOL_FINISH, or 0: waits */
    uint64_t tag;
    uint32_t slot;
    uint64_t since_ns;                 /* monotonic; when it began that */
    uint64_t claims, samples, busy_ns; /* totals */
} dr_shmpool_at;

DR_API dr_status dr_shmpool_worker_at(dr_shmpool *shmpool, int worker, dr_shmpool_at *out, dr_error *err);

/* The process of a worker is gone: what it had claimed goes to the others, blocks that it had not handed over are
 * freed.  redone: tags and slots that are to be done again, up to `room` of them; returns how many there are. */
typedef struct dr_shmpool_redo {
    uint64_t tag;
    uint32_t slot;
} dr_shmpool_redo;
DR_API uint32_t dr_shmpool_reap(dr_shmpool *shmpool, int worker, dr_shmpool_redo *redone, uint32_t room);

/* The slot that a worker is at is given up (DR_SHMPOOL_STUCK) whatever the worker may still do: to be called after its
 * process was ended and before dr_shmpool_reap. */
DR_API void dr_shmpool_give_up(dr_shmpool *shmpool, int worker);

/* Asks a worker to leave at the end of its claim, or once it is attached; holds until it is buried. */
DR_API void dr_shmpool_dismiss(dr_shmpool *shmpool, int worker);

/* --- blocks --- */

/* A new block, 64-byte aligned, warm where one was freed before.  worker: who has it until it is handed over (-1: the
 * owner). */
DR_API dr_status dr_shmpool_block_new(dr_shmpool *shmpool, int worker, size_t bytes, dr_shmpool_block *out,
                                      dr_error *err);
DR_API void *dr_shmpool_block_data(const dr_shmpool *shmpool, dr_shmpool_block block);
DR_API size_t dr_shmpool_block_bytes(const dr_shmpool *shmpool, dr_shmpool_block block);

/* Pure C: needs no lock of any language; does nothing in a process that forked after it got the block. */
DR_API void dr_shmpool_block_release(dr_shmpool *shmpool, dr_shmpool_block block);

/* --- lanes ---
 *
 * A slot is slow when its predicted cost is above the threshold, and while it runs, when it has run longer than that.
 * With `lanes`, workers at slow slots are limited to the slow samples' part of the predicted work, at least one and
 * never all while there are fast slots to claim; a worker that finds no fast slot helps with the slow ones.  Slow slots
 * are claimed one at a time, ahead of their turn: in order, those of the oldest batch that has some, the longest first;
 * out of order, the longest of all, but first those that are half of reorder_window late.  In order, a worker that is
 * alone makes one batch after the other.  Out of order, as long as the owner has had fewer than four batches of a group
 * and there is none for it to take, the shortest slots come first, where costs are known. */
DR_API void dr_shmpool_set_threshold(dr_shmpool *shmpool, uint64_t slow_ns); /* 0: by itself, from the times seen */

/* What half of the samples take at most, where that is known from earlier: before enough times are seen, a multiple of
 * it is the threshold.  0: unknown; then no slot is slow until enough is seen.  Slots that are posted already stay as
 * they are. */
DR_API void dr_shmpool_expect(dr_shmpool *shmpool, uint64_t median_ns);

/* Counters since the shmpool was opened, as JSON text (free with dr_text_free): batches, samples, slow_samples, redone,
 * workers, slow_workers, threshold_ns, mean_ns, bytes (in use), peak_bytes, free_bytes. */
DR_API dr_status dr_shmpool_stats(dr_shmpool *shmpool, char **text, dr_error *err);

/* --- where workers wait --- */

enum { DR_SHMPOOL_WHERE = 96, DR_SHMPOOL_PLACES = 8 };

typedef struct dr_shmpool_place_waited {
    char where[DR_SHMPOOL_WHERE]; /* a function, and where it stands: "Slow.__call__ (train.py:12)" */
    uint64_t ns;                  /* for which code there was blocked, of what was looked at */
} dr_shmpool_place_waited;

/* A worker looked at some of its samples: their code was blocked in that function for so long, neither on a CPU nor in
 * line for one.  A longer text is cut.  Where there are many places, those with the longest waits are kept. */
DR_API void dr_shmpool_waited(dr_shmpool *shmpool, const char *where, uint64_t ns);

/* These places, the longest wait first; returns how many. */
DR_API size_t dr_shmpool_waits(dr_shmpool *shmpool, dr_shmpool_place_waited out[DR_SHMPOOL_PLACES]);

#ifdef __cplusplus
}
#endif
#endif
