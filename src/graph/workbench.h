/* workbench.h: what one thread needs to run samples: reusable decoders, memory, and the state of the current sample.
 *
 * A sample goes through four calls: dr__sample_read; dr__sample_plan (header facts, draws, shapes, memory);
 * dr__sample_run (all steps but tails and decodes that stream into them); dr__sample_store (tails and copies into the
 * batch).  Only planning allocates.  Bad data may be found while running or while storing, since both may decode.
 */
#ifndef DR_GRAPH_WORKBENCH_H
#define DR_GRAPH_WORKBENCH_H

#include <stdatomic.h>

#include "graph/program.h"

typedef struct dr__workbench {
    dr_codec_state *codecs;
    dr__record record;
    dr__record spare; /* results of the first part of a program, for the second (exec/cache_stage.h) */
    uint8_t *arena;   /* intermediate results of the current sample */
    size_t arena_cap, arena_used;
    unsigned n_small;    /* see dr__should_shrink */
    size_t memory_limit; /* bytes that the arena may grow to; also of the record, if above DR__ENCODED_LEAST */
    uint8_t *pars;       /* the sample's draws */
    size_t pars_cap;
    uint8_t *early; /* results of early steps */
    size_t early_cap, early_used;
    uint8_t *early_scratch; /* of the current early step */
    size_t early_scratch_cap;
    dr_view values[DR__MAX_VALUES];
    size_t scratch[DR__MAX_STEPS]; /* bytes that each step needs */
    size_t scratch_most;
    bool streamed[DR__MAX_STEPS];          /* decodes that make no result: store hands their rows to a tail */
    int scale[DR__MAX_STEPS];              /* of decodes: 1, or the divisor of fast decoding */
    double cost;                           /* predicted, in work units */
    struct dr__seek_store *seek;           /* for decodes; NULL: none */
    int worker;                            /* number of the thread, from 1; 0: a thread of the caller */
    atomic_uint_fast64_t started_ns;       /* when the current sample was begun; 0: none, or one of the slow lane */
    atomic_uint_fast64_t running_since_ns; /* for dr_loader_running: when work on the current sample began; 0: none */
    atomic_uint_fast64_t running_id;       /* its id */

    struct dr__step_time *times; /* while profiling: time and bytes of each step; else NULL */
} dr__workbench;

typedef struct dr__step_time {
    uint64_t ns, in_bytes, out_bytes, calls;
} dr__step_time;

enum {
    DR__BENCH_PART = 4,           /* a bench's memory_limit is 1/4 of the loader's memory limit */
    DR__ENCODED_LEAST = 64 << 20, /* encoded bytes that a sample may always have */
};

dr__workbench *dr__workbench_new(void); /* NULL: out of memory */
void dr__workbench_free(dr__workbench **bench);

/* Reads a sample into bench->record, within the memory limit. */
dr_status dr__sample_read(dr__workbench *bench, const dr_dataset *set, uint64_t id, dr_error *err);

/* The step that decodes a field of the data set, if nothing else reads that field and the step makes only the region
 * that its readers need; -1: there is none. */
int dr__program_ranged_step(const dr__program *program, const char *field);

/* Which bytes of that field step `s` needs for this sample, whose record has a head in its place (dr__record_part).
 * False: all, or the sample cannot be planned.  Needs no memory for results, and leaves planning to do; bench->cost is
 * set. */
bool dr__sample_ranges(const dr__program *program, dr__workbench *bench, const dr__rng_name *name, int s, uint64_t gap,
                       dr__byte_ranges *ranges);

/* Plans the sample in bench->record: draws, shapes, memory, cost.  Errors name the op. */
dr_status dr__sample_plan(const dr__program *program, dr__workbench *bench, const dr__rng_name *name, dr_error *err);

/* Runs all steps except those that dr__sample_store runs. */
dr_status dr__sample_run(const dr__program *program, dr__workbench *bench, dr_error *err);

/* Writes an output as a dense array of the shape dr__sample_desc.
 *
 * @param place  memory for the array. */
dr_status dr__sample_store(const dr__program *program, dr__workbench *bench, int output, void *place, dr_error *err);

/* The description of an output with the extents of this sample. */
dr_desc dr__sample_desc(const dr__program *program, const dr__workbench *bench, int output);

/* The draws as a JSON object by node id.  NULL: out of memory. */
json_t *dr__sample_draws(const dr__program *program, const uint8_t *pars);

#endif
