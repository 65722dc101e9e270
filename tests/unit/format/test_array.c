/* test_array.c: data sets over arrays in memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "data/desc.h"
#include "format/dataset_internal.h"

static uint8_t pixels[5 * 2 * 3 * 3];
static int64_t labels[5] = { 4, 3, 2, 1, 0 };
static int released;

static void release(void *user)
{
    ++*(int *)user;
}

static dr_array images_array(int64_t n)
{
    return (
        dr_array){ "image", { .kind = DR_KIND_IMAGE, .dtype = DR_U8, .n_dims = 4, .dims = { n, 2, 3, 3 } }, pixels };
}

static dr_array labels_array(int64_t n)
{
    return (dr_array){ "label", { .dtype = DR_I64, .n_dims = 1, .dims = { n } }, labels };
}

static void rows_are_samples(void **state)
{
    (void)state;
    dr_array arrays[] = { images_array(5), labels_array(5) };
    dr_dataset *set;
    dr__record r;
    char text[8];
    released = 0;
    dr__record_init(&r);
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)i;
    assert_int_equal(dr_dataset_from_arrays(arrays, 2, release, &released, &set, NULL), DR_OK);
    assert_int_equal(dr_dataset_size(set), 5);
    assert_int_equal(dr_dataset_fields(set), 3);
    assert_int_equal(set->def->read(set, 3, &r, NULL), DR_OK);
    assert_ptr_equal(r.fields[0].data, pixels + 3 * 18); /* no copy */
    assert_int_equal(r.fields[0].desc.layout, DR_LAYOUT_HWC);
    assert_int_equal(r.fields[0].desc.dims[0], 2);
    assert_int_equal(r.fields[0].stride, 9);
    assert_int_equal(r.fields[0].window.w, 3);
    assert_int_equal(r.fields[0].window.h, 2);
    assert_int_equal(*(int64_t *)(void *)r.fields[1].data, 1);
    assert_int_equal(r.fields[1].desc.n_dims, 0);
    assert_memory_equal(r.fields[2].data, "3", 1);
    assert_int_equal(dr_dataset_key(set, 3, text, sizeof text, NULL), DR_OK);
    assert_string_equal(text, "3");
    assert_int_equal(released, 0);
    dr_dataset_unref(&set);
    assert_int_equal(released, 1);
    dr__record_free(&r);
}

static void grey_images_get_a_channel(void **state)
{
    (void)state;
    dr_array a = images_array(5);
    a.desc.n_dims = 3;
    dr_dataset *set;
    dr_desc desc;
    assert_int_equal(dr_dataset_from_arrays(&a, 1, NULL, NULL, &set, NULL), DR_OK);
    dr_dataset_field(set, 0, &desc);
    assert_int_equal(desc.n_dims, 3);
    assert_int_equal(desc.dims[2], 1);
    assert_int_equal(desc.layout, DR_LAYOUT_HWC);
    dr_dataset_unref(&set);
}

static void wrong(dr_array a, const char *part)
{
    dr_array arrays[] = { labels_array(5), a };
    dr_dataset *set = NULL;
    dr_error err;
    released = 0;
    assert_int_equal(dr_dataset_from_arrays(arrays, 2, release, &released, &set, &err), DR_ERR_ARG);
    if (!strstr(err.text, part))
        fail_msg("%s", err.text);
    assert_int_equal(released, 0); /* still the caller's */
    assert_null(set);
}

static void wrong_arrays_are_refused(void **state)
{
    (void)state;
    dr_error err;
    dr_dataset *set;
    dr_array a = images_array(4);
    wrong(a, "must have 5 samples, as the first array, got 4");
    a = images_array(5), a.desc.n_dims = 2;
    wrong(a, "(n, H, W)");
    a = images_array(5), a.desc.dtype = (dr_dtype)99;
    wrong(a, "99");
    a = images_array(5), a.desc.dims[1] = INT64_MAX;
    wrong(a, "must fit in memory");
    a = images_array(5), a.desc.dims[1] = -1;
    wrong(a, "negative");
    a = images_array(5), a.name = NULL;
    wrong(a, "must have a name");
    a = images_array(5), a.data = NULL;
    wrong(a, "CPU memory");
    a = images_array(5), a.name = "label";
    wrong(a, "two fields");
    a = labels_array(0);
    assert_int_equal(dr_dataset_from_arrays(&a, 1, NULL, NULL, &set, &err), DR_ERR_ARG);
    assert_int_equal(dr_dataset_from_arrays(&a, 0, NULL, NULL, &set, &err), DR_ERR_ARG);
}

static void opening_survives_lack_of_memory(void **state)
{
    (void)state;
    dr_array a = labels_array(5);
    dr_dataset *set;
    for (long n = 1; n <= 2; n++) {
        dr__alloc_fail_at(n, false);
        assert_int_equal(dr_dataset_from_arrays(&a, 1, NULL, NULL, &set, NULL), DR_ERR_NOMEM);
        dr__alloc_fail_at(0, false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_samples),
        cmocka_unit_test(grey_images_get_a_channel),
        cmocka_unit_test(wrong_arrays_are_refused),
        cmocka_unit_test(opening_survives_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
