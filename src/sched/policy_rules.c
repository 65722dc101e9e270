/* policy_rules.c: fixed rules on the queue of finished batches, to compare with.
 *
 *   ready under 20 % of prefetch            one worker more, twice the prefetch
 *   ready over 80 % for 5 s                 one worker less
 *
 * The rules of the same set that move work to an accelerator or change a codec have no knob here.
 */
#include <stdio.h>

#include "base/compiler.h"
#include "sched/policy.h"

static const double LOW = 0.2, HIGH = 0.8, LONG = 5; /* shares of the queue; seconds */

struct state {
    double high; /* seconds for which the queue has been nearly full */
};

static void decide(void *state, const dr__observation *o, dr__proposal *proposal)
{
    struct state *s = state;
    double prefetch = DR_MAX(o->knob[DR_KNOB_PREFETCH], 1), fill = o->flow[DR_FLOW_READY] / prefetch;
    s->high = fill > HIGH ? s->high + o->span : 0;
    proposal->bound = fill > HIGH ? DR_BOUND_TRAINER : fill < LOW ? DR_BOUND_WORKERS : DR_BOUND_UNKNOWN;
    snprintf(proposal->reason, sizeof proposal->reason,
             "%.0f %% of %g batches are ready; more than 80 %% were for %.0f s.", 100 * fill, prefetch, s->high);
    if (fill < LOW) {
        proposal->knob[DR_KNOB_WORKERS] += 1;
        proposal->knob[DR_KNOB_PREFETCH] *= 2;
    } else if (s->high >= LONG) {
        proposal->knob[DR_KNOB_WORKERS] = DR_MAX(proposal->knob[DR_KNOB_WORKERS] - 1, 1);
        s->high = 0;
    }
}

const dr__policy_def dr__policy_rules = {
    .name = "rules",
    .doc = "few batches ready: a worker more and twice the prefetch; many for 5 s: a worker less",
    .state_bytes = sizeof(struct state),
    .decide = decide,
};
