/* test_volume.c: what the ops on volumes make of small ones, voxel by voxel. */
#include <math.h>

#include "op_expect.h"

/* Voxels that say where they are: 100 z + 10 y + x. */
static float where[4 * 5 * 6];
static uint8_t classes[4 * 5 * 6];

static dr_view place_volume(void)
{
    dr_desc d = dr__desc_volume(DR_F32, (int64_t[]){ 1, 4, 5, 6 });
    for (int i = 0; i < 120; i++)
        where[i] = (float)(100 * (i / 30) + 10 * (i / 6 % 5) + i % 6);
    d.spacing[0] = 3, d.spacing[1] = 2, d.spacing[2] = 1;
    return dr__view_dense(&d, where);
}

static dr_view class_volume(void)
{
    dr_view v = place_volume();
    v.desc.kind = DR_KIND_VOLUME_MASK;
    v.desc.dtype = DR_U8;
    v.data = classes;
    memset(classes, 0, sizeof classes);
    return v;
}

static float at(const struct op_run *r, int64_t z, int64_t y, int64_t x)
{
    const int64_t *d = r->plan.desc.dims;
    return ((const float *)r->out.data)[(z * d[2] + y) * d[3] + x];
}

static void expect_dims(const struct op_run *r, int64_t d, int64_t h, int64_t w)
{
    int64_t want[] = { 1, d, h, w };
    assert_memory_equal(r->plan.desc.dims, want, sizeof want);
}

/* A linear function stays what it is, wherever it is sampled. */
static void resampling_is_linear(void **state)
{
    dr_view in = place_volume();
    struct op_run r;
    (void)state;
    do_op(&r, "resample_volume", "{\"spacing\": [1.5, 1, 2]}", 0, &in);
    expect_dims(&r, 8, 10, 3);
    assert_true(r.plan.desc.spacing[0] == 1.5 && r.plan.desc.spacing[2] == 2);
    for (int64_t z = 0; z < 8; z++)
        for (int64_t y = 0; y < 10; y++)
            for (int64_t x = 0; x < 3; x++) {
                double want = 100.0 * (double)z * 3 / 7 + 10.0 * (double)y * 4 / 9 + (double)x * 5 / 2;
                assert_true(fabs((double)at(&r, z, y, x) - want) < 1e-3);
            }
    harness_close(&r);
    do_op(&r, "resample_volume", "{\"size\": [4, 5, 6]}", 0, &in);
    assert_memory_equal(r.out.data, where, sizeof where);
    harness_close(&r);
}

static void cells_have_an_extent(void **state)
{
    float row[] = { 0, 10 };
    dr_desc d = dr__desc_volume(DR_F32, (int64_t[]){ 1, 1, 1, 2 });
    dr_view in = dr__view_dense(&d, row);
    struct op_run r;
    (void)state;
    do_op(&r, "resample_volume", "{\"size\": [1, 1, 4], \"align_corners\": false}", 0, &in);
    assert_memory_equal(r.out.data, ((float[]){ 0, 2.5f, 7.5f, 10 }), 16); /* as torch's trilinear */
    harness_close(&r);
    expect_refused("resample_volume", "{\"spacing\": 1}", &in, "not known along axis 0");
    expect_refused("resample_volume", "{}", &in, "either spacing or size");
}

static void masks_take_the_nearest(void **state)
{
    dr_view in = class_volume();
    struct op_run r;
    (void)state;
    for (int i = 0; i < 120; i++)
        classes[i] = (uint8_t)i;
    do_op(&r, "resample_volume", "{\"size\": [2, 5, 11]}", 0, &in);
    assert_int_equal(r.plan.desc.dtype, DR_U8);
    for (int x = 0; x < 11; x++)
        assert_int_equal(r.out.data[x], (x + 1) / 2);
    assert_int_equal(r.out.data[55], 90);
    harness_close(&r);
}

static void intensities_are_clipped_first(void **state)
{
    int16_t row[] = { -1000, -79, 101, 304, 2000 };
    dr_desc d = dr__desc_volume(DR_I16, (int64_t[]){ 1, 1, 1, 5 });
    dr_view in = dr__view_dense(&d, row);
    struct op_run r;
    (void)state;
    do_op(&r, "normalize_intensity", "{\"clip\": [-79, 304], \"mean\": 101, \"std\": 76.9}", 0, &in);
    float lo = (-79.0f - 101.0f) / 76.9f, hi = (304.0f - 101.0f) / 76.9f;
    assert_memory_equal(r.out.data, ((float[]){ lo, lo, 0, hi, hi }), 20);
    harness_close(&r);
    expect_refused("normalize_intensity", "{\"clip\": [2, 1]}", &in, "the least first");
}

static void padding_is_halved(void **state)
{
    dr_view in = place_volume();
    struct op_run r;
    (void)state;
    do_op(&r, "pad_volume", "{\"size\": [7, 5, 8]}", 0, &in);
    expect_dims(&r, 7, 5, 8);
    assert_true(at(&r, 0, 2, 0) == 20 && at(&r, 1, 2, 1) == 20 && at(&r, 6, 4, 7) == 345 && at(&r, 2, 0, 3) == 102);
    harness_close(&r);
    do_op(&r, "pad_volume", "{\"size\": 6, \"mode\": \"constant\", \"fill\": -1}", 0, &in);
    expect_dims(&r, 6, 6, 6);
    assert_true(at(&r, 0, 2, 0) == -1 && at(&r, 1, 0, 0) == 0 && at(&r, 4, 4, 5) == 345 && at(&r, 4, 5, 5) == -1);
    harness_close(&r);
    expect_refused("pad_volume", "{\"size\": [1, 2]}", &in, "two numbers");
}

static void flips_mirror_one_axis(void **state)
{
    static const char *const params[] = { "{\"p\": 1, \"axes\": 0}", "{\"p\": 1, \"axes\": 1}",
                                          "{\"p\": 1, \"axes\": 2}" };
    static const float want[] = { 301, 41, 4 };
    dr_view in = place_volume();
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct op_run r;
        do_op(&r, "random_flip_volume", params[i], 5, &in);
        assert_true(at(&r, 0, 0, 1) == want[i]);
        harness_close(&r);
    }
}

static void crops_stay_inside(void **state)
{
    dr_view in = place_volume();
    bool seen[3][3][3] = { 0 };
    (void)state;
    for (uint64_t seed = 0; seed < 400; seed++) {
        struct op_run r;
        do_op(&r, "random_balanced_crop", "{\"size\": [2, 3, 4], \"oversampling\": 0}", seed, &in);
        int corner = (int)at(&r, 0, 0, 0);
        seen[corner / 100][corner / 10 % 10][corner % 10] = true;
        assert_true(at(&r, 1, 2, 3) == (float)(corner + 123));
        harness_close(&r);
    }
    for (int i = 0; i < 27; i++)
        assert_true(seen[i / 9][i / 3 % 3][i % 3]);
    expect_refused("random_balanced_crop", "{\"size\": 5, \"oversampling\": 0}", &in,
                   "axis 0 must have at least 5 voxels, got 4");
    expect_refused("random_balanced_crop", "{\"size\": 2}", &in, "needs the mask");
}

/* Both classes are met about as often although one has many more voxels, and always lie in the part. */
static void foreground_is_met(void **state)
{
    int rare = 0, n = 300;
    (void)state;
    for (uint64_t seed = 0; seed < (uint64_t)n; seed++) {
        dr_view in = class_volume();
        struct op_run r;
        for (int i = 0; i < 20; i++)
            classes[i] = 1;
        classes[119] = 2;
        assert_int_equal(harness_open(&r, "random_balanced_crop", "{\"size\": [1, 2, 2], \"oversampling\": 1}"), DR_OK);
        assert_int_equal(harness_draw(&r, &(dr__rng_name){ .seed = seed }, &in.desc), DR_OK);
        assert_int_equal(harness_run(&r, dr__kernels_best(), &in), DR_OK);
        int most = 0;
        for (int i = 0; i < 4; i++)
            most = DR_MAX(most, r.out.data[i]);
        assert_true(most > 0);
        rare += most == 2;
        harness_close(&r);
    }
    assert_true(abs(rare - n / 2) < 5 * 9);
}

static void noise_has_its_deviation(void **state)
{
    dr_view in = harness_volume(DR_KIND_VOLUME, DR_F32, 1, 20, 30, 40);
    struct op_run r;
    double sum = 0, squares = 0, n = 24000;
    (void)state;
    do_op(&r, "random_gaussian_noise", "{\"p\": 1, \"std\": 0.5, \"mean\": 2}", 3, &in);
    for (int i = 0; i < 24000; i++) {
        double v = (double)((float *)r.out.data)[i] - (double)((float *)in.data)[i] - 2;
        sum += v, squares += v * v;
    }
    json_t *draws = dr__op_draws_json(&r.op, r.par);
    double std = json_number_value(json_object_get(draws, "std"));
    assert_true(std > 0 && std < 0.5);
    assert_true(fabs(sum / n) < 5 * std / sqrt(n));
    assert_true(fabs(squares / n / (std * std) - 1) < 5 * sqrt(2 / n));
    json_decref(draws);
    harness_close(&r);
    do_op(&r, "random_gaussian_noise", "{\"p\": 0}", 3, &in);
    assert_memory_equal(r.out.data, in.data, 96000);
    harness_close(&r);
    dr__free(in.data);
}

static void brightness_multiplies(void **state)
{
    dr_view in = place_volume();
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct op_run r;
        do_op(&r, "random_brightness", "{\"p\": 1, \"factor\": 0.25}", seed, &in);
        float scale = at(&r, 1, 0, 0) / 100;
        assert_true(scale >= 0.75f && scale <= 1.25f);
        assert_true(fabsf(at(&r, 3, 4, 5) - 345 * scale) < 1e-3f);
        harness_close(&r);
    }
}

/* What is slow is known beforehand: by size and by what was drawn. */
static double cost_of(const char *op, const char *params, const dr_desc *in)
{
    struct op_run r;
    assert_int_equal(harness_open(&r, op, params), DR_OK);
    assert_int_equal(harness_draw(&r, &(dr__rng_name){ 0 }, in), DR_OK);
    double cost = r.op.def->cost(r.op.conf, r.par, in);
    harness_close(&r);
    return cost;
}

static void costs_tell_slow_from_fast(void **state)
{
    dr_desc small = place_volume().desc, large = small;
    (void)state;
    large.dims[1] = 400;
    assert_true(cost_of("resample_volume", "{\"spacing\": 1}", &large) >
                50 * cost_of("resample_volume", "{\"spacing\": 1}", &small));
    assert_true(cost_of("random_gaussian_noise", "{\"p\": 1}", &small) >
                10 * cost_of("random_gaussian_noise", "{\"p\": 0}", &small));
    assert_true(cost_of("random_balanced_crop", "{\"size\": 2, \"oversampling\": 1}", &large) >
                50 * cost_of("random_balanced_crop", "{\"size\": 2, \"oversampling\": 0}", &large));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resampling_is_linear),      cmocka_unit_test(cells_have_an_extent),
        cmocka_unit_test(masks_take_the_nearest),    cmocka_unit_test(intensities_are_clipped_first),
        cmocka_unit_test(padding_is_halved),         cmocka_unit_test(flips_mirror_one_axis),
        cmocka_unit_test(crops_stay_inside),         cmocka_unit_test(foreground_is_met),
        cmocka_unit_test(noise_has_its_deviation),   cmocka_unit_test(brightness_multiplies),
        cmocka_unit_test(costs_tell_slow_from_fast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
