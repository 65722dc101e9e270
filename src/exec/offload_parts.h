/* offload_parts.h: what the files of the offload stage share: offload_open.c (modes, places to cut at), offload_stage.c
 * (reading), offload_learn.c (rates and plans), offload_report.c (statistics, and a line for people).
 *
 * `plan[id]` is the cut of a sample, read by any thread and replaced byte by byte when there is a new plan: whichever
 * value a thread finds, the sample is the same.  Everything that is learnt lies under `lock`, which is held for some
 * sums; planning itself is done by one thread, under `planning`.
 */
#ifndef DR_EXEC_OFFLOAD_PARTS_H
#define DR_EXEC_OFFLOAD_PARTS_H

#include "exec/offload_stage.h"
#include "exec/segment_stage.h"
#include "graph/prefix.h"
#include "remote/offload_model.h"

typedef enum dr__offload_phase {
    DR__OFFLOAD_FIXED,
    DR__OFFLOAD_MEASURING,
    DR__OFFLOAD_PROBING,
    DR__OFFLOAD_PLANNED
} dr__offload_phase;

/* A place to cut at, and how what crosses it is sent.  Number 0: the sample as it is stored. */
typedef struct dr__offload_cut {
    int prefix;        /* ops before it */
    const char *codec; /* NULL: none */
    int plain;         /* the number of this cut, or of the same without a codec, which has the parts */
    unsigned probes;
    char name[64];
    dr__prefix parts;
} dr__offload_cut;

/* Since the stage was opened; differences of two make a window. */
typedef struct dr__offload_totals {
    uint64_t now_ns, link_bytes, link_ns, server_ns, asked, shed, step_ns;
    uint64_t used; /* samples that the consumer is done with: a step that has not ended is not in step_ns */
    int workers;   /* now */
} dr__offload_totals;

struct dr__offload {
    const dr_dataset *root; /* the set on the server; borrowed from e->set */
    dr__remote_client *client;
    const dr__offload_policy *policy;
    char mode[24];
    char *graph, *outputs; /* of requests; owned */
    uint64_t ops;
    dr__segments segments;
    dr__offload_cut *cuts; /* owned; [0]: as stored */
    int n_cuts, resize_cut;
    double told_cpus;      /* of the server; 0: it did not say */
    _Atomic uint8_t *plan; /* of each id; owned */
    _Atomic double share;
    atomic_int phase;
    atomic_bool refused; /* the server takes no requests for samples */
    atomic_bool no_ops;  /* it takes them, but runs no ops for this client */
    atomic_uint probe;   /* probes sent */
    atomic_uint_fast64_t next_check_ns;
    atomic_flag planning;

    atomic_uint_fast64_t samples, packed; /* for the statistics; packed: of `samples`, compressed */
    atomic_uint_fast64_t plain, shed, failed, server_ns;

    bool drew;                    /* planning: model.drawn is of the epoch `drawn` */
    uint64_t drawn, next_draw_ns; /* planning: when the draws of another epoch may be looked at */

    pthread_mutex_t lock; /* all below */
    dr__offload_model model;
    unsigned probes_left;
    uint64_t probe_end_ns;
    uint64_t began_ns, n_plain;
    uint64_t epoch;                 /* that the last plan was made in */
    uint64_t plan_ns, next_plan_ns; /* what it took; when the next one may be made */
    dr__offload_totals since;       /* where the window of rates began */
    dr__offload_rates rates, planned_with;
    double step_s; /* of the consumer, for a sample */
    dr__offload_times before, after;
    uint64_t per_cut[DR__OFFLOAD_CUTS], n_segments, n_plans;
    char why[200];
};

#endif
