/* pause.c: see pause.h. */
#include "sched/pause.h"

#include <math.h>

#include "base/compiler.h"

static const double SILENT = 0.15, LONG = 1;          /* seconds, and */
static const double SILENT_STEPS = 4, LONG_STEPS = 8; /* mean steps: a consumer that is silent, or was for long */
static const double SHRINK = 0.125; /* batches of the surplus for each that is taken: workers go on while it lasts */

static bool is_long(const dr__pause *p, double seconds)
{
    return p->mean_step > 0 && seconds > DR_MAX(LONG, LONG_STEPS * p->mean_step);
}

static void learn_step(dr__pause *p, double seconds)
{
    p->mean_step = p->mean_step > 0 ? 0.8 * p->mean_step + 0.2 * seconds : seconds;
}

bool dr__pause_note(dr__pause *p, const dr__tick *t)
{
    double taken = t->flow[DR_FLOW_BATCHES] - p->batches;
    double seconds = p->took_ns ? (double)(t->time_ns - p->took_ns) * 1e-9 : 0;
    bool waits = t->flow[DR_FLOW_CONSUMERS] > 0, is_over = (taken > 0 || waits) && is_long(p, seconds) && !p->was_long;
    if (taken > 0 && p->took_ns && !is_over)
        learn_step(p, seconds / taken);
    if (taken > 0 || waits) {
        p->was_long = is_over || (p->was_long && taken <= 0);
        p->took_ns = t->time_ns;
        p->batches = t->flow[DR_FLOW_BATCHES];
    }
    p->silent = taken <= 0 && !waits && p->mean_step > 0 && seconds > DR_MAX(SILENT, SILENT_STEPS * p->mean_step);
    if (is_over)
        p->lasted = seconds;
    return is_over;
}

void dr__pause_without(dr__pause *p, const dr__terms_of_use *use, double knob[DR_N_KNOBS])
{
    bool ours = (use->knobs & ~use->pinned) >> DR_KNOB_PREFETCH & 1 && knob[DR_KNOB_PREFETCH] == p->set_to;
    if (!ours)
        p->surplus = 0;
    knob[DR_KNOB_PREFETCH] -= floor(p->surplus);
}

double dr__pause_left(dr__pause *p, const dr__tick *t)
{
    double taken = DR_MAX(t->flow[DR_FLOW_BATCHES] - p->taken, 0);
    p->taken = t->flow[DR_FLOW_BATCHES];
    p->surplus = DR_MAX(DR_MIN(p->surplus - SHRINK * taken, t->flow[DR_FLOW_READY]), 0);
    return floor(p->surplus);
}
