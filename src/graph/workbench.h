/* workbench.h: what one thread needs to run samples: reusable decoders, memory, and the sample at hand.
 *
 * A sample goes through four calls: begin (its fields are set), plan (header facts, draws, shapes, memory), run (all
 * but the tails and the decodes that stream into them), store (tails and copies into the places that leave).  Only plan
 * can ask for memory; decoding, so that bad data is found, may happen in run or in store.
 */
#ifndef DR_GRAPH_WORKBENCH_H
#define DR_GRAPH_WORKBENCH_H

#include <stdatomic.h>

#include "graph/program.h"

typedef struct dr__workbench {
    dr_codec_state *codecs;
    dr__record record;
    dr__record spare; /* what the first part of a program made, for the second */
    uint8_t *arena;   /* intermediate results of the sample at hand */
    size_t arena_cap, arena_used;
    unsigned n_small;    /* see dr__should_shrink */
    size_t memory_limit; /* most that the arena may grow to, and the record (at least DR__ENCODED_LEAST) */
    uint8_t *pars;       /* the sample's draws */
    size_t pars_cap;
    uint8_t *early; /* results of early steps */
    size_t early_cap, early_used;
    uint8_t *early_scratch; /* of the early step at work */
    size_t early_scratch_cap;
    dr_view values[DR__MAX_VALUES];
    size_t scratch[DR__MAX_STEPS]; /* bytes that each step asked for */
    size_t scratch_most;
    bool streamed[DR__MAX_STEPS];  /* decodes that make no result: store hands their rows to a tail */
    int scale[DR__MAX_STEPS];      /* of decodes: 1, or the divisor of fast decoding */
    double cost;                   /* predicted, in work units */
    struct dr__seek_store *seek;   /* for decodes; NULL: none */
    int worker;                    /* number of the thread that works here, from 1; 0: a caller's own */
    atomic_uint_fast64_t began_ns; /* when the sample at hand was begun; 0: none, or known to be slow */
    atomic_uint_fast64_t at_ns;    /* when the thread came to the sample that it is at; 0: it is at none */
    atomic_uint_fast64_t at_id;    /* which one that is */

    /* Set while profiling: time and bytes of each step. */
    struct dr__step_time *times;
} dr__workbench;

typedef struct dr__step_time {
    uint64_t ns, in_bytes, out_bytes, calls;
} dr__step_time;

enum {
    DR__BENCH_PART = 8,           /* of the memory for samples is a bench's memory_limit */
    DR__ENCODED_LEAST = 64 << 20, /* no sample with fewer encoded bytes is refused */
};

dr__workbench *dr__workbench_new(void); /* NULL: out of memory */
void dr__workbench_free(dr__workbench **bench);

/* Reads a sample into bench->record, whose bytes the memory limit bounds. */
dr_status dr__sample_read(dr__workbench *bench, const dr_dataset *set, uint64_t id, dr_error *err);

/* Draws, shapes and memory for the sample whose fields are in bench->record.  Messages name the op. */
dr_status dr__sample_plan(const dr__program *program, dr__workbench *bench, const dr__rng_name *name, dr_error *err);

/* All steps that store does not carry out. */
dr_status dr__sample_run(const dr__program *program, dr__workbench *bench, dr_error *err);

/* Output i into `place`, which has room for it: the dense array of program->outputs[i], with the sample's own extents
 * where those were not known before (dr__sample_desc). */
dr_status dr__sample_store(const dr__program *program, dr__workbench *bench, int output, void *place, dr_error *err);
dr_desc dr__sample_desc(const dr__program *program, const dr__workbench *bench, int output);

/* What was drawn: JSON object by node id.  NULL: out of memory. */
json_t *dr__sample_draws(const dr__program *program, const uint8_t *pars);

#endif
