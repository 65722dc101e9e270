/* crew_pilot.h: a pilot for worker processes: who turns the knobs of a crew (crew.h) while it works.
 *
 * The crew turns some knobs itself: prefetch_bytes, lane_threshold and cpu_ceiling.  `prefetch` is a number that
 * whoever posts looks at.  What takes the owner's hands, starting and ending processes and changing their priority, is
 * a wish: a thread of the owner waits for it and does it.
 *
 *     dr_crew_pilot *pilot;
 *     dr_crew_wish wish = { 0 };
 *     dr_crew_adapt(crew, &options, &pilot, &err);
 *     while (dr_crew_pilot_wait(pilot, -1, &wish) != DR_END)
 *         start_or_end(wish.workers);
 *     dr_crew_pilot_close(&pilot);
 *
 * All calls may be made from any thread of the owner, but for dr_crew_pilot_close, after which none may follow.
 */
#ifndef DRAPPS_CREW_PILOT_H
#define DRAPPS_CREW_PILOT_H

#include <drapps/crew.h>
#include <drapps/sched.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the crew did since it was opened, and where it stands: finds zeros, fills what it knows.  cpu is not there. */
DR_API void dr_crew_flow(dr_crew *crew, double flow[DR_N_FLOWS]);

typedef struct dr_crew_adapt_options {
    size_t size;              /* sizeof(dr_crew_adapt_options) */
    const char *policy;       /* a name of dr_policies_json; NULL: "analytic" */
    const char *weights;      /* as dr_weights_parse reads it; NULL: "step" */
    const char *name;         /* of the data set, for those who look (live.h); NULL: nobody may look */
    dr_monitor *monitor;      /* a reference is kept; NULL: the one that the loaders of the process share */
    dr_trace *trace;          /* borrowed until it is stopped; NULL: none */
    double cpu_limit;         /* CPUs that the workers may use, from 0.01 on: the ceiling of the crew from now on,
                                 whatever the policy; 0: this process's part of what the container allows */
    uint64_t memory_limit;    /* bytes of batches under way; 0: a quarter of what the container may use, shared with the
                                 other ranks there (LOCAL_WORLD_SIZE) */
    uint32_t pinned;          /* bit (1 << dr_knob): the user's */
    double workers, prefetch; /* as they are now */
    double most_workers;      /* that it may come to by itself; 0: twice the CPUs */
    int period_ms;            /* between decisions; 0: 1000 */
    uint64_t decided;         /* decisions of pilots before this one: numbers go on from there */
} dr_crew_adapt_options;

DR_API void dr_crew_adapt_defaults(dr_crew_adapt_options *options);

typedef struct dr_crew_pilot dr_crew_pilot;

/* The crew is kept until the pilot is closed.  DR_ERR_ARG names a policy or weight that is not known, or the limit.
 * A forked child has a copy without its threads: there nothing is turned (DR_ERR_FORKED) or waited for (DR_END), knobs
 * stand as they stood, there are no decisions, and closing forgets the copy. */
DR_API dr_status dr_crew_adapt(dr_crew *crew, const dr_crew_adapt_options *options, dr_crew_pilot **out, dr_error *err);

/* Ends the pilot: nothing is turned any more, and who waits for wishes gets DR_END. */
DR_API void dr_crew_pilot_stop(dr_crew_pilot *pilot);
DR_API void dr_crew_pilot_close(dr_crew_pilot **pilot);

typedef struct dr_crew_wish {
    uint64_t number; /* of the wish: 0 before the first */
    int workers;     /* processes that there should be */
    int priority;    /* -1: when nothing else wants the CPU, 0: as others */
} dr_crew_wish;

/* The wish after that of *wish.number; DR_AGAIN after timeout_ms (-1: waits for ever), DR_END when it was stopped. */
DR_API dr_status dr_crew_pilot_wait(dr_crew_pilot *pilot, int timeout_ms, dr_crew_wish *wish);

/* How a knob stands; 0 for those that a crew does not have. */
DR_API double dr_crew_pilot_get(dr_crew_pilot *pilot, int knob);

/* The user turns a knob: it stays so.  A wish of it is not made: who calls this does it himself. */
DR_API dr_status dr_crew_pilot_set(dr_crew_pilot *pilot, int knob, double value, dr_error *err);

/* A process that works for the crew and is none of its workers: counts as own (monitor.h). */
DR_API void dr_crew_pilot_watch(dr_crew_pilot *pilot, int pid);

/* No pass runs: it watches and does not decide. */
DR_API void dr_crew_pilot_hold(dr_crew_pilot *pilot, bool held);

/* See dr_pilot_decisions; also after it was stopped. */
DR_API size_t dr_crew_pilot_decisions(dr_crew_pilot *pilot, uint64_t after, dr_decision *out, size_t cap);

#ifdef __cplusplus
}
#endif
#endif
