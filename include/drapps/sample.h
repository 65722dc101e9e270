/* sample.h: one sample at a time, in the calling thread: for front ends that run their own code between ops, and for
 * inspecting single samples.
 *
 * The results of a runner equal those in a loader's batch bit for bit.  One thread at a time may use a runner.
 */
#ifndef DRAPPS_SAMPLE_H
#define DRAPPS_SAMPLE_H

#include <drapps/dataset.h>
#include <drapps/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dr_runner dr_runner;

/* A sample and what its randomness is keyed by. */
typedef struct dr_sample_name {
    uint64_t seed, epoch;
    uint64_t id;         /* in the data set */
    uint32_t occurrence; /* how often the sample came earlier in the epoch; 0: its first time */
} dr_sample_name;

/* A field that the caller hands in. */
typedef struct dr_field_spec {
    const char *name; /* borrowed for the call */
    dr_desc desc;     /* DR_UNKNOWN where the shape depends on the sample */
} dr_field_spec;

/**
 * Find the sample at a position of an epoch's order: the one that a loader with this seed and shuffle puts there.
 *
 * @param set      The data set.
 * @param seed     The loader's seed.
 * @param epoch    The epoch, from 0.
 * @param shuffle  Whether the order is shuffled.
 * @param position The position in the epoch's order, from 0.
 * @param out      Receives the sample.
 * @param err      The reason of a failure.  May be NULL.
 *
 * @return DR_OK, or DR_ERR_ARG where the data set has no samples.
 *
 * @note May be called from any thread.
 */
DR_API dr_status dr_order_sample(const dr_dataset *set, uint64_t seed, uint64_t epoch, bool shuffle, uint64_t position,
                                 dr_sample_name *out, dr_error *err);

/**
 * Choose which of n candidates replaces a bad sample.  All loaders use this rule, and try attempts 0 to 15.
 *
 * @param bad     The sample that was bad, by the seed, epoch, id and occurrence that key its draws.
 * @param attempt How many replacements were bad, too.
 * @param n       Number of candidates, above 0.
 *
 * @return The candidate, 0 to n - 1.
 */
DR_API uint64_t dr_replacement(const dr_sample_name *bad, uint32_t attempt, uint64_t n);

/**
 * Find the sample that a loader with on_bad_sample = DR_BAD_REPLACE delivers in place of a bad one.
 *
 * @param set     The data set.
 * @param bad     The sample that was bad, by the seed, epoch, id and occurrence that key its draws.
 * @param attempt How many replacements were bad, too.
 * @param out     The name of the replacement, which keys its draws.
 * @param err     The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG for a data set without samples.
 */
DR_API dr_status dr_replacement_sample(const dr_dataset *set, const dr_sample_name *bad, uint32_t attempt,
                                       dr_sample_name *out, dr_error *err);

/**
 * Open a runner over the samples of a data set.  Every output is handed out by itself, so that shapes may differ from
 * sample to sample.
 *
 * @param set       The data set, to which the runner holds a reference.
 * @param graph     What to do with its samples; copied.
 * @param outputs   Names of the fields to hand out, separated by commas; NULL: as in dr_loader_options.
 * @param layout    "NCHW" or "NHWC", for images; NULL: "NCHW".
 * @param reference Run without fusion and SIMD.  The results are the same.
 * @param out       The runner, which the caller frees by dr_runner_free.  NULL after a failure.
 * @param err       The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_NOT_FOUND for a field that does not exist; DR_ERR_ARG where an op cannot take its field, or
 *         works on whole batches; DR_ERR_LIMIT or DR_ERR_NOMEM.
 */
DR_API dr_status dr_runner_open(dr_dataset *set, dr_graph *graph, const char *outputs, const char *layout,
                                bool reference, dr_runner **out, dr_error *err);

/**
 * Open a runner over samples that the caller hands in by dr_runner_feed.
 *
 * @param fields    The fields that samples have.  Copied.
 * @param n_fields  Their number, 0 .. 1024.
 * @param graph     As in dr_runner_open.
 * @param outputs   As in dr_runner_open.
 * @param layout    As in dr_runner_open.
 * @param reference As in dr_runner_open.
 * @param out       The runner, which the caller frees by dr_runner_free.  NULL after a failure.
 * @param err       The reason of a failure.  May be NULL.
 *
 * @return As dr_runner_open.
 */
DR_API dr_status dr_runner_open_fields(const dr_field_spec *fields, int n_fields, dr_graph *graph, const char *outputs,
                                       const char *layout, bool reference, dr_runner **out, dr_error *err);

/**
 * Check that the outputs which will be delivered still belong together: none of them holds positions in an image
 * (boxes, masks) that an op of the graph has moved without it.  Opening does not check this, since code behind the
 * runner may restore it.
 *
 * @param runner    The runner.
 * @param delivered Names of the outputs that will be delivered, separated by commas.
 * @param err       The reason of a failure.  May be NULL.
 *
 * @return DR_OK or DR_ERR_ARG.
 */
DR_API dr_status dr_runner_check(const dr_runner *runner, const char *delivered, dr_error *err);

/**
 * Free a runner and the results of its last run.
 *
 * @param runner The runner; set to NULL.  A pointer to NULL is allowed.
 */
DR_API void dr_runner_free(dr_runner **runner);

/**
 * Read a sample of the data set and run the graph on it.
 *
 * @param runner A runner of dr_runner_open.
 * @param name   The sample.
 * @param err    The reason of a failure: file, op and reason.  May be NULL.
 *
 * @return DR_OK; DR_ERR_IO, DR_ERR_NOT_FOUND, DR_ERR_FORMAT or DR_ERR_UNSUPPORTED for a bad sample; DR_ERR_ARG where
 *         there is no such sample; DR_ERR_STATE for a runner of dr_runner_open_fields; DR_ERR_LIMIT or DR_ERR_NOMEM.
 */
DR_API dr_status dr_runner_run(dr_runner *runner, const dr_sample_name *name, dr_error *err);

/**
 * Run the graph on arrays of the caller.
 *
 * @param runner A runner of dr_runner_open_fields.
 * @param fields One dense array for each field, in their order, borrowed for the call.  Encoded bytes need 64 readable
 *               bytes behind their end.
 * @param name   What randomness is keyed by.
 * @param err    The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG where an array does not fit its field; DR_ERR_STATE for a runner of dr_runner_open; what
 *         dr_runner_run returns for a bad sample.
 */
DR_API dr_status dr_runner_feed(dr_runner *runner, const dr_view *fields, const dr_sample_name *name, dr_error *err);

/**
 * Get the number of outputs.
 *
 * @param runner The runner.
 *
 * @return Their number, which does not change.
 */
DR_API int dr_runner_outputs(const dr_runner *runner);

/**
 * Get an output of the last run.
 *
 * @param runner The runner.
 * @param i      Number of the output, from 0.
 * @param out    Receives the result: a dense array that is valid until the next run.
 *
 * @return The name of the output, which belongs to the runner; NULL where there is no output i.
 */
DR_API const char *dr_runner_output(const dr_runner *runner, int i, dr_view *out);

/**
 * Get the random choices of the last run.
 *
 * @param runner The runner.
 * @param text   Receives a JSON object with a member for each node that draws, by its id.  The caller frees it by
 *               dr_text_free.
 * @param err    The reason of a failure.  May be NULL.
 *
 * @return DR_OK or DR_ERR_NOMEM.
 */
DR_API dr_status dr_runner_draws(const dr_runner *runner, char **text, dr_error *err);

#ifdef __cplusplus
}
#endif
#endif
