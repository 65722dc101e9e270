/* instance.c: the instance that a seed draws: fields, knobs, disturbances. */
#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "sched/prefetch_rule.h"
#include "sched/tables.h"
#include "sim/twin.h"

/* --- draws --- */

static const dr__sim_field_row *row_of(const char *name)
{
    for (size_t i = 0; i < DR__SIM_N_FIELDS; i++)
        if (!strcmp(dr__sim_field_rows[i].name, name))
            return &dr__sim_field_rows[i];
    return NULL;
}

/* What a draw is a multiple of: a field, or something that follows from fields. */
static double scale_of(dr__sim_fields *f, const char *per)
{
    const dr__sim_field_row *row = per ? row_of(per) : NULL;
    const double asked = f->demand > 0 ? f->demand * f->cpus * f->cpu_speed / f->cpu
                                       : f->accels * f->accel_speed / DR_MAX(f->step_each, 1e-9);
    if (!per)
        return 1;
    if (row)
        return *dr__sim_field(f, row);
    if (!strcmp(per, "demand_rate"))
        return asked;
    if (!strcmp(per, "link_need"))
        return asked * f->sample_bytes * f->nodes;
    if (!strcmp(per, "cache_need"))
        return f->samples * f->prefix_bytes;
    return f->batch * f->accels * f->out_bytes; /* "batch_bytes" */
}

static void draw_fields(dr_sim *s, const dr__sim_draw *d)
{
    for (; d->field; d++) {
        const dr__sim_field_row *row = row_of(d->field);
        const double x =
            d->log ? dr__sim_log_between(&s->outside, d->low, d->high) : dr__sim_between(&s->outside, d->low, d->high);
        const double value = x * scale_of(&s->f, d->per);
        *dr__sim_field(&s->f, row) = DR_MIN(DR_MAX(value, row->least), row->most);
    }
    s->f.cpus = round(s->f.cpus);
}

static void draw_instance(dr_sim *s)
{
    s->f = s->base;
    dr__sim_fields_set(&s->f, s->set, NULL); /* what others depend on */
    if (s->any_machine)
        draw_fields(s, dr__sim_any_machine);
    if (s->any_machine && dr__sim_unit(&s->outside) < 0.5)
        s->f.link_bw = 0;
    dr__sim_fields_set(&s->f, s->set, NULL);
    if (s->scenario->varied)
        draw_fields(s, dr__sim_common);
    if (s->keeps_model)
        s->f.demand = 0;
    dr__sim_fields_set(&s->f, s->scenario->set, NULL);
    dr__sim_fields_set(&s->f, s->set, NULL);
    draw_fields(s, s->scenario->draw);
    dr__sim_fields_set(&s->f, s->set, NULL); /* the user's, whatever was drawn */
    for (int i = 0; i < s->scenario->n_disturbs; i++)
        dr__disturb_draw(&s->disturb[i], &s->scenario->disturb[i], &s->outside);
}

/* --- knobs --- */

static double limit_of(const dr__sim_fields *f)
{
    return f->memory_limit > 0 ? f->memory_limit : f->memory / 4;
}

/* As a loader begins. */
static void begin_knobs(dr_sim *s)
{
    const dr__sim_fields *f = &s->f;
    const double cpus = f->quota > 0 ? DR_MIN(f->quota, f->cpus) : f->cpus;
    memset(s->knob, 0, sizeof s->knob);
    s->knob[DR_KNOB_WORKERS] = f->workers > 0 ? f->workers : DR_MAX(floor(cpus), 1);
    s->knob[DR_KNOB_READERS] = f->readers;
    s->knob[DR_KNOB_PREFETCH] =
        f->prefetch > 0 ? f->prefetch
                        : (double)dr__prefetch_default((uint64_t)s->batch, (uint64_t)(s->batch * f->out_bytes),
                                                       (uint64_t)limit_of(f), (uint64_t)s->knob[DR_KNOB_WORKERS]);
    s->knob[DR_KNOB_LANE_THRESHOLD] = 4;
    s->knob[DR_KNOB_CODEC] = -1;
    s->has_knob = 1u << DR_KNOB_WORKERS | 1u << DR_KNOB_READERS | 1u << DR_KNOB_PREFETCH |
                  1u << DR_KNOB_PREFETCH_BYTES | 1u << DR_KNOB_LANE_SHARE | 1u << DR_KNOB_LANE_THRESHOLD |
                  1u << DR_KNOB_CPU_CEILING | 1u << DR_KNOB_PRIORITY;
    s->has_knob |= f->cache > 0 ? 1u << DR_KNOB_CODEC : 0;
    s->has_knob |= f->link_bw > 0 && f->remote_cpus > 0 ? 1u << DR_KNOB_OFFLOAD : 0;
    for (int i = 0; i < DR_N_KNOBS; i++) {
        s->most[i] = dr__knob_row_of(i)->most;
        s->pending[i].at_s = -1;
    }
    s->most[DR_KNOB_WORKERS] = DR_MIN(DR_MAX(2 * f->cpus, 8), 256); /* as loaders allow */
}

/* Sensors that this machine has. */
static void draw_sensors(dr_sim *s)
{
    s->present = ~0ull;
    for (int i = 0; i < DR_N_SENSORS; i++)
        if (dr__sim_unit(&s->outside) < s->f.missing)
            s->present &= ~(1ull << i);
}

static void fill_caches(dr_sim *s)
{
    s->kept_ratio = 1;
    s->kept_decode = s->f.prefix_bytes / 8e9;
    s->pages = s->f.warm * s->f.samples * s->f.sample_bytes;
    s->kept = s->f.warm * s->f.samples * s->f.prefix_bytes;
}

void dr__sim_instance(dr_sim *s, uint64_t seed)
{
    const dr_sim kept = { .base = s->base,
                          .scenario = s->scenario,
                          .set = s->set,
                          .weights = s->weights,
                          .any_machine = s->any_machine,
                          .keeps_model = s->keeps_model };
    *s = kept;
    s->seed = seed;
    dr__sim_seed(&s->outside, seed);
    dr__sim_seed(&s->rng, seed ^ 0x5851f42d4c957f2du);
    dr__signals_rest(s->signal);
    draw_instance(s);
    s->batch = round(s->f.batch) * round(s->f.accels);
    begin_knobs(s);
    draw_sensors(s);
    fill_caches(s);
    memcpy(s->first, s->knob, sizeof s->first);
    s->offloaded = s->knob[DR_KNOB_OFFLOAD];
    dr__sim_window(s);
    dr__sim_supply(s);
    dr__sim_sense(s);
}
