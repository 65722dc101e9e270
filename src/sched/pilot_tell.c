/* pilot_tell.c: to the trace and to those who look on. */
#include "sched/pilot_tell.h"

void dr__tell_tick(dr_trace *trace, dr_live *live, const dr_snapshot *snapshot, const double flow[DR_N_FLOWS],
                   const double knob[DR_N_KNOBS])
{
    (void)trace;
    (void)live;
    (void)snapshot;
    (void)flow;
    (void)knob;
}

void dr__tell_decision(dr_trace *trace, dr_live *live, const dr_decision *decision)
{
    (void)trace;
    (void)live;
    (void)decision;
}
