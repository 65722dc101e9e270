/* watchdog.c: the part of the guard that looks at every tick: memory nearly full, a consumer that starves. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "sched/guard.h"
#include "sched/tables.h"

#define SECONDS 1000000000u

static const double FULL = 0.9, PRESSURE = 0.2; /* of memory */
enum { STALL_S = 2, AFTER_CHANGE_S = 10, MEMORY_BAN_S = 10, SAFE_BATCHES = 2 };

void dr__guard_pause(dr__guard *g)
{
    g->fed_ns = 0;
    g->on_trial = false;
    g->changed = 0;
}

static bool senses(const dr__tick *t, int sensor)
{
    return t->present >> sensor & 1;
}

static bool memory_is_short(const dr__tick *t, dr__proposal *proposal)
{
    double full = senses(t, DR_SENSOR_MEM_USED) ? t->level[DR_SENSOR_MEM_USED] : 0;
    double pressure = senses(t, DR_SENSOR_PRESSURE_MEMORY) ? t->value[DR_SENSOR_PRESSURE_MEMORY] : 0;
    if (full <= FULL && pressure <= PRESSURE)
        return false;
    proposal->bound = DR_BOUND_MEMORY;
    snprintf(
        proposal->reason, sizeof proposal->reason,
        "Memory is %.0f %% full and tasks wait for it %.0f %% of the time (safe: 90 and 20 %%): least memory is used.",
        100 * full, 100 * pressure);
    return true;
}

static void lower(const dr__observation *o, dr__proposal *proposal, int knob, double to)
{
    to = DR_MAX(dr_knob_is_whole(knob) ? floor(to) : to, o->use.least[knob]);
    if (dr__may_turn(o, knob) && (proposal->knob[knob] > to))
        proposal->knob[knob] = to;
}

/* Two batches, no more workers than in the beginning, no reading ahead. */
static void propose_little_memory(const dr__guard *g, const dr__observation *o, dr__proposal *proposal)
{
    double batch = o->flow[DR_FLOW_BATCH_BYTES];
    lower(o, proposal, DR_KNOB_PREFETCH, SAFE_BATCHES);
    lower(o, proposal, DR_KNOB_WORKERS, g->first[DR_KNOB_WORKERS]);
    lower(o, proposal, DR_KNOB_READERS, g->first[DR_KNOB_READERS]);
    if (batch > 0 && proposal->knob[DR_KNOB_PREFETCH_BYTES] > 0)
        lower(o, proposal, DR_KNOB_PREFETCH_BYTES, (SAFE_BATCHES + 1) * batch);
}

/* Nothing came for long although it was wanted, longer than before a knob was turned, and that was not long ago. */
static bool is_stalled(dr__guard *g, const dr__tick *t)
{
    double batches = t->flow[DR_FLOW_BATCHES];
    bool came = g->fed_ns && batches != g->batches, fed = came || !g->fed_ns || t->flow[DR_FLOW_CONSUMERS] <= 0;
    uint64_t gap_ns = g->fed_ns ? t->time_ns - g->fed_ns : 0;
    if (came)
        g->gap_ns = DR_MAX(gap_ns, g->gap_ns - g->gap_ns / 16); /* what is long ago counts less */
    if (fed)
        g->fed_ns = t->time_ns;
    g->batches = batches;
    return !fed && gap_ns > DR_MAX((uint64_t)STALL_S * SECONDS, 2 * g->gap_ns) && g->changed &&
           t->time_ns < g->changed_ns + DR_MAX((uint64_t)AFTER_CHANGE_S * SECONDS, 4 * g->gap_ns);
}

static void propose_as_before(dr__guard *g, const dr__observation *o, const dr__tick *t, dr__proposal *proposal)
{
    for (int i = 0; i < DR_N_KNOBS; i++)
        if (dr__may_turn(o, i) && g->changed >> i & 1) {
            dr__guard_ban(g, o->time_ns, i, g->before[i] < o->knob[i]);
            proposal->knob[i] = g->before[i];
        }
    snprintf(proposal->reason, sizeof proposal->reason, "No batch came for %.1f s after a change: it is taken back.",
             (double)(t->time_ns - g->fed_ns) * 1e-9);
}

bool dr__guard_watch(dr__guard *g, const dr__tick *t, const dr__observation *o, dr__proposal *proposal)
{
    if (!g->begun)
        memcpy(g->first, o->knob, sizeof g->first);
    g->begun = true;
    const bool stalled = is_stalled(g, t); /* it keeps the time of the last batch, also while memory is short */
    if (memory_is_short(t, proposal)) {
        propose_little_memory(g, o, proposal);
        g->memory_ban_ns = t->time_ns + (uint64_t)MEMORY_BAN_S * SECONDS;
    } else if (stalled) {
        propose_as_before(g, o, t, proposal);
    }
    return memcmp(proposal->knob, o->knob, sizeof proposal->knob) != 0;
}
