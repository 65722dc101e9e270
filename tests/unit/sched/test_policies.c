/* Every policy of the table, flown over random plants: what must hold whatever it decides. */
#include "unit/sched/fluid.h"

#include "unit/cm.h"

#include <jansson.h>
#include <math.h>

#include "base/alloc.h"

static dr_error err;

typedef struct watch {
    const char *policy;
    uint64_t seed, number;
    double most_bytes;
    uint32_t pinned;
    double at[DR_N_KNOBS]; /* as they were given */
    int changes;
    dr__terms_of_use use;
} watch;

static double between(fluid *f, double least, double most) /* evenly on a scale of logarithms */
{
    return least * pow(most / least, fluid_random(f));
}

/* From a laptop to a server, from a trainer that takes all to one that takes hardly anything. */
static fluid random_plant(uint64_t seed)
{
    fluid f = fluid_ordinary(seed);
    f.n_cpus = floor(between(&f, 1, 65));
    f.cpu = between(&f, 2e-4, 0.05);
    f.read = fluid_random(&f) < 0.5 ? 0 : between(&f, 1e-5, 0.05);
    f.step = between(&f, 1e-3, 1);
    f.step_cpu = fluid_random(&f) < 0.5 ? 0 : between(&f, 1e-3, 0.2);
    f.foreign = fluid_random(&f) < 0.5 ? 0 : fluid_random(&f) * 2 * f.n_cpus;
    f.quota = fluid_random(&f) < 0.7 ? 0 : between(&f, 0.25, f.n_cpus);
    f.batch_samples = floor(between(&f, 1, 257));
    f.batch_bytes = between(&f, 1e3, 1e8);
    f.memory_limit = between(&f, 4, 1000) * f.batch_bytes;
    f.lag = between(&f, 1e-3, 1);
    f.noise = 0.1 * fluid_random(&f);
    f.knob[DR_KNOB_WORKERS] = floor(between(&f, 1, 33));
    f.knob[DR_KNOB_PREFETCH] = floor(between(&f, 1, 4));
    f.mem_level = fluid_random(&f) < 0.7 ? 0.3 : 0.8; /* and where memory gets short */
    return f;
}

static void check_decision(void *user, fluid *f, const dr_decision *d)
{
    watch *w = user;
    assert_int_equal(d->number, ++w->number);
    assert_true(d->bound >= 0 && d->bound < DR_N_BOUNDS);
    assert_non_null(memchr(d->reason, 0, sizeof d->reason));
    assert_true(fabs(dr_decision_reward(d) - d->reward) < 1e-6);
    for (int i = 0; i < DR_N_TERMS; i++)
        assert_true(d->term[i] >= 0 && d->term[i] <= 1);
    for (int i = 0; i < DR_N_KNOBS; i++) {
        bool whole = i != DR_KNOB_LANE_SHARE && i != DR_KNOB_LANE_THRESHOLD && i != DR_KNOB_CPU_CEILING;
        if (!isfinite(f->knob[i]) || f->knob[i] < w->use.least[i] || f->knob[i] > w->use.most[i] ||
            (whole && f->knob[i] != floor(f->knob[i])))
            fail_msg("%s, seed %d: %s is %g", w->policy, (int)w->seed, dr_knob_name(i), f->knob[i]);
        if (w->pinned >> i & 1)
            assert_true(f->knob[i] == w->at[i]);
        assert_true((d->changed >> i & 1) == (d->after[i] != d->before[i]));
    }
    if (f->knob[DR_KNOB_PREFETCH] * f->batch_bytes > w->most_bytes)
        fail_msg("%s, seed %d: %g batches of %g bytes, allowed are %g", w->policy, (int)w->seed,
                 f->knob[DR_KNOB_PREFETCH], f->batch_bytes, w->most_bytes);
    w->changes += d->changed != 0;
}

static void fly_one(const char *name, uint64_t seed)
{
    fluid f = random_plant(seed);
    dr__terms_of_use use = fluid_use(&f);
    use.pinned = (uint32_t)(fluid_random(&f) * 16) & 0x5; /* none, workers, prefetch, both */
    watch w = { .policy = name, .seed = seed, .most_bytes = f.memory_limit, .pinned = use.pinned, .use = use };
    memcpy(w.at, f.knob, sizeof w.at);
    dr__control control;
    assert_ok(dr__control_init(&control, dr__policy_find(name), &use, 1000, &err));
    fluid_fly(&f, &control, 20, check_decision, &w);
    f.foreign = f.n_cpus; /* the world changes */
    fluid_fly(&f, &control, 10, check_decision, &w);
    dr__control_free(&control);
}

static void table_walk(void (*fly)(const char *name, uint64_t seed), int n)
{
    json_t *list = json_loads(dr_policies_json(), 0, NULL);
    for (size_t i = 0; i < json_array_size(list); i++)
        for (int seed = 0; seed < n; seed++)
            fly(json_string_value(json_object_get(json_array_get(list, i), "name")), (uint64_t)seed);
    json_decref(list);
}

static void what_always_holds(void **state)
{
    (void)state;
    table_walk(fly_one, 60);
}

/* --- rest --- */

static int changes_at_rest(uint64_t seed)
{
    fluid f = random_plant(seed);
    f.noise = 0.03;
    dr__terms_of_use use = fluid_use(&f);
    watch w = { .policy = "analytic", .seed = seed, .most_bytes = f.memory_limit, .use = use };
    dr__control control;
    assert_ok(dr__control_init(&control, &dr__policy_analytic, &use, 1000, &err));
    fluid_fly(&f, &control, 40, check_decision, &w);
    w.changes = 0;
    fluid_fly(&f, &control, 60, check_decision, &w);
    dr__control_free(&control);
    return w.changes;
}

/* Where nothing changes but noise of 3 %, the knobs come to rest.  The other policies have no rest built in: they are
 * here to compare with. */
static void nothing_changes_nothing(void **state)
{
    (void)state;
    enum { N = 300 };
    int restless = 0;
    for (uint64_t seed = 0; seed < N; seed++) {
        int changes = changes_at_rest(seed);
        restless += changes > 3;
        if (changes > 12)
            fail_msg("seed %d: %d changes in a minute in which nothing happened", (int)seed, changes);
    }
    assert_true(restless <= N / 50); /* trainer, workers and others on CPUs that are just enough */
}

/* --- cost --- */

static void no_allocation(const char *name, uint64_t seed)
{
    fluid f = random_plant(seed);
    dr__terms_of_use use = fluid_use(&f);
    dr__control control;
    assert_ok(dr__control_init(&control, dr__policy_find(name), &use, 1000, &err));
    dr__alloc_fail_at(1, true);
    fluid_fly(&f, &control, 10, NULL, NULL);
    assert_int_equal(dr__alloc_fail_at(0, false), 0);
    dr__control_free(&control);
}

static void ticks_allocate_nothing(void **state)
{
    (void)state;
    table_walk(no_allocation, 3);
    dr__control control;
    dr__terms_of_use use = { 0 };
    dr__alloc_fail_at(1, false);
    dr_status status = dr__control_init(&control, &dr__policy_analytic, &use, 1000, &err);
    dr__alloc_fail_at(0, false);
    assert_int_equal(status, DR_ERR_NOMEM);
    dr__control_free(&control);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_always_holds),
        cmocka_unit_test(nothing_changes_nothing),
        cmocka_unit_test(ticks_allocate_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
