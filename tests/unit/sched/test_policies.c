/* Every policy of the table, run on random plants: what must hold whatever it decides. */
#include "unit/sched/fluid.h"

#include "unit/cm.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/compiler.h"

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

/* From a laptop to a server, from a consumer that takes all to one that takes hardly anything. */
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
        bool whole = dr_knob_is_whole(i);
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

static void run_one(const char *name, uint64_t seed)
{
    fluid f = random_plant(seed);
    dr__terms_of_use use = fluid_use(&f);
    use.pinned = (uint32_t)(fluid_random(&f) * 16) & 0x5; /* none, workers, prefetch, both */
    watch w = { .policy = name, .seed = seed, .most_bytes = f.memory_limit, .pinned = use.pinned, .use = use };
    memcpy(w.at, f.knob, sizeof w.at);
    dr__policy_choice choice = fluid_policy(name);
    dr__control control;
    assert_ok(dr__control_init(&control, &choice, &use, 1000, &err));
    fluid_run(&f, &control, 20, check_decision, &w);
    f.foreign = f.n_cpus; /* the world changes */
    fluid_run(&f, &control, 10, check_decision, &w);
    dr__control_free(&control);
}

static void table_walk(void (*run)(const char *name, uint64_t seed), int n)
{
    json_t *list = json_loads(dr_policies_json(), 0, NULL);
    for (size_t i = 0; i < json_array_size(list); i++)
        for (int seed = 0; seed < n; seed++)
            run(json_string_value(json_object_get(json_array_get(list, i), "name")), (uint64_t)seed);
    json_decref(list);
}

static void what_always_holds(void **state)
{
    (void)state;
    table_walk(run_one, 60);
}

/* --- rest --- */

static int changes_at_rest(uint64_t seed)
{
    fluid f = random_plant(seed);
    f.noise = 0.03;
    dr__terms_of_use use = fluid_use(&f);
    watch w = { .policy = "analytic", .seed = seed, .most_bytes = f.memory_limit, .use = use };
    dr__policy_choice choice = fluid_policy("analytic");
    dr__control control;
    assert_ok(dr__control_init(&control, &choice, &use, 1000, &err));
    fluid_run(&f, &control, 40, check_decision, &w);
    w.changes = 0;
    fluid_run(&f, &control, 60, check_decision, &w);
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
    assert_true(restless <= N / 50); /* consumer, workers and others on CPUs that are just enough */
}

/* --- cost --- */

static void no_allocation(const char *name, uint64_t seed)
{
    fluid f = random_plant(seed);
    dr__terms_of_use use = fluid_use(&f);
    dr__policy_choice choice = fluid_policy(name);
    dr__control control;
    assert_ok(dr__control_init(&control, &choice, &use, 1000, &err));
    dr__alloc_fail_at(1, true);
    fluid_run(&f, &control, 10, NULL, NULL);
    assert_int_equal(dr__alloc_fail_at(0, false), 0);
    dr__control_free(&control);
}

static void ticks_allocate_nothing(void **state)
{
    (void)state;
    table_walk(no_allocation, 3);
    dr__policy_choice choice = fluid_policy("analytic");
    dr__control control;
    dr__terms_of_use use = { 0 };
    dr__alloc_fail_at(1, false);
    dr_status status = dr__control_init(&control, &choice, &use, 1000, &err);
    dr__alloc_fail_at(0, false);
    assert_int_equal(status, DR_ERR_NOMEM);
    dr__control_free(&control);
}

/* --- parameters --- */

static dr_status choose(const char *name, const char *param, double value, dr__policy_choice *out)
{
    char text[DR_MAX_POLICY];
    snprintf(text, sizeof text, "%s:%s=%.17g", name, param, value);
    return dr__policy_choose(text, out, &err);
}

/* A policy works with the ends of every range; beyond them it is refused. */
static void check_param(const dr__policy_def *def, size_t i)
{
    const dr__policy_param *p = &def->params[i];
    const double ends[] = { p->least, p->most };
    dr__policy_choice choice;
    assert_true(p->least < p->most && p->standard >= p->least && p->standard <= p->most && *p->doc);
    assert_true(fluid_policy(def->name).param[i] == p->standard);
    for (int end = 0; end < 2; end++) {
        assert_ok(choose(def->name, p->name, ends[end], &choice));
        assert_true(choice.param[i] == ends[end]);
        fluid f = random_plant(7);
        dr__terms_of_use use = fluid_use(&f);
        watch w = { .policy = def->name, .most_bytes = f.memory_limit, .use = use };
        dr__control control;
        assert_ok(dr__control_init(&control, &choice, &use, 1000, &err));
        fluid_run(&f, &control, 20, check_decision, &w);
        dr__control_free(&control);
    }
    assert_fails(choose(def->name, p->name, nextafter(p->least, -INFINITY), &choice), DR_ERR_ARG, p->name);
    assert_fails(choose(def->name, p->name, nextafter(p->most, INFINITY), &choice), DR_ERR_ARG,
                 "must be a number from");
    assert_fails(choose(def->name, p->name, NAN, &choice), DR_ERR_ARG, "got 'nan'");
}

static void check_params(const char *name, uint64_t seed)
{
    const dr__policy_def *def = dr__policy_find(name);
    dr__policy_choice choice;
    (void)seed;
    assert_true(def->n_params <= DR__MAX_PARAMS);
    for (size_t i = 0; i < def->n_params; i++)
        check_param(def, i);
    assert_fails(choose(name, "nothing", 1, &choice), DR_ERR_ARG, "has no parameter 'nothing'");
}

static void parameters(void **state)
{
    (void)state;
    dr__policy_choice choice;
    table_walk(check_params, 1);
    assert_ok(dr__policy_choose("rules:low=0.1,hold_s=2", &choice, &err));
    assert_true(choice.param[0] == 0.1 && choice.param[1] == 0.8 && choice.param[2] == 2);
    assert_ok(dr_policy_check("rules:low=0.1,load=/no/such/file", &err));
    const char *bad[] = {
        "",         ":",           "rules:",      "rules:low", "rules:low=", "rules:low=0.1,", "rules:low=0.1x",
        "rules:=1", "fixed:low=1", "rules:load=", " rules"
    };
    for (size_t i = 0; i < DR_COUNT(bad); i++)
        assert_int_equal(dr_policy_check(bad[i], &err), DR_ERR_ARG);
    char longest[DR_MAX_POLICY + 1];
    memset(longest, 'x', sizeof longest);
    longest[DR_MAX_POLICY] = 0;
    assert_fails(dr_policy_check(longest, &err), DR_ERR_ARG, "shorter than 512 bytes");
}

/* --- saved states --- */

typedef struct history {
    double after[64][DR_N_KNOBS];
    char reason[64][DR_MAX_REASON];
    int n;
} history;

static void record(void *user, fluid *f, const dr_decision *d)
{
    history *h = user;
    (void)f;
    memcpy(h->after[h->n % 64], d->after, sizeof h->after[0]);
    memcpy(h->reason[h->n++ % 64], d->reason, sizeof h->reason[0]);
}

/* Two runs from the same point on, one with the policy's state as it is and one with what was saved and loaded at
 * another time, decide alike. */
static void save_and_load(const char *name, uint64_t seed)
{
    fluid f = random_plant(seed);
    dr__terms_of_use use = fluid_use(&f);
    dr__policy_choice choice = fluid_policy(name);
    const size_t size = dr__policy_saved_bytes(choice.def);
    uint8_t *saved = dr__alloc(size);
    dr__control control;
    history want = { .n = 0 }, got = { .n = 0 };
    assert_ok(dr__control_init(&control, &choice, &use, 1000, &err));
    fluid_run(&f, &control, 15, NULL, NULL);
    const uint64_t now_ns = control.window.last.time_ns;
    dr__policy_save(choice.def, control.state, now_ns, saved);
    dr__control copy = control;
    copy.state = dr__alloc_zero(1, DR_MAX(choice.def->state_bytes, 1));
    assert_ok(dr__policy_load(choice.def, copy.state, now_ns + 5000000000u, saved, size, &err));
    if (choice.def->shift_time) /* back to this plant's clock */
        choice.def->shift_time(copy.state, -5000000000);
    fluid g = f;
    fluid_run(&f, &control, 20, record, &want);
    fluid_run(&g, &copy, 20, record, &got);
    assert_int_equal(want.n, got.n);
    assert_memory_equal(want.after, got.after, sizeof want.after);
    assert_memory_equal(want.reason, got.reason, sizeof want.reason);
    dr__control_free(&control);
    dr__control_free(&copy);
    dr__free(saved);
}

/* Any damage, and a state of another policy, is refused and leaves the state as it was. */
static void refuse_damage(const char *name, uint64_t seed)
{
    const dr__policy_def *def = dr__policy_find(name);
    const size_t size = dr__policy_saved_bytes(def), bytes = DR_MAX(def->state_bytes, 1);
    uint8_t *saved = dr__alloc(size), *state = dr__alloc_zero(1, bytes), *before = dr__alloc_zero(1, bytes);
    (void)seed;
    dr__policy_save(def, state, 1, saved);
    memset(state, 3, bytes);
    memset(before, 3, bytes);
    for (size_t i = 0; i < size; i++) {
        saved[i] ^= 1;
        assert_int_equal(dr__policy_load(def, state, 1, saved, size, &err), DR_ERR_FORMAT);
        saved[i] ^= 1;
        assert_int_equal(dr__policy_load(def, state, 1, saved, i, &err), DR_ERR_FORMAT);
    }
    dr__policy_def newer = *def;
    newer.state_version++;
    char version[24];
    snprintf(version, sizeof version, "version 1.%u of", def->state_version);
    assert_fails(dr__policy_load(&newer, state, 1, saved, size, &err), DR_ERR_FORMAT, version);
    newer = *def;
    newer.name = "another";
    assert_fails(dr__policy_load(&newer, state, 1, saved, size, &err), DR_ERR_FORMAT, "expected 'another'");
    newer = *def;
    newer.state_bytes += 8;
    assert_int_equal(dr__policy_load(&newer, state, 1, saved, size, &err), DR_ERR_FORMAT);
    assert_memory_equal(state, before, bytes);
    assert_ok(dr__policy_load(def, state, 1, saved, size, &err));
    dr__free(saved);
    dr__free(state);
    dr__free(before);
}

static void saved_states(void **state)
{
    (void)state;
    table_walk(save_and_load, 10);
    table_walk(refuse_damage, 1);
}

static void state_files(void **state)
{
    (void)state;
    char path[64], text[DR_MAX_POLICY];
    double gaps[32] = { 1, 2, 3 }, loaded[32] = { 0 };
    snprintf(path, sizeof path, "/tmp/drapps-policy-%ld", (long)getpid());
    snprintf(text, sizeof text, "stages:load=%s", path);
    assert_string_equal(fluid_policy(text).load, path);
    assert_ok(dr__policy_save_file(&dr__policy_stages, gaps, 1, path, &err));
    assert_ok(dr__policy_load_file(&dr__policy_stages, loaded, 1, path, &err));
    assert_memory_equal(gaps, loaded, dr__policy_stages.state_bytes);
    assert_fails(dr__policy_load_file(&dr__policy_climb, loaded, 1, path, &err), DR_ERR_FORMAT, path);
    unlink(path);
    assert_int_equal(dr__policy_load_file(&dr__policy_stages, loaded, 1, path, &err), DR_ERR_NOT_FOUND);
    assert_int_equal(dr__policy_save_file(&dr__policy_stages, gaps, 1, "/no/such/folder/x", &err), DR_ERR_NOT_FOUND);
}

/* --- rewards --- */

static struct seen {
    double reward, term[DR_N_TERMS];
    int n;
} seen;

static void see(void *state, const double *param, const dr__observation *o, dr__proposal *proposal)
{
    (void)state;
    (void)param;
    proposal->knob[DR_KNOB_PREFETCH] += seen.n % 2 ? -1 : 1;
    seen.reward = o->reward;
    memcpy(seen.term, o->term, sizeof seen.term);
    seen.n++;
}

static void same_reward(void *user, fluid *f, const dr_decision *d)
{
    (void)user;
    (void)f;
    assert_true(seen.reward == d->reward && fabs(dr_decision_reward(d) - seen.reward) < 1e-9);
    assert_memory_equal(seen.term, d->term, sizeof d->term);
}

/* A policy sees what its last decision led to, as the decision's record has it. */
static void policies_see_the_reward(void **state)
{
    (void)state;
    static const dr__policy_def watching = { .name = "watching", .decide = see };
    dr__policy_choice choice = { .def = &watching };
    fluid f = fluid_ordinary(3);
    dr__terms_of_use use = fluid_use(&f);
    dr__control control;
    assert_ok(dr__control_init(&control, &choice, &use, 1000, &err));
    fluid_run(&f, &control, 10, same_reward, NULL);
    assert_true(seen.n >= 8 && seen.reward != 0 && seen.term[DR_TERM_THROUGHPUT] > 0);
    dr__control_free(&control);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_always_holds),
        cmocka_unit_test(nothing_changes_nothing),
        cmocka_unit_test(ticks_allocate_nothing),
        cmocka_unit_test(parameters),
        cmocka_unit_test(saved_states),
        cmocka_unit_test(state_files),
        cmocka_unit_test(policies_see_the_reward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
