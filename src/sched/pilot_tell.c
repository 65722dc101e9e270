/* pilot_tell.c: to the trace and to those who look on. */
#include "sched/pilot_tell.h"

void dr__tell_tick(dr_trace *trace, dr_live *live, const dr_snapshot *snapshot, const double flow[DR_N_FLOWS],
                   const double knob[DR_N_KNOBS])
{
    dr_trace_snapshot(trace, snapshot);
    dr_trace_flow(trace, snapshot->time_ns, flow, DR_N_FLOWS);
    dr_live_put(live, snapshot, flow, DR_N_FLOWS, knob, DR_N_KNOBS);
}

/* Lookers-on have room for few: those that changed nothing are not for them. */
void dr__tell_decision(dr_trace *trace, dr_live *live, const dr_decision *decision)
{
    dr_trace_decision(trace, decision);
    if (decision->changed || decision->guarded || decision->number == 1)
        dr_live_decision(live, decision);
}
