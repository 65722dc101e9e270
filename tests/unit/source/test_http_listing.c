/* test_http_listing.c: URLs, listings of web servers, manifests. */
#include "unit/cm.h"

#include "base/alloc.h"
#include "source/http_listing.h"
#include "source/url.h"

struct seen {
    dr__source_lister lister;
    char text[512];
};

static dr_status take(dr__source_lister *lister, const dr__source_entry *e, dr_error *err)
{
    struct seen *s = (struct seen *)lister;
    const size_t n = strlen(s->text);
    (void)err;
    snprintf(s->text + n, sizeof s->text - n, "%s%s|", e->name, e->is_dir ? "/" : "");
    return DR_OK;
}

static const char *html(const char *text)
{
    static struct seen s;
    size_t n;
    s = (struct seen){ .lister.take = take };
    assert_int_equal(dr__http_listing_html(text, strlen(text), "/data/x/", &s.lister, &n, NULL), DR_OK);
    return s.text;
}

static void listings_of_servers(void **state)
{
    (void)state;
    /* nginx */
    assert_string_equal(html("<h1>Index of /</h1><a href=\"../\">../</a>\n<a href=\"ant/\">ant/</a> -\n"
                             "<a href=\"a%20b%26c.jpg\">a b&amp;c.jpg</a> 5\n"),
                        "ant/|a b&c.jpg|");
    /* Apache: links that sort, and the folder above by its path */
    assert_string_equal(html("<a href=\"?C=N;O=D\">Name</a><A HREF=\"/data/\">Parent</A><a href='b.png'>"), "b.png|");
    /* whole paths, "./" (rclone, Caddy), references */
    assert_string_equal(html("<a href=\"/data/x/one/\"><a href=\"./two\"><a href=three><a href=\"f&amp;g\">"),
                        "one/|two|three|f&g|");
    /* what would lead elsewhere */
    assert_string_equal(
        html("<a href=\"..%2f..%2fetc\"><a href=\"http://evil/x\"><a href=\"/etc/passwd\"><a href=\"%2e%2e\">"
             "<a href=\"\"><a href=\"a/b\"><a href=\"javascript:x\"><a href=\"n%00l\"><a href=\"#top\">"),
        "");
    assert_string_equal(html("<a href=\"unfinished"), "");
    assert_string_equal(html("href"), "");
}

static void listings_in_json(void **state)
{
    (void)state;
    struct seen s = { .lister.take = take };
    size_t n;
    dr_error err;
    const char good[] = "[{\"name\":\"d\",\"type\":\"directory\"},{\"name\":\"f.jpg\",\"type\":\"file\",\"size\":3},"
                        "{\"name\":\"../x\",\"type\":\"file\"},{\"type\":\"file\"},7]";
    assert_ok(dr__http_listing_json(good, sizeof good - 1, &s.lister, &n, &err));
    assert_string_equal(s.text, "d/|f.jpg|");
    assert_int_equal(n, 2);
    assert_int_equal(dr__http_listing_json("{}", 2, &s.lister, &n, &err), DR_ERR_FORMAT);
    assert_int_equal(dr__http_listing_json("[", 1, &s.lister, &n, &err), DR_ERR_FORMAT);
}

static void manifests(void **state)
{
    (void)state;
    dr__name_tree tree = { 0 };
    struct seen s = { .lister.take = take };
    dr_error err;
    const char text[] = "b/2.jpg\r\n\na/1.jpg\na.txt\n{\"path\":\"b/sub/3.jpg\",\"size\":5}\nb/2.jpg\n";
    assert_ok(dr__http_manifest(text, sizeof text - 1, "m", &tree, &err));
    assert_int_equal(tree.n, 4);
    assert_ok(dr__name_tree_list(&tree, "", &s.lister, &err));
    assert_string_equal(s.text, "a/|a.txt|b/|");
    s.text[0] = 0;
    assert_ok(dr__name_tree_list(&tree, "b", &s.lister, &err));
    assert_string_equal(s.text, "2.jpg|sub/|");
    assert_int_equal(dr__name_tree_list(&tree, "c", &s.lister, &err), DR_ERR_NOT_FOUND);
    assert_int_equal(dr__name_tree_list(&tree, "a.txt", &s.lister, &err), DR_ERR_NOT_FOUND);
    dr__name_tree_free(&tree);
    static const char *const bad[] = { "a\n../x\n", "a\n/etc/passwd\n", "a\nx//y\n", "a\n{\"name\":\"x\"}\n", "a\n{\n",
                                       "a\n./b" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(dr__http_manifest(bad[i], strlen(bad[i]), "m", &tree, &err), DR_ERR_FORMAT);
        assert_non_null(strstr(err.text, "m: line 2: must be"));
        dr__name_tree_free(&tree);
    }
}

static void urls(void **state)
{
    (void)state;
    dr__url_parts p;
    dr__text t = { 0 };
    assert_true(dr__url_split("http://me:pw@host:81/a/b?c=d#e", &p));
    assert_memory_equal(p.scheme, "http", p.scheme_len);
    assert_int_equal(p.user_len, 5);
    assert_int_equal(p.host_len, 7);
    assert_memory_equal(p.host, "host:81", 7);
    assert_int_equal(p.path_len, 4);
    assert_int_equal(p.query_len, 4);
    assert_true(dr__url_split("https://[::1]:8", &p));
    assert_int_equal(p.path_len, 0);
    assert_false(dr__url_split("http://", &p));
    assert_false(dr__url_split("http:///x", &p));
    assert_false(dr__url_split("http://a b/", &p));
    assert_false(dr__url_split("x", &p));
    dr__url_encode(&t, "a b/\xc3\xa9+&%", 9, false);
    assert_string_equal(t.text, "a%20b/%C3%A9%2B%26%25");
    t.n = 0;
    dr__url_encode(&t, "a/b", 3, true);
    assert_string_equal(t.text, "a%2Fb");
    t.n = 0;
    dr__url_clean(&t, "http://h/a b%20c\xc3", 17);
    assert_string_equal(t.text, "http://h/a%20b%20c%C3");
    dr__free(t.text);
    char text[] = "a%20b%2Fc%zz%4";
    text[dr__url_decode(text, strlen(text))] = 0;
    assert_string_equal(text, "a b/c%zz%4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listings_of_servers),
        cmocka_unit_test(listings_in_json),
        cmocka_unit_test(manifests),
        cmocka_unit_test(urls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
