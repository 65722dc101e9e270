/* pipeline_facts.h: what a running pipeline tells the monitor at each tick.
 *
 * The executor registers a callback that fills the facts; several pipelines may share a monitor.  The snapshot holds
 * the mean of the shares and times over the pipelines that know them, and the sum of the bytes.
 */
#ifndef DR_MONITOR_PIPELINE_FACTS_H
#define DR_MONITOR_PIPELINE_FACTS_H

#include <drapps/monitor.h>

#include "monitor/hooks.h"

enum dr__stage { DR__STAGE_FETCH, DR__STAGE_DECODE, DR__STAGE_AUGMENT, DR__STAGE_BATCH, DR__STAGE_SLOW, DR__N_STAGES };

/* What is not known stays NAN, as the callback finds it. */
typedef struct dr__pipeline_facts {
    double queue_fill[DR__N_STAGES]; /* 0..1 */
    double service_ns[DR__N_STAGES]; /* of one sample */
    double demand_ns;                /* time in which the consumer takes one sample; NAN: 1 s is the full scale */
    double batch_latency_ns;
    double consumer_wait; /* share of the time since the last call */
    double cache_hits;    /* share of the samples since the last call */
    double cache_fill;
    double in_flight_bytes, in_flight_limit;
} dr__pipeline_facts;

/* As dr_monitor_open, for a pipeline at work, which must not wait: the first snapshot is made meanwhile. */
dr_status dr__monitor_begin(const dr_monitor_options *options, dr_monitor **out, dr_error *err);

/* Registers a pipeline; `fill` runs in the monitor's thread without a lock held.  The token is for the removal, after
 * which it does not run any more.  DR_ERR_LIMIT: too many are there. */
dr_status dr__monitor_add_pipeline(dr_monitor *monitor, dr__pipeline_fn *fill, void *user, int *token, dr_error *err);
void dr__monitor_remove_pipeline(dr_monitor *monitor, int token);

/* Before the /proc and /sys that it reads: "" is this machine.  The monitor's. */
const char *dr__monitor_root(const dr_monitor *monitor);

#endif
