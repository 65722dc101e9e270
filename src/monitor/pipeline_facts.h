/* pipeline_facts.h: what a running pipeline reports to the monitor at each tick.
 *
 * The executor registers a callback that fills the facts; several pipelines may share a monitor.  The snapshot holds
 * the mean of the shares and times over the pipelines that know them, and the sum of the bytes.
 */
#ifndef DR_MONITOR_PIPELINE_FACTS_H
#define DR_MONITOR_PIPELINE_FACTS_H

#include <drapps/monitor.h>

#include "monitor/hooks.h"

enum dr__stage { DR__STAGE_FETCH, DR__STAGE_DECODE, DR__STAGE_AUGMENT, DR__STAGE_BATCH, DR__STAGE_SLOW, DR__N_STAGES };

/* All fields are NAN before the callback; unknown ones stay NAN. */
typedef struct dr__pipeline_facts {
    double queue_fill[DR__N_STAGES]; /* 0..1 */
    double service_ns[DR__N_STAGES]; /* of one sample */
    double demand_ns;                /* the consumer's own time per sample; NAN: the full scale is 1 s */
    double batch_latency_ns;
    double consumer_wait; /* share of the time since the last call */
    double cache_hits;    /* share of the samples since the last call */
    double cache_fill;
    double in_flight_bytes, in_flight_limit;
} dr__pipeline_facts;

/* As dr_monitor_open, but does not wait for the first snapshot: for pipelines that are running. */
dr_status dr__monitor_begin(const dr_monitor_options *options, dr_monitor **out, dr_error *err);

/* Registers a pipeline.
 *
 * @param fill   runs in the monitor's thread, with no lock held.
 * @param token  for dr__monitor_remove_pipeline, after which `fill` does not run any more.
 * @return DR_OK; DR_ERR_LIMIT: there are DR__MAX_HOOKS already; DR_ERR_FORKED. */
dr_status dr__monitor_add_pipeline(dr_monitor *monitor, dr__pipeline_fn *fill, void *user, int *token, dr_error *err);
void dr__monitor_remove_pipeline(dr_monitor *monitor, int token);

/* The folder whose /proc and /sys are read; "": this machine.  Belongs to the monitor. */
const char *dr__monitor_root(const dr_monitor *monitor);

#endif
