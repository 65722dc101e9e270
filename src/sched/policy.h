/* policy.h: what decides how the knobs should stand: a pure function of an observation and its own small state.
 *
 * A policy is a file policy_<name>.c that ends in a dr__policy_def, and a row in policy_defs.h.  It proposals; the
 * guard has the last word.  It knows no clock but the observation's, allocates nothing and calls nobody.
 */
#ifndef DR_SCHED_POLICY_H
#define DR_SCHED_POLICY_H

#include "sched/observation.h"

typedef struct dr__proposal {
    double knob[DR_N_KNOBS];    /* found as they stand */
    int bound;                  /* dr_bound; found UNKNOWN */
    uint32_t back;              /* bits of knobs that the guard takes back to where they stood */
    char reason[DR_MAX_REASON]; /* sentences, without the changes */
} dr__proposal;

typedef struct dr__policy_def {
    const char *name, *doc;
    size_t state_bytes; /* zeroed before the first call */
    void (*decide)(void *state, const dr__observation *o, dr__proposal *proposal);
} dr__policy_def;

#define DR_POLICY(name) extern const dr__policy_def dr__policy_##name;
#include "sched/policy_defs.h"
#undef DR_POLICY

/* NULL: no such policy.  "off" is "fixed". */
const dr__policy_def *dr__policy_find(const char *name);

/* The policy by that name, or by DRAPPS_POLICY if that is set; NULL: the default. */
dr_status dr__policy_choose(const char *name, const dr__policy_def **out, dr_error *err);

#endif
