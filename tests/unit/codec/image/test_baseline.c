/* test_baseline.c: drapps' JPEG decoder gives what libjpeg-turbo gives: the same pixels, or both refuse.
 *
 * JPEGs of all kinds, whole and in random rectangles, into a view and as bands, with and without seek points that
 * grow from rectangle to rectangle, by the kernels of each level.  DRAPPS_TEST_SEED repeats a run,
 * DRAPPS_TEST_ROUNDS sets how many images the random tests take.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "unit/codec/image/block_jpeg.h"
#include "unit/codec/image/both_jpeg.h"
#include "unit/codec/image/decode_helper.h"
#include "unit/codec/image/jpeg_kind.h"
#include "unit/codec/image/odd_jpeg.h"

enum { RECTS = 10 };

static dr_codec_state *own, *reference;
static dr__seek_points points;

static int set_up(void **unused)
{
    (void)unused;
    own = dr__codec_state_new();
    reference = dr__codec_state_new();
    return own && reference ? 0 : -1;
}

static int tear_down(void **unused)
{
    (void)unused;
    dr__seek_free(&points);
    dr__codec_state_free(&own);
    dr__codec_state_free(&reference);
    return 0;
}

static uint64_t first_seed(void)
{
    const char *text = getenv("DRAPPS_TEST_SEED");
    return text ? strtoull(text, NULL, 10) : 20260611;
}

static int rounds(int normal)
{
    const char *text = getenv("DRAPPS_TEST_ROUNDS");
    return text ? atoi(text) : normal;
}

static bool may_overflow; /* of the files that come: see both_jpeg.h */

static struct both_jpeg both_of(const struct blob *b)
{
    struct both_jpeg both = {
        .data = b->data, .size = b->size, .own = own, .reference = reference, .may_overflow = may_overflow
    };
    dr__decode_defaults(&both.options);
    return both;
}

static void keep_failing(const struct blob *b)
{
    const char *path = getenv("DRAPPS_TEST_KEEP"); /* where a failing file is to be left */
    FILE *out = path ? fopen(path, "wb") : NULL;
    if (out && fwrite(b->data, 1, b->size, out) == b->size)
        print_message("kept in %s\n", path);
    if (out)
        fclose(out);
}

static void expect(bool same, const struct both_jpeg *both, const struct blob *b, const char *what, const char *how)
{
    if (same)
        return;
    keep_failing(b);
    fail_msg("%s (%s; %s): %s", what, both->info.stored ? both->info.stored : "?", how, both->difference);
}

/* Rectangles in random order: seek points are found piece by piece, used, and used beyond their end.  The second time
 * all points that there will be are known. */
static void check_rects(struct both_jpeg *both, const struct blob *b, uint64_t *s, const char *what)
{
    dr_rect all = { 0, 0, both->info.width, both->info.height };
    dr__seek_clear(&points);
    for (int i = 0; i < RECTS; i++) {
        dr_rect r = random_rect(s, all.w, all.h);
        use_kernels(both, i % 3);
        expect(both_decode(both, &r, i & 2, NULL), both, b, what, "no points");
        expect(both_decode(both, &r, !(i & 2), &points), both, b, what, "points");
    }
    expect(both_decode(both, &all, random_in(s, 0, 1), &points), both, b, what, "all, points so far");
    expect(both_decode(both, &all, random_in(s, 0, 1), &points), both, b, what, "all, all points");
    if (points.n && points.n != points.total) /* none: left to libjpeg */
        fail_msg("%s: %u of %u points known after decoding everything", what, points.n, points.total);
    for (int i = 0; i < RECTS / 2; i++) {
        dr_rect r = random_rect(s, all.w, all.h);
        expect(both_decode(both, &r, i & 1, &points), both, b, what, "all points");
    }
}

/* Returns libjpeg's status for the whole image. */
static dr_status check_file(const struct blob *b, dr__color_mode mode, bool orient, uint64_t seed, const char *what)
{
    struct both_jpeg both = both_of(b);
    both.options.mode = mode;
    both.options.exif_orient = orient;
    both.options.max_pixels = 1 << 20;
    expect(both_header(&both), &both, b, what, "header");
    if (both.status != DR_OK)
        return both.status;
    dr_rect all = { 0, 0, both.info.width, both.info.height };
    use_kernels(&both, 0);
    expect(both_decode(&both, &all, true, NULL), &both, b, what, "all, C kernels");
    use_kernels(&both, 2);
    expect(both_decode(&both, &all, false, NULL), &both, b, what, "all");
    dr_status status = both.status;
    check_rects(&both, b, &seed, what);
    return status;
}

static void check_spec(const struct jpeg_spec *spec, const char *name)
{
    char kind[300], what[400];
    describe_kind(spec, kind, sizeof(kind));
    snprintf(what, sizeof(what), "%s: %s", name, kind);
    struct blob b = make_jpeg(spec);
    dr_status status = check_file(&b, DR__MODE_RGB, false, spec->seed, what);
    if (status != DR_OK)
        fail_msg("%s: libjpeg cannot read it: %d", what, status);
    blob_free(&b);
}

/* Every sampling in sizes around the block borders, with restarts as often as can be, and none. */
static void test_samplings(void **unused)
{
    static const int sizes[][2] = { { 1, 1 },   { 2, 3 },   { 7, 9 },   { 8, 8 },   { 15, 17 }, { 16, 16 },
                                    { 17, 33 }, { 31, 5 },  { 32, 32 }, { 33, 64 }, { 40, 70 }, { 70, 41 },
                                    { 3, 130 }, { 150, 2 }, { 64, 64 }, { 65, 65 } };
    (void)unused;
    for (int k = 0; jpeg_samplings[k].name; k++)
        for (int i = 0; i < 16; i++) {
            struct jpeg_spec spec = { .width = sizes[i][0], .height = sizes[i][1], .color = JPEG_YCC };
            memcpy(spec.h, jpeg_samplings[k].h, sizeof(jpeg_samplings[k].h));
            memcpy(spec.v, jpeg_samplings[k].v, sizeof(jpeg_samplings[k].v));
            spec.restart = i % 3 == 0 ? 1 + k % 2 : 0;
            spec.quality = 20 + 5 * i;
            spec.seed = (uint64_t)(k * 16 + i);
            check_spec(&spec, jpeg_samplings[k].name);
        }
}

static void test_large(void **unused)
{
    static const int sizes[][2] = { { 700, 500 }, { 2000, 9 }, { 9, 2000 }, { 65500, 1 }, { 1, 65500 }, { 515, 333 } };
    (void)unused;
    for (int i = 0; i < 24; i++) {
        const struct jpeg_sampling *f = &jpeg_samplings[i % 4];
        struct jpeg_spec spec = { .width = sizes[i % 6][0], .height = sizes[i % 6][1], .color = JPEG_YCC };
        memcpy(spec.h, f->h, sizeof(f->h));
        memcpy(spec.v, f->v, sizeof(f->v));
        spec.restart = i >= 12 ? 37 : 0;
        spec.seed = (uint64_t)i;
        check_spec(&spec, "large");
    }
}

/* Each size up to 40 x 40 by the common samplings, grey among them, is decoded once. */
static void test_all_sizes(void **unused)
{
    (void)unused;
    for (int i = 0; i < 40 * 40; i++) {
        struct jpeg_spec spec = { .width = 1 + i % 40, .height = 1 + i / 40, .seed = (uint64_t)i };
        int k = (i + i / 40) % 5;
        spec.color = k == 4 ? JPEG_GRAY : JPEG_YCC;
        memcpy(spec.h, jpeg_samplings[k % 4].h, sizeof(jpeg_samplings[0].h));
        memcpy(spec.v, jpeg_samplings[k % 4].v, sizeof(jpeg_samplings[0].v));
        struct blob b = make_jpeg(&spec);
        struct both_jpeg both = both_of(&b);
        dr_rect all = { 0, 0, spec.width, spec.height };
        expect(both_header(&both), &both, &b, "size", "header");
        expect(both_decode(&both, &all, i & 1, NULL), &both, &b, "size", "all");
        assert_int_equal(both.status, DR_OK);
        blob_free(&b);
    }
}

static void test_random_kinds(void **unused)
{
    (void)unused;
    uint64_t seed = first_seed();
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int i = 0; i < rounds(500); i++) {
        char kind[300], what[400];
        uint64_t s = seed + (uint64_t)i;
        struct jpeg_spec spec = random_kind(&s, 100);
        describe_kind(&spec, kind, sizeof(kind));
        snprintf(what, sizeof(what), "seed %llu: %s", (unsigned long long)(seed + (uint64_t)i), kind);
        struct blob b = make_jpeg(&spec);
        dr__color_mode mode = random_in(&s, 0, 2) ? DR__MODE_RGB : (dr__color_mode)random_in(&s, 0, 3);
        if (check_file(&b, mode, random_in(&s, 0, 3) == 0, s, what) != DR_OK)
            fail_msg("%s: libjpeg cannot read it", what);
        blob_free(&b);
    }
}

/* A JPEG of any kind with this change and n others. */
static dr_status check_changed(uint64_t seed, const struct jpeg_change *change, int n, char *what, size_t cap)
{
    char kind[300];
    uint64_t s = seed;
    struct jpeg_spec spec = random_kind(&s, 70);
    describe_kind(&spec, kind, sizeof(kind));
    int used = snprintf(what, cap, "seed %llu, %s, %s", (unsigned long long)seed, kind, change->name);
    struct blob b = make_jpeg(&spec);
    change->apply(&b, &s);
    for (int i = 0; i < n; i++) {
        change = any_jpeg_change(&s);
        used += snprintf(what + used, cap - (size_t)used, ", %s", change->name);
        change->apply(&b, &s);
    }
    dr_status status = check_file(&b, DR__MODE_RGB, false, s, what);
    blob_free(&b);
    return status;
}

static void test_odd(void **unused)
{
    char what[600];
    (void)unused;
    for (int i = 0, seed = 0; jpeg_oddities[i].name; i++)
        for (int k = 0; k < rounds(15); k++)
            if (check_changed(first_seed() + 1000000 + (uint64_t)seed++, &jpeg_oddities[i], 0, what, sizeof(what)))
                fail_msg("%s: libjpeg cannot read it", what);
}

static void test_damaged(void **unused)
{
    char what[600];
    (void)unused;
    may_overflow = true;
    for (int i = 0, seed = 0; jpeg_damages[i].name; i++)
        for (int k = 0; k < rounds(15); k++)
            check_changed(first_seed() + 2000000 + (uint64_t)seed++, &jpeg_damages[i], 0, what, sizeof(what));
    may_overflow = false;
}

static void test_changed_much(void **unused)
{
    char what[600];
    (void)unused;
    may_overflow = true;
    for (int i = 0; i < rounds(300); i++) {
        uint64_t s = first_seed() + 3000000 + (uint64_t)i;
        const struct jpeg_change *first = any_jpeg_change(&s);
        check_changed(s, first, 1 + i % 2, what, sizeof(what));
    }
    may_overflow = false;
}

/* Blocks that end at the last coefficient, before it, and beyond, by symbols of all lengths. */
static void test_block_ends(void **unused)
{
    static const enum jpeg_huffman tables[] = { HUFFMAN_STANDARD, HUFFMAN_STEEP, HUFFMAN_FLAT };
    (void)unused;
    int sound = 0, n = rounds(6000);
    may_overflow = true;
    for (int i = 0; i < n; i++) {
        uint64_t seed = first_seed() + 5000000 + (uint64_t)i, s = seed;
        char what[60];
        snprintf(what, sizeof(what), "blocks, seed %llu", (unsigned long long)seed);
        struct blob b = make_blocks(tables[i % 3], &s);
        struct both_jpeg both = both_of(&b);
        expect(both_header(&both), &both, &b, what, "header");
        dr_rect all = { 0, 0, both.info.width, both.info.height }, part = random_rect(&s, all.w, all.h);
        dr__seek_clear(&points);
        expect(both_decode(&both, &all, i & 1, &points), &both, &b, what, "all");
        expect(both_decode(&both, &part, i & 1, NULL), &both, &b, what, "part");
        sound += points.n > 0; /* else libjpeg was asked */
        blob_free(&b);
    }
    may_overflow = false;
    if (n >= 100)
        assert_in_range(sound, n / 10, n * 9 / 10);
}

/* Points that are not those of the file: anything may come out, but nothing is touched outside. */
static void test_wrong_points(void **unused)
{
    (void)unused;
    uint64_t s = first_seed() + 4000000;
    for (int i = 0; i < rounds(200); i++) {
        struct jpeg_spec spec = random_kind(&s, 70);
        struct blob b = make_jpeg(&spec);
        struct both_jpeg both = both_of(&b);
        expect(both_header(&both), &both, &b, "wrong points", "header");
        dr_rect all = { 0, 0, both.info.width, both.info.height };
        dr__seek_clear(&points);
        expect(own_decode(&both, &all, false, &points), &both, &b, "wrong points", "first");
        for (uint32_t k = 0; k < points.n; k++) {
            points.at[k].bit = random_in(&s, 0, 3) ? next_random(&s) % (b.size * 8) : next_random(&s);
            points.at[k].dc[random_in(&s, 0, 2)] = (int32_t)next_random(&s);
        }
        for (int k = 0; k < 3; k++) {
            dr_rect r = random_rect(&s, all.w, all.h);
            expect(own_decode(&both, &r, k & 1, &points), &both, &b, "wrong points", "then");
        }
        blob_free(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samplings),    cmocka_unit_test(test_large),      cmocka_unit_test(test_all_sizes),
        cmocka_unit_test(test_random_kinds), cmocka_unit_test(test_odd),        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_changed_much), cmocka_unit_test(test_block_ends), cmocka_unit_test(test_wrong_points),
    };
    return cmocka_run_group_tests_name("codec: baseline JPEG", tests, set_up, tear_down);
}
