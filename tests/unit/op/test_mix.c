/* test_mix: mixup and cutmix on whole batches. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "op_harness.h"

enum { N = 4, H = 3, W = 5, CLASSES = 6, PIXELS = H * W };

struct batch {
    struct op_run r;
    dr_desc in[2], out[2];
    float image[N][PIXELS];
    float weight[N][CLASSES];
    int64_t label[N];
    float scratch[PIXELS + CLASSES];
};

static dr_status open_batch(struct batch *b, const char *op, const char *params)
{
    size_t scratch;
    memset(b, 0, sizeof *b);
    b->in[0] = dr__desc_image(DR_F32, H, W, 1);
    b->in[1] = dr__desc_scalar(DR_I64);
    for (int i = 0; i < N; i++) {
        b->label[i] = i;
        for (int j = 0; j < PIXELS; j++)
            b->image[i][j] = (float)(i * 100 + j);
    }
    DR_TRY(harness_open(&b->r, op, params));
    DR_TRY(b->r.op.def->batch->plan(b->r.op.conf, b->in, b->out, &scratch, &b->r.err));
    assert_true(scratch <= sizeof b->scratch);
    b->r.par = dr__alloc_zero(1, b->r.op.def->par_size);
    return DR_OK;
}

static dr_status draw_batch(struct batch *b, uint64_t seed)
{
    dr_rng rng = dr__rng_open(&(dr__rng_name){ .seed = seed }, 3);
    return b->r.op.def->batch->draw(b->r.op.conf, &rng, b->in, N, b->r.par, &b->r.err);
}

static dr_view whole(const dr_desc *sample, int64_t n, void *data)
{
    dr_desc d = *sample;
    memmove(d.dims + 1, d.dims, sizeof d.dims[0] * (size_t)d.n_dims);
    d.dims[0] = n;
    d.n_dims++;
    return (dr_view){ .data = data, .desc = d };
}

static dr_status run_batch(struct batch *b, int64_t n)
{
    dr_task task = { .conf = b->r.op.conf, .scratch = (uint8_t *)b->scratch, .err = &b->r.err };
    dr_view in[2] = { whole(&b->in[0], n, b->image), whole(&b->in[1], n, b->label) };
    dr_view out[2] = { whole(&b->out[0], n, b->image), whole(&b->out[1], n, b->weight) };
    return b->r.op.def->batch->run(&task, b->r.par, in, out);
}

static double drawn(const struct batch *b, const char *name)
{
    json_t *draws = dr__params_write(b->r.op.def->draws, b->r.par, 1);
    double v = json_number_value(json_object_get(draws, name));
    json_decref(draws);
    return v;
}

static void check_labels(const struct batch *b, double lam, int n)
{
    for (int i = 0; i < n; i++)
        for (int c = 0; c < CLASSES; c++) {
            double want = (c == i ? lam : 0) + (c == (i + n - 1) % n ? 1 - lam : 0);
            assert_true(fabs((double)b->weight[i][c] - want) < 1e-6);
        }
}

static void mixes_neighbours(void **state)
{
    struct batch b, before;
    (void)state;
    assert_int_equal(open_batch(&b, "mixup", "{\"num_classes\": 6}"), DR_OK);
    assert_int_equal(draw_batch(&b, 1), DR_OK);
    before = b;
    assert_int_equal(run_batch(&b, N), DR_OK);
    double lam = drawn(&b, "lam");
    for (int i = 0; i < N; i++)
        for (int j = 0; j < PIXELS; j++) {
            float mine = before.image[i][j] * (float)lam, its = before.image[(i + N - 1) % N][j] * (float)(1 - lam);
            assert_true(b.image[i][j] == its + mine);
        }
    check_labels(&b, lam, N);
    harness_close(&b.r);
}

static void cuts_rectangles(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct batch b, before;
        assert_int_equal(open_batch(&b, "cutmix", "{\"num_classes\": 6, \"alpha\": 2}"), DR_OK);
        assert_int_equal(draw_batch(&b, seed), DR_OK);
        before = b;
        assert_int_equal(run_batch(&b, N), DR_OK);
        int x1 = (int)drawn(&b, "x1"), x2 = (int)drawn(&b, "x2"), y1 = (int)drawn(&b, "y1"), y2 = (int)drawn(&b, "y2");
        assert_true(0 <= x1 && x1 <= x2 && x2 <= W && 0 <= y1 && y1 <= y2 && y2 <= H);
        for (int i = 0; i < N; i++)
            for (int j = 0; j < PIXELS; j++) {
                bool cut = j % W >= x1 && j % W < x2 && j / W >= y1 && j / W < y2;
                assert_true(b.image[i][j] == before.image[cut ? (i + N - 1) % N : i][j]);
            }
        check_labels(&b, 1.0 - (double)((x2 - x1) * (y2 - y1)) / PIXELS, N);
        harness_close(&b.r);
    }
}

static void one_sample_is_its_own_neighbour(void **state)
{
    struct batch b;
    (void)state;
    assert_int_equal(open_batch(&b, "cutmix", "{\"num_classes\": 6}"), DR_OK);
    assert_int_equal(draw_batch(&b, 1), DR_OK);
    assert_int_equal(run_batch(&b, 1), DR_OK);
    assert_true(b.image[0][7] == 7.0f && fabsf(b.weight[0][0] - 1.0f) < 1e-6f);
    assert_int_equal(run_batch(&b, 0), DR_OK);
    harness_close(&b.r);
}

static void refuses(void **state)
{
    struct batch b;
    (void)state;
    assert_int_equal(open_batch(&b, "mixup", "{}"), DR_ERR_ARG);
    assert_non_null(strstr(b.r.err.text, "num_classes must be given"));
    harness_close(&b.r);
    assert_int_equal(open_batch(&b, "mixup", "{\"num_classes\": 3}"), DR_OK);
    assert_int_equal(draw_batch(&b, 1), DR_OK);
    assert_int_equal(run_batch(&b, N), DR_ERR_ARG); /* label 3 */
    assert_non_null(strstr(b.r.err.text, "the label of sample 3 must be 0 to 2, got 3"));
    b.in[0].dtype = DR_U8;
    size_t scratch;
    assert_int_equal(b.r.op.def->batch->plan(b.r.op.conf, b.in, b.out, &scratch, &b.r.err), DR_ERR_ARG);
    assert_non_null(strstr(b.r.err.text, "needs float32 images"));
    assert_non_null(strstr(b.r.err.text, "; put normalize or to_dtype before it"));
    harness_close(&b.r);
}

/* Beta(a, a) has mean 1/2 and variance 1 / (4 (2a + 1)). */
static void check_beta(double alpha, double tested)
{
    enum { MANY = 20000 };
    char params[64];
    struct batch b;
    double sum = 0, square = 0, fourth = 0;
    snprintf(params, sizeof params, "{\"num_classes\": 6, \"alpha\": %g}", alpha);
    assert_int_equal(open_batch(&b, "mixup", params), DR_OK);
    for (uint64_t seed = 0; seed < MANY; seed++) {
        assert_int_equal(draw_batch(&b, seed), DR_OK);
        double d = drawn(&b, "lam") - 0.5;
        sum += d, square += d * d, fourth += d * d * d * d;
    }
    double mean = sum / MANY, variance = square / MANY;
    double want = 1.0 / (4.0 * (2.0 * tested + 1.0)), spread = sqrt((fourth / MANY - variance * variance) / MANY);
    assert_true(fabs(mean) < 5 * sqrt(variance / MANY));
    assert_int_equal(fabs(variance - want) < 5 * spread, alpha == tested);
    harness_close(&b.r);
}

static void shares_are_beta(void **state)
{
    (void)state;
    check_beta(1.0, 1.0);
    check_beta(0.2, 0.2);
    check_beta(3.0, 3.0);
    check_beta(0.2, 0.25); /* and another law is told apart */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mixes_neighbours),
        cmocka_unit_test(cuts_rectangles),
        cmocka_unit_test(one_sample_is_its_own_neighbour),
        cmocka_unit_test(refuses),
        cmocka_unit_test(shares_are_beta),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
