/* test_s3.c: listings and errors of S3, and the files of AWS's tools. */
#include "unit/cm.h"

#include "unit/format/tree.h"

#include "base/alloc.h"
#include "source/aws_config.h"
#include "source/s3_xml.h"

struct seen {
    char text[512];
    int stop_after;
};

static dr_status take(void *user, const dr__s3_entry *e, dr_error *err)
{
    struct seen *s = user;
    const size_t n = strlen(s->text);
    (void)err;
    snprintf(s->text + n, sizeof s->text - n, "%s%s %lld %s\n", e->is_prefix ? "D " : "F ", e->key, (long long)e->size,
             e->etag);
    return s->stop_after && !--s->stop_after ? DR_END : DR_OK;
}

static const char listing[] =
    "<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>b</Name>"
    "<Prefix>p/</Prefix><IsTruncated>true</IsTruncated><NextContinuationToken>a+b/=&amp;</NextContinuationToken>"
    "<Contents><Key>p/x&amp;y &#34;z&#x22; "
    "&#233;.jpg</Key><ETag>&quot;e1&quot;</ETag><Size>17</Size><Owner><ID>k</ID></Owner>"
    "</Contents><Contents><Key>p/2</Key><Size>x</Size></Contents>"
    "<CommonPrefixes><Prefix>p/d/</Prefix></CommonPrefixes></ListBucketResult>";

static void listings_are_read(void **state)
{
    (void)state;
    struct seen s = { "" };
    dr__s3_page page = { .take = take, .user = &s };
    dr_error err;
    assert_ok(dr__s3_list_parse(listing, sizeof listing - 1, &page, &err));
    assert_string_equal(s.text, "F p/x&y \"z\" \xc3\xa9.jpg 17 \"e1\"\nF p/2 -1 \nD p/d/ -1 \n");
    assert_true(page.truncated);
    assert_string_equal(page.next.text, "a+b/=&");
    s = (struct seen){ .stop_after = 1 };
    assert_int_equal(dr__s3_list_parse(listing, sizeof listing - 1, &page, &err), DR_END);
    dr__free(page.next.text);
}

static void what_ends_early_is_an_error(void **state)
{
    (void)state;
    dr_error err;
    for (size_t n = 0; n < sizeof listing - 1; n++) {
        struct seen s = { "" };
        dr__s3_page page = { .take = take, .user = &s };
        assert_int_equal(dr__s3_list_parse(listing, n, &page, &err), DR_ERR_FORMAT);
        dr__free(page.next.text);
    }
}

static void errors_are_read(void **state)
{
    (void)state;
    const char text[] = "<Error><Code>AccessDenied</Code><Message>no &lt;way&gt;</Message><A><B>1</B></A></Error>";
    char out[32];
    assert_true(dr__s3_element(text, sizeof text - 1, "Code", out, sizeof out));
    assert_string_equal(out, "AccessDenied");
    assert_true(dr__s3_element(text, sizeof text - 1, "Message", out, sizeof out));
    assert_string_equal(out, "no <way>");
    assert_false(dr__s3_element(text, sizeof text - 1, "A", out, sizeof out));
    assert_false(dr__s3_element(text, sizeof text - 1, "Code", out, 4));
    assert_false(dr__s3_element("sorry", 5, "Code", out, sizeof out));
}

static const char file[] =
    "# mine\n[default]\naws_access_key_id = AK1 \nregion=eu-west-1\ns3 =\n  addressing_style = path\n"
    "  x = 1\nregion = eu-west-2\n\n[profile dev]\nregion = us-west-2\n; c\n[dev]\nregion = no\n";

static void check_value(bool config, const char *profile, const char *below, const char *key, const char *want,
                        bool found)
{
    bool is_there;
    char *value = dr__aws_profile_value(file, sizeof file - 1, config, profile, below, key, &is_there);
    assert_int_equal(is_there, found);
    if (want)
        assert_string_equal(value, want);
    else
        assert_null(value);
    dr__free(value);
}

static void profiles_are_read(void **state)
{
    (void)state;
    check_value(false, "default", NULL, "aws_access_key_id", "AK1", true);
    check_value(true, "default", NULL, "region", "eu-west-2", true);
    check_value(true, "default", "s3", "addressing_style", "path", true);
    check_value(true, "default", NULL, "addressing_style", NULL, true);
    check_value(true, "dev", NULL, "region", "us-west-2", true); /* "[profile dev]" there */
    check_value(false, "dev", NULL, "region", "no", true);
    check_value(true, "other", NULL, "region", NULL, false);
}

static void the_environment_comes_first(void **state)
{
    (void)state;
    dr__aws_config c;
    dr_error err;
    put_text(at("credentials"),
             "[default]\naws_access_key_id = A\naws_secret_access_key = B\n[two]\naws_access_key_id = C\n"
             "aws_secret_access_key = D\naws_session_token = E\n");
    put_text(at("config"), "[default]\nregion = r1\n[profile two]\nregion = r2\nendpoint_url = http://h:1\n");
    static const char *const names[] = { "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
                                         "AWS_SESSION_TOKEN", "AWS_PROFILE",
                                         "AWS_REGION",        "AWS_DEFAULT_REGION",
                                         "AWS_ENDPOINT_URL",  "AWS_ENDPOINT_URL_S3" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    setenv("AWS_SHARED_CREDENTIALS_FILE", at("credentials"), 1);
    setenv("AWS_CONFIG_FILE", at("config"), 1);
    assert_ok(dr__aws_config_find(NULL, "x", &c, &err));
    assert_string_equal(c.key, "A");
    assert_string_equal(c.secret, "B");
    assert_string_equal(c.region, "r1");
    assert_null(c.endpoint);
    dr__aws_config_free(&c);
    setenv("AWS_ACCESS_KEY_ID", "F", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "G", 1);
    setenv("AWS_REGION", "r3", 1);
    assert_ok(dr__aws_config_find(NULL, "x", &c, &err));
    assert_string_equal(c.key, "F");
    assert_null(c.session);
    assert_string_equal(c.region, "r3");
    dr__aws_config_free(&c);
    assert_ok(dr__aws_config_find("two", "x", &c, &err)); /* what the caller names is more */
    assert_string_equal(c.key, "C");
    assert_string_equal(c.session, "E");
    assert_string_equal(c.endpoint, "http://h:1");
    dr__aws_config_free(&c);
    assert_ok(dr__aws_config_find("anonymous", "x", &c, &err));
    assert_null(c.key);
    dr__aws_config_free(&c);
    assert_int_equal(dr__aws_config_find("three", "s3://b/k", &c, &err), DR_ERR_ARG);
    assert_non_null(
        strstr(err.text, "s3://b/k: credentials must be \"anonymous\" or a profile of ~/.aws, got \"three\""));
    unsetenv("AWS_ACCESS_KEY_ID");
    unlink(at("credentials"));
    assert_int_equal(dr__aws_config_find(NULL, "s3://b/k", &c, &err), DR_ERR_ARG);
    assert_non_null(strstr(err.text, "no credentials"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listings_are_read),
        cmocka_unit_test(what_ends_early_is_an_error),
        cmocka_unit_test(errors_are_read),
        cmocka_unit_test(profiles_are_read),
        cmocka_unit_test_setup_teardown(the_environment_comes_first, tree_make, tree_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
