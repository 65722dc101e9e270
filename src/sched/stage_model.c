/* stage_model.c: times of the stages, and the queue behind them. */
#include "sched/stage_model.h"

#include <math.h>

#include "base/compiler.h"

static const double MEMORY_PART = 0.5; /* of the limit, for batches made ahead */

bool dr__stage_model_of(const dr__observation *o, dr__stage_model *out)
{
    *out = (dr__stage_model){
        .read = o->read_each,
        .work = o->work_each,
        .step = o->demand > 0 ? 1 / o->demand : 0,
        .split = dr__may_turn(o, DR_KNOB_READERS),
        .batch_samples = o->batch_samples,
    };
    return o->work_each + o->read_each > 0 && o->demand > 0;
}

double dr__stage_read_time(const dr__stage_model *m, const double knob[DR_N_KNOBS])
{
    return knob[DR_KNOB_READERS] > 0 ? m->read / knob[DR_KNOB_READERS] : 0;
}

double dr__stage_work_time(const dr__stage_model *m, const double knob[DR_N_KNOBS])
{
    double each = m->work + (knob[DR_KNOB_READERS] > 0 ? 0 : m->read);
    return each / DR_MAX(knob[DR_KNOB_WORKERS], 1);
}

/* The chance that the buffer is empty, times the time until there is something. */
double dr__stage_wait(const dr__stage_model *m, const double knob[DR_N_KNOBS])
{
    double made = DR_MAX(dr__stage_read_time(m, knob), dr__stage_work_time(m, knob));
    double room = DR_MAX(knob[DR_KNOB_PREFETCH], 1), load = m->step / DR_MAX(made, 1e-12);
    if (fabs(load - 1) < 1e-9)
        return made / (room + 1);
    return made * (1 - load) / (1 - pow(load, room + 1));
}

bool dr__stage_raise(const dr__observation *o, double knob[DR_N_KNOBS], int which, double by)
{
    double to = knob[which] + by;
    bool fits = which != DR_KNOB_PREFETCH || o->memory_limit <= 0 ||
                to * o->flow[DR_FLOW_BATCH_BYTES] <= MEMORY_PART * o->memory_limit;
    if (!dr__may_turn(o, which) || to > o->use.most[which] || !fits)
        return false;
    knob[which] = to;
    return true;
}
