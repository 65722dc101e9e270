/* policy_climb.c: hill climbing as tf.data's AUTOTUNE does it by default, to compare with.
 *
 * All parallelism begins at its least; the knob whose next step lowers the modelled waiting most is raised, until the
 * pipeline makes samples faster than all its processing time spread over the CPUs would allow, nothing helps any more,
 * or memory is used up.  Between two optimizations the time doubles, from 1 s up to 60 s.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "sched/stage_model.h"

static const int knobs[] = { DR_KNOB_WORKERS, DR_KNOB_READERS, DR_KNOB_PREFETCH };
enum { MOST_STEPS = 1000 };
enum { FIRST_S, LONGEST_S, N_PARAMS };

static const dr__policy_param params[] = {
    [FIRST_S] = { "first_s", 0.1, 3600, 1, "seconds between the first two climbs; the pause then doubles" },
    [LONGEST_S] = { "longest_s", 0.1, 3600, 60, "longest pause between two climbs in seconds" },
};

struct state {
    uint64_t next_ns; /* when to optimize again */
    double pause;     /* seconds, doubling */
};

static void begin_at_least(const dr__observation *o, double knob[DR_N_KNOBS])
{
    for (size_t i = 0; i < DR_COUNT(knobs); i++)
        if (dr__may_turn(o, knobs[i]))
            knob[knobs[i]] = DR_MAX(o->use.least[knobs[i]], knobs[i] != DR_KNOB_READERS);
}

/* Raises the knob that helps most; false: none does. */
static bool climb_once(const dr__stage_model *m, const dr__observation *o, double knob[DR_N_KNOBS])
{
    double least = dr__stage_wait(m, knob);
    int best = -1;
    for (size_t i = 0; i < DR_COUNT(knobs); i++) {
        double tried[DR_N_KNOBS];
        memcpy(tried, knob, sizeof tried);
        if (!dr__stage_raise(o, tried, knobs[i], 1))
            continue;
        double wait = dr__stage_wait(m, tried);
        if (wait < least * (1 - 1e-9)) {
            least = wait;
            best = knobs[i];
        }
    }
    return best >= 0 && dr__stage_raise(o, knob, best, 1);
}

static void optimize(const dr__stage_model *m, const dr__observation *o, double knob[DR_N_KNOBS])
{
    double enough = (m->read + m->work) / DR_MAX(o->cpus, 0.1); /* processing time over the CPU budget */
    begin_at_least(o, knob);
    for (int i = 0; i < MOST_STEPS; i++)
        if (dr__stage_work_time(m, knob) <= enough || dr__stage_wait(m, knob) <= 1e-6 || !climb_once(m, o, knob))
            break;
}

static void decide(void *state, const double *param, const dr__observation *o, dr__proposal *proposal)
{
    struct state *s = state;
    dr__stage_model m;
    if (!dr__stage_model_of(o, &m) || o->time_ns < s->next_ns) {
        snprintf(proposal->reason, sizeof proposal->reason, "The next climb is in %.0f s.",
                 o->time_ns < s->next_ns ? (double)(s->next_ns - o->time_ns) * 1e-9 : 0);
        return;
    }
    s->pause = s->pause > 0 ? DR_MIN(2 * s->pause, param[LONGEST_S]) : DR_MIN(param[FIRST_S], param[LONGEST_S]);
    s->next_ns = o->time_ns + (uint64_t)(s->pause * 0.95e9);
    optimize(&m, o, proposal->knob);
    proposal->bound = o->wait < 0.01 ? DR_BOUND_CONSUMER : DR_BOUND_WORKERS;
    snprintf(proposal->reason, sizeof proposal->reason,
             "By the model a sample takes %.3g ms, and the consumer %.3g ms; it climbs again in %.0f s.",
             1e3 * dr__stage_work_time(&m, proposal->knob), 1e3 * m.step, s->pause);
}

static void shift_time(void *state, int64_t by_ns)
{
    struct state *s = state;
    s->next_ns = dr__shift_ns(s->next_ns, by_ns);
}

const dr__policy_def dr__policy_climb = {
    .name = "climb",
    .doc = "tf.data's hill climbing: from the least up by what helps the model most; looks ever more seldom",
    .params = params,
    .n_params = N_PARAMS,
    .state_bytes = sizeof(struct state),
    .state_version = 1,
    .decide = decide,
    .shift_time = shift_time,
};
