/* test_folder.c: image folders, with and without classes. */
#include "tree.h"

#include <errno.h>

#include "base/alloc.h"
#include "format/dataset_internal.h"

static dr_dataset *open_set(const char *path, const char *format)
{
    dr_read_options o;
    dr_error err;
    dr_dataset *set = NULL;
    dr_read_defaults(&o);
    o.format = format;
    if (dr_dataset_open(path, &o, &set, &err) != DR_OK)
        fail_msg("%s", err.text);
    return set;
}

static dr_status open_fails(const char *path, const char *format, dr_error *err)
{
    dr_read_options o;
    dr_dataset *set = NULL;
    dr_read_defaults(&o);
    o.format = format;
    dr_status status = dr_dataset_open(path, &o, &set, err);
    assert_true(status < 0);
    assert_null(set);
    return status;
}

static void classes_and_order_are_those_of_image_folder(void **state)
{
    (void)state;
    const char *files[] = { "b/2.jpg",    "b/10.JPG", "b/sub/1.png",    "b/sub-x/1.png", "b/notes.txt",
                            "a-b/x.webp", "a/y.tiff", "a/.hidden.jpeg", "stray.jpg",     "a/sub/deep/z.bmp" };
    const char *want[] = { "a/.hidden.jpeg", "a/y.tiff", "a/sub/deep/z.bmp", "a-b/x.webp",
                           "b/10.JPG",       "b/2.jpg",  "b/sub/1.png",      "b/sub-x/1.png" };
    const int labels[] = { 0, 0, 0, 1, 2, 2, 2, 2 };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        put_text(at("%s", files[i]), files[i]);
    dr_dataset *set = open_set(tree_root, "auto");
    assert_string_equal(dr_dataset_format(set), "folder");
    assert_int_equal(dr_dataset_size(set), 8);
    assert_int_equal(dr_dataset_classes(set), 3);
    assert_string_equal(dr_dataset_class(set, 0), "a");
    assert_string_equal(dr_dataset_class(set, 1), "a-b");
    assert_string_equal(dr_dataset_class(set, 2), "b");
    assert_null(dr_dataset_class(set, 3));
    dr__record r;
    dr__record_init(&r);
    /* "b/sub" < "b/sub-x" as folders, each before its own files: by whole path, so "-" against the end */
    for (uint64_t i = 0; i < 8; i++) {
        expect_key(set, i, want[i]);
        assert_int_equal(set->def->read(set, i, &r, NULL), DR_OK);
        assert_int_equal(r.n_fields, 3);
        assert_int_equal(r.fields[0].desc.dims[0], strlen(want[i]));
        assert_memory_equal(r.fields[0].data, want[i], strlen(want[i]));
        assert_int_equal(*(int64_t *)(void *)r.fields[1].data, labels[i]);
        assert_memory_equal(r.fields[2].data, want[i], strlen(want[i]));
    }
    dr__record_free(&r);
    assert_int_equal(count_files(tree_root), 10); /* nothing written into a small folder */
    dr_dataset_unref(&set);
}

static void fields_are_described(void **state)
{
    (void)state;
    put_text(at("a/1.jpg"), "x");
    dr_dataset *set = open_set(tree_root, "folder");
    dr_desc desc;
    assert_int_equal(dr_dataset_fields(set), 3);
    assert_string_equal(dr_dataset_field(set, 0, &desc), "image");
    assert_int_equal(desc.kind, DR_KIND_BYTES);
    assert_int_equal(desc.dims[0], DR_UNKNOWN);
    assert_string_equal(dr_dataset_field(set, 1, &desc), "label");
    assert_int_equal(desc.dtype, DR_I64);
    assert_int_equal(desc.n_dims, 0);
    assert_string_equal(dr_dataset_field(set, 2, &desc), "key");
    assert_int_equal(desc.kind, DR_KIND_TEXT);
    assert_null(dr_dataset_field(set, 3, &desc));
    assert_int_equal(dr_dataset_places(set), 1);
    assert_string_equal(dr_dataset_name(set), tree_root);
    dr_error err;
    char text[8];
    assert_int_equal(dr_dataset_key(set, 1, text, sizeof text, &err), DR_ERR_ARG);
    assert_int_equal(dr_dataset_key(set, 0, text, 4, &err), DR_OK);
    assert_string_equal(text, "a/1");
    dr_dataset *again = dr_dataset_ref(set);
    dr_dataset_unref(&set);
    assert_null(set);
    expect_key(again, 0, "a/1.jpg");
    dr_dataset_unref(&again);
    dr_dataset_unref(&again);
}

static void flat_folder_has_no_labels(void **state)
{
    (void)state;
    put_text(at("2.jpg"), "2");
    put_text(at("10.jpg"), "10");
    mkdir(at("empty"), 0755);
    dr_dataset *set = open_set(tree_root, "auto");
    assert_string_equal(dr_dataset_format(set), "flat");
    assert_int_equal(dr_dataset_fields(set), 2);
    assert_int_equal(dr_dataset_classes(set), 0);
    expect_key(set, 0, "10.jpg");
    expect_key(set, 1, "2.jpg");
    dr_dataset_unref(&set);
    put_text(at("sub/a.png"), "");
    set = open_set(tree_root, "flat");
    assert_int_equal(dr_dataset_size(set), 3);
    expect_key(set, 2, "sub/a.png");
    dr_dataset_unref(&set);
}

static void extensions_can_be_chosen(void **state)
{
    (void)state;
    const char *const exts[] = { ".npy", NULL };
    put_text(at("a/1.npy"), "x");
    put_text(at("a/2.jpg"), "x");
    dr_read_options o;
    dr_read_defaults(&o);
    o.format = "folder";
    o.extensions = exts;
    dr_dataset *set;
    assert_int_equal(dr_dataset_open(tree_root, &o, &set, NULL), DR_OK);
    assert_int_equal(dr_dataset_size(set), 1);
    expect_key(set, 0, "a/1.npy");
    dr_dataset_unref(&set);
}

static void nothing_found_says_where_and_what(void **state)
{
    (void)state;
    dr_error err;
    assert_int_equal(open_fails(tree_root, "auto", &err), DR_ERR_NOT_FOUND);
    expect_in(err.text, tree_root);
    expect_in(err.text, ".jpg, .jpeg, .png");
    assert_int_equal(open_fails(tree_root, "folder", &err), DR_ERR_NOT_FOUND);
    expect_in(err.text, "no class folder");
    assert_int_equal(open_fails(at("nowhere"), "auto", &err), DR_ERR_NOT_FOUND);
    expect_in(err.text, "nowhere");
    assert_int_equal(open_fails(at("nowhere"), "folder", &err), DR_ERR_NOT_FOUND);
    put_text(at("x.dat"), "");
    assert_int_equal(open_fails(at("x.dat"), "auto", &err), DR_ERR_UNSUPPORTED);
    expect_in(err.text, "folder (a folder with one folder per class)");
    assert_int_equal(open_fails(at("x.dat"), "floder", &err), DR_ERR_ARG);
    expect_in(err.text, "floder");
    assert_int_equal(open_fails("gs://bucket/x", "auto", &err), DR_ERR_UNSUPPORTED);
    expect_in(err.text, "gs://");
}

static void class_without_files_is_an_error(void **state)
{
    (void)state;
    dr_error err;
    put_text(at("full/1.jpg"), "");
    mkdir(at("bare"), 0755);
    put_text(at("words/readme.txt"), "");
    assert_int_equal(open_fails(tree_root, "auto", &err), DR_ERR_NOT_FOUND);
    expect_in(err.text, "bare, words");
    expect_in(err.text, "2 of 3 classes");
    expect_in(err.text, ".webp");
}

static void missing_file_is_named_when_read(void **state)
{
    (void)state;
    dr_error err;
    put_text(at("a/1.jpg"), "x");
    dr_dataset *set = open_set(tree_root, "auto");
    remove(at("a/1.jpg"));
    dr__record r;
    dr__record_init(&r);
    assert_int_equal(set->def->read(set, 0, &r, &err), DR_ERR_NOT_FOUND);
    expect_in(err.text, at("a/1.jpg"));
    expect_in(err.text, "No such file");
    dr__record_free(&r);
    dr_dataset_unref(&set);
}

static void names_need_not_be_text(void **state)
{
    (void)state;
    put_text(at("a/\xFF\xFE.jpg"), "odd");
    put_text(at("a/\xE4\xB8\xAD.jpg"), "cjk");
    dr_dataset *set = open_set(tree_root, "auto");
    expect_key(set, 0, "a/\xE4\xB8\xAD.jpg");
    expect_key(set, 1, "a/\xFF\xFE.jpg");
    dr__record r;
    dr__record_init(&r);
    assert_int_equal(set->def->read(set, 1, &r, NULL), DR_OK);
    assert_memory_equal(r.fields[0].data, "odd", 3);
    dr__record_free(&r);
    dr_dataset_unref(&set);
}

static void links_are_followed_but_not_in_circles(void **state)
{
    (void)state;
    put_text(at("set/a/1.jpg"), "1");
    put_text(at("elsewhere/2.jpg"), "2");
    assert_int_equal(symlink("../../elsewhere", at("set/a/link")), 0);
    assert_int_equal(symlink("..", at("set/a/up")), 0);
    assert_int_equal(symlink(".", at("set/a/self")), 0);
    assert_int_equal(symlink("../../elsewhere/2.jpg", at("set/a/one.jpg")), 0);
    assert_int_equal(symlink("gone", at("set/a/broken.jpg")), 0);
    assert_int_equal(symlink("../elsewhere", at("set/b")), 0);
    dr_dataset *set = open_set(at("set"), "auto");
    const char *want[] = { "a/1.jpg", "a/broken.jpg", "a/one.jpg", "a/link/2.jpg", "b/2.jpg" };
    assert_int_equal(dr_dataset_size(set), 5);
    for (uint64_t i = 0; i < 5; i++)
        expect_key(set, i, want[i]);
    dr_dataset_unref(&set);
    /* a class that is a link to the root would hold everything, itself included */
    dr_error err;
    assert_int_equal(symlink(".", at("set/c")), 0);
    assert_int_equal(open_fails(at("set"), "auto", &err), DR_ERR_NOT_FOUND);
    expect_in(err.text, "classes: c;");
}

static void unreadable_folder_is_an_error(void **state)
{
    (void)state;
    dr_error err;
    put_text(at("a/1.jpg"), "1");
    put_text(at("a/shut/2.jpg"), "2");
    assert_int_equal(chmod(tree_root, 0755), 0);
    assert_int_equal(chmod(at("a/shut"), 0), 0);
    bool root = geteuid() == 0;
    if (root && seteuid(65534)) /* permissions do not bind root */
        skip();
    dr_status status = open_fails(tree_root, "folder", &err);
    if (root)
        assert_int_equal(seteuid(0), 0);
    chmod(at("a/shut"), 0755);
    assert_int_equal(status, DR_ERR_IO);
    expect_in(err.text, "a/shut: cannot list: Permission denied");
}

static void older_callers_have_shorter_options(void **state)
{
    (void)state;
    put_text(at("a/1.jpg"), "1");
    dr_read_options o;
    memset(&o, 0xEE, sizeof o);
    o.size = offsetof(dr_read_options, root);
    o.format = "flat";
    dr_dataset *set;
    assert_int_equal(dr_dataset_open(tree_root, &o, &set, NULL), DR_OK);
    assert_string_equal(dr_dataset_format(set), "flat");
    dr_dataset_unref(&set);
}

static void opening_survives_lack_of_memory(void **state)
{
    (void)state;
    dr_error err;
    for (int i = 0; i < 40; i++)
        put_text(at("%c/%d/%d.jpg", 'a' + i % 3, i % 5, i), "x");
    for (int format = 0; format < 3; format++)
        for (long n = 1;; n++) {
            const char *const names[] = { "auto", "folder", "flat" };
            dr_read_options o;
            dr_read_defaults(&o);
            o.format = names[format];
            dr_dataset *set = NULL;
            dr__alloc_fail_at(n, n % 2);
            dr_status status = dr_dataset_open(tree_root, &o, &set, &err);
            dr__alloc_fail_at(0, false);
            assert_true(n < 10000);
            if (status == DR_OK) {
                assert_int_equal(dr_dataset_size(set), 40);
                assert_string_equal(dr_dataset_format(set), format == 2 ? "flat" : "folder");
                dr_dataset_unref(&set);
                if (n > 100)
                    break;
                continue;
            }
            assert_null(set);
        }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_make, tree_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(classes_and_order_are_those_of_image_folder),
        TEST(fields_are_described),
        TEST(flat_folder_has_no_labels),
        TEST(extensions_can_be_chosen),
        TEST(nothing_found_says_where_and_what),
        TEST(class_without_files_is_an_error),
        TEST(missing_file_is_named_when_read),
        TEST(names_need_not_be_text),
        TEST(links_are_followed_but_not_in_circles),
        TEST(unreadable_folder_is_an_error),
        TEST(older_callers_have_shorter_options),
        TEST(opening_survives_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
