/* Distributions of actions: what they sum up to, what is drawn, and their gradients. */
#include "rl/head.h"

#include "unit/cm.h"

#include <math.h>

#include "unit/rl/slow_net.h"

static dr_error err;

/* Two choices, two continuous actions, and three ops with two choices each. */
static const dr__rl_spec SPEC = { .name = "all",
                                  .version = 1,
                                  .n_inputs = 1,
                                  .n_choices = 2,
                                  .n_continuous = 2,
                                  .n_ops = 3,
                                  .n_op_inputs = 1,
                                  .n_op_choices = 2,
                                  .inputs = { "x" },
                                  .choices = { { "a", 3 }, { "b", 2 } },
                                  .continuous = { "u", "v" },
                                  .op_inputs = { "y" },
                                  .op_choices = { { "place", 3 }, { "priority", 2 } } };

/* A choice and a continuous action. */
static const dr__rl_spec SMALL = { .name = "small",
                                   .version = 1,
                                   .n_inputs = 1,
                                   .n_choices = 1,
                                   .n_continuous = 1,
                                   .inputs = { "x" },
                                   .choices = { { "a", 3 } },
                                   .continuous = { "u" } };

static dr__rl_heads heads;
static float out[DR__RL_OUTPUTS], action[DR__RL_ACTION];
static uint8_t mask[DR__RL_MASK];
static dr_rng rng;

static void prepare(const dr__rl_spec *spec)
{
    assert_ok(dr__rl_spec_check(spec, &err));
    dr__rl_heads_of(spec, &heads);
    rng = dr__rng_open(&(dr__rng_name){ .seed = 11 }, 0);
    for (int i = 0; i < heads.n_out; i++)
        out[i] = (float)dr__rng_normal(&rng);
    memset(mask, 1, sizeof mask);
}

static void rows_have_room_for_all(void **state)
{
    (void)state;
    prepare(&SPEC);
    assert_int_equal(heads.n_categoricals, 2 + 3 * 2);
    assert_int_equal(heads.n_mask, 5 + 3 * 5);
    assert_int_equal(heads.n_out, 5 + 4 + 3 * 5);
    assert_int_equal(heads.n_action, 8 + 2);
    assert_int_equal(heads.cat[2].out, 9); /* the ops' come behind the Gaussians' */
    assert_int_equal(heads.cat[2].mask, 5);
    const dr__rl_net net = dr__rl_actor_shape(&SPEC, (const int[]){ 8 }, 1, DR__RL_TANH);
    assert_int_equal(net.n_all_out, heads.n_out);
    assert_int_equal(net.n_obs, heads.n_obs);
}

/* The integral of the density over (from, to) of the squashed action, by the midpoint rule in it, not in u. */
static double integral(int option, double from, double to)
{
    const int n = 200000;
    double sum = 0;
    action[0] = (float)option;
    for (int i = 0; i < n; i++) {
        const double a = from + (to - from) * (i + 0.5) / n;
        action[1] = (float)(0.5 * log((1 + a) / (1 - a)));
        sum += exp(dr__rl_head_odds(&heads, out, mask, action).logp) * (to - from) / n;
    }
    return sum;
}

static double gauss_below(double u)
{
    return 0.5 * erfc(-(u - out[heads.mean_at]) / exp(out[heads.std_at]) / sqrt(2));
}

static void joint_density_integrates_to_its_probability(void **state)
{
    (void)state;
    prepare(&SMALL);
    out[heads.mean_at] = 0.3f;
    out[heads.std_at] = -0.7f;
    mask[1] = 0;
    double all = 0;
    const double odds = exp(out[0]) / (exp(out[0]) + exp(out[2]));
    for (int option = 0; option < 3; option += 2)
        all += integral(option, -1, 1);
    assert_true(fabs(all - 1) < 1e-4);
    const double part = odds * (gauss_below(atanh(0.6)) - gauss_below(atanh(-0.2)));
    assert_true(fabs(integral(0, -0.2, 0.6) - part) < 1e-5);
}

static void what_is_drawn_has_its_probability(void **state)
{
    (void)state;
    enum { N = 200000 };
    prepare(&SMALL);
    mask[1] = 0;
    int first = 0, both = 0;
    for (int i = 0; i < N; i++) {
        const double logp = dr__rl_head_draw(&heads, out, mask, &rng, action);
        assert_true(action[0] != 1 && fabs(logp - dr__rl_head_odds(&heads, out, mask, action).logp) < 1e-9);
        first += action[0] == 0;
        both += action[0] == 0 && action[1] < 0;
    }
    const double p = exp(out[0]) / (exp(out[0]) + exp(out[2])), q = p * gauss_below(0);
    assert_true(fabs((double)first / N - p) < 5 * sqrt(p * (1 - p) / N));
    assert_true(fabs((double)both / N - q) < 5 * sqrt(q * (1 - q) / N));
}

static void what_is_masked_is_never_taken(void **state)
{
    (void)state;
    prepare(&SPEC);
    out[0] = 50; /* the likeliest option is forbidden */
    mask[0] = 0;
    memset(mask + heads.op_mask_at + heads.op_mask, 0, (size_t)heads.op_mask); /* op 1 is absent */
    uint8_t present[3];
    dr__rl_present(&heads, mask, 1, present);
    assert_true(present[0] && !present[1] && present[2]);
    for (int i = 0; i < 1000; i++) {
        dr__rl_head_draw(&heads, out, mask, &rng, action);
        assert_true(action[0] != 0 && action[4] == 0 && action[5] == 0);
    }
    dr__rl_head_best(&heads, out, mask, action);
    assert_true(action[0] == (out[1] > out[2] ? 1 : 2));
    const double logp = dr__rl_head_odds(&heads, out, mask, action).logp;
    out[heads.cat[4].out] += 3; /* outputs of an absent op count for nothing */
    assert_true(dr__rl_head_odds(&heads, out, mask, action).logp == logp);
}

typedef struct at {
    double outputs[DR__RL_OUTPUTS], by_logp, by_entropy;
} at;

/* The formulas as they stand in textbooks. */
static double textbook(void *owner)
{
    const at *a = owner;
    double logp = 0, entropy = 0;
    for (int k = 0; k < heads.n_categoricals; k++) {
        double sum = 0;
        const double *logits = a->outputs + heads.cat[k].out;
        const uint8_t *allowed = mask + heads.cat[k].mask;
        for (int i = 0; i < heads.cat[k].n; i++)
            sum += allowed[i] ? exp(logits[i]) : 0;
        if (sum == 0)
            continue;
        logp += log(exp(logits[(int)action[k]]) / sum);
        for (int i = 0; i < heads.cat[k].n; i++)
            entropy -= allowed[i] ? exp(logits[i]) / sum * log(exp(logits[i]) / sum) : 0;
    }
    for (int i = 0; i < heads.n_continuous; i++) {
        const double sd = exp(a->outputs[heads.std_at + i]), u = action[heads.action_at + i];
        const double z = (u - a->outputs[heads.mean_at + i]) / sd;
        logp += log(exp(-0.5 * z * z) / (sd * sqrt(2 * M_PI)) / (1 - tanh(u) * tanh(u)));
        entropy += 0.5 * log(2 * M_PI * M_E * sd * sd);
    }
    return a->by_logp * logp + a->by_entropy * entropy;
}

static void gradients_are_exact(void **state)
{
    (void)state;
    static at a;
    float grads[DR__RL_OUTPUTS];
    prepare(&SPEC);
    mask[1] = mask[heads.cat[3].mask] = 0;
    memset(mask + heads.op_mask_at + heads.op_mask, 0, (size_t)heads.op_mask);
    dr__rl_head_draw(&heads, out, mask, &rng, action);
    for (int i = 0; i < heads.n_out; i++)
        a.outputs[i] = out[i];
    for (int kind = 0; kind < 3; kind++) {
        a.by_logp = kind < 2 ? 1.5 : 0;
        a.by_entropy = kind > 0 ? -0.7 : 0;
        dr__rl_head_grad(&heads, out, mask, action, a.by_logp, a.by_entropy, grads);
        assert_int_equal(slow_differences(textbook, &a, a.outputs, (size_t)heads.n_out, grads), 0);
        const dr__rl_odds odds = dr__rl_head_odds(&heads, out, mask, action);
        assert_true(fabs(a.by_logp * odds.logp + a.by_entropy * odds.entropy - textbook(&a)) < 1e-5);
    }
}

typedef struct pulled {
    double outputs[DR__RL_OUTPUTS];
    float from[DR__RL_OUTPUTS];
} pulled;

static double divergence(void *owner)
{
    const pulled *p = owner;
    double sum = 0;
    for (int k = 0; k < heads.n_categoricals; k++) {
        double one = 0, zero = 0;
        const int at = heads.cat[k].out;
        const uint8_t *allowed = mask + heads.cat[k].mask;
        for (int i = 0; i < heads.cat[k].n; i++) {
            one += allowed[i] ? exp(p->outputs[at + i]) : 0;
            zero += allowed[i] ? exp(p->from[at + i]) : 0;
        }
        for (int i = 0; i < heads.cat[k].n; i++)
            if (allowed[i])
                sum += exp(p->from[at + i]) / zero *
                       log(exp(p->from[at + i]) / zero / (exp(p->outputs[at + i]) / one));
    }
    for (int i = 0; i < heads.n_continuous; i++) { /* by the midpoint rule */
        const double s1 = exp(p->outputs[heads.std_at + i]), m1 = p->outputs[heads.mean_at + i];
        const double s0 = exp(p->from[heads.std_at + i]), m0 = p->from[heads.mean_at + i], step = 1e-3;
        for (double z = -8 + step / 2; z < 8; z += step) {
            const double u = m0 + s0 * z, p0 = exp(-0.5 * z * z) / sqrt(2 * M_PI);
            const double z1 = (u - m1) / s1;
            sum += step * p0 * (-0.5 * z * z - log(s0) + 0.5 * z1 * z1 + log(s1));
        }
    }
    return sum;
}

static void policies_are_pulled_to_others(void **state)
{
    (void)state;
    static pulled p;
    float grads[DR__RL_OUTPUTS] = { 0 };
    prepare(&SPEC);
    mask[1] = mask[heads.cat[3].mask] = 0;
    memset(mask + heads.op_mask_at + heads.op_mask, 0, (size_t)heads.op_mask);
    for (int i = 0; i < heads.n_out; i++) {
        p.outputs[i] = out[i];
        p.from[i] = (float)dr__rng_normal(&rng);
    }
    const double apart = dr__rl_head_pull(&heads, out, mask, p.from, 1, grads);
    assert_true(apart > 0.1 && fabs(apart - divergence(&p)) < 1e-4);
    assert_int_equal(slow_differences(divergence, &p, p.outputs, (size_t)heads.n_out, grads), 0);
    memset(grads, 0, sizeof grads);
    assert_true(fabs(dr__rl_head_pull(&heads, out, mask, out, 1, grads)) < 1e-6 && fabs(grads[0]) < 1e-6);
}

static void squashing_goes_back(void **state)
{
    (void)state;
    float squashed[DR__RL_ACTION], back[DR__RL_ACTION];
    prepare(&SPEC);
    dr__rl_head_draw(&heads, out, mask, &rng, action);
    dr__rl_squash(&heads, action, squashed);
    dr__rl_unsquash(&heads, squashed, back);
    for (int i = 0; i < heads.n_action; i++)
        assert_true(fabs(back[i] - action[i]) < 1e-4);
    assert_true(fabs(dr__rl_log_slope(0.5) - log(1 - tanh(0.5) * tanh(0.5))) < 1e-12);
    assert_true(fabs(dr__rl_log_slope(-40) - (2 * log(2) - 80)) < 1e-9);
}

static void schemas_are_checked(void **state)
{
    (void)state;
    dr__rl_spec s = SPEC;
    s.n_choices = 17;
    assert_fails(dr__rl_spec_check(&s, &err), DR_ERR_ARG, "number of choices must be between 0 and 16, got 17");
    s = SPEC;
    s.choices[1].n = 1;
    assert_fails(dr__rl_spec_check(&s, &err), DR_ERR_ARG, "choice 'b' must have between 2 and 32 options, got 1");
    s = SPEC;
    strcpy(s.inputs[0], "two words");
    assert_fails(dr__rl_spec_check(&s, &err), DR_ERR_ARG, "input 0 must have a name");
    s = SPEC;
    s.n_ops = 0;
    assert_fails(dr__rl_spec_check(&s, &err), DR_ERR_ARG, "inputs of an op must be between 0 and 0, got 1");
    s = SMALL;
    s.n_choices = s.n_continuous = 0;
    assert_fails(dr__rl_spec_check(&s, &err), DR_ERR_ARG, "'small' must have an action");
    s = SPEC;
    strcpy(s.op_choices[1].name, "rank");
    assert_fails(dr__rl_spec_same(&s, &SPEC, "p.rl", &err), DR_ERR_FORMAT,
                 "p.rl: choice of an op 1 must be 'priority', got 'rank'");
    assert_fails(dr__rl_spec_same(&SMALL, &SPEC, "p.rl", &err), DR_ERR_FORMAT, "schema 'all' version 1, got 'small'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_have_room_for_all),
        cmocka_unit_test(joint_density_integrates_to_its_probability),
        cmocka_unit_test(what_is_drawn_has_its_probability),
        cmocka_unit_test(what_is_masked_is_never_taken),
        cmocka_unit_test(gradients_are_exact),
        cmocka_unit_test(policies_are_pulled_to_others),
        cmocka_unit_test(squashing_goes_back),
        cmocka_unit_test(schemas_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
