/* Perceptrons, networks over ops, and what they are made of. */
#include "rl/mlp.h"

#include "unit/cm.h"

#include <math.h>

#include "rl/dense.h"
#include "rl/op_net.h"
#include "rl/rl_math.h"
#include "unit/rl/slow_net.h"

enum { MOST = 20000, ROWS = 5 };

static float params[MOST], grads[MOST], acts[MOST], scratch[MOST], x[MOST], d_out[MOST], d_x[MOST];
static double exact[MOST], exact_x[MOST];
static dr_rng rng;

static int fresh(void **state)
{
    (void)state;
    rng = dr__rng_open(&(dr__rng_name){ .seed = 5 }, 0);
    memset(grads, 0, sizeof grads);
    return 0;
}

static void random_floats(float *to, size_t n, double scale)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (float)(scale * dr__rng_normal(&rng));
}

static void to_doubles(const float *from, size_t n, double *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = from[i];
}

static void exp_and_tanh_are_near_those_of_libm(void **state)
{
    (void)state;
    double of_exp = 0, of_tanh = 0;
    for (int i = -800000; i <= 800000; i++) {
        const float at = (float)i * 1e-4f;
        of_exp = fmax(of_exp, fabs(dr__rl_exp(at) / exp(at) - 1));
        of_tanh = fmax(of_tanh, fabs(dr__rl_tanh(at) - tanh(at)));
    }
    assert_true(of_exp < 3e-7 && of_tanh < 3e-7);
    assert_true(dr__rl_tanh(INFINITY) == 1 && dr__rl_tanh(-INFINITY) == -1 && isnan(dr__rl_tanh(NAN)));
    assert_true(dr__rl_exp(-1e30f) < 1e-37f && dr__rl_exp(1e30f) > 1e38f);
}

static void vectors_make_the_same_bits(void **state)
{
    (void)state;
    static float y[1003], z[1003];
    random_floats(x, 1003, 4);
    memcpy(y, x, sizeof y);
    memcpy(z, x, sizeof z);
    dr__rl_tanh_all(y, 1003);
    dr__rl_tanh_all_c(z, 1003);
    assert_memory_equal(y, z, sizeof y);
    for (int i = 0; i < 1003; i++)
        assert_true(y[i] == dr__rl_tanh(x[i]));
    for (int m = 1; m < 10; m++)
        for (int n = 1; n < 40; n += 3) {
            const int p = 7;
            static float c[400], other[400];
            random_floats(params, (size_t)(p * n), 1);
            random_floats(c, (size_t)(m * n), 1);
            memcpy(other, c, sizeof c);
            dr__rl_dense(x, 1, (size_t)m, params, c, m, n, p); /* the transposed A */
            dr__rl_dense_c(x, 1, (size_t)m, params, other, m, n, p);
            assert_memory_equal(c, other, (size_t)(m * n) * sizeof *c);
        }
}

static void products_are_sums_of_products(void **state)
{
    (void)state;
    for (int m = 1; m < 10; m++)
        for (int n = 1; n < 40; n += 3) {
            const int p = 11;
            static float c[400], before[400];
            random_floats(x, (size_t)(m * p), 1);
            random_floats(params, (size_t)(p * n), 1);
            random_floats(before, (size_t)(m * n), 1);
            memcpy(c, before, sizeof c);
            dr__rl_dense(x, (size_t)p, 1, params, c, m, n, p);
            for (int i = 0; i < m * n; i++) {
                double sum = before[i];
                for (int k = 0; k < p; k++)
                    sum += (double)x[i / n * p + k] * params[k * n + i % n];
                assert_true(fabs(sum - c[i]) < 1e-5);
            }
        }
}

static void weights_are_orthogonal(void **state)
{
    (void)state;
    const int hidden[] = { 24, 9 };
    const dr__rl_mlp mlp = dr__rl_mlp_shape(7, hidden, 2, 3, DR__RL_TANH);
    dr__rl_mlp_init(&mlp, params, 1.5, 0.25, &rng);
    const float *w = params;
    for (int l = 0; l < 3; l++) {
        const int in = mlp.sizes[l], out = mlp.sizes[l + 1], n = in < out ? in : out;
        const double gain = l < 2 ? 1.5 : 0.25;
        for (int a = 0; a < n; a++)
            for (int b = 0; b < n; b++) {
                double dot = 0;
                for (int i = 0; in < out && i < out; i++)
                    dot += (double)w[a * out + i] * w[b * out + i];
                for (int i = 0; in >= out && i < in; i++)
                    dot += (double)w[i * out + a] * w[i * out + b];
                assert_true(fabs(dot - (a == b ? gain * gain : 0)) < 1e-5);
            }
        for (int o = 0; o < out; o++)
            assert_true(w[in * out + o] == 0);
        w += (in + 1) * out;
    }
    assert_true((size_t)(w - params) == mlp.n_params);
}

/* What gradients are taken of: half the squares of the outputs of some rows, by slow_net.c. */
typedef struct loss {
    const dr__rl_mlp *mlp;
    const dr__rl_net *net;
    const uint8_t *present;
} loss;

static double half_squares(void *owner)
{
    const loss *l = owner;
    double sum = 0, out[SLOW_WIDEST];
    for (int r = 0; r < ROWS; r++) {
        const int n = l->mlp ? l->mlp->sizes[l->mlp->n_layers] : l->net->n_all_out;
        if (l->mlp)
            slow_mlp(l->mlp, exact, exact_x + r * l->mlp->sizes[0], out);
        else
            slow_net(l->net, exact, exact_x + r * l->net->n_obs, l->present + r * l->net->n_ops, out);
        for (int o = 0; o < n; o++)
            sum += 0.5 * out[o] * out[o];
    }
    return sum;
}

static void check_gradient(const dr__rl_mlp *mlp)
{
    loss l = { .mlp = mlp };
    const size_t n_x = (size_t)(ROWS * mlp->sizes[0]), n_out = (size_t)(ROWS * mlp->sizes[mlp->n_layers]);
    assert_true(dr__rl_mlp_acts(mlp, ROWS) <= MOST && dr__rl_mlp_scratch(mlp, ROWS) <= MOST && mlp->n_params <= MOST);
    memset(grads, 0, sizeof grads);
    random_floats(params, mlp->n_params, 0.4);
    random_floats(x, n_x, 1);
    to_doubles(params, mlp->n_params, exact);
    to_doubles(x, n_x, exact_x);
    const float *out = dr__rl_mlp_forward(mlp, params, x, ROWS, acts);
    memcpy(d_out, out, n_out * sizeof *d_out);
    dr__rl_mlp_backward(mlp, params, x, ROWS, acts, d_out, grads, d_x, scratch);
    assert_int_equal(slow_differences(half_squares, &l, exact, mlp->n_params, grads), 0);
    assert_int_equal(slow_differences(half_squares, &l, exact_x, n_x, d_x), 0);
}

static void gradients_are_exact(void **state)
{
    (void)state;
    const int hidden[] = { 13, 6, 8 };
    for (int n_hidden = 0; n_hidden < 4; n_hidden++)
        for (int active = 0; active < 2; active++)
            for (int activation = DR__RL_TANH; activation <= DR__RL_RELU; activation++) {
                dr__rl_mlp mlp = dr__rl_mlp_shape(5, hidden, n_hidden, 3, (dr__rl_activation)activation);
                mlp.active_output = active;
                check_gradient(&mlp);
            }
}

static void rows_do_not_depend_on_each_other(void **state)
{
    (void)state;
    static float alone[64], one_acts[MOST];
    const int hidden[] = { 19 };
    const dr__rl_mlp mlp = dr__rl_mlp_shape(6, hidden, 1, 7, DR__RL_TANH);
    random_floats(params, mlp.n_params, 1);
    random_floats(x, 6 * 9, 1);
    const float *out = dr__rl_mlp_forward(&mlp, params, x, 9, acts);
    for (int r = 0; r < 9; r++) {
        memcpy(alone, dr__rl_mlp_forward(&mlp, params, x + r * 6, 1, one_acts), 7 * sizeof *alone);
        assert_memory_equal(alone, out + r * 7, 7 * sizeof *alone);
    }
}

static void check_net(int n_global, int n_ops, int n_out, int n_op_out)
{
    const int hidden[] = { 12, 10 };
    const dr__rl_net net = dr__rl_net_shape(n_global, n_ops, 3, n_out, n_op_out, hidden, 2, DR__RL_TANH);
    uint8_t present[ROWS * 4] = { 0 };
    dr__rl_arena arena = { 0 };
    dr__rl_tape tape = { 0 };
    double slow[SLOW_WIDEST];
    loss l = { .net = &net, .present = present };
    for (int i = 0; i < ROWS * n_ops; i++)
        present[i] = i / n_ops != 3 && i % 3 != 0; /* none in row 3 */
    dr__rl_tape_lay_out(&net, ROWS, &arena, &tape);
    arena = (dr__rl_arena){ .block = dr__alloc_aligned(arena.n) };
    dr__rl_tape_lay_out(&net, ROWS, &arena, &tape);
    memset(grads, 0, sizeof grads);
    random_floats(params, net.n_params, 0.4);
    random_floats(x, (size_t)(ROWS * net.n_obs), 1);
    to_doubles(params, net.n_params, exact);
    to_doubles(x, (size_t)(ROWS * net.n_obs), exact_x);
    const float *out = dr__rl_net_forward(&net, params, x, present, ROWS, &tape);
    for (int r = 0; r < ROWS; r++) {
        slow_net(&net, exact, exact_x + r * net.n_obs, present + r * n_ops, slow);
        for (int o = 0; o < net.n_all_out; o++) {
            const bool used = o < n_out || present[r * n_ops + (o - n_out) / n_op_out];
            assert_true(!used || fabs(slow[o] - out[r * net.n_all_out + o]) < 1e-5);
            d_out[r * net.n_all_out + o] = used ? out[r * net.n_all_out + o] : 0;
        }
    }
    dr__rl_net_backward(&net, params, x, present, ROWS, &tape, d_out, grads);
    assert_int_equal(slow_differences(half_squares, &l, exact, net.n_params, grads), 0);
    dr__free_aligned(arena.block);
}

static void networks_over_ops_are_exact(void **state)
{
    (void)state;
    check_net(4, 0, 3, 0);
    check_net(4, 4, 3, 2);
    check_net(4, 4, 1, 0); /* as a critic */
    check_net(4, 4, 0, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(exp_and_tanh_are_near_those_of_libm, fresh),
        cmocka_unit_test_setup(vectors_make_the_same_bits, fresh),
        cmocka_unit_test_setup(products_are_sums_of_products, fresh),
        cmocka_unit_test_setup(weights_are_orthogonal, fresh),
        cmocka_unit_test_setup(gradients_are_exact, fresh),
        cmocka_unit_test_setup(rows_do_not_depend_on_each_other, fresh),
        cmocka_unit_test_setup(networks_over_ops_are_exact, fresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
