/* The guard: masks, cooldown, steps, what is taken back, the watchdog. */
#include "unit/sched/fluid.h"

#include "unit/cm.h"

#include <math.h>

#define SECONDS 1000000000ull

static dr__observation ordinary(double seconds)
{
    fluid f = fluid_ordinary(1);
    dr__observation o = { .time_ns = (uint64_t)(seconds * 1e9), .span = 1, .use = fluid_use(&f) };
    o.knob[DR_KNOB_WORKERS] = 8;
    o.knob[DR_KNOB_PREFETCH] = 4;
    o.machine_cpus = o.quota_cpus = o.cpus = 8;
    o.demand = 1000;
    o.batches = 20;
    o.flow[DR_FLOW_BATCH_BYTES] = 1e6;
    o.memory_limit = 1e9;
    return o;
}

static dr__proposal as_it_stands(const dr__observation *o)
{
    dr__proposal w = { 0 };
    memcpy(w.knob, o->knob, sizeof w.knob);
    return w;
}

/* What becomes of the proposal for one knob. */
static double limited(dr__guard *g, const dr__observation *o, int knob, double x)
{
    dr__proposal w = as_it_stands(o);
    w.knob[knob] = x;
    dr__guard_limit(g, o, &w);
    return w.knob[knob];
}

static void masks(void **state)
{
    (void)state;
    dr__guard g = { 0 };
    dr__observation o = ordinary(1);
    assert_true(limited(&g, &o, DR_KNOB_WORKERS, 9.4) == 9);
    assert_true(limited(&g, &o, DR_KNOB_PREFETCH_BYTES, 1234567.5) == 1234568); /* a loader takes no other */
    assert_true(limited(&g, &o, DR_KNOB_WORKERS, NAN) == 8);
    assert_true(limited(&g, &o, DR_KNOB_WORKERS, INFINITY) == 8);
    assert_true(limited(&g, &o, DR_KNOB_LANE_SHARE, 0.5) == 0); /* the plant lacks it */
    o.use.most[DR_KNOB_WORKERS] = 10;
    assert_true(limited(&g, &o, DR_KNOB_WORKERS, 12) == 10);
    o.use.pinned = 1u << DR_KNOB_WORKERS;
    assert_true(limited(&g, &o, DR_KNOB_WORKERS, 9) == 8);
    o.memory_limit = 5.9e6; /* five batches in nine tenths of it */
    assert_true(limited(&g, &o, DR_KNOB_PREFETCH, 8) == 5);
    o.use.cpu_limit = 3;
    assert_true(limited(&g, &o, DR_KNOB_CPU_CEILING, 0) == 3);
}

static void steps_are_bounded(void **state)
{
    (void)state;
    dr__guard g = { 0 };
    dr__observation o = ordinary(1);
    assert_true(limited(&g, &o, DR_KNOB_WORKERS, 60) == 16);
    assert_true(limited(&g, &o, DR_KNOB_WORKERS, 1) == 4);
    assert_true(limited(&g, &o, DR_KNOB_PREFETCH, 60) == 8);
    assert_true(limited(&g, &o, DR_KNOB_READERS, 60) == 16); /* the first: for eight workers that read */
    o.knob[DR_KNOB_WORKERS] = 1;
    assert_true(limited(&g, &o, DR_KNOB_WORKERS, 60) == 3);
    assert_true(limited(&g, &o, DR_KNOB_PRIORITY, 5) == 1);
}

/* A knob that goes back and forth rests ever longer; after a sudden change it need not. */
static void cooldown_grows(void **state)
{
    (void)state;
    dr__guard g = { 0 };
    double now = 1;
    for (int i = 0; i < 5; i++) {
        dr__observation o = ordinary(now);
        double to = i % 2 ? 7 : 9, wait = i ? 0.95 * pow(2, i - 1) : 0;
        if (i) {
            o.time_ns = (uint64_t)((now + 0.9 * wait) * 1e9);
            assert_true(limited(&g, &o, DR_KNOB_WORKERS, to) == 8);
            o.time_ns = (uint64_t)((now + 1.01 * wait) * 1e9);
        }
        assert_true(limited(&g, &o, DR_KNOB_WORKERS, to) == to);
        o.knob[DR_KNOB_WORKERS] = 8;
        double after[DR_N_KNOBS] = { [DR_KNOB_WORKERS] = to };
        dr__guard_turned(&g, &o, after, 1u << DR_KNOB_WORKERS, 0, false);
        now = (double)o.time_ns * 1e-9;
    }
    dr__observation o = ordinary(now + 1);
    assert_true(limited(&g, &o, DR_KNOB_WORKERS, 7) == 8);
    o.sudden = true;
    assert_true(limited(&g, &o, DR_KNOB_WORKERS, 7) == 7);
}

/* A reward that fell because the weights changed says nothing about the knobs. */
static void other_weights_judge_no_change(void **state)
{
    (void)state;
    for (int changed = 0; changed < 2; changed++) {
        dr__guard g = { 0 };
        dr__observation o = ordinary(10);
        double after[DR_N_KNOBS] = { [DR_KNOB_WORKERS] = 12 };
        dr__guard_turned(&g, &o, after, 1u << DR_KNOB_WORKERS, 1, true);
        o = ordinary(12);
        o.use.weights.of[DR_TERM_ENERGY] += changed;
        dr__proposal w = as_it_stands(&o);
        assert_true(dr__guard_judge(&g, &o, 0.5, &w) == !changed);
    }
}

/* The first whole second after a turn at 1 s in which the knob may be turned again, with so many batches in flight and
 * 10 a second delivered. */
static int may_turn_again(int knob, double open)
{
    dr__guard g = { 0 };
    dr__observation o = ordinary(1);
    o.use.knobs |= 1u << knob;
    o.use.most[knob] = 8;
    o.knob[knob] = 1;
    o.rate = 320, o.batch_samples = 32;
    o.flow[DR_FLOW_OPEN] = open;
    double after[DR_N_KNOBS] = { [DR_KNOB_WORKERS] = 8 };
    after[knob] = 2;
    dr__guard_turned(&g, &o, after, 1u << knob, 0, true);
    o.knob[knob] = 2;
    o.flow[DR_FLOW_OPEN] = 0;
    for (int second = 2; second < 100; second++) {
        o.time_ns = (uint64_t)second * SECONDS;
        if (limited(&g, &o, knob, 3) == 3)
            return second;
    }
    return 0;
}

/* What a codec does is seen behind the batches that were in flight; workers work at once. */
static void a_knob_rests_for_its_lag(void **state)
{
    (void)state;
    const int behind[] = { DR_KNOB_CODEC, DR_KNOB_OFFLOAD, DR_KNOB_LANE_THRESHOLD };
    for (size_t i = 0; i < sizeof behind / sizeof *behind; i++) {
        assert_int_equal(may_turn_again(behind[i], 3), 2);
        assert_int_equal(may_turn_again(behind[i], 40), 5);
        assert_int_equal(may_turn_again(behind[i], 1e6), 30); /* at most */
    }
    assert_int_equal(may_turn_again(DR_KNOB_WORKERS, 40), 2);
    assert_int_equal(may_turn_again(DR_KNOB_PREFETCH, 40), 2);
}

/* Nor is it judged before that. */
static void a_trial_lasts_for_the_lag(void **state)
{
    (void)state;
    dr__guard g = { 0 };
    dr__observation o = ordinary(10);
    o.rate = 320, o.batch_samples = 32;
    o.flow[DR_FLOW_OPEN] = 40;
    double after[DR_N_KNOBS] = { [DR_KNOB_CODEC] = 2 };
    dr__guard_turned(&g, &o, after, 1u << DR_KNOB_CODEC, 1, true);
    for (int second = 11; second < 16; second++) {
        o.time_ns = (uint64_t)second * SECONDS;
        dr__proposal w = as_it_stands(&o);
        assert_true(dr__guard_judge(&g, &o, 0.5, &w) == (second == 15));
    }
}

/* --- taking back --- */

/* Workers go from 8 to 12 at `seconds`, with a reward of 1 before. */
static void change_workers(dr__guard *g, double seconds)
{
    dr__observation o = ordinary(seconds);
    double after[DR_N_KNOBS] = { [DR_KNOB_WORKERS] = 12 };
    dr__guard_turned(g, &o, after, 1u << DR_KNOB_WORKERS, 1, true);
}

static bool judge(dr__guard *g, dr__observation *o, double reward, double *workers)
{
    o->knob[DR_KNOB_WORKERS] = 12;
    dr__proposal w = as_it_stands(o);
    bool undone = dr__guard_judge(g, o, reward, &w);
    dr__guard_limit(g, o, &w);
    *workers = w.knob[DR_KNOB_WORKERS];
    return undone;
}

static void worse_is_taken_back(void **state)
{
    (void)state;
    dr__guard g = { 0 };
    double workers;
    change_workers(&g, 10);
    dr__observation o = ordinary(10.4);
    assert_false(judge(&g, &o, 0.5, &workers)); /* too early to tell */
    o = ordinary(11);
    assert_true(judge(&g, &o, 0.5, &workers));
    assert_true(workers == 8);
    o = ordinary(20);
    assert_true(limited(&g, &o, DR_KNOB_WORKERS, 12) == 8); /* not again for ten seconds */
    o = ordinary(21.5);
    assert_true(limited(&g, &o, DR_KNOB_WORKERS, 12) == 12);
    change_workers(&g, 22);
    o = ordinary(23);
    assert_true(judge(&g, &o, 0.5, &workers));
    o = ordinary(42); /* and then for twenty */
    assert_true(limited(&g, &o, DR_KNOB_WORKERS, 12) == 8 && limited(&g, &o, DR_KNOB_WORKERS, 6) == 6);
}

/* Neither an earlier ban of that direction nor the bound of a step keeps a change that made things worse. */
static void all_of_it_is_taken_back(void **state)
{
    (void)state;
    double workers;
    dr__guard g = { 0 };
    dr__guard_ban(&g, 9 * SECONDS, DR_KNOB_WORKERS, false);
    change_workers(&g, 10);
    dr__observation o = ordinary(11);
    assert_true(judge(&g, &o, 0.5, &workers));
    assert_true(workers == 8);

    dr__guard first = { 0 };
    o = ordinary(10);
    double after[DR_N_KNOBS] = { [DR_KNOB_READERS] = 16 };
    dr__guard_turned(&first, &o, after, 1u << DR_KNOB_READERS, 1, true);
    o = ordinary(11);
    o.knob[DR_KNOB_READERS] = 16;
    dr__proposal w = as_it_stands(&o);
    assert_true(dr__guard_judge(&first, &o, 0.5, &w));
    dr__guard_limit(&first, &o, &w);
    assert_true(w.knob[DR_KNOB_READERS] == 0);
}

static void what_is_not_taken_back(void **state)
{
    (void)state;
    double workers;
    dr__observation o = ordinary(11);
    dr__guard g = { 0 };
    change_workers(&g, 10);
    assert_false(judge(&g, &o, 0.95, &workers)); /* not clearly worse */
    change_workers(&g, 10);
    o.demand = 2000; /* another consumer */
    assert_false(judge(&g, &o, 0.5, &workers));
    change_workers(&g, 10);
    o = ordinary(11);
    o.foreign_cpus = 3; /* others came */
    assert_false(judge(&g, &o, 0.5, &workers));
    change_workers(&g, 10);
    o = ordinary(11);
    o.batches = 2; /* chance */
    assert_false(judge(&g, &o, 0.5, &workers));
}

/* --- watchdog --- */

static dr__tick tick_at(double seconds, double batches)
{
    dr__tick t = { .time_ns = (uint64_t)(seconds * 1e9),
                   .present = 1ull << DR_SENSOR_MEM_USED | 1ull << DR_SENSOR_PRESSURE_MEMORY };
    t.level[DR_SENSOR_MEM_USED] = 0.5;
    t.flow[DR_FLOW_BATCHES] = batches;
    t.flow[DR_FLOW_CONSUMERS] = 1;
    return t;
}

static bool watch(dr__guard *g, const dr__tick *t, double workers, double prefetch, dr__proposal *w)
{
    dr__observation o = ordinary((double)t->time_ns * 1e-9);
    o.knob[DR_KNOB_WORKERS] = workers;
    o.knob[DR_KNOB_PREFETCH] = prefetch;
    *w = as_it_stands(&o);
    return dr__guard_watch(g, t, &o, w);
}

static void memory_runs_short(void **state)
{
    (void)state;
    dr__guard g = { 0 };
    dr__proposal w;
    dr__tick t = tick_at(1, 1);
    assert_false(watch(&g, &t, 4, 4, &w));
    t = tick_at(2, 2);
    t.level[DR_SENSOR_MEM_USED] = 0.91;
    assert_true(watch(&g, &t, 12, 16, &w));
    assert_true(w.knob[DR_KNOB_PREFETCH] == 2 && w.knob[DR_KNOB_WORKERS] == 4 && w.bound == DR_BOUND_MEMORY);
    assert_non_null(strstr(w.reason, "Memory is 91 % full"));
    assert_false(watch(&g, &t, 4, 2, &w)); /* nothing is left to do */
    dr__observation o = ordinary(5);
    assert_true(limited(&g, &o, DR_KNOB_PREFETCH, 8) == 4 && limited(&g, &o, DR_KNOB_PREFETCH, 3) == 3);
    o = ordinary(13);
    assert_true(limited(&g, &o, DR_KNOB_PREFETCH, 8) == 8);
    t = tick_at(14, 3);
    t.value[DR_SENSOR_PRESSURE_MEMORY] = 0.3;
    assert_true(watch(&g, &t, 12, 16, &w));
    o.knob[DR_KNOB_PREFETCH_BYTES] = 1e9;
    o.flow[DR_FLOW_BATCH_BYTES] = 1000.25; /* a mean */
    w = as_it_stands(&o);
    assert_true(dr__guard_watch(&g, &t, &o, &w) && w.knob[DR_KNOB_PREFETCH_BYTES] == 3000);
}

static void no_batch_after_a_change(void **state)
{
    (void)state;
    dr__guard g = { 0 };
    dr__proposal w;
    dr__tick t;
    for (int i = 90; i < 100; i++) {
        t = tick_at(0.1 * i, i);
        assert_false(watch(&g, &t, 8, 4, &w));
    }
    change_workers(&g, 10);
    t = tick_at(11.8, 99);
    assert_false(watch(&g, &t, 12, 4, &w)); /* the last came at 9.9 */
    t = tick_at(12, 99);
    assert_true(watch(&g, &t, 12, 4, &w));
    assert_true(w.knob[DR_KNOB_WORKERS] == 8);
    assert_non_null(strstr(w.reason, "No batch came for 2.1 s"));
    dr__observation o = ordinary(16);
    assert_true(limited(&g, &o, DR_KNOB_WORKERS, 12) == 8); /* not again so soon */
}

/* A stall that no change came before is none of the guard's, nor is a consumer that does not ask. */
static void stalls_of_others(void **state)
{
    (void)state;
    dr__guard g = { 0 };
    dr__proposal w;
    dr__tick t = tick_at(1, 5);
    assert_false(watch(&g, &t, 8, 4, &w));
    t = tick_at(9, 5);
    assert_false(watch(&g, &t, 8, 4, &w));
    change_workers(&g, 10);
    for (double s = 10; s < 15; s += 0.1) {
        t = tick_at(s, 5);
        t.flow[DR_FLOW_CONSUMERS] = 0;
        assert_false(watch(&g, &t, 12, 4, &w));
    }
    dr__guard_pause(&g);
    t = tick_at(18, 5);
    assert_false(watch(&g, &t, 12, 4, &w));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks),
        cmocka_unit_test(steps_are_bounded),
        cmocka_unit_test(cooldown_grows),
        cmocka_unit_test(other_weights_judge_no_change),
        cmocka_unit_test(a_knob_rests_for_its_lag),
        cmocka_unit_test(a_trial_lasts_for_the_lag),
        cmocka_unit_test(worse_is_taken_back),
        cmocka_unit_test(all_of_it_is_taken_back),
        cmocka_unit_test(what_is_not_taken_back),
        cmocka_unit_test(memory_runs_short),
        cmocka_unit_test(no_batch_after_a_change),
        cmocka_unit_test(stalls_of_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
