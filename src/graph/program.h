/* program.h: a graph made ready to run on the samples of one data set.
 *
 * Compiling gives each intermediate result a number (a value), checks types and shapes as far as they are known
 * beforehand, and decides what is fused.  A program is read-only and shared by all workers; what a sample needs while
 * it runs is in a workbench.
 *
 *   values   0 .. n_inputs-1 are the data set's fields; each step makes one more
 *   steps    one op on one field, in the order of the nodes
 *   outputs  the values that leave in a batch
 *
 * Fusion changes how steps are carried out, never what they compute:
 *   window   a decode whose readers need only a part of the image decodes that part
 *   tail     the last ops of an output image (resize or crop, mirror, type and normalisation, layout) write row by row
 *            from 8-bit pixels into the batch slot through one table of 256 results per channel
 *   stream   a windowed decode that only such a tail reads hands it its rows as they are decoded
 */
#ifndef DR_GRAPH_PROGRAM_H
#define DR_GRAPH_PROGRAM_H

#include <drapps/loader.h>

#include "codec/image/image.h"
#include "format/dataset_internal.h"
#include "graph/graph_internal.h"

enum { DR__MAX_STEPS = 512, DR__MAX_VALUES = DR__MAX_FIELDS + 600, DR__MAX_OUTPUTS = DR__MAX_FIELDS };

typedef struct dr__step {
    int node;    /* in graph->nodes */
    int field;   /* which of the node's fields */
    bool first;  /* of its node: draws and inspects */
    bool early;  /* carried out while the sample is planned: DR_OP_EARLY */
    int root;    /* early: the data set's field that its input was made from */
    int in, out; /* values */
    size_t
        par_at; /* where its draws stand in a sample's block: its node's, but each decode has header facts of its own */
    bool windowed; /* decode: only the region that its readers need */
    int tail;      /* >= 0: carried out by that tail, not by itself */
} dr__step;

/* The fused end of one output. */
typedef struct dr__tail {
    int source;      /* value of uint8 pixels that the tail starts from */
    int rows_step;   /* step whose `rows` makes the rows; -1: the source's own rows */
    int flip_step;   /* step that may mirror; -1: none */
    int decode_step; /* decode that can hand its rows to rows_step; -1: none */
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
    dr_desc delivered; /* the same after the ops on whole batches */
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
    size_t par_at[DR__MAX_NODES];                /* where a node's draws stand in a sample's block of draws */
    size_t par_bytes;
    int batch_nodes[DR__MAX_NODES]; /* nodes that work on whole batches, after all steps */
    bool fused;
    const dr__kernels *kernels;
} dr__program;

typedef struct dr__program_options {
    const char *outputs; /* as in dr_loader_options */
    const char *collate;
    const char *layout;
    bool reference;
    bool late_store; /* where outputs go is known only when all steps have run: no decode can wait for it */
    bool part;       /* of a chain that goes on elsewhere: outputs need not belong together */
    bool any_shape;  /* fields whose shape depends on the sample become lists where `collate` says nothing */
} dr__program_options;

/* fields: what the samples have. */
dr_status dr__program_compile(dr_graph *graph, const dr__field *fields, int n_fields,
                              const dr__program_options *options, dr__program **out, dr_error *err);
void dr__program_free(dr__program **program);

/* What runs, for people; owned by the caller (dr_text_free). */
char *dr__program_explain(const dr__program *program);

/* Decides windows, tails and, where outputs have their places early, streams (fuse.c). */
dr_status dr__program_fuse(dr__program *program, bool late_store, dr_error *err);

/* The latest value of that name: an op in place hides what it read.  -1: none. */
int dr__program_find(const dr__program *program, const char *name);

/* Names the fields of a node that names none: those of the kinds that its op acts on, images and volumes first
 * (follow.c). */
dr_status dr__program_name_fields(dr__program *program, int node, dr_error *err);

/* Do the fields of a node that are named or found hold what its op needs? */
dr_status dr__program_check_fields(const dr__program *program, int node, dr_error *err);

/* An error where an output tells places in an image, or has rows for boxes, that an op has moved or dropped without
 * it.  names: of the outputs to look at, with commas; NULL: all. */
dr_status dr__program_check_followers(const dr__program *program, const char *names, dr_error *err);

/* Takes out fields that were found for a node (not named) where nobody needs what it makes of them. */
void dr__program_prune(dr__program *program);

/* How many steps read a value, and one of them (-1: none). */
int dr__program_readers(const dr__program *program, int value, int *reader);
int dr__program_output_of(const dr__program *program, int value); /* output that is this value, or -1 */

#endif
