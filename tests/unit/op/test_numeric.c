/* test_numeric: element types, to_dtype and normalize. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "op/image/numeric.h"
#include "op_harness.h"

static void sixteen_bits_round_trip(void **state)
{
    (void)state;
    for (dr_dtype dtype = DR_F16; dtype <= DR_BF16; dtype++)
        for (uint32_t bits = 0; bits < 0x10000; bits++) {
            uint16_t in = (uint16_t)bits, out;
            float v;
            dr__floats_load(dtype, (const uint8_t *)&in, &v, 1);
            dr__floats_store(dtype, (uint8_t *)&out, &v, 1);
            if (v == v)
                assert_int_equal(in, out);
            else
                assert_true(dr__float_as(dtype, v) != dr__float_as(dtype, v));
        }
}

static void known_values(void **state)
{
    static const struct {
        uint16_t bits;
        float value;
    } f16[] = { { 0x3c00, 1 }, { 0xc000, -2 }, { 0x0001, 0x1p-24f }, { 0x7bff, 65504 }, { 0x0400, 0x1p-14f } };
    float v;
    (void)state;
    for (size_t i = 0; i < DR_COUNT(f16); i++) {
        dr__floats_load(DR_F16, (const uint8_t *)&f16[i].bits, &v, 1);
        assert_true(v == f16[i].value);
    }
    assert_true(dr__float_as(DR_U8, 300.0f) == 255.0f && dr__float_as(DR_U8, -3.0f) == 0.0f);
    assert_true(dr__float_as(DR_U8, 7.99f) == 7.0f && dr__float_as(DR_U8, NAN) == 0.0f);
    assert_true(dr__float_as(DR_BF16, 1.00390625f) == 1.0f); /* a half goes to even */
}

static void conversions(void **state)
{
    dr_view in = harness_image(DR_U8, 3, 5, 3);
    struct op_run r;
    (void)state;
    assert_int_equal(harness_do(&r, "to_dtype", "{\"scale\": true}", 0, &in), DR_OK);
    assert_int_equal(r.plan.desc.dtype, DR_F32);
    for (size_t i = 0; i < 45; i++) {
        float got, want = (float)in.data[i] * (float)(1.0 / 255.0);
        memcpy(&got, r.out.data + 4 * i, 4);
        assert_true(got == want);
    }
    dr_view floats = r.out;
    struct op_run back;
    assert_int_equal(harness_do(&back, "to_dtype", "{\"dtype\": \"uint8\", \"scale\": true}", 0, &floats), DR_OK);
    assert_memory_equal(back.out.data, in.data, 45);
    harness_close(&back);
    harness_close(&r);
    dr__free(in.data);
}

static void normalizing(void **state)
{
    dr_view in = harness_image(DR_U8, 3, 5, 3), wide = harness_image(DR_U16, 2, 2, 3);
    struct op_run r;
    (void)state;
    assert_int_equal(harness_do(&r, "normalize", "{\"mean\": [0.5, 0.25, 0], \"std\": [0.5, 2, 1]}", 0, &in), DR_OK);
    const float mean[] = { 0.5f, 0.25f, 0 }, std[] = { 0.5f, 2, 1 };
    for (size_t i = 0; i < 45; i++) {
        float got, unit = (float)in.data[i] * (float)(1.0 / 255.0);
        memcpy(&got, r.out.data + 4 * i, 4);
        assert_true(got == (unit - mean[i % 3]) / std[i % 3]);
    }
    harness_close(&r);
    assert_int_equal(harness_do(&r, "normalize", "{\"mean\": 0, \"std\": [1, 0, 1]}", 0, &in), DR_ERR_ARG);
    assert_non_null(strstr(r.err.text, "std[1] must not be 0, got 0"));
    harness_close(&r);
    assert_int_equal(harness_do(&r, "normalize", "{\"mean\": [0, 0], \"std\": 1}", 0, &in), DR_ERR_ARG);
    assert_non_null(strstr(r.err.text, "mean must have 1 value or 3, one for each channel, got 2"));
    harness_close(&r);
    assert_int_equal(harness_do(&r, "normalize", "{\"mean\": 0, \"std\": 1}", 0, &wide), DR_ERR_ARG);
    harness_close(&r);
    dr__free(wide.data);
    dr__free(in.data);
}

/* A chain of tables gives what the chain of ops gives: to_dtype without scale, then normalize on floats. */
static void tables_compose(void **state)
{
    float values[256], first[256], second[256];
    dr_view in = harness_image(DR_U8, 1, 256, 1);
    struct op_run a, b;
    (void)state;
    for (int i = 0; i < 256; i++) {
        in.data[i] = (uint8_t)i;
        values[i] = (float)i;
    }
    assert_int_equal(harness_do(&a, "to_dtype", "{\"dtype\": \"float16\"}", 0, &in), DR_OK);
    assert_int_equal(harness_do(&b, "normalize", "{\"mean\": 100.3, \"std\": 33.3}", 0, &a.out), DR_OK);
    a.op.def->lut(a.op.conf, 1, DR_U8, values, first);
    b.op.def->lut(b.op.conf, 1, DR_F16, first, second);
    for (int i = 0; i < 256; i++) {
        float got;
        dr__floats_load(DR_F16, b.out.data + 2 * i, &got, 1);
        assert_true(got == second[i]);
    }
    harness_close(&b);
    harness_close(&a);
    dr__free(in.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sixteen_bits_round_trip),
        cmocka_unit_test(known_values),
        cmocka_unit_test(conversions),
        cmocka_unit_test(normalizing),
        cmocka_unit_test(tables_compose),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
