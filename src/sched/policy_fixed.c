/* policy_fixed.c: leaves every knob as it stands; for those who know better, and to compare with. */
#include <stdio.h>

#include "sched/policy.h"

static void decide(void *state, const double *param, const dr__observation *o, dr__proposal *proposal)
{
    (void)state;
    (void)param;
    snprintf(proposal->reason, sizeof proposal->reason,
             "The consumer takes %.0f samples/s and waits %.0f %% of its time; settings stay as they are.", o->rate,
             100 * o->wait);
}

const dr__policy_def dr__policy_fixed = {
    .name = "fixed",
    .doc = "leaves every knob as it stands",
    .decide = decide,
};
