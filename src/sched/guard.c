/* guard.c: masks, cooldown, bounded steps, and taking back what made things worse. */
#include "sched/guard.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "sched/tables.h"

#define SECONDS 1000000000u

static const double WORSE = 0.05;      /* of the weights' size: a reward that fell by so much fell clearly */
static const double SAME = 0.25;       /* demand and others' load within this are as they were */
static const double MEMORY_PART = 0.9; /* of its limit, for batches in flight */
static const double SETTLED = 0.9, LONGEST_LAG = 30; /* seconds: before a change is judged, at least and at most */
enum { FIRST_BAN_S = 10, LONGEST_BAN_S = 600, LONGEST_COOLDOWN_S = 60, SOON_S = 15, MIN_BATCHES = 4 };

/* These act on samples that are begun: their effect is seen when those in flight have been delivered. */
static const uint32_t behind_queue = 1u << DR_KNOB_LANE_THRESHOLD | 1u << DR_KNOB_CODEC | 1u << DR_KNOB_OFFLOAD;

/* --- masks and budgets --- */

static double in_range(const dr__observation *o, int knob, double x)
{
    double least = o->use.least[knob], most = o->use.most[knob];
    if (!isfinite(x))
        x = o->knob[knob];
    if (dr_knob_is_whole(knob))
        x = round(x);
    return DR_MIN(DR_MAX(x, least), most);
}

/* Batches that fit into memory. */
static double most_batches(const dr__observation *o)
{
    double each = o->flow[DR_FLOW_BATCH_BYTES];
    return o->memory_limit > 0 && each > 0 ? DR_MAX(floor(MEMORY_PART * o->memory_limit / each), 1) : INFINITY;
}

/* One step of a knob: by some, or to the double or half.  The first readers take over what workers read. */
static double step_limit(const dr__observation *o, int knob, double x)
{
    double now = o->knob[knob], some = knob == DR_KNOB_READERS ? 4 : 2, from = now;
    if (knob == DR_KNOB_PRIORITY)
        return DR_MIN(DR_MAX(x, now - 1), now + 1);
    if (knob != DR_KNOB_WORKERS && knob != DR_KNOB_PREFETCH && knob != DR_KNOB_READERS)
        return x;
    if (knob == DR_KNOB_READERS && now <= 0)
        from = o->knob[DR_KNOB_WORKERS];
    return DR_MIN(DR_MAX(x, DR_MIN(now - some, floor(now / 2))), DR_MAX(now + some, 2 * from));
}

static bool takes_memory(int knob)
{
    return knob == DR_KNOB_WORKERS || knob == DR_KNOB_READERS || knob == DR_KNOB_PREFETCH ||
           knob == DR_KNOB_PREFETCH_BYTES;
}

/* Seconds until what is in flight now has been delivered. */
static double queue_seconds(const dr__observation *o)
{
    const double *flow = o->flow;
    double batches = DR_MAX(flow[DR_FLOW_OPEN], flow[DR_FLOW_READY]);
    double samples = batches * o->batch_samples + flow[DR_FLOW_FETCHED] + flow[DR_FLOW_PARKED];
    return DR_MIN(o->rate > 0 ? samples / o->rate : LONGEST_LAG, LONGEST_LAG);
}

/* Seconds after which a change of these knobs is seen. */
static double lag_of(const dr__observation *o, uint32_t changed)
{
    return changed & behind_queue ? queue_seconds(o) : 0;
}

static uint64_t least_cooldown_ns(const dr__observation *o, int knob)
{
    double seconds = DR_MAX((double)dr__knob_row_of(knob)->cooldown_ms * 1e-3, lag_of(o, 1u << knob));
    return (uint64_t)(0.95 * seconds * SECONDS); /* decisions are not on the dot */
}

/* Turned too lately, or tried in vain. */
static bool is_kept(const dr__guard *g, const dr__observation *o, int knob, double x)
{
    const dr__turn *turn = &g->turn[knob];
    bool up = x > o->knob[knob], back = up != turn->up && !o->sudden;
    uint64_t cooldown_ns = back ? DR_MAX(turn->lag_ns, turn->cooldown_ns) : turn->lag_ns;
    if (turn->time_ns && o->time_ns < turn->time_ns + cooldown_ns)
        return true;
    return o->time_ns < g->ban[knob][up].until_ns;
}

static bool needs_scarce_memory(const dr__guard *g, const dr__observation *o, int knob, double x)
{
    return x > o->knob[knob] && takes_memory(knob) && o->time_ns < g->memory_ban_ns;
}

bool dr__guard_limit(dr__guard *g, const dr__observation *o, dr__proposal *proposal)
{
    bool kept = false;
    if (o->use.cpu_limit > 0)
        proposal->knob[DR_KNOB_CPU_CEILING] = o->use.cpu_limit; /* the user's, whatever the policy */
    for (int i = 0; i < DR_N_KNOBS; i++) {
        double wanted = proposal->knob[i], x = in_range(o, i, wanted);
        if (!dr__may_turn(o, i)) {
            proposal->knob[i] = o->knob[i];
            continue;
        }
        const bool back = proposal->back >> i & 1; /* all the way, at once */
        x = back ? x : in_range(o, i, step_limit(o, i, x));
        if (i == DR_KNOB_PREFETCH)
            x = DR_MAX(DR_MIN(x, most_batches(o)), o->use.least[i]);
        if (needs_scarce_memory(g, o, i, x) || (!back && x != o->knob[i] && is_kept(g, o, i, x)))
            x = o->knob[i];
        kept |= fabs(x - wanted) > 0.5;
        proposal->knob[i] = x;
    }
    return kept;
}

/* --- trials --- */

void dr__guard_ban(dr__guard *g, uint64_t now_ns, int knob, bool up)
{
    dr__ban *b = &g->ban[knob][up];
    b->length_ns =
        b->length_ns ? DR_MIN(2 * b->length_ns, (uint64_t)LONGEST_BAN_S * SECONDS) : (uint64_t)FIRST_BAN_S * SECONDS;
    b->until_ns = now_ns + b->length_ns;
}

/* Others got less because we now take more, or the other way round. */
static bool is_our_own(const dr__guard *g, const dr__observation *o)
{
    double more = o->knob[DR_KNOB_WORKERS] - g->before[DR_KNOB_WORKERS], theirs = o->foreign_cpus - g->foreign_before;
    return more * theirs < 0;
}

/* The conditions are those under which the change was made. */
static bool is_comparable(const dr__guard *g, const dr__observation *o)
{
    return memcmp(&g->weights_before, &o->use.weights, sizeof g->weights_before) == 0 && o->batches >= MIN_BATCHES &&
           g->batches_before >= MIN_BATCHES && fabs(o->demand - g->demand_before) < SAME * g->demand_before &&
           (is_our_own(g, o) || fabs(o->foreign_cpus - g->foreign_before) < SAME * o->machine_cpus);
}

static void undo(dr__guard *g, const dr__observation *o, double reward, dr__proposal *proposal)
{
    for (int i = 0; i < DR_N_KNOBS; i++) {
        proposal->knob[i] = o->knob[i];
        if (!(g->changed >> i & 1))
            continue;
        dr__guard_ban(g, o->time_ns, i, g->before[i] < o->knob[i]);
        proposal->knob[i] = g->before[i];
    }
    proposal->back = g->changed;
    snprintf(proposal->reason, sizeof proposal->reason,
             "The reward fell from %.3f to %.3f at the same demand and load: the change is taken back.",
             g->reward_before, reward);
}

bool dr__guard_judge(dr__guard *g, const dr__observation *o, double reward, dr__proposal *proposal)
{
    if (!g->on_trial || o->time_ns < g->changed_ns + g->settles_ns)
        return false;
    double size = 0;
    for (int i = 0; i < DR_N_TERMS; i++)
        size += o->use.weights.of[i];
    bool worse = is_comparable(g, o) && reward < g->reward_before - WORSE * size;
    if (worse)
        undo(g, o, reward, proposal);
    g->on_trial = false;
    return worse;
}

static void note_turn(dr__turn *turn, const dr__observation *o, int knob, bool up)
{
    uint64_t soon_ns = DR_MAX(4 * turn->cooldown_ns, (uint64_t)SOON_S * SECONDS);
    bool soon = turn->cooldown_ns && up != turn->up && o->time_ns < turn->time_ns + soon_ns;
    uint64_t lag_ns = least_cooldown_ns(o, knob);
    uint64_t cooldown_ns = soon && !o->sudden ? DR_MAX(2 * turn->cooldown_ns, lag_ns) : lag_ns;
    *turn = (dr__turn){ .time_ns = o->time_ns, .lag_ns = lag_ns, .up = up };
    turn->cooldown_ns = DR_MIN(cooldown_ns, (uint64_t)LONGEST_COOLDOWN_S * SECONDS);
}

void dr__guard_turned(dr__guard *g, const dr__observation *o, const double after[DR_N_KNOBS], uint32_t knobs,
                      double reward, bool by_policy)
{
    for (int i = 0; i < DR_N_KNOBS; i++)
        if (knobs >> i & 1)
            note_turn(&g->turn[i], o, i, after[i] > o->knob[i]);
    if (!knobs)
        return;
    g->changed = by_policy ? knobs & ~(1u << DR_KNOB_CPU_CEILING) : 0;
    g->on_trial = g->changed != 0;
    g->changed_ns = o->time_ns;
    g->settles_ns = (uint64_t)((SETTLED + lag_of(o, g->changed)) * SECONDS);
    g->reward_before = reward;
    g->weights_before = o->use.weights;
    g->demand_before = o->demand;
    g->batches_before = o->batches;
    g->foreign_before = o->foreign_cpus;
    memcpy(g->before, o->knob, sizeof g->before);
}
