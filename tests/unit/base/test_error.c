/* Errors: texts, prefixes, and messages longer than their room. */
#include "unit/cm.h"

#include <errno.h>

#include "base/error.h"

static void every_status_has_a_text(void **state)
{
    (void)state;
#define CHECK(name, value, text)                                                                                       \
    assert_string_equal(dr_status_name(DR_##name), #name);                                                             \
    assert_true(strlen(dr_status_text(DR_##name)) > 0);
    DR_STATUS_MAP(CHECK)
#undef CHECK
    assert_string_equal(dr_status_name((dr_status)-99), "?");
}

static void prefixes_go_in_front(void **state)
{
    (void)state;
    dr_error err;
    assert_int_equal(dr__fail(&err, DR_ERR_FORMAT, "bad byte %d", 7), DR_ERR_FORMAT);
    assert_int_equal(dr__error_prefix(&err, "file %s", "x.jpg"), DR_ERR_FORMAT);
    assert_string_equal(err.text, "file x.jpg: bad byte 7");
    errno = ENOENT;
    dr__fail_errno(&err, DR_ERR_IO, "cannot open %s", "y");
    assert_string_equal(err.text, "cannot open y: No such file or directory");
}

static void long_texts_are_cut(void **state)
{
    (void)state;
    dr_error err;
    char text[3000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    dr__fail(&err, DR_ERR_IO, "%s", text);
    for (int i = 0; i < 5; i++)
        dr__error_prefix(&err, "%s", text);
    assert_int_equal(strlen(err.text), DR_ERROR_TEXT - 1);
    assert_int_equal(dr__fail(NULL, DR_ERR_IO, "nobody listens"), DR_ERR_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_a_text),
        cmocka_unit_test(prefixes_go_in_front),
        cmocka_unit_test(long_texts_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
