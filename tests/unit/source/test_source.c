/* test_source.c: bytes by name and range. */
#include "unit/cm.h"

#include "unit/format/tree.h"

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
    assert_int_equal(dr__source_open(at("f"), NULL, &s, &err), DR_OK);
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
    assert_true(s->facts.version > 0);
    dr__source_close(&s);
    assert_null(s);
    dr__source_close(&s);
}

static uint64_t version_of(const char *path)
{
    dr__source *s;
    assert_int_equal(dr__source_open(path, NULL, &s, NULL), DR_OK);
    const uint64_t version = s->facts.version;
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
    assert_int_equal(dr__source_open(at("missing"), NULL, &s, &err), DR_ERR_NOT_FOUND);
    expect_in(err.text, "/missing: cannot open: No such file");
    assert_int_equal(dr__source_open(tree_root, NULL, &s, &err), DR_ERR_IO);
    expect_in(err.text, "is a folder, not a file");
    assert_int_equal(mkfifo(at("pipe"), 0600), 0);
    assert_int_equal(dr__source_open(at("pipe"), NULL, &s, &err), DR_ERR_IO); /* and does not wait for a writer */
    expect_in(err.text, "pipe");
    assert_int_equal(dr__source_open("gopher://host/x", NULL, &s, &err), DR_ERR_UNSUPPORTED);
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
        dr_status status = dr__source_open(at("f"), NULL, &s, &err);
        dr__alloc_fail_at(0, false);
        if (status == DR_OK) {
            assert_true(n > 1);
            dr__source_close(&s);
            return;
        }
        assert_int_equal(status, DR_ERR_NOMEM);
    }
}

/* Memory of the test, which a whole file is read into. */
struct text_target {
    dr__source_target head;
    uint8_t text[64];
};

static uint8_t *reserve(dr__source_target *target, size_t size, size_t keep, dr_status *status, dr_error *err)
{
    struct text_target *t = (struct text_target *)target;
    assert_true(keep <= size);
    if (size <= sizeof t->text)
        return t->text;
    *status = dr__fail(err, DR_ERR_LIMIT, "too long for the test");
    return NULL;
}

static void a_directory_reads_whole_files(void **state)
{
    (void)state;
    dr__source_dir *dir;
    dr_error err;
    struct text_target target = { .head = { reserve } };
    char text[4400];
    size_t size;
    put_text(at("a/f"), "0123456789");
    put_text(at("a/long"), "0123456789012345678901234567890123456789012345678901234567890123456789");
    assert_int_equal(symlink("f", at("a/link")), 0);
    assert_int_equal(mkfifo(at("a/pipe"), 0600), 0);
    assert_ok(dr__source_dir_open(at("a"), NULL, &dir, &err));
    for (int i = 0; i < 3; i++) { /* below it, through a link, and by an absolute path */
        snprintf(text, sizeof text, "%s", i == 2 ? at("a/f") : i ? "link" : "f");
        assert_ok(dr__source_dir_get(dir, text, &target.head, &size, &err));
        assert_int_equal(size, 10);
        assert_memory_equal(target.text, "0123456789", 10);
    }
    assert_fails(dr__source_dir_get(dir, "g", &target.head, &size, &err), DR_ERR_NOT_FOUND, "/a/g: cannot open");
    assert_fails(dr__source_dir_get(dir, "pipe", &target.head, &size, &err), DR_ERR_IO, "/a/pipe: is a pipe");
    assert_fails(dr__source_dir_get(dir, "", &target.head, &size, &err), DR_ERR_NOT_FOUND, "cannot open");
    assert_fails(dr__source_dir_get(dir, "long", &target.head, &size, &err), DR_ERR_LIMIT, "/a/long: too long");
    assert_fails(dr__source_dir_get(dir, "gopher://host/x", &target.head, &size, &err), DR_ERR_UNSUPPORTED,
                 "gopher://");
    dr__source_dir_close(&dir);
    assert_null(dir);
    assert_fails(dr__source_dir_open(at("missing"), NULL, &dir, &err), DR_ERR_NOT_FOUND, "cannot open folder");
    assert_fails(dr__source_dir_open("gopher://host", NULL, &dir, &err), DR_ERR_UNSUPPORTED, "gopher://");
}

static void a_directory_reads_ranges(void **state)
{
    (void)state;
    dr__source_dir *dir;
    dr__source_facts facts;
    dr_error err;
    struct text_target target = { .head = { reserve } };
    size_t got;
    put_text(at("a/f"), "0123456789");
    assert_ok(dr__source_dir_open(at("a"), NULL, &dir, &err));
    assert_ok(dr__source_dir_stat(dir, "f", &facts, &err));
    assert_ok(dr__source_dir_get_range(dir, "f", facts.version, 3, 4, &target.head, &got, &err));
    assert_int_equal(got, 4);
    assert_memory_equal(target.text, "3456", 4);
    assert_ok(dr__source_dir_get_range(dir, at("a/f"), 0, 8, 4, &target.head, &got, &err));
    assert_int_equal(got, 2);
    assert_memory_equal(target.text, "89", 2);
    assert_ok(dr__source_dir_get_range(dir, "f", 0, 20, 4, &target.head, &got, &err));
    assert_int_equal(got, 0);
    assert_fails(dr__source_dir_get_range(dir, "f", facts.version + 1, 0, 4, &target.head, &got, &err), DR_ERR_STATE,
                 "/a/f: was changed");
    assert_fails(dr__source_dir_get_range(dir, "f", 0, UINT64_MAX, 4, &target.head, &got, &err), DR_ERR_ARG, "/a/f: ");
    assert_fails(dr__source_dir_get_range(dir, "g", 0, 0, 4, &target.head, &got, &err), DR_ERR_NOT_FOUND, "/a/g: ");
    dr__source_dir_close(&dir);
}

static dr_status get_and_change(dr__source_dir *dir, const char *path, dr__source_target *target, size_t *size,
                                dr_error *err)
{
    dr_status status = dr__source_file.get(dir, path, target, size, err);
    put_text(at("a/f"), "changed while it was read");
    return status;
}

/* By the source's own calls, and by those that every source has. */
static void a_directory_reads_ranges_of_a_version(void **state)
{
    (void)state;
    dr__source_dir *dir;
    dr_error err;
    struct text_target target = { .head = { reserve } };
    dr_source_def plain = dr__source_file, changing = dr__source_file;
    plain.get_versioned = changing.get_versioned = NULL;
    plain.get_ranges = NULL;
    changing.get = get_and_change;
    put_text(at("a/f"), "");
    assert_ok(dr__source_dir_open(at("a"), NULL, &dir, &err));
    for (int i = 0; i < 2; i++) {
        const dr__byte_ranges ranges = { .n = 2, .at = { { 1, 2 }, { 6, 3 } } }, far = { .n = 1, .at = { { 8, 3 } } };
        dr__source_facts facts;
        size_t size;
        uint64_t version;
        uint8_t to[5];
        dir->def = i ? &plain : &dr__source_file;
        put_text(at("a/f"), "0123456789");
        assert_ok(dr__source_dir_stat(dir, "f", &facts, &err));
        assert_ok(dr__source_dir_get_versioned(dir, "f", &target.head, &size, &version, &err));
        assert_int_equal(size, 10);
        assert_true(version && version == facts.version);
        assert_ok(dr__source_dir_get_ranges(dir, "f", version, &ranges, to, &err));
        assert_memory_equal(to, "12678", 5);
        assert_ok(dr__source_dir_get_ranges(dir, at("a/f"), 0, &ranges, to, &err));
        assert_fails(dr__source_dir_get_ranges(dir, "f", version, &far, to, &err), DR_ERR_FORMAT, "2 there");
        assert_fails(dr__source_dir_get_ranges(dir, "f", version + 1, &ranges, to, &err), DR_ERR_STATE,
                     "/a/f: was changed");
        assert_fails(dr__source_dir_get_ranges(dir, "g", 0, &ranges, to, &err), DR_ERR_NOT_FOUND, "/a/g: ");
        assert_fails(dr__source_dir_get_versioned(dir, "g", &target.head, &size, &version, &err), DR_ERR_NOT_FOUND,
                     "cannot");
        unlink(at("a/f")); /* another file by the same name */
        put_text(at("a/f"), "9876543210");
        assert_fails(dr__source_dir_get_ranges(dir, "f", version, &ranges, to, &err), DR_ERR_STATE,
                     "/a/f: was changed");
    }
    size_t size;
    uint64_t version;
    dir->def = &changing;
    assert_ok(dr__source_dir_get_versioned(dir, "f", &target.head, &size, &version, &err));
    assert_int_equal(version, 0);
    dir->def = &dr__source_file;
    dr__source_dir_close(&dir);
}

static void facts_of_a_path(void **state)
{
    (void)state;
    dr__source_dir *dir;
    dr__source_facts file, same, folder, pipe;
    dr_error err;
    put_text(at("f"), "0123456789");
    assert_int_equal(mkfifo(at("pipe"), 0600), 0);
    assert_ok(dr__source_dir_open(tree_root, NULL, &dir, &err));
    assert_ok(dr__source_dir_stat(dir, "f", &file, &err));
    assert_ok(dr__source_stat(at("f"), &same, &err));
    assert_ok(dr__source_dir_stat(dir, "", &folder, &err));
    assert_ok(dr__source_dir_stat(dir, "pipe", &pipe, &err));
    assert_int_equal(file.kind, DR__SOURCE_FILE);
    assert_int_equal(file.size, 10);
    assert_true(file.mtime_ns > 0 && file.version && file.version == same.version);
    assert_int_equal(folder.kind, DR__SOURCE_DIR);
    assert_true(memcmp(folder.id, file.id, sizeof folder.id) != 0);
    assert_int_equal(pipe.kind, DR__SOURCE_OTHER);
    assert_fails(dr__source_dir_stat(dir, "g", &file, &err), DR_ERR_NOT_FOUND, "cannot stat g");
    dr__source_dir_close(&dir);
}

struct counter {
    dr__source_lister lister;
    int n_files, n_dirs, n_links, stop_after;
    bool refuse;
};

static bool begin(dr__source_lister *lister, const dr__source_facts *facts)
{
    assert_int_equal(facts->kind, DR__SOURCE_DIR);
    return !((struct counter *)lister)->refuse;
}

static dr_status count(dr__source_lister *lister, const dr__source_entry *entry, dr_error *err)
{
    struct counter *c = (struct counter *)lister;
    (void)err;
    assert_string_not_equal(entry->name, ".");
    assert_string_not_equal(entry->name, "..");
    c->n_files += !entry->is_dir;
    c->n_dirs += entry->is_dir;
    c->n_links += entry->is_dir && entry->by_link;
    return c->n_files + c->n_dirs == c->stop_after ? DR_END : DR_OK;
}

static void a_directory_is_listed(void **state)
{
    (void)state;
    dr__source_dir *dir;
    dr_error err;
    const dr__source_lister lister = { begin, count };
    put_text(at("a/f"), "x");
    put_text(at("a/b/g"), "x");
    assert_int_equal(symlink("b", at("a/link")), 0);
    assert_int_equal(symlink("nowhere", at("a/broken")), 0);
    assert_ok(dr__source_dir_open(tree_root, NULL, &dir, &err));
    struct counter all = { .lister = lister }, some = { .lister = lister, .stop_after = 2 };
    struct counter none = { .lister = lister, .refuse = true };
    assert_ok(dr__source_dir_list(dir, "a", &all.lister, &err));
    assert_int_equal(all.n_files, 2); /* a link that leads nowhere is a file, as for os.walk */
    assert_int_equal(all.n_dirs, 2);
    assert_int_equal(all.n_links, 1);
    assert_ok(dr__source_dir_list(dir, "a", &some.lister, &err));
    assert_int_equal(some.n_files + some.n_dirs, 2);
    assert_ok(dr__source_dir_list(dir, "a", &none.lister, &err));
    assert_int_equal(none.n_files + none.n_dirs, 0);
    assert_fails(dr__source_dir_list(dir, "c", &all.lister, &err), DR_ERR_NOT_FOUND, "/c: cannot list");
    assert_fails(dr__source_dir_list(dir, "a/f", &all.lister, &err), DR_ERR_NOT_FOUND, "/a/f: cannot list");
    dr__source_dir_close(&dir);
}

static void local_files_refuse_credentials(void **state)
{
    (void)state;
    const dr__source_options secret = { .credentials = "token" }, slow = { .timeout_ns = 1 };
    dr__source *s;
    dr__source_dir *dir;
    dr_error err;
    put_text(at("f"), "x");
    assert_fails(dr__source_open(at("f"), &secret, &s, &err), DR_ERR_UNSUPPORTED, "take no credentials");
    assert_fails(dr__source_dir_open(tree_root, &secret, &dir, &err), DR_ERR_UNSUPPORTED, "take no credentials");
    assert_ok(dr__source_open(at("f"), &slow, &s, &err));
    dr__source_close(&s);
}

static void every_source_is_complete(void **state)
{
    (void)state;
    for (const dr_source_def *const *d = dr__source_table; *d; d++) {
        assert_true((*d)->summary && (*d)->open && (*d)->size && (*d)->read_at && (*d)->close);
        if ((*d)->open_dir)
            assert_true((*d)->get && (*d)->stat && (*d)->list && (*d)->close_dir);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_make, tree_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(file_is_read_by_range),
        TEST(version_changes_with_the_file),
        TEST(errors_name_path_and_reason),
        TEST(memory_is_a_source),
        TEST(open_survives_lack_of_memory),
        TEST(a_directory_reads_whole_files),
        TEST(a_directory_reads_ranges),
        TEST(a_directory_reads_ranges_of_a_version),
        TEST(facts_of_a_path),
        TEST(a_directory_is_listed),
        TEST(local_files_refuse_credentials),
        TEST(every_source_is_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
