/* Adam, norms, advantages, moments and teams of threads. */
#include "unit/cm.h"

#include <math.h>
#include <stdatomic.h>

#include "base/rng.h"
#include "rl/adam.h"
#include "rl/gae.h"
#include "rl/obs_norm.h"
#include "rl/team.h"

static dr_error err;

static void adam_follows_its_formula(void **state)
{
    (void)state;
    float params[3] = { 1, -2, 0.5f }, first[3] = { 0 }, second[3] = { 0 };
    double p[3] = { 1, -2, 0.5 }, m[3] = { 0 }, v[3] = { 0 };
    dr__rl_adam adam = { .n = 3, .first = first, .second = second };
    for (int t = 1; t <= 50; t++) {
        float grads[3];
        for (int i = 0; i < 3; i++) {
            grads[i] = (float)(sin(t + i) * (i + 1));
            m[i] = 0.9 * m[i] + 0.1 * grads[i];
            v[i] = 0.999 * v[i] + 0.001 * grads[i] * grads[i];
            p[i] -= 0.01 * (m[i] / (1 - pow(0.9, t))) / (sqrt(v[i] / (1 - pow(0.999, t))) + 1e-5);
        }
        dr__rl_adam_step(&adam, params, grads, 0.01);
    }
    for (int i = 0; i < 3; i++)
        assert_true(fabs(params[i] - p[i]) < 1e-5);
}

static void norms_are_clipped(void **state)
{
    (void)state;
    float grads[11] = { 0 };
    grads[0] = 3;
    grads[9] = 4;
    assert_true(fabs(dr__rl_clip_norm(grads, 11, 0) - 5) < 1e-9 && grads[9] == 4);
    assert_true(fabs(dr__rl_clip_norm(grads, 11, 6) - 5) < 1e-9 && grads[9] == 4);
    assert_true(fabs(dr__rl_clip_norm(grads, 11, 1) - 5) < 1e-9 && fabs(grads[9] - 0.8) < 1e-6);
    grads[3] = NAN;
    assert_true(isnan(dr__rl_clip_norm(grads, 11, 1)));
}

/* The sum over all later steps, as the paper defines it. */
static double by_definition(const dr__rl_gae_steps *s, int t, int e, double discount, double lambda)
{
    double sum = 0, weight = 1;
    for (; t < s->n_steps; t++, weight *= discount * lambda) {
        const int i = t * s->n_envs + e;
        sum += weight * (s->rewards[i] + discount * s->next_values[i] - s->values[i]);
        if (s->ended[i])
            break;
    }
    return sum;
}

static void advantages_are_sums_of_surprises(void **state)
{
    (void)state;
    enum { T = 20, E = 3 };
    float rewards[T * E], values[T * E], next[T * E], advantages[T * E], returns[T * E];
    uint8_t ended[T * E];
    dr_rng rng = dr__rng_open(&(dr__rng_name){ .seed = 3 }, 0);
    for (int i = 0; i < T * E; i++) {
        rewards[i] = (float)dr__rng_normal(&rng);
        values[i] = (float)dr__rng_normal(&rng);
        next[i] = (float)dr__rng_normal(&rng);
        ended[i] = dr__rng_below(&rng, 6) == 0;
    }
    const dr__rl_gae_steps steps = { T, E, rewards, values, next, ended };
    dr__rl_gae(&steps, 0.9, 0.8, advantages, returns);
    for (int t = 0; t < T; t++)
        for (int e = 0; e < E; e++) {
            assert_true(fabs(advantages[t * E + e] - by_definition(&steps, t, e, 0.9, 0.8)) < 1e-5);
            assert_true(fabs(returns[t * E + e] - advantages[t * E + e] - values[t * E + e]) < 1e-6);
        }
}

static void peers_share_what_happened_outside(void **state)
{
    (void)state;
    float advantages[2 * 4] = { 1, 2, 6, 5, 1, 2, 3, 4 }, room[4];
    const uint64_t places[2 * 4] = { 7, 7, 7, 7, 1, 1, 2, 2 };
    dr__rl_peer_baseline(1, 4, 3, places, advantages, room); /* environments 0 to 2; and 3 alone */
    const float first[4] = { 1 - 4, 2 - 3.5f, 6 - 1.5f, 5 };
    assert_memory_equal(advantages, first, sizeof first);
    dr__rl_peer_baseline(1, 4, 4, places + 4, advantages + 4, room); /* two and two are at the same step */
    const float second[4] = { -1, 1, -1, 1 };
    assert_memory_equal(advantages + 4, second, sizeof second);
}

static void moments_do_not_depend_on_the_parts(void **state)
{
    (void)state;
    double mean[3][2] = { 0 }, squares[3][2] = { 0 };
    dr__rl_moments all = { 2, 0, mean[0], squares[0] }, sum = { 2, 0, mean[1], squares[1] };
    dr__rl_moments part = { 2, 0, mean[2], squares[2] };
    float center[2], scale[2], row[2];
    dr_rng rng = dr__rng_open(&(dr__rng_name){ .seed = 3 }, 0);
    for (int i = 0; i < 1000; i++) {
        row[0] = 5 + 2 * (float)dr__rng_normal(&rng);
        row[1] = 1000;
        dr__rl_moments_add(&all, row);
        dr__rl_moments_add(&part, row);
        if (i % 37 == 0 || i == 999)
            dr__rl_moments_merge(&sum, &part);
    }
    assert_true(sum.count == 1000 && part.count == 0);
    assert_true(fabs(all.mean[0] - sum.mean[0]) < 1e-9 && fabs(all.squares[0] - sum.squares[0]) < 1e-6);
    dr__rl_moments_scale(&sum, center, scale);
    assert_true(fabs(center[0] - 5) < 0.3 && fabs(scale[0] - 0.5) < 0.03);
    row[0] = NAN;
    row[1] = 1e30f;
    dr__rl_normalise(center, scale, 2, row, row);
    assert_true(row[0] == 0 && row[1] == 10);
}

enum { PARTS = 100 };

static void count_part(void *owner, int part)
{
    atomic_int *counts = owner;
    atomic_fetch_add(&counts[part], 1);
}

static void teams_do_each_part_once(void **state)
{
    (void)state;
    static atomic_int counts[PARTS];
    dr__rl_team *team;
    assert_ok(dr__rl_team_new(4, &team, &err));
    for (int i = 0; i < 200; i++)
        dr__rl_team_run(team, count_part, counts, i % PARTS);
    for (int part = 0; part < PARTS; part++)
        assert_int_equal(counts[part], 2 * (PARTS - 1 - part));
    dr__rl_team_free(&team);
    assert_null(team);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adam_follows_its_formula),          cmocka_unit_test(norms_are_clipped),
        cmocka_unit_test(advantages_are_sums_of_surprises),  cmocka_unit_test(peers_share_what_happened_outside),
        cmocka_unit_test(moments_do_not_depend_on_the_parts), cmocka_unit_test(teams_do_each_part_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
