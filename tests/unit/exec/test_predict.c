/* Predicted costs: what counts as slow, and that they rank samples as the work does that is really done. */
#include "unit/loader/toy.h"

#include <math.h>

#include "codec/image/image_state.h"
#include "kernel/cpu.h"
#include "loader/loader_internal.h"

static dr_error err;

static void rank_correlations(void **state)
{
    (void)state;
    const float up[] = { 1, 2, 3, 4, 5 }, down[] = { 9, 7, 4, 2, -1 }, mixed[] = { 10, 30, 20, 50, 40 };
    const float ties[] = { 1, 1, 2, 2, 3 }, same[] = { 4, 4, 4, 4, 4 };
    assert_true(fabs(dr__rank_correlation(up, up, 5) - 1) < 1e-12);
    assert_true(fabs(dr__rank_correlation(up, down, 5) + 1) < 1e-12);
    assert_true(fabs(dr__rank_correlation(up, mixed, 5) - 0.8) < 1e-12);
    assert_true(fabs(dr__rank_correlation(up, ties, 5) - 0.9486832980505138) < 1e-12);
    assert_true(isnan(dr__rank_correlation(up, same, 5)));
}

/* So many samples of `units`, one nanosecond each unit. */
static void learn(dr__predict *p, int n, double units)
{
    for (int i = 0; i < n; i++)
        dr__predict_learn(p, (uint64_t)i, units, (uint64_t)units, 0);
}

static void slow_is_far_above_the_median(void **state)
{
    (void)state;
    static dr__predict p;
    dr__predict_init(&p);
    learn(&p, 31, 1e6);
    assert_false(dr__predict_is_slow(&p, 1e12)); /* not known yet */
    assert_true(dr__predict_slow_ns(&p) == UINT64_MAX);
    learn(&p, 1, 1e6);
    assert_false(dr__predict_is_slow(&p, 3.9e6));
    assert_true(dr__predict_is_slow(&p, 4.6e6)); /* the median is right to an eighth */
    assert_true(dr__predict_slow_share(&p) < 1e-9);
    learn(&p, 8, 2e7);
    assert_true(fabs(dr__predict_slow_share(&p) - 160.0 / 192) < 1e-9);
}

static void how_far_can_be_set(void **state)
{
    (void)state;
    static dr__predict p;
    dr__predict_init(&p);
    dr__predict_set_slow_factor(&p, 2); /* before anything is known */
    assert_false(dr__predict_is_slow(&p, 1e12));
    learn(&p, 32, 1e6);
    assert_false(dr__predict_is_slow(&p, 1.9e6));
    assert_true(dr__predict_is_slow(&p, 2.3e6)); /* the median is right to an eighth */
    dr__predict_set_slow_factor(&p, 50);         /* counts at once */
    assert_false(dr__predict_is_slow(&p, 4.9e7));
    assert_true(dr__predict_is_slow(&p, 5.7e7));
    learn(&p, 64, 1e6); /* and stays */
    assert_false(dr__predict_is_slow(&p, 4.9e7));
}

static void short_samples_are_never_slow(void **state)
{
    (void)state;
    static dr__predict p;
    dr__predict_init(&p);
    learn(&p, 64, 1000);
    assert_false(dr__predict_is_slow(&p, 100000)); /* a hundred times the median, and a tenth of a millisecond */
    assert_true(dr__predict_is_slow(&p, 300000));
}

static void units_become_nanoseconds(void **state)
{
    (void)state;
    static dr__predict p;
    dr__predict_init(&p);
    for (uint64_t i = 0; i < 200; i++)
        dr__predict_learn(&p, i, (double)(1000000 + i), 3 * (1000000 + i), 0);
    const double slow_ns = (double)dr__predict_slow_ns(&p);
    assert_true(slow_ns > 11.9e6 && slow_ns < 13.6e6);
    json_t *o = dr__predict_json(&p);
    assert_int_equal(json_integer_value(json_object_get(o, "samples")), 200);
    assert_true(json_real_value(json_object_get(o, "rank_correlation")) > 0.999);
    assert_true(json_real_value(json_object_get(o, "relative_error")) < 0.001);
    json_decref(o);
    for (uint64_t i = 0; i < 100000; i++) /* the machine is busier now */
        dr__predict_learn(&p, i, (double)(1000000 + i % 100), 9 * (1000000 + i % 100), 0);
    assert_true((double)dr__predict_slow_ns(&p) > 35e6);
}

static void the_median_follows_the_samples(void **state)
{
    (void)state;
    static dr__predict p;
    dr__predict_init(&p);
    learn(&p, 80000, 1e6);
    learn(&p, 40000, 1e7); /* half as many, and now all are so */
    assert_false(dr__predict_is_slow(&p, 1e7));
}

static void nothing_to_predict(void **state)
{
    (void)state;
    static dr__predict p;
    dr__predict_init(&p);
    learn(&p, 100, 0);
    assert_false(dr__predict_is_slow(&p, 1));
    json_t *o = dr__predict_json(&p);
    assert_true(json_is_null(json_object_get(o, "rank_correlation")));
    assert_true(json_is_null(json_object_get(o, "relative_error")));
    json_decref(o);
}

/* --- against work that can be counted --- */

static long n_blocks;
static dr__kernels kernels;
static void (*plain_idct)(uint8_t *dst, ptrdiff_t stride, const int16_t *coef, const int16_t *quant, int n);

static void counted_idct(uint8_t *dst, ptrdiff_t stride, const int16_t *coef, const int16_t *quant, int n)
{
    n_blocks++;
    plain_idct(dst, stride, coef, quant, n);
}

/* Pixels decoded (blocks of JPEG that were transformed) and predicted units, sample by sample. */
static double correlation_of(dr_dataset *set, int n, const char *nodes)
{
    float cost[256], work[256];
    int used = 0;
    dr_graph *g = graph_of(nodes);
    dr_loader_options o = options_of(1, 0);
    o.prefetch = 1;
    o.seek_index = "off";
    dr_loader *l = open_loader(set, g, &o);
    dr__kernels_fill(&kernels, DR__CPU_C);
    plain_idct = kernels.idct_8x8;
    kernels.idct_8x8 = counted_idct;
    l->exec.caller.bench = dr__workbench_new();
    assert_non_null(l->exec.caller.bench);
    l->exec.caller.bench->codecs->kernels = &kernels;
    for (int i = 0; i < n; i++) {
        dr_batch *b = NULL;
        n_blocks = 0;
        assert_ok(dr_loader_next(l, -1, &b, &err));
        cost[used] = (float)l->exec.caller.bench->cost;
        work[used] = (float)n_blocks;
        used += n_blocks > 0; /* another decoder has the progressive ones */
        dr_batch_unref(&b);
    }
    assert_true(used > n / 2);
    dr_loader_close(&l);
    dr_graph_free(&g);
    return dr__rank_correlation(cost, work, used);
}

static void costs_rank_samples_as_work_does(void **state)
{
    (void)state;
    char folder[64];
    dr_dataset *set = jpeg_set(folder, 90);
    double whole = correlation_of(set, 90, "{\"op\":\"decode\"},{\"op\":\"resize\",\"params\":{\"size\":[24,20]}}");
    print_message("rank correlation of cost and blocks: %.3f whole", whole);
    assert_true(whole > 0.9);
    dr_dataset_unref(&set);
    remove_folder(folder);
    set = jpeg_set_sized(folder, 90, 160, 120); /* one size: what was drawn makes the difference */
    double part =
        correlation_of(set, 90, "{\"op\":\"decode\"},{\"op\":\"random_resized_crop\",\"params\":{\"size\":[24,20]}}");
    print_message(", %.3f with drawn crops\n", part);
    assert_true(part > 0.9);
    dr_dataset_unref(&set);
    remove_folder(folder);
}

/* --- remembered costs --- */

/* What a sample cost before counts only where it has been clearly better than its units, and of samples that have one.
 */
static void remembered_costs(void **state)
{
    (void)state;
    dr__predict p;
    dr__predict_init(&p);
    for (uint64_t i = 0; i < 200; i++) /* units that say nothing: every sample has the same, one in ten takes long */
        dr__predict_learn(&p, i, 1e6, i % 10 ? 1000000 : 20000000, i % 10 ? 1e6f : 2e7f);
    assert_true(dr__predict_cost(&p, 1e6, 0) == 1e6);
    assert_true(dr__predict_cost(&p, 1e6, 2e7f) > 15 * dr__predict_cost(&p, 1e6, 1e6f));
    dr__predict_init(&p);
    for (uint64_t i = 0; i < 200; i++) /* units that say all, while earlier passes drew other numbers */
        dr__predict_learn(&p, i, i % 10 ? 1e6 : 2e7, i % 10 ? 1000000 : 20000000, i % 7 ? 1e6f : 2e7f);
    assert_true(dr__predict_cost(&p, 1e6, 2e7f) == 1e6);
    dr__predict_init(&p);
    assert_true(dr__predict_cost(&p, 1e6, 2e7f) == 1e6); /* nothing was compared yet */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(remembered_costs),
        cmocka_unit_test(rank_correlations),
        cmocka_unit_test(slow_is_far_above_the_median),
        cmocka_unit_test(how_far_can_be_set),
        cmocka_unit_test(short_samples_are_never_slow),
        cmocka_unit_test(units_become_nanoseconds),
        cmocka_unit_test(the_median_follows_the_samples),
        cmocka_unit_test(nothing_to_predict),
        cmocka_unit_test(costs_rank_samples_as_work_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
