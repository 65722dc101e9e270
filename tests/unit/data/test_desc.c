/* Shapes: sizes that overflow, texts, copies with strides. */
#include "unit/cm.h"

#include "data/desc.h"

static void sizes_are_checked(void **state)
{
    (void)state;
    size_t bytes;
    dr_desc d = dr__desc_image(DR_F32, 4, 5, 3);
    assert_true(dr__desc_bytes_dense(&d, &bytes));
    assert_int_equal(bytes, 240);
    assert_int_equal(dr__row_bytes(&d), 60);
    d.dims[0] = DR_UNKNOWN;
    assert_false(dr__desc_bytes_dense(&d, &bytes));
    assert_false(dr__desc_known(&d));
    d = dr__desc_image(DR_F64, INT64_MAX / 2, INT64_MAX / 2, 3);
    assert_false(dr__desc_bytes_dense(&d, &bytes));
}

static void texts_say_what_is_unknown(void **state)
{
    (void)state;
    char text[64];
    dr_desc d = dr__desc_image(DR_U8, DR_UNKNOWN, 640, 3);
    assert_string_equal(dr__desc_text_of(&d, text, sizeof text), "image uint8 HWC (?, 640, 3)");
    char small[8];
    dr__desc_text_of(&d, small, sizeof small);
    assert_int_equal(strlen(small), 7);
}

static void names_and_types_match(void **state)
{
    (void)state;
#define CHECK(name, value, bytes, text)                                                                                \
    assert_int_equal(dr_dtype_parse(text), DR_##name);                                                                 \
    assert_int_equal(dr_dtype_size(DR_##name), bytes);                                                                 \
    assert_string_equal(dr_dtype_name(DR_##name), text);
    DR_DTYPE_MAP(CHECK)
#undef CHECK
    assert_int_equal(dr_dtype_parse("complex"), 0);
}

static void copies_follow_strides(void **state)
{
    (void)state;
    uint8_t from[40], to[30];
    for (int i = 0; i < 40; i++)
        from[i] = (uint8_t)i;
    memset(to, 0xEE, sizeof to);
    dr_desc d = dr__desc_image(DR_U8, 3, 2, 3);
    dr_view in = dr__view_dense(&d, from), out = dr__view_dense(&d, to);
    in.stride = 10;
    out.stride = 8;
    dr__view_copy(&out, &in);
    assert_int_equal(to[8], 10);
    assert_int_equal(to[6], 0xEE);
    assert_int_equal(to[16 + 5], 25);
}

static void wrong_images_are_named(void **state)
{
    (void)state;
    dr_error err;
    dr_desc d = dr__desc_bytes(9), image = dr__desc_image(DR_F32, 1, 1, 1);
    assert_fails(dr__want_image(&d, ~0u, "pad", &err), DR_ERR_ARG, "pad: needs a decoded image");
    assert_non_null(strstr(err.text, "; put decode before it"));
    assert_fails(dr__want_image(&image, 1u << DR_U8, "pad", &err), DR_ERR_ARG, "float32");
    assert_non_null(strstr(err.text, "; put it before normalize and to_dtype"));
    assert_fails(dr__want_image(&image, 1u << DR_U16, "pad", &err), DR_ERR_ARG, "float32");
    assert_null(strstr(err.text, "normalize"));
    assert_fails(dr__want_volume(&d, ~0u, "pad", &err), DR_ERR_ARG, "pad: needs a decoded volume");
    assert_non_null(strstr(err.text, "; put decode_volume before it"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_checked),      cmocka_unit_test(texts_say_what_is_unknown),
        cmocka_unit_test(names_and_types_match),  cmocka_unit_test(copies_follow_strides),
        cmocka_unit_test(wrong_images_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
