/* loader.h: loaders, which make batches from a data set and a graph.
 *
 *   dr_loader_options o;
 *   dr_loader_defaults(&o);
 *   o.batch_size = 64, o.shuffle = true, o.seed = 1;
 *   dr_loader *l = NULL;
 *   dr_loader_open(set, graph, &o, &l, &err);
 *   for (dr_batch *b = NULL; dr_loader_next(l, -1, &b, &err) == DR_OK; dr_batch_unref(&b)) { ... }
 *   dr_loader_close(&l);
 *
 * The content of a batch depends on the data set, the graph, seed, epoch and position alone: never on the number of
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

/* What happens to samples that do not fill the last batch, and to ranks that end early. */
typedef enum dr_last {
    DR_LAST_PARTIAL = 0, /* a smaller batch */
    DR_LAST_DROP = 1,    /* they are dropped */
    DR_LAST_PAD = 2      /* the batch is filled with samples from the start of the order */
} dr_last;

/* What happens to a sample that cannot be read or decoded. */
typedef enum dr_on_bad {
    DR_BAD_RAISE = 0,  /* an error, which ends the epoch */
    DR_BAD_SKIP = 1,   /* its batch is shorter */
    DR_BAD_REPLACE = 2 /* another sample, chosen by the seed, takes its slot */
} dr_on_bad;

/* Settings of a loader, in groups.  Fill them with dr_loader_defaults and change what you need.  Pointers are borrowed
 * for the call of dr_loader_open alone.  No setting but those of "order", "bad samples" and "delivery" changes what
 * batches hold. */
typedef struct dr_loader_options {
    size_t size; /* sizeof(dr_loader_options) */

    /* --- order --- */
    uint64_t batch_size; /* samples of a batch, for this rank; default 1 */
    uint64_t seed;       /* decides order and draws, with the epoch */
    bool shuffle;        /* a new order in each epoch */
    bool in_order;       /* default true: batches and samples in the order of the epoch.  false: samples come as they
                            are ready, displaced by at most `prefetch` batches; each sample still exactly once */
    dr_last last;        /* see dr_last */
    uint64_t rank, world_size; /* this process takes positions rank, rank + world_size, ... of each global batch;
                                  default 0 of 1 */
    bool pushed_order;         /* the samples of each batch come from dr_loader_push, not from shuffle, rank and last */
    bool keep_batches;         /* pushed_order with in_order = false: samples that were pushed together stay together,
                                  and only batches overtake each other.  false: batches of batch_size samples are filled
                                  with what is ready; only the last of an epoch may be smaller */

    /* --- bad samples --- */
    dr_on_bad on_bad_sample; /* see dr_on_bad */
    uint64_t max_bad;        /* skip and replace fail (DR_ERR_BAD_SAMPLES) after this many in an epoch; default 1000 */
    bool equal_batches;      /* skip: as many batches as without bad samples, so that all ranks make equally many steps.
                                A bad sample takes up its slot even out of order, and a batch of which nothing is left
                                has one sample, chosen as replace does.  Always so with world_size > 1 */

    /* --- delivery --- */
    const char *outputs; /* fields to deliver, separated by commas; NULL: "image,label" where present, else all */
    const char *collate; /* "field=rule,...": stack, pad, ragged, list; NULL: stack for arrays, list for the rest.
                            The field * is every array not named whose shape depends on the sample */
    const char *layout;  /* of images in a batch: "NCHW" (default) or "NHWC" */
    bool keep_draws;     /* keep what was drawn for each sample: dr_batch_draws */

    /* --- limits --- */
    int workers;  /* threads; 0: the caller of dr_loader_next does everything; -1 (default): the policy decides,
                     beginning with the container's CPU limit */
    int prefetch; /* the prefetch window: batches in flight, 1 .. 64, as far as the memory limit allows.  0
                     (default): 2; more if batches are cheap, up to 12 samples in flight for each worker and
                     64 MB.  While a consumer waits, a batch that would need new memory is deferred for some
                     milliseconds */
    uint64_t memory_limit; /* bytes of batches and working memory; 0: a quarter of what the container may use, shared
                              with the other loaders of the process that leave it 0 */
    double cpu_limit;      /* CPUs that the workers may use, 0.01 to 512; 0: this process's part of what the container
                              may use */

    /* --- cache --- */
    const char *cache;         /* store the results of the ops before the first random one, and start from them in
                                  later epochs and runs.  A folder, or "auto": the user's cache folder, and only where
                                  that was measured to pay; NULL: none */
    uint64_t cache_limit;      /* bytes on disk; 0: half of what is free there when the loader is opened */
    uint64_t cache_memory;     /* bytes of a tier in memory, in front of the one on disk or without it (cache = NULL),
                                  for all loaders and ranks of the machine together that keep the same samples; at
                                  least 1 MiB; 0: none */
    const char *cache_at;      /* the op whose output is kept: its name, or its number in the graph, from 0 on; it and
                                  all that it depends on must not be random.  NULL: the last one before the first
                                  random op that is worth it */
    bool adaptive_compression; /* default true: what is kept is compressed by whichever codec is measured to suit data
                                  and machine best, or none; false: always by the build's default, LZ4 */
    const char *seek_index;    /* where the rows of JPEGs begin, learnt when a file is first decoded, so that later
                                  epochs decode only the rows that a crop needs.  "auto" (default): in memory, within
                                  1/32 of the memory limit, and in an index file beside the data or in the user's cache
                                  folder; "memory": no file; "off".  Overridden by DRAPPS_SEEK_INDEX */
    const char *ranges;        /* read only the bytes of a JPEG that its crop needs, once seek points are known: "auto"
                                  (default): from remote sources, and from local files if that is measured to be
                                  faster; "on": whenever possible; "off".  Needs seek_index, and an image of
                                  which the ops read a part; not together with a cache.  Overridden by DRAPPS_RANGES */

    /* --- data on a server --- */
    const char *offload; /* which ops a drapps server runs, for a data set that it serves: "auto" (default), "off",
                            "all", "resize", "fastflow", "sophon", "sophon+", or a number of ops from the first on.
                            "auto": where the network is measured to be the bottleneck, for the samples for which it
                            pays.  See docs/offload.md */

    /* --- tuning --- */
    const char *policy;           /* sets the knobs while the loader runs: a name of dr_policies_json; NULL: "analytic";
                                     "fixed": none.  Values that the user sets (workers, prefetch, dr_loader_set) stay.
                                     Not in reference mode or with workers = 0.  Overridden by DRAPPS_POLICY */
    const char *weights;          /* what the policy aims for, as dr_weights_schedule_parse reads it; NULL: "step" */
    dr_monitor *resource_monitor; /* what the policy reads; the loader keeps a reference.  NULL: one that the loaders of
                                     the process share.  With a root, limits are those of that machine, too */
    bool lanes; /* default true: samples wait in a fast or a slow lane by their predicted cost, so that
                   slow samples never hold all workers.  Costs are remembered in the user's cache folder
                   (ledger.h), unless DRAPPS_LEDGER is "off" */

    /* --- tracing and debugging --- */
    const char *trace;  /* write a trace (trace.h) to this file; NULL: as DRAPPS_TRACE says */
    double trace_spans; /* spans_per_s of the trace; HUGE_VAL: all, so that an unordered run can be repeated */
    bool reference;     /* slow and plain: one thread, no fusion, full decode, C kernels.  DRAPPS_REFERENCE=1 sets it */
} dr_loader_options;

/**
 * Fill in the defaults.
 *
 * @param options Overwritten, its `size` included.
 */
DR_API void dr_loader_defaults(dr_loader_options *options);

/* --- opening and closing --- */

/**
 * Open a loader and check the graph against the data set.  Starts no thread.
 *
 * @param set     The data set; the loader keeps a reference.
 * @param graph   The graph; copied.
 * @param options The settings; copied.  Pointers in it are borrowed for the call.
 * @param out     The loader, which the caller closes by dr_loader_close.  NULL after a failure.
 * @param err     The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG: an option or op is wrong; DR_ERR_LIMIT: a batch does not fit in the memory limit;
 *         DR_ERR_IO; DR_ERR_NOMEM.
 */
DR_API dr_status dr_loader_open(dr_dataset *set, dr_graph *graph, const dr_loader_options *options, dr_loader **out,
                                dr_error *err);

/**
 * Stop a loader, wait for samples in flight, and free it.  Batches that are still held stay valid.
 *
 * A loader with a trace makes up to 32 samples once more, op by op, to record what the ops cost: that takes at
 * most 0.1 s and the time of one sample.  It does not do so if the run failed or made no sample.
 *
 * @param loader The loader; set to NULL.  NULL and a pointer to NULL are allowed.  No other thread may begin a call
 *               with it; threads that wait in dr_loader_next return DR_ERR_CANCELLED.
 */
DR_API void dr_loader_close(dr_loader **loader);

/* --- batches of an epoch --- */

/**
 * Wait for the next batch.
 *
 * An error ends the epoch; the loader stays at the failed batch, so that a state saved then repeats it.  With
 * pushed_order, an error of a sample (DR_BAD_RAISE) or of joining its batch costs that batch alone: *out is the batch,
 * with the ids and positions of the lost samples and without fields, and the next call continues with the next batch.
 *
 * @param loader     The loader.
 * @param timeout_ms The longest time to wait; -1: no limit.
 * @param out        The batch, owned by the caller (dr_batch_unref); NULL without one.
 * @param err        The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_AGAIN: timeout; DR_END: the epoch is over, until dr_loader_start; DR_ERR_CANCELLED; the error of a
 *         sample; DR_ERR_BAD_SAMPLES; DR_ERR_NOMEM; DR_ERR_FORKED.
 *
 * @note Any number of threads: each batch goes to the thread that has waited longest.  With workers = 0 the calling
 *       thread does the work.
 */
DR_API dr_status dr_loader_next(dr_loader *loader, int timeout_ms, dr_batch **out, dr_error *err);

/**
 * Start an epoch at position 0 and abandon one that runs.  The first call of dr_loader_next starts epoch 0 by itself.
 *
 * @param loader The loader.
 * @param epoch  The number of the epoch, which keys order and draws.
 * @param err    The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_LIMIT: no thread can be started; DR_ERR_NOMEM; DR_ERR_FORKED.
 *
 * @note May be called from any thread.
 */
DR_API dr_status dr_loader_start(dr_loader *loader, uint64_t epoch, dr_error *err);

/**
 * Wake every thread that waits in dr_loader_next; those calls return DR_ERR_CANCELLED.  The loader can be started
 * again.
 *
 * @param loader The loader.
 *
 * @note May be called from any thread.
 */
DR_API void dr_loader_cancel(dr_loader *loader);

/**
 * Count the batches of an epoch.
 *
 * @param loader The loader.
 *
 * @return The batches of an epoch for this rank; pushed_order: those pushed so far.
 *
 * @note May be called from any thread.
 */
DR_API uint64_t dr_loader_batches(const dr_loader *loader);

/* --- pushed order --- */

/**
 * Push a batch: the next batch of the running epoch is made of these samples, in this order.
 *
 * Work begins at once; any number of batches may be pushed, of which `prefetch` are in flight.  batch_size is what
 * memory is planned for; a larger batch must fit in the budget.  Positions count the samples pushed.  A sample that is
 * pushed twice in an epoch draws anew.  Every pushed batch is delivered, without samples where all were left out
 * (DR_BAD_SKIP without equal_batches).  Unordered, where samples go to other batches, a batch without samples reports
 * what was left out when nothing else is in flight.
 *
 * @param loader The loader.
 * @param ids    Ids of the data set, copied.
 * @param n      Their number, at least 1.
 * @param err    The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG: an id or n is out of range; DR_ERR_LIMIT: the batch does not fit; DR_ERR_STATE: not
 *         pushed_order, no epoch was started, or its end was pushed; DR_ERR_CANCELLED; the error that ended the epoch.
 *         After an error nothing has changed.
 *
 * @note May be called from any thread.
 */
DR_API dr_status dr_loader_push(dr_loader *loader, const uint64_t *ids, uint64_t n, dr_error *err);

/**
 * Push the end of the epoch: dr_loader_next returns DR_END once all pushed batches are delivered.
 *
 * @param loader The loader.
 * @param err    The reason of a failure.  May be NULL.
 *
 * @return As dr_loader_push.
 *
 * @note May be called from any thread.
 */
DR_API dr_status dr_loader_push_end(dr_loader *loader, dr_error *err);

/**
 * Push a batch of an epoch that is repeated with its samples in another order.  An epoch is pushed by this call or by
 * dr_loader_push, not by both.
 *
 * @param loader The loader.
 * @param ids    Ids of the data set, copied.
 * @param times  Numbers below 2^31: how often sample ids[i] came before in the first run, so that it draws what it drew
 *               there.  NULL: counted.
 * @param n      Their number, at least 1.
 * @param err    The reason of a failure.  May be NULL.
 *
 * @return As dr_loader_push.
 *
 * @note May be called from any thread.
 */
DR_API dr_status dr_loader_push_occurrences(dr_loader *loader, const uint64_t *ids, const uint64_t *times, uint64_t n,
                                            dr_error *err);

/**
 * Count samples and batches as pushed and delivered without making them, to resume an epoch.  Positions, occurrences
 * and batch numbers of later pushes are those of the whole epoch.  The caller remembers what was delivered
 * (dr_batch_ids, dr_batch_positions): dr_loader_state fails with DR_ERR_STATE under pushed_order.
 *
 * @param loader  The loader.
 * @param ids     Ids of the data set.
 * @param n       Their number; may be 0.
 * @param batches The number of batches that they were in.
 * @param err     The reason of a failure.  May be NULL.
 *
 * @return As dr_loader_push.
 *
 * @note May be called from any thread.
 */
DR_API dr_status dr_loader_push_past(dr_loader *loader, const uint64_t *ids, uint64_t n, uint64_t batches,
                                     dr_error *err);

/**
 * Get the number of batches that the caller should keep pushed and not yet delivered.
 *
 * @param loader The loader.
 * @param wanted The caller's own prefetch window, in batches.
 *
 * @return `wanted`; while a policy sets the knob `prefetch`, at least one more than that knob.
 *
 * @note May be called from any thread.
 */
DR_API uint64_t dr_loader_prefetch_window(dr_loader *loader, uint64_t wanted);

/**
 * Choose the samples that may replace bad ones; without this call, all may.  For callers that push only some samples
 * of a data set.
 *
 * @param loader The loader.
 * @param ids    Ids of the data set, copied.
 * @param n      Their number.
 * @param err    The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG: n is 0 or an id is out of range; DR_ERR_STATE: an epoch was started, or it is the second
 *         call; DR_ERR_NOMEM.
 *
 * @note May be called from any thread.
 */
DR_API dr_status dr_loader_set_replacements(dr_loader *loader, const uint64_t *ids, uint64_t n, dr_error *err);

/* --- saving and restoring --- */

/**
 * Save the cursor of the consumer: seed, epoch, position and a hash of the configuration.
 *
 * @param loader The loader.
 * @param text   Receives JSON, under 1 KB for in-order loaders, which the caller frees by dr_text_free.
 * @param err    The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_STATE: pushed_order; DR_ERR_NOMEM; DR_ERR_FORKED.
 *
 * @note May be called from any thread.
 */
DR_API dr_status dr_loader_state(dr_loader *loader, char **text, dr_error *err);

/**
 * Save the state as if a batch of dr_loader_next had not been delivered: for a consumer that was interrupted before it
 * could use it.  In order, batches delivered after it come again, too.
 *
 * @param loader The loader.
 * @param batch  The batch, borrowed; a batch of another epoch, or NULL, makes no difference.
 * @param text   As for dr_loader_state.
 * @param err    The reason of a failure.  May be NULL.
 *
 * @return As dr_loader_state.
 *
 * @note May be called from any thread.
 */
DR_API dr_status dr_loader_state_without(dr_loader *loader, const dr_batch *batch, char **text, dr_error *err);

/**
 * Resume from a state: the next call of dr_loader_next delivers what followed.
 *
 * Workers, prefetch and world_size may differ from those of the loader that saved it.
 *
 * @param loader The loader.
 * @param text   The state, borrowed.
 * @param err    The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_STATE: another graph, data set, seed, shuffle or batch_size, which the error names;
 *         DR_ERR_FORMAT: a value of the wrong type or range (24.0 is not an int).  After an error nothing has changed.
 *
 * @note May be called from any thread while none is in dr_loader_next.
 */
DR_API dr_status dr_loader_restore(dr_loader *loader, const char *text, dr_error *err);

/**
 * Check a state, without changing anything.
 *
 * @param loader The loader.
 * @param text   The state, borrowed.
 * @param err    The reason of a failure.  May be NULL.
 *
 * @return As dr_loader_restore.
 *
 * @note May be called from any thread.
 */
DR_API dr_status dr_loader_check_state(dr_loader *loader, const char *text, dr_error *err);

/* --- knobs --- */

/**
 * Change a knob of a running loader.  It takes effect at once and does not wait for samples in flight; none is lost or
 * made twice.  The policy leaves the knob alone from then on.
 *
 * @param loader The loader.
 * @param knob   A name of DR_KNOB_MAP in drapps/sched.h.
 * @param value  Within the range that is given there.
 * @param err    The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_NOT_FOUND: no such knob; DR_ERR_ARG: out of range; DR_ERR_LIMIT: no thread can be started.
 *
 * @note May be called from any thread.
 */
DR_API dr_status dr_loader_set(dr_loader *loader, const char *knob, double value, dr_error *err);

/**
 * Read a knob.
 *
 * @param loader The loader.
 * @param knob   A name of DR_KNOB_MAP in drapps/sched.h.
 * @param value  Set unless the call fails.
 * @param err    The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_NOT_FOUND.
 *
 * @note May be called from any thread.
 */
DR_API dr_status dr_loader_get(dr_loader *loader, const char *knob, double *value, dr_error *err);

/**
 * Change what the policy aims for while the loader runs: a spot price, a shared machine.
 *
 * @param loader  The loader.
 * @param weights As in dr_loader_options; NULL: "step".
 * @param err     The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG: they cannot be parsed, and nothing has changed; DR_ERR_FORKED.
 *
 * @note May be called from any thread.
 */
DR_API dr_status dr_loader_set_weights(dr_loader *loader, const char *weights, dr_error *err);

/**
 * Tell the loader that the consumer does something else for a while: an evaluation, a checkpoint.  Until
 * dr_loader_resume the policy decides nothing and does not take the silence for a slow consumer; batches are made ahead
 * as far as memory allows (dr_controller_pause in drapps/sched.h).  Batches may still be taken.  Pauses nest.
 *
 * @param loader The loader.
 * @param err    The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_FORKED.
 *
 * @note May be called from any thread, also while no epoch runs.
 */
DR_API dr_status dr_loader_pause(dr_loader *loader, dr_error *err);

/**
 * End a pause.
 *
 * @param loader The loader.
 * @param err    The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_STATE: the loader is not paused; DR_ERR_FORKED.
 *
 * @note May be called from any thread.
 */
DR_API dr_status dr_loader_resume(dr_loader *loader, dr_error *err);

/**
 * Copy the newest decisions of the policy, oldest first.  The last 64 are kept.
 *
 * @param loader The loader.
 * @param after  Only decisions with higher numbers.
 * @param out    Room for `cap` decisions.
 * @param cap    How many to copy at most.
 *
 * @return How many were copied; 0 in a forked child.
 *
 * @note May be called from any thread.
 */
DR_API size_t dr_loader_decisions(dr_loader *loader, uint64_t after, struct dr_decision *out, size_t cap);

/* --- reports ---
 *
 * The caller frees the texts by dr_text_free.  The calls may be made from any thread. */

/**
 * List the samples that threads are working on, the longest first.  Samples that begin or end during the call may be
 * reported wrongly.
 *
 * @param loader The loader.
 * @param text   Receives a JSON array of {"id", "key", "worker" (negative: a reader), "seconds"}.
 * @param err    The reason of a failure.  May be NULL.
 *
 * @return DR_OK, DR_ERR_NOMEM or DR_ERR_FORKED.
 */
DR_API dr_status dr_loader_running(dr_loader *loader, char **text, dr_error *err);

/**
 * List bad samples of an epoch that has ended (DR_END) which no batch reported, because none came after them.  The
 * next call returns "[]".
 *
 * @param loader The loader.
 * @param text   Receives a JSON array as of dr_batch_bad.
 * @param err    The reason of a failure.  May be NULL.
 *
 * @return DR_OK, DR_ERR_NOMEM or DR_ERR_FORKED.
 */
DR_API dr_status dr_loader_unreported_bad(dr_loader *loader, char **text, dr_error *err);

/**
 * Get counters and times since the loader was opened.
 *
 * @param loader The loader.
 * @param text   Receives a JSON object; its keys are the same in every language and are listed in docs/stats.md.
 * @param err    The reason of a failure.  May be NULL.
 *
 * @return DR_OK, DR_ERR_NOMEM or DR_ERR_FORKED.
 */
DR_API dr_status dr_loader_stats(dr_loader *loader, char **text, dr_error *err);

/**
 * Describe what runs: ops, shapes, fusion, workers, budget.
 *
 * @param loader The loader.
 * @param text   Receives lines for people.
 * @param err    The reason of a failure.  May be NULL.
 *
 * @return DR_OK, DR_ERR_NOMEM or DR_ERR_FORKED.
 */
DR_API dr_status dr_loader_explain(dr_loader *loader, char **text, dr_error *err);

/**
 * Measure ops: run samples in the calling thread, each op by op and then fused, as the loader does.
 *
 * @param loader  The loader.
 * @param samples How many samples to run.
 * @param text    Receives JSON: CPU time and bytes of each op; CPU time of all ops one by one, and of a fused sample.
 * @param err     The reason of a failure.  May be NULL.
 *
 * @return DR_OK, DR_ERR_NOMEM or DR_ERR_FORKED.
 */
DR_API dr_status dr_loader_profile(dr_loader *loader, uint64_t samples, char **text, dr_error *err);

/**
 * Write an event of the caller into the loader's trace, with the present time.  Does nothing without a trace.
 *
 * @param loader The loader.
 * @param json   A JSON object with the member "event", under 64 KB; borrowed.
 */
DR_API void dr_loader_note(dr_loader *loader, const char *json);

/* --- batches ---
 *
 * A batch is read-only except for the memory of its fields, which belongs to its holder alone and may be written to.
 * Results are borrowed from the batch unless the call says otherwise.  The calls may be made from any thread. */

typedef enum dr_collate {
    DR_COLLATE_STACK = 0,
    DR_COLLATE_PAD = 1,
    DR_COLLATE_RAGGED = 2,
    DR_COLLATE_LIST = 3
} dr_collate;

/* One field of a batch.
 *   stack, pad: `array` is one dense array, dims[0] = samples.  pad: `sizes` has the true dims of each sample, n_dims
 *               numbers per sample (those without dims[0]).
 *   ragged:     `array` is all samples one after the other along dims[0]; `offsets` has samples + 1 entries.
 *   list:       `items` has one view per sample; `array` is empty. */
typedef struct dr_batch_field {
    const char *name;
    dr_collate collate;
    dr_view array;
    const int64_t *sizes;
    const int64_t *offsets;
    const dr_view *items;
} dr_batch_field;

/**
 * Add a reference.
 *
 * @param batch The batch.
 *
 * @return The same batch; each reference is released with dr_batch_unref.
 */
DR_API dr_batch *dr_batch_ref(dr_batch *batch);

/**
 * Release a reference; the last one returns the memory to the loader's pool.  May be called from any thread, after the
 * loader is closed, and in a forked child.  Needs no lock of any language.
 *
 * @param batch The batch; set to NULL.  NULL and a pointer to NULL are allowed.
 */
DR_API void dr_batch_unref(dr_batch **batch);

/**
 * Get the number of samples in a batch.
 *
 * @param batch The batch.
 *
 * @return The number of samples.
 */
DR_API uint64_t dr_batch_samples(const dr_batch *batch);

/**
 * Get the number of a batch.
 *
 * @param batch The batch.
 *
 * @return Its number in the epoch, from 0.
 */
DR_API uint64_t dr_batch_number(const dr_batch *batch);

/**
 * Get the epoch of a batch.
 *
 * @param batch The batch.
 *
 * @return The epoch it belongs to.
 */
DR_API uint64_t dr_batch_epoch(const dr_batch *batch);

/**
 * Count the samples that pad a batch.
 *
 * @param batch The batch.
 *
 * @return The number of samples at its end that repeat others (DR_LAST_PAD).
 */
DR_API uint64_t dr_batch_padded(const dr_batch *batch);

/**
 * Get the number of fields of a batch.
 *
 * @param batch The batch.
 *
 * @return The number of fields; 0 for a batch that failed.
 */
DR_API int dr_batch_fields(const dr_batch *batch);

/**
 * Describe a field.
 *
 * @param batch The batch.
 * @param i     0 to dr_batch_fields - 1.
 * @param out   Receives the description; its pointers are borrowed from the batch.
 * @param err   The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG: no such field.
 */
DR_API dr_status dr_batch_field_at(const dr_batch *batch, int i, dr_batch_field *out, dr_error *err);

/**
 * Get the ids of the samples.
 *
 * @param batch The batch.
 *
 * @return The ids of its samples in the data set, dr_batch_samples of them.
 */
DR_API const uint64_t *dr_batch_ids(const dr_batch *batch);

/**
 * Get the positions of the samples.
 *
 * @param batch The batch.
 *
 * @return The positions of its samples in the epoch's order, dr_batch_samples of them.
 */
DR_API const uint64_t *dr_batch_positions(const dr_batch *batch);

/**
 * Get what was drawn for a sample, with keep_draws.
 *
 * @param batch The batch.
 * @param i     0 to dr_batch_samples - 1.
 * @param text  Receives a JSON object {"<node id>": {...}}, which the caller frees by dr_text_free.
 * @param err   The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_STATE: keep_draws is off; DR_ERR_ARG; DR_ERR_NOMEM.
 */
DR_API dr_status dr_batch_draws(const dr_batch *batch, uint64_t i, char **text, dr_error *err);

/**
 * List the bad samples that a batch reports.
 *
 * @param batch The batch.
 *
 * @return The samples skipped or replaced: JSON array of {"position", "id", "key", "error", "action"}.
 */
DR_API const char *dr_batch_bad(const dr_batch *batch);

/**
 * Get the error of a batch.
 *
 * @param batch The batch.
 *
 * @return The error with which dr_loader_next delivered this batch (pushed_order); NULL: none.
 */
DR_API const dr_error *dr_batch_error(const dr_batch *batch);

#ifdef __cplusplus
}
#endif
#endif
