/* test_tar.c: tar archives, their index, and shards as a data set. */
#include "tree.h"

#include <pthread.h>

#include "base/alloc.h"
#include "codec/file_types.h"
#include "format/braces.h"
#include "format/dataset_internal.h"
#include "index/index_file.h"
#include "format/tar_index.h"
#include "format/tar_reader.h"
#include "tar_make.h"

static struct archive a;
static dr__record record;

static int setup(void **state)
{
    a.size = 0;
    return tree_make(state);
}

static dr_status try_open(const char *path, dr_dataset **set, dr_error *err)
{
    dr_read_options o;
    dr_read_defaults(&o);
    return dr_dataset_open(path, &o, set, err);
}

static dr_dataset *open_tar(const char *path)
{
    dr_dataset *set;
    dr_error err;
    if (try_open(path, &set, &err) != DR_OK)
        fail_msg("%s", err.text);
    assert_string_equal(dr_dataset_format(set), "tar");
    return set;
}

static void fails(const char *part)
{
    dr_dataset *set = NULL;
    dr_error err;
    put_file(at("x.tar"), a.data, a.size);
    assert_true(try_open(at("x.tar"), &set, &err) < 0);
    expect_in(err.text, part);
    expect_in(err.text, "x.tar");
    assert_null(set);
}

static void expect_field(const dr_dataset *set, uint64_t id, const char *field, const char *want)
{
    dr_error err;
    int f = dr__dataset_find_field(set, field);
    if (f < 0)
        fail_msg("no field %s", field);
    if (set->def->read(set, id, &record, &err) != DR_OK)
        fail_msg("%s", err.text);
    assert_int_equal(record.n_fields, set->n_fields);
    assert_int_equal(record.fields[f].desc.dims[0], strlen(want));
    assert_memory_equal(record.fields[f].data, want, strlen(want));
}

static int64_t label(const dr_dataset *set, uint64_t id)
{
    assert_int_equal(set->def->read(set, id, &record, NULL), DR_OK);
    return *(int64_t *)(void *)record.fields[dr__dataset_find_field(set, "label")].data;
}

static void two_samples(void)
{
    tar_header(&a, "dir/", '5', 0);
    tar_put(&a, "dir/0001.jpg", '0', "JPEG1");
    tar_put(&a, "dir/0001.cls", '0', "7\n");
    tar_put(&a, "dir/0001.json", '0', "{\"a\":1}");
    tar_put(&a, "README", '0', "no dot, no sample");
    tar_put(&a, "dir/._0001.jpg", '0', "nor this");
    tar_put(&a, "dir/0002.PNG", 0, "PNG2");
    tar_put(&a, "dir/0002.cls", '0', " -1");
    tar_put(&a, "dir/0002.seg.png", '0', "mask");
    tar_end(&a);
}

static void members_are_grouped_into_samples(void **state)
{
    (void)state;
    two_samples();
    put_file(at("x.tar"), a.data, a.size);
    for (int again = 0; again < 2; again++) { /* by the headers, then by the index */
        dr_dataset *set = open_tar(at("x.tar"));
        assert_true(exists(at("x.tar.drapps-index")));
        assert_int_equal(dr_dataset_size(set), 2);
        assert_string_equal(dr_dataset_field(set, 0, NULL), "image");
        assert_string_equal(dr_dataset_field(set, 1, NULL), "label");
        assert_string_equal(dr_dataset_field(set, 2, NULL), "key");
        expect_key(set, 0, "dir/0001");
        expect_field(set, 0, "image", "JPEG1");
        expect_field(set, 0, "json", "{\"a\":1}");
        expect_field(set, 0, "seg.png", "");
        expect_field(set, 1, "image", "PNG2");
        expect_field(set, 1, "seg.png", "mask");
        expect_field(set, 1, "key", "dir/0002");
        assert_int_equal(label(set, 0), 7);
        assert_int_equal(label(set, 1), -1);
        dr_desc desc;
        dr_dataset_field(set, dr__dataset_find_field(set, "json"), &desc);
        assert_int_equal(desc.kind, DR_KIND_TEXT);
        dr_dataset_unref(&set);
    }
    assert_int_equal(count_files(tree_root), 2);
}

static void index_follows_the_shard(void **state)
{
    (void)state;
    two_samples();
    put_file(at("x.tar"), a.data, a.size);
    dr_dataset *set = open_tar(at("x.tar"));
    dr_dataset_unref(&set);
    a.size = 0;
    tar_put(&a, "new.jpg", '0', "N");
    tar_end(&a);
    put_file(at("x.tar"), a.data, a.size);
    set = open_tar(at("x.tar"));
    assert_int_equal(dr_dataset_size(set), 1);
    expect_field(set, 0, "image", "N");
    dr_dataset_unref(&set);
    put_text(at("x.tar.drapps-index"), "damaged");
    set = open_tar(at("x.tar"));
    expect_field(set, 0, "image", "N");
    dr_dataset_unref(&set);
    remove(at("x.tar.drapps-index"));
    mkdir(at("x.tar.drapps-index"), 0755); /* cannot be written there */
    put_text(at("x.tar.drapps-index/x"), "");
    for (int i = 0; i < 2; i++) {
        set = open_tar(at("x.tar"));
        assert_int_equal(count_files(getenv("XDG_CACHE_HOME")), 1);
        dr_dataset_unref(&set);
    }
}

static void names_in_all_dialects(void **state)
{
    (void)state;
    char name[300], text[600], path[300];
    memset(name, 'n', 150);
    strcpy(name + 150, ".jpg");
    tar_put(&a, "././@LongLink", 'L', name); /* GNU */
    tar_put(&a, "cut.jpg", '0', "gnu");
    int n = snprintf(path, sizeof path, "pax/%.120s.jpg", name);
    snprintf(text, sizeof text, "30 mtime=1234567890.123456789\n%d path=%s\n", n + 10, path);
    tar_put(&a, "PaxHeader", 'x', text);
    tar_put(&a, "cut2.jpg", '0', "pax");
    uint8_t *h = tar_header(&a, "base.jpg", '0', 3); /* ustar's prefix */
    memcpy(h + 345, "some/folder", 11);
    tar_sum(h);
    tar_data(&a, "pre", 3);
    tar_put(&a, "g", 'g', "22 comment=for all...\n");
    tar_put(&a, "plain.jpg", '7', "p");
    tar_end(&a);
    put_file(at("x.tar"), a.data, a.size);
    dr_dataset *set = open_tar(at("x.tar"));
    assert_int_equal(dr_dataset_size(set), 4);
    name[150] = 0;
    expect_key(set, 0, name);
    path[4 + 120] = 0;
    expect_key(set, 1, path);
    expect_key(set, 2, "some/folder/base");
    expect_key(set, 3, "plain");
    expect_field(set, 1, "image", "pax");
    dr_dataset_unref(&set);
}

static void odd_members_are_passed_over(void **state)
{
    (void)state;
    tar_put(&a, "link.jpg", '2', "");
    uint8_t *h = tar_header(&a, "sparse.jpg", 'S', 4);
    h[482] = 1; /* one more block of map */
    tar_sum(h);
    uint8_t map[512] = { 0 };
    tar_data(&a, map, sizeof map);
    tar_data(&a, "data", 4);
    tar_put(&a, "x", 'x', "22 GNU.sparse.major=1\n");
    tar_put(&a, "GNUSparseFile.0/s.jpg", '0', "map and data");
    h = tar_header(&a, "large.jpg", '0', 0); /* a binary size */
    memset(h + 124, 0, 12);
    h[124] = 0x80;
    h[135] = 5;
    tar_sum(h);
    tar_data(&a, "large", 5);
    put_file(at("x.tar"), a.data, a.size); /* no zero blocks at the end */
    dr_dataset *set = open_tar(at("x.tar"));
    assert_int_equal(dr_dataset_size(set), 1);
    expect_field(set, 0, "image", "large");
    dr_dataset_unref(&set);
}

static void damaged_archives_are_named(void **state)
{
    (void)state;
    two_samples();
    size_t whole = a.size;
    a.size = 512 + 512 + 3;
    fails("truncated: a member needs 5 bytes");
    a.size = 512 + 512 + 512 + 100;
    fails("truncated");
    a.size = whole;
    a.data[512] ^= 1;
    fails("not a tar header at 512");
    a.data[512] ^= 1;
    a.size = 0;
    fails("no sample");
    tar_put(&a, "k.jpg", '0', "1");
    tar_put(&a, "k.JPG", '0', "2");
    fails("sample \"k\" has two members .jpg");
    a.size = 0;
    tar_put(&a, "k.cls", '0', "1");
    tar_put(&a, "k.cls", '0', "1");
    fails("two members .cls");
    a.size = 0;
    uint8_t *h = tar_header(&a, "k.jpg", '0', 0);
    memset(h + 124, 0xFF, 12);
    tar_sum(h);
    fails("not a tar header");
    a.size = 0;
    tar_put(&a, "x", 'x', "999 path=abc\n");
    fails("ends too early");
    a.size = 0;
    tar_put(&a, "x", 'x', "12345678901 path=abc\n");
    fails("pax header is damaged");
    a.size = 0;
    tar_put(&a, "x", 'x', "11 size=-1\n");
    fails("no number");
    a.size = 0;
    tar_header(&a, "x", 'L', 60000);
    memset(a.data + a.size, 'a', 60416);
    a.size += 60416;
    fails("extended header");
}

static void shard_cut_after_it_was_indexed(void **state)
{
    (void)state;
    two_samples();
    put_file(at("x.tar"), a.data, a.size);
    dr_dataset *set = open_tar(at("x.tar"));
    put_file(at("x.tar"), a.data, 1026);
    dr_error err;
    assert_int_equal(set->def->read(set, 0, &record, &err), DR_ERR_FORMAT);
    expect_in(err.text, "x.tar: truncated: 5 bytes wanted at 1024, 2 there");
    dr_dataset_unref(&set);
}

static void bad_labels_fail_when_read(void **state)
{
    (void)state;
    dr_error err;
    tar_put(&a, "a.jpg", '0', "1");
    tar_put(&a, "a.cls", '0', "cat");
    tar_put(&a, "b.jpg", '0', "2");
    tar_put(&a, "c.cls", '0', "3");
    tar_put(&a, "d.jpg", '0', "4");
    tar_put(&a, "d.cls", '0', "4");
    tar_end(&a);
    put_file(at("x.tar"), a.data, a.size);
    dr_dataset *set = open_tar(at("x.tar"));
    assert_int_equal(set->def->read(set, 0, &record, &err), DR_ERR_FORMAT);
    expect_in(err.text, "sample \"a\": its .cls member is not a whole number");
    assert_int_equal(set->def->read(set, 1, &record, &err), DR_ERR_FORMAT);
    expect_in(err.text, "sample \"b\" has no .cls member");
    assert_int_equal(set->def->read(set, 2, &record, &err), DR_ERR_FORMAT);
    expect_in(err.text, "sample \"c\" has no image");
    assert_int_equal(label(set, 3), 4);
    dr_dataset_unref(&set);
}

static void two_encodings_in_one_sample(void **state)
{
    (void)state;
    tar_put(&a, "a.png", '0', "depth");
    tar_put(&a, "a.jpg", '0', "photo");
    tar_end(&a);
    put_file(at("x.tar"), a.data, a.size);
    dr_dataset *set = open_tar(at("x.tar"));
    expect_field(set, 0, "image", "photo");
    expect_field(set, 0, "png", "depth");
    dr_dataset_unref(&set);
}

/* Each extension of an image file becomes the field "image", by the headers and by the index. */
static void every_image_file_type_is_an_image(void **state)
{
    (void)state;
    int n = 0;
    for (const dr__file_type *type = dr__file_types; type->extension; type++) {
        char name[32];
        snprintf(name, sizeof name, "%02d%s", n, type->extension);
        if (type->kind == DR__FILE_IMAGE)
            tar_put(&a, name, '0', type->extension);
        n += type->kind == DR__FILE_IMAGE;
    }
    tar_end(&a);
    put_file(at("x.tar"), a.data, a.size);
    for (int again = 0; again < 2; again++) {
        dr_dataset *set = open_tar(at("x.tar"));
        assert_int_equal(dr_dataset_size(set), n);
        assert_int_equal(dr_dataset_fields(set), 2);
        for (int i = 0; i < n; i++)
            expect_field(set, (uint64_t)i, "image", dr__file_types[i].extension);
        dr_dataset_unref(&set);
    }
}

/* The index of a shard does not say which extensions are images: the list may have grown since. */
static void two_encodings_are_found_by_an_index(void **state)
{
    (void)state;
    tar_put(&a, "a.tif", '0', "depth");
    tar_put(&a, "a.jpg", '0', "photo");
    tar_end(&a);
    put_file(at("x.tar"), a.data, a.size);
    for (int again = 0; again < 2; again++) {
        dr_dataset *set = open_tar(at("x.tar"));
        expect_field(set, 0, "image", "photo");
        expect_field(set, 0, "tif", "depth");
        dr_dataset_unref(&set);
    }
}

static void shards_are_one_set(void **state)
{
    (void)state;
    for (int i = 0; i < 12; i++) {
        char name[32], text[8];
        a.size = 0;
        for (int k = 0; k < (i == 3 ? 0 : 2); k++) { /* shard 3 is empty */
            snprintf(name, sizeof name, "%d-%d.%s", i, k, i % 2 ? "jpg" : "webp");
            snprintf(text, sizeof text, "%d", i * 2 + k);
            tar_put(&a, name, '0', text);
        }
        tar_end(&a);
        put_file(at("s-%03d.tar", i), a.data, a.size);
    }
    const char *const patterns[] = { "s-{000..011}.tar", "s-*.tar", "s-0{00..11}.tar", "s-0{0{0..9},1{0,1}}.tar", "" };
    for (size_t p = 0; p < 5; p++) {
        dr_dataset *set = open_tar(at("%s", patterns[p]));
        assert_int_equal(dr_dataset_size(set), 22);
        expect_key(set, 0, "0-0");
        expect_key(set, 6, "4-0");
        expect_key(set, 21, "11-1");
        expect_field(set, 6, "image", "8");
        expect_field(set, 21, "image", "23");
        dr_dataset_unref(&set);
    }
    dr_dataset *set = NULL;
    dr_error err;
    assert_int_equal(try_open(at("t-*.tar"), &set, &err), DR_ERR_NOT_FOUND);
    expect_in(err.text, "no file matches");
    assert_int_equal(try_open(at("s-{010..012}.tar"), &set, &err), DR_ERR_NOT_FOUND);
    expect_in(err.text, "s-012.tar");
}

static void expect_braces(const char *text, const char *want)
{
    dr__names names = { 0 };
    char joined[400] = "";
    assert_int_equal(dr__braces(text, &names, NULL), DR_OK);
    for (size_t i = 0; i < names.n; i++) {
        strcat(joined, i ? " " : "");
        strcat(joined, dr__names_get(&names, i));
    }
    assert_string_equal(joined, want);
    dr__names_free(&names);
}

static void braces_as_in_a_shell(void **state)
{
    (void)state;
    expect_braces("x", "x");
    expect_braces("a{1,2}b", "a1b a2b");
    expect_braces("{08..11}", "08 09 10 11");
    expect_braces("{8..11}", "8 9 10 11");
    expect_braces("{3..1}", "3 2 1");
    expect_braces("{0..9..4}", "0 4 8");
    expect_braces("{a,b}{1..2}", "a1 a2 b1 b2");
    expect_braces("{a,{b,c}d}", "a bd cd");
    expect_braces("{a,}", "a ");
    expect_braces("{}{a}{1..}{x", "{}{a}{1..}{x");
    expect_braces("{a}{1,2}", "{a}1 {a}2");
    dr__names names = { 0 };
    dr_error err;
    assert_int_equal(dr__braces("{0..99999999}", &names, &err), DR_ERR_LIMIT);
    assert_int_equal(dr__braces("{0..9999}{0..9999}", &names, &err), DR_ERR_LIMIT);
    dr__names_free(&names);
}

static void many_kinds_of_members(void **state)
{
    (void)state;
    char name[32];
    for (int i = 0; i < DR__TAR_MAX_EXTS; i++) {
        snprintf(name, sizeof name, "k.e%d", i);
        tar_put(&a, name, '0', name);
    }
    put_file(at("x.tar"), a.data, a.size);
    dr_dataset *set = open_tar(at("x.tar"));
    assert_int_equal(dr_dataset_fields(set), DR__TAR_MAX_EXTS + 1); /* and the key */
    for (int i = 0; i < DR__TAR_MAX_EXTS; i++) {
        snprintf(name, sizeof name, "k.e%d", i);
        expect_field(set, 0, name + 2, name);
    }
    dr_dataset_unref(&set);
    tar_put(&a, "k.more", '0', "x");
    put_file(at("x.tar"), a.data, a.size);
    dr_error err;
    assert_int_equal(try_open(at("x.tar"), &set, &err), DR_ERR_LIMIT);
    expect_in(err.text, "more than 128 kinds of members");
}

static void an_index_sample_costs_little(void **state)
{
    (void)state;
    for (int i = 0; i < 15; i++) {
        char name[64];
        snprintf(name, sizeof name, "n01440764_%05d.jpg", i * 333);
        tar_put(&a, name, '0', "photo");
        memcpy(name + 16, "cls", 4);
        tar_put(&a, name, '0', "11");
        memcpy(name + 16, "json", 5);
        tar_put(&a, name, '0', "{}");
    }
    dr__source *source;
    dr__tar_index x;
    assert_int_equal(dr__source_memory(a.data, a.size, "memory", &source, NULL), DR_OK);
    assert_int_equal(dr__tar_index_build(source, &x, NULL), DR_OK);
    assert_int_equal(x.keys.n, 15);
    size_t each = sizeof *x.samples + 2 * (sizeof *x.parts + 1) + 4 + x.keys.used / x.keys.n;
    print_message("%zu bytes a sample (photo, label, json)\n", each);
    assert_true(each < 100);
    dr__tar_index_free(&x);
    dr__source_close(&source);
}

static void opening_survives_lack_of_memory(void **state)
{
    (void)state;
    two_samples();
    put_file(at("x.tar"), a.data, a.size);
    for (int indexed = 0; indexed < 2; indexed++)
        for (long n = 1;; n++) {
            dr_dataset *set = NULL;
            dr_error err;
            if (!indexed)
                remove(at("x.tar.drapps-index"));
            dr__alloc_fail_at(n, n % 2);
            dr_status status = try_open(at("x.tar"), &set, &err);
            long used = dr__alloc_fail_at(0, false);
            if (status == DR_OK) {
                assert_int_equal(dr_dataset_size(set), 2);
                expect_field(set, 1, "seg.png", "mask");
                dr_dataset_unref(&set);
            } else {
                assert_int_equal(status, DR_ERR_NOMEM);
            }
            assert_true(n < 1000);
            if (used < n)
                break;
        }
}

static void *read_all(void *set)
{
    dr__record r;
    const dr_dataset *s = set;
    long failed = 0;
    dr__record_init(&r);
    for (int i = 0; i < 400; i++)
        failed += s->def->read(s, (uint64_t)i % 2, &r, NULL) != DR_OK || memcmp(r.fields[0].data, i % 2 ? "P" : "J", 1);
    dr__record_free(&r);
    return (void *)failed;
}

static void threads_share_a_set(void **state)
{
    (void)state;
    pthread_t threads[4];
    void *failed;
    two_samples();
    put_file(at("x.tar"), a.data, a.size);
    dr_dataset *set = open_tar(at("x.tar"));
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_all, set), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    dr_dataset_unref(&set);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, tree_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(members_are_grouped_into_samples),
        TEST(index_follows_the_shard),
        TEST(names_in_all_dialects),
        TEST(odd_members_are_passed_over),
        TEST(damaged_archives_are_named),
        TEST(shard_cut_after_it_was_indexed),
        TEST(bad_labels_fail_when_read),
        TEST(two_encodings_in_one_sample),
        TEST(two_encodings_are_found_by_an_index),
        TEST(every_image_file_type_is_an_image),
        TEST(shards_are_one_set),
        TEST(braces_as_in_a_shell),
        TEST(many_kinds_of_members),
        TEST(an_index_sample_costs_little),
        TEST(threads_share_a_set),
        TEST(opening_survives_lack_of_memory),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    dr__record_free(&record);
    return failed;
}
