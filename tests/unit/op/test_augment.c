/* test_augment: magnitudes, primitives and limits of the automatic augmentation ops. */
#include "op_expect.h"
#include "op/image/augment.h"

static void expect_near(double got, double want)
{
    if (got < want - 1e-5 || got > want + 1e-5)
        fail_msg("%.9g, wanted %.9g", got, want);
}

static void magnitudes(void **state)
{
    const dr_desc in = dr__desc_image(DR_U8, 100, 331, 3);
    const dr__aug_range shear = { DR__AUG_SHEAR_X, DR__SPREAD_LINEAR, 0, 0.3, true };
    const dr__aug_range shift = { DR__AUG_TRANSLATE_X, DR__SPREAD_WIDTH, 0, 150.0 / 331.0, true };
    const dr__aug_range bits = { DR__AUG_POSTERIZE, DR__SPREAD_BITS, 8, 4, false };
    (void)state;
    expect_near(dr__aug_magnitude(&shear, 31, 0, &in), 0);
    expect_near(dr__aug_magnitude(&shear, 31, 9, &in), 0.09);
    expect_near(dr__aug_magnitude(&shear, 31, 30, &in), 0.3);
    expect_near(dr__aug_magnitude(&shift, 11, 10, &in), 150);
    expect_near(dr__aug_magnitude(&shift, 11, 5, &in), 75);
    expect_near(dr__aug_magnitude(&bits, 10, 0, &in), 8);
    expect_near(dr__aug_magnitude(&bits, 10, 3, &in), 7); /* 8 - 3 / 2.25 = 6.67 */
    expect_near(dr__aug_magnitude(&bits, 10, 9, &in), 4);
}

/* One primitive on a grey row, by both ways of computing; 255 stands for "the fill". */
static void expect_primitive(dr__aug_id id, double magnitude, const uint8_t *want)
{
    uint8_t bytes[] = { 10, 20, 30, 40, 50 }, got[5], scratch[2048];
    dr__aug_fn *const *const ways[] = { dr__aug_pil, dr__aug_tensor };
    const dr__aug_style style = { .interpolation = DR__AFFINE_NEAREST, .fill = { 1, { 255 } } };
    const dr__aug_steps steps = { .ops = { 1, { id } }, .magnitudes = { 1, { magnitude } } };
    const dr_task task = { .k = dr__kernels_c(), .scratch = scratch };
    dr_view in = image_of(bytes, 1, 5, 1), out = image_of(got, 1, 5, 1);
    for (size_t i = 0; i < DR_COUNT(ways); i++) {
        dr__aug_run(&task, ways[i], &style, &steps, 0, 1, &in, &out);
        for (int x = 0; x < 5; x++)
            if (got[x] != want[x])
                fail_msg("primitive %d, way %d: pixel %d is %d, wanted %d", (int)id, (int)i, x, got[x], want[x]);
    }
}

static void primitives(void **state)
{
    (void)state;
    expect_primitive(DR__AUG_TRANSLATE_X, 2.9, (const uint8_t[]){ 255, 255, 10, 20, 30 }); /* whole pixels */
    expect_primitive(DR__AUG_TRANSLATE_X, -1, (const uint8_t[]){ 20, 30, 40, 50, 255 });
    expect_primitive(DR__AUG_TRANSLATE_Y, 1, (const uint8_t[]){ 255, 255, 255, 255, 255 });
    expect_primitive(DR__AUG_ROTATE, 0, (const uint8_t[]){ 10, 20, 30, 40, 50 });
    expect_primitive(DR__AUG_SHEAR_X, 0, (const uint8_t[]){ 10, 20, 30, 40, 50 });
    expect_primitive(DR__AUG_BRIGHTNESS, -0.5, (const uint8_t[]){ 5, 10, 15, 20, 25 });
    expect_primitive(DR__AUG_CONTRAST, 1, (const uint8_t[]){ 0, 10, 30, 50, 70 });
    expect_primitive(DR__AUG_COLOR, 0.7, (const uint8_t[]){ 10, 20, 30, 40, 50 });
    expect_primitive(DR__AUG_POSTERIZE, 4, (const uint8_t[]){ 0, 16, 16, 32, 48 });
    expect_primitive(DR__AUG_SOLARIZE, 40.0 / 255.0, (const uint8_t[]){ 10, 20, 30, 215, 205 });
}

/* However many steps, the last one writes the output; even counts pass through the scratch. */
static void steps_in_turns(void **state)
{
    uint8_t bytes[5] = { 0, 0, 0, 0, 9 };
    dr_view in = image_of(bytes, 1, 5, 1);
    uint8_t got[5], scratch[2048];
    dr_view out = image_of(got, 1, 5, 1);
    const dr__aug_style style = { 0 };
    const dr_task task = { .k = dr__kernels_c(), .scratch = scratch };
    dr__aug_steps steps = { 0 };
    (void)state;
    for (int n = 0; n < 5; n++) { /* n shifts to the left by one */
        dr__aug_run(&task, dr__aug_pil, &style, &steps, 0, n, &in, &out);
        for (int x = 0; x < 5; x++)
            assert_int_equal(got[x], x == 4 - n ? 9 : 0);
        steps.ops.v[n] = DR__AUG_TRANSLATE_X;
        steps.magnitudes.v[n] = -1;
    }
    assert_int_equal(bytes[4], 9);
}

/* All weight on the image gives the image; all weight on a chain gives the chain. */
static void mixes(void **state)
{
    uint8_t bytes[12 * 12 * 3];
    dr_view in = image_of(bytes, 12, 12, 3);
    struct op_run r;
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 7);
    assert_int_equal(harness_open(&r, "aug_mix", "{\"mixture_width\": 1}"), DR_OK);
    assert_int_equal(harness_draw(&r, &(dr__rng_name){ .seed = 3 }, &in.desc), DR_OK);
    struct {
        dr_reals weights;
        dr_ints depths;
        dr__aug_steps steps;
    } *par = r.par;
    par->weights = (dr_reals){ 2, { 1, 0 } };
    assert_int_equal(harness_run(&r, dr__kernels_best(), &in), DR_OK);
    assert_memory_equal(r.out.data, bytes, sizeof bytes);
    par->weights = (dr_reals){ 2, { 0, 1 } };
    par->depths = (dr_ints){ 1, { 1 } };
    par->steps = (dr__aug_steps){ { 1, { DR__AUG_POSTERIZE } }, { 1, { 1 } } };
    assert_int_equal(harness_run(&r, dr__kernels_best(), &in), DR_OK);
    for (size_t i = 0; i < sizeof bytes; i++)
        assert_int_equal(r.out.data[i], bytes[i] & 128);
    assert_true(harness_guards_intact(&r));
    harness_close(&r);
}

static void refusals(void **state)
{
    static const char *const ops[] = { "aug_mix", "auto_augment", "rand_augment", "trivial_augment_wide" };
    uint8_t bytes[4 * 4 * 4] = { 0 };
    (void)state;
    for (size_t i = 0; i < DR_COUNT(ops); i++) {
        dr_view in = image_of(bytes, 4, 4, 1);
        in.desc.kind = DR_KIND_MASK;
        expect_refused(ops[i], "{}", &in, "masks");
        in.desc = (dr_desc){ .kind = DR_KIND_BOXES, .dtype = DR_F32, .n_dims = 2, .dims = { 2, 4 } };
        expect_refused(ops[i], "{}", &in, "boxes");
        in = image_of(bytes, 4, 4, 4);
        expect_refused(ops[i], "{}", &in, "got 4");
        in = image_of(bytes, 4, 4, 3);
        expect_refused(ops[i], "{\"fill\": [1, 2]}", &in, "fill must have 1 value or");
        expect_refused(ops[i], "{\"fill\": 300}", &in, "fill must be");
        expect_refused(ops[i], "{\"interpolation\": \"lanczos\"}", &in, "bilinear");
    }
    dr_view in = image_of(bytes, 4, 4, 3);
    expect_refused("auto_augment", "{\"policy\": \"mnist\"}", &in, "svhn");
    expect_refused("rand_augment", "{\"magnitude\": 31}", &in, "0 to 30");
    expect_refused("rand_augment", "{\"num_ops\": 17}", &in, "num_ops");
    expect_refused("aug_mix", "{\"mixture_width\": 6}", &in, "at most 16");
    expect_refused("aug_mix", "{\"severity\": 11}", &in, "severity");
    expect_refused("aug_mix", "{\"interpolation\": \"bicubic\"}", &in, "bilinear");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(magnitudes), cmocka_unit_test(primitives), cmocka_unit_test(steps_in_turns),
        cmocka_unit_test(mixes),      cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
