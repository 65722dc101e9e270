/* test_listing.c: listings, the index that keeps them, and what they cost. */
#include "tree.h"

#include <sys/wait.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "format/dataset_internal.h"
#include "index/index_file.h"
#include "format/listing.h"

enum { N_CLASSES = 10, PER_CLASS = 120 };

static void make_large(void)
{
    for (int c = 0; c < N_CLASSES; c++)
        for (int i = 0; i < PER_CLASS; i++)
            put_text(at("c%d/n%04d_%d.JPEG", c, i, i * 37), "");
    age_folders();
}

static void list(dr__listing *l, bool by_class)
{
    dr_error err;
    if (dr__listing_open(tree_root, NULL, by_class, dr__extensions(NULL), true, l, &err) != DR_OK)
        fail_msg("%s", err.text);
}

/* Files found when the index is used; the listing must be the one of a walk. */
static size_t listed(bool by_class)
{
    dr__listing l, fresh;
    list(&l, by_class);
    assert_int_equal(dr__listing_open(tree_root, NULL, by_class, dr__extensions(NULL), false, &fresh, NULL), DR_OK);
    size_t n = l.files.n;
    assert_int_equal(n, fresh.files.n);
    assert_true(dr__listing_fingerprint(&l) == dr__listing_fingerprint(&fresh));
    assert_int_equal(l.n_classes, fresh.n_classes);
    dr__listing_free(&l);
    dr__listing_free(&fresh);
    return n;
}

/* Does an index answer? */
static bool index_holds(bool by_class)
{
    dr__listing l = { .by_class = by_class };
    assert_int_equal(dr__source_dir_open(tree_root, NULL, &l.root, NULL), DR_OK);
    bool good = dr__listing_load(tree_root, dr__extensions(NULL), &l, NULL) == DR_OK;
    dr__listing_free(&l);
    return good;
}

static void large_folder_is_kept_beside_the_data(void **state)
{
    (void)state;
    make_large();
    assert_false(index_holds(true));
    assert_int_equal(listed(true), N_CLASSES * PER_CLASS);
    assert_true(exists(at(".drapps-index")));
    assert_int_equal(count_files(getenv("XDG_CACHE_HOME")), 0);
    assert_true(index_holds(true));
    assert_int_equal(listed(true), N_CLASSES * PER_CLASS);
    assert_int_equal(count_files(tree_root), N_CLASSES * PER_CLASS + 1); /* no temporary files stay */
}

static void changes_are_noticed(void **state)
{
    (void)state;
    make_large();
    listed(true);
    put_text(at("c3/new.jpg"), ""); /* a file more */
    assert_false(index_holds(true));
    assert_int_equal(listed(true), N_CLASSES * PER_CLASS + 1);
    age_folders();
    listed(true);
    assert_true(index_holds(true));
    remove(at("c3/new.jpg")); /* a file less */
    assert_false(index_holds(true));
    age_folders();
    listed(true);
    put_text(at("extra/1.jpg"), ""); /* a class more: the root is compared by its names */
    assert_false(index_holds(true));
    age_folders();
    listed(true);
    assert_true(index_holds(true));
    rename(at("extra"), at("other")); /* renamed: the folder itself keeps its time */
    assert_false(index_holds(true));
    age_folders();
    listed(true);
    put_text(at("c0/n0000_0.JPEG"), "content may change: only names are kept");
    assert_true(index_holds(true));
}

static void fresh_folders_are_not_kept(void **state)
{
    (void)state;
    make_large();
    put_text(at("c0/just_now.jpg"), "");
    listed(true);
    assert_false(exists(at(".drapps-index")));
}

static void flat_folder_is_kept_in_the_cache_folder(void **state)
{
    (void)state;
    for (int i = 0; i < 1200; i++)
        put_text(at("%d.jpg", i), "");
    age_folders();
    assert_int_equal(listed(false), 1200);
    assert_int_equal(count_files(tree_root), 1200);
    assert_int_equal(count_files(getenv("XDG_CACHE_HOME")), 1);
    assert_true(index_holds(false));
    assert_false(index_holds(true));
    bool below = true;
    assert_true(dr__listing_known_below(tree_root, dr__extensions(NULL), &below));
    assert_false(below);
    put_text(at("one_more.jpg"), "");
    assert_false(dr__listing_known_below(tree_root, dr__extensions(NULL), &below));
    assert_false(index_holds(false));
    assert_int_equal(listed(false), 1201);
    put_text(at("sub/x.jpg"), "");
    age_folders();
    assert_int_equal(listed(false), 1202);
    assert_true(dr__listing_known_below(tree_root, dr__extensions(NULL), &below));
    assert_true(below);
}

static void unwritable_places_are_no_error(void **state)
{
    (void)state;
    make_large();
    mkdir(at(".drapps-index"), 0755); /* a folder where the file should be: the rename fails */
    put_text(at(".drapps-index/x"), "");
    age_folders();
    listed(true);
    assert_int_equal(count_files(getenv("XDG_CACHE_HOME")), 1);
    age_folders(); /* the attempt has touched the root */
    listed(true);
    setenv("XDG_CACHE_HOME", "/dev/null/not/a/folder", 1);
    assert_int_equal(listed(true), N_CLASSES * PER_CLASS);
    unsetenv("XDG_CACHE_HOME");
    char *home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
    unsetenv("HOME");
    assert_int_equal(listed(true), N_CLASSES * PER_CLASS);
    if (home)
        setenv("HOME", home, 1);
    free(home);
    char cache[300];
    snprintf(cache, sizeof cache, "%s-cache", tree_root);
    setenv("XDG_CACHE_HOME", cache, 1);
}

static uint8_t *whole_file(const char *path, size_t *size)
{
    struct stat st;
    FILE *f = fopen(path, "rb");
    assert_true(f && !fstat(fileno(f), &st));
    uint8_t *data = malloc((size_t)st.st_size);
    *size = fread(data, 1, (size_t)st.st_size, f);
    assert_int_equal(*size, st.st_size);
    fclose(f);
    return data;
}

static void damaged_index_is_ignored_and_replaced(void **state)
{
    (void)state;
    make_large();
    listed(true);
    size_t size;
    uint8_t *good = whole_file(at(".drapps-index"), &size);
    uint8_t *bad = malloc(size);
    for (size_t i = 0; i < size; i += i < 200 ? 1 : size / 50) { /* each byte of the head, some of the rest */
        memcpy(bad, good, size);
        bad[i] ^= 0x41;
        put_file(at(".drapps-index"), bad, size);
        assert_false(index_holds(true));
    }
    for (size_t cut = 0; cut < size; cut += size / 20 + 1) {
        put_file(at(".drapps-index"), good, cut);
        assert_false(index_holds(true));
    }
    put_text(at(".drapps-index"), "somebody else's file");
    age_folders();
    assert_int_equal(listed(true), N_CLASSES * PER_CLASS);
    assert_true(index_holds(true));
    free(bad);
    free(good);
}

/* A copy of an index, here one that even tells the truth, and a file that others may write to. */
static void index_from_elsewhere_is_ignored(void **state)
{
    (void)state;
    make_large();
    listed(true);
    size_t size;
    uint8_t *good = whole_file(at(".drapps-index"), &size);
    put_file(at(".drapps-index"), good, size); /* the same file as before */
    assert_true(index_holds(true));
    assert_int_equal(chmod(at(".drapps-index"), 0664), 0);
    assert_false(index_holds(true));
    remove(at(".drapps-index"));
    put_file(at(".drapps-index"), good, size);
    assert_false(index_holds(true));
    free(good);
}

/* An index that is formally right but leads elsewhere. */
static void hostile_index_is_refused(void **state)
{
    (void)state;
    const struct {
        const char *dir, *file;
    } cases[] = { { "../up", "a.jpg" }, { "/etc", "a.jpg" },      { "a/../..", "a.jpg" }, { "a//b", "a.jpg" },
                  { "a", "../a.jpg" },  { "a", "b/../../c.jpg" }, { "a", ".." },          { "a", "" } };
    for (size_t i = 0; i <= sizeof cases / sizeof cases[0]; i++) {
        bool fine = i == sizeof cases / sizeof cases[0];
        const char *dir = fine ? "a" : cases[i].dir, *file = fine ? "b.jpg" : cases[i].file;
        dr__section s[3] = { { .id = 1 }, { .id = 2 }, { .id = 3 } };
        dr__put_bytes(&s[0], "x", 2);
        dr__put_u64(&s[1], 0);
        dr__put_u64(&s[1], 2);
        dr__put_u64(&s[1], 1);
        dr__put_u64(&s[1], 0), dr__put_u64(&s[1], 0), dr__put_bytes(&s[1], "", 1);
        dr__put_u64(&s[1], 0), dr__put_u64(&s[1], 0), dr__put_bytes(&s[1], dir, strlen(dir) + 1);
        dr__put_bytes(&s[2], file, strlen(file) + 1);
        assert_true(dr__index_save(at("index"), true, s, 3));
        size_t size;
        uint8_t *data = dr__index_load(at("index"), &size);
        dr__listing l = { .by_class = true };
        dr_error err;
        assert_int_equal(dr__listing_decode(data, size, "x", &l, &err), fine ? DR_OK : DR_ERR_FORMAT);
        dr__listing_free(&l);
        dr__free(data);
        dr__sections_free(s, 3);
    }
}

static void builders_may_race(void **state)
{
    (void)state;
    enum { N = 4 };
    pid_t child[N];
    make_large();
    for (int i = 0; i < N; i++) {
        child[i] = fork();
        assert_true(child[i] >= 0);
        if (!child[i]) {
            dr__listing l;
            bool good = dr__listing_open(tree_root, NULL, true, dr__extensions(NULL), true, &l, NULL) == DR_OK &&
                        l.files.n == N_CLASSES * PER_CLASS;
            dr__listing_free(&l);
            _exit(good ? 0 : 1);
        }
    }
    for (int i = 0; i < N; i++) {
        int status;
        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_int_equal(status, 0);
    }
    assert_true(index_holds(true));
    assert_int_equal(count_files(tree_root), N_CLASSES * PER_CLASS + 1);
}

static void unknown_sections_are_skipped(void **state)
{
    (void)state;
    dr__section s[2] = { { .id = 77 }, { .id = 5 } };
    dr__put_bytes(&s[0], "later", 5);
    dr__put_bytes(&s[1], "mine", 4);
    assert_true(dr__index_save(at("index"), true, s, 2));
    size_t size;
    uint8_t *data = dr__index_load(at("index"), &size);
    dr_cursor c;
    assert_int_equal(dr__index_section(data, size, 5, &c, NULL), DR_OK);
    assert_int_equal(dr__cursor_left(&c), 4);
    assert_memory_equal(c.at, "mine", 4);
    assert_int_equal(dr__index_section(data, size, 6, &c, NULL), DR_ERR_FORMAT);
    dr__free(data);
    dr__sections_free(s, 2);
}

static void opening_survives_lack_of_memory(void **state)
{
    (void)state;
    make_large();
    listed(true); /* so that the index is read, too */
    for (long n = 1; n < 400; n++) {
        dr__listing l;
        dr__alloc_fail_at(n, n % 2);
        dr_status status = dr__listing_open(tree_root, NULL, true, dr__extensions(NULL), true, &l, NULL);
        long used = dr__alloc_fail_at(0, false);
        if (status == DR_OK) {
            assert_int_equal(l.files.n, N_CLASSES * PER_CLASS);
            dr__listing_free(&l);
        } else {
            assert_int_equal(status, DR_ERR_NOMEM);
        }
        if (used < n)
            return;
    }
    fail_msg("never enough memory");
}

/* A hundred thousand files in 100 folders, as a listing: under 100 bytes each, with names as ImageNet has them. */
static void a_sample_costs_little(void **state)
{
    (void)state;
    enum { DIRS = 100, FILES = 1000 };
    dr__listing l = { .by_class = true };
    char name[64];
    assert_true(dr__listing_add_dir(&l, "", 0, 0));
    for (int d = 0; d < DIRS; d++) {
        size_t len = (size_t)snprintf(name, sizeof name, "n%08d", d * 1234);
        assert_true(dr__listing_add_dir(&l, name, len, 0));
        for (int i = 0; i < FILES; i++) {
            len = (size_t)snprintf(name, sizeof name, "n%08d_%d.JPEG", d * 1234, i * 17);
            assert_true(dr__listing_add_file(&l, name, len));
        }
    }
    dr__names_shrink(&l.files);
    double each = (double)dr__listing_bytes(&l) / (DIRS * FILES);
    print_message("%.1f bytes a sample\n", each);
    assert_true(each < 40);
    char path[64];
    dr__listing_path(&l, 99999, path, sizeof path);
    assert_string_equal(path, "n00122166/n00122166_16983.JPEG");
    assert_int_equal(dr__listing_dir_of(&l, 0), 1);
    assert_int_equal(l.dir[dr__listing_dir_of(&l, 54321)].label, 54);
    dr__listing_free(&l);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_make, tree_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(large_folder_is_kept_beside_the_data),
        TEST(changes_are_noticed),
        TEST(fresh_folders_are_not_kept),
        TEST(flat_folder_is_kept_in_the_cache_folder),
        TEST(unwritable_places_are_no_error),
        TEST(damaged_index_is_ignored_and_replaced),
        TEST(index_from_elsewhere_is_ignored),
        TEST(hostile_index_is_refused),
        TEST(builders_may_race),
        TEST(unknown_sections_are_skipped),
        TEST(opening_survives_lack_of_memory),
        TEST(a_sample_costs_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
