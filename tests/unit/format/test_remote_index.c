/* The index of a set on a server: what is written is read, and nothing else does harm. */
#include "tree.h"

#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "format/remote_index.h"
#include "unit/cm.h"

static dr_error err;

static dr_dataset *opened(const char *path)
{
    dr_dataset *set;
    assert_ok(dr_dataset_open(path, NULL, &set, &err));
    return set;
}

static void make_folder(void)
{
    put_text(at("set/cat/b.jpg"), "12345");
    put_text(at("set/cat/a.jpg"), "1");
    put_text(at("set/dog/deep/c d.jpg"), "123");
    put_text(at("set/\xc3\xa4/x.jpg"), "1234567");
}

static uint64_t thrice(const dr_dataset *set, uint64_t id)
{
    (void)set;
    return id * 3;
}

static void check_equal(const dr_dataset *set, const dr__remote_index *x)
{
    char key[256];
    uint64_t stamp;
    assert_string_equal(x->format, set->format);
    assert_int_equal(x->n_samples, set->n_samples);
    assert_true(x->fingerprint == set->fingerprint && x->content == set->content);
    assert_int_equal(x->n_fields, set->n_fields);
    for (int i = 0; i < set->n_fields; i++) {
        assert_string_equal(x->fields[i].name, set->fields[i].name);
        assert_memory_equal(&x->fields[i].desc, &set->fields[i].desc, sizeof(dr_desc));
    }
    assert_int_equal(x->n_classes, set->n_classes);
    for (size_t i = 0; i < set->n_classes; i++)
        assert_string_equal(x->classes[i], set->classes[i]);
    for (uint64_t i = 0; i < set->n_samples; i++) {
        set->def->key(set, i, key, sizeof key);
        assert_string_equal(dr__names_get(&x->keys, i), key);
        assert_int_equal(x->sizes[i], 3 * i);
        assert_ok(dr__dataset_stamp(set, i, &stamp, &err));
        assert_true(x->stamps[i] == stamp);
    }
}

static dr__section encoded(const dr_dataset *set)
{
    dr__section s;
    assert_ok(dr__remote_index_encode(set, thrice, &s, &err));
    return s;
}

static void of_a_folder(void **state)
{
    (void)state;
    make_folder();
    dr_dataset *set = opened(at("set"));
    dr__section s = encoded(set);
    dr__remote_index x;
    assert_ok(dr__remote_index_decode(s.data, s.size, "far", &x, &err));
    check_equal(set, &x);
    assert_int_equal(x.from[0], DR__REMOTE_FROM_FILE);
    assert_int_equal(x.from[1], DR__REMOTE_FROM_CLASS);
    assert_int_equal(x.from[2], DR__REMOTE_FROM_KEY);
    dr__record r;
    dr__record_init(&r);
    for (uint64_t i = 0; i < set->n_samples; i++) { /* what a client makes by itself is what the format reads */
        int64_t label;
        assert_ok(set->def->read(set, i, &r, &err));
        memcpy(&label, r.fields[1].data, sizeof label);
        assert_int_equal(dr__remote_index_class(&x, i), label);
        assert_string_equal(dr__remote_index_file(&x, i), dr__names_get(&x.keys, i));
    }
    dr__record_free(&r);
    dr__remote_index_free(&x);
    dr__sections_free(&s, 1);
    dr_dataset_unref(&set);
}

static void of_a_list(void **state)
{
    (void)state;
    make_folder();
    put_text(at("all.csv"), "path,label\nset/cat/a.jpg,4\nset/dog/deep/c d.jpg,7\n");
    dr_dataset *set = opened(at("all.csv"));
    dr__section s = encoded(set);
    dr__remote_index x;
    assert_ok(dr__remote_index_decode(s.data, s.size, "far", &x, &err));
    check_equal(set, &x);
    for (int i = 0; i < x.n_fields; i++) /* who knows what the list says: only the server */
        assert_int_equal(x.from[i], DR__REMOTE_FROM_SERVER);
    dr__remote_index_free(&x);
    dr__sections_free(&s, 1);
    dr_dataset_unref(&set);
}

static void selections_have_none(void **state)
{
    (void)state;
    make_folder();
    dr_dataset *set = opened(at("set")), *some;
    dr__section s;
    assert_ok(dr_dataset_select(set, (const int64_t[]){ 1, 0 }, 2, &some, &err));
    assert_fails(dr__remote_index_encode(some, NULL, &s, &err), DR_ERR_UNSUPPORTED, "selection");
    dr_dataset_unref(&some);
    dr_dataset_unref(&set);
}

/* An index with one text in section 1, and these keys. */
static dr_status decode_made(const char *what, const char *keys, size_t keys_size)
{
    dr__section parts[] = { { .id = 1 }, { .id = 2 }, { .id = 3 }, { .id = 4 }, { .id = 5 } }, whole;
    dr__remote_index x;
    dr__put_bytes(&parts[0], what, strlen(what) + 1);
    dr__put_bytes(&parts[1], keys, keys_size);
    dr__index_encode(parts, 5, &whole);
    const dr_status status = dr__remote_index_decode(whole.data, whole.size, "far", &x, &err);
    dr__remote_index_free(&x);
    dr__sections_free(parts, 5);
    dr__sections_free(&whole, 1);
    return status;
}

#define WHAT(protocol, samples, from)                                                                                  \
    "{\"protocol\":" protocol ",\"format\":\"flat\",\"samples\":" samples                                              \
    ",\"fingerprint\":\"0123456789abcdef\",\"content\":\"0000000000000000\",\"fields\":[{\"name\":\"image\","          \
    "\"kind\":4,\"dtype\":1,\"layout\":0,\"dims\":[-1]" from "}]}"

static void wrong_ones_are_told(void **state)
{
    (void)state;
    assert_ok(decode_made(WHAT("1", "2", ",\"from\":\"file\""), "a\0b", 4));
    assert_fails(decode_made(WHAT("2", "2", ""), "a\0b", 4), DR_ERR_UNSUPPORTED, "another version");
    assert_fails(decode_made(WHAT("1", "3", ""), "a\0b", 4), DR_ERR_FORMAT, "");
    assert_fails(decode_made(WHAT("1", "1", ""), "a\0b", 4), DR_ERR_FORMAT, "more names");
    assert_fails(decode_made(WHAT("1", "4000000000000", ""), "a\0b", 4), DR_ERR_FORMAT, "fewer names");
    assert_fails(decode_made(WHAT("1", "-1", ""), "", 0), DR_ERR_FORMAT, "");
    assert_fails(decode_made(WHAT("1", "1", ",\"from\":\"key\""), "a", 2), DR_ERR_FORMAT, "field");
    assert_fails(decode_made("{", "a", 2), DR_ERR_FORMAT, "JSON");
    static const char *const outside[] = { "../a", "/a", "a/../b", "a//b", "./a", "" };
    for (size_t i = 0; i < DR_COUNT(outside); i++)
        assert_fails(decode_made(WHAT("1", "1", ",\"from\":\"file\""), outside[i], strlen(outside[i]) + 1),
                     DR_ERR_FORMAT, "out of the set");
}

static void damage_is_found(void **state)
{
    (void)state;
    make_folder();
    dr_dataset *set = opened(at("set"));
    dr__section s = encoded(set);
    dr_rng rng = dr__rng_open(&(dr__rng_name){ .seed = 4 }, 0);
    for (int i = 0; i < 500; i++) {
        dr__remote_index x;
        const size_t place = (size_t)dr__rng_below(&rng, s.size);
        const uint8_t was = s.data[place];
        s.data[place] ^= (uint8_t)(1 + dr__rng_below(&rng, 255));
        if (dr__remote_index_decode(s.data, s.size, "far", &x, &err) == DR_OK) /* in padding or an unused number */
            assert_true(x.n_samples == set->n_samples && x.fingerprint == set->fingerprint);
        dr__remote_index_free(&x);
        s.data[place] = was;
        const size_t size = (size_t)dr__rng_below(&rng, s.size);
        assert_int_not_equal(dr__remote_index_decode(s.data, size, "far", &x, &err), DR_OK);
        dr__remote_index_free(&x);
    }
    dr__sections_free(&s, 1);
    dr_dataset_unref(&set);
}

static void memory_may_be_short(void **state)
{
    (void)state;
    make_folder();
    dr_dataset *set = opened(at("set"));
    dr__section s = encoded(set);
    dr_status status = DR_ERR_NOMEM;
    for (long n = 1; status == DR_ERR_NOMEM; n++) {
        dr__remote_index x;
        dr__alloc_fail_at(n, false);
        status = dr__remote_index_decode(s.data, s.size, "far", &x, &err);
        dr__alloc_fail_at(0, false);
        dr__remote_index_free(&x);
    }
    assert_int_equal(status, DR_OK);
    dr__sections_free(&s, 1);
    dr_dataset_unref(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(of_a_folder, tree_make, tree_remove),
        cmocka_unit_test_setup_teardown(of_a_list, tree_make, tree_remove),
        cmocka_unit_test_setup_teardown(selections_have_none, tree_make, tree_remove),
        cmocka_unit_test(wrong_ones_are_told),
        cmocka_unit_test_setup_teardown(damage_is_found, tree_make, tree_remove),
        cmocka_unit_test_setup_teardown(memory_may_be_short, tree_make, tree_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
