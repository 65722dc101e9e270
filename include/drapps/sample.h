/* sample.h: one sample at a time, in the calling thread: for front ends that put code of their own between ops, and
 * for looking at single samples.
 *
 * A runner belongs to one thread at a time.  What it gives is bit for bit what a loader puts into a batch.
 */
#ifndef DRAPPS_SAMPLE_H
#define DRAPPS_SAMPLE_H

#include <drapps/dataset.h>
#include <drapps/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dr_runner dr_runner;

/* Which sample, under which randomness. */
typedef struct dr_sample_name {
    uint64_t seed, epoch;
    uint64_t id;         /* in the data set */
    uint32_t occurrence; /* 0: its first time in the epoch */
} dr_sample_name;

typedef struct dr_field_spec {
    const char *name;
    dr_desc desc; /* DR_UNKNOWN where the shape depends on the sample */
} dr_field_spec;

/* The sample at a position of an epoch's order: what a loader with this seed and shuffle puts there. */
DR_API dr_status dr_order_sample(const dr_dataset *set, uint64_t seed, uint64_t epoch, bool shuffle, uint64_t position,
                                 dr_sample_name *out, dr_error *err);

/* A runner over the samples of a set (reffed). outputs, layout: as in dr_loader_options; every output is collated as a
 * list, so that shapes may differ. */
DR_API dr_status dr_runner_open(dr_dataset *set, dr_graph *graph, const char *outputs, const char *layout,
                                bool reference, dr_runner **out, dr_error *err);

/* A runner over samples that the caller hands in. */
DR_API dr_status dr_runner_open_fields(const dr_field_spec *fields, int n_fields, dr_graph *graph, const char *outputs,
                                       const char *layout, bool reference, dr_runner **out, dr_error *err);

/* An error where one of these outputs (names with commas), which will be delivered, tells places in an image that an op
 * of the graph moves without it.  Opening does not look for that: what comes after the runner may see to it. */
DR_API dr_status dr_runner_check(const dr_runner *runner, const char *delivered, dr_error *err);

DR_API void dr_runner_free(dr_runner **runner);

/* Reads a sample of the set and runs the graph on it. */
DR_API dr_status dr_runner_run(dr_runner *runner, const dr_sample_name *name, dr_error *err);

/* Runs the graph on given arrays, in the order of the fields; each is dense and fits its field's description. */
DR_API dr_status dr_runner_feed(dr_runner *runner, const dr_view *fields, const dr_sample_name *name, dr_error *err);

/* The results of the last run: dense, borrowed until the next. */
DR_API int dr_runner_outputs(const dr_runner *runner);
DR_API const char *dr_runner_output(const dr_runner *runner, int i, dr_view *out);

/* What was drawn in the last run: JSON object by node id (free with dr_text_free). */
DR_API dr_status dr_runner_draws(const dr_runner *runner, char **text, dr_error *err);

#ifdef __cplusplus
}
#endif
#endif
