/* The codec manager on tables that are computed by hand, and in a store. */
#include "unit/store/scratch.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "store/codec_manager.h"
#include "store/sample_pack.h"
#include "store/store_parts.h"

/* Raw bytes a second that a codec decompresses by one core, and its ratio. */
enum { NONE, FAST, DENSE, N };
static const double speed[N] = { 10e9, 1e9, 250e6 }, ratio[N] = { 1, 2, 4 };
static const uint8_t ids[N] = { 0, 1, 2 };
static const char *const names[N] = { "none", "fast", "dense" };

enum { RAW = 1000000 };

/* One sample by one codec, `slow` times as slow as the table says. */
static void note(dr__codec_manager *m, int which, double slow)
{
    const uint64_t ns = (uint64_t)(RAW / speed[which] * 1e9 * slow);
    dr__codec_note_encoded(m, DR__CLASS_PIXELS, which, RAW, (size_t)(RAW / ratio[which]), 0);
    dr__codec_note_decoded(m, DR__CLASS_PIXELS, which, RAW, ns, ns);
}

static void prepare(dr__codec_manager *m, double bytes_per_s, double cores)
{
    dr__codec_manager_init_with(m, ids, names, N);
    m->resources = (dr__codec_resources){ .bytes_per_s = bytes_per_s, .cores = cores, .overlapped = true };
    for (int i = 0; i < N; i++)
        note(m, i, 1);
}

static int chosen(dr__codec_manager *m)
{
    dr__codec_choice c;
    m->weights.bonus = 0;
    dr__codec_choose(m, DR__CLASS_PIXELS, &c);
    return c.which;
}

#define ASSERT_NEAR(a, b) assert_true(fabs((a) - (b)) < 1e-4)

/* At 500 MB/s and one core, 1 MB takes: none max(2, 0.1) = 2 ms, fast max(1, 1) = 1 ms, dense max(0.5, 4) = 4 ms. */
static void utilities_are_those_of_the_formula(void **state)
{
    (void)state;
    dr__codec_manager m;
    dr__codec_choice c;
    prepare(&m, 500e6, 1);
    m.weights = (dr__codec_weights){ .alpha = 0.1, .beta = 0.2, .gamma = 3, .bonus = 0.5, .window = 64 };
    dr__codec_choose(&m, DR__CLASS_PIXELS, &c);
    const double compat[N] = { 0.5, 0.75, 0 }, v[N] = { 1, 0.1, 0.025 }, rho[N] = { 0.25, 0.5, 1 };
    for (int i = 0; i < N; i++) {
        ASSERT_NEAR(c.terms[i].v, v[i]);
        ASSERT_NEAR(c.terms[i].rho, rho[i]);
        ASSERT_NEAR(c.terms[i].compat, compat[i]);
        ASSERT_NEAR(c.terms[i].bonus, 0.5 * sqrt(log(4)));
        ASSERT_NEAR(c.terms[i].utility, 0.1 * v[i] + 0.2 * rho[i] + 3 * compat[i] + c.terms[i].bonus);
    }
    assert_int_equal(c.which, FAST);
    assert_int_equal(c.why, DR__CODEC_BEST);
    /* One after the other: 2.1, 2 and 4.5 ms.  Where half finds room and making 1 MB takes 10 ms: none (h 0.5)
     * 6.05, fast (1) 2, dense (1) 4.5. */
    m.resources.overlapped = false;
    dr__codec_choose(&m, DR__CLASS_PIXELS, &c);
    ASSERT_NEAR(c.terms[FAST].seconds * 1e9, 2);
    ASSERT_NEAR(c.terms[NONE].compat, 1 - 2.1 / 4.5);
    m.resources.capacity = 50e6, m.resources.wanted = 100e6, m.resources.make_s = 1e-8;
    dr__codec_choose(&m, DR__CLASS_PIXELS, &c);
    ASSERT_NEAR(c.terms[NONE].seconds * 1e9, 6.05);
    ASSERT_NEAR(c.terms[DENSE].seconds * 1e9, 4.5);
    ASSERT_NEAR(c.terms[NONE].compat, 0);
}

/* What takes more than four times the least time does not make the others look alike. */
static void one_very_slow_codec_hides_nothing(void **state)
{
    (void)state;
    dr__codec_manager m;
    dr__codec_choice c;
    prepare(&m, 500e6, 1);
    for (int i = 0; i < 50; i++)
        note(&m, DENSE, 100);
    dr__codec_choose(&m, DR__CLASS_PIXELS, &c);
    ASSERT_NEAR(c.terms[NONE].compat, 1 - 2. / 4);
    ASSERT_NEAR(c.terms[FAST].compat, 1 - 1. / 4);
    ASSERT_NEAR(c.terms[DENSE].compat, 0);
}

static void it_follows_cpu_and_bandwidth(void **state)
{
    (void)state;
    dr__codec_manager m;
    prepare(&m, 500e6, 1);
    assert_int_equal(chosen(&m), FAST);
    prepare(&m, 2.5e6, 1); /* 20 Mbit/s */
    assert_int_equal(chosen(&m), DENSE);
    prepare(&m, 500e6, 16);
    assert_int_equal(chosen(&m), DENSE);
    prepare(&m, 20e9, 1);
    assert_int_equal(chosen(&m), NONE);
    /* The CPUs are taken away: the same CPU time takes eight times as long. */
    prepare(&m, 500e6, 1);
    for (int i = 0; i < 100; i++)
        dr__codec_note_decoded(&m, DR__CLASS_PIXELS, FAST, RAW, 1000000, 8000000);
    assert_int_equal(chosen(&m), NONE);
}

/* A codec becomes four times as slow: left within ten choices that measure it, tried again now and then, and chosen
 * when it is as fast as before. */
static void what_slows_down_is_left_and_tried_again(void **state)
{
    (void)state;
    dr__codec_manager m;
    dr__codec_choice c;
    prepare(&m, 500e6, 1);
    for (int i = 0; i < 200; i++) {
        dr__codec_choose(&m, DR__CLASS_PIXELS, &c);
        note(&m, c.which, 1);
    }
    assert_int_equal(chosen(&m), FAST);
    m.weights.bonus = 0.02;
    int until = 0, probes = 0, last = 0;
    for (; until < 100; until++) {
        dr__codec_choose(&m, DR__CLASS_PIXELS, &c);
        note(&m, c.which, c.which == FAST ? 4 : 1);
        if (c.why == DR__CODEC_BEST && c.which != FAST)
            break;
    }
    assert_true(until < 10);
    for (int i = 0; i < 2000; i++) {
        dr__codec_choose(&m, DR__CLASS_PIXELS, &c);
        note(&m, c.which, c.which == FAST ? 4 : 1);
        assert_true(c.which != FAST || c.why == DR__CODEC_PROBE);
        probes += c.which == FAST;
    }
    assert_true(probes >= 3 && probes < 100);
    for (int i = 0; i < 1000; i++) {
        dr__codec_choose(&m, DR__CLASS_PIXELS, &c);
        note(&m, c.which, 1);
        last = c.why == DR__CODEC_BEST ? c.which : last;
    }
    assert_int_equal(last, FAST);
}

static void the_knob_is_obeyed(void **state)
{
    (void)state;
    dr__codec_manager m;
    dr__codec_choice c;
    prepare(&m, 500e6, 1);
    static const int sequence[] = { 2, 0, 0, 1, 2, 1, 0, 2 };
    for (size_t i = 0; i < DR_COUNT(sequence); i++) {
        assert_true(dr__codec_manager_force(&m, sequence[i]));
        dr__codec_choose(&m, DR__CLASS_PIXELS, &c);
        assert_int_equal(m.wire_id[c.which], sequence[i]);
        assert_int_equal(c.why, DR__CODEC_FORCED);
    }
    assert_false(dr__codec_manager_force(&m, 7));
    assert_int_equal(m.forced, 2);
    assert_true(dr__codec_manager_force(&m, DR__CODEC_AUTO));
    assert_int_equal(chosen(&m), FAST);
}

/* One kind of data says nothing about another; all codecs are tried first. */
static void classes_are_apart(void **state)
{
    (void)state;
    dr__codec_manager m;
    dr__codec_choice c;
    unsigned tried = 0;
    prepare(&m, 500e6, 1);
    for (int i = 0; i < N; i++) {
        dr__codec_choose(&m, DR__CLASS_FLOATS, &c);
        assert_true(c.measure && isinf(c.terms[c.which].utility));
        tried |= 1u << c.which;
        dr__codec_note_encoded(&m, DR__CLASS_FLOATS, c.which, RAW, RAW, 0); /* nothing helps */
        dr__codec_note_decoded(&m, DR__CLASS_FLOATS, c.which, RAW, 100000 * ((uint64_t)c.which + 1), 0);
    }
    assert_int_equal(tried, 7);
    m.weights.bonus = 0;
    dr__codec_choose(&m, DR__CLASS_FLOATS, &c);
    assert_int_equal(c.which, NONE);
    assert_int_equal(chosen(&m), FAST);
    const dr_desc fields[] = { { .kind = DR_KIND_ARRAY, .dtype = DR_F32, .n_dims = 1, .dims = { 100 } },
                               { .kind = DR_KIND_IMAGE, .dtype = DR_U8, .n_dims = 1, .dims = { 399 } },
                               { .kind = DR_KIND_BYTES, .dtype = DR_U8, .n_dims = 1, .dims = { 500 } },
                               { .kind = DR_KIND_ARRAY, .dtype = DR_I64, .n_dims = 1, .dims = { 100 } } };
    assert_int_equal(dr__data_class_of(fields, 1), DR__CLASS_FLOATS);
    assert_int_equal(dr__data_class_of(fields, 2), DR__CLASS_FLOATS);
    assert_int_equal(dr__data_class_of(fields, 3), DR__CLASS_ENCODED);
    assert_int_equal(dr__data_class_of(fields, 4), DR__CLASS_INTEGERS);
}

static void bandwidth_is_measured(void **state)
{
    (void)state;
    dr__codec_manager m;
    prepare(&m, 0, 2);
    ASSERT_NEAR(dr__codec_bytes_per_s(&m, 1), 500e6);
    dr__codec_note_read(&m, 1 << 20, 1); /* too little to tell */
    ASSERT_NEAR(dr__codec_bytes_per_s(&m, 1), 500e6);
    assert_false(dr__codec_knows_reads(&m));
    for (int i = 0; i < 1000; i++)
        dr__codec_note_read(&m, 1000000, 10000000 / 2); /* 100 MB/s by each of two threads */
    assert_true(fabs(dr__codec_bytes_per_s(&m, 1) - 200e6) < 1e6);
    dr__codec_note_probe(&m, 1000000, 1, 1); /* reads say more */
    assert_true(fabs(dr__codec_bytes_per_s(&m, 1) - 200e6) < 1e6);
    assert_true(dr__codec_knows_reads(&m));
}

/* A disk of 100 MB/s, a page cache of 5 GB/s for each of two threads. */
static void bandwidth_is_probed(void **state)
{
    (void)state;
    dr__codec_manager m;
    prepare(&m, 0, 2);
    dr__codec_note_probe(&m, 1000000, 200000, 10000000);
    assert_true(fabs(dr__codec_bytes_per_s(&m, 1) - 100e6) < 1e3); /* it is not known whether anything stays there */
    m.resources.wanted = 100e6, m.resources.page_cache = 100e6;
    assert_true(fabs(dr__codec_bytes_per_s(&m, 1) - 10e9) < 1e6);
    /* Room for half: 0.5 + 0.5 ln 0.5 = 0.1534 of the bytes are found; for all, where they are stored as half. */
    m.resources.page_cache = 50e6;
    const double s = 0.1534264 / 10e9 + (1 - 0.1534264) / 100e6;
    assert_true(fabs(dr__codec_bytes_per_s(&m, 1) * s - 1) < 1e-5);
    assert_true(fabs(dr__codec_bytes_per_s(&m, 0.5) - 10e9) < 1e6);
    /* Storage that the system does not keep in memory: threads share it. */
    prepare(&m, 0, 2);
    m.resources.wanted = 100e6, m.resources.page_cache = 100e6;
    dr__codec_note_probe(&m, 1000000, 9000000, 10000000);
    assert_true(fabs(dr__codec_bytes_per_s(&m, 1) - 100e6) < 1e3);
}

/* A thread that is without a CPU for long, but seldom, counts in full. */
static void rare_stalls_are_part_of_the_slow_down(void **state)
{
    (void)state;
    dr__codec_manager m;
    dr__codec_choice c;
    prepare(&m, 500e6, 1);
    for (int i = 0; i < 1000; i++)
        dr__codec_note_decoded(&m, DR__CLASS_PIXELS, FAST, RAW, 1000000, i % 10 ? 1000000 : 41000000);
    m.weights.bonus = 0;
    dr__codec_choose(&m, DR__CLASS_PIXELS, &c);
    /* Five times as long: fast max(1, 5), none max(2, 0.5), within what the latest ones say. */
    assert_int_equal(c.which, NONE);
    assert_true(c.terms[FAST].seconds * 1e9 > 2.5 && c.terms[FAST].seconds * 1e9 < 10);
}

/* --- in a store --- */

static void fill(uint8_t *data, size_t size, bool noise)
{
    uint64_t x = 3;
    for (size_t i = 0; i < size; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        data[i] = noise ? (uint8_t)(x >> 56) : (uint8_t)(i / 64);
    }
}

static void what_is_packed_comes_back(void **state)
{
    (void)state;
    static uint8_t data[10000], back[10000];
    size_t n;
    for (const dr_byte_codec *const *c = dr__byte_codecs; *c; c++) {
        fill(data, sizeof data, false);
        uint8_t *packed = dr__compress(*c, data, sizeof data, &n);
        if ((*c)->wire_id == DR__BYTES_NONE) {
            assert_null(packed);
            continue;
        }
        assert_non_null(packed);
        assert_true(n < sizeof data);
        assert_true((*c)->decode(packed, n, back, sizeof back));
        assert_memory_equal(data, back, sizeof data);
        dr__free(packed);
        fill(data, sizeof data, true);
        assert_null(dr__compress(*c, data, sizeof data, &n)); /* would grow */
        assert_null(dr__compress(*c, data, 0, &n));
    }
}

typedef struct heard {
    int n, codec[64];
} heard;

static void hear(void *user, const char *tier, const dr__packed *packed, const char *text)
{
    heard *h = user;
    assert_string_equal(tier, "disk");
    assert_non_null(strstr(text, "\"class\":\"8-bit\""));
    assert_non_null(strstr(text, "\"compat\":"));
    h->codec[h->n++] = packed->codec;
}

/* Each codec of this build by force, then by choice: all samples come back, as they were stored. */
static void samples_come_back_by_every_codec(void **state)
{
    (void)state;
    static uint8_t data[100000], back[100032];
    for (int noise = 0; noise < 2; noise++) {
        heard h = { 0 };
        dr_store *s = store_open(noise ? "noise" : "flat", 0);
        s->on_choice = hear;
        s->on_choice_user = &h;
        unsigned number = 0;
        dr_stored found;
        fill(data, sizeof data, noise);
        dr_view field = { data, 0, { .dtype = DR_U8, .n_dims = 1, .dims = { sizeof data } }, { 0 } };
        for (int i = -1; i < 0 || dr__byte_codecs[i]; i++, number++) {
            const int id = i < 0 ? DR__CODEC_AUTO : dr__byte_codecs[i]->wire_id;
            assert_true(dr__store_force_codec(s, id));
            dr_store_key key = key_of(s, number);
            assert_true(dr_store_put(s, &key, &field, 1));
            assert_true(dr_store_find(s, &key, &found));
            if (id >= 0)
                assert_int_equal(found.codec, noise ? DR__BYTES_NONE : id);
            assert_true(found.bytes <= sizeof back && dr_store_read(s, &found, back));
            assert_memory_equal(back, data, sizeof data);
        }
        assert_int_equal(h.n, (int)number);
        assert_false(dr__store_force_codec(s, 250));
        dr_store_stats stats;
        dr_store_get_stats(s, &stats);
        assert_non_null(strstr(stats.codec, "(set)"));
        dr_store_close(&s);
    }
}

/* In the epoch that writes samples, before any is read. */
static void a_store_probes_what_it_writes(void **state)
{
    (void)state;
    static uint8_t data[100000];
    dr_store *s = store_open("probed", 0);
    fill(data, sizeof data, true);
    dr_view field = { data, 0, { .dtype = DR_U8, .n_dims = 1, .dims = { sizeof data } }, { 0 } };
    assert_true(s->page_cache > 0);
    dr_store_key first = key_of(s, 0), second = key_of(s, 1);
    assert_true(dr__store_force_codec(s, DR__BYTES_NONE));
    assert_true(dr_store_put(s, &first, &field, 1));
    assert_true(s->codecs.disk_s == 0); /* nothing is to be chosen */
    assert_true(dr__store_force_codec(s, DR__CODEC_AUTO));
    assert_true(dr_store_put(s, &second, &field, 1));
    assert_true(s->codecs.disk_s > 0 && s->codecs.cached_s > 0);
    assert_true(s->probe_at_ns > 0 && s->probe_at_ns < UINT64_MAX);
    dr_store_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(utilities_are_those_of_the_formula),
        cmocka_unit_test(one_very_slow_codec_hides_nothing),
        cmocka_unit_test(it_follows_cpu_and_bandwidth),
        cmocka_unit_test(what_slows_down_is_left_and_tried_again),
        cmocka_unit_test(the_knob_is_obeyed),
        cmocka_unit_test(classes_are_apart),
        cmocka_unit_test(bandwidth_is_measured),
        cmocka_unit_test(bandwidth_is_probed),
        cmocka_unit_test(rare_stalls_are_part_of_the_slow_down),
        cmocka_unit_test(what_is_packed_comes_back),
        cmocka_unit_test_setup_teardown(samples_come_back_by_every_codec, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(a_store_probes_what_it_writes, scratch_make, scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
