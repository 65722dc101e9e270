/* test_lut.c: the bytes that are prepared beside a table are those of its values. */
#include "unit/cm.h"

#include "kernel/kernel.h"

static void bytes_of_floats(void **state)
{
    (void)state;
    static dr__lut_f32 lut;
    lut.value[0] = 1.0f;                  /* 0x3f800000 */
    lut.value[3 * 256 + 255] = -0.15625f; /* 0xbe200000 */
    lut.value[256 + 7] = 16777215.0f;     /* 0x4b7fffff */
    dr__lut_f32_prepare(&lut);
    const uint8_t one[4] = { 0x00, 0x00, 0x80, 0x3f }, last[4] = { 0x00, 0x00, 0x20, 0xbe };
    const uint8_t large[4] = { 0xff, 0xff, 0x7f, 0x4b };
    for (int i = 0; i < 4; i++) {
        assert_int_equal(lut.bytes[0][i][0], one[i]);
        assert_int_equal(lut.bytes[3][i][255], last[i]);
        assert_int_equal(lut.bytes[1][i][7], large[i]);
        assert_int_equal(lut.bytes[2][i][7], 0);
    }
}

static void bytes_of_words(void **state)
{
    (void)state;
    static dr__lut_u16 lut;
    for (int i = 0; i < DR__LUT_CHANNELS * 256; i++)
        lut.value[i] = (uint16_t)(i * 257 + 3);
    dr__lut_u16_prepare(&lut);
    for (int i = 0; i < DR__LUT_CHANNELS * 256; i++)
        assert_int_equal(lut.bytes[i / 256][1][i % 256] * 256 + lut.bytes[i / 256][0][i % 256], lut.value[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(bytes_of_floats), cmocka_unit_test(bytes_of_words) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
