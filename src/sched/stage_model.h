/* stage_model.h: a pipeline as stages behind each other with a buffer at the end, as tf.data's autotuning sees it.
 *
 * It knows the time of a sample in each stage and the number of threads there, and nothing of other programs: that is
 * what sets the policies that use it apart from `analytic`.
 */
#ifndef DR_SCHED_STAGE_MODEL_H
#define DR_SCHED_STAGE_MODEL_H

#include "sched/policy.h"

typedef struct dr__stage_model {
    double read, work; /* seconds of a sample, on one thread */
    double step;       /* seconds in which the consumer uses up a sample */
    bool split;        /* readers may read; else workers do both */
    double batch_samples;
} dr__stage_model;

/* False: too little was seen yet. */
bool dr__stage_model_of(const dr__observation *o, dr__stage_model *out);

/* Seconds between samples out of a stage with these knobs. */
double dr__stage_read_time(const dr__stage_model *m, const double knob[DR_N_KNOBS]);
double dr__stage_work_time(const dr__stage_model *m, const double knob[DR_N_KNOBS]);

/* Seconds that the consumer waits for a sample, as a queue M/M/1/K with the prefetch as its room. */
double dr__stage_wait(const dr__stage_model *m, const double knob[DR_N_KNOBS]);

/* One more of a knob, within its range and the memory limit; false: there is no more. */
bool dr__stage_raise(const dr__observation *o, double knob[DR_N_KNOBS], int which, double by);

#endif
