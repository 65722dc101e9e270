/* Tokens files, tokens and rights. */
#include "unit/cm.h"

#include "base/alloc.h"
#include "serve/tokens.h"

static dr_error err;

#define A "aaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbb"

static dr_status parse(const char *text, dr__tokens *out)
{
    return dr__tokens_parse(text, strlen(text), "t", out, &err);
}

static void clients_are_found_by_their_token(void **state)
{
    (void)state;
    dr__tokens t;
    assert_ok(parse("# comment\n\n  alice\t" A "  train,coco-* # more\r\nbob " B " *,@metrics", &t));
    assert_int_equal(t.n, 2);
    assert_string_equal(dr__tokens_find(&t, "Bearer " A)->name, "alice");
    assert_string_equal(dr__tokens_find(&t, "bearer  " B)->name, "bob");
    static const char *const wrong[] = {
        "Bearer " A "a", "Bearer " B "x", "Bearer aaaa", "Bearer", "Bearer ", "Basic " A, A, ""
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_null(dr__tokens_find(&t, wrong[i]));
    assert_null(dr__tokens_find(&t, NULL));
    const dr__token *alice = dr__tokens_find(&t, "Bearer " A), *bob = dr__tokens_find(&t, "Bearer " B);
    assert_true(dr__token_allows(alice, "train") && dr__token_allows(alice, "coco-2017"));
    assert_false(dr__token_allows(alice, "train2") || dr__token_allows(alice, "coco") ||
                 dr__token_allows(alice, "@metrics"));
    assert_true(dr__token_allows(bob, "anything") && dr__token_allows(bob, "@metrics"));
    dr__tokens_free(&t);
}

/* "*" is for sets; the metrics tell of all clients, and are a right of their own. */
static void a_star_is_no_right_to_metrics(void **state)
{
    (void)state;
    dr__tokens t;
    assert_ok(parse("alice " A " *", &t));
    assert_false(dr__token_allows(&t.all[0], "@metrics"));
    assert_true(dr__token_allows(&t.all[0], "train"));
    dr__tokens_free(&t);
}

static void wrong_lines_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        { "alice", "t:1: a line is" },
        { "\nalice " A, "t:2: a line is" },
        { "alice " A " * more", "t:1: a line is" },
        { "alice short *", "a token has 16 to 255 printable characters, this one 5" },
        { "alice aaaaaaaaaaaaaaa\x01 *", "printable" },
        { "name-name-name-name-name-name-name-name-name-name-name-name-name1 " A " *", "a name has 1 to 63" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dr__tokens t;
        assert_fails(parse(cases[i].text, &t), DR_ERR_FORMAT, cases[i].why);
        assert_null(t.all);
    }
    dr__tokens t;
    assert_int_equal(dr__tokens_parse("a\0b", 3, "t", &t, &err), DR_ERR_FORMAT);
}

static void failing_allocations_leave_nothing(void **state)
{
    (void)state;
    dr_status status = DR_ERR_NOMEM;
    for (long n = 1; status == DR_ERR_NOMEM; n++) {
        dr__tokens t;
        dr__alloc_fail_at(n, false);
        status = parse("a " A " *\nb " B " *", &t);
        dr__alloc_fail_at(0, false);
        if (status == DR_OK)
            dr__tokens_free(&t);
        else
            assert_null(t.all);
    }
    assert_int_equal(status, DR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_are_found_by_their_token),
        cmocka_unit_test(a_star_is_no_right_to_metrics),
        cmocka_unit_test(wrong_lines_are_named),
        cmocka_unit_test(failing_allocations_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
