/* Catalogues: which sets a folder has, what is left out, samples by path, and failing allocations. */
#include "unit/format/tree.h"

#include "unit/cm.h"

#include "base/alloc.h"
#include "serve/catalogue.h"

static dr_error err;
static dr__catalogue *c;
static char said[4096];

static void note(void *user, const char *text)
{
    (void)user;
    const size_t n = strlen(said);
    snprintf(said + n, sizeof said - n, "%s\n", text);
}

static void put_images(const char *folder, int n)
{
    for (int i = 0; i < n; i++)
        put_text(at("%s/%d.jpg", folder, i), "image");
}

static void open_root(const char *path)
{
    said[0] = 0;
    assert_ok(dr__catalogue_open(path, note, NULL, &c, &err));
}

/* The names of all sets, with commas between them. */
static const char *names(void)
{
    static char text[1024];
    text[0] = 0;
    for (size_t i = 0; i < c->n_sets; i++) {
        const size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, "%s%s", i ? "," : "", c->sets[i].name);
    }
    return text;
}

static void folders_of_classes_are_sets(void **state)
{
    (void)state;
    put_images("train/cat", 2);
    put_images("train/dog", 1);
    put_images("val/cat", 1);
    put_images("loose", 3);
    put_images(".hidden/cat", 1);
    put_text(at("all.csv"), "path,label\ntrain/cat/0.jpg,1\n");
    put_text(at("notes.pdf"), "");
    mkdir(at("empty"), 0700);
    open_root(tree_root);
    assert_string_equal(names(), "all.csv,loose,train,val");
    assert_non_null(strstr(said, "empty: ")); /* and nothing else */
    assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
    assert_int_equal(dr__catalogue_find(c, "train")->set->n_samples, 3);
    assert_int_equal(dr__catalogue_find(c, "train")->stored_bytes, 15);
    assert_null(dr__catalogue_find(c, "empty"));
    assert_null(dr__catalogue_find(c, ""));
    dr__catalogue_unref(&c);
}

static void classes_alone_are_one_set(void **state)
{
    (void)state;
    put_images("set/cat", 2);
    put_images("set/dog", 1);
    open_root(at("set"));
    assert_string_equal(names(), "set");
    assert_int_equal(c->sets[0].set->n_classes, 2);
    dr__catalogue_unref(&c);
    open_root(at("set/cat"));
    assert_string_equal(names(), "cat");
    dr__catalogue_unref(&c);
}

static void what_leads_out_is_left_out(void **state)
{
    (void)state;
    put_images("away/cat", 1);
    put_images("root/train/cat", 1);
    assert_int_equal(symlink(at("away"), at("root/link")), 0);
    assert_int_equal(symlink(at("root/train"), at("root/same")), 0);
    open_root(at("root"));
    assert_string_equal(names(), "same,train");
    assert_non_null(strstr(said, "link: left out: it leads out"));
    dr__catalogue_unref(&c);
}

static void what_cannot_be_opened_is_said(void **state)
{
    (void)state;
    put_images("train/cat", 1);
    put_images("broken/cat", 1);
    mkdir(at("broken/dog"), 0700); /* a class without images */
    open_root(tree_root);
    assert_string_equal(names(), "train");
    assert_non_null(strstr(said, "broken: "));
    assert_non_null(strstr(said, "found no valid file for 1 of 2 classes"));
    dr__catalogue_unref(&c);
}

static void nothing_is_an_error(void **state)
{
    (void)state;
    assert_fails(dr__catalogue_open(tree_root, NULL, NULL, &c, &err), DR_ERR_NOT_FOUND, "no data set in it");
    assert_null(c);
    assert_fails(dr__catalogue_open(at("none"), NULL, NULL, &c, &err), DR_ERR_NOT_FOUND, "none: cannot serve");
}

static void samples_are_found_by_their_path(void **state)
{
    (void)state;
    static dr__where where;
    uint64_t id;
    put_images("train/cat", 30);
    put_images("train/dog", 30);
    put_text(at("secret"), "x");
    assert_int_equal(symlink(at("secret"), at("train/dog/a.jpg")), 0);
    open_root(tree_root);
    dr__served_set *s = dr__catalogue_find(c, "train");
    for (uint64_t want = 0; want < s->set->n_samples; want++) {
        char key[64];
        s->set->def->key(s->set, want, key, sizeof key);
        assert_true(dr__served_sample(s, key, &id));
        assert_int_equal(id, want);
        if (strcmp(key, "dog/a.jpg") != 0)
            assert_ok(dr__served_check(s, id, &where, &err));
        else
            assert_int_equal(dr__served_check(s, id, &where, &err), DR_ERR_NOT_FOUND);
    }
    assert_false(dr__served_sample(s, "cat/30.jpg", &id) || dr__served_sample(s, "", &id) ||
                 dr__served_sample(s, "train/cat/0.jpg", &id));
    dr__catalogue_unref(&c);
}

static void failing_allocations_leave_nothing(void **state)
{
    (void)state;
    put_images("train/cat", 2);
    put_images("val/dog", 1);
    size_t full = 0;
    for (long n = 1; full < 2; n++) {
        dr__alloc_fail_at(n, false);
        const dr_status status = dr__catalogue_open(tree_root, NULL, NULL, &c, &err);
        dr__alloc_fail_at(0, false);
        assert_true((status == DR_OK) == (c != NULL));
        full = c ? c->n_sets : 0;
        if (c)
            dr__catalogue_unref(&c);
        assert_true(n < 10000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(folders_of_classes_are_sets, tree_make, tree_remove),
        cmocka_unit_test_setup_teardown(classes_alone_are_one_set, tree_make, tree_remove),
        cmocka_unit_test_setup_teardown(what_leads_out_is_left_out, tree_make, tree_remove),
        cmocka_unit_test_setup_teardown(what_cannot_be_opened_is_said, tree_make, tree_remove),
        cmocka_unit_test_setup_teardown(nothing_is_an_error, tree_make, tree_remove),
        cmocka_unit_test_setup_teardown(samples_are_found_by_their_path, tree_make, tree_remove),
        cmocka_unit_test_setup_teardown(failing_allocations_leave_nothing, tree_make, tree_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
