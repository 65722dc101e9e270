/* Controllers over a real monitor and a small plant: knobs are turned, decisions kept, holding and pinning obeyed. */
#include "unit/cm.h"

#include <math.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "sched/tables.h"

enum { PATIENCE_MS = 20000 };

static dr_error err;

/* A consumer that takes 1000 samples a second from two of `workers` with 4 ms of CPU each: it needs four. */
struct plant {
    atomic_int workers, prefetch, n_flows, n_sets, batch_bytes;
    atomic_bool refuses;
    double time; /* of the monitor's thread */
};

static void tell_flow(void *user, double flow[DR_N_FLOWS])
{
    struct plant *p = user;
    double rate = fmin(250 * atomic_load(&p->workers), 1000), t = p->time += 0.02;
    for (int i = 0; i < DR_N_FLOWS; i++)
        assert_true(flow[i] == 0);
    flow[DR_FLOW_SAMPLES] = flow[DR_FLOW_WORKED] = rate * t;
    flow[DR_FLOW_BATCHES] = floor(rate * t / 10);
    flow[DR_FLOW_WAIT] = t * (1 - rate / 1000);
    flow[DR_FLOW_STEP] = t * rate / 1000;
    flow[DR_FLOW_WORK] = flow[DR_FLOW_CPU] = 0.004 * rate * t;
    flow[DR_FLOW_BATCH_SAMPLES] = 10;
    flow[DR_FLOW_BATCH_BYTES] = atomic_load(&p->batch_bytes);
    flow[DR_FLOW_BYTES_LIMIT] = 10 * atomic_load(&p->batch_bytes);
    atomic_fetch_add(&p->n_flows, 1);
}

static double get_knob(void *user, int knob)
{
    struct plant *p = user;
    assert_true(knob == DR_KNOB_WORKERS || knob == DR_KNOB_PREFETCH);
    return knob == DR_KNOB_WORKERS ? atomic_load(&p->workers) : atomic_load(&p->prefetch);
}

static dr_status set_knob(void *user, int knob, double value, dr_error *e)
{
    struct plant *p = user;
    atomic_fetch_add(&p->n_sets, 1);
    if (atomic_load(&p->refuses)) {
        e->status = DR_ERR_LIMIT;
        snprintf(e->text, sizeof e->text, "no more threads");
        return DR_ERR_LIMIT;
    }
    atomic_store(knob == DR_KNOB_WORKERS ? &p->workers : &p->prefetch, (int)value);
    return DR_OK;
}

static dr_plant plant_of(struct plant *p)
{
    dr_plant plant = { .user = p, .flow = tell_flow, .get = get_knob, .set = set_knob };
    plant.knobs = 1u << DR_KNOB_WORKERS | 1u << DR_KNOB_PREFETCH;
    plant.least[DR_KNOB_WORKERS] = plant.least[DR_KNOB_PREFETCH] = 1;
    plant.most[DR_KNOB_WORKERS] = plant.most[DR_KNOB_PREFETCH] = 16;
    return plant;
}

static dr_monitor *open_monitor(void)
{
    dr_monitor_options o;
    dr_monitor *m;
    dr_monitor_defaults(&o);
    o.interval_ms = 20;
    assert_ok(dr_monitor_open(&o, &m, &err));
    return m;
}

static dr_controller *open_controller(dr_monitor *m, struct plant *p, const char *policy, uint32_t pinned)
{
    dr_controller_options o;
    dr_controller *controller;
    dr_plant plant = plant_of(p);
    dr_controller_defaults(&o);
    o.policy = policy;
    o.period_ms = 100;
    o.pinned = pinned;
    assert_ok(dr_controller_open(m, &o, &plant, &controller, &err));
    return controller;
}

/* Lets so many snapshots pass. */
static void pass(dr_monitor *m, uint64_t n)
{
    dr_snapshot s;
    assert_ok(dr_monitor_latest(m, &s));
    assert_ok(dr_monitor_wait(m, s.number + n, PATIENCE_MS, &s));
}

/* Waits until a decision with a number above `after` is there. */
static dr_decision next_decision(dr_monitor *m, dr_controller *controller, uint64_t after)
{
    dr_decision d;
    for (int i = 0; !dr_controller_decisions(controller, after, &d, 1); i++) {
        assert_true(i < 1000);
        pass(m, 1);
    }
    return d;
}

static void knobs_are_turned(void **state)
{
    (void)state;
    struct plant p = { .workers = 1, .prefetch = 2 };
    dr_monitor *m = open_monitor();
    dr_controller *controller = open_controller(m, &p, "rules", 0); /* whose decisions do not depend on this machine */
    dr_decision d = next_decision(m, controller, 0);
    for (int i = 0; atomic_load(&p.workers) < 4; i++) {
        assert_true(i < 2000);
        pass(m, 1);
    }
    dr_controller_close(&controller);
    assert_null(controller);
    int n = atomic_load(&p.n_flows);
    pass(m, 3);
    assert_int_equal(atomic_load(&p.n_flows), n); /* nobody calls any more */
    assert_true(fabs(dr_decision_reward(&d) - d.reward) < 1e-6);
    dr_monitor_unref(&m);
}

static void decisions_are_kept(void **state)
{
    (void)state;
    struct plant p = { .workers = 4, .prefetch = 2 };
    dr_monitor *m = open_monitor();
    dr_controller *controller = open_controller(m, &p, "fixed", 0);
    dr_decision d = next_decision(m, controller, 0), all[100];
    d = next_decision(m, controller, d.number + 2);
    size_t n = dr_controller_decisions(controller, 0, all, 100);
    assert_int_equal(n, 2); /* the first and the newest: those that changed nothing make room */
    assert_true(all[0].number == 1 && all[1].number >= d.number && !all[1].changed);
    assert_int_equal(dr_controller_decisions(controller, all[1].number + 1000, all, 100), 0);
    assert_true(*d.reason && d.before[DR_KNOB_WORKERS] == 4 && d.after[DR_KNOB_WORKERS] == 4);
    assert_int_equal(atomic_load(&p.n_sets), 0);
    dr_controller_close(&controller);
    dr_monitor_unref(&m);
}

static void held_and_pinned(void **state)
{
    (void)state;
    struct plant p = { .workers = 1, .prefetch = 2 };
    dr_monitor *m = open_monitor();
    dr_controller *controller = open_controller(m, &p, "rules", 1u << DR_KNOB_WORKERS | 1u << DR_KNOB_PREFETCH);
    dr_decision d = next_decision(m, controller, 0);
    assert_int_equal(d.changed, 0);
    dr_controller_hold(controller, true);
    pass(m, 2);
    dr_controller_decisions(controller, 0, &d, 1);
    int flows = atomic_load(&p.n_flows);
    pass(m, 20);
    assert_true(atomic_load(&p.n_flows) > flows); /* it watches */
    assert_int_equal(dr_controller_decisions(controller, d.number, &d, 1), 0);
    assert_ok(dr_controller_pin(controller, DR_KNOB_WORKERS, false, &err));
    assert_fails(dr_controller_pin(controller, DR_N_KNOBS, true, &err), DR_ERR_ARG, "knob must be 0 to 9");
    dr_controller_hold(controller, false);
    for (int i = 0; atomic_load(&p.workers) == 1; i++) {
        assert_true(i < 2000);
        pass(m, 1);
    }
    assert_int_equal(atomic_load(&p.prefetch), 2);
    dr_controller_close(&controller);
    dr_monitor_unref(&m);
}

/* Told of a pause it decides nothing but to fill up, which it does once; afterwards it decides again. */
static void pauses_are_told(void **state)
{
    (void)state;
    for (int works_ahead = 0; works_ahead < 2; works_ahead++) {
        struct plant p = { .workers = 4, .prefetch = 2 };
        dr_monitor *m = open_monitor();
        dr_controller_options o;
        dr_controller *controller;
        dr_plant plant = plant_of(&p);
        plant.works_ahead = works_ahead;
        dr_controller_defaults(&o);
        o.policy = "rules", o.period_ms = 100, o.memory_granted = true, o.memory_limit = 10000000;
        o.pinned = 1u << DR_KNOB_WORKERS;
        atomic_store(&p.batch_bytes, 1000000);
        assert_ok(dr_controller_open(m, &o, &plant, &controller, &err));
        dr_decision d = next_decision(m, controller, 0);
        dr_controller_pause(controller, true);
        pass(m, 10);
        assert_int_equal(atomic_load(&p.prefetch) == 7, works_ahead); /* seven tenths */
        dr_controller_decisions(controller, 0, &d, 1);
        assert_int_equal(strstr(d.reason, "The consumer pauses") != NULL, works_ahead);
        pass(m, 20);
        assert_int_equal(dr_controller_decisions(controller, d.number, &d, 1), 0);
        dr_controller_pause(controller, false);
        next_decision(m, controller, d.number);
        dr_controller_close(&controller);
        dr_monitor_unref(&m);
    }
}

/* Weights of every hour are those of now. */
static void weights_on_a_schedule(void **state)
{
    (void)state;
    struct plant p = { .workers = 4, .prefetch = 2 };
    dr_monitor *m = open_monitor();
    dr_weights_schedule s;
    assert_ok(dr_weights_schedule_parse("step; 00:00-24:00 energy=0.75", &s, &err));
    dr_controller *controller = open_controller(m, &p, "fixed", 0);
    dr_decision d = next_decision(m, controller, 0);
    dr_controller_set_schedule(controller, &s);
    while (d.weight[DR_TERM_ENERGY] != 0.75)
        d = next_decision(m, controller, d.number);
    dr_controller_close(&controller);
    dr_controller_options o;
    dr_plant plant = plant_of(&p);
    dr_controller_defaults(&o);
    o.schedule = &s;
    s.spans[0].weights.of[DR_TERM_HOST] = -1;
    assert_fails(dr_controller_open(m, &o, &plant, &controller, &err), DR_ERR_ARG, "weight of host");
    s.n_spans = DR_MAX_SPANS + 1;
    assert_fails(dr_controller_open(m, &o, &plant, &controller, &err), DR_ERR_ARG, "n_spans must be 0 to 16, got 17");
    dr_monitor_unref(&m);
}

static void a_plant_that_refuses(void **state)
{
    (void)state;
    struct plant p = { .workers = 1, .prefetch = 2, .refuses = true };
    dr_monitor *m = open_monitor();
    dr_controller *controller = open_controller(m, &p, "rules", 1u << DR_KNOB_PREFETCH);
    dr_decision d = next_decision(m, controller, 0);
    assert_true(d.guarded && !d.changed && strstr(d.reason, "workers: no more threads"));
    next_decision(m, controller, d.number + 3);
    assert_int_equal(atomic_load(&p.n_sets), 1); /* not asked again at once */
    next_decision(m, controller, d.number + 15);
    assert_int_equal(atomic_load(&p.n_sets), 2); /* after ten decisions it was, */
    atomic_store(&p.refuses, false);
    next_decision(m, controller, d.number + 40); /* and after twenty more */
    assert_true(atomic_load(&p.workers) > 1);
    dr_controller_close(&controller);
    dr_monitor_unref(&m);
}

static void weights_while_it_runs(void **state)
{
    (void)state;
    struct plant p = { .workers = 4, .prefetch = 2 };
    dr_weights w;
    dr_monitor *m = open_monitor();
    dr_controller *controller = open_controller(m, &p, "fixed", 0);
    dr_decision d = next_decision(m, controller, 0);
    assert_ok(dr_weights_parse("draadp,energy=2", &w, &err));
    dr_controller_set_weights(controller, &w);
    d = next_decision(m, controller, d.number + 1);
    assert_memory_equal(d.weight, w.of, sizeof w.of);
    dr_controller_close(&controller);
    dr_monitor_unref(&m);
}

/* --- what is refused --- */

static void bad_options(void **state)
{
    (void)state;
    struct plant p = { .workers = 1, .prefetch = 2 };
    dr_monitor *m = open_monitor();
    dr_plant plant = plant_of(&p);
    dr_controller *controller;
    dr_controller_options good, o;
    dr_controller_defaults(&good);
    o = good;
    o.size = 3;
    assert_fails(dr_controller_open(m, &o, &plant, &controller, &err), DR_ERR_ARG, ", got 3");
    o = good;
    o.period_ms = 50;
    assert_fails(dr_controller_open(m, &o, &plant, &controller, &err), DR_ERR_ARG,
                 "period_ms must be 0 or 100 to 60000, got 50");
    o = good;
    o.cpu_limit = -1;
    assert_fails(dr_controller_open(m, &o, &plant, &controller, &err), DR_ERR_ARG,
                 "cpu_limit must be a number from 0, got -1");
    o = good;
    o.weights.of[DR_TERM_IDLE] = NAN;
    assert_fails(dr_controller_open(m, &o, &plant, &controller, &err), DR_ERR_ARG, "weight of idle");
    o = good;
    o.policy = "best";
    assert_fails(dr_controller_open(m, &o, &plant, &controller, &err), DR_ERR_ARG,
                 "policy must be one of fixed, rules, climb");
    plant.most[DR_KNOB_WORKERS] = 1000;
    assert_fails(dr_controller_open(m, &good, &plant, &controller, &err), DR_ERR_ARG, "workers goes from 1 to 1000");
    plant = plant_of(&p);
    plant.set = NULL;
    assert_fails(dr_controller_open(m, &good, &plant, &controller, &err), DR_ERR_ARG, "callback");
    assert_null(controller);
    dr_controller_close(&controller);
    dr_monitor_unref(&m);
}

static void kill_switch(void **state)
{
    (void)state;
    struct plant p = { .workers = 1, .prefetch = 2 };
    dr_monitor *m = open_monitor();
    setenv("DRAPPS_POLICY", "off", 1);
    dr_controller *controller = open_controller(m, &p, "rules", 0);
    unsetenv("DRAPPS_POLICY");
    next_decision(m, controller, 3);
    assert_int_equal(atomic_load(&p.n_sets), 0);
    dr_controller_close(&controller);
    dr_monitor_unref(&m);
}

/* Every allocation of opening fails once; nothing is left behind, which the sanitizer checks. */
static void memory_is_short(void **state)
{
    (void)state;
    struct plant p = { .workers = 1, .prefetch = 2 };
    dr_monitor *m = open_monitor();
    dr_plant plant = plant_of(&p);
    dr_controller *controller = NULL;
    dr_status status = DR_ERR_NOMEM;
    for (long n = 1; status != DR_OK; n++) {
        assert_true(n < 20);
        dr__alloc_fail_at(n, false);
        status = dr_controller_open(m, NULL, &plant, &controller, &err);
        dr__alloc_fail_at(0, false);
        assert_true(status == DR_OK || status == DR_ERR_NOMEM);
    }
    dr_controller_close(&controller);
    dr_monitor_unref(&m);
}

int main(void)
{
    unsetenv("DRAPPS_POLICY");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knobs_are_turned),      cmocka_unit_test(decisions_are_kept),
        cmocka_unit_test(held_and_pinned),       cmocka_unit_test(pauses_are_told),
        cmocka_unit_test(weights_on_a_schedule), cmocka_unit_test(a_plant_that_refuses),
        cmocka_unit_test(weights_while_it_runs), cmocka_unit_test(bad_options),
        cmocka_unit_test(kill_switch),           cmocka_unit_test(memory_is_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
