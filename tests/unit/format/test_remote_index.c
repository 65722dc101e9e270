/* Indexes of remote sets: what is made of a folder or a shard is read again, equals what reading tells, and nothing
 * damaged is believed. */
#include "tree.h"

#include <limits.h>

#include "unit/cm.h"

#include "base/alloc.h"
#include "data/desc.h"
#include "format/remote_index.h"
#include "tar_make.h"

static dr_error err;
static dr__where where;

static dr_dataset *open_set(const char *path)
{
    dr_dataset *set = NULL;
    dr_read_options o;
    dr_read_defaults(&o);
    o.use_index = false;
    assert_ok(dr_dataset_open(path, &o, &set, &err));
    return set;
}

static dr_dataset *folder_set(void)
{
    static const char *const classes[] = { "cat", "dog", "d o%g" };
    for (int i = 0; i < 9; i++) {
        mkdir(at("set"), 0700);
        mkdir(at("set/%s", classes[i % 3]), 0700);
        put_file(at("set/%s/%d.jpg", classes[i % 3], i), "0123456789abcdef", (size_t)i);
    }
    return open_set(at("set"));
}

static dr_dataset *tar_set(void)
{
    static struct archive a;
    a.size = 0;
    for (int i = 0; i < 5; i++) {
        char name[32], text[32];
        snprintf(name, sizeof name, "s%d.jpg", i);
        snprintf(text, sizeof text, "image %d%.*s", i, i, "xxxxx");
        tar_put(&a, name, '0', text);
        snprintf(name, sizeof name, "s%d.cls", i);
        snprintf(text, sizeof text, "%d", i * 10);
        tar_put(&a, name, '0', text);
    }
    tar_end(&a);
    mkdir(at("set"), 0700);
    put_file(at("set/a.tar"), a.data, a.size);
    put_file(at("set/b.tar"), a.data, a.size);
    return open_set(at("set"));
}

/* A value as the index has it against what reading the sample gives. */
static void check_value(const dr__remote_index *x, int field, uint64_t id, const dr_view *want)
{
    const dr__remote_values *v = &x->values[field];
    if (v->form == DR__WHERE_NUMBER) {
        assert_int_equal(*(int64_t *)(void *)want->data, v->numbers[id]);
    } else if (v->form == DR__WHERE_KEY) {
        assert_int_equal(want->desc.dims[0], dr__names_len(&x->keys, id));
        assert_memory_equal(want->data, dr__names_get(&x->keys, id), dr__names_len(&x->keys, id));
    } else {
        assert_int_equal(v->form, DR__WHERE_RANGE);
        const char *path = v->by_key ? dr__names_get(&x->keys, id) : dr__names_get(&x->paths, v->paths[id]);
        const uint64_t offset = v->by_key ? 0 : v->offsets[id];
        uint8_t bytes[64];
        FILE *f = fopen(at("set/%s", path), "rb");
        assert_non_null(f);
        fseek(f, (long)offset, SEEK_SET);
        assert_int_equal(want->desc.dims[0], v->sizes[id]);
        assert_int_equal(fread(bytes, 1, v->sizes[id], f), v->sizes[id]);
        assert_memory_equal(bytes, want->data, v->sizes[id]);
        fclose(f);
    }
}

static void check_set(dr_dataset *set, bool by_key)
{
    dr__section made = { 0 };
    dr__remote_index x;
    dr__record record;
    char root[PATH_MAX];
    assert_non_null(realpath(at("set"), root));
    assert_ok(dr__remote_index_encode(set, root, "train", &made, &err));
    assert_ok(dr__remote_index_decode(made.data, made.size, &x, &err));
    assert_string_equal(x.name, "train");
    assert_string_equal(x.format, dr_dataset_format(set));
    assert_int_equal(x.n_samples, dr_dataset_size(set));
    assert_int_equal(x.n_places, dr_dataset_places(set));
    assert_true(x.fingerprint == dr_dataset_fingerprint(set) && x.content == dr__dataset_content(set));
    assert_int_equal(x.n_fields, set->n_fields);
    assert_int_equal(x.n_classes, set->n_classes);
    for (size_t c = 0; c < x.n_classes; c++)
        assert_string_equal(x.classes[c], set->classes[c]);
    dr__record_init(&record);
    for (uint64_t id = 0; id < x.n_samples; id++) {
        dr__stamp stamp;
        assert_ok(dr__dataset_stamp(set, id, &stamp, &err));
        assert_true(x.stamps[id] == stamp.version);
        assert_ok(dr__dataset_read(set, id, &record, &err));
        for (int f = 0; f < x.n_fields; f++)
            check_value(&x, f, id, &record.fields[f]);
    }
    for (int f = 0; f < x.n_fields; f++) {
        assert_string_equal(x.fields[f].name, set->fields[f].name);
        assert_true(dr__desc_equal(&x.fields[f].desc, &set->fields[f].desc));
    }
    assert_true(x.values[0].by_key == by_key);
    dr__record_free(&record);
    dr__remote_index_free(&x);
    dr__sections_free(&made, 1);
    dr_dataset_unref(&set);
}

static void folders_are_told(void **state)
{
    (void)state;
    check_set(folder_set(), true);
}

static void shards_are_told(void **state)
{
    (void)state;
    check_set(tar_set(), false);
}

static void files_outside_the_root_are_not_told(void **state)
{
    (void)state;
    dr_dataset *set = tar_set();
    dr__section made = { 0 };
    dr__remote_index x;
    char root[PATH_MAX];
    assert_non_null(realpath(tree_root, root));
    strcat(root, "/se");
    mkdir(root, 0700);
    assert_ok(dr__remote_index_encode(set, root, "n", &made, &err));
    assert_ok(dr__remote_index_decode(made.data, made.size, &x, &err));
    assert_int_equal(x.values[0].form, DR__WHERE_UNKNOWN);
    assert_int_equal(x.values[1].form, DR__WHERE_NUMBER);
    assert_int_equal(x.paths.n, 0);
    dr__remote_index_free(&x);
    dr__sections_free(&made, 1);
    dr_dataset_unref(&set);
}

static void sets_that_tell_nothing_are_unknown(void **state)
{
    (void)state;
    int64_t numbers[3] = { 1, 2, 3 };
    dr_array a = { "n", { .dtype = DR_I64, .n_dims = 1, .dims = { 3 } }, numbers };
    dr_dataset *set;
    dr__section made = { 0 };
    dr__remote_index x;
    assert_ok(dr_dataset_from_arrays(&a, 1, NULL, NULL, &set, &err));
    dr__dataset_where(set, 0, 0, &where);
    assert_int_equal(where.form, DR__WHERE_UNKNOWN);
    assert_ok(dr__remote_index_encode(set, tree_root, "n", &made, &err));
    assert_ok(dr__remote_index_decode(made.data, made.size, &x, &err));
    assert_int_equal(x.values[0].form, DR__WHERE_UNKNOWN);
    assert_int_equal(x.stamps[2], 0);
    dr__remote_index_free(&x);
    dr__sections_free(&made, 1);
    dr_dataset_unref(&set);
}

static void paths_that_lead_out_are_told(void **state)
{
    (void)state;
    static const char *const good[] = { "a", "a/b.jpg", "...", "a/..b", ".a", "a b%20", "\xc3\xa4/x" };
    static const char *const bad[] = { "",     "/",    "/a",    "a/",     "a//b", ".",    "..",
                                       "a/..", "../a", "a/./b", "a/../b", "a\\b", "a\nb", "a\x7f" };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(dr__remote_path_is_plain(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (dr__remote_path_is_plain(bad[i]))
            fail_msg("\"%s\" passes", bad[i]);
}

/* An index made of sections whose checksums are right. */
static dr_status decode_changed(const dr__section *whole, uint32_t change, const char *from, const char *to)
{
    dr__section s[5] = { 0 }, made = { 0 };
    dr__remote_index x;
    for (uint32_t i = 0; i < 5; i++) {
        dr_cursor c;
        assert_ok(dr__index_section(whole->data, whole->size, i + 1, &c, &err));
        s[i].id = i + 1;
        dr__put_bytes(&s[i], c.at, dr__cursor_left(&c));
        if (i + 1 != change)
            continue;
        uint8_t *place = memmem(s[i].data, s[i].size, from, strlen(from));
        assert_non_null(place);
        assert_int_equal(strlen(from), strlen(to));
        memcpy(place, to, strlen(to));
    }
    dr__index_encode(s, 5, &made);
    dr_status status = dr__remote_index_decode(made.data, made.size, &x, &err);
    if (status == DR_OK)
        dr__remote_index_free(&x);
    dr__sections_free(s, 5);
    dr__sections_free(&made, 1);
    return status;
}

static void damaged_indexes_are_refused(void **state)
{
    (void)state;
    dr_dataset *set = tar_set();
    dr__section made = { 0 };
    dr__remote_index x;
    char root[PATH_MAX];
    assert_non_null(realpath(at("set"), root));
    assert_ok(dr__remote_index_encode(set, root, "n", &made, &err));
    assert_ok(decode_changed(&made, 1, "range", "range"));
    assert_fails(decode_changed(&made, 1, "range", "rangy"), DR_ERR_FORMAT, "description of a field");
    assert_fails(decode_changed(&made, 1, "range", "\"file"), DR_ERR_FORMAT, "no JSON object");
    assert_fails(decode_changed(&made, 1, "\"samples\":10", "\"samples\":11"), DR_ERR_FORMAT,
                 "too many keys, or too few");
    assert_fails(decode_changed(&made, 1, "\"version\":1", "\"version\":7"), DR_ERR_UNSUPPORTED, "version 7");
    assert_fails(decode_changed(&made, 1, "int64", "int32"), DR_ERR_FORMAT, "a number is no int64");
    assert_fails(decode_changed(&made, 4, "b.tar", "../.."), DR_ERR_FORMAT, "leads out of the set");
    for (size_t n = 0; n < made.size; n += 7)
        assert_int_not_equal(dr__remote_index_decode(made.data, n, &x, &err), DR_OK);
    dr__sections_free(&made, 1);
    dr_dataset_unref(&set);
}

static void failing_allocations_leave_nothing(void **state)
{
    (void)state;
    dr_dataset *set = folder_set();
    dr__section made = { 0 };
    dr__remote_index x;
    char root[PATH_MAX];
    dr_status status = DR_ERR_NOMEM;
    assert_non_null(realpath(at("set"), root));
    for (long n = 1; status == DR_ERR_NOMEM; n++) {
        dr__sections_free(&made, 1);
        made = (dr__section){ 0 };
        dr__alloc_fail_at(n, false);
        status = dr__remote_index_encode(set, root, "n", &made, &err);
        dr__alloc_fail_at(0, false);
    }
    assert_int_equal(status, DR_OK);
    status = DR_ERR_NOMEM;
    for (long n = 1; status == DR_ERR_NOMEM; n++) {
        dr__alloc_fail_at(n, false);
        status = dr__remote_index_decode(made.data, made.size, &x, &err);
        dr__alloc_fail_at(0, false);
    }
    assert_int_equal(status, DR_OK);
    dr__remote_index_free(&x);
    dr__sections_free(&made, 1);
    dr_dataset_unref(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(folders_are_told, tree_make, tree_remove),
        cmocka_unit_test_setup_teardown(shards_are_told, tree_make, tree_remove),
        cmocka_unit_test_setup_teardown(files_outside_the_root_are_not_told, tree_make, tree_remove),
        cmocka_unit_test_setup_teardown(sets_that_tell_nothing_are_unknown, tree_make, tree_remove),
        cmocka_unit_test(paths_that_lead_out_are_told),
        cmocka_unit_test_setup_teardown(damaged_indexes_are_refused, tree_make, tree_remove),
        cmocka_unit_test_setup_teardown(failing_allocations_leave_nothing, tree_make, tree_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
