/* test_jpeg_partial.c: a rectangle needs the head of a JPEG and some ranges of it, and nothing else.
 *
 * Every range is copied into heap memory of its own, which ends where the range does, so that a sanitizer sees each
 * byte that is read outside.  DRAPPS_TEST_SEED repeats a run, DRAPPS_TEST_ROUNDS sets how many images the random tests
 * take.
 */
#include "unit/cm.h"

#include "codec/image/image_state.h"
#include "codec/image/jpeg_baseline.h"
#include "codec/image/jpeg_note.h"
#include "codec/image/pixels.h"
#include "unit/codec/image/decode_helper.h"
#include "unit/codec/image/jpeg_kind.h"

enum { RECTS = 8 };

static dr_codec_state *own, *partly; /* `partly` sees nothing but partial files */
static dr__seek_points points;

static int set_up(void **unused)
{
    (void)unused;
    own = dr__codec_state_new();
    partly = dr__codec_state_new();
    return own && partly ? 0 : -1;
}

static int tear_down(void **unused)
{
    (void)unused;
    dr__seek_free(&points);
    dr__codec_state_free(&own);
    dr__codec_state_free(&partly);
    return 0;
}

static uint64_t first_seed(void)
{
    const char *text = getenv("DRAPPS_TEST_SEED");
    return text ? strtoull(text, NULL, 10) : 20261119;
}

static int rounds(int normal)
{
    const char *text = getenv("DRAPPS_TEST_ROUNDS");
    return text ? atoi(text) : normal;
}

/* A file with all that is known of it. */
struct known {
    struct blob file;
    dr__decode_options options; /* without points or parts */
    struct picture whole;
    dr__jpeg_head head;
    dr__jpeg_frame frame;
};

static void known_free(struct known *k)
{
    picture_free(&k->whole);
    blob_free(&k->file);
}

/* Decodes a file and learns its points; takes the blob.  False: it is left to libjpeg. */
static bool learn(struct blob file, bool orient, dr__color_mode mode, struct known *k)
{
    dr_error err = { 0 };
    *k = (struct known){ .file = file };
    dr__decode_defaults(&k->options);
    k->options.exif_orient = orient;
    k->options.mode = mode;
    dr__decode_options options = k->options;
    dr__seek_clear(&points);
    options.seek = &points;
    assert_int_equal(picture_decode(own, &k->file, &options, NULL, &k->whole, &err), DR_OK);
    const bool made = dr__jpeg_head_make(k->file.data, k->file.size, &k->head);
    if (made && points.n)
        assert_true(dr__jpeg_head_parse(k->head.bytes, k->head.size, k->head.scan, k->head.orientation, &k->frame));
    return made && points.n;
}

static dr_rect stored_area(const struct known *k, const dr_rect *rect)
{
    const int orientation = k->options.exif_orient ? k->head.orientation : 1;
    return dr__orient_rect(orientation, k->frame.width, k->frame.height, rect);
}

struct pieces {
    int n;
    dr__byte_piece at[DR__MOST_RANGES];
};

static struct pieces copy_pieces(const struct blob *file, const dr__byte_ranges *ranges)
{
    struct pieces p = { .n = ranges->n };
    for (int i = 0; i < ranges->n; i++) {
        const dr__byte_range *r = &ranges->at[i];
        assert_true(r->offset < file->size && r->size <= file->size - r->offset);
        assert_true(i == 0 || r->offset > ranges->at[i - 1].offset + ranges->at[i - 1].size);
        struct blob part = blob_copy(file->data + r->offset, (size_t)r->size);
        p.at[i] = (dr__byte_piece){ r->offset, (size_t)r->size, part.data };
    }
    return p;
}

static void pieces_free(struct pieces *p)
{
    for (int i = 0; i < p->n; i++)
        blob_free(&(struct blob){ (uint8_t *)p->at[i].data, p->at[i].size });
}

/* Decodes a rectangle from the pieces alone, into guarded memory, or as bands. */
static dr_status decode_pieces(const struct known *k, const struct pieces *pieces, const dr_rect *rect, bool bands,
                               struct picture *out)
{
    const dr__jpeg_partial partial = { .size = k->file.size,
                                       .scan = k->head.scan,
                                       .orientation = k->head.orientation,
                                       .pieces = pieces->at,
                                       .n_pieces = pieces->n };
    dr_error err = { 0 };
    dr__decode_options options = k->options;
    struct blob head = blob_copy(k->head.bytes, k->head.size);
    options.partial = &partial;
    options.seek = &points;
    dr_status status = picture_decode(partly, &head, &options, rect, out, &err);
    if (status == DR_OK && bands) {
        status = picture_stream(partly, &head, &options, out, &err);
        if (status != DR_OK)
            picture_free(out);
    }
    assert_null(partly->jpeg); /* libjpeg was not even made */
    if (status != DR_OK && status != DR_ERR_STATE)
        fail_msg("%s", err.text);
    blob_free(&head);
    return status;
}

static void check_rect(const struct known *k, const dr_rect *rect, uint64_t gap, bool bands, const char *what)
{
    dr__byte_ranges ranges;
    struct picture out;
    const dr_rect area = stored_area(k, rect);
    if (!dr__jpeg_ranges(&k->frame, &points, k->file.size, &area, gap, &ranges))
        fail_msg("%s: no ranges", what);
    assert_in_range(ranges.n, 1, gap == UINT64_MAX ? 1 : DR__MOST_RANGES);
    assert_true(dr__byte_ranges_total(&ranges) <= k->file.size - k->head.scan);
    struct pieces pieces = copy_pieces(&k->file, &ranges);
    if (decode_pieces(k, &pieces, rect, bands, &out) != DR_OK)
        fail_msg("%s: rectangle %lld,%lld %lld x %lld from %d pieces failed", what, (long long)rect->x,
                 (long long)rect->y, (long long)rect->w, (long long)rect->h, pieces.n);
    if (!picture_matches(&out, &k->whole) || !picture_guarded(&out))
        fail_msg("%s: rectangle %lld,%lld %lld x %lld from %d pieces differs", what, (long long)rect->x,
                 (long long)rect->y, (long long)rect->w, (long long)rect->h, pieces.n);
    picture_free(&out);
    pieces_free(&pieces);
}

static void check_rects(const struct known *k, uint64_t *s, const char *what)
{
    static const uint64_t gaps[] = { 0, 1, 100, 4096, UINT64_MAX };
    const dr_rect all = { 0, 0, k->whole.info.width, k->whole.info.height };
    check_rect(k, &all, 0, false, what);
    for (int i = 0; i < RECTS; i++) {
        const dr_rect r = random_rect(s, all.w, all.h);
        check_rect(k, &r, gaps[random_in(s, 0, 4)], i & 1, what);
    }
}

static void test_all_kinds(void **unused)
{
    (void)unused;
    int taken = 0, n = rounds(600);
    print_message("seed %llu\n", (unsigned long long)first_seed());
    for (int i = 0; i < n; i++) {
        char kind[300], what[400];
        uint64_t s = first_seed() + (uint64_t)i;
        struct known k;
        struct jpeg_spec spec = random_kind(&s, i % 20 ? 120 : 500);
        describe_kind(&spec, kind, sizeof kind);
        snprintf(what, sizeof what, "seed %llu: %s", (unsigned long long)(first_seed() + (uint64_t)i), kind);
        const dr__color_mode mode = random_in(&s, 0, 2) ? DR__MODE_RGB : (dr__color_mode)random_in(&s, 0, 3);
        if (learn(make_jpeg(&spec), random_in(&s, 0, 1), mode, &k)) {
            check_rects(&k, &s, what);
            taken++;
        } else { /* such a file is read whole */
            assert_int_equal(points.n, 0);
        }
        known_free(&k);
    }
    if (n >= 100)
        assert_in_range(taken, n / 2, n - 1);
}

static struct jpeg_spec photo(int width, int height, int restart, uint64_t seed)
{
    return (struct jpeg_spec){ .width = width,
                               .height = height,
                               .color = JPEG_YCC,
                               .h = { 2, 1, 1 },
                               .v = { 2, 1, 1 },
                               .restart = restart,
                               .seed = seed };
}

/* More rows than there may be ranges. */
static void test_many_rows(void **unused)
{
    (void)unused;
    for (int i = 0; i < 2; i++) {
        struct known k;
        dr__byte_ranges one, most;
        const struct jpeg_spec spec = photo(300, 6000, i ? 5 : 0, 3);
        const dr_rect left = { 0, 0, 50, 6000 };
        assert_true(learn(make_jpeg(&spec), false, DR__MODE_RGB, &k));
        check_rect(&k, &left, 0, true, "many rows");
        check_rect(&k, &(dr_rect){ 100, 100, 60, 5700 }, 0, false, "many rows");
        assert_true(dr__jpeg_ranges(&k.frame, &points, k.file.size, &left, UINT64_MAX, &one));
        assert_true(dr__jpeg_ranges(&k.frame, &points, k.file.size, &left, 0, &most));
        assert_in_range(most.n, DR__MOST_RANGES / 2, DR__MOST_RANGES); /* the smallest gaps are closed, and no more */
        assert_in_range(dr__byte_ranges_total(&most), 1, dr__byte_ranges_total(&one) * 3 / 4);
        known_free(&k);
    }
}

/* The middle of an image takes a fraction of its bytes, by one range and by several. */
static void test_fewer_bytes(void **unused)
{
    (void)unused;
    struct known k;
    dr__byte_ranges one, several;
    const struct jpeg_spec spec = photo(1000, 1000, 0, 5);
    const dr_rect middle = { 300, 300, 400, 400 };
    assert_true(learn(make_jpeg(&spec), false, DR__MODE_RGB, &k));
    assert_true(dr__jpeg_ranges(&k.frame, &points, k.file.size, &middle, UINT64_MAX, &one));
    assert_true(dr__jpeg_ranges(&k.frame, &points, k.file.size, &middle, 0, &several));
    assert_int_equal(one.n, 1);
    assert_in_range(several.n, 25, 27);
    assert_in_range(dr__byte_ranges_total(&one), k.file.size * 30 / 100, k.file.size * 55 / 100);
    assert_in_range(dr__byte_ranges_total(&several), k.file.size * 15 / 100, dr__byte_ranges_total(&one) * 80 / 100);
    known_free(&k);
}

/* Whole files whose other bytes are garbage: with all points known, these are not looked at. */
static void test_other_bytes_do_not_matter(void **unused)
{
    (void)unused;
    uint64_t s = first_seed() + 1000000;
    for (int i = 0; i < rounds(60); i++) {
        struct known k;
        dr__byte_ranges ranges;
        struct picture out;
        dr_error err = { 0 };
        const struct jpeg_spec spec =
            photo(random_in(&s, 40, 300), random_in(&s, 40, 300), i % 3 ? 0 : 7, next_random(&s));
        assert_true(learn(make_jpeg(&spec), false, DR__MODE_RGB, &k));
        const dr_rect r = random_rect(&s, spec.width, spec.height);
        assert_true(dr__jpeg_ranges(&k.frame, &points, k.file.size, &r, 0, &ranges));
        struct blob garbage = blob_copy(k.file.data, k.file.size);
        for (size_t b = (size_t)k.head.scan; b < garbage.size; b++)
            garbage.data[b] = (uint8_t)next_random(&s);
        for (int p = 0; p < ranges.n; p++)
            memcpy(garbage.data + ranges.at[p].offset, k.file.data + ranges.at[p].offset, (size_t)ranges.at[p].size);
        dr__decode_options options = k.options;
        options.seek = &points;
        assert_int_equal(picture_decode(own, &garbage, &options, &r, &out, &err), DR_OK);
        assert_true(picture_matches(&out, &k.whole));
        picture_free(&out);
        blob_free(&garbage);
        known_free(&k);
    }
}

/* Pieces that are missing, cut or elsewhere: the decoder says so, or nothing it needed was taken away. */
static void test_too_few_bytes(void **unused)
{
    (void)unused;
    uint64_t s = first_seed() + 2000000;
    int refused = 0, n = rounds(400);
    for (int i = 0; i < n; i++) {
        struct known k;
        dr__byte_ranges ranges;
        struct picture out;
        const struct jpeg_spec spec =
            photo(random_in(&s, 60, 300), random_in(&s, 60, 300), i % 3 ? 0 : 5, next_random(&s));
        assert_true(learn(make_jpeg(&spec), false, DR__MODE_RGB, &k));
        const dr_rect r = random_rect(&s, spec.width, spec.height);
        assert_true(dr__jpeg_ranges(&k.frame, &points, k.file.size, &r, random_in(&s, 0, 1) ? 0 : UINT64_MAX, &ranges));
        const int at = random_in(&s, 0, ranges.n - 1);
        dr__byte_range *one = &ranges.at[at];
        const uint64_t cut = 1 + next_random(&s) % one->size;
        if (i % 4 == 0) {
            memmove(one, one + 1, (size_t)(ranges.n - at - 1) * sizeof *one);
            ranges.n--;
        } else if (i % 4 == 1) {
            one->offset += cut - 1;
            one->size -= cut - 1;
        } else {
            one->size = cut;
        }
        struct pieces pieces = copy_pieces(&k.file, &ranges);
        const dr_status status = decode_pieces(&k, &pieces, &r, i & 1, &out);
        if (status == DR_OK) {
            assert_true(i % 4 != 0 && picture_matches(&out, &k.whole));
            picture_free(&out);
        }
        refused += status != DR_OK;
        pieces_free(&pieces);
        known_free(&k);
    }
    if (n >= 100)
        assert_in_range(refused, n / 2, n - 1);
}

/* Points and pieces that lie: anything may come out, but nothing is read outside the pieces. */
static void test_lies(void **unused)
{
    (void)unused;
    uint64_t s = first_seed() + 3000000;
    for (int i = 0; i < rounds(400); i++) {
        struct known k;
        dr__byte_ranges ranges;
        struct picture out;
        const struct jpeg_spec spec =
            photo(random_in(&s, 20, 200), random_in(&s, 20, 200), i % 3 ? 0 : 5, next_random(&s));
        assert_true(learn(make_jpeg(&spec), false, DR__MODE_RGB, &k));
        for (uint32_t p = 0; p < points.n; p++) {
            if (random_in(&s, 0, 3) == 0)
                points.at[p].bit = random_in(&s, 0, 9) ? next_random(&s) % (k.file.size * 8) : next_random(&s);
            if (random_in(&s, 0, 3) == 0)
                points.at[p].dc[random_in(&s, 0, 2)] = (int32_t)next_random(&s);
        }
        const dr_rect r = random_rect(&s, spec.width, spec.height);
        if (dr__jpeg_ranges(&k.frame, &points, k.file.size, &r, random_in(&s, 0, 1) ? 0 : 300, &ranges)) {
            struct pieces pieces = copy_pieces(&k.file, &ranges);
            for (int p = 0; p < pieces.n; p++)
                if (random_in(&s, 0, 9) == 0)
                    pieces.at[p].offset = next_random(&s) >> random_in(&s, 0, 63);
            if (decode_pieces(&k, &pieces, &r, i & 1, &out) == DR_OK)
                picture_free(&out);
            pieces_free(&pieces);
        }
        known_free(&k);
    }
}

/* Points end early: then the file is needed from the last one on, and decoding finds the next ones. */
static void test_not_all_points(void **unused)
{
    (void)unused;
    uint64_t s = first_seed() + 6000000;
    int grown = 0;
    for (int i = 0; i < rounds(200); i++) {
        struct known k;
        const struct jpeg_spec spec =
            photo(random_in(&s, 40, 300), random_in(&s, 40, 300), i % 3 ? 0 : 7, next_random(&s));
        assert_true(learn(make_jpeg(&spec), false, DR__MODE_RGB, &k));
        const uint32_t all = points.n;
        dr__seek_point *right = malloc(all * sizeof *right);
        memcpy(right, points.at, all * sizeof *right);
        memset(points.at, 0xee, all * sizeof *right);
        points.n = (uint32_t)random_in(&s, 1, (int)all);
        memcpy(points.at, right, points.n * sizeof *right);
        for (int n = 0; n < 3; n++) {
            const uint32_t before = points.n;
            const dr_rect r = random_rect(&s, spec.width, spec.height);
            check_rect(&k, &r, n == 2 ? UINT64_MAX : 0, n & 1, "points that end early");
            assert_in_range(points.n, before, all);
            assert_memory_equal(points.at, right, points.n * sizeof *right);
            grown += points.n > before;
        }
        free(right);
        known_free(&k);
    }
    if (rounds(200) >= 100)
        assert_true(grown > 50);
}

static void test_no_points(void **unused)
{
    (void)unused;
    struct known k;
    dr__byte_ranges ranges;
    struct picture out;
    const struct jpeg_spec spec = photo(200, 200, 0, 9);
    const dr_rect r = { 10, 10, 30, 30 };
    assert_true(learn(make_jpeg(&spec), false, DR__MODE_RGB, &k));
    assert_true(dr__jpeg_ranges(&k.frame, &points, k.file.size, &r, 0, &ranges));
    struct pieces pieces = copy_pieces(&k.file, &ranges);
    points.n = 0;
    assert_false(dr__jpeg_ranges(&k.frame, &points, k.file.size, &r, 0, &ranges));
    assert_int_equal(decode_pieces(&k, &pieces, &r, false, &out), DR_ERR_STATE);
    pieces_free(&pieces);
    known_free(&k);
}

/* A file too short for its points. */
static void test_another_size(void **unused)
{
    (void)unused;
    struct known k;
    dr__byte_ranges ranges;
    const struct jpeg_spec spec = photo(200, 200, 0, 11);
    const dr_rect lower = { 10, 150, 30, 30 };
    assert_true(learn(make_jpeg(&spec), false, DR__MODE_RGB, &k));
    assert_false(dr__jpeg_ranges(&k.frame, &points, k.head.scan + 10, &lower, 0, &ranges));
    known_free(&k);
}

/* Segments that decoding does not need are left out; what it needs is the same. */
static void test_heads(void **unused)
{
    (void)unused;
    uint64_t s = first_seed() + 4000000;
    for (int i = 0; i < rounds(200); i++) {
        dr__jpeg_head head;
        dr__jpeg_frame a, b;
        struct jpeg_spec spec = random_kind(&s, 40);
        struct blob small = make_jpeg(&spec), file = { 0 };
        const size_t extra = 2000 + (size_t)random_in(&s, 0, 60000);
        file.size = small.size + 2 * (extra + 2);
        file.data = calloc(1, file.size);
        assert_non_null(file.data);
        memcpy(file.data, small.data, 2);
        for (int n = 0; n < 2; n++) { /* a comment and an application segment */
            uint8_t *p = file.data + 2 + (size_t)n * (extra + 2);
            p[0] = 0xff;
            p[1] = n ? 0xfe : 0xe2;
            p[2] = (uint8_t)(extra >> 8);
            p[3] = (uint8_t)extra;
        }
        memcpy(file.data + 2 + 2 * (extra + 2), small.data + 2, small.size - 2);
        const bool taken = dr__jpeg_parse(file.data, file.size, true, &a);
        assert_int_equal(dr__jpeg_head_make(file.data, file.size, &head), taken);
        if (taken) {
            assert_true(head.size < 2000);
            assert_int_equal(head.scan, a.scan);
            assert_true(dr__jpeg_head_parse(head.bytes, head.size, head.scan, head.orientation, &b));
            for (int c = 0; c < 2; c++)
                for (int t = 0; t < DR__JPEG_TABLES; t++) {
                    assert_int_equal(a.huffman[c][t] != NULL, b.huffman[c][t] != NULL);
                    a.huffman[c][t] = b.huffman[c][t] = NULL; /* each in its own bytes */
                }
            assert_memory_equal(&a, &b, sizeof a);
            assert_false(dr__jpeg_head_parse(head.bytes, head.size, head.scan, 9, &b));
            assert_false(dr__jpeg_head_parse(head.bytes, head.size - 1, head.scan, 1, &b));
        }
        blob_free(&small);
        blob_free(&file);
    }
}

/* Tables beyond what is kept of a head: the file is read whole. */
static void test_head_too_large(void **unused)
{
    (void)unused;
    dr__jpeg_head head;
    const struct jpeg_spec spec = photo(30, 30, 0, 1);
    struct blob small = make_jpeg(&spec), file = { .size = small.size + 40 * 69 };
    file.data = calloc(1, file.size);
    assert_non_null(file.data);
    memcpy(file.data, small.data, 2);
    for (int i = 0; i < 40; i++) { /* the same quantisation table again and again */
        uint8_t *p = file.data + 2 + i * 69;
        memcpy(p, (const uint8_t[]){ 0xff, 0xdb, 0, 67 }, 4);
        memset(p + 5, 1, 64);
    }
    memcpy(file.data + 2 + 40 * 69, small.data + 2, small.size - 2);
    assert_false(dr__jpeg_head_make(file.data, file.size, &head));
    assert_true(dr__jpeg_head_make(small.data, small.size, &head));
    blob_free(&file);
    blob_free(&small);
}

/* Notes come back as they were; standard tables take next to nothing. */
static void test_notes(void **unused)
{
    (void)unused;
    uint64_t s = first_seed() + 5000000;
    int standard = 0;
    for (int i = 0; i < rounds(300); i++) {
        uint8_t bytes[DR__JPEG_NOTE_MOST];
        dr__jpeg_note note = { .content = { next_random(&s), UINT32_MAX }, .version = next_random(&s), .when = 7 },
                      back;
        struct jpeg_spec spec = random_kind(&s, 40);
        if (i % 2)
            spec.huffman = HUFFMAN_STANDARD, spec.wide_quant = false;
        struct blob file = make_jpeg(&spec);
        if (dr__jpeg_head_make(file.data, file.size, &note.head)) {
            const size_t size = dr__jpeg_note_pack(&note, bytes);
            assert_in_range(size, 50, note.head.size + 64);
            if (i % 2) {
                assert_in_range(size, 50, 350);
                standard++;
            }
            struct blob exact = blob_copy(bytes, size);
            assert_true(dr__jpeg_note_unpack(&back, exact.data, exact.size));
            assert_true(back.content.hash == note.content.hash && back.content.size == note.content.size);
            assert_true(back.version == note.version && back.when == 7 && dr__jpeg_note_when(bytes, size) == 7);
            assert_true(back.head.scan == note.head.scan && back.head.orientation == note.head.orientation);
            assert_int_equal(back.head.size, note.head.size);
            assert_memory_equal(back.head.bytes, note.head.bytes, note.head.size);
            blob_free(&exact);
            for (int k = 0; k < 20; k++) { /* damaged ones are refused, or no worse than others */
                struct blob cut = blob_copy(bytes, (size_t)random_in(&s, 0, (int)size));
                for (int n = random_in(&s, 0, 2); n > 0 && cut.size; n--)
                    cut.data[random_in(&s, 0, (int)cut.size - 1)] = (uint8_t)next_random(&s);
                if (dr__jpeg_note_unpack(&back, cut.data, cut.size))
                    assert_true(back.head.size <= DR__JPEG_HEAD_MOST && back.head.scan <= back.content.size);
                blob_free(&cut);
            }
        }
        blob_free(&file);
    }
    if (rounds(300) >= 100)
        assert_true(standard > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_kinds),      cmocka_unit_test(test_many_rows),
        cmocka_unit_test(test_fewer_bytes),    cmocka_unit_test(test_other_bytes_do_not_matter),
        cmocka_unit_test(test_too_few_bytes),  cmocka_unit_test(test_lies),
        cmocka_unit_test(test_not_all_points), cmocka_unit_test(test_no_points),
        cmocka_unit_test(test_another_size),   cmocka_unit_test(test_heads),
        cmocka_unit_test(test_head_too_large), cmocka_unit_test(test_notes),
    };
    return cmocka_run_group_tests_name("codec: parts of JPEGs", tests, set_up, tear_down);
}
