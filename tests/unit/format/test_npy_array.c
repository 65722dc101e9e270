/* test_npy_array.c: arrays as .npy files, there and back. */
#include "../cm.h"

#include <string.h>

#include "base/alloc.h"
#include "data/desc.h"
#include "format/npy_array.h"

static dr_desc shape(dr_dtype dtype, int n, int64_t a, int64_t b, int64_t c)
{
    return (dr_desc){ .dtype = dtype, .n_dims = n, .dims = { a, b, c } };
}

static void there_and_back(const dr_desc *desc)
{
    dr__text file = { 0 };
    dr_view view;
    dr_error err = { 0 };
    size_t bytes;
    dr_desc open = *desc;
    dr__npy_put_header(&file, desc);
    assert_int_equal(file.n % 64, 0);
    assert_true(dr__desc_bytes_dense(desc, &bytes));
    for (size_t i = 0; i < bytes; i++)
        dr__text_add(&file, "\x5A", 1);
    for (int i = 0; i < open.n_dims; i++)
        open.dims[i] = DR_UNKNOWN;
    assert_int_equal(dr__npy_read((const uint8_t *)file.text, file.n, &open, &view, &err), DR_OK);
    assert_true(dr__desc_equal(&view.desc, desc));
    assert_int_equal(dr__npy_read((const uint8_t *)file.text, file.n - 1, &open, &view, &err), DR_ERR_FORMAT);
    dr__free(file.text);
}

static void test_every_type(void **state)
{
    (void)state;
#define TRY(name, value, bytes, text)                                                                                  \
    for (int n = 0; n <= 3; n++) {                                                                                     \
        const dr_desc d = shape(DR_##name, n, 2, 0 + n, 5);                                                            \
        there_and_back(&d);                                                                                            \
    }
    DR_DTYPE_MAP(TRY)
#undef TRY
}

static void refuses(const char *header, const dr_desc *want)
{
    uint8_t file[256] = "\x93NUMPY\1";
    dr_view view;
    dr_error err = { 0 };
    const size_t n = strlen(header);
    file[8] = (uint8_t)n;
    memcpy(file + 10, header, n);
    assert_int_equal(dr__npy_read(file, 10 + n + 6, want, &view, &err), DR_ERR_FORMAT);
    assert_true(strlen(err.text) > 0);
}

static void test_what_is_not_such_an_array(void **state)
{
    (void)state;
    const dr_desc want = shape(DR_U8, 2, DR_UNKNOWN, 3, 0);
    refuses("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 4), }", &want);
    refuses("{'descr': '|u1', 'fortran_order': False, 'shape': (3, 3), }", &want); /* nine bytes wanted, six there */
    refuses("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3, 1), }", &want);
    refuses("{'descr': '|u1', 'fortran_order': False, 'shape': (6,), }", &want);
    refuses("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", &want);
    refuses("{'descr': '<u2', 'fortran_order': False, 'shape': (1, 3), }", &want);
    refuses("{'descr': '|u1', 'fortran_order': False, 'shape': (-2, 3), }", &want);
    refuses("{'descr': '|u1', 'fortran_order': False, 'shape': (99999999999999999999, 3), }", &want);
    refuses("{'descr': '|u1', 'shape': (2, 3), }", &want);
    refuses("{'descr': '|u1', 'fortran_order': False", &want);
    refuses("", &want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type),
        cmocka_unit_test(test_what_is_not_such_an_array),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
