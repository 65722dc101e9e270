/* costs.h: what a sample costs and what is asked for, smoothed over decisions. */
#ifndef DR_SCHED_COSTS_H
#define DR_SCHED_COSTS_H

#include "sched/observation.h"

typedef struct dr__costs {
    double cpu;                    /* seconds of a CPU for a sample, reading included; 0: not known */
    double read;                   /* seconds from a read's begin to its end */
    double block_read, block_work; /* seconds in which a thread at a sample wants no CPU */
    double consumer;               /* CPU seconds of the consumer for a sample */
    double demand;                 /* samples a second that the consumer would take; 0: not known */
    double latency;                /* seconds for a batch */
    double foreign;                /* threads of others that want a CPU, on average */
} dr__costs;

void dr__costs_learn(dr__costs *c, const dr__observation *o);

#endif
