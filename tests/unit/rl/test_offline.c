/* Policies out of recorded steps, and what they would earn. */
#include "rl/fqe.h"
#include "rl/iql.h"

#include "unit/cm.h"

#include <math.h>

#include "base/alloc.h"
#include "rl/rollout.h"
#include "unit/rl/toy_envs.h"

static dr_error err;

/* Recorded steps of a policy, their first states, and the mean discounted return. */
typedef struct record {
    dr__rl_data data;
    float *obs, *next_obs, *actions, *rewards, *starts;
    uint8_t *masks, *next_masks, *terminated, *start_masks;
    int n_starts;
    double discounted;
} record;

static void *room(size_t n, size_t size)
{
    void *p = calloc(n, size);
    assert_non_null(p);
    return p;
}

/* n steps of the policy, which draws its actions. */
static record recorded(const dr__rl_env_def *def, dr__rl_policy *p, int n, double discount)
{
    const dr__rl_heads *h = &p->heads;
    const size_t rows = (size_t)n, n_obs = (size_t)h->n_obs, n_mask = (size_t)h->n_mask, n_action = (size_t)h->n_action;
    record r = { .obs = room(rows * n_obs, 4),
                 .next_obs = room(rows * n_obs, 4),
                 .actions = room(rows * n_action, 4),
                 .rewards = room(rows, 4),
                 .starts = room(rows * n_obs, 4),
                 .masks = room(rows * n_mask + 1, 1),
                 .next_masks = room(rows * n_mask + 1, 1),
                 .terminated = room(rows, 1),
                 .start_masks = room(rows * n_mask + 1, 1) };
    void *env;
    float obs[DR__RL_OBS];
    uint8_t mask[DR__RL_MASK];
    double weight = 1;
    dr_rng rng = dr__rng_open(&(dr__rng_name){ .seed = 8 }, 0);
    assert_ok(def->open(NULL, &env, &err));
    bool ended = true;
    for (size_t i = 0; i < rows; i++) {
        dr__rl_outcome o = { 0 };
        if (ended) {
            def->reset(env, i, obs, mask);
            memcpy(r.starts + (size_t)r.n_starts * n_obs, obs, n_obs * 4);
            memcpy(r.start_masks + (size_t)r.n_starts++ * n_mask, mask, n_mask);
            weight = 1;
        }
        memcpy(r.obs + i * n_obs, obs, n_obs * 4);
        memcpy(r.masks + i * n_mask, mask, n_mask);
        dr__rl_policy_act(p, obs, mask, &rng, r.actions + i * n_action);
        def->step(env, r.actions + i * n_action, obs, mask, &o);
        memcpy(r.next_obs + i * n_obs, obs, n_obs * 4);
        memcpy(r.next_masks + i * n_mask, mask, n_mask);
        r.rewards[i] = o.reward;
        r.terminated[i] = o.terminated;
        r.discounted += weight * o.reward;
        weight *= discount;
        ended = o.terminated || o.truncated;
    }
    def->close(env);
    r.discounted /= r.n_starts;
    r.data = (dr__rl_data){ n, r.obs, r.next_obs, r.actions, r.rewards, r.masks, r.next_masks, r.terminated };
    return r;
}

static void forget(record *r)
{
    free(r->obs);
    free(r->next_obs);
    free(r->actions);
    free(r->rewards);
    free(r->starts);
    free(r->masks);
    free(r->next_masks);
    free(r->terminated);
    free(r->start_masks);
}

/* All its choices are equally likely. */
static dr__rl_policy *careless(const dr__rl_spec *spec)
{
    dr__rl_policy *p;
    const dr__rl_shape shape = { .hidden = { 32 }, .n_hidden = 1 };
    assert_ok(dr__rl_policy_new(spec, &shape, &p, &err));
    return p;
}

static double mean_of(const dr__rl_env_def *def, dr__rl_policy *p)
{
    double mean;
    assert_ok(dr__rl_evaluate(def, NULL, p, 200, 1000000, false, NULL, &mean, &err));
    return mean;
}

/* What is learnt of random actions. */
static double learnt(const dr__rl_env_def *def, dr__rl_iql_settings *s, int n, int updates)
{
    dr__rl_policy *p = careless(def->spec);
    record r = recorded(def, p, n, 0.98);
    dr__rl_iql *iql;
    dr__rl_iql_progress progress;
    s->sharpness = 10;
    s->expectile = 0.8;
    assert_ok(dr__rl_iql_new(def->spec, &r.data, s, NULL, &iql, &err));
    dr__rl_iql_run(iql, updates, &progress);
    const double mean = mean_of(def, dr__rl_iql_policy(iql));
    print_message("%s: %.2f out of steps whose mean return was %.2f\n", def->name, mean, mean_of(def, p));
    dr__rl_iql_free(&iql);
    forget(&r);
    dr__rl_policy_free(&p);
    return mean;
}

static void good_policies_come_of_random_steps(void **state)
{
    (void)state;
    dr__rl_iql_settings s = dr__rl_iql_defaults();
    assert_true(learnt(toy_locks(), &s, 5000, 4000) > 7);
    assert_true(learnt(toy_ops(), &s, 5000, 2000) > -0.4);
    assert_true(learnt(toy_joint(), &s, 5000, 4000) > 3.2);
    s.normalise = true;
    s.cql_weight = 0.5;
    assert_true(learnt(toy_locks(), &s, 5000, 4000) > 7);
}

/* With a strong pull, the policy stays what it was; with none, it does not. */
static void the_pull_holds(void **state)
{
    (void)state;
    dr__rl_policy *p = careless(toy_locks()->spec);
    dr__rl_policy_init(p, 1);
    record r = recorded(toy_locks(), p, 2000, 0.98);
    double apart[2];
    for (int i = 0; i < 2; i++) {
        dr__rl_iql *iql;
        dr__rl_iql_progress progress;
        dr__rl_iql_settings s = dr__rl_iql_defaults();
        s.pull = i ? 100 : 0;
        assert_ok(dr__rl_iql_new(toy_locks()->spec, &r.data, &s, p, &iql, &err));
        dr__rl_iql_run(iql, 1000, &progress);
        dr__rl_iql_run(iql, 100, &progress);
        apart[i] = progress.pulled;
        dr__rl_iql_free(&iql);
    }
    assert_true(apart[0] > 0.1 && apart[1] < 0.02);
    forget(&r);
    dr__rl_policy_free(&p);
}

static void a_seed_gives_the_same_policy(void **state)
{
    (void)state;
    dr__rl_policy *p = careless(toy_joint()->spec);
    record r = recorded(toy_joint(), p, 500, 0.98);
    dr__rl_iql *iql[3];
    dr__rl_iql_progress progress;
    for (int i = 0; i < 3; i++) {
        dr__rl_iql_settings s = dr__rl_iql_defaults();
        s.cql_weight = i == 2;
        assert_ok(dr__rl_iql_new(toy_joint()->spec, &r.data, &s, NULL, &iql[i], &err));
        dr__rl_iql_run(iql[i], 50, &progress);
    }
    const dr__rl_policy *first = dr__rl_iql_policy(iql[0]);
    assert_memory_equal(first->params, dr__rl_iql_policy(iql[1])->params, first->n_params * sizeof *first->params);
    assert_memory_not_equal(first->params, dr__rl_iql_policy(iql[2])->params, first->n_params * sizeof *first->params);
    for (int i = 0; i < 3; i++)
        dr__rl_iql_free(&iql[i]);
    forget(&r);
    dr__rl_policy_free(&p);
}

static double estimate(dr__rl_policy *p, const record *r)
{
    double value;
    dr__rl_fqe_settings s = dr__rl_fqe_defaults();
    s.updates = 4000;
    assert_ok(dr__rl_fqe(p, &r->data, &s, r->starts, r->start_masks, r->n_starts, &value, &err));
    return value;
}

/* Estimates from random steps, against what was earned. */
static void estimates_are_near_what_is_earned(void **state)
{
    (void)state;
    dr__rl_policy *random = careless(toy_locks()->spec);
    record r = recorded(toy_locks(), random, 5000, 0.98);
    dr__rl_iql *iql;
    dr__rl_iql_progress progress;
    dr__rl_iql_settings s = dr__rl_iql_defaults();
    s.sharpness = 10;
    assert_ok(dr__rl_iql_new(toy_locks()->spec, &r.data, &s, NULL, &iql, &err));
    dr__rl_iql_run(iql, 3000, &progress);
    dr__rl_policy *good = dr__rl_iql_policy(iql);
    record of_good = recorded(toy_locks(), good, 4000, 0.98);
    const double bad_value = estimate(random, &r), good_value = estimate(good, &r);
    print_message("random: %.2f estimated, %.2f earned; trained: %.2f and %.2f\n", bad_value, r.discounted, good_value,
                  of_good.discounted);
    assert_true(fabs(bad_value - r.discounted) < 0.5);
    assert_true(fabs(good_value - of_good.discounted) < 1);
    assert_true(good_value > bad_value + 1);
    dr__rl_iql_free(&iql);
    forget(&r);
    forget(&of_good);
    dr__rl_policy_free(&random);
}

static void rows_are_checked(void **state)
{
    (void)state;
    dr__rl_policy *p = careless(toy_locks()->spec);
    record r = recorded(toy_locks(), p, 100, 0.98);
    dr__rl_iql *iql;
    dr__rl_iql_settings s = dr__rl_iql_defaults();
    r.actions[7 * 3] = 3;
    assert_fails(dr__rl_iql_new(toy_locks()->spec, &r.data, &s, NULL, &iql, &err), DR_ERR_ARG,
                 "recorded step 7 has an action that is not allowed");
    r.actions[7 * 3] = 0;
    r.masks[7 * 9] = 0;
    assert_fails(dr__rl_iql_new(toy_locks()->spec, &r.data, &s, NULL, &iql, &err), DR_ERR_ARG, "recorded step 7");
    r.obs[0] = NAN;
    assert_fails(dr__rl_iql_new(toy_locks()->spec, &r.data, &s, NULL, &iql, &err), DR_ERR_ARG,
                 "recorded step 0 has a number that is not finite");
    s.expectile = 2;
    assert_fails(dr__rl_iql_new(toy_locks()->spec, &r.data, &s, NULL, &iql, &err), DR_ERR_ARG,
                 "expectile must be between 0 and 1, got 2");
    assert_fails(dr__rl_iql_new(toy_ops()->spec, &r.data, &(dr__rl_iql_settings){ .batch = 1 }, p, &iql, &err),
                 DR_ERR_FORMAT, "schema 'ops'");
    forget(&r);
    dr__rl_policy_free(&p);
}

static void short_memory_is_survived(void **state)
{
    (void)state;
    dr__rl_policy *p = careless(toy_ops()->spec);
    record r = recorded(toy_ops(), p, 50, 0.98);
    dr__rl_iql *iql;
    dr__rl_fqe_settings fqe = dr__rl_fqe_defaults();
    const dr__rl_iql_settings s = dr__rl_iql_defaults();
    double value;
    fqe.updates = 1;
    for (long n = 1; n < 10; n++) {
        dr__alloc_fail_at(n, false);
        dr_status status = dr__rl_iql_new(toy_ops()->spec, &r.data, &s, p, &iql, &err);
        assert_int_equal(status, dr__alloc_fail_at(0, false) < n ? DR_OK : DR_ERR_NOMEM);
        dr__rl_iql_free(&iql);
        dr__alloc_fail_at(n, false);
        status = dr__rl_fqe(p, &r.data, &fqe, r.starts, r.start_masks, r.n_starts, &value, &err);
        assert_int_equal(status, dr__alloc_fail_at(0, false) < n ? DR_OK : DR_ERR_NOMEM);
    }
    forget(&r);
    dr__rl_policy_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_policies_come_of_random_steps),
        cmocka_unit_test(the_pull_holds),
        cmocka_unit_test(a_seed_gives_the_same_policy),
        cmocka_unit_test(estimates_are_near_what_is_earned),
        cmocka_unit_test(rows_are_checked),
        cmocka_unit_test(short_memory_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
