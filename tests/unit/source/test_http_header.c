/* test_http_header.c: headers of answers. */
#include "unit/cm.h"

#include <string.h>

#include "source/http_header.h"

static dr__http_facts facts_of(const char *const *lines)
{
    dr__http_facts f;
    dr__http_facts_clear(&f);
    for (; *lines; lines++)
        dr__http_facts_line(&f, *lines, strlen(*lines), 784111777);
    return f;
}

static void usual_answers(void **state)
{
    (void)state;
    const char *const lines[] = { "HTTP/1.1 206 Partial Content\r\n",
                                  "Content-Length: 100\r\n",
                                  "content-range:bytes 10-109/5000\r\n",
                                  "ETag:  \"abc\" \r\n",
                                  "Content-Type: image/jpeg\r\n",
                                  "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
                                  "X-Drapps-Applied: 3\r\n",
                                  "x-amz-id: y\r\n",
                                  "\r\n",
                                  NULL };
    char text[16];
    dr__http_facts f = facts_of(lines);
    assert_int_equal(f.status, 206);
    assert_int_equal(f.length, 100);
    assert_true(f.has_range);
    assert_int_equal(f.first, 10);
    assert_int_equal(f.last, 109);
    assert_int_equal(f.range_total, 5000);
    assert_string_equal(f.etag, "\"abc\"");
    assert_string_equal(f.content_type, "image/jpeg");
    assert_int_equal(f.mtime_s, 784111777);
    assert_true(dr__http_extra(f.extra, "x-drapps-applied", text, sizeof text));
    assert_string_equal(text, "3");
    assert_true(dr__http_extra(f.extra, "x-amz-id", text, sizeof text));
    assert_false(dr__http_extra(f.extra, "x-amz", text, sizeof text));
    assert_false(dr__http_extra(f.extra, "x-drapps-applied", text, 1));
}

static void a_new_answer_forgets_the_last(void **state)
{
    (void)state;
    const char *const lines[] = { "HTTP/1.1 302 Found", "Location: http://x/", "ETag: \"a\"", "HTTP/2 200", NULL };
    dr__http_facts f = facts_of(lines);
    assert_int_equal(f.status, 200);
    assert_string_equal(f.etag, "");
    assert_string_equal(f.location, "");
}

static void ranges(void **state)
{
    (void)state;
    static const char *const bad[] = { "bytes 5-4/10",
                                       "bytes 0-9/9",
                                       "bytes 0-/9",
                                       "bytes -9/10",
                                       "bytes",
                                       "bytes ",
                                       "pages 0-1/5",
                                       "bytes 0-1",
                                       "bytes 0-1/",
                                       "bytes 0-1/x",
                                       "bytes */",
                                       "bytes *",
                                       "bytes 0-99999999999999999999999/5",
                                       "bytes 0-1/5x" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char line[128];
        snprintf(line, sizeof line, "Content-Range: %s", bad[i]);
        dr__http_facts f = facts_of((const char *const[]){ line, NULL });
        assert_false(f.has_range);
        assert_true(f.range_total == UINT64_MAX);
    }
    dr__http_facts f = facts_of((const char *const[]){ "Content-Range: bytes */77", NULL });
    assert_false(f.has_range);
    assert_int_equal(f.range_total, 77);
    f = facts_of((const char *const[]){ "Content-Range: bytes 3-4/*", NULL });
    assert_true(f.has_range);
    assert_true(f.range_total == UINT64_MAX);
}

static void retry_after(void **state)
{
    (void)state;
    dr__http_facts f = facts_of((const char *const[]){ "Retry-After: 3", NULL });
    assert_int_equal(f.retry_ns, 3000000000u);
    f = facts_of((const char *const[]){ "Retry-After: Sun, 06 Nov 1994 08:49:47 GMT", NULL });
    assert_int_equal(f.retry_ns, 10000000000u);
    f = facts_of((const char *const[]){ "Retry-After: Sun, 06 Nov 1994 08:49:07 GMT", NULL }); /* it has passed */
    assert_int_equal(f.retry_ns, 0);
    f = facts_of((const char *const[]){ "Retry-After: soon", NULL });
    assert_int_equal(f.retry_ns, 0);
    f = facts_of((const char *const[]){ "Retry-After: 99999999999", NULL });
    assert_int_equal(f.retry_ns, UINT64_C(86400000000000));
}

static void long_values_are_left_out(void **state)
{
    (void)state;
    static char line[5000];
    memset(line, 'a', sizeof line - 1);
    memcpy(line, "ETag: ", 6);
    dr__http_facts f = facts_of((const char *const[]){ line, NULL });
    assert_string_equal(f.etag, "");
    memcpy(line, "X-Foo:", 6);
    f = facts_of((const char *const[]){ line, NULL });
    assert_string_equal(f.extra, "");
}

static void dates(void **state)
{
    (void)state;
    static const char *const bad[] = { "",
                                       "Sun, 06 Nov 1994 08:49:37",
                                       "Sun, 06 Nov 1994 08:49:37 CET",
                                       "Sun, 06 Nix 1994 08:49:37 GMT",
                                       "Sun, 06 Nov 1994 25:49:37 GMT",
                                       "Sunday, 06-Nov-94 08:49:37 GMT",
                                       "Sun, x6 Nov 1994 08:49:37 GMT" };
    int64_t t;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(dr__http_date(bad[i], strlen(bad[i]), &t));
    assert_true(dr__http_date("Thu, 01 Jan 1970 00:00:01 GMT", 29, &t));
    assert_int_equal(t, 1);
    assert_true(dr__http_date("Tue, 29 Feb 2028 12:00:00 GMT", 29, &t));
    assert_int_equal(t, 1835438400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usual_answers), cmocka_unit_test(a_new_answer_forgets_the_last),
        cmocka_unit_test(ranges),        cmocka_unit_test(retry_after),
        cmocka_unit_test(dates),         cmocka_unit_test(long_values_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
