/* block_jpeg.c: see block_jpeg.h. */
#include "unit/codec/image/block_jpeg.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "unit/codec/image/jpeg_part.h"

enum { ROOM = 4096, ZRL = 0xf0 };

struct code {
    uint32_t bits;
    int length; /* 0: the table does not have this symbol */
};

/* Bits with stuffed bytes. */
struct writer {
    uint8_t bytes[ROOM];
    size_t n;
    uint32_t hold; /* the lowest `held` bits are not yet written */
    int held;
};

static void write_bits(struct writer *w, uint32_t bits, int n)
{
    for (int i = n - 1; i >= 0; i--) {
        w->hold = w->hold << 1 | (bits >> i & 1);
        if (++w->held < 8)
            continue;
        w->bytes[w->n++] = (uint8_t)w->hold;
        if ((uint8_t)w->hold == 0xff)
            w->bytes[w->n++] = 0;
        w->held = 0;
        assert(w->n + 2 < ROOM);
    }
}

/* Canonical codes of the table whose class and number are in `which`. */
static void find_codes(const struct blob *b, int which, struct code codes[256])
{
    struct jpeg_part parts[40];
    int n = jpeg_split(b->data, b->size, parts, 40);
    memset(codes, 0, 256 * sizeof(*codes));
    for (int i = 0; i < n; i++) {
        const uint8_t *table = b->data + parts[i].at + 4, *symbol = table + 17;
        if (parts[i].marker != DHT || table[0] != which)
            continue;
        uint32_t code = 0;
        for (int length = 1; length <= 16; length++, code <<= 1)
            for (int k = 0; k < table[length]; k++)
                codes[*symbol++] = (struct code){ code++, length };
    }
}

static void write_symbol(struct writer *w, const struct code codes[256], int symbol, uint64_t *seed)
{
    write_bits(w, codes[symbol].bits, codes[symbol].length);
    write_bits(w, (uint32_t)next_random(seed), symbol & 15);
}

/* A run of zeros and a size; near the end of a block more often what just fits or just does not. */
static int choose_symbol(const struct code codes[256], int k, uint64_t *seed)
{
    int run = random_in(seed, 0, random_in(seed, 0, 15));
    if (k > 48 && random_in(seed, 0, 2) == 0)
        run = 62 - k + random_in(seed, 0, 1);
    if (run < 0 || run > 15)
        run = 0;
    int symbol = run << 4 | (random_in(seed, 0, 3) ? random_in(seed, 1, 3) : random_in(seed, 1, 10));
    if (random_in(seed, 0, 15) == 0)
        symbol = ZRL;
    return codes[symbol].length ? symbol : ZRL;
}

static void write_block(struct writer *w, const struct code dc[256], const struct code ac[256], uint64_t *seed)
{
    int k = 0, end = random_in(seed, 0, 3) ? 63 : random_in(seed, 1, 63);
    write_symbol(w, dc, random_in(seed, 0, 5), seed);
    while (k < end) {
        int symbol = choose_symbol(ac, k, seed);
        write_symbol(w, ac, symbol, seed);
        k += (symbol >> 4) + 1;
    }
    if (k < 63 || random_in(seed, 0, 19) == 0)
        write_symbol(w, ac, 0, seed);
}

struct blob make_blocks(enum jpeg_huffman huffman, uint64_t *seed)
{
    struct code dc[256], ac[256];
    struct writer w = { .n = 0 };
    int blocks = random_in(seed, 1, 3);
    struct jpeg_spec spec = { .width = 8 * blocks, .height = 8, .huffman = huffman, .seed = next_random(seed) };
    struct blob b = make_jpeg(&spec);
    find_codes(&b, 0x00, dc);
    find_codes(&b, 0x10, ac);
    for (int i = 0; i < blocks; i++)
        write_block(&w, dc, ac, seed);
    write_bits(&w, 0x7f, (8 - w.held) & 7);
    const struct jpeg_part *scan = part_scan(&b, 1, seed);
    blob_splice(&b, scan->at, scan->size, w.bytes, w.n);
    return b;
}
