/* shmpool_controller.h: a controller for worker processes: who turns the knobs of a shmpool (shmpool.h) while it works.
 *
 * The shmpool turns some knobs itself: prefetch_bytes, lane_threshold and cpu_ceiling.  `prefetch` is a number that
 * whoever posts looks at.  What takes the owner's hands, starting and ending processes and changing their priority, is
 * a proposal: a thread of the owner waits for it and does it.
 *
 *     dr_shmpool_controller *controller;
 *     dr_shmpool_proposal proposal = { 0 };
 *     dr_shmpool_adapt(shmpool, &options, &controller, &err);
 *     while (dr_shmpool_controller_wait(controller, -1, &proposal) != DR_END)
 *         start_or_end(proposal.workers);
 *     dr_shmpool_controller_close(&controller);
 *
 * All calls may be made from any thread of the owner, but for dr_shmpool_controller_close, after which none may follow.
 */
#ifndef DRAPPS_SHMPOOL_CONTROLLER_H
#define DRAPPS_SHMPOOL_CONTROLLER_H

#include <drapps/shmpool.h>
#include <drapps/sched.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the shmpool did since it was opened, and where it stands: finds zeros, fills what it knows.  cpu is not there.
 */
DR_API void dr_shmpool_flow(dr_shmpool *shmpool, double flow[DR_N_FLOWS]);

typedef struct dr_shmpool_adapt_options {
    size_t size;              /* sizeof(dr_shmpool_adapt_options) */
    const char *policy;       /* a name of dr_policies_json; NULL: "analytic" */
    const char *weights;      /* as dr_weights_parse reads it; NULL: "step" */
    const char *name;         /* of the data set, for those who look (live.h); NULL: nobody may look */
    dr_monitor *monitor;      /* a reference is kept; NULL: the one that the loaders of the process share */
    dr_trace *trace;          /* borrowed until it is stopped; NULL: none */
    double cpu_limit;         /* CPUs that the workers may use, from 0.01 on: the ceiling of the shmpool from now on,
                                 whatever the policy; 0: this process's part of what the container allows */
    uint64_t memory_limit;    /* bytes of batches under way; 0: a quarter of what the container may use, shared with the
                                 other ranks there (LOCAL_WORLD_SIZE) */
    uint32_t pinned;          /* bit (1 << dr_knob): the user's */
    double workers, prefetch; /* as they are now */
    double most_workers;      /* that it may come to by itself; 0: twice the CPUs */
    int period_ms;            /* between decisions; 0: 1000 */
    uint64_t decided;         /* decisions of controllers before this one: numbers go on from there */
} dr_shmpool_adapt_options;

DR_API void dr_shmpool_adapt_defaults(dr_shmpool_adapt_options *options);

typedef struct dr_shmpool_controller dr_shmpool_controller;

/* The shmpool is kept until the controller is closed.  DR_ERR_ARG names a policy or weight that is not known, or the
 * limit. A forked child has a copy without its threads: there nothing is turned (DR_ERR_FORKED) or waited for (DR_END),
 * knobs stand as they stood, there are no decisions, and closing forgets the copy. */
DR_API dr_status dr_shmpool_adapt(dr_shmpool *shmpool, const dr_shmpool_adapt_options *options,
                                  dr_shmpool_controller **out, dr_error *err);

/* Ends the controller: nothing is turned any more, and who waits for proposals gets DR_END. */
DR_API void dr_shmpool_controller_stop(dr_shmpool_controller *controller);
DR_API void dr_shmpool_controller_close(dr_shmpool_controller **controller);

typedef struct dr_shmpool_proposal {
    uint64_t number; /* of the proposal: 0 before the first */
    int workers;     /* processes that there should be */
    int priority;    /* -1: when nothing else wants the CPU, 0: as others */
} dr_shmpool_proposal;

/* The proposal after that of *proposal.number; DR_AGAIN after timeout_ms (-1: waits for ever), DR_END when it was
 * stopped. */
DR_API dr_status dr_shmpool_controller_wait(dr_shmpool_controller *controller, int timeout_ms,
                                            dr_shmpool_proposal *proposal);

/* How a knob stands; 0 for those that a shmpool does not have. */
DR_API double dr_shmpool_controller_get(dr_shmpool_controller *controller, int knob);

/* The user turns a knob: it stays so.  A proposal of it is not made: who calls this does it himself. */
DR_API dr_status dr_shmpool_controller_set(dr_shmpool_controller *controller, int knob, double value, dr_error *err);

/* A process that works for the shmpool and is none of its workers: counts as own (monitor.h). */
DR_API void dr_shmpool_controller_watch(dr_shmpool_controller *controller, int pid);

/* No pass runs: it watches and does not decide. */
DR_API void dr_shmpool_controller_hold(dr_shmpool_controller *controller, bool held);

/* See dr_controller_decisions; also after it was stopped. */
DR_API size_t dr_shmpool_controller_decisions(dr_shmpool_controller *controller, uint64_t after, dr_decision *out,
                                              size_t cap);

#ifdef __cplusplus
}
#endif
#endif
