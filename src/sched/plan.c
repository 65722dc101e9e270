/* plan.c: see plan.h. */
#include "sched/plan.h"

#include <math.h>

#include "base/compiler.h"

/* Of a sample a second more, in reward: power and CPU time. */
double dr__plan_sample_cost(const dr__plant_model *m, const dr_weights *weights)
{
    double power = m->has_power ? DR__LOAD_POWER * m->cpu / m->machine_cpus : 0;
    return weights->of[DR_TERM_ENERGY] * power + weights->of[DR_TERM_HOST] * m->cpu / m->cpus;
}

/* Of a sample a second more that the consumer takes. */
static double taken_worth(const dr__plant_model *m, const dr_weights *weights)
{
    double most = DR_MIN(m->demand, m->cpus / m->cpu);
    double power = m->has_power ? DR__LOAD_POWER * m->consumer / m->machine_cpus : 0;
    return weights->of[DR_TERM_THROUGHPUT] / most + weights->of[DR_TERM_IDLE] / m->demand -
           weights->of[DR_TERM_ENERGY] * power;
}

double dr__plan_part_value(const dr__plant_model *m, const dr__plan_part *part, double margin, double *fill)
{
    double capacity = dr__plant_capacity(m, part->workers), demand = dr__plant_demand(m, part->workers);
    double seconds = part->seconds, before = *fill, room = DR_MAX(part->room, before);
    double after = DR_MIN(DR_MAX(before + (capacity - demand) * seconds, 0), room);
    double taken = DR_MIN(demand * seconds, before + capacity * seconds), made = taken + after - before;
    if (made < 0) { /* cannot be: workers make nothing at least */
        made = 0;
        after = before - taken;
    }
    double steady = DR_MIN(capacity, demand) * seconds;
    bool lasts = taken >= demand * seconds * (1 - 1e-9);
    double reward = seconds * dr__plant_reward(m, part->weights, part->workers, lasts ? 0 : margin);
    *fill = after;
    return reward + taken_worth(m, part->weights) * (taken - steady) -
           dr__plan_sample_cost(m, part->weights) * (made - steady);
}
