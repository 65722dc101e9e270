/* Frames of a drapps server: what is written is read, and nothing else is. */
#include "unit/cm.h"

#include <xxhash.h>

#include "base/alloc.h"
#include "data/desc.h"
#include "format/remote_frame.h"

static dr_error err;

enum { HEAD = DR__REMOTE_HEAD };

static const dr__remote_head HERE = { .id = 0x123456789abcull, .prefix = 3, .entry = 65535, .cpu_us = 1234 };

static dr_view view_of(dr_desc desc, void *data)
{
    return dr__view_dense(&desc, data);
}

/* Four fields: bytes, an image with padded rows, a volume with spacing, a scalar. */
typedef struct fields {
    uint8_t bytes[5], pixels[4 * 64], voxels[2 * 3 * 4];
    int64_t number;
    dr_view views[4];
} fields;

static void fill(fields *f)
{
    dr_desc volume = dr__desc_volume(DR_U8, (const int64_t[]){ 1, 2, 3, 4 });
    volume.spacing[0] = 2.5;
    volume.spacing[2] = 0.125;
    memset(f->pixels, 0xEE, sizeof f->pixels);
    for (int i = 0; i < 5; i++)
        f->bytes[i] = (uint8_t)(i * 50);
    for (int i = 0; i < 24; i++)
        f->voxels[i] = (uint8_t)i;
    f->number = -7;
    f->views[0] = view_of(dr__desc_bytes(5), f->bytes);
    f->views[1] = view_of(dr__desc_image(DR_U8, 4, 6, 3), f->pixels);
    f->views[1].stride = 64;
    f->views[2] = view_of(volume, f->voxels);
    f->views[3] = view_of(dr__desc_scalar(DR_I64), &f->number);
    for (int y = 0; y < 4; y++)
        for (int x = 0; x < 18; x++)
            f->pixels[y * 64 + x] = (uint8_t)(y * 18 + x);
}

static dr__text frame_of(const dr_codec *codec)
{
    fields f;
    dr__text out = { 0 };
    fill(&f);
    assert_ok(dr__remote_put_sample(&out, &HERE, f.views, 4, codec, &err));
    return out;
}

static dr__remote_head head_of(const dr__text *frame)
{
    dr__remote_head head;
    assert_ok(dr__remote_parse_head(frame->text, UINT64_MAX, &head, &err));
    return head;
}

static void samples_come_back(void **state)
{
    (void)state;
    fields f;
    dr__record r;
    dr__text frame = frame_of(NULL);
    const dr__remote_head head = head_of(&frame);
    fill(&f);
    dr__record_init(&r);
    assert_int_equal(head.kind, DR__REMOTE_SAMPLE);
    assert_true(head.id == HERE.id);
    assert_int_equal(head.prefix, 3);
    assert_int_equal(head.entry, 65535);
    assert_int_equal(head.cpu_us, 1234);
    assert_int_equal(head.n_fields, 4);
    assert_int_equal(head.size, frame.n - HEAD);
    assert_ok(dr__remote_check(&head, frame.text + HEAD, &err));
    assert_ok(dr__remote_read_sample(&head, frame.text + HEAD, &r, &err));
    assert_int_equal(r.n_fields, 4);
    for (int i = 0; i < 4; i++)
        assert_true(dr__desc_equal(&r.fields[i].desc, &f.views[i].desc));
    assert_memory_equal(r.fields[0].data, f.bytes, 5);
    for (int i = 0; i < 72; i++)
        assert_int_equal(r.fields[1].data[i], i);
    assert_memory_equal(r.fields[2].data, f.voxels, 24);
    assert_memory_equal(r.fields[2].desc.spacing, f.views[2].desc.spacing, sizeof f.views[2].desc.spacing);
    assert_memory_equal(r.fields[3].data, &f.number, 8);
    dr__remote_set_cpu(&frame, 0, 99);
    assert_int_equal(head_of(&frame).cpu_us, 99);
    dr__record_free(&r);
    dr__free(frame.text);
}

/* The layout is a promise to other machines and later versions. */
static void bytes_are_as_they_are_described(void **state)
{
    (void)state;
    dr__text frame = { 0 };
    uint8_t value[2] = { 0xAB, 0xCD };
    const dr_view view = view_of(dr__desc_bytes(2), value);
    const dr__remote_head h = { .id = 1, .prefix = 0x203, .entry = 0x405, .cpu_us = 6 };
    assert_ok(dr__remote_put_sample(&frame, &h, &view, 1, NULL, &err));
    static const uint8_t want[] = { 'D', 'R', 'F', '1', 0, 0, 1, 0, 1,  0, 0, 0, 0, 0, 0, 0,
                                    3,   2,   5,   4,   6, 0, 0, 0, 18, 0, 0, 0, 0, 0, 0, 0 };
    static const uint8_t payload[] = {
        2, 0, 0, 0, 0, 0, 0, 0, DR_U8, 1, 0, DR_KIND_BYTES | 0x80, 2, 0, 0, 0, 0xAB, 0xCD
    };
    const uint64_t sum = XXH3_64bits(payload, sizeof payload);
    assert_int_equal(frame.n, HEAD + sizeof payload);
    assert_memory_equal(frame.text, want, sizeof want);
    assert_memory_equal(frame.text + 32, &sum, 8);
    assert_memory_equal(frame.text + HEAD, payload, sizeof payload);
    dr__free(frame.text);
}

static void fields_are_compressed_where_that_pays(void **state)
{
    (void)state;
    static uint8_t flat[4096], noise[4096];
    dr_codec *codec = NULL;
    dr__text frame = { 0 };
    dr__record r;
    if (dr_codec_open("lz4", NULL, &codec, &err) != DR_OK)
        skip();
    dr__record_init(&r);
    for (uint32_t i = 0, s = 1; i < sizeof noise; i++)
        noise[i] = (uint8_t)((s = s * 1664525u + 1013904223u) >> 24);
    const dr_view views[2] = { view_of(dr__desc_image(DR_U8, 32, 32, 4), flat), view_of(dr__desc_bytes(4096), noise) };
    assert_ok(dr__remote_put_sample(&frame, &HERE, views, 2, codec, &err));
    assert_in_range(frame.n, 4096, 4096 + 1000);
    const dr__remote_head head = head_of(&frame);
    assert_ok(dr__remote_read_sample(&head, frame.text + HEAD, &r, &err));
    assert_memory_equal(r.fields[0].data, flat, sizeof flat);
    assert_memory_equal(r.fields[1].data, noise, sizeof noise);
    r.max_bytes = 5000; /* less than both fields */
    assert_fails(dr__remote_read_sample(&head, frame.text + HEAD, &r, &err), DR_ERR_LIMIT, "the memory limit allows");
    dr__record_free(&r);
    dr__free(frame.text);
    dr_codec_close(&codec);
}

static void segments_come_back(void **state)
{
    (void)state;
    static dr__remote_range ranges[DR__REMOTE_RANGES];
    const dr__remote_range want[] = { { 2, 3 }, { 0, 1 }, { 9, 0 } };
    const uint8_t *bytes;
    int n;
    dr__text frame = { 0 };
    assert_ok(dr__remote_put_segments(&frame, &HERE, want, 3, "cdea", 4, &err));
    const dr__remote_head head = head_of(&frame);
    assert_int_equal(head.kind, DR__REMOTE_SEGMENTS);
    assert_ok(dr__remote_check(&head, frame.text + HEAD, &err));
    assert_ok(dr__remote_read_segments(&head, frame.text + HEAD, ranges, &n, &bytes, &err));
    assert_int_equal(n, 3);
    assert_memory_equal(ranges, want, sizeof want);
    assert_memory_equal(bytes, "cdea", 4);
    const size_t before = frame.n;
    assert_fails(dr__remote_put_segments(&frame, &HERE, want, 3, "cdea", 3, &err), DR_ERR_ARG, "more than 3 bytes");
    assert_fails(dr__remote_put_segments(&frame, &HERE, want, 3, "cdea", 5, &err), DR_ERR_ARG, "less than 5 bytes");
    assert_int_equal(frame.n, before);
    dr__free(frame.text);
}

static void errors_come_back(void **state)
{
    (void)state;
    dr_error why = { 0 }, got = { 0 };
    dr__text frame = { 0 };
    dr__fail(&why, DR_ERR_FORMAT, "a.jpg: \x1b[2Jends in the middle");
    assert_ok(dr__remote_put_error(&frame, &HERE, &why, &err));
    dr__remote_head head = head_of(&frame);
    assert_int_equal(head.kind, DR__REMOTE_ERROR);
    assert_ok(dr__remote_read_error(&head, frame.text + HEAD, &got, &err));
    assert_int_equal(got.status, DR_ERR_FORMAT);
    assert_string_equal(got.text, "a.jpg:  [2Jends in the middle");
    frame.text[HEAD] = 0; /* a status that is none of an error */
    frame.text[HEAD + 1] = frame.text[HEAD + 2] = frame.text[HEAD + 3] = 0;
    assert_fails(dr__remote_read_error(&head, frame.text + HEAD, &got, &err), DR_ERR_FORMAT, "none of an error");
    dr__free(frame.text);
}

static dr_status parse_changed(dr__text *frame, size_t at, uint8_t value)
{
    dr__remote_head head;
    const char before = frame->text[at];
    frame->text[at] = (char)value;
    const dr_status status = dr__remote_parse_head(frame->text, 1 << 20, &head, &err);
    frame->text[at] = before;
    return status;
}

static void heads_are_checked(void **state)
{
    (void)state;
    dr__text frame = frame_of(NULL);
    dr__remote_head head;
    assert_fails(parse_changed(&frame, 0, 'X'), DR_ERR_FORMAT, "no frame of a drapps server");
    assert_fails(parse_changed(&frame, 4, 3), DR_ERR_FORMAT, "kind 3");
    assert_fails(parse_changed(&frame, 5, 1), DR_ERR_FORMAT, "flags 1");
    assert_fails(parse_changed(&frame, 7, 0x7f), DR_ERR_FORMAT, "fields");
    assert_fails(parse_changed(&frame, 4, 2), DR_ERR_FORMAT, "4 fields in one of kind 2");
    assert_fails(parse_changed(&frame, 30, 1), DR_ERR_LIMIT, "1048576 are allowed");
    assert_fails(dr__remote_parse_head(frame.text, frame.n - HEAD - 1, &head, &err), DR_ERR_LIMIT, "are allowed");
    assert_ok(dr__remote_parse_head(frame.text, frame.n - HEAD, &head, &err));
    frame.text[HEAD + 20] ^= 1;
    assert_fails(dr__remote_check(&head, frame.text + HEAD, &err), DR_ERR_FORMAT, "checksum");
    dr__free(frame.text);
}

/* Every byte of a payload changed to several values, and every length: no crash, and no value of another size. */
static void damaged_payloads_are_refused_or_have_the_same_shape(void **state)
{
    (void)state;
    dr_codec *codec = NULL;
    dr__record r;
    if (dr_codec_open("lz4", NULL, &codec, &err) != DR_OK)
        codec = NULL;
    dr__record_init(&r);
    r.max_bytes = 1 << 20;
    dr__text frame = frame_of(codec);
    dr__remote_head head = head_of(&frame);
    size_t refused = 0;
    for (size_t at = HEAD; at < frame.n; at++)
        for (int bit = 0; bit < 8; bit++) {
            frame.text[at] ^= (char)(1 << bit);
            refused += dr__remote_read_sample(&head, frame.text + HEAD, &r, &err) != DR_OK;
            frame.text[at] ^= (char)(1 << bit);
        }
    assert_true(refused > 100);
    const uint64_t size = head.size;
    for (head.size = 0; head.size < size; head.size++) {
        uint8_t *cut = malloc(head.size + 1); /* so that a sanitizer sees a read behind its end */
        memcpy(cut, frame.text + HEAD, head.size);
        assert_int_not_equal(dr__remote_read_sample(&head, cut, &r, &err), DR_OK);
        free(cut);
    }
    dr__record_free(&r);
    dr__free(frame.text);
    dr_codec_close(&codec);
}

static void failing_allocations_take_the_frame_back(void **state)
{
    (void)state;
    fields f;
    dr__text frame = { 0 };
    dr_error why = { .status = DR_ERR_IO, .text = "why" };
    dr_status status = DR_ERR_NOMEM;
    fill(&f);
    assert_ok(dr__remote_put_error(&frame, &HERE, &why, &err));
    const size_t before = frame.n;
    for (long n = 1; status == DR_ERR_NOMEM; n++) {
        dr__alloc_fail_at(n, true);
        status = dr__remote_put_sample(&frame, &HERE, f.views, 4, NULL, &err);
        dr__alloc_fail_at(0, false);
        assert_true(status == DR_OK || frame.n == before);
    }
    assert_int_equal(status, DR_OK);
    dr__free(frame.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_come_back),
        cmocka_unit_test(bytes_are_as_they_are_described),
        cmocka_unit_test(fields_are_compressed_where_that_pays),
        cmocka_unit_test(segments_come_back),
        cmocka_unit_test(errors_come_back),
        cmocka_unit_test(heads_are_checked),
        cmocka_unit_test(damaged_payloads_are_refused_or_have_the_same_shape),
        cmocka_unit_test(failing_allocations_take_the_frame_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
