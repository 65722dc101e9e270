/* reward.h: how good a stretch of time was, by the terms that the user weighs. */
#ifndef DR_SCHED_REWARD_H
#define DR_SCHED_REWARD_H

#include "sched/observation.h"

/* turned: knobs that the decision at the beginning of that time changed, as a share of all that the pipeline has. */
void dr__terms_measure(const dr__observation *o, double turned, double term[DR_N_TERMS]);

/* What samples are worth is small beside what power and CPU time cost. */
bool dr__is_frugal(const dr_weights *weights);

/* A consumer that waits is what is to be avoided, whatever batches take until they are there. */
bool dr__waiting_counts(const dr_weights *weights);

double dr__reward_of(const double term[DR_N_TERMS], const double weight[DR_N_TERMS]);

#endif
