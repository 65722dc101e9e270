/* policy_mpc.c: model-predictive control: what `analytic` proposes, unless a plan of some seconds is clearly better.
 *
 * Where the weights change within the horizon (a price, an hour of a schedule), a plan has a part until then and one
 * after it, each with a number of workers and a depth; else it has one part.  The demand, the costs and others' load
 * are those that `analytic` has learnt.  The model is that of `analytic`, and batches that lie ready are fluid
 * (plan.h).  Of the best plan the first part is proposed, and all is planned anew at each decision.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "sched/plan.h"
#include "sched/policy_analytic.h"

enum { HORIZON, GAIN, MARGIN, KEPT, N_PARAMS };
enum { MOST_CHOICES = 14 }; /* numbers of workers that are tried */

static const dr__policy_param params[] = {
    [HORIZON] = { "horizon", 1, 600, 10, "seconds that are planned, before and after a change of the weights" },
    [GAIN] = { "gain", 0, 1, 0.02, "least gain over what analytic proposes, as a share of the weights' sum" },
    [MARGIN] = { "margin", 1, 4, 1.15,
                 "capacity that is wanted where nothing lies ready, as a multiple of the demand" },
    [KEPT] = { "kept", 0, 1, 0.9, "what a sample that lies ready in the end is worth, of what it takes to make it" },
};

struct state {
    dr__analytic analytic;
};

typedef struct choice {
    double workers, room; /* samples */
} choice;

/* What there is to choose from, and what is planned with it. */
typedef struct planner {
    const dr__plant_model *model;
    const double *param;
    const dr_weights *now, *next;
    double first_s, second_s; /* of the parts; the second is 0 without a change */
    double fill;              /* samples that lie ready */
    double workers[MOST_CHOICES], rooms[2];
    int n_workers;
} planner;

/* `least` .. `most` in steps that grow, and the number that analytic proposes. */
static void list_workers(planner *p, double least, double most, double proposed)
{
    p->workers[p->n_workers++] = proposed;
    for (int i = 0; i < MOST_CHOICES - 1; i++) {
        double n = round(least * pow(most / least, i / (MOST_CHOICES - 2.0)));
        bool is_new = n != proposed && (p->n_workers == 1 || n != p->workers[p->n_workers - 1]);
        if (is_new)
            p->workers[p->n_workers++] = n;
    }
}

static double part_value(const planner *p, const choice *c, double seconds, const dr_weights *weights, double *fill)
{
    const dr__plan_part part = { seconds, weights, c->workers, c->room };
    return dr__plan_part_value(p->model, &part, p->param[MARGIN], fill);
}

/* What lies ready in the end. */
static double rest_value(const planner *p, double fill)
{
    return p->param[KEPT] * fill * dr__plan_sample_cost(p->model, p->next);
}

/* The best that can follow. */
static double second_value(const planner *p, double fill)
{
    double best = -INFINITY;
    if (p->second_s <= 0)
        return rest_value(p, fill);
    for (int i = 0; i < p->n_workers; i++)
        for (int deep = 0; deep < 2; deep++) {
            const choice c = { p->workers[i], p->rooms[deep] };
            double left = fill, value = part_value(p, &c, p->second_s, p->next, &left);
            best = DR_MAX(best, value + rest_value(p, left));
        }
    return best;
}

static double plan_value(const planner *p, const choice *first)
{
    double fill = p->fill, value = part_value(p, first, p->first_s, p->now, &fill);
    return value + second_value(p, fill);
}

/* The best first part; *gain is what it brings over analytic's, in reward. */
static choice best_plan(const planner *p, double *gain)
{
    const choice proposed = { p->workers[0], p->rooms[0] };
    const double base = plan_value(p, &proposed);
    choice best = proposed;
    double most = base;
    for (int i = 0; i < p->n_workers; i++)
        for (int deep = 0; deep < 2; deep++) {
            const choice c = { p->workers[i], p->rooms[deep] };
            const double value = plan_value(p, &c);
            if (value > most) {
                most = value;
                best = c;
            }
        }
    *gain = (most - base) / (p->first_s + p->second_s);
    return best;
}

/* The term whose weight changes most. */
static int changed_term(const dr_weights *now, const dr_weights *next)
{
    int most = 0;
    for (int i = 1; i < DR_N_TERMS; i++)
        if (fabs(next->of[i] - now->of[i]) > fabs(next->of[most] - now->of[most]))
            most = i;
    return most;
}

static void explain(const planner *p, const choice *c, double batches, dr__proposal *proposal)
{
    static const char *const names[] = {
#define ROW(id, name, doc) name,
        DR_TERM_MAP(ROW)
#undef ROW
    };
    const int term = changed_term(p->now, p->next);
    if (p->second_s > 0)
        dr__append_reason(proposal, " In %.1f s the weight of %s goes from %g to %g: until then %g workers,",
                          p->first_s, names[term], p->now->of[term], p->next->of[term], c->workers);
    else
        dr__append_reason(proposal, " Planned over %g s: %g workers,", p->first_s, c->workers);
    dr__append_reason(proposal, " and up to %g batches ready.", batches);
}

static planner planner_of(const dr__plant_model *m, const dr__observation *o, const double *param,
                          const dr__proposal *proposal)
{
    const dr__terms_of_use *use = &o->use;
    const bool changes = use->next_weights_in > 0 && use->next_weights_in <= param[HORIZON];
    const double room = dr__cover_room(o), shallow = DR_MIN(proposal->knob[DR_KNOB_PREFETCH], room);
    planner p = {
        .model = m,
        .param = param,
        .now = &use->weights,
        .next = changes ? &use->next_weights : &use->weights,
        .first_s = changes ? use->next_weights_in : param[HORIZON],
        .second_s = changes ? param[HORIZON] : 0,
        .fill = o->flow[DR_FLOW_READY] * o->batch_samples,
        .rooms = { shallow * o->batch_samples, room * o->batch_samples },
    };
    const double workers = DR_MAX(proposal->knob[DR_KNOB_WORKERS], 1);
    if (dr__may_turn(o, DR_KNOB_WORKERS))
        list_workers(&p, DR_MAX(use->least[DR_KNOB_WORKERS], 1), dr__analytic_most_workers(m, o), workers);
    else
        p.workers[p.n_workers++] = workers;
    if (!dr__may_turn(o, DR_KNOB_PREFETCH))
        p.rooms[1] = p.rooms[0];
    return p;
}

static double weights_size(const dr_weights *w)
{
    double size = 0;
    for (int i = 0; i < DR_N_TERMS; i++)
        size += w->of[i];
    return size;
}

static void decide(void *state, const double *param, const dr__observation *o, dr__proposal *proposal)
{
    struct state *s = state;
    if (!dr__analytic_propose(&s->analytic, o, proposal))
        return;
    const dr__plant_model m = dr__analytic_model(&s->analytic.costs, o, proposal->knob[DR_KNOB_READERS] > 0);
    const planner p = planner_of(&m, o, param, proposal);
    double gain;
    const choice best = best_plan(&p, &gain);
    if (!(gain > param[GAIN] * weights_size(p.now)))
        return;
    const double batches = DR_MAX(ceil(best.room / o->batch_samples - 1e-9), 1);
    proposal->knob[DR_KNOB_WORKERS] = best.workers;
    proposal->knob[DR_KNOB_PREFETCH] = DR_MAX(batches, 2);
    explain(&p, &best, proposal->knob[DR_KNOB_PREFETCH], proposal);
}

static void shift_time(void *state, int64_t by_ns)
{
    struct state *s = state;
    dr__analytic_shift_time(&s->analytic, by_ns);
}

const dr__policy_def dr__policy_mpc = {
    .name = "mpc",
    .doc = "analytic, and plans some seconds ahead: for weights and prices that change on a schedule",
    .params = params,
    .n_params = N_PARAMS,
    .state_bytes = sizeof(struct state),
    .state_version = 1,
    .decide = decide,
    .shift_time = shift_time,
};
