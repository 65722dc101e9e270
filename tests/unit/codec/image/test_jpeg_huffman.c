/* test_jpeg_huffman.c: lookup tables say what reading bit by bit says, for any code; and libjpeg takes the same codes.
 */
#include "unit/cm.h"
#include "codec/image/image.h"
#include "codec/image/jpeg_huffman.h"
#include "unit/codec/image/blob.h"
#include "unit/codec/image/decode_helper.h"
#include "unit/codec/image/naive_huffman.h"
#include "unit/codec/image/tiny_jpeg.h"

enum { SEED = 1207, TABLES = 60, BITS = 64 };

/* `n` bits of `first`, then random ones. */
static void fill_bits(uint8_t *bits, int first, int n, uint64_t *seed)
{
    for (int i = 0; i < BITS; i++)
        bits[i] = i < n ? first >> (n - 1 - i) & 1 : next_random(seed) >> 40 & 1;
}

static uint32_t next16(const uint8_t *bits)
{
    uint32_t v = 0;
    for (int i = 0; i < 16; i++)
        v = 2 * v + bits[i];
    return v;
}

/* One AC symbol: its bits, and what it does. */
struct ac_symbol {
    int symbol, length, bits, step, value;
};

static struct ac_symbol naive_ac(struct naive_bits *b, const uint8_t *table)
{
    struct ac_symbol s = { .symbol = naive_symbol(b, table), .length = b->at };
    if (s.symbol < 0)
        return s;
    s.value = naive_number(b, s.symbol & 15);
    s.bits = b->at;
    s.step = s.symbol & 15 || s.symbol == 0xf0 ? (s.symbol >> 4) + 1 : DR__STEP_END;
    return s;
}

static bool held(const struct ac_symbol *s)
{
    return s->symbol >= 0 && s->bits <= DR__AC_BITS;
}

static void check_ac_entry(const dr__ac_table *t, const uint8_t *table, int i, uint64_t *seed)
{
    uint8_t bits[BITS];
    fill_bits(bits, i, DR__AC_BITS, seed);
    struct naive_bits b = { bits, BITS, 0, 0 };
    const struct ac_symbol a = naive_ac(&b, table);
    const dr__ac_entry *e = &t->entry[i];
    if (!held(&a)) {
        const bool known = a.symbol >= 0 && a.length <= DR__AC_BITS;
        assert_int_equal(e->step, DR__STEP_MISS);
        assert_int_equal(e->steps, DR__STEP_MISS);
        assert_int_equal(e->first, known ? a.length : 0);
        if (known)
            assert_int_equal(e->value[0], a.symbol);
        return;
    }
    assert_int_equal(e->step, a.step);
    assert_int_equal(e->value[0], a.value);
    assert_int_equal(e->first, a.bits);
    const struct ac_symbol second = naive_ac(&b, table);
    const bool pair = a.step != DR__STEP_END && held(&second);
    assert_int_equal(e->steps, pair ? a.step + second.step : a.step);
    assert_int_equal(e->value[1], pair ? second.value : a.value);
    assert_int_equal(e->bits, pair ? second.bits : a.bits);
}

/* Codes that are longer than `shorter` bits. */
static void check_codes(const dr__codes *codes, const uint8_t *table, int shorter, uint64_t *seed)
{
    for (int i = 0; i < 2000; i++) {
        uint8_t bits[BITS];
        int length;
        fill_bits(bits, 0xffff, i % 17, seed); /* long codes are made of ones */
        struct naive_bits b = { bits, BITS, 0, 0 };
        const int symbol = naive_symbol(&b, table);
        if (symbol >= 0 && b.at <= shorter)
            continue;
        const int found = dr__codes_find(codes, next16(bits), shorter + 1, &length);
        assert_int_equal(length, symbol < 0 ? 0 : b.at);
        assert_int_equal(found, symbol < 0 ? 0 : symbol);
    }
}

static void ac_lookups_agree_with_bit_by_bit(void **state)
{
    (void)state;
    static dr__ac_table t;
    uint64_t seed = SEED;
    uint8_t table[TABLE_BYTES];
    for (int i = 0; i < TABLES; i++) {
        random_table(table, i % 2 ? 255 : 0x24, &seed);
        assert_true(dr__ac_table_make(&t, table));
        for (int k = 0; k < 1 << DR__AC_BITS; k++)
            check_ac_entry(&t, table, k, &seed);
        check_codes(&t.codes, table, DR__AC_BITS, &seed);
    }
}

static void dc_lookups_agree_with_bit_by_bit(void **state)
{
    (void)state;
    static dr__dc_table t;
    uint64_t seed = SEED;
    uint8_t table[TABLE_BYTES], bits[BITS];
    for (int i = 0; i < TABLES; i++) {
        random_table(table, 15, &seed);
        assert_true(dr__dc_table_make(&t, table));
        for (int k = 0; k < 1 << DR__DC_BITS; k++) {
            fill_bits(bits, k, DR__DC_BITS, &seed);
            struct naive_bits b = { bits, BITS, 0, 0 };
            const int symbol = naive_symbol(&b, table);
            const bool short_one = symbol >= 0 && b.at <= DR__DC_BITS;
            assert_int_equal(t.entry[k].bits, short_one ? b.at : 0);
            assert_int_equal(t.entry[k].size, short_one ? symbol : 0);
        }
        check_codes(&t.codes, table, DR__DC_BITS, &seed);
    }
}

/* A table that is made again of the same bytes stays; one that differs in any byte does not. */
static void tables_are_made_anew_when_they_differ(void **state)
{
    (void)state;
    static dr__ac_table t, fresh;
    uint64_t seed = SEED;
    uint8_t table[TABLE_BYTES];
    random_table(table, 255, &seed);
    assert_true(dr__ac_table_make(&t, table));
    table[16] ^= 1;
    assert_true(dr__ac_table_make(&t, table));
    assert_true(dr__ac_table_make(&fresh, table));
    assert_memory_equal(t.entry, fresh.entry, sizeof t.entry);

    static const uint8_t full[17 + 2] = { 2, [16] = 1, 2 };
    assert_false(dr__ac_table_make(&t, full));
    assert_true(dr__ac_table_make(&t, table)); /* after a refusal nothing is left of either */
    assert_memory_equal(t.entry, fresh.entry, sizeof t.entry);
}

/* Does libjpeg decode a block of zeros with this table?  It says so where it does not like the code. */
static bool libjpeg_takes(dr_codec_state *codecs, const uint8_t *table, bool dc)
{
    const struct tiny_jpeg spec = { .width = 8,
                                    .height = 8,
                                    .n_components = 1,
                                    .factors = { 0x11 },
                                    .dc = dc ? table : NULL,
                                    .ac = dc ? NULL : table };
    struct blob head = tiny_header(&spec), file = { malloc(head.size + 4), head.size + 4 };
    struct picture p;
    dr__decode_options options;
    dr_error err = { 0 };
    dr__decode_defaults(&options);
    options.libjpeg = true;
    memcpy(file.data, head.data, head.size);
    memcpy(file.data + head.size, "\0\0\xff\xd9", 4);
    const dr_status status = picture_decode(codecs, &file, &options, NULL, &p, &err);
    if (status == DR_OK)
        picture_free(&p);
    else if (!strstr(err.text, "Huffman"))
        fail_msg("libjpeg has another reason: %s", err.text);
    blob_free(&head);
    blob_free(&file);
    return status == DR_OK;
}

/* Random counts of which about half are too many, and tables one word short of full or just full. */
static void any_table(uint8_t *table, int largest, uint64_t *seed)
{
    random_table(table, largest, seed);
    const int length = random_in(seed, 0, 15);
    if (random_in(seed, 0, 1) && table[length] < 200)
        table[length] = (uint8_t)(table[length] + random_in(seed, 1, 2));
    int total = 0;
    for (int i = 0; i < 16; i++)
        total += table[i];
    if (total > 256)
        random_table(table, largest, seed);
}

static void libjpeg_refuses_the_same_tables(void **state)
{
    (void)state;
    static dr__ac_table ac;
    static dr__dc_table dc;
    uint64_t seed = SEED;
    int taken = 0, refused = 0;
    dr_codec_state *codecs = dr__codec_state_new();
    for (int i = 0; i < 600; i++) {
        uint8_t table[TABLE_BYTES];
        any_table(table, i % 4 ? 15 : 17, &seed);
        const bool is_dc = i % 2 == 0;
        const bool own = is_dc ? dr__dc_table_make(&dc, table) : dr__ac_table_make(&ac, table);
        if (own != libjpeg_takes(codecs, table, is_dc))
            fail_msg("table %d (%s) is %s, libjpeg does otherwise", i, is_dc ? "DC" : "AC", own ? "taken" : "refused");
        taken += own;
        refused += !own;
    }
    assert_true(taken > 50 && refused > 50);
    dr__codec_state_free(&codecs);
}

static void tables_at_the_limits(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        uint8_t table[24];
        bool ac, dc;
    } cases[] = {
        { "no code at all", { 0 }, true, true },
        { "one code of one bit", { 1, [16] = 3 }, true, true },
        { "all ones in one bit", { 2, [16] = 1, 2 }, false, false },
        { "all ones in two bits", { 0, 4, [16] = 1, 2, 3, 4 }, false, false },
        { "one less", { 0, 3, [16] = 1, 2, 3 }, true, true },
        { "more codes than there are", { 1, 3, [16] = 1, 2, 3, 4 }, false, false },
        { "nothing left after all ones", { 1, 2, 1, [16] = 1, 2, 3, 4 }, false, false },
        { "sixteen bits", { [15] = 1, [16] = 15 }, true, true },
        { "a DC size of 16", { 1, [16] = 16 }, true, false },
    };
    static dr__ac_table ac;
    static dr__dc_table dc;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (dr__ac_table_make(&ac, cases[i].table) != cases[i].ac ||
            dr__dc_table_make(&dc, cases[i].table) != cases[i].dc)
            fail_msg("%s", cases[i].what);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ac_lookups_agree_with_bit_by_bit),
        cmocka_unit_test(dc_lookups_agree_with_bit_by_bit),
        cmocka_unit_test(tables_are_made_anew_when_they_differ),
        cmocka_unit_test(libjpeg_refuses_the_same_tables),
        cmocka_unit_test(tables_at_the_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
