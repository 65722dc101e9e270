/* program.h: a graph compiled for the samples of one data set.
 *
 * Compiling numbers each intermediate result (a value), checks types and shapes as far as they are known beforehand,
 * and decides what is fused.  A program is read-only and shared by all workers; the state of a sample is in a
 * workbench.
 *
 *   values   0 .. n_inputs-1 are the data set's fields; each step makes one more
 *   steps    one op on one field, in the order of the nodes
 *   outputs  the values that a batch delivers
 *
 * Fusion changes how steps run, never what they compute:
 *   window   a decode whose readers need only a part of the image decodes that part
 *   tail     the last ops of an output image (resize or crop, mirror, type and normalisation, layout) write row by row
 *            from 8-bit pixels into the batch slot through one table of 256 results per channel
 *   stream   a windowed decode that only such a tail reads passes its rows on as they are decoded
 */
#ifndef DR_GRAPH_PROGRAM_H
#define DR_GRAPH_PROGRAM_H

#include <drapps/loader.h>

#include "codec/image/image.h"
#include "format/dataset_internal.h"
#include "graph/graph_internal.h"

enum { DR__MAX_STEPS = 512, DR__MAX_VALUES = DR__MAX_FIELDS + 600, DR__MAX_OUTPUTS = DR__MAX_FIELDS };

typedef struct dr__step {
    int node;      /* in graph->nodes */
    int field;     /* which of the node's fields */
    bool first;    /* the first step of its node, which draws and inspects */
    bool early;    /* runs while the sample is planned: DR_OP_EARLY */
    int root;      /* early: the data set's field that its input was made from */
    int in, out;   /* values */
    size_t par_at; /* offset of its draws in a sample's block: its node's; each decode has its own for header facts */
    bool windowed; /* decode: makes only the region that its readers need */
    int tail;      /* >= 0: the tail that runs it; -1: it runs by itself */
} dr__step;

/* The fused end of one output. */
typedef struct dr__tail {
    int source;      /* value of uint8 pixels that the tail starts from */
    int rows_step;   /* step whose `rows` makes the rows; -1: the source's own rows */
    int flip_step;   /* step that may mirror; -1: none */
    int decode_step; /* decode that can stream into rows_step; -1: none */
    bool has_lut;
    dr__lut_f32 lut;                      /* for float32 results */
    dr__lut_u16 lut16;                    /* for 16-bit results */
    uint8_t lut8[DR__LUT_CHANNELS * 256]; /* for 8-bit results */
} dr__tail;

typedef struct dr__output {
    char name[DR__NAME];
    int value;
    int tail; /* index of its tail, or -1 */
    dr_collate collate;
    dr_desc desc;      /* of one sample as it is stored in the batch: images in the batch's layout */
    dr_desc delivered; /* the same after the batch ops */
} dr__output;

typedef struct dr__program {
    dr_graph *graph; /* owned */
    int n_inputs, n_values, n_steps, n_tails, n_outputs, n_batch_nodes;
    dr_desc values[DR__MAX_VALUES]; /* as far as known */
    char names[DR__MAX_VALUES][DR__NAME];
    dr__step steps[DR__MAX_STEPS];
    dr__tail *tails; /* owned */
    dr__output outputs[DR__MAX_OUTPUTS];
    int node_in[DR__MAX_NODES][DR__NODE_FIELDS]; /* values that a node's fields are read from */
    size_t par_at[DR__MAX_NODES];                /* offset of a node's draws in a sample's block of draws */
    size_t par_bytes;
    int batch_nodes[DR__MAX_NODES]; /* batch ops, which run after all steps */
    bool fused;
    const dr__kernels *kernels;
} dr__program;

typedef struct dr__program_options {
    const char *outputs; /* as in dr_loader_options */
    const char *collate;
    const char *layout;
    bool reference;
    bool late_store; /* a sample's slot is known only when all steps have run, so no decode can stream into it */
    bool part;       /* a part of a chain: outputs need not match (follow.c) */
    bool any_shape;  /* fields whose shape depends on the sample become lists unless `collate` names them */
} dr__program_options;

/* Compiles a graph.  fields: of the data set's samples. */
dr_status dr__program_compile(dr_graph *graph, const dr__field *fields, int n_fields,
                              const dr__program_options *options, dr__program **out, dr_error *err);
void dr__program_free(dr__program **program);

/* A description for people; owned by the caller (dr_text_free).  NULL: out of memory. */
char *dr__program_explain(const dr__program *program);

/* Decides windows, tails and, unless late_store, streams (fuse.c). */
dr_status dr__program_fuse(dr__program *program, bool late_store, dr_error *err);

/* The newest value of that name (an op in place makes a new one); -1: none. */
int dr__program_find_value(const dr__program *program, const char *name);

/* Gives a node without named fields all fields of the kinds that its op acts on, images and volumes first (follow.c).
 */
dr_status dr__program_name_fields(dr__program *program, int node, dr_error *err);

/* Fails unless the fields of a node include what its op needs. */
dr_status dr__program_check_fields(const dr__program *program, int node, dr_error *err);

/* Fails if an output refers to positions in an image, or has rows for boxes, that an op has moved or dropped without
 * it. names: the outputs to check, separated by commas; NULL: all. */
dr_status dr__program_check_followers(const dr__program *program, const char *names, dr_error *err);

/* Removes fields that were found for a node (not named) and whose results are not used. */
void dr__program_prune(dr__program *program);

/* The number of steps that read a value; *reader: the last of them, or -1. */
int dr__program_readers(const dr__program *program, int value, int *reader);

/* The output with this value, or -1. */
int dr__program_output_of(const dr__program *program, int value);

#endif
