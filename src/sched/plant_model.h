/* plant_model.h: how many samples a second so many workers would make, by operational analysis.
 *
 * A sample takes `cpu` seconds of a CPU and `block` seconds of waiting.  CPUs are shared alike by all threads that want
 * one: our workers, the consumer, others.  So two workers beside one foreign thread on two CPUs get 4/3 of a CPU, three
 * get 3/2; where nobody else is, more workers than CPUs get nothing.
 * A consumer that computes on the same CPUs is slowed down while workers run, more so the more of them want a CPU: then
 * fewer may make more.  A worker that is blocked wants none.
 */
#ifndef DR_SCHED_PLANT_MODEL_H
#define DR_SCHED_PLANT_MODEL_H

#include "sched/observation.h"

typedef struct dr__plant_model {
    double cpu, block; /* seconds of a worker for a sample */
    double consumer;   /* CPU seconds of the consumer for a sample, on */
    double threads;    /* so many threads at a time; at least 1 */
    double demand;     /* samples a second that the consumer would take, with CPUs of its own */
    double foreign;    /* threads of others that want a CPU, on average */
    double machine_cpus, quota_cpus, cpus;
    double batch_samples;
    bool has_power;   /* energy is measured, or modelled by the monitor */
    double levels[3]; /* use of memory, storage and accelerator, for the balance; below 0: absent */
} dr__plant_model;

/* Power as in the monitor's model: of a machine at rest, and more by its load, as parts of a busy one's. */
#define DR__REST_POWER 0.2
#define DR__LOAD_POWER (1 - DR__REST_POWER)

/* CPUs that the workers would get. */
double dr__plant_cpus(const dr__plant_model *m, double workers);

/* Samples a second that they would make. */
double dr__plant_capacity(const dr__plant_model *m, double workers);

/* Samples a second that the consumer would take beside them if it never waited for a batch. */
double dr__plant_demand(const dr__plant_model *m, double workers);

/* The reward that would follow, when `margin` times the demand is wanted as capacity. */
double dr__plant_reward(const dr__plant_model *m, const dr_weights *weights, double workers, double margin);

#endif
