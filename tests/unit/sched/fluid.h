/* fluid.h: a pipeline, its consumer and its machine as fluids: enough of a plant to run a policy on in a test.
 *
 * Threads that want a CPU share the CPUs alike, no thread more than one; a quota holds back workers and consumer.  Time
 * goes in steps of 10 ms; every 100 ms there is a snapshot.  Written apart from sched/plant_model.c on purpose.
 */
#ifndef DR_TESTS_SCHED_FLUID_H
#define DR_TESTS_SCHED_FLUID_H

#include "sched/control_step.h"

typedef struct fluid {
    /* the world; may be changed while it runs */
    double n_cpus, quota;                   /* quota 0: none */
    double foreign;                         /* threads that always want a CPU */
    double cpu, read;                       /* seconds of a sample: on a CPU, blocked in a read */
    double block;                           /* and blocked in the workers' own code, where readers do not help */
    double step, step_cpu;                  /* seconds of the consumer for a batch: without a CPU, on one */
    double step_threads;                    /* that compute step_cpu after `step`; 0: one thread, now and then in it */
    double batch_samples, batch_bytes, lag; /* lag: seconds that a batch takes beyond its work */
    double memory_limit, mem_level;         /* bytes; 0..1 */
    bool away, told;                        /* the consumer does something else; the control is told of that */
    double noise;                           /* of what is measured, e.g. 0.05 */
    uint64_t seed;

    /* as it stands */
    double time, made, taken, ready; /* samples */
    double flow[DR_N_FLOWS], knob[DR_N_KNOBS];
    double used_own, used_foreign, used_workers, throttled; /* CPU seconds since the last snapshot */
    uint64_t n_snapshots;
    double step_left; /* of the consumer's step */
} fluid;

/* A machine with two CPUs, a pipeline of 2 ms for a sample, a consumer that takes 32 samples in 50 ms. */
fluid fluid_ordinary(uint64_t seed);
dr__terms_of_use fluid_use(const fluid *f);

/* A number in [0, 1) by the plant's seed. */
double fluid_random(fluid *f);

/* Goes on for 100 ms and makes a snapshot. */
void fluid_go(fluid *f, dr_snapshot *out);

/* A policy chosen by its text, which must be sound. */
dr__policy_choice fluid_policy(const char *text);

typedef void fluid_fn(void *user, fluid *f, const dr_decision *d);

/* Runs for `seconds`; `seen` (may be NULL) is called after each decision, which was carried out. */
void fluid_run(fluid *f, dr__control *control, double seconds, fluid_fn *seen, void *user);

#endif
