/* policy_stages.c: tf.data's stage-based autotuning, to compare with.
 *
 * Again and again the slowest stage gets a thread more, until all are faster than the consumer takes samples, as the
 * gaps between its calls say, or the slowest has no more.  Buffers follow by watermark: one that was seen both empty
 * and full within a period is too small for how the stages vary, and doubles.
 */
#include <math.h>
#include <stdio.h>

#include "base/compiler.h"
#include "sched/stage_model.h"

enum { N_GAPS = 16, MOST_STEPS = 1000 };
enum { OUTLIER, N_PARAMS };

static const dr__policy_param params[] = {
    [OUTLIER] = { "outlier", 1, 100, 2, "gaps longer than this multiple of their mean are left out" },
};

struct state {
    double gaps[N_GAPS]; /* seconds in which the consumer used up a sample */
    int n_gaps;
};

/* Mean of the newest gaps without outliers. */
static double target_time(const struct state *s, double outlier)
{
    int n = DR_MIN(s->n_gaps, (int)N_GAPS), kept = 0;
    double mean = 0, sum = 0;
    for (int i = 0; i < n; i++)
        mean += s->gaps[i] / n;
    for (int i = 0; i < n; i++)
        if (s->gaps[i] <= outlier * mean) {
            sum += s->gaps[i];
            kept++;
        }
    return kept ? sum / kept : mean;
}

static void raise_slowest(const dr__stage_model *m, const dr__observation *o, double target, double knob[DR_N_KNOBS])
{
    if (dr__may_turn(o, DR_KNOB_WORKERS))
        knob[DR_KNOB_WORKERS] = DR_MAX(o->use.least[DR_KNOB_WORKERS], 1);
    if (m->split)
        knob[DR_KNOB_READERS] = DR_MAX(o->use.least[DR_KNOB_READERS], 1);
    for (int i = 0; i < MOST_STEPS; i++) {
        double read = dr__stage_read_time(m, knob), work = dr__stage_work_time(m, knob);
        int slowest = read > work ? DR_KNOB_READERS : DR_KNOB_WORKERS;
        if (DR_MAX(read, work) <= target || !dr__stage_raise(o, knob, slowest, 1))
            break;
    }
}

static void decide(void *state, const double *param, const dr__observation *o, dr__proposal *proposal)
{
    struct state *s = state;
    dr__stage_model m;
    if (!dr__stage_model_of(o, &m))
        return;
    s->gaps[s->n_gaps++ % N_GAPS] = m.step;
    double target = target_time(s, param[OUTLIER]), prefetch = o->knob[DR_KNOB_PREFETCH];
    raise_slowest(&m, o, target, proposal->knob);
    if (o->least_ready < 1 && o->most_ready >= prefetch - 1 && o->wait > 0)
        dr__stage_raise(o, proposal->knob, DR_KNOB_PREFETCH, prefetch);
    proposal->bound = o->wait < 0.01 ? DR_BOUND_CONSUMER : DR_BOUND_WORKERS;
    snprintf(proposal->reason, sizeof proposal->reason,
             "Reading takes %.3g ms a sample, work %.3g ms, and the consumer %.3g ms.",
             1e3 * dr__stage_read_time(&m, proposal->knob), 1e3 * dr__stage_work_time(&m, proposal->knob),
             1e3 * target);
}

const dr__policy_def dr__policy_stages = {
    .name = "stages",
    .doc = "tf.data's stage-based tuning: the slowest stage gets a thread more until all keep up with the consumer",
    .params = params,
    .n_params = N_PARAMS,
    .state_bytes = sizeof(struct state),
    .state_version = 1,
    .decide = decide,
};
