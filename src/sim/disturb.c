/* disturb.c: signals over time. */
#include "sim/disturb.h"

#include "base/compiler.h"

#define STEP_S 0.1 /* between two calls, at least for a walk */

const char *const dr__signal_names[DR__N_SIGNALS] = {
#define NAME(id, name, rest, doc) name,
    DR__SIGNAL_MAP(NAME)
#undef NAME
};

void dr__signals_rest(double now[DR__N_SIGNALS])
{
    static const double rest[DR__N_SIGNALS] = {
#define REST(id, name, value, doc) value,
        DR__SIGNAL_MAP(REST)
#undef REST
    };
    for (int i = 0; i < DR__N_SIGNALS; i++)
        now[i] = rest[i];
}

void dr__disturb_draw(dr__disturb *d, const dr__disturb_row *row, dr__sim_rng *rng)
{
    *d = (dr__disturb){ .row = row };
    d->low = dr__sim_between(rng, row->low[0], row->low[1]);
    d->high = dr__sim_between(rng, row->high[0], row->high[1]);
    d->period_s = dr__sim_between(rng, row->period_s[0], row->period_s[1]);
    d->duty = dr__sim_between(rng, row->duty[0], row->duty[1]);
    d->value = row->shape == DR__SHAPE_CONST ? d->high : d->low;
    d->next_s = d->period_s * dr__sim_unit(rng); /* the first phase has begun before */
    if (row->shape == DR__SHAPE_WALK)
        d->value = dr__sim_between(rng, d->low, d->high);
}

/* The length of the phase that begins. */
static double phase_s(const dr__disturb *d, dr__sim_rng *rng)
{
    const double mean = d->period_s * (d->on ? d->duty : 1 - d->duty);
    return d->row->shape == DR__SHAPE_BURSTS ? mean * dr__sim_exponential(rng)
                                             : mean * (1 + 0.05 * (2 * dr__sim_unit(rng) - 1));
}

static void next_phase(dr__disturb *d, dr__sim_rng *rng)
{
    d->begun_s = d->next_s;
    d->on = !d->on;
    if (d->row->shape == DR__SHAPE_STEPS) {
        d->value = dr__sim_between(rng, d->low, d->high);
        d->next_s += d->period_s * (0.5 + dr__sim_unit(rng));
    } else {
        d->value = d->on ? d->high : d->low;
        d->next_s += DR_MAX(phase_s(d, rng), STEP_S);
    }
}

static double walk(const dr__disturb *d, dr__sim_rng *rng)
{
    const double step = (d->high - d->low) * sqrt(STEP_S / DR_MAX(d->period_s, STEP_S));
    double x = d->value + step * (2 * dr__sim_unit(rng) - 1) * 1.7; /* uniform with deviation 1 has a width of 3.5 */
    const double low = DR_MIN(d->low, d->high), high = DR_MAX(d->low, d->high);
    x = x < low ? 2 * low - x : x > high ? 2 * high - x : x;
    return DR_MIN(DR_MAX(x, low), high);
}

double dr__disturb_at(dr__disturb *d, double time_s, dr__sim_rng *rng)
{
    switch (d->row->shape) {
    case DR__SHAPE_CONST:
        break;
    case DR__SHAPE_RAMP:
        d->value = d->low + (d->high - d->low) * DR_MIN(time_s / d->period_s, 1);
        break;
    case DR__SHAPE_WALK:
        d->value = walk(d, rng);
        break;
    default:
        while (time_s >= d->next_s)
            next_phase(d, rng);
    }
    return d->value;
}
