/* policy_rules.c: fixed rules on the queue of finished batches, as a baseline.
 *
 *   fewer than `low` of the prefetch window ready           one worker more, twice the prefetch
 *   more than `high` ready for `hold_s` seconds             one worker less
 */
#include <stdio.h>

#include "base/compiler.h"
#include "sched/policy.h"

enum { LOW, HIGH, HOLD_S, N_PARAMS };

static const dr__policy_param params[] = {
    [LOW] = { "low", 0, 1, 0.2, "share of the prefetch window that is ready, below which a worker is added" },
    [HIGH] = { "high", 0, 1, 0.8, "share above which a worker is removed" },
    [HOLD_S] = { "hold_s", 0, 3600, 5, "seconds for which the share must stay above high" },
};

struct state {
    double full_s; /* seconds for which the queue has been nearly full */
};

static void decide(void *state, const double *param, const dr__observation *o, dr__proposal *proposal)
{
    struct state *s = state;
    double prefetch = DR_MAX(o->knob[DR_KNOB_PREFETCH], 1), fill = o->flow[DR_FLOW_READY] / prefetch;
    s->full_s = fill > param[HIGH] ? s->full_s + o->span : 0;
    proposal->bound = fill > param[HIGH] ? DR_BOUND_CONSUMER : fill < param[LOW] ? DR_BOUND_WORKERS : DR_BOUND_UNKNOWN;
    snprintf(proposal->reason, sizeof proposal->reason,
             "%.0f %% of %g batches are ready; more than %.0f %% were ready for %.0f s.", 100 * fill, prefetch,
             100 * param[HIGH], s->full_s);
    if (fill < param[LOW]) {
        proposal->knob[DR_KNOB_WORKERS] += 1;
        proposal->knob[DR_KNOB_PREFETCH] *= 2;
    } else if (s->full_s >= param[HOLD_S]) {
        proposal->knob[DR_KNOB_WORKERS] = DR_MAX(proposal->knob[DR_KNOB_WORKERS] - 1, 1);
        s->full_s = 0;
    }
}

const dr__policy_def dr__policy_rules = {
    .name = "rules",
    .doc = "few batches ready: a worker more and twice the prefetch; many for 5 s: a worker less",
    .params = params,
    .n_params = N_PARAMS,
    .state_bytes = sizeof(struct state),
    .state_version = 1,
    .decide = decide,
};
