/* test_seek_points.c: seek points are packed into few bytes and come back as they were, or not at all. */
#include "unit/cm.h"
#include "base/alloc.h"
#include "base/rng.h"
#include "codec/image/jpeg_seek.h"

enum { MOST = 8192 * DR__SEEK_PARTS, SEED = 20 };

static dr_rng rng_for(uint64_t id)
{
    return dr__rng_open(&(dr__rng_name){ .seed = SEED, .sample = id }, 0);
}

/* Increasing positions and predictors of any size, as if from a file of `components` components. */
static void fill(dr__seek_points *points, dr_rng *rng, uint32_t n, int components, bool wild)
{
    uint64_t bit = 600 * 8;
    dr__seek_clear(points);
    points->total = n + (uint32_t)dr__rng_below(rng, MOST - n + 1);
    for (uint32_t i = 0; i < n; i++) {
        dr__seek_point p = { .bit = bit += 1 + dr__rng_below(rng, wild ? UINT64_MAX / MOST / 2 : 60000) };
        for (int c = 0; c < components; c++)
            p.dc[c] = wild ? (int32_t)dr__rng_below(rng, 1ull << 32) : (int32_t)dr__rng_below(rng, 2047) - 1023;
        assert_true(dr__seek_add(points, &p));
    }
}

static void assert_same(const dr__seek_points *a, const dr__seek_points *b)
{
    assert_int_equal(a->n, b->n);
    assert_int_equal(a->total, b->total);
    for (uint32_t i = 0; i < a->n; i++) {
        assert_true(a->at[i].bit == b->at[i].bit);
        assert_memory_equal(a->at[i].dc, b->at[i].dc, sizeof a->at[i].dc);
    }
}

static size_t pack(const dr__seek_points *points, uint8_t **bytes)
{
    size_t bound = dr__seek_pack_bound(points);
    *bytes = malloc(bound);
    size_t size = dr__seek_pack(points, *bytes);
    assert_true(size <= bound);
    return size;
}

static void points_come_back_as_they_were(void **state)
{
    (void)state;
    dr__seek_points points = { 0 }, back = { 0 };
    for (uint64_t i = 0; i < 600; i++) {
        dr_rng rng = rng_for(i);
        uint32_t n = (uint32_t)dr__rng_below(&rng, i % 50 ? 100 : MOST + 1);
        uint8_t *bytes;
        fill(&points, &rng, n, (int)(i % 4), i % 3 == 0);
        size_t size = pack(&points, &bytes);
        assert_true(dr__seek_unpack(&back, bytes, size));
        assert_same(&points, &back);
        free(bytes);
    }
    dr__seek_free(&points);
    dr__seek_free(&back);
}

static void the_extremes_come_back(void **state)
{
    (void)state;
    dr__seek_points points = { .total = 3 }, back = { 0 };
    const dr__seek_point at[] = {
        { 1, { INT32_MIN, INT32_MAX, -1 } },
        { 2, { INT32_MAX, INT32_MIN, 1 } },
        { UINT64_MAX, { 0, 0, 0 } },
    };
    for (int i = 0; i < 3; i++)
        assert_true(dr__seek_add(&points, &at[i]));
    uint8_t *bytes;
    size_t size = pack(&points, &bytes);
    assert_true(dr__seek_unpack(&back, bytes, size));
    assert_same(&points, &back);
    free(bytes);
    dr__seek_free(&points);
    dr__seek_free(&back);
}

/* A photograph's rows: some kilobytes each, DC values that go up and down by a hundred or so. */
static void a_row_takes_seven_bytes(void **state)
{
    (void)state;
    dr__seek_points points = { .total = 30 };
    dr_rng rng = rng_for(1000);
    uint64_t bit = 5000;
    int32_t dc[3] = { 0 };
    for (int i = 0; i < 30; i++) {
        bit += 20000 + dr__rng_below(&rng, 20000);
        dr__seek_point p = { .bit = bit };
        for (int c = 0; c < 3; c++)
            p.dc[c] = dc[c] += (int32_t)dr__rng_below(&rng, c ? 100 : 400) - (c ? 50 : 200);
        assert_true(dr__seek_add(&points, &p));
    }
    uint8_t *bytes;
    assert_in_range(pack(&points, &bytes), 30 * 5, 30 * 8);
    free(bytes);
    dr__seek_free(&points);
}

static bool is_sound(const dr__seek_points *p)
{
    bool sound = p->n <= p->total && p->total <= MOST && p->n <= p->cap;
    for (uint32_t i = 1; i < p->n; i++)
        sound = sound && p->at[i].bit > p->at[i - 1].bit;
    return sound;
}

/* Either refused, then empty, or points that a decoder can rely on to be in order.  The copy ends where the heap block
 * does, so that a sanitizer sees every byte too many. */
static void try_bytes(dr__seek_points *back, const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    memcpy(copy, bytes, size);
    bool good = dr__seek_unpack(back, copy, size);
    assert_true(good ? is_sound(back) : back->n == 0 && back->total == 0);
    free(copy);
}

static void damaged_bytes_are_refused_or_sound(void **state)
{
    (void)state;
    dr__seek_points points = { 0 }, back = { 0 };
    uint8_t *bytes;
    dr_rng rng = rng_for(2000);
    fill(&points, &rng, 40, 3, false);
    size_t size = pack(&points, &bytes);
    for (size_t i = 0; i < size; i++) {
        try_bytes(&back, bytes, i);
        assert_int_equal(back.n, 0); /* what is cut off is refused */
        for (int bit = 0; bit < 8; bit++) {
            bytes[i] ^= (uint8_t)(1 << bit);
            try_bytes(&back, bytes, size);
            bytes[i] ^= (uint8_t)(1 << bit);
        }
    }
    free(bytes);
    dr__seek_free(&points);
    dr__seek_free(&back);
}

static void noise_is_refused_or_sound(void **state)
{
    (void)state;
    dr__seek_points back = { 0 };
    uint8_t bytes[64];
    for (uint64_t i = 0; i < 20000; i++) {
        dr_rng rng = rng_for(3000 + i);
        size_t size = dr__rng_below(&rng, sizeof bytes + 1);
        for (size_t k = 0; k < size; k++)
            bytes[k] = (uint8_t)dr__rng_below(&rng, i % 2 ? 256 : 8);
        if (size)
            bytes[0] = 1;
        try_bytes(&back, bytes, size);
    }
    dr__seek_free(&back);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    static const struct {
        size_t size;
        uint8_t bytes[24];
    } bad[] = {
        { 4, { 2, 1, 0, 0 } },                                /* another version */
        { 4, { 1, 1, 2, 0 } },                                /* more points than there are */
        { 6, { 1, 0x81, 0x80, 2, 0, 0 } },                    /* 32769 points */
        { 4, { 1, 1, 0, 4 } },                                /* four components */
        { 5, { 1, 1, 0, 0, 0 } },                             /* something after the end */
        { 5, { 1, 1, 1, 0, 0 } },                             /* a point at bit 0 */
        { 6, { 1, 2, 2, 0, 9, 0 } },                          /* a point where the one before is */
        { 11, { 1, 1, 1, 1, 9, 255, 255, 255, 255, 31, 0 } }, /* a predictor of more than 32 bits */
        { 15, { 1, 1, 1, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2, 0 } }, /* a position of 65 bits */
        { 15, { 1, 2, 2, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 1 } }, /* one after the last position */
    };
    dr__seek_points back = { 0 };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(dr__seek_unpack(&back, bad[i].bytes, bad[i].size));
    assert_true(dr__seek_unpack(&back, (const uint8_t[]){ 1, 0x80, 0x80, 2, 1, 1, 9, 3 }, 8));
    assert_int_equal(back.total, 32768);
    assert_int_equal(back.at[0].dc[0], -2);
    dr__seek_free(&back);
}

static void memory_that_is_short_changes_nothing(void **state)
{
    (void)state;
    dr__seek_points points = { .total = 9 };
    const uint8_t bytes[] = { 1, 1, 1, 0, 9 };
    dr__alloc_fail_at(1, true);
    bool added = dr__seek_add(&points, &(dr__seek_point){ 1, { 0 } });
    bool unpacked = dr__seek_unpack(&points, bytes, sizeof bytes);
    dr__alloc_fail_at(0, false);
    assert_false(added);
    assert_false(unpacked);
    assert_null(points.at);
    assert_true(dr__seek_unpack(&points, bytes, sizeof bytes));
    dr__seek_free(&points);
    assert_int_equal(points.cap, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_come_back_as_they_were),
        cmocka_unit_test(the_extremes_come_back),
        cmocka_unit_test(a_row_takes_seven_bytes),
        cmocka_unit_test(damaged_bytes_are_refused_or_sound),
        cmocka_unit_test(noise_is_refused_or_sound),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(memory_that_is_short_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
