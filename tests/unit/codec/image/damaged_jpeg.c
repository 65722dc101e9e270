/* damaged_jpeg.c: what is wrong in a JPEG, or may be. */
#include "unit/codec/image/odd_jpeg.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "unit/codec/image/jpeg_part.h"

static void other_restart_interval(struct blob *b, uint64_t *s)
{
    uint8_t segment[6] = { 0xff, DRI, 0, 4, 0, (uint8_t)random_in(s, 0, 9) };
    part_put(b, part_any(b, SOS, SOS, s), segment, 6);
}

static void no_eoi(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = part_any(b, EOI, EOI, s);
    if (p)
        blob_splice(b, p->at, b->size - p->at, NULL, 0);
}

static void no_table(struct blob *b, uint64_t *s)
{
    int marker = random_in(s, 0, 3) ? DHT : DQT;
    const struct jpeg_part *p = part_any(b, marker, marker, s);
    if (p)
        blob_splice(b, p->at, p->size, NULL, 0);
}

static void other_end(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = part_any(b, EOI, EOI, s);
    if (p)
        b->data[p->at + 1] = (uint8_t)random_in(s, SOF0, 0xfe);
}

static void number_lines(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = part_frame(b);
    if (!p)
        return;
    uint8_t segment[6] = { 0xff, DNL, 0, 4, b->data[p->at + 5], b->data[p->at + 6] };
    b->data[p->at + 5] = b->data[p->at + 6] = 0;
    part_put(b, part_any(b, EOI, EOI, s), segment, 6);
}

static void needless_dnl(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = part_frame(b);
    if (!p)
        return;
    uint8_t segment[6] = { 0xff, DNL, 0, 4, b->data[p->at + 5], b->data[p->at + 6] };
    part_put(b, part_any(b, EOI, EOI, s), segment, 6);
}

static void other_size(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = part_frame(b);
    if (!p)
        return;
    b->data[p->at + 6 + (size_t)random_in(s, 0, 1) * 2] = (uint8_t)random_in(s, 0, 100);
}

static void other_sampling(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = part_frame(b);
    if (!p)
        return;
    size_t n = b->data[p->at + 9], c = (size_t)random_in(s, 0, 3);
    if (c < n && 10 + 3 * n <= p->size)
        b->data[p->at + 11 + 3 * c] = (uint8_t)(random_in(s, 1, 4) << 4 | random_in(s, 1, 4));
}

static void frame_byte(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = part_frame(b);
    if (p)
        b->data[p->at + (size_t)random_in(s, 1, (int)p->size - 1)] = (uint8_t)random_in(s, 0, 4);
}

static void scan_header_byte(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = part_any(b, SOS, SOS, s);
    if (p && p->size > 5)
        b->data[p->at + (size_t)random_in(s, 4, (int)p->size - 1)] = (uint8_t)random_in(s, 0, 63);
}

/* The components of a scan in another order than the frame's. */
static void scan_order(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = part_any(b, SOS, SOS, s);
    if (!p || p->size < 14)
        return;
    uint8_t *id = b->data + p->at + 5, first[2] = { id[0], id[1] };
    int with = random_in(s, 1, 2);
    memcpy(id, id + 2 * with, 2);
    memcpy(id + 2 * with, first, 2);
}

static void same_ids(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = part_frame(b);
    (void)s;
    if (p && p->size >= 16)
        b->data[p->at + 13] = b->data[p->at + 10];
}

static void table_byte(struct blob *b, uint64_t *s)
{
    int marker = random_in(s, 0, 2) ? DHT : DQT;
    const struct jpeg_part *p = part_any(b, marker, marker, s);
    if (p && p->size > 5)
        b->data[p->at + (size_t)random_in(s, 4, (int)p->size - 1)] = (uint8_t)next_random(s);
}

static void restart_number(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = part_any(b, RST0, RST0 + 7, s);
    if (p)
        b->data[p->at + 1] = (uint8_t)(RST0 + random_in(s, 0, 7));
}

static void restart_missing(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = part_any(b, RST0, RST0 + 7, s);
    if (p)
        blob_splice(b, p->at, p->size, NULL, 0);
}

static void restart_needless(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = part_scan(b, 2, s);
    uint8_t marker[2] = { 0xff, (uint8_t)(RST0 + random_in(s, 0, 7)) };
    if (p)
        blob_splice(b, p->at + (size_t)random_in(s, 0, (int)p->size), 0, marker, 2);
}

static void marker_in_scan(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = part_scan(b, 2, s);
    uint8_t marker[2] = { 0xff, (uint8_t)random_in(s, 0, 255) };
    if (p)
        blob_splice(b, p->at + (size_t)random_in(s, 0, (int)p->size), 0, marker, 2);
}

static void flipped_bits(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = part_scan(b, 1, s);
    for (int k = p ? random_in(s, 1, 5) : 0; k > 0; k--)
        b->data[p->at + (size_t)random_in(s, 0, (int)p->size - 1)] ^= (uint8_t)(1 << random_in(s, 0, 7));
}

/* Random bits in place of a scan: every code of the tables, blocks that overflow, coefficients out of all proportion.
 */
static void random_scan(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = part_scan(b, 4, s);
    if (!p)
        return;
    size_t at = p->at, old = p->size;
    struct blob bits = { malloc(2 * old), 0 };
    assert(bits.data);
    for (size_t i = 0; i < old; i++) {
        bits.data[bits.size++] = (uint8_t)next_random(s);
        if (bits.data[bits.size - 1] == 0xff)
            bits.data[bits.size++] = 0;
    }
    blob_splice(b, at, old, bits.data, bits.size);
    blob_free(&bits);
}

/* All bits of a stretch the same: the shortest or the longest code again and again. */
static void stretch_of_ones(struct blob *b, uint64_t *s)
{
    static const uint8_t ones[20] = { 0xff, 0, 0xff, 0, 0xff, 0, 0xff, 0, 0xff, 0,
                                      0xff, 0, 0xff, 0, 0xff, 0, 0xff, 0, 0xff, 0 };
    static const uint8_t zeros[20];
    const struct jpeg_part *p = part_scan(b, 2, s);
    if (p)
        blob_splice(b, p->at + (size_t)random_in(s, 0, (int)p->size), 0, random_in(s, 0, 1) ? ones : zeros,
                    2 * (size_t)random_in(s, 1, 10));
}

static void cut(struct blob *b, uint64_t *s)
{
    size_t keep = (size_t)random_in(s, 0, (int)b->size);
    blob_splice(b, keep, b->size - keep, NULL, 0);
}

static void cut_near_end(struct blob *b, uint64_t *s)
{
    size_t n = (size_t)random_in(s, 1, 12);
    if (n < b->size)
        blob_splice(b, b->size - n, n, NULL, 0);
}

static void hole(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = part_scan(b, 2, s);
    if (!p)
        return;
    size_t from = (size_t)random_in(s, 0, (int)p->size - 1);
    blob_splice(b, p->at + from, (size_t)random_in(s, 1, (int)(p->size - from)), NULL, 0);
}

static void any_bytes(struct blob *b, uint64_t *s)
{
    for (int k = b->size ? random_in(s, 1, 4) : 0; k > 0; k--)
        b->data[random_in(s, 0, (int)b->size - 1)] = (uint8_t)next_random(s);
}

static void part_moved(struct blob *b, uint64_t *s)
{
    struct jpeg_part from = part_of_all(b, s);
    size_t to = part_of_all(b, s).at;
    if (to < from.at || to >= from.at + from.size)
        part_move(b, from, to);
}

static void part_twice(struct blob *b, uint64_t *s)
{
    struct jpeg_part p = part_of_all(b, s);
    struct blob copy = blob_copy(b->data + p.at, p.size);
    blob_splice(b, part_of_all(b, s).at, 0, copy.data, copy.size);
    blob_free(&copy);
}

static void part_missing(struct blob *b, uint64_t *s)
{
    struct jpeg_part p = part_of_all(b, s);
    blob_splice(b, p.at, p.size, NULL, 0);
}

/* A scan of fewer components than the frame has. */
static void scan_of_fewer(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = part_any(b, SOS, SOS, s);
    if (!p || p->size < 12)
        return;
    size_t at = p->at;
    b->data[at + 4]--;
    b->data[at + 3] = (uint8_t)(b->data[at + 3] - 2);
    blob_splice(b, at + 5 + 2 * (size_t)random_in(s, 0, 1), 2, NULL, 0);
}

const struct jpeg_change jpeg_damages[] = {
    { "no EOI", no_eoi },
    { "other marker for EOI", other_end },
    { "needless DNL", needless_dnl },
    { "other DRI", other_restart_interval },
    { "no table", no_table },
    { "DNL", number_lines },
    { "other size", other_size },
    { "other sampling", other_sampling },
    { "frame byte", frame_byte },
    { "scan header byte", scan_header_byte },
    { "scan order", scan_order },
    { "same ids", same_ids },
    { "table byte", table_byte },
    { "RST number", restart_number },
    { "RST missing", restart_missing },
    { "RST needless", restart_needless },
    { "marker in scan", marker_in_scan },
    { "flipped bits", flipped_bits },
    { "random scan", random_scan },
    { "stretch of equal bits", stretch_of_ones },
    { "part moved", part_moved },
    { "part twice", part_twice },
    { "part missing", part_missing },
    { "scan of fewer", scan_of_fewer },
    { "cut", cut },
    { "cut near end", cut_near_end },
    { "hole", hole },
    { "any bytes", any_bytes },
    { 0 },
};

static int count(const struct jpeg_change *changes)
{
    int n = 0;
    while (changes[n].name)
        n++;
    return n;
}

const struct jpeg_change *any_jpeg_change(uint64_t *seed)
{
    int odd = count(jpeg_oddities), k = random_in(seed, 0, odd + count(jpeg_damages) - 1);
    return k < odd ? &jpeg_oddities[k] : &jpeg_damages[k - odd];
}
