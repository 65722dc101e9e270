/* guard.h: what stands between a policy's proposals and the knobs.
 *
 *   masks      a knob that is pinned, missing, out of range or over a budget is not turned so
 *   cooldown   a knob that was turned is left alone until its effect can be seen: its cooldown time, and what is in
 *              flight; longer each time that it goes back and forth without a sudden change of the world; no knob
 *              goes far at once
 *   undo       a change after which things got clearly worse, while demand and others' load stayed, is taken back and
 *              not tried again for a while, which doubles each time
 *   watchdog   at every tick: memory nearly full, or no batch for long after a change: a safe setting at once
 *
 * A plain struct without pointers; time is the observation's.
 */
#ifndef DR_SCHED_GUARD_H
#define DR_SCHED_GUARD_H

#include "sched/policy.h"

typedef struct dr__ban {
    uint64_t until_ns, length_ns; /* of one knob in one direction */
} dr__ban;

/* How a knob was turned last. */
typedef struct dr__turn {
    uint64_t time_ns;     /* 0: never */
    uint64_t lag_ns;      /* for so long it is left alone: the lag of what it did */
    uint64_t cooldown_ns; /* for so long it does not go back; doubles each time it soon does */
    bool up;
} dr__turn;

typedef struct dr__guard {
    dr__turn turn[DR_N_KNOBS];
    dr__ban ban[DR_N_KNOBS][2]; /* downwards, upwards */
    double first[DR_N_KNOBS];   /* as they stood in the beginning */
    bool begun;

    /* the policy's last change */
    uint32_t changed;                /* bits of the knobs; 0: none, or the guard itself turned one since */
    uint64_t changed_ns, settles_ns; /* when; how long it takes until it can be judged */
    bool on_trial;                   /* to be judged by the reward after it */
    double before[DR_N_KNOBS];
    dr_weights weights_before;
    double reward_before, demand_before, foreign_before, batches_before;

    /* the watchdog */
    double batches;         /* delivered, as last seen */
    uint64_t fed_ns;        /* when the consumer last got one, or did not want one */
    uint64_t gap_ns;        /* the longest wait for one before the change */
    uint64_t memory_ban_ns; /* until then nothing that takes more memory is turned up */
} dr__guard;

/* Makes the policy's proposals allowed, in place: masks, cooldown, bounded steps, bans.  True: something was kept back.
 */
bool dr__guard_limit(dr__guard *g, const dr__observation *o, dr__proposal *proposal);

/* Whether the change on trial made things worse: then the proposal becomes to take it back, with its reason.
 * `reward` is that of the observation without what the change itself cost. */
bool dr__guard_judge(dr__guard *g, const dr__observation *o, double reward, dr__proposal *proposal);

/* The knobs were turned to `after`; `reward` is that of the time before.  by_policy: to be judged later. */
void dr__guard_turned(dr__guard *g, const dr__observation *o, const double after[DR_N_KNOBS], uint32_t knobs,
                      double reward, bool by_policy);

/* At every tick: true with a proposal where something must be done now. */
bool dr__guard_watch(dr__guard *g, const dr__tick *tick, const dr__observation *o, dr__proposal *proposal);

/* A knob is not turned that way again for a while, which doubles each time. */
void dr__guard_ban(dr__guard *g, uint64_t now_ns, int knob, bool up);

/* The consumer pauses, or goes on: no stall is counted over that. */
void dr__guard_pause(dr__guard *g);

#endif
