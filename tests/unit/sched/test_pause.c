/* A consumer that evaluates or saves now and then: its silence is no slow consumer, and batches are made meanwhile. */
#include "unit/sched/fluid.h"

#include "unit/cm.h"

#include <math.h>
#include <string.h>

#include "base/compiler.h"

static dr_error err;

typedef struct diary {
    dr_decision last, filled;
    int n, n_filled;
    double least_workers;
} diary;

static void note(void *user, fluid *f, const dr_decision *d)
{
    diary *l = user;
    l->last = *d;
    l->n++;
    l->least_workers = DR_MIN(l->least_workers, f->knob[DR_KNOB_WORKERS]);
    if (strstr(d->reason, "pauses")) {
        l->filled = *d;
        l->n_filled++;
    }
}

static dr__control begin(fluid *f, const char *policy)
{
    dr__control control;
    dr__terms_of_use use = fluid_use(f);
    dr__policy_choice choice = fluid_policy(policy);
    assert_ok(dr__control_init(&control, &choice, &use, 1000, &err));
    return control;
}

/* 8 CPUs, of which the consumer needs five. */
static fluid busy_plant(uint64_t seed)
{
    fluid f = fluid_ordinary(seed);
    f.n_cpus = 8;
    f.step = 32 * f.cpu / 5;
    f.knob[DR_KNOB_WORKERS] = 6;
    return f;
}

static void away(fluid *f, dr__control *control, double seconds, bool told, diary *l)
{
    f->away = true;
    f->told = told;
    fluid_run(f, control, seconds, note, l);
    f->away = false;
}

static void a_pause_of(double seconds, double every, bool told)
{
    fluid f = busy_plant(1);
    dr__control control = begin(&f, "analytic");
    diary l = { .least_workers = INFINITY };
    fluid_run(&f, &control, 8, NULL, NULL);
    double workers = f.knob[DR_KNOB_WORKERS], prefetch = f.knob[DR_KNOB_PREFETCH];
    for (int i = 0; i < 6; i++) {
        fluid_run(&f, &control, every, note, &l);
        away(&f, &control, seconds, told, &l);
    }
    fluid_run(&f, &control, 0.8, note, &l);
    if (l.least_workers < workers)
        fail_msg("%g workers of %g after pauses of %g s each %g s, told %d", l.least_workers, workers, seconds, every,
                 told);
    assert_int_equal(l.n_filled, told ? 6 : 0);
    fluid_run(&f, &control, 10, note, &l);
    assert_true(f.knob[DR_KNOB_PREFETCH] <= prefetch + 1);
    dr__control_free(&control);
}

/* Whenever it comes, and whether or not it was told: there are as many workers afterwards as before. */
static void pauses_are_no_slow_consumer(void **state)
{
    (void)state;
    for (int told = 0; told < 2; told++)
        for (double every = 3; every < 4; every += 0.23)
            for (double seconds = 1.5; seconds < 8; seconds *= 2)
                a_pause_of(seconds, every, told);
}

/* A consumer whose steps are long from now on is slow. */
static void a_slower_pace_is_no_pause(void **state)
{
    (void)state;
    fluid f = busy_plant(2);
    dr__control control = begin(&f, "analytic");
    fluid_run(&f, &control, 8, NULL, NULL);
    f.step = 1.5;
    fluid_run(&f, &control, 90, NULL, NULL);
    assert_true(f.knob[DR_KNOB_WORKERS] == 1);
    dr__control_free(&control);
}

/* While it pauses, batches are made; afterwards a consumer that is faster than the workers lives on them. */
static void batches_are_made_meanwhile(void **state)
{
    (void)state;
    double wait[2];
    for (int told = 0; told < 2; told++) {
        fluid f = busy_plant(3);
        f.step = 32 * f.cpu / 8.5; /* more than 8 CPUs make */
        dr__control control = begin(&f, "analytic");
        diary l = { .n = 0 };
        fluid_run(&f, &control, 10, NULL, NULL);
        away(&f, &control, 5, told, &l);
        double before = f.flow[DR_FLOW_WAIT], ready = f.ready / f.batch_samples;
        fluid_run(&f, &control, 3, note, &l);
        wait[told] = f.flow[DR_FLOW_WAIT] - before;
        assert_true(told ? ready > 50 : ready < 20);
        if (!told)
            continue;
        assert_true(l.filled.changed == 1u << DR_KNOB_PREFETCH && l.filled.after[DR_KNOB_PREFETCH] == 64);
        assert_true(l.filled.bound == DR_BOUND_CONSUMER);
        fluid_run(&f, &control, 30, note, &l);
        assert_true(f.knob[DR_KNOB_PREFETCH] < 32); /* given back */
    }
    assert_true(wait[1] < 0.001 && wait[0] > 0.1);
}

/* No more than memory allows, none where the machine's is short, and what the watchdog takes stays taken. */
static void memory_is_watched_in_a_pause(void **state)
{
    (void)state;
    fluid f = busy_plant(4);
    f.memory_limit = 40 * f.batch_bytes;
    dr__control control = begin(&f, "analytic");
    diary l = { .n = 0 };
    fluid_run(&f, &control, 5, NULL, NULL);
    double prefetch = f.knob[DR_KNOB_PREFETCH];
    away(&f, &control, 2, true, &l);
    assert_true(f.knob[DR_KNOB_PREFETCH] == 14); /* 0.35 of 40 */
    f.mem_level = 0.95;
    away(&f, &control, 1, true, &l);
    assert_true(f.knob[DR_KNOB_PREFETCH] <= prefetch && l.last.guarded && l.last.bound == DR_BOUND_MEMORY);
    fluid_run(&f, &control, 1, note, &l);
    f.mem_level = 0.8;
    fluid_run(&f, &control, 11, note, &l);
    l.n_filled = 0;
    away(&f, &control, 2, true, &l);
    assert_int_equal(l.n_filled, 0);
    dr__control_free(&control);
}

/* Also of what is left of a surplus, the watchdog takes all. */
static void memory_is_watched_after_a_pause(void **state)
{
    (void)state;
    fluid f = busy_plant(7);
    dr__control control = begin(&f, "analytic");
    diary l = { .n = 0 };
    fluid_run(&f, &control, 5, NULL, NULL);
    away(&f, &control, 5, true, &l);
    fluid_run(&f, &control, 0.1, NULL, NULL);
    assert_true(f.knob[DR_KNOB_PREFETCH] == 64);
    f.mem_level = 0.95;
    fluid_run(&f, &control, 0.1, note, &l);
    assert_true(f.knob[DR_KNOB_PREFETCH] == 2 && l.last.before[DR_KNOB_PREFETCH] == 64);
    fluid_run(&f, &control, 3, note, &l);
    assert_true(f.knob[DR_KNOB_PREFETCH] == 2);
    dr__control_free(&control);
}

/* A prefetch of the user is left alone, and so is everything under `fixed`. */
static void what_nobody_may_turn_stays(void **state)
{
    (void)state;
    for (int pinned = 0; pinned < 2; pinned++) {
        fluid f = busy_plant(5);
        dr__control control = begin(&f, pinned ? "analytic" : "fixed");
        control.use.pinned = pinned ? 1u << DR_KNOB_PREFETCH : 0;
        diary l = { .n = 0 };
        fluid_run(&f, &control, 5, NULL, NULL);
        double prefetch = f.knob[DR_KNOB_PREFETCH];
        away(&f, &control, 3, true, &l);
        assert_true(f.knob[DR_KNOB_PREFETCH] == prefetch && l.n == 0);
        fluid_run(&f, &control, 2, note, &l);
        dr__control_free(&control);
    }
}

/* The next decision says for how long it paused; one that is set by hand meanwhile stays. */
static void told_afterwards(void **state)
{
    (void)state;
    fluid f = busy_plant(6);
    dr__control control = begin(&f, "analytic");
    diary l = { .n = 0 };
    fluid_run(&f, &control, 5, NULL, NULL);
    away(&f, &control, 3, true, &l);
    f.knob[DR_KNOB_PREFETCH] = 5;
    fluid_run(&f, &control, 1.2, note, &l);
    assert_non_null(strstr(l.last.reason, "The consumer paused for 3."));
    assert_true(l.last.before[DR_KNOB_PREFETCH] == 5);
    dr__control_free(&control);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pauses_are_no_slow_consumer),
        cmocka_unit_test(a_slower_pace_is_no_pause),
        cmocka_unit_test(batches_are_made_meanwhile),
        cmocka_unit_test(memory_is_watched_in_a_pause),
        cmocka_unit_test(memory_is_watched_after_a_pause),
        cmocka_unit_test(what_nobody_may_turn_stays),
        cmocka_unit_test(told_afterwards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
