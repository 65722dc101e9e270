/* shmpool_controller.h: a controller of worker processes: turns the knobs of a shmpool (shmpool.h) while it works.
 *
 * The shmpool applies prefetch_bytes, lane_threshold and cpu_ceiling itself.  `prefetch` is a number that the poster
 * reads.  Starting and ending processes and changing their priority is up to the main process: these are proposals,
 * which one of its threads waits for and carries out.
 *
 *     dr_shmpool_controller *controller;
 *     dr_shmpool_proposal proposal = { 0 };
 *     dr_shmpool_adapt(shmpool, &options, &controller, &err);
 *     while (dr_shmpool_controller_wait(controller, -1, &proposal) != DR_END)
 *         start_or_end(proposal.workers);
 *     dr_shmpool_controller_close(&controller);
 *
 * Threads: all calls may be made from any thread of the main process.  None may follow dr_shmpool_controller_close.
 */
#ifndef DRAPPS_SHMPOOL_CONTROLLER_H
#define DRAPPS_SHMPOOL_CONTROLLER_H

#include <drapps/shmpool.h>
#include <drapps/sched.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Get what the shmpool did since it was opened, and what it does now.
 *
 * @param shmpool The shmpool.
 * @param flow    One number for each dr_flow.  Set to 0 by the caller; numbers that are not known stay so, among them
 *                cpu.
 */
DR_API void dr_shmpool_flow(dr_shmpool *shmpool, double flow[DR_N_FLOWS]);

typedef struct dr_shmpool_adapt_options {
    size_t size;              /* sizeof(dr_shmpool_adapt_options) */
    const char *policy;       /* a name of dr_policies_json; NULL: "analytic" */
    const char *weights;      /* as dr_weights_schedule_parse reads it; NULL: "step" */
    const char *name;         /* of the data set, in the live status (live.h); NULL: no live status */
    dr_monitor *monitor;      /* a reference is kept; NULL: the one that the loaders of the process share */
    dr_trace *trace;          /* borrowed until the controller is stopped; NULL: none */
    double cpu_limit;         /* CPUs that the workers may use, from 0.01 on: the ceiling of the shmpool from now on,
                                 whatever the policy; 0: this process's part of what the container allows */
    uint64_t memory_limit;    /* bytes of batches in flight; 0: a quarter of what the container may use, shared with the
                                 other ranks there (LOCAL_WORLD_SIZE) */
    uint32_t pinned;          /* bits 1 << dr_knob: knobs that no policy changes */
    double workers, prefetch; /* as they are now */
    double most_workers;      /* that a policy may use; 0: twice the CPUs */
    int period_ms;            /* between decisions; 0: 1000 */
    uint64_t decided;         /* decisions of earlier controllers: numbers continue from there */
} dr_shmpool_adapt_options;

/**
 * Set all options to their defaults.
 *
 * @param options The options to fill, `size` included.
 */
DR_API void dr_shmpool_adapt_defaults(dr_shmpool_adapt_options *options);

typedef struct dr_shmpool_controller dr_shmpool_controller;

/**
 * Start a controller.  It decides in the thread of its monitor.
 *
 * A forked child has a copy without that thread: calls that change something return DR_ERR_FORKED, waits return DR_END,
 * knobs keep their values, there are no decisions, and closing frees the copy.
 *
 * @param shmpool The shmpool.  A reference is kept until the controller is closed.
 * @param options The options.  Borrowed during the call, but for the trace.
 * @param out     The controller.  The caller owns it.
 * @param err     The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG for an unknown policy or weight, or a wrong limit; DR_ERR_FORKED where the monitor is
 *         the parent process's; DR_ERR_NOMEM; or what starting the monitor returned.
 */
DR_API dr_status dr_shmpool_adapt(dr_shmpool *shmpool, const dr_shmpool_adapt_options *options,
                                  dr_shmpool_controller **out, dr_error *err);

/**
 * Stop the controller: no knob is turned any more, and dr_shmpool_controller_wait returns DR_END.
 *
 * @param controller The controller.
 */
DR_API void dr_shmpool_controller_stop(dr_shmpool_controller *controller);

/**
 * Stop and free a controller.
 *
 * @param controller Set to NULL.  NULL, or a pointer to NULL, is fine.
 */
DR_API void dr_shmpool_controller_close(dr_shmpool_controller **controller);

typedef struct dr_shmpool_proposal {
    uint64_t number; /* of the proposal; 0 before the first */
    int workers;     /* processes that there should be */
    int priority;    /* -1: when nothing else wants the CPU, 0: as others */
} dr_shmpool_proposal;

/**
 * Wait for a proposal.
 *
 * @param controller The controller.
 * @param timeout_ms The longest wait; -1: no limit.
 * @param proposal   `number` is that of the last proposal the caller knows.  Replaced by a later one.
 *
 * @return DR_OK; DR_AGAIN after that time; DR_END when the controller was stopped.
 */
DR_API dr_status dr_shmpool_controller_wait(dr_shmpool_controller *controller, int timeout_ms,
                                            dr_shmpool_proposal *proposal);

/**
 * Get the value of a knob.
 *
 * @param controller The controller.
 * @param knob       A dr_knob.
 *
 * @return The value; 0 for a knob that a shmpool does not have.
 */
DR_API double dr_shmpool_controller_get(dr_shmpool_controller *controller, int knob);

/**
 * Set a knob for the user: no policy changes it any more.  Makes no proposal: the caller carries the value out itself.
 *
 * @param controller The controller.
 * @param knob       A dr_knob.
 * @param value      The value.
 * @param err        The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG for a value out of the knob's range, or a knob that a shmpool does not have; DR_ERR_FORKED
 *         in a forked child.
 */
DR_API dr_status dr_shmpool_controller_set(dr_shmpool_controller *controller, int knob, double value, dr_error *err);

/**
 * Count a process that works for the shmpool without being one of its workers as own (monitor.h).
 *
 * @param controller The controller.
 * @param pid        The process.
 */
DR_API void dr_shmpool_controller_watch(dr_shmpool_controller *controller, int pid);

/**
 * Hold the controller between passes: it observes and does not decide.
 *
 * @param controller The controller.
 * @param held       Whether it is held.
 */
DR_API void dr_shmpool_controller_hold(dr_shmpool_controller *controller, bool held);

/**
 * Change the weights.
 *
 * @param weights As dr_weights_schedule_parse reads them; NULL: "step".
 * @param err     The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG: they cannot be parsed, and nothing has changed; DR_ERR_FORKED.
 */
DR_API dr_status dr_shmpool_controller_set_weights(dr_shmpool_controller *controller, const char *weights,
                                                   dr_error *err);

/**
 * Tell the controller that the consumer pauses, or goes on (dr_controller_pause).  What is posted is made meanwhile.
 *
 * @param paused Whether it pauses.
 */
DR_API void dr_shmpool_controller_pause(dr_shmpool_controller *controller, bool paused);

/**
 * Get decisions, also after the controller was stopped.  See dr_controller_decisions.
 *
 * @param controller The controller.
 * @param after      Only decisions with higher numbers.
 * @param out        Filled with up to `cap` decisions, oldest first.
 * @param cap        The size of `out`.
 *
 * @return How many were written.
 */
DR_API size_t dr_shmpool_controller_decisions(dr_shmpool_controller *controller, uint64_t after, dr_decision *out,
                                              size_t cap);

#ifdef __cplusplus
}
#endif
#endif
