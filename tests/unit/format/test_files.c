/* test_files.c: data sets of files that the caller has listed. */
#include "tree.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "format/dataset_internal.h"

static dr__record record;

static dr_dataset *open_files(const char *const *paths, const int64_t *labels, size_t n)
{
    dr_files files = { .paths = paths, .labels = labels, .n = n, .root = tree_root };
    dr_dataset *set;
    dr_error err;
    if (dr_dataset_from_files(&files, &set, &err) != DR_OK)
        fail_msg("%s", err.text);
    return set;
}

static void files_and_labels(void **state)
{
    (void)state;
    put_text(at("b/x.jpg"), "first");
    put_text(at("a/y.jpg"), "second one");
    const char *paths[] = { at("b/x.jpg"), at("a/y.jpg"), at("b/x.jpg") };
    const int64_t labels[] = { 7, -3, INT64_MAX };
    dr_dataset *set = open_files(paths, labels, 3);
    char key[1024];
    dr_error err;
    assert_int_equal(dr_dataset_size(set), 3);
    assert_int_equal(dr_dataset_fields(set), 3);
    assert_string_equal(dr_dataset_name(set), tree_root);
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(set->def->read(set, i, &record, &err), DR_OK);
        assert_int_equal(record.n_fields, 3);
        assert_memory_equal(record.fields[0].data, i == 1 ? "second one" : "first", i == 1 ? 10 : 5);
        assert_int_equal(record.fields[0].desc.dims[0], i == 1 ? 10 : 5);
        assert_int_equal(*(const int64_t *)(const void *)record.fields[1].data, labels[i]);
        assert_int_equal(dr_dataset_key(set, i, key, sizeof key, &err), DR_OK);
        assert_string_equal(key, paths[i]);
    }
    dr_dataset_unref(&set);
}

static void without_labels(void **state)
{
    (void)state;
    const char *paths[] = { at("nothing.jpg") };
    dr_dataset *set = open_files(paths, NULL, 1);
    dr_error err;
    assert_int_equal(dr_dataset_fields(set), 2);
    assert_int_equal(set->def->read(set, 0, &record, &err), DR_ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, paths[0]));
    dr_dataset_unref(&set);
}

static void other_files_are_another_set(void **state)
{
    (void)state;
    const char *paths[] = { "a.jpg", "b.jpg" }, *turned[] = { "b.jpg", "a.jpg" };
    const int64_t labels[] = { 0, 1 }, others[] = { 0, 2 };
    dr_dataset *a = open_files(paths, labels, 2), *b = open_files(turned, labels, 2), *c = open_files(paths, others, 2);
    assert_true(a->fingerprint != b->fingerprint);
    assert_true(a->fingerprint != c->fingerprint);
    dr_dataset_unref(&a);
    dr_dataset_unref(&b);
    dr_dataset_unref(&c);
}

static void wrong(dr_files files, dr_status want, const char *part)
{
    dr_dataset *set = NULL;
    dr_error err;
    assert_int_equal(dr_dataset_from_files(&files, &set, &err), want);
    if (!strstr(err.text, part))
        fail_msg("%s", err.text);
    assert_null(set);
}

static void wrong_files_are_refused(void **state)
{
    (void)state;
    static char long_path[10000];
    memset(long_path, 'x', sizeof long_path - 1);
    const char *paths[] = { "a.jpg", "b.bmp", "", long_path }, *const *at_empty = paths + 2,
               *const *at_long = paths + 3;
    const char *const extensions[] = { ".jpg", ".png", NULL };
    wrong((dr_files){ .paths = paths }, DR_ERR_ARG, "at least one");
    wrong((dr_files){ .n = 3 }, DR_ERR_ARG, "at least one");
    wrong((dr_files){ .paths = at_empty, .n = 1 }, DR_ERR_ARG, "got 0");
    wrong((dr_files){ .paths = at_long, .n = 1 }, DR_ERR_ARG, "got 9999");
    wrong((dr_files){ .paths = paths, .n = 2, .extensions = extensions }, DR_ERR_UNSUPPORTED, "b.bmp");
    wrong((dr_files){ .paths = paths, .n = 2, .extensions = extensions }, DR_ERR_UNSUPPORTED, ".jpg, .png");
}

/* For experiments: as it was when the set was opened. */
static void reads_can_be_delayed(void **state)
{
    (void)state;
    put_text(at("x.jpg"), "text");
    const char *paths[] = { at("x.jpg") };
    dr_files files = { .paths = paths, .n = 1, .root = tree_root };
    static const struct {
        const char *text;
        long us;
    } rows[] = { { "30000", 30000 }, { "1000000000", 60000000 }, { "-5", 0 }, { "", 0 } };
    for (size_t i = 0; i < DR_COUNT(rows); i++) {
        dr_dataset *set = NULL;
        setenv("DRAPPS_READ_DELAY_US", rows[i].text, 1);
        assert_int_equal(dr_dataset_from_files(&files, &set, NULL), DR_OK);
        unsetenv("DRAPPS_READ_DELAY_US");
        assert_int_equal(set->read_delay_us, rows[i].us);
        const uint64_t start = dr__now_ns();
        if (rows[i].us < 60000000)
            assert_int_equal(dr__dataset_read(set, 0, &record, NULL), DR_OK);
        if (i == 0)
            assert_true(dr__now_ns() - start >= 30000000u);
        dr_dataset_unref(&set);
    }
}

static void opening_survives_lack_of_memory(void **state)
{
    (void)state;
    const char *paths[] = { "x/a.jpg", "y/b.jpg" };
    const int64_t labels[] = { 1, 2 };
    dr_files files = { .paths = paths, .labels = labels, .n = 2, .root = tree_root };
    for (long n = 1;; n++) {
        dr_dataset *set = NULL;
        dr__alloc_fail_at(n, n % 2);
        dr_status status = dr_dataset_from_files(&files, &set, NULL);
        long used = dr__alloc_fail_at(0, false);
        if (status == DR_OK)
            dr_dataset_unref(&set);
        else
            assert_int_equal(status, DR_ERR_NOMEM);
        if (used < n)
            break;
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_make, tree_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(files_and_labels),        TEST(without_labels),       TEST(other_files_are_another_set),
        TEST(wrong_files_are_refused), TEST(reads_can_be_delayed), TEST(opening_survives_lack_of_memory),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    dr__record_free(&record);
    return failed;
}
