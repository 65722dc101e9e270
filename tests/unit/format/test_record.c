/* test_record.c: the memory of a sample, and reading whole files into it. */
#include "tree.h"

#include "base/alloc.h"
#include "base/grow.h"
#include "format/dataset_internal.h"

static void values_are_aligned_and_padded(void **state)
{
    (void)state;
    dr__record r;
    dr__record_init(&r);
    assert_int_equal(dr__record_reset(&r, 300, NULL), DR_OK);
    uint8_t *a = dr__record_take(&r, 100), *b = dr__record_take(&r, 200);
    memset(a, 1, 100);
    memset(b, 2, 200);
    assert_int_equal((uintptr_t)a % 64, 0);
    assert_int_equal((uintptr_t)b % 64, 0);
    for (int i = 0; i < 64; i++) {
        assert_int_equal(a[100 + i], 0);
        assert_int_equal(b[200 + i], 0);
    }
    dr__record_free(&r);
}

static void taking_more_than_reserved_fails(void **state)
{
    (void)state;
    dr__record r;
    dr__record_init(&r);
    assert_null(dr__record_take(&r, 1));
    assert_int_equal(dr__record_reset(&r, 10, NULL), DR_OK);
    assert_null(dr__record_take(&r, 1 << 20));
    assert_null(dr__record_take(&r, SIZE_MAX));
    dr__record_free(&r);
}

static void a_limit_is_kept_and_names_the_file(void **state)
{
    (void)state;
    dr__record r;
    dr_error err;
    void *data;
    size_t size;
    put_text(at("large"), "");
    assert_int_equal(truncate(at("large"), 70 << 20), 0);
    dr__record_init(&r);
    dr__source_dir *dir;
    assert_int_equal(dr__source_dir_open(NULL, NULL, &dir, NULL), DR_OK);
    r.max_bytes = 64 << 20;
    assert_int_equal(dr__record_read_file(&r, dir, at("large"), 0, &data, &size, &err), DR_ERR_LIMIT);
    expect_in(err.text, "/large: a sample of 73400321 encoded bytes; the memory limit allows 67108864");
    assert_null(r.block);
    r.max_bytes = 128 << 20;
    assert_int_equal(dr__record_read_file(&r, dir, at("large"), 0, &data, &size, &err), DR_OK);
    assert_int_equal(size, 70 << 20);
    dr__source_dir_close(&dir);
    dr__record_free(&r);
}

static void one_large_sample_is_forgotten(void **state)
{
    (void)state;
    const size_t large = 20u << 20;
    dr__record r;
    dr__record_init(&r);
    assert_int_equal(dr__record_reset(&r, large, NULL), DR_OK);
    for (int i = 1; i < DR__SHRINK_AFTER; i++)
        assert_int_equal(dr__record_reset(&r, 1000, NULL), DR_OK);
    assert_int_equal(dr__record_reset(&r, large / 2, NULL), DR_OK); /* not the only one: counted from here */
    for (int i = 1; i < DR__SHRINK_AFTER; i++)
        assert_int_equal(dr__record_reset(&r, 1000, NULL), DR_OK);
    assert_true(r.block_cap >= large);
    assert_int_equal(dr__record_reset(&r, 1000, NULL), DR_OK);
    assert_true(r.block_cap < 1u << 20);
    assert_non_null(dr__record_take(&r, 1000));
    dr__record_free(&r);
}

static void memory_stays_warm(void **state)
{
    (void)state;
    dr__record r;
    dr__record_init(&r);
    assert_int_equal(dr__record_reset(&r, 100000, NULL), DR_OK);
    const uint8_t *block = r.block;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(dr__record_reset(&r, (size_t)(1000 * i), NULL), DR_OK);
        assert_ptr_equal(r.block, block);
    }
    dr__record_free(&r);
}

static void expect_file(dr__record *r, const char *name, const void *want, size_t want_size)
{
    void *data;
    size_t size;
    dr_error err;
    dr__source_dir *dir;
    assert_int_equal(dr__source_dir_open(NULL, NULL, &dir, NULL), DR_OK);
    assert_int_equal(dr__record_read_file(r, dir, at("%s", name), 16, &data, &size, &err), DR_OK);
    dr__source_dir_close(&dir);
    assert_int_equal(size, want_size);
    assert_memory_equal(data, want, want_size);
    for (int i = 0; i < 64; i++)
        assert_int_equal(((uint8_t *)data)[size + (size_t)i], 0);
}

static void whole_files_are_read(void **state)
{
    (void)state;
    static uint8_t big[300000];
    for (size_t i = 0; i < sizeof big; i++)
        big[i] = (uint8_t)(i * 31 + 1);
    put_file(at("big"), big, sizeof big);
    put_file(at("small"), big, 3);
    put_file(at("empty"), big, 0);
    dr__record r;
    dr__record_init(&r);
    expect_file(&r, "small", big, 3);
    expect_file(&r, "big", big, sizeof big);
    expect_file(&r, "empty", big, 0);
    dr__record_free(&r);
}

/* The kernel says size 0 for files in /proc: as a file that grew after it was asked. */
static void file_longer_than_announced(void **state)
{
    (void)state;
    void *data;
    size_t size;
    dr__record r;
    dr__record_init(&r);
    if (access("/proc/self/status", R_OK))
        skip();
    dr__source_dir *dir;
    assert_int_equal(dr__source_dir_open(NULL, NULL, &dir, NULL), DR_OK);
    assert_int_equal(dr__record_read_file(&r, dir, "/proc/self/status", 0, &data, &size, NULL), DR_OK);
    dr__source_dir_close(&dir);
    assert_true(size > 100);
    expect_in((const char *)data, "VmRSS");
    dr__record_free(&r);
}

static void errors_name_folder_and_path(void **state)
{
    (void)state;
    void *data;
    size_t size;
    dr_error err;
    dr__record r;
    dr__record_init(&r);
    put_text(at("f"), "12345");
    char want[4400];
    dr__source_dir *dir;
    assert_int_equal(dr__source_dir_open(tree_root, NULL, &dir, NULL), DR_OK);
    assert_int_equal(dr__record_read_file(&r, dir, "a/b.jpg", 0, &data, &size, &err), DR_ERR_NOT_FOUND);
    snprintf(want, sizeof want, "%s/a/b.jpg: cannot open: No such file", tree_root);
    expect_in(err.text, want);
    dr__alloc_fail_at(1, true);
    assert_int_equal(dr__record_read_file(&r, dir, "f", 0, &data, &size, &err), DR_ERR_NOMEM);
    dr__alloc_fail_at(0, false);
    snprintf(want, sizeof want, "%s/f: out of memory", tree_root);
    expect_in(err.text, want);
    dr__source_dir_close(&dir);
    dr__record_free(&r);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_make, tree_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(values_are_aligned_and_padded),      TEST(taking_more_than_reserved_fails), TEST(memory_stays_warm),
        TEST(a_limit_is_kept_and_names_the_file), TEST(one_large_sample_is_forgotten),   TEST(whole_files_are_read),
        TEST(file_longer_than_announced),         TEST(errors_name_folder_and_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
