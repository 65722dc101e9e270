/* pilot_tell.h: what a pilot writes down and shows. */
#ifndef DR_SCHED_PILOT_TELL_H
#define DR_SCHED_PILOT_TELL_H

#include <drapps/sched.h>

void dr__tell_tick(dr_trace *trace, dr_live *live, const dr_snapshot *snapshot, const double flow[DR_N_FLOWS],
                   const double knob[DR_N_KNOBS]);
void dr__tell_decision(dr_trace *trace, dr_live *live, const dr_decision *decision);

#endif
