/* loader.h: from a data set and a graph to batches.
 *
 *   dr_loader_options o;
 *   dr_loader_defaults(&o);
 *   o.batch_size = 64, o.shuffle = true, o.seed = 1;
 *   dr_loader *l = NULL;
 *   dr_loader_open(set, graph, &o, &l, &err);
 *   for (dr_batch *b = NULL; dr_loader_next(l, -1, &b, &err) == DR_OK; dr_batch_unref(&b)) { ... }
 *   dr_loader_close(&l);
 *
 * What a batch holds depends on the data set, the graph, seed, epoch and position alone: never on the number of
 * workers, the machine or timing.
 */
#ifndef DRAPPS_LOADER_H
#define DRAPPS_LOADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drapps/data.h>
#include <drapps/dataset.h>
#include <drapps/graph.h>
#include <drapps/monitor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dr_loader dr_loader;
typedef struct dr_batch dr_batch;
struct dr_decision; /* sched.h */

typedef enum dr_last { DR_LAST_PARTIAL = 0, DR_LAST_DROP = 1, DR_LAST_PAD = 2 } dr_last;
typedef enum dr_on_bad { DR_BAD_RAISE = 0, DR_BAD_SKIP = 1, DR_BAD_REPLACE = 2 } dr_on_bad;

typedef struct dr_loader_options {
    size_t size; /* sizeof(dr_loader_options) */
    uint64_t batch_size;
    uint64_t seed;
    bool shuffle;
    bool in_order;          /* true: batches and samples in the order of the epoch.  false: what is ready first comes
                               first, displaced by at most `prefetch` batches; still each sample exactly once */
    dr_last last;           /* what to do with the samples that do not fill a batch, and with ranks that end early:
                               deliver fewer, drop them, or pad with samples from the start of the order */
    int workers;            /* threads; 0: everything in the caller of dr_loader_next; -1: the container's CPU limit */
    int prefetch;           /* batches made ahead, 1 .. 64, as far as the memory limit allows; 0: 2, and of small ones
                               (64 MB together) so many that they are 12 samples for each worker.  While a
                               consumer waits, none is begun for which memory would have to be taken anew, unless
                               that takes more than some milliseconds */
    dr_on_bad on_bad;       /* a sample that cannot be read or decoded: fail, leave its batch shorter, or put another
                               sample there, chosen by the seed */
    uint64_t max_bad;       /* skip and replace give up after so many in an epoch (DR_ERR_BAD_SAMPLES) */
    bool equal_batches;     /* skip: as many batches as without bad samples, so that ranks make equally many steps.  A
                               bad sample takes up its place in a batch out of order, too, and a batch of which nothing
                               is left has one sample, chosen as replace does.  Always so with world > 1 */
    uint64_t rank, world;   /* this process takes places rank, rank + world, ... of each global batch */
    uint64_t memory_limit;  /* bytes for batches and working memory; 0: a quarter of what the container may use, shared
                               with the other loaders of the process that leave it 0 */
    const char *outputs;    /* fields to deliver, separated by commas; NULL: "image,label" where present, else all */
    const char *collate;    /* "field=rule,...": stack, pad, ragged, list; NULL: stack for arrays, list for the rest;
                               the field * is every array not named whose shape depends on the sample */
    const char *layout;     /* of images in a batch: "NCHW" (default) or "NHWC" */
    bool reference;         /* slow and plain: one thread, no fusion, full decode, C kernels; the same bytes.  The
                               environment variable DRAPPS_REFERENCE=1 sets it */
    bool keep_draws;        /* keep what was drawn for each sample: dr_batch_draws */
    const char *trace;      /* write a trace (trace.h) to this file; NULL: as DRAPPS_TRACE in the environment says */
    const char *seek_index; /* where the rows of JPEGs begin, learnt when a file is first decoded, so that later epochs
                              decode only the rows that a crop needs.  "auto" (default): in memory, within 1/32 of the
                              memory limit, and in an index file beside the data or in the user's cache folder, which
                              later runs find; "memory": nothing is written or read; "off".  The pixels are the same.
                              The environment variable DRAPPS_SEEK_INDEX overrides it */
    bool pushed_order;      /* the samples of each batch are given by dr_loader_push, not by shuffle, rank and last */
    bool keep_batches;      /* pushed_order with in_order = false: the samples that were pushed together stay together,
                               and only batches overtake each other.  false: batches of batch_size samples are filled
                               with what is ready; only the last of an epoch may be smaller */
    bool lanes;             /* samples are sorted into a fast and a slow lane by their predicted cost, so that slow ones
                               never hold all workers; default true.  The bytes are the same */
    const char *cache;      /* keep what the ops before the first random one make, as it is first made, and start there
                               in later epochs and runs.  A folder, or "auto": the user's cache folder, and only where
                               that was measured to pay; NULL: no */
    uint64_t cache_limit;   /* bytes on disk; 0: half of what is free there when the loader is opened */
    const char *policy;  /* who turns the knobs while it runs: a name of dr_policies_json; NULL: "analytic".  "fixed":
                            nobody.  What the user sets (workers, prefetch, dr_loader_set) is never turned.  Not in
                            reference mode or with workers = 0.  The environment variable DRAPPS_POLICY
                            overrides it.  The bytes are the same */
    dr_monitor *monitor; /* what the policy looks at; the loader keeps a reference.  NULL: one that the loaders of
                            the process share.  With a root, the limits are those of that machine, too */
    double cpu_limit;    /* CPUs that the workers may use, 0.01 to 512; 0: this process's part of what the container
                            may */
    const char *weights; /* what is wanted, as dr_weights_parse reads it; NULL: "step" */
    bool adaptive_compression; /* cache: LZ4 or none, by what is measured; false: LZ4.  Default true */
    double trace_spans;        /* spans_per_s of the trace; HUGE_VAL: all, so that a run out of order can be repeated */
} dr_loader_options;

DR_API void dr_loader_defaults(dr_loader_options *options);

/* Opens a loader: checks the graph against the data set, starts nothing yet.  Refs the set, copies the graph. */
DR_API dr_status dr_loader_open(dr_dataset *set, dr_graph *graph, const dr_loader_options *options, dr_loader **out,
                                dr_error *err);

/* Stops, waits for running samples, frees.  Batches that are still held stay valid.  A loader that has a trace makes up
 * to 32 samples once more, op by op, to write down what the ops cost: closing it reads data, for 0.1 s at most and the
 * sample it is at.  Not where its run failed, or made no sample. */
DR_API void dr_loader_close(dr_loader **loader);

/* The next batch, owned by the caller.  Any number of threads may call it: each batch goes to one of them, to who
 * waits longest.
 * timeout_ms: -1 waits for ever; else DR_AGAIN after that time.  DR_END when the epoch is over (again for each call
 * until dr_loader_start).  With workers = 0 the calling thread does the work.  An error ends the epoch; it stays at
 * the failed batch, so that the state saved then repeats it.
 * pushed_order: an error of a sample (DR_BAD_RAISE) or of putting its batch together costs that batch alone: *out is
 * the batch, with the ids and positions of the samples that are lost and without fields, owned by the caller as others
 * are, and the next call goes on with the next.  Other errors, after which *out is NULL, end the epoch. */
DR_API dr_status dr_loader_next(dr_loader *loader, int timeout_ms, dr_batch **out, dr_error *err);

/* Begins an epoch at its start (position 0).  The first call of dr_loader_next begins epoch 0 by itself.  An epoch
 * that runs is given up. */
DR_API dr_status dr_loader_start(dr_loader *loader, uint64_t epoch, dr_error *err);

/* pushed_order: the next batch of the epoch that runs is made of these samples (ids of the data set), in this order.
 * Work begins at once; any number of batches may be pushed ahead, of which `prefetch` are worked on.  Batches may have
 * any size from 1 on; batch_size is what memory is planned for, and one that is larger must fit in the budget
 * (DR_ERR_LIMIT).  Positions count the samples that were pushed.  A sample that is pushed twice in an epoch draws anew.
 * Every batch that was pushed is delivered, without samples where all were left out (DR_BAD_SKIP, and equal_batches is
 * false); out of order, where samples go to other batches, one without samples tells of what was left out when nothing
 * else is under way.
 * dr_loader_next returns DR_AGAIN at its timeout while nothing is pushed, DR_END when everything was delivered after
 * dr_loader_push_end.  dr_loader_start must come first (DR_ERR_STATE).  Any thread may push; a push that fails changes
 * nothing. */
DR_API dr_status dr_loader_push(dr_loader *loader, const uint64_t *ids, uint64_t n, dr_error *err);
DR_API dr_status dr_loader_push_end(dr_loader *loader, dr_error *err);

/* As dr_loader_push, for an epoch that is made again with its samples in another order: times[i], below 2^31, says how
 * often sample ids[i] came before in the first one, so that it draws what it drew there.  An epoch is pushed by this
 * call or by dr_loader_push, not by both. */
DR_API dr_status dr_loader_push_occurrences(dr_loader *loader, const uint64_t *ids, const uint64_t *times, uint64_t n,
                                            dr_error *err);

/* pushed_order: counts samples as pushed and delivered before, and `batches` batches, without making any: an epoch is
 * gone on with.  Positions, occurrences and batch numbers of what is pushed then are those of the whole epoch.  The
 * caller keeps what was delivered (dr_batch_ids, dr_batch_positions); dr_loader_state fails with DR_ERR_STATE. */
DR_API dr_status dr_loader_push_past(dr_loader *loader, const uint64_t *ids, uint64_t n, uint64_t batches,
                                     dr_error *err);

/* Pushed order: how many batches the caller should keep pushed and not yet delivered.
 *
 * @param wanted  the caller's own prefetch window, in batches.
 * @return `wanted`; while a policy sets the knob `prefetch`, at least one more than that knob.
 * Any thread. */
DR_API uint64_t dr_loader_prefetch_window(dr_loader *loader, uint64_t wanted);

/* Which samples may take the place of bad ones (ids of the data set); without this call, all of them.  Once, before the
 * first epoch (DR_ERR_STATE): for who pushes only some samples of the data set.  DR_ERR_ARG: none is given, or one that
 * the data set does not have. */
DR_API dr_status dr_loader_set_replacements(dr_loader *loader, const uint64_t *ids, uint64_t n, dr_error *err);

/* Batches of an epoch for this rank; pushed_order: pushed so far. */
DR_API uint64_t dr_loader_batches(const dr_loader *loader);

/* Writes an event of the caller's into the loader's trace, with the present time; without a trace, nothing.  json: an
 * object with the member "event", under 64 KB. */
DR_API void dr_loader_note(dr_loader *loader, const char *json);

/* Wakes every thread that waits in dr_loader_next; those calls return DR_ERR_CANCELLED.  May be called from a signal
 * handler's thread; the loader can be started again. */
DR_API void dr_loader_cancel(dr_loader *loader);

/* State: where the consumer is, as JSON text under 1 KB for in-order loaders: seed, epoch, position, hash of the
 * configuration.  Restoring into a loader with other workers, prefetch or world size is allowed; with another graph,
 * data set, seed, shuffle or batch_size it is an error that names the difference.  A value of another type or range is
 * one that names it (DR_ERR_FORMAT; 24.0 is no int).  After an error the loader is as it was. */
DR_API dr_status dr_loader_state(dr_loader *loader, char **text, dr_error *err);

/* The same, as if a batch that dr_loader_next gave had not been delivered: for a consumer that was interrupted before
 * it could use it.  In order, what was given after it comes again, too.  A batch of another epoch makes no difference.
 */
DR_API dr_status dr_loader_state_without(dr_loader *loader, const dr_batch *batch, char **text, dr_error *err);
DR_API dr_status dr_loader_restore(dr_loader *loader, const char *text, dr_error *err);

/* What dr_loader_restore would say; nothing is changed. */
DR_API dr_status dr_loader_check_state(dr_loader *loader, const char *text, dr_error *err);

/* Settings that may change while it runs, by the names and within the ranges of DR_KNOB_MAP in drapps/sched.h:
 * effective at once, without waiting for samples under way, of which none is lost or made twice.  DR_ERR_NOT_FOUND
 * names the knobs there are, DR_ERR_ARG the range.  What was set is the user's: the policy leaves it alone from then
 * on. */
DR_API dr_status dr_loader_set(dr_loader *loader, const char *knob, double value, dr_error *err);
DR_API dr_status dr_loader_get(dr_loader *loader, const char *knob, double *value, dr_error *err);

/* What the threads are at, who is longest at it first: JSON array of {"id", "key", "worker" (below 0: a reader),
 * "seconds"}, to be freed with dr_text_free.  For messages: what has just begun or ended may be told wrongly. */
DR_API dr_status dr_loader_running(dr_loader *loader, char **text, dr_error *err);

/* Bad samples of an epoch that has ended (DR_END) of which no batch told, because none came after them: as
 * dr_batch_bad, to be freed with dr_text_free.  Once: the next call says "[]". */
DR_API dr_status dr_loader_untold(dr_loader *loader, char **text, dr_error *err);

/* Counters and times since the loader was opened, as JSON text (free with dr_text_free).  Keys are the same in every
 * language; docs/stats.md lists them. */
DR_API dr_status dr_loader_stats(dr_loader *loader, char **text, dr_error *err);

/* The newest decisions of the policy, at most `cap`, with numbers above `after`, oldest first; returns how many.  64
 * are kept.  0 in a forked child. */
DR_API size_t dr_loader_decisions(dr_loader *loader, uint64_t after, struct dr_decision *out, size_t cap);

/* What runs: ops, shapes, fusion, workers, budget (free with dr_text_free). */
DR_API dr_status dr_loader_explain(dr_loader *loader, char **text, dr_error *err);

/* Runs `samples` samples in the calling thread, each op by op and then as the loader does, and returns JSON: CPU time
 * and bytes of each op; the CPU time of all ops one by one, and of a sample as the loader runs it, fused. */
DR_API dr_status dr_loader_profile(dr_loader *loader, uint64_t samples, char **text, dr_error *err);

/* --- batches: read-only facts; the memory of its fields is the holder's alone and may be written to --- */

typedef enum dr_collate {
    DR_COLLATE_STACK = 0,
    DR_COLLATE_PAD = 1,
    DR_COLLATE_RAGGED = 2,
    DR_COLLATE_LIST = 3
} dr_collate;

/* One field of a batch.
 *   stack, pad: `array` is one dense array, dims[0] = samples.  pad: `sizes` has the true dims of each sample,
 *               n_dims numbers a sample (those without dims[0]).
 *   ragged:     `array` is all samples one after the other along dims[0]; `offsets` has samples + 1 places in it.
 *   list:       `items` has one view a sample; `array` is empty. */
typedef struct dr_batch_field {
    const char *name;
    dr_collate collate;
    dr_view array;
    const int64_t *sizes;
    const int64_t *offsets;
    const dr_view *items;
} dr_batch_field;

DR_API dr_batch *dr_batch_ref(dr_batch *batch);

/* Releases a batch: pure C, needs no lock of any language, may be called from any thread, after the loader is closed
 * and in a forked child. */
DR_API void dr_batch_unref(dr_batch **batch);

DR_API uint64_t dr_batch_samples(const dr_batch *batch);
DR_API uint64_t dr_batch_number(const dr_batch *batch); /* in the epoch, from 0 */
DR_API uint64_t dr_batch_epoch(const dr_batch *batch);
DR_API uint64_t dr_batch_padded(const dr_batch *batch); /* samples at its end that repeat others (last = pad) */
DR_API int dr_batch_fields(const dr_batch *batch);
DR_API dr_status dr_batch_field_at(const dr_batch *batch, int i, dr_batch_field *out, dr_error *err);

/* The ids of its samples in the data set and their positions in the epoch's order; n = dr_batch_samples. */
DR_API const uint64_t *dr_batch_ids(const dr_batch *batch);
DR_API const uint64_t *dr_batch_positions(const dr_batch *batch);

/* What was drawn for sample i, with keep_draws: JSON object {"<node id>": {...}} (free with dr_text_free). */
DR_API dr_status dr_batch_draws(const dr_batch *batch, uint64_t i, char **text, dr_error *err);

/* Samples left out or replaced in this batch: JSON array of {"position", "id", "key", "error", "action"}; "[]" if
 * none.  The text belongs to the batch. */
DR_API const char *dr_batch_bad(const dr_batch *batch);

/* Why it failed: what dr_loader_next said when it gave it (pushed_order).  NULL: it did not.  Belongs to the batch. */
DR_API const dr_error *dr_batch_error(const dr_batch *batch);

#ifdef __cplusplus
}
#endif
#endif
