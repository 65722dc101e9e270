/* sim_rates.h: how fast everything goes between two events of a tick. */
#ifndef DR_SIM_RATES_H
#define DR_SIM_RATES_H

#include "sim/twin.h"

#define DR__SIM_NO_TIME 1e-9   /* seconds */
#define DR__SIM_NO_SAMPLE 1e-7 /* samples: rounding of positions */

typedef struct dr__sim_rates {
    double share;                   /* of a CPU, for workers that want one */
    double others;                  /* the same for the consumer */
    double workers, readers;        /* threads at an ordinary sample, at a read */
    double slow;                    /* workers at slow samples */
    double each;                    /* CPU seconds of an ordinary sample of the present batch */
    double work, read;              /* samples a second */
    double pace;                    /* of the consumer's step: seconds at full speed, a second */
    double own_cpus, consumer_cpus; /* used: by workers and consumer; by the consumer */
    bool limited;                   /* by the CPU ceiling */
} dr__sim_rates;

void dr__sim_make_rates(const dr_sim *s, dr__sim_rates *r);

/* Samples that may be read before the window, or the queue of samples read ahead by these workers, is full. */
double dr__sim_room_to_read(const dr_sim *s, double workers);

/* The quota of this period is used up. */
static inline bool dr__sim_is_throttled(const dr_sim *s)
{
    return s->budget <= DR__SIM_NO_TIME;
}

#endif
