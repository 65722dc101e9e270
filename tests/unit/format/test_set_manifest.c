/* test_set_manifest.c: manifests there and back; one changed byte is noticed; which member is which field. */
#include "../cm.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "data/desc.h"
#include "format/set_manifest.h"

static dr__set_field field(const char *name, dr_desc desc, dr__stored stored, const char *packed)
{
    dr__set_field f = { .field = { .desc = desc }, .stored = stored };
    snprintf(f.field.name, sizeof f.field.name, "%s", name);
    snprintf(f.codec, sizeof f.codec, "%s", packed[0] ? "zstd:3" : "");
    snprintf(f.packed, sizeof f.packed, "%s", packed);
    dr__member_name(name, 7, f.member);
    return f;
}

static void make(dr__manifest *m)
{
    *m = (dr__manifest){ .generation = 3, .prefix = dr__strdup("{\"nodes\":[]}") };
    m->fields = dr__alloc_zero(6, sizeof *m->fields);
    m->fields[0] = field("image", dr__desc_bytes(DR_UNKNOWN), DR__STORED_FILE, "");
    m->fields[1] = field("label", dr__desc_scalar(DR_I64), DR__STORED_CLS, "");
    m->fields[2] = field("key", dr__desc_text(DR_UNKNOWN), DR__STORED_KEY, "");
    m->fields[3] = field("caption", dr__desc_text(DR_UNKNOWN), DR__STORED_FILE, ".zst");
    m->fields[4] = field("Scan", dr__desc_volume(DR_F32, (int64_t[]){ 1, -1, -1, -1 }), DR__STORED_NPY, ".drz");
    m->fields[5] = field("a/b", dr__desc_scalar(DR_F64), DR__STORED_NPY, ".zst");
    m->n_fields = 6;
    m->classes = dr__alloc_zero(2, sizeof *m->classes);
    m->classes[m->n_classes++] = dr__strdup("ant");
    m->classes[m->n_classes++] = dr__strdup("b\xC3\xA9\x65");
    const dr__set_shard shard = { .name = "s-000000.tar",
                                  .size = 4096,
                                  .sum = 1,
                                  .samples = 2,
                                  .index_size = 9,
                                  .index_sum = ~UINT64_C(0),
                                  .keys = DR__KEY_NUMBER };
    assert_true(dr__manifest_add_shard(m, &shard) && dr__manifest_add_source(m, "photos", 77, 2));
}

static void test_there_and_back(void **state)
{
    (void)state;
    dr__manifest m, n;
    dr_error err = { 0 };
    make(&m);
    char *text = dr__manifest_encode(&m);
    assert_int_equal(dr__manifest_decode(text, strlen(text), "m", &n, &err), DR_OK);
    char *again = dr__manifest_encode(&n);
    assert_string_equal(text, again);
    assert_int_equal(n.generation, 3);
    assert_string_equal(n.classes[1], "b\xC3\xA9\x65");
    assert_true(n.shards[0].index_sum == ~UINT64_C(0) && n.shards[0].keys == DR__KEY_NUMBER);
    assert_true(dr__desc_equal(&n.fields[4].field.desc, &m.fields[4].field.desc));
    dr__free(text);
    dr__free(again);
    dr__manifest_free(&m);
    dr__manifest_free(&n);
}

static void test_every_flip_is_noticed(void **state)
{
    (void)state;
    dr__manifest m, n;
    dr_error err = { 0 };
    make(&m);
    char *text = dr__manifest_encode(&m);
    const size_t size = strlen(text);
    for (size_t i = 0; i < size; i++)
        for (int bit = 0; bit < 8; bit++) {
            text[i] ^= (char)(1 << bit);
            if (dr__manifest_decode(text, size, "m", &n, &err) == DR_OK) { /* blanks between members may change */
                char *again = dr__manifest_encode(&n);
                text[i] ^= (char)(1 << bit);
                assert_string_equal(text, again);
                text[i] ^= (char)(1 << bit);
                dr__free(again);
                dr__manifest_free(&n);
            }
            text[i] ^= (char)(1 << bit);
        }
    for (size_t i = 0; i < size; i += 7)
        assert_int_not_equal(dr__manifest_decode(text, i, "m", &n, &err), DR_OK);
    dr__free(text);
    dr__manifest_free(&m);
}

static void is(const dr__manifest *m, const char *ext, int field, dr__member_form form)
{
    dr__member_form found;
    assert_int_equal(dr__manifest_member_of(m, ext, &found), field);
    if (field >= 0)
        assert_int_equal(found, form);
}

static void test_members(void **state)
{
    (void)state;
    dr__manifest m;
    make(&m);
    is(&m, "jpg", 0, DR__MEMBER_PLAIN);
    is(&m, "image.dcm", 0, DR__MEMBER_PLAIN);
    is(&m, "jpg.zst", -1, 0); /* it has no codec */
    is(&m, "caption.txt", 3, DR__MEMBER_PLAIN);
    is(&m, "caption.txt.zst", 3, DR__MEMBER_TOOL);
    is(&m, "caption.txt.lz4", 3, DR__MEMBER_PLAIN); /* a file of that name */
    is(&m, "scan.npy", 4, DR__MEMBER_PLAIN);
    is(&m, "scan.drz", 4, DR__MEMBER_FRAME);
    is(&m, "scan.spacing.txt", 4, DR__MEMBER_SPACING);
    is(&m, "f7.npy.zst", 5, DR__MEMBER_TOOL);
    is(&m, "origin.json", -1, 0);
    is(&m, "cls", -1, 0);
    is(&m, "", -1, 0);
    dr__manifest_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_every_flip_is_noticed),
        cmocka_unit_test(test_members),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
