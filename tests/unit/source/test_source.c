/* test_source.c: bytes by name and range. */
#include "../format/tree.h"

#include "base/alloc.h"
#include "source/file.h"
#include "source/source.h"

static void file_is_read_by_range(void **state)
{
    (void)state;
    dr__source *s;
    dr_error err;
    char buf[16];
    uint64_t size;
    size_t got;
    put_text(at("f"), "0123456789");
    assert_int_equal(dr__source_open(at("f"), &s, &err), DR_OK);
    assert_int_equal(dr__source_size(s, &size, &err), DR_OK);
    assert_int_equal(size, 10);
    assert_int_equal(dr__source_read_at(s, buf, 4, 3, &got, &err), DR_OK);
    assert_int_equal(got, 4);
    assert_memory_equal(buf, "3456", 4);
    assert_int_equal(dr__source_read_at(s, buf, 16, 8, &got, &err), DR_OK);
    assert_int_equal(got, 2); /* it ends there */
    assert_int_equal(dr__source_read_at(s, buf, 1, 100, &got, &err), DR_OK);
    assert_int_equal(got, 0);
    assert_int_equal(dr__source_read_at(s, buf, 1, UINT64_MAX, &got, &err), DR_ERR_ARG);
    assert_true(s->version > 0);
    dr__source_close(&s);
    assert_null(s);
    dr__source_close(&s);
}

static uint64_t version_of(const char *path)
{
    dr__source *s;
    assert_int_equal(dr__source_open(path, &s, NULL), DR_OK);
    const uint64_t version = s->version;
    dr__source_close(&s);
    return version;
}

/* Same size and time of modification, as rsync -a and touch -r leave them. */
static void version_changes_with_the_file(void **state)
{
    (void)state;
    struct stat st;
    put_text(at("f"), "0123456789");
    const uint64_t first = version_of(at("f"));
    assert_true(first == version_of(at("f")));
    assert_int_equal(stat(at("f"), &st), 0);
    const struct timespec times[2] = { st.st_atim, st.st_mtim };
    put_text(at("g"), "9876543210");
    assert_int_equal(utimensat(AT_FDCWD, at("g"), times, 0), 0);
    assert_int_equal(rename(at("g"), at("f")), 0); /* another file */
    const uint64_t second = version_of(at("f"));
    assert_true(second != first);
    usleep(20000);                   /* the clock of a file system may tick so rarely */
    put_text(at("f"), "abcdefghij"); /* the same file */
    assert_int_equal(utimensat(AT_FDCWD, at("f"), times, 0), 0);
    assert_true(version_of(at("f")) != second);
}

static void errors_name_path_and_reason(void **state)
{
    (void)state;
    dr__source *s;
    dr_error err;
    assert_int_equal(dr__source_open(at("missing"), &s, &err), DR_ERR_NOT_FOUND);
    expect_in(err.text, "/missing: cannot open: No such file");
    assert_int_equal(dr__source_open(tree_root, &s, &err), DR_ERR_IO);
    expect_in(err.text, "is a folder, not a file");
    assert_int_equal(mkfifo(at("pipe"), 0600), 0);
    assert_int_equal(dr__source_open(at("pipe"), &s, &err), DR_ERR_IO); /* and does not wait for a writer */
    expect_in(err.text, "pipe");
    assert_int_equal(dr__source_open("gopher://host/x", &s, &err), DR_ERR_UNSUPPORTED);
    expect_in(err.text, "gopher://");
}

static void memory_is_a_source(void **state)
{
    (void)state;
    dr__source *s;
    dr_error err;
    char buf[8];
    size_t got;
    uint64_t size;
    assert_int_equal(dr__source_memory("abcdef", 6, "bytes", &s, &err), DR_OK);
    assert_int_equal(dr__source_size(s, &size, &err), DR_OK);
    assert_int_equal(size, 6);
    assert_int_equal(dr__source_read_at(s, buf, 8, 4, &got, &err), DR_OK);
    assert_int_equal(got, 2);
    assert_memory_equal(buf, "ef", 2);
    assert_int_equal(dr__source_read_at(s, buf, 8, UINT64_MAX, &got, &err), DR_OK);
    assert_int_equal(got, 0);
    dr__source_close(&s);
}

static void open_survives_lack_of_memory(void **state)
{
    (void)state;
    dr__source *s;
    dr_error err;
    put_text(at("f"), "x");
    for (long n = 1;; n++) {
        dr__alloc_fail_at(n, true);
        dr_status status = dr__source_open(at("f"), &s, &err);
        dr__alloc_fail_at(0, false);
        if (status == DR_OK) {
            assert_true(n > 1);
            dr__source_close(&s);
            return;
        }
        assert_int_equal(status, DR_ERR_NOMEM);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_make, tree_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(file_is_read_by_range), TEST(version_changes_with_the_file), TEST(errors_name_path_and_reason),
        TEST(memory_is_a_source),    TEST(open_survives_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
