/* control_step.h: one pipeline's decisions: window, policy, reward and guard together, without a monitor or a thread.
 *
 *   tick ──► window ─ each period ──► observation ─► policy ─► guard ─► decision, which the caller carries out
 *     └────► guard's watchdog ──────────────────────────────────────────►
 */
#ifndef DR_SCHED_CONTROL_STEP_H
#define DR_SCHED_CONTROL_STEP_H

#include "sched/guard.h"
#include "sched/pause.h"

enum { DR__RECENT = 32 }; /* ticks that are kept to notice a sudden change */

typedef struct dr__control {
    dr__policy_choice policy;
    void *state; /* of the policy; owned */
    dr__terms_of_use use;
    uint64_t period_ns;
    double quota_cpus;

    dr__window window; /* since the decision before */
    bool begun;        /* the window has its first tick */
    dr__tick recent[DR__RECENT];
    uint64_t n_recent;

    dr__guard guard;
    dr__pause pause;
    uint64_t n_decisions, decided;                /* made here, and by others before */
    double turned;                                /* share of the knobs that the last decision turned */
    uint64_t alarm_ns;                            /* since when the newest ticks differ; 0: they do not */
    double more_workers;                          /* by the last decision */
    double last_foreign, last_quota, last_demand; /* at the last decision, to notice a sudden change */
    dr_weights last_weights;
} dr__control;

dr_status dr__control_init(dr__control *c, const dr__policy_choice *policy, const dr__terms_of_use *use, int period_ms,
                           dr_error *err);
void dr__control_free(dr__control *c);

/* Nobody runs the pipeline: the next tick begins a new window. */
void dr__control_pause(dr__control *c);

/* A tick of a pause of the consumer, in the place of dr__control_step, which goes on by itself after it: no policy is
 * asked; batches are made ahead as far as memory allows.  True: *out is a decision. */
bool dr__control_rest(dr__control *c, const dr_snapshot *snapshot, const double flow[DR_N_FLOWS],
                      const double knob[DR_N_KNOBS], dr_decision *out);

/* True: *out is a decision; knobs in out->changed are to be set to out->after. */
bool dr__control_step(dr__control *c, const dr_snapshot *snapshot, const double flow[DR_N_FLOWS],
                      const double knob[DR_N_KNOBS], dr_decision *out);

#endif
