/* The tables of knobs, flow, policies and bounds; weights; rewards. */
#include "unit/cm.h"

#include <jansson.h>
#include <math.h>

#include "sched/policy.h"
#include "sched/reward.h"
#include "sched/tables.h"

static dr_error err;

static const char *text_of(json_t *row, const char *key)
{
    return json_string_value(json_object_get(row, key));
}

static void knobs(void **state)
{
    (void)state;
    json_t *list = json_loads(dr_knobs_json(), 0, NULL);
    assert_int_equal(json_array_size(list), DR_N_KNOBS);
    for (int i = 0; i < DR_N_KNOBS; i++) {
        json_t *row = json_array_get(list, (size_t)i);
        assert_string_equal(text_of(row, "name"), dr_knob_name(i));
        assert_int_equal(dr_knob_find(dr_knob_name(i)), i);
        assert_true(json_number_value(json_object_get(row, "least")) < json_number_value(json_object_get(row, "most")));
        assert_true(json_integer_value(json_object_get(row, "cooldown_ms")) > 0 && *text_of(row, "doc"));
        assert_int_equal(json_is_true(json_object_get(row, "whole")), dr_knob_is_whole(i));
    }
    assert_null(dr_knob_name(-1));
    assert_null(dr_knob_name(DR_N_KNOBS));
    assert_int_equal(dr_knob_find("none"), -1);
    assert_int_equal(dr_knob_find(NULL), -1);
    json_decref(list);
}

static void flows_and_bounds(void **state)
{
    (void)state;
    json_t *list = json_loads(dr_flows_json(), 0, NULL);
    assert_int_equal(json_array_size(list), DR_N_FLOWS);
    for (int i = 0; i < DR_N_FLOWS; i++) {
        const char *kind = text_of(json_array_get(list, (size_t)i), "kind");
        assert_string_equal(kind, dr__flow_is_sum(i) ? "sum" : "gauge");
    }
    assert_true(dr__flow_is_sum(DR_FLOW_SAMPLES) && !dr__flow_is_sum(DR_FLOW_READY));
    json_decref(list);
    assert_string_equal(dr_bound_name(DR_BOUND_CPU), "cpu");
    assert_null(dr_bound_name(-1));
    assert_null(dr_bound_name(DR_N_BOUNDS));
}

static void policies(void **state)
{
    (void)state;
    dr__policy_choice p;
    json_t *list = json_loads(dr_policies_json(), 0, NULL);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = text_of(json_array_get(list, i), "name");
        assert_string_equal(dr__policy_find(name)->name, name);
        assert_true(*text_of(json_array_get(list, i), "doc"));
    }
    json_decref(list);
    unsetenv("DRAPPS_POLICY");
    assert_ok(dr__policy_choose(NULL, &p, &err));
    assert_string_equal(p.def->name, "analytic");
    assert_fails(dr__policy_choose("best", &p, &err), DR_ERR_ARG,
                 "policy must be one of fixed, rules, climb, stages, analytic, mpc, off, got 'best'");
    setenv("DRAPPS_POLICY", "off", 1);
    assert_ok(dr__policy_choose("analytic", &p, &err));
    assert_string_equal(p.def->name, "fixed");
    setenv("DRAPPS_POLICY", "worst", 1);
    assert_fails(dr__policy_choose("analytic", &p, &err), DR_ERR_ARG, "DRAPPS_POLICY must be one of");
    setenv("DRAPPS_POLICY", "", 1);
    assert_ok(dr__policy_choose("fixed", &p, &err));
    assert_string_equal(p.def->name, "fixed");
    unsetenv("DRAPPS_POLICY");
}

/* --- weights --- */

static void weights(void **state)
{
    (void)state;
    dr_weights step, w;
    assert_ok(dr_weights_parse("step", &step, &err));
    assert_ok(dr_weights_parse(NULL, &w, &err));
    assert_memory_equal(&w, &step, sizeof w);
    assert_ok(dr_weights_parse("", &w, &err));
    assert_memory_equal(&w, &step, sizeof w);
    assert_ok(dr_weights_parse("idle=2.5", &w, &err));
    assert_true(w.of[DR_TERM_IDLE] == 2.5 && w.of[DR_TERM_THROUGHPUT] == step.of[DR_TERM_THROUGHPUT]);
    assert_ok(dr_weights_parse("draadp,energy=0.5,balance=0", &w, &err));
    assert_true(w.of[DR_TERM_ENERGY] == 0.5 && w.of[DR_TERM_BALANCE] == 0 && w.of[DR_TERM_LATENCY] > 0);
    assert_true(w.of[DR_TERM_IDLE] == 0 && w.of[DR_TERM_HOST] == 0);
    assert_ok(dr_weights_parse("drapps", &w, &err));
    assert_true(w.of[DR_TERM_IDLE] > 0 && w.of[DR_TERM_BALANCE] > 0 && w.of[DR_TERM_ENERGY] == 0);
}

static void weights_that_are_none(void **state)
{
    (void)state;
    dr_weights w = { { 7 } };
    assert_fails(dr_weights_parse("fast", &w, &err), DR_ERR_ARG, "got \"fast\"");
    assert_fails(dr_weights_parse("speed=1", &w, &err), DR_ERR_ARG, "got \"speed\"");
    assert_fails(dr_weights_parse("idle=-1", &w, &err), DR_ERR_ARG, "idle must be a number from 0, got \"-1\"");
    assert_fails(dr_weights_parse("idle=", &w, &err), DR_ERR_ARG, "got \"\"");
    assert_fails(dr_weights_parse("idle=1x", &w, &err), DR_ERR_ARG, "\"1x\"");
    assert_fails(dr_weights_parse("idle=inf", &w, &err), DR_ERR_ARG, "inf");
    assert_fails(dr_weights_parse("idle=nan", &w, &err), DR_ERR_ARG, "nan");
    assert_fails(dr_weights_parse("idle=1,step", &w, &err), DR_ERR_ARG, "preset comes first");
    assert_fails(dr_weights_parse(",", &w, &err), DR_ERR_ARG, "neither");
    char longer[200];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    assert_fails(dr_weights_parse(longer, &w, &err), DR_ERR_ARG, "neither");
    assert_true(w.of[0] == 7); /* untouched */
}

/* --- rewards --- */

static dr__observation half_used(void)
{
    dr__observation o = { .rate = 300, .demand = 600, .wait = 0.5, .latency = 0.25, .cpus = 2, .cpu_each = 0.002 };
    o.flow[DR_FLOW_CPU] = 0.6;
    o.present = 1ull << DR_SENSOR_CPU_TOTAL | 1ull << DR_SENSOR_MEM_USED | 1ull << DR_SENSOR_POWER;
    o.level[DR_SENSOR_CPU_TOTAL] = 0.3;
    o.level[DR_SENSOR_MEM_USED] = 0.7;
    o.level[DR_SENSOR_POWER] = 0.4;
    o.sensor[DR_SENSOR_POWER] = 4;
    return o;
}

static void terms(void **state)
{
    (void)state;
    double t[DR_N_TERMS];
    dr__observation o = half_used();
    dr__terms_measure(&o, 0.25, t);
    assert_true(fabs(t[DR_TERM_THROUGHPUT] - 0.5) < 1e-12); /* of 600 asked for, 1000 would be possible */
    assert_true(fabs(t[DR_TERM_LATENCY] - 0.25) < 1e-12);
    assert_true(fabs(t[DR_TERM_BALANCE] - 0.8) < 1e-12); /* 0.3 and 0.7: 0.2 about their mean */
    assert_true(fabs(t[DR_TERM_ENERGY] - 0.4) < 1e-12);
    assert_true(fabs(t[DR_TERM_IDLE] - 0.5) < 1e-12);
    assert_true(fabs(t[DR_TERM_HOST] - 0.3) < 1e-12);
    assert_true(fabs(t[DR_TERM_CHANGE] - 0.25) < 1e-12);
    o.demand = 1e6; /* more than all CPUs could make: their 1000 count */
    dr__terms_measure(&o, 0, t);
    assert_true(fabs(t[DR_TERM_THROUGHPUT] - 0.3) < 1e-12);
    memset(&o, 0, sizeof o); /* nothing known */
    dr__terms_measure(&o, 0, t);
    for (int i = 0; i < DR_N_TERMS; i++)
        assert_true(t[i] >= 0 && t[i] <= 1);
}

/* Both formulas by hand. */
static void formulas(void **state)
{
    (void)state;
    dr_decision d = { .term = { 0.9, 0.2, 0.8, 0.4, 0.1, 0.3, 0.25 } };
    dr_weights w;
    assert_ok(dr_weights_parse("draadp", &w, &err));
    memcpy(d.weight, w.of, sizeof d.weight);
    double want = w.of[DR_TERM_THROUGHPUT] * 0.9 - w.of[DR_TERM_LATENCY] * 0.2 + w.of[DR_TERM_BALANCE] * 0.8 -
                  w.of[DR_TERM_ENERGY] * 0.4;
    assert_true(fabs(dr_decision_reward(&d) - want) < 1e-12);
    assert_ok(dr_weights_parse("drapps", &w, &err));
    memcpy(d.weight, w.of, sizeof d.weight);
    want = w.of[DR_TERM_THROUGHPUT] * 0.9 - w.of[DR_TERM_LATENCY] * 0.2 - w.of[DR_TERM_IDLE] * 0.1 +
           w.of[DR_TERM_BALANCE] * 0.8;
    assert_true(fabs(dr_decision_reward(&d) - want) < 1e-12);
}

static dr_weights_schedule schedule_of(const char *text)
{
    dr_weights_schedule s;
    assert_ok(dr_weights_schedule_parse(text, &s, &err));
    return s;
}

static double energy_at(const dr_weights_schedule *s, double hour, double *next, double *hours)
{
    dr_weights now, then;
    *hours = dr_weights_at(s, 3600 * hour, &now, &then) / 3600;
    *next = then.of[DR_TERM_ENERGY];
    return now.of[DR_TERM_ENERGY];
}

/* A day and a night tariff with an hour that is dearer still. */
static void weights_by_the_time_of_day(void **state)
{
    (void)state;
    double next, hours;
    dr_weights now;
    dr_weights_schedule s = schedule_of("step,energy=0.3; 22:00-06:00 energy=0.05,host=0;17:30:00-19:00 energy=1");
    assert_true(energy_at(&s, 12, &next, &hours) == 0.3 && next == 1 && hours == 5.5);
    assert_true(energy_at(&s, 18, &next, &hours) == 1 && next == 0.3 && hours == 1);
    assert_true(energy_at(&s, 19, &next, &hours) == 0.3 && next == 0.05 && hours == 3);
    assert_true(energy_at(&s, 22, &next, &hours) == 0.05 && next == 0.3 && hours == 8);
    assert_true(energy_at(&s, 5.5, &next, &hours) == 0.05 && next == 0.3 && hours == 0.5);
    assert_true(energy_at(&s, 6, &next, &hours) == 0.3 && hours == 11.5);
    dr_weights_at(&s, 0, &now, NULL);
    assert_true(now.of[DR_TERM_HOST] == 0 && now.of[DR_TERM_THROUGHPUT] == 1);
    s = schedule_of("energy=1; 00:00-24:00 energy=2"); /* never changes */
    assert_true(energy_at(&s, 3, &next, &hours) == 2 && next == 2 && hours == 0);
    s = schedule_of("energy=1; 08:00-10:00 energy=2; 09:00-12:00 energy=2"); /* not at ten */
    assert_true(energy_at(&s, 8.5, &next, &hours) == 2 && next == 1 && hours == 3.5);
    s = schedule_of(NULL);
    assert_true(s.n_spans == 0 && s.otherwise.of[DR_TERM_IDLE] == 1);
}

static void wrong_schedules_are_named(void **state)
{
    (void)state;
    dr_weights_schedule s;
    const char *bad[] = { "step;",
                          "step; energy=1",
                          "step; 8-9 energy=1",
                          "; 08:00-25:00 energy=1",
                          "; 08:60-09:00 a",
                          "; 08:00-09:00",
                          "; 08:00-09:00 speed=1",
                          "; 08:00-08:00 energy=1",
                          "; 08:00 energy=1",
                          "; 08:00-09:00 draadp",
                          "; 08:00-09:00energy=1",
                          "; 08:00-09:00 energy=-1",
                          "; -1:00-09:00 energy=1",
                          "; 08:00-09:00:61 energy=1",
                          "; 24:01-09:00 energy=1" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (dr_weights_schedule_parse(bad[i], &s, &err) != DR_ERR_ARG)
            fail_msg("\"%s\" is taken", bad[i]);
    assert_fails(dr_weights_schedule_parse("step; 8-9 energy=1", &s, &err), DR_ERR_ARG,
                 "\"8-9 energy=1\" is not HH:MM");
    char many[1000] = "step";
    for (int i = 0; i <= DR_MAX_SPANS; i++)
        strcat(many, ";01:00-02:00 energy=1");
    assert_fails(dr_weights_schedule_parse(many, &s, &err), DR_ERR_ARG, "at most 16 spans");
    char longest[1000] = "step;01:00-02:00 ";
    memset(longest + strlen(longest), 'x', 900);
    assert_fails(dr_weights_schedule_parse(longest, &s, &err), DR_ERR_ARG, "shorter than 512");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knobs),
        cmocka_unit_test(flows_and_bounds),
        cmocka_unit_test(policies),
        cmocka_unit_test(weights),
        cmocka_unit_test(weights_that_are_none),
        cmocka_unit_test(terms),
        cmocka_unit_test(formulas),
        cmocka_unit_test(weights_by_the_time_of_day),
        cmocka_unit_test(wrong_schedules_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
