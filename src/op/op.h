/* op.h: the interface of ops: functions from arrays to arrays.
 *
 * An op is one file in src/op/<domain>/ that ends in a `const dr_op_def`, and one row in op_defs.h.  Its parts:
 *
 *   params   the settings with range, default and documentation; they fill the op's `struct conf`
 *   draws    the random choices, described like params; they are the op's `struct par`
 *   draw     makes every random choice, from header facts alone, before anything is decoded
 *   plan     computes the exact output shape (or its upper bound) and the scratch memory that run needs
 *   cost     predicts the work
 *   run      computes the result: no allocation, no lock, no global state, no randomness
 *
 * One node of a graph may act on several fields (image and mask).  `draw` is called once, with the description of the
 * first field; plan, cost and run once for each field, with the same par.  `in->kind` is the kind of the field, and
 * task->fields are all fields of the node (boxes follow the image).  Masks of objects come plane by plane, each as a
 * mask (planes.h).  An op whose choice depends on the content of a field draws its numbers in `draw` and makes the
 * choice in `inspect`.
 */
#ifndef DR_OP_OP_H
#define DR_OP_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drapps/data.h>

#include "base/error.h"
#include "base/rng.h"
#include "data/desc.h"
#include "kernel/kernel.h"
#include "op/param.h"

struct dr_codec_state;
struct dr__bands;       /* codec/image/image.h */
struct dr__seek_store;  /* codec/image/seek_store.h */
struct dr__byte_ranges; /* data/byte_ranges.h */
struct dr__record_part; /* format/dataset_internal.h */

enum dr_op_flags {
    DR_OP_RANDOM = 1 << 0,       /* has a draw; may never be stored */
    DR_OP_INEXACT = 1 << 1,      /* result may differ between machines; never offloaded or stored */
    DR_OP_WINDOW = 1 << 2,       /* run accepts an input view whose window is smaller than its image, see region */
    DR_OP_POINTWISE_U8 = 1 << 3, /* each uint8 maps to one value by channel alone: has lut */
    DR_OP_BATCH = 1 << 4,        /* works on a whole batch: has draw_batch/plan_batch/run_batch, not the others */
    DR_OP_DECODE = 1 << 5,       /* turns bytes into an array; needs header facts before draw */
    DR_OP_RESAMPLE = 1 << 6,     /* scales its input to a size that the input's resolution does not decide */
    DR_OP_MOVES = 1 << 8,        /* moves pixels: fields with positions in the image or volume have to follow */
    DR_OP_DROPS = 1 << 9,        /* drops boxes: fields with a row for each box have to follow */
    DR_OP_EARLY = 1 << 7, /* runs on boxes and plain arrays while the sample is planned, so that shapes and regions may
                             depend on them; the results are not larger than the inputs */
};

/* Sets of kinds: what an op acts on where a node does not name its fields. */
#define DR__KIND(name) (1u << DR_KIND_##name)
#define DR__ON_IMAGES DR__KIND(IMAGE)
#define DR__ON_VOLUMES DR__KIND(VOLUME)
#define DR__ON_VOXELS (DR__KIND(VOLUME) | DR__KIND(VOLUME_MASK))
#define DR__ON_PLACES (DR__KIND(IMAGE) | DR__KIND(MASK) | DR__KIND(BOXES) | DR__KIND(KEYPOINTS) | DR__KIND(MASKS))
#define DR__ON_INSTANCES (DR__KIND(BOXES) | DR__KIND(LABELS) | DR__KIND(MASKS) | DR__KIND(KEYPOINTS))

/* The result of plan. */
typedef struct dr_plan {
    dr_desc desc;   /* of the output */
    size_t scratch; /* bytes that run may use at task->scratch, 64-byte aligned */
} dr_plan;

/* Takes the rows of an image as they are made.  The row is borrowed for the call. */
typedef struct dr__row_sink {
    void (*row)(struct dr__row_sink *sink, int64_t y, const uint8_t *row);
} dr__row_sink;

/* The context of run.  Owned by a worker; nothing in it is shared with another thread. */
typedef struct dr_task {
    const dr__kernels *k;
    const void *conf;
    uint8_t *scratch;
    struct dr_codec_state *codecs;      /* reusable decoders of this worker */
    size_t bleed;                       /* for decode: bytes around each row of out that may be overwritten */
    int scale;                          /* for peek: 1, or decode at 1/2, 1/4, 1/8 of the size */
    bool reference;                     /* for decode: the plainest way to the same pixels */
    struct dr__seek_store *seek;        /* for decode: where JPEG seek points are kept; NULL: nowhere */
    const struct dr__record_part *part; /* for decode: the input is the head of a JPEG of which ranges were read; NULL:
                                           it is a whole file */
    const dr_view *const *fields;       /* the node's inputs, in order; of DR_OP_EARLY ops, images have no data yet */
    int n_fields;
    dr_error *err;
} dr_task;

typedef struct dr_op_def {
    const char *name; /* snake_case of torchvision's class */
    int version;      /* raised when its bytes change */
    const char *summary;
    const dr_param *params; /* ends with { 0 } */
    const dr_param *draws;  /* ends with { 0 }; NULL without DR_OP_RANDOM */
    size_t conf_size;
    size_t par_size;
    unsigned flags;
    unsigned kinds; /* DR__KIND()s that it acts on where no fields are named; 0: on the field "image" */
    unsigned needs; /* DR__KIND()s of which one must be among the fields; 0: any */

    /* Optional, without kinds: the field that it reads where none is named, and the one that it makes of it. */
    const char *reads, *makes;

    /* Optional.  Called once after the params are set: checks what ranges cannot say and fills derived members. */
    dr_status (*init)(void *conf, dr_error *err);

    /* Optional.  Frees what init or the params allocated. */
    void (*fini)(void *conf);

    /* Optional; for ops with nested ops: the real par size of this conf (>= par_size). */
    size_t (*par_bytes)(const void *conf);

    /* Optional; for ops with nested ops: the drawn choices as a new JSON object. Default: what `draws` describes. */
    struct json_t *(*draws_json)(const void *conf, const void *par);

    /* With DR_OP_RANDOM.  `in` is fully known. */
    dr_status (*draw)(const void *conf, dr_rng *rng, const dr_desc *in, void *par, dr_error *err);

    /* Optional.  Completes par from the content of the node's fields (task->fields), once a sample: before plan with
     * DR_OP_EARLY, else before the first run.  There is no scratch memory.  Such an op cannot be nested in another. */
    dr_status (*inspect)(dr_task *task, void *par);

    /* Optional: whether a field of this description stays unchanged, whatever was drawn.  Run is then not called. */
    bool (*passes)(const dr_desc *in);

    /* Called when the graph is compiled, with par NULL and unknown extents (DR_UNKNOWN) in `in`, to check types and
     * compute the extents that are certain; and for each sample, with par and a fully known `in`. */
    dr_status (*plan)(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err);

    /* Optional (default: output bytes).  Work units; one unit is about a nanosecond of one core. */
    double (*cost)(const void *conf, const void *par, const dr_desc *in);

    /* Optional, for decodes: the same when only `part` of the image is needed. */
    double (*part_cost)(const void *conf, const void *par, const dr_desc *in, const dr_rect *part);

    /* out->data has room for plan's desc, rows out->stride apart. */
    dr_status (*run)(dr_task *task, const void *par, const dr_view *in, dr_view *out);

    /* With DR_OP_DECODE: reads header facts from the encoded bytes into par, before plan. */
    dr_status (*peek)(dr_task *task, const dr_view *in, void *par);

    /* Optional, with DR_OP_DECODE: which bytes of the file are needed to decode `window`, where the input is the head
     * of a JPEG (task->part); ranges less than `gap` bytes apart are joined.  False: all. */
    bool (*ranges)(dr_task *task, const void *par, const dr_view *in, const dr_rect *window, uint64_t gap,
                   struct dr__byte_ranges *ranges);

    /* Optional, with DR_OP_DECODE: whether these settings allow decoding at a fraction of the size. */
    bool (*may_scale)(const void *conf);

    /* Optional.  As run, for uint8 HWC images, but each finished row goes to the sink, top to bottom, so that the next
     * step works on it while it is in the CPU cache.  out is the planned description. */
    dr_status (*rows)(dr_task *task, const void *par, const dr_view *in, const dr_desc *out, dr__row_sink *sink);

    /* Optional, with rows: the same with the input pushed instead of pulled.  Prepares task->scratch, sets *bands to
     * something inside it; then the rows of `region` are given to bands, and finished rows come out at the sink.  The
     * scratch that plan asks for covers it. */
    dr_status (*feed)(dr_task *task, const void *par, const dr_desc *in, const dr_desc *out, dr__row_sink *sink,
                      struct dr__bands **bands);

    /* Optional, with feed: whether it can be used with what was drawn.  Default: always. */
    bool (*feeds)(const void *conf, const void *par, const dr_desc *in);

    /* Optional, with DR_OP_DECODE: can this image be decoded into bands, and doing so for the rectangle `window`. */
    bool (*streams)(const void *par);
    dr_status (*stream)(dr_task *task, const void *par, const dr_view *in, const dr_rect *window,
                        struct dr__bands *bands);

    /* Optional: a few words on these settings for dr_graph_explain, in reference mode or not. */
    void (*note)(const void *conf, bool reference, char *text, size_t cap);

    /* Optional; for an op that mirrors left to right or does nothing: which of them was drawn. */
    bool (*mirrors)(const void *par);

    /* Optional, with DR_OP_WINDOW: the part of the input image that run will read.  Default: all of it. */
    void (*region)(const void *conf, const void *par, const dr_desc *in, dr_rect *need);

    /* With DR_OP_POINTWISE_U8: table[c * 256 + v] = result for value v in channel c, as the op's out dtype (float or
     * uint8 values are both given as float: uint8 results are whole numbers). `in` holds the previous op's results
     * for the same 256 inputs, so that a chain composes.  par is NULL: only deterministic ops can have a table. */
    void (*lut)(const void *conf, int channels, dr_dtype in_dtype, const float *in, float *table);

    /* With DR_OP_BATCH, see op/batch.h. */
    const struct dr_batch_op_def *batch;
} dr_op_def;

/* The table of all ops, in alphabetical order; NULL ends it. */
extern const dr_op_def *const dr__op_table[];

/* Tells all ops of this build with their versions from those of another: where it is equal, graphs make the same
 * bytes.  Never 0. */
uint64_t dr__op_set(void);

/* The op with that name, or NULL. */
const dr_op_def *dr__op_find(const char *name);

/* An op with its settings, as a node of a graph or an entry of random_apply holds it. */
typedef struct dr__op {
    const dr_op_def *def;
    void *conf;
} dr__op;

/* Makes an op from the JSON object of its params (borrowed; NULL or missing members take defaults; unknown members
 * are an error).  dr__op_close frees it. */
struct json_t;
dr_status dr__op_open(const dr_op_def *def, const struct json_t *params, dr__op *out, dr_error *err);
void dr__op_close(dr__op *op);
size_t dr__op_par_bytes(const dr__op *op);

/* The kinds that the op acts on, and whether it moves pixels, with its nested ops.  An op with nested ops acts on a
 * kind when one of them does, and none that moves pixels would leave the kind behind. */
unsigned dr__op_kinds(const dr__op *op);
bool dr__op_moves(const dr__op *op);

/* A new JSON object (owned by the caller) of what was drawn; {} for an op that draws nothing. NULL: out of memory. */
struct json_t *dr__op_draws_json(const dr__op *op, const void *par);

#endif
