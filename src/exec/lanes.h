/* lanes.h: the slow lane: samples that will be slow are parked until a worker may spend the time.
 *
 * Slow samples may occupy a share of the workers: their share of the work, or the knob lane_share.  That is at least
 * one worker, and never all while fast samples can be claimed.  A sample that has run for as long as slow ones do
 * counts as slow.
 *
 * A sample is predicted after it was read and planned.  A slow one runs at once within the share, or if there is no
 * other work.  Otherwise, and if its worker has claimed further samples with it, it is parked with its bytes and the
 * worker goes on.  Workers without other work take parked samples as well, but one worker stays free for the fast
 * samples that the delivery of a ready batch will admit.  Parked samples are taken by batch, oldest first, and within a
 * batch by cost, most expensive first.
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
    bool slow;        /* its lane */
    bool read_failed; /* a reader could not read or keep it: a worker reads it again */
    bool left_out;    /* skipped */
    uint64_t read_ns, run_ns;
    double cost;                   /* predicted, in units; set once planned */
    uint64_t read_at_ns;           /* when reading began */
    int reader;                    /* the thread that read it: worker 1, 2, ...; reader -1, -2, ... */
    uint64_t since_ns;             /* when work began: after reading, or when a worker took it up again */
    uint64_t since_cpu_ns, cpu_ns; /* CPU time of the thread at since_ns, and within run_ns; 0 without a trace */
    /* see cache_stage.h */
    const dr__program *program; /* what runs: the whole program, or its first or second part */
    dr_store_key key;           /* in the store */
    uint64_t head_ns;           /* time of the first part, within run_ns */
    /* see offload_stage.h */
    int cut, asked_cut;             /* where the server stopped, and where it was asked to; 0: as stored */
    bool as_stored;                 /* ask for no ops */
    uint64_t wire_bytes, server_ns; /* what was sent for it, and the server's CPU time; 0: not from a server */
    uint64_t stored_bytes;          /* not cut: those of the sample as it is stored */
    uint64_t unpack_ns;             /* time to check and decompress what was sent */
} dr__job;

typedef struct dr__parked {
    struct dr__parked *next;
    dr__job job;
    double cost;
    dr__record record;
    size_t counted; /* bytes of its record that dr__lanes.bytes includes */
} dr__parked;

/* pool lock, except for atomic fields. */
typedef struct dr__lanes {
    dr__predict predict;
    dr__parked *parked; /* in the order in which workers take them */
    dr__parked *spare;  /* unused entries, which keep the memory of their records */
    size_t bytes;       /* of the records of both lists and of samples read ahead */
    int running;        /* workers at samples that were predicted to be slow */
    atomic_uint_fast64_t slow_samples;
    _Atomic double share;       /* knob lane_share: share of the work for slow samples; 0: their share of the work */
    atomic_int_fast64_t credit; /* with a share: units that slow samples may use; negative: used in advance */
} dr__lanes;

/* Decides about a slow sample that was read and planned.
 *
 * @param more  the worker has claimed further samples.
 * @return true: it is parked, and the bench has another record; false: run it, then call dr__lane_end_slow. */
bool dr__lane_park(struct dr__exec *e, dr__workbench *bench, const dr__job *job, bool more);
void dr__lane_end_slow(struct dr__exec *e);

/* pool lock: takes a parked sample to run, or NULL.
 *
 * @param within_share  true: only within the share of slow samples; false: there is no other work. */
dr__parked *dr__lane_take(struct dr__exec *e, bool within_share);

/* pool lock: puts an entry that was taken and cannot be run among the spare ones; a pointer to NULL is fine. */
void dr__lane_abandon(struct dr__exec *e, dr__parked **parked);

/* Moves the bytes of a parked sample, or of one that was read ahead, to the bench and recycles its entry. */
void dr__lane_unpark(struct dr__exec *e, dr__parked *parked, dr__workbench *bench);

/* Sets the knob lane_share. */
void dr__lane_set_share(dr__lanes *lanes, double share);

/* Accounts for a fast sample that is about to run. */
void dr__lane_note_fast(dr__lanes *lanes, double units);

/* pool lock: an entry for a sample, a spare one if there is any (NULL: out of memory); and its return. */
dr__parked *dr__lane_get_entry(dr__lanes *lanes);
void dr__lane_recycle(dr__lanes *lanes, dr__parked *parked);

/* pool lock: updates dr__lanes.bytes after the record of an entry has changed. */
void dr__lane_update_bytes(dr__lanes *lanes, dr__parked *parked);

/* pool lock: frees all parked samples and spare entries. */
void dr__lane_clear(dr__lanes *lanes);

#endif
