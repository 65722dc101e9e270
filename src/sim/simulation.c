/* simulation.c: the public calls: opening, time, knobs, and policies that turn them. */
#include "sim/twin.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"
#include "sched/control_step.h"
#include "sched/tables.h"

enum { PERIOD_MS = 1000, TICKS_PER_SNAPSHOT = DR_SIM_SNAPSHOT_MS / DR_SIM_TICK_MS };
static const double PAUSE_S = 2, PAUSE_STEPS = 8; /* as loader/adapt.c notices a pause */

/* --- opening --- */

void dr_sim_defaults(dr_sim_options *options)
{
    *options = (dr_sim_options){ .size = sizeof *options };
}

static dr_status choose_presets(dr_sim *s, const dr_sim_options *o, dr_error *err)
{
    const dr__sim_preset *machine, *workload, *model;
    DR_TRY(dr__sim_preset_find(dr__sim_machines, "machine", o->machine, &machine, err));
    DR_TRY(dr__sim_preset_find(dr__sim_workloads, "workload", o->workload, &workload, err));
    DR_TRY(dr__sim_preset_find(dr__sim_models, "model", o->model, &model, err));
    DR_TRY(dr__sim_scenario_find(o->scenario, &s->scenario, err));
    dr__sim_fields_standard(&s->base);
    DR_TRY(dr__sim_fields_set(&s->base, machine->set, err));
    DR_TRY(dr__sim_fields_set(&s->base, workload->set, err));
    DR_TRY(dr__sim_fields_set(&s->base, model->set, err));
    s->any_machine = !strcmp(machine->name, "any");
    s->keeps_model = o->model && *o->model;
    return DR_OK;
}

static dr_status prepare(dr_sim *s, const dr_sim_options *o, dr_error *err)
{
    dr__sim_fields checked;
    DR_TRY(choose_presets(s, o, err));
    dr__sim_fields_standard(&checked);
    DR_TRY(dr__sim_fields_set(&checked, o->set, err));
    DR_TRY(dr_weights_parse(o->weights && *o->weights ? o->weights : s->scenario->weights, &s->weights, err));
    if (o->set && *o->set) {
        s->set = dr__strdup(o->set);
        if (!s->set)
            return dr__fail(err, DR_ERR_NOMEM, "simulator: out of memory");
    }
    return DR_OK;
}

dr_status dr_sim_open(const dr_sim_options *options, dr_sim **out, dr_error *err)
{
    dr_sim_options defaults;
    dr_sim_defaults(&defaults);
    const dr_sim_options *o = options ? options : &defaults;
    *out = NULL;
    if (o->size != sizeof *o)
        return dr__fail(err, DR_ERR_ARG, "dr_sim_options.size must be %zu, got %zu: call dr_sim_defaults first",
                        sizeof *o, o->size);
    dr_sim *s = dr__alloc_zero(1, sizeof *s);
    if (!s)
        return dr__fail(err, DR_ERR_NOMEM, "simulator: no memory for %zu bytes", sizeof *s);
    const dr_status status = prepare(s, o, err);
    if (status == DR_OK) {
        dr__sim_instance(s, o->seed);
        *out = s;
    } else {
        dr_sim_close(&s);
    }
    return status;
}

void dr_sim_close(dr_sim **sim)
{
    if (*sim)
        dr__free((*sim)->set);
    dr__free(*sim);
    *sim = NULL;
}

void dr_sim_reset(dr_sim *sim, uint64_t seed)
{
    dr__sim_instance(sim, seed);
}

dr_status dr_sim_field(const dr_sim *sim, const char *field, double *value, dr_error *err)
{
    dr__sim_fields f = sim->f;
    for (size_t i = 0; i < DR__SIM_N_FIELDS; i++)
        if (!strcmp(dr__sim_field_rows[i].name, field)) {
            *value = *dr__sim_field(&f, &dr__sim_field_rows[i]);
            return DR_OK;
        }
    return dr__fail(err, DR_ERR_ARG, "simulator: no field \"%.40s\"", field);
}

/* --- time --- */

static void take_effect(dr_sim *s)
{
    bool changed = false;
    for (int i = 0; i < DR_N_KNOBS; i++) {
        if (s->pending[i].at_s < 0 || s->pending[i].at_s > s->time)
            continue;
        s->knob[i] = s->pending[i].value;
        s->pending[i].at_s = -1;
        changed = true;
    }
    if (changed)
        dr__sim_window(s);
}

static void one_tick(dr_sim *s)
{
    take_effect(s);
    dr__sim_tick(s);
    dr__sim_score(s);
    if (s->ticks % TICKS_PER_SNAPSHOT)
        return;
    dr__sim_sense(s);
    dr__sim_supply(s);
    s->all_used_before = 0;
}

void dr_sim_advance(dr_sim *sim, double seconds)
{
    const uint64_t n = seconds > 0 ? (uint64_t)ceil(seconds / DR__SIM_TICK_S - 1e-6) : 0;
    for (uint64_t i = 0; i < n; i++)
        one_tick(sim);
}

double dr_sim_time(const dr_sim *sim)
{
    return sim->time;
}

/* --- the plant --- */

static void plant_flow(void *user, double flow[DR_N_FLOWS])
{
    dr__sim_flow(user, flow);
}

static double plant_get(void *user, int knob)
{
    const dr_sim *s = user;
    return s->pending[knob].at_s >= 0 ? s->pending[knob].value : s->knob[knob];
}

static dr_status plant_set(void *user, int knob, double value, dr_error *err)
{
    dr_sim *s = user;
    if (!dr_knob_name(knob) || !(s->has_knob >> knob & 1))
        return dr__fail(err, DR_ERR_ARG, "simulator: this instance has no knob %d", knob);
    const dr__knob_row *row = dr__knob_row_of(knob);
    if (!(value >= row->least && value <= row->most))
        return dr__fail(err, DR_ERR_ARG, "simulator: %s must be a number from %g to %g, got %g", row->name, row->least,
                        row->most, value);
    s->pending[knob] = (dr__sim_pending){ value, s->time + s->f.action_delay };
    return DR_OK;
}

dr_plant dr_sim_plant(dr_sim *sim)
{
    dr_plant plant = { .user = sim, .knobs = sim->has_knob, .flow = plant_flow, .get = plant_get, .set = plant_set };
    for (int i = 0; i < DR_N_KNOBS; i++) {
        plant.least[i] = dr__knob_row_of(i)->least;
        plant.most[i] = sim->most[i];
    }
    plant.least[DR_KNOB_WORKERS] = 1;
    return plant;
}

dr__terms_of_use dr__sim_terms(const dr_sim *s)
{
    dr__terms_of_use use = { .knobs = s->has_knob, .affinity_cpus = s->f.cpus, .weights = dr__sim_weights(s) };
    for (int i = 0; i < DR_N_KNOBS; i++) {
        use.least[i] = dr__knob_row_of(i)->least;
        use.most[i] = s->most[i];
    }
    use.least[DR_KNOB_WORKERS] = 1;
    return use;
}

bool dr__sim_pauses(const dr_sim *s)
{
    const double idle = s->time - s->delivered_s;
    return (s->step_left > 0 || s->pause_left > 0) && idle > PAUSE_S && idle > PAUSE_STEPS * s->mean_step;
}

/* --- policies --- */

static void carry_out(dr_sim *s, const dr_decision *d)
{
    s->all.decisions++;
    s->all.changes += d->changed != 0;
    for (int i = 0; i < DR_N_KNOBS; i++)
        if (d->changed >> i & 1)
            plant_set(s, i, d->after[i], NULL);
}

/* As a controller does with each snapshot of its monitor. */
static bool control(dr_sim *s, dr__control *c, dr_decision *d)
{
    dr_snapshot snapshot;
    double flow[DR_N_FLOWS], knob[DR_N_KNOBS];
    dr_sim_snapshot(s, &snapshot);
    dr__sim_flow(s, flow);
    for (int i = 0; i < DR_N_KNOBS; i++)
        knob[i] = plant_get(s, i);
    c->use.weights = dr__sim_weights(s);
    if (dr__sim_pauses(s)) {
        dr__control_pause(c);
        return false;
    }
    return dr__control_step(c, &snapshot, flow, knob, d);
}

dr_status dr_sim_run(dr_sim *sim, const char *policy, double seconds, dr_sim_decided *decided, void *user,
                     dr_error *err)
{
    dr__policy_choice choice;
    dr__control c;
    const dr__terms_of_use use = dr__sim_terms(sim);
    DR_TRY(dr__policy_choose(policy, &choice, err));
    DR_TRY(dr__control_init(&c, &choice, &use, PERIOD_MS, err));
    dr_status status = DR_OK;
    if (*choice.load)
        status = dr__policy_load_file(choice.def, c.state, (uint64_t)((sim->time + 1) * 1e9), choice.load, err);
    for (const double end = sim->time + seconds - DR__SIM_TICK_S / 2; status == DR_OK && sim->time < end;) {
        dr_decision d;
        dr_sim_advance(sim, DR__SIM_SNAPSHOT_S);
        if (!control(sim, &c, &d))
            continue;
        carry_out(sim, &d);
        if (decided)
            decided(user, &d);
    }
    dr__control_free(&c);
    return status;
}
