/* test_jpeg_entropy.c: blocks out of bits: what reading bit by bit gives, and the same place in the file afterwards. */
#include "unit/cm.h"
#include "codec/image/jpeg_entropy.h"
#include "unit/codec/image/blob.h"
#include "unit/codec/image/naive_huffman.h"

enum { SEED = 4711, BEFORE = 3, BYTES = 600, MOST_MCUS = 40 };

/* Entropy-coded bytes after some others, and their bits with the places that those have in the file. */
struct stream {
    struct blob file; /* exactly as large as it is, so that sanitizers see overreads */
    uint8_t bits[8 * BYTES];
    uint64_t place[8 * BYTES + 1];
    int n;
};

static void take_apart(struct stream *s)
{
    const uint8_t *d = s->file.data;
    size_t at = BEFORE;
    s->n = 0;
    while (at < s->file.size && !(d[at] == 0xff && (at + 1 == s->file.size || d[at + 1] != 0))) {
        for (int i = 0; i < 8; i++, s->n++) {
            s->bits[s->n] = d[at] >> (7 - i) & 1;
            s->place[s->n] = at * 8 + (unsigned)i;
        }
        at += d[at] == 0xff ? 2 : 1;
    }
    s->place[s->n] = at * 8;
}

/* Random bytes, one in `rare` of them FF; ends with `end`. */
static void make_stream(struct stream *s, int n, int rare, const char *end, uint64_t *seed)
{
    uint8_t bytes[BEFORE + 2 * BYTES + 2];
    size_t size = BEFORE;
    memset(bytes, 0, BEFORE);
    for (int i = 0; i < n; i++) {
        bytes[size] = random_in(seed, 1, rare) == 1 ? 0xff : (uint8_t)next_random(seed);
        if (bytes[size++] == 0xff)
            bytes[size++] = 0;
    }
    memcpy(bytes + size, end, strlen(end));
    s->file = blob_copy(bytes, size + strlen(end));
    take_apart(s);
}

static void place_is_told_at_every_bit(void **state)
{
    (void)state;
    static struct stream s;
    uint64_t seed = SEED;
    for (int rare = 1; rare < 40; rare += 6) {
        make_stream(&s, 60, rare, rare % 4 == 1 ? "\xff\xd9" : "", &seed);
        for (int i = 0; i < s.n; i++) {
            const dr__bits b = dr__bits_at(s.file.data, s.file.size, s.place[i]);
            assert_int_equal(dr__bits_tell(&b, s.file.data), s.place[i]);
            for (int k = 0; k < 48; k++)
                assert_int_equal(b.window >> (63 - k) & 1, i + k < s.n ? s.bits[i + k] : 0);
        }
        blob_free(&s.file);
    }
}

/* --- blocks --- */

struct tables {
    uint8_t dc_bytes[TABLE_BYTES], ac_bytes[TABLE_BYTES];
    dr__dc_table dc;
    dr__ac_table ac;
    dr__scan scan;
};

static void use_tables(struct tables *t, int n_blocks)
{
    assert_true(dr__dc_table_make(&t->dc, t->dc_bytes) && dr__ac_table_make(&t->ac, t->ac_bytes));
    t->scan.n_blocks = n_blocks;
    for (int i = 0; i < n_blocks; i++) {
        t->scan.block[i].dc = &t->dc;
        t->scan.block[i].ac = &t->ac;
        t->scan.block[i].component = i % DR__JPEG_CHANNELS;
    }
}

/* One block as the standard says; false where the fast decoder must give up. */
static bool naive_block(struct naive_bits *b, const struct tables *t, int32_t *dc, int16_t *block)
{
    memset(block, 0, DR__BLOCK * sizeof *block);
    const int size = naive_symbol(b, t->dc_bytes);
    if (size < 0)
        return false;
    *dc += naive_number(b, size);
    block[0] = (int16_t)*dc;
    for (int k = 1; k < 64; k++) {
        const int symbol = naive_symbol(b, t->ac_bytes);
        if (symbol < 0)
            return false;
        if ((symbol & 15) == 0 && symbol != 0xf0)
            return !b->ended;
        k += symbol >> 4;
        const int value = naive_number(b, symbol & 15);
        if (k > 63)
            return false;
        block[dr__jpeg_zigzag[k]] = (int16_t)value;
    }
    return !b->ended;
}

static bool naive_mcu(struct naive_bits *b, const struct tables *t, int32_t *dc, int16_t *blocks)
{
    for (int i = 0; i < t->scan.n_blocks; i++)
        if (!naive_block(b, t, &dc[t->scan.block[i].component], blocks + i * DR__BLOCK))
            return false;
    return true;
}

/* MCU after MCU until one fails: the same blocks, predictors and place; and both fail at the same one.  Returns how
 * many there were. */
static int compare(const struct stream *s, const struct tables *t)
{
    static _Alignas(64) int16_t own[(DR__MCU_BLOCKS + 1) * DR__BLOCK];
    int16_t naive[DR__MCU_BLOCKS * DR__BLOCK];
    int32_t own_dc[DR__JPEG_CHANNELS] = { 0 }, naive_dc[DR__JPEG_CHANNELS] = { 0 };
    dr__block_places places = { 0 };
    dr__bits bits = dr__bits_at(s->file.data, s->file.size, BEFORE * 8);
    struct naive_bits b = { s->bits, s->n, 0, 0 };
    for (int i = 0; i < t->scan.n_blocks; i++)
        places.at[i] = own + i * DR__BLOCK;
    for (int mcu = 0; mcu < MOST_MCUS; mcu++) {
        const bool sound = naive_mcu(&b, t, naive_dc, naive);
        assert_int_equal(dr__scan_mcus(&t->scan, &bits, own_dc, 1, &places), sound);
        if (!sound)
            return mcu;
        assert_memory_equal(own, naive, (size_t)t->scan.n_blocks * DR__BLOCK * sizeof *own);
        assert_memory_equal(own_dc, naive_dc, sizeof own_dc);
        assert_int_equal(dr__bits_tell(&bits, s->file.data), s->place[b.at]);
    }
    return MOST_MCUS;
}

/* Random bits hit everything: runs beyond the 63rd, codes that do not exist, the end in the middle of a number. */
static void random_bits_agree_with_bit_by_bit(void **state)
{
    (void)state;
    static struct stream s;
    static struct tables t;
    uint64_t seed = SEED;
    int mcus = 0;
    for (int i = 0; i < 15000; i++) {
        static const int largest[] = { 0x12, 0x31, 0xf3, 255 };
        random_table(t.dc_bytes, 15, &seed);
        random_table(t.ac_bytes, largest[i % 4], &seed);
        use_tables(&t, i % 8 ? random_in(&seed, 1, 3) : random_in(&seed, 1, DR__MCU_BLOCKS));
        make_stream(&s, random_in(&seed, 1, BYTES), random_in(&seed, 2, 100), i % 3 ? "\xff\xd9" : "", &seed);
        mcus += compare(&s, &t);
        blob_free(&s.file);
    }
    assert_true(mcus > 10000);
}

/* --- made by hand: symbols one after the other.  DC: "0" is no change.  AC: see ac_words --- */

static const struct {
    char name; /* in the texts below */
    uint8_t symbol;
    const char *word;
} ac_words[] = {
    { '1', 0x01, "0" },     /* the next coefficient, one bit follows */
    { 'e', 0x00, "10" },    /* end of the block */
    { 'z', 0xf0, "1100" },  /* sixteen zeros */
    { 'f', 0xf1, "1101" },  /* fifteen zeros and a coefficient */
    { '2', 0x11, "1110" },  /* one zero and a coefficient */
    { 'x', 0x0f, "11110" }, /* the next coefficient, fifteen bits: not in a table of eleven */
};

static const struct tables by_hand = {
    .dc_bytes = { 1, [16] = 0 },
    .ac_bytes = { 1, 1, 0, 3, 1, [16] = 0x01, 0x00, 0xf0, 0xf1, 0x11, 0x0f },
};

struct writer {
    char bits[4000];
    size_t n;
};

static void write_text(struct writer *w, const char *bits)
{
    memcpy(w->bits + w->n, bits, strlen(bits));
    w->n += strlen(bits);
}

/* Coefficients are all 1 (x: 16385). */
static void write_symbol(struct writer *w, char name)
{
    for (size_t i = 0; i < sizeof ac_words / sizeof *ac_words; i++)
        if (ac_words[i].name == name) {
            write_text(w, ac_words[i].word);
            write_text(w, name == 'x' ? "100000000000001" : strchr("12f", name) ? "1" : "");
            return;
        }
    fail_msg("no symbol %c", name);
}

/* B begins a block; *n: the symbol before it n times in all. */
static void write_blocks(struct writer *w, const char *text)
{
    for (char last = 0; *text; text++) {
        if (*text == 'B') {
            write_text(w, "0");
        } else if (*text == '*') {
            char *end;
            for (long n = strtol(text + 1, &end, 10); n > 1; n--)
                write_symbol(w, last);
            text = end - 1;
        } else if (*text != ' ') {
            write_symbol(w, last = *text);
        }
    }
}

static void stream_of(struct stream *s, const struct writer *w)
{
    uint8_t bytes[BEFORE + 1000] = { 0 };
    size_t n = BEFORE;
    const size_t n_bits = (w->n + 7) / 8 * 8;
    for (size_t i = 0; i < n_bits; i++) {
        const int bit = i < w->n ? w->bits[i] - '0' : 1;
        bytes[n] = (uint8_t)(bytes[n] << 1 | bit);
        if (i % 8 == 7 && bytes[n++] == 0xff)
            n++;
    }
    memcpy(bytes + n, "\xff\xd9", 2);
    s->file = blob_copy(bytes, n + 2);
    take_apart(s);
}

static void blocks_that_end_at_the_63rd(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int blocks; /* that are sound */
    } cases[] = {
        { "B e", 1 },
        { "B 1*63", 1 },
        { "B 1*63 B 1*63", 2 }, /* the pair of the last and of the next block's first bits is taken apart */
        { "B 1*62 e B 1 e", 2 },
        { "B 1*61 f", 0 }, /* a run to the 77th */
        { "B 1*62 f", 0 },
        { "B 1*62 z", 0 },
        { "B 1*61 2", 1 }, /* a run that ends at the 63rd, and at the 64th */
        { "B 1*62 2", 0 },
        { "B z*3 1*15 B 1 e", 2 },
        { "B z*4 B e", 0 }, /* 64 zeros: one too many */
        { "B 1*15 z*3 B e", 2 },
        { "B 1*16 z*3 B e", 0 },
        { "B f*3 1*15 B 1 e", 2 },
        { "B f*4", 0 },
        { "B x*63 B e", 2 }, /* by way of what no table holds */
        { "B x*62 f B e", 0 },
        { "B x*62 e B x 1 e B 1 x e", 3 },
        { "B 1*62 x B 1 e", 2 },
        { "B 1", 0 }, /* data that ends in the block */
    };
    static struct stream s;
    static struct tables t;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct writer w = { .n = 0 };
        t = by_hand;
        use_tables(&t, 1);
        write_blocks(&w, cases[i].text);
        stream_of(&s, &w);
        const int sound = compare(&s, &t);
        if (sound != cases[i].blocks)
            fail_msg("%s: %d blocks, expected %d", cases[i].text, sound, cases[i].blocks);
        blob_free(&s.file);
    }
}

/* --- ends --- */

static void markers_come_after_the_last_byte(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        uint8_t bytes[8];
        int n, bit;  /* reading stands there */
        int restart; /* number that is passed; -1: none */
        bool over;
    } cases[] = {
        { "at the marker", { 0xff, 0xd9 }, 2, 0, -1, true },
        { "a bit before it", { 0xaa, 0xff, 0xd9 }, 3, 7, -1, true },
        { "seven bits before it", { 0x80, 0xff, 0xd9 }, 3, 1, -1, true },
        { "a byte before it", { 0xaa, 0xff, 0xd9 }, 3, 0, -1, false },
        { "a stuffed byte before it", { 0xff, 0, 0xff, 0xd9 }, 4, 0, -1, false },
        { "in a stuffed byte before it", { 0xff, 0, 0xff, 0xd9 }, 4, 3, -1, true },
        { "restart 0", { 0xff, 0xd0 }, 2, 0, 0, false },
        { "restart 7", { 0x7f, 0xff, 0xd7, 0, 0 }, 5, 2, 7, false },
        { "fill bytes", { 0xff, 0xff, 0xd0 }, 3, 0, -1, false },
        { "another marker", { 0xff, 0xda }, 2, 0, -1, false },
        { "half a marker", { 0xff }, 1, 0, -1, false },
        { "nothing", { 0 }, 0, 0, -1, false },
        { "no marker", { 0xaa }, 1, 4, -1, false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct blob b = blob_copy(cases[i].bytes, (size_t)cases[i].n);
        const dr__bits bits = dr__bits_at(b.data, b.size, (uint64_t)cases[i].bit);
        if (dr__bits_over(&bits) != cases[i].over)
            fail_msg("%s: end", cases[i].what);
        for (int number = 0; number < 8; number++) {
            dr__bits after = bits;
            const bool passed = dr__bits_restart(&after, number);
            if (passed != (number == cases[i].restart))
                fail_msg("%s: restart %d", cases[i].what, number);
            if (passed)
                assert_int_equal(dr__bits_tell(&after, b.data), cases[i].bytes[0] == 0xff ? 16 : 24);
        }
        blob_free(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(place_is_told_at_every_bit),
        cmocka_unit_test(random_bits_agree_with_bit_by_bit),
        cmocka_unit_test(blocks_that_end_at_the_63rd),
        cmocka_unit_test(markers_come_after_the_last_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
