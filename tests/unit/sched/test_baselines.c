/* The policies that are there to compare with do what their descriptions say. */
#include "unit/sched/fluid.h"

#include "unit/cm.h"

#include <math.h>

#include "sched/stage_model.h"

/* 640 samples a second asked for, 2 ms of work and 1 ms of reading each, on eight CPUs. */
static dr__observation ordinary(double seconds)
{
    dr__observation o = { .time_ns = (uint64_t)(seconds * 1e9), .span = 1, .batches = 20 };
    o.use.knobs = 1u << DR_KNOB_WORKERS | 1u << DR_KNOB_PREFETCH | 1u << DR_KNOB_READERS;
    o.use.least[DR_KNOB_WORKERS] = o.use.least[DR_KNOB_PREFETCH] = 1;
    o.use.most[DR_KNOB_WORKERS] = o.use.most[DR_KNOB_PREFETCH] = o.use.most[DR_KNOB_READERS] = 32;
    o.knob[DR_KNOB_WORKERS] = o.knob[DR_KNOB_PREFETCH] = 4;
    o.machine_cpus = o.quota_cpus = o.cpus = 8;
    o.demand = 640;
    o.work_each = o.cpu_each = 0.002;
    o.read_each = 0.001;
    o.batch_samples = 32;
    o.flow[DR_FLOW_BATCH_BYTES] = 1e6;
    o.memory_limit = 1e9;
    return o;
}

static dr__proposal proposal_of(const dr__policy_def *policy, void *memory, const dr__observation *o)
{
    dr__proposal w = { 0 };
    memcpy(w.knob, o->knob, sizeof w.knob);
    policy->decide(memory, fluid_policy(policy->name).param, o, &w);
    return w;
}

/* --- rules --- */

static void rules(void **state)
{
    (void)state;
    double memory[16] = { 0 };
    dr__observation o = ordinary(1);
    o.flow[DR_FLOW_READY] = 0.5; /* of four */
    dr__proposal w = proposal_of(&dr__policy_rules, memory, &o);
    assert_true(w.knob[DR_KNOB_WORKERS] == 5 && w.knob[DR_KNOB_PREFETCH] == 8);
    o.flow[DR_FLOW_READY] = 2;
    w = proposal_of(&dr__policy_rules, memory, &o);
    assert_true(w.knob[DR_KNOB_WORKERS] == 4 && w.knob[DR_KNOB_PREFETCH] == 4);
    o.flow[DR_FLOW_READY] = 3.5;
    for (int i = 1; i <= 5; i++) {
        w = proposal_of(&dr__policy_rules, memory, &o);
        assert_true(w.knob[DR_KNOB_WORKERS] == (i < 5 ? 4 : 3));
    }
    assert_true(proposal_of(&dr__policy_rules, memory, &o).knob[DR_KNOB_WORKERS] ==
                4); /* counts from the start again */
}

/* --- the model of the other two --- */

static void waiting_by_queue(void **state)
{
    (void)state;
    dr__stage_model m = { .work = 0.002, .step = 0.001 };
    double knob[DR_N_KNOBS] = { [DR_KNOB_WORKERS] = 2, [DR_KNOB_PREFETCH] = 4 };
    assert_true(fabs(dr__stage_wait(&m, knob) - 0.001 / 5) < 1e-12); /* as fast as the consumer: 1 / (K + 1) */
    m.step = 0.0005;
    double p_empty = (1 - 0.5) / (1 - pow(0.5, 5));
    assert_true(fabs(dr__stage_wait(&m, knob) - 0.001 * p_empty) < 1e-12);
    knob[DR_KNOB_PREFETCH] = 8;
    assert_true(dr__stage_wait(&m, knob) < 0.001 * p_empty);
    knob[DR_KNOB_READERS] = 1; /* a stage of its own, and the slower one */
    m.read = 0.003;
    assert_true(dr__stage_wait(&m, knob) > 0.001);
}

/* --- climb --- */

static void climbs_until_the_cpus_are_used(void **state)
{
    (void)state;
    double memory[16] = { 0 };
    dr__observation o = ordinary(1);
    o.use.pinned = 1u << DR_KNOB_READERS;
    o.demand = 1e5; /* takes all */
    dr__proposal w = proposal_of(&dr__policy_climb, memory, &o);
    assert_true(w.knob[DR_KNOB_WORKERS] == 8); /* 3 ms on eight threads: processing time over the budget */
    o = ordinary(1.5);
    w = proposal_of(&dr__policy_climb, memory, &o); /* too early */
    assert_true(w.knob[DR_KNOB_WORKERS] == 4 && strstr(w.reason, "next climb"));
}

static void climbs_ever_more_seldom(void **state)
{
    (void)state;
    double memory[16] = { 0 };
    int climbs = 0;
    for (int second = 1; second <= 128; second++) {
        dr__observation o = ordinary(second);
        climbs += !strstr(proposal_of(&dr__policy_climb, memory, &o).reason, "next climb");
    }
    assert_int_equal(climbs, 8); /* at 1, 2, 4, 8, 16, 32, 64 and 124 s */
}

static void climbing_stays_within_memory(void **state)
{
    (void)state;
    double memory[16] = { 0 };
    dr__observation o = ordinary(1);
    o.use.pinned = 1u << DR_KNOB_WORKERS | 1u << DR_KNOB_READERS;
    o.memory_limit = 10e6;
    o.knob[DR_KNOB_WORKERS] = 2;
    assert_true(proposal_of(&dr__policy_climb, memory, &o).knob[DR_KNOB_PREFETCH] == 5); /* half of it */
}

/* --- stages --- */

static void slowest_stage_first(void **state)
{
    (void)state;
    double memory[64] = { 0 };
    dr__observation o = ordinary(1);
    o.read_each = 0.004;
    dr__proposal w = proposal_of(&dr__policy_stages, memory, &o);
    /* 1.56 ms a sample: three that read for 4 ms, two that work for 2 ms */
    assert_true(w.knob[DR_KNOB_READERS] == 3 && w.knob[DR_KNOB_WORKERS] == 2);
}

static void buffers_double_by_watermark(void **state)
{
    (void)state;
    double memory[64] = { 0 };
    dr__observation o = ordinary(1);
    o.wait = 0.05;
    o.least_ready = 0;
    o.most_ready = 4;
    assert_true(proposal_of(&dr__policy_stages, memory, &o).knob[DR_KNOB_PREFETCH] == 8);
    o.least_ready = 2;
    assert_true(proposal_of(&dr__policy_stages, memory, &o).knob[DR_KNOB_PREFETCH] == 4);
}

static void outliers_are_cut(void **state)
{
    (void)state;
    double memory[64] = { 0 };
    dr__observation o = ordinary(1);
    dr__proposal w;
    o.use.pinned = 1u << DR_KNOB_READERS; /* workers read and work: 3 ms */
    for (int i = 0; i < 10; i++)
        w = proposal_of(&dr__policy_stages, memory, &o);
    assert_true(w.knob[DR_KNOB_WORKERS] == 2);
    o.demand = 10; /* the consumer saves a checkpoint */
    assert_true(proposal_of(&dr__policy_stages, memory, &o).knob[DR_KNOB_WORKERS] == 2);
}

static void nothing_known_nothing_wished(void **state)
{
    (void)state;
    double memory[64] = { 0 };
    dr__observation o = ordinary(1);
    o.demand = 0;
    assert_true(proposal_of(&dr__policy_stages, memory, &o).knob[DR_KNOB_WORKERS] == 4);
    assert_true(proposal_of(&dr__policy_climb, memory, &o).knob[DR_KNOB_WORKERS] == 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules),
        cmocka_unit_test(waiting_by_queue),
        cmocka_unit_test(climbs_until_the_cpus_are_used),
        cmocka_unit_test(climbs_ever_more_seldom),
        cmocka_unit_test(climbing_stays_within_memory),
        cmocka_unit_test(slowest_stage_first),
        cmocka_unit_test(buffers_double_by_watermark),
        cmocka_unit_test(outliers_are_cut),
        cmocka_unit_test(nothing_known_nothing_wished),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
