/* pause.h: a consumer that does something else for a while: an evaluation, a checkpoint.
 *
 * It is told of a pause, or notices one: a step that is far longer than those before it, and the only one.  Its time
 * says nothing about the demand.  Meanwhile batches are made ahead as far as memory allows: a surplus over the prefetch
 * window, which is used up afterwards, while the window and all other knobs are what they were.
 */
#ifndef DR_SCHED_PAUSE_H
#define DR_SCHED_PAUSE_H

#include "sched/observation.h"

typedef struct dr__pause {
    /* to notice one */
    double batches;   /* delivered, as last seen */
    double mean_step; /* seconds from batch to batch, without pauses; 0: not known */
    uint64_t took_ns; /* when it last took one, or waited; 0: not yet */
    bool silent;      /* it has taken none for longer than usual */
    bool was_long;    /* the step before was taken for a pause: a second one is the consumer's pace */

    bool resting;      /* it was told of a pause that goes on */
    uint64_t since_ns; /* when that began */
    double lasted;     /* seconds of the pause that ended, until a decision has told of it */

    double surplus; /* batches beyond the prefetch window */
    double set_to;  /* to this the knob was set with it: else somebody else has set it */
    double taken;   /* batches delivered in all, when the surplus was last looked at */
} dr__pause;

/* Notes a tick.  True: with it a pause ended of which nobody had told. */
bool dr__pause_note(dr__pause *p, const dr__tick *tick);

/* Of the knobs as they are: those without the surplus. */
void dr__pause_without(dr__pause *p, const dr__terms_of_use *use, double knob[DR_N_KNOBS]);

/* What is left of the surplus: what was taken since counts an eighth, and no more than lies ready. */
double dr__pause_left(dr__pause *p, const dr__tick *tick);

#endif
