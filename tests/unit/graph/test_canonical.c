/* Canonical JSON: the number examples of RFC 8785, member order, escapes. */
#include "unit/cm.h"

#include "base/alloc.h"
#include "graph/graph_internal.h"

static void check(const char *in, const char *want)
{
    json_t *value = json_loads(in, JSON_DECODE_ANY, NULL);
    assert_non_null(value);
    char *text = dr__canonical(value);
    assert_string_equal(text, want);
    dr__free(text);
    json_decref(value);
}

static void numbers_have_one_spelling(void **state)
{
    (void)state;
    check("0.0", "0");
    check("-0.0", "0");
    check("333333333.33333329", "333333333.3333333");
    check("1E30", "1e+30");
    check("4.50", "4.5");
    check("2e-3", "0.002");
    check("0.000000000000000000000000001", "1e-27");
    check("0.1", "0.1");
    check("0.000001", "0.000001");
    check("0.0000001", "1e-7");
    check("100000000000000000000.0", "100000000000000000000");
    check("1e21", "1e+21");
    check("-1.5", "-1.5");
    check("5e-324", "5e-324");
    check("1.7976931348623157e308", "1.7976931348623157e+308");
    check("224", "224");
}

static void members_are_sorted(void **state)
{
    (void)state;
    check("{\"b\": [1, 2.5, {\"z\": null, \"a\": true}], \"a\": false}",
          "{\"a\":false,\"b\":[1,2.5,{\"a\":true,\"z\":null}]}");
}

static void strings_are_escaped(void **state)
{
    (void)state;
    check("\"a\\u0001\\n\\t\\\"\\\\/\\u00e9\"", "\"a\\u0001\\n\\t\\\"\\\\/\xc3\xa9\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_have_one_spelling),
        cmocka_unit_test(members_are_sorted),
        cmocka_unit_test(strings_are_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
