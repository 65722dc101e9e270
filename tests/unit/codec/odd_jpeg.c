/* odd_jpeg.c: changes to JPEG files, each found in the wild or made up; see odd_jpeg.h. */
#include "unit/codec/odd_jpeg.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PARTS = 600, SOF0 = 0xc0, DHT = 0xc4, RST0 = 0xd0, SOI = 0xd8, EOI, SOS, DQT, DNL, DRI, APP0 = 0xe0 };

static bool stands_alone(int marker)
{
    return marker == 0x01 || (marker >= RST0 && marker <= EOI);
}

/* Where the next marker begins, or `size`. */
static size_t next_marker(const uint8_t *data, size_t size, size_t at)
{
    while (at + 1 < size && !(data[at] == 0xff && data[at + 1] != 0 && data[at + 1] != 0xff))
        at++;
    return at + 1 < size ? at : size;
}

int jpeg_split(const uint8_t *data, size_t size, struct jpeg_part *parts, int max)
{
    int n = 0;
    for (size_t at = 0; at < size && n < max; n++) {
        size_t marker = next_marker(data, size, at), end = marker;
        if (marker == at) {
            end = at + 2;
            if (!stands_alone(data[at + 1]) && end + 2 <= size)
                end += (size_t)data[end] << 8 | data[end + 1];
            if (end > size)
                end = size;
        }
        parts[n] = (struct jpeg_part){ marker == at ? data[at + 1] : 0, at, end - at };
        at = end;
    }
    return n;
}

void blob_splice(struct blob *b, size_t at, size_t remove, const uint8_t *bytes, size_t n)
{
    size_t size = b->size - remove + n;
    uint8_t *data = malloc(size ? size : 1);
    assert(data && at <= b->size && remove <= b->size - at);
    memcpy(data, b->data, at);
    if (n)
        memcpy(data + at, bytes, n);
    memcpy(data + at + n, b->data + at + remove, b->size - at - remove);
    free(b->data);
    *b = (struct blob){ data, size };
}

/* The parts of a file, for the changes below. */
struct file {
    struct jpeg_part parts[MAX_PARTS];
    int n;
};

static struct file *split(const struct blob *b)
{
    static struct file file;
    file.n = jpeg_split(b->data, b->size, file.parts, MAX_PARTS);
    return &file;
}

/* One of the parts with marker lo to hi, by chance; NULL: there is none. */
static const struct jpeg_part *any_part(const struct blob *b, int lo, int hi, uint64_t *s)
{
    const struct file *f = split(b);
    const struct jpeg_part *found = NULL;
    int seen = 0;
    for (int i = 0; i < f->n; i++)
        if (f->parts[i].marker >= lo && f->parts[i].marker <= hi && random_in(s, 0, seen++) == 0)
            found = &f->parts[i];
    return found;
}

/* Frame headers share their numbers with DHT, JPG and DAC. */
static const struct jpeg_part *frame(const struct blob *b)
{
    const struct file *f = split(b);
    for (int i = 0; i < f->n; i++) {
        int m = f->parts[i].marker;
        if (m >= SOF0 && m <= 0xcf && m != DHT && m != 0xc8 && m != 0xcc && f->parts[i].size >= 13)
            return &f->parts[i];
    }
    return NULL;
}

/* Entropy-coded data of at least `least` bytes. */
static const struct jpeg_part *scan(const struct blob *b, size_t least, uint64_t *s)
{
    const struct file *f = split(b);
    const struct jpeg_part *found = NULL;
    int seen = 0;
    for (int i = 1; i < f->n; i++) {
        bool follows = f->parts[i - 1].marker == SOS || (f->parts[i - 1].marker & 0xf8) == RST0;
        if (f->parts[i].marker == 0 && follows && f->parts[i].size >= least && random_in(s, 0, seen++) == 0)
            found = &f->parts[i];
    }
    return found;
}

static void put(struct blob *b, const struct jpeg_part *before, const uint8_t *bytes, size_t n)
{
    if (before)
        blob_splice(b, before->at, 0, bytes, n);
}

static uint8_t any_byte(uint64_t *s)
{
    return (uint8_t)next_random(s);
}

static void fill_bytes(struct blob *b, uint64_t *s)
{
    static const uint8_t fill[4] = { 0xff, 0xff, 0xff, 0xff };
    put(b, any_part(b, SOF0, SOI - 1, s), fill, (size_t)random_in(s, 1, 4));
    put(b, any_part(b, EOI, 0xfe, s), fill, (size_t)random_in(s, 1, 4));
}

static void app_segment(struct blob *b, uint64_t *s)
{
    uint8_t segment[104] = { 0xff, (uint8_t)(random_in(s, 0, 15) == 15 ? 0xfe : APP0 + random_in(s, 0, 15)) };
    int n = random_in(s, 2, 100);
    for (int i = 4; i < n + 2; i++)
        segment[i] = any_byte(s);
    segment[3] = (uint8_t)n;
    put(b, any_part(b, DHT, DHT, s), segment, (size_t)n + 2);
}

static void adobe_segment(struct blob *b, uint64_t *s)
{
    uint8_t segment[16] = { 0xff, APP0 + 14, 0, 14, 'A', 'd', 'o', 'b', 'e', 0, 100 };
    segment[15] = (uint8_t)random_in(s, 0, 3);
    put(b, any_part(b, DQT, DQT, s), segment, 16);
}

static void jfif_segment(struct blob *b, uint64_t *s)
{
    static const uint8_t segment[18] = { 0xff, APP0, 0, 16, 'J', 'F', 'I', 'F', 0, 1, 1, 0, 0, 1, 0, 1 };
    put(b, any_part(b, DQT, DQT, s), segment, 18);
}

static void no_app_segments(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p;
    while ((p = any_part(b, APP0, APP0 + 15, s)) != NULL)
        blob_splice(b, p->at, p->size, NULL, 0);
}

static void sof1(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = any_part(b, SOF0, SOF0, s);
    if (p)
        b->data[p->at + 1] = 0xc1;
}

static void restart_interval_again(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *have = any_part(b, DRI, DRI, s);
    uint8_t segment[6] = { 0xff, DRI, 0, 4 };
    if (have && have->size == 6)
        memcpy(segment, b->data + have->at, 6);
    put(b, any_part(b, SOS, SOS, s), segment, 6);
}

static void other_restart_interval(struct blob *b, uint64_t *s)
{
    uint8_t segment[6] = { 0xff, DRI, 0, 4, 0, (uint8_t)random_in(s, 0, 9) };
    put(b, any_part(b, SOS, SOS, s), segment, 6);
}

/* SOI, all tables, EOI; then the image without them. */
static void tables_first(struct blob *b, uint64_t *s)
{
    static const uint8_t soi[2] = { 0xff, SOI }, eoi[2] = { 0xff, EOI };
    struct blob tables = blob_copy(soi, 2);
    const struct jpeg_part *p;
    for (int marker = DHT; marker <= DQT; marker += DQT - DHT)
        while ((p = any_part(b, marker, marker, s)) != NULL) {
            blob_splice(&tables, 2, 0, b->data + p->at, p->size);
            blob_splice(b, p->at, p->size, NULL, 0);
        }
    blob_splice(&tables, tables.size, 0, eoi, 2);
    blob_splice(b, 0, 0, tables.data, tables.size);
    blob_free(&tables);
}

static void rubbish_at_end(struct blob *b, uint64_t *s)
{
    uint8_t bytes[40];
    for (int i = 0; i < 40; i++)
        bytes[i] = any_byte(s);
    blob_splice(b, b->size, 0, bytes, (size_t)random_in(s, 1, 40));
}

static void no_eoi(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = any_part(b, EOI, EOI, s);
    if (p)
        blob_splice(b, p->at, b->size - p->at, NULL, 0);
}

static void rubbish_before_eoi(struct blob *b, uint64_t *s)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(any_byte(s) & 0x7f);
    put(b, any_part(b, EOI, EOI, s), bytes, (size_t)random_in(s, 1, 8));
}

/* Stuffed bytes, which are data, where a segment should be over. */
static void stuffing_at_end(struct blob *b, uint64_t *s)
{
    static const uint8_t bytes[6] = { 0xff, 0, 0xff, 0, 0xff, 0 };
    bool restart = random_in(s, 0, 1);
    put(b, any_part(b, restart ? RST0 : EOI, restart ? RST0 + 7 : EOI, s), bytes, 2 * (size_t)random_in(s, 1, 3));
}

/* The table is written twice, the first time with other contents. */
static void table_twice(struct blob *b, uint64_t *s)
{
    int marker = random_in(s, 0, 1) ? DHT : DQT;
    const struct jpeg_part *p = any_part(b, marker, marker, s);
    if (!p || p->size < 24)
        return;
    struct blob copy = blob_copy(b->data + p->at, p->size);
    for (size_t i = marker == DHT ? 21 : 5; i < copy.size; i++)
        if (marker == DQT || copy.data[4] >= 0x10)
            copy.data[i] ^= 1;
    blob_splice(b, p->at, 0, copy.data, copy.size);
    blob_free(&copy);
}

static void no_table(struct blob *b, uint64_t *s)
{
    int marker = random_in(s, 0, 3) ? DHT : DQT;
    const struct jpeg_part *p = any_part(b, marker, marker, s);
    if (p)
        blob_splice(b, p->at, p->size, NULL, 0);
}

static void number_lines(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = frame(b);
    if (!p)
        return;
    uint8_t segment[6] = { 0xff, DNL, 0, 4, b->data[p->at + 5], b->data[p->at + 6] };
    b->data[p->at + 5] = b->data[p->at + 6] = 0;
    put(b, any_part(b, EOI, EOI, s), segment, 6);
}

static void needless_dnl(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = frame(b);
    if (!p)
        return;
    uint8_t segment[6] = { 0xff, DNL, 0, 4, b->data[p->at + 5], b->data[p->at + 6] };
    put(b, any_part(b, EOI, EOI, s), segment, 6);
}

static void other_size(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = frame(b);
    if (!p)
        return;
    b->data[p->at + 6 + (size_t)random_in(s, 0, 1) * 2] = (uint8_t)random_in(s, 0, 100);
}

static void other_sampling(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = frame(b);
    if (!p)
        return;
    size_t n = b->data[p->at + 9], c = (size_t)random_in(s, 0, 3);
    if (c < n && 10 + 3 * n <= p->size)
        b->data[p->at + 11 + 3 * c] = (uint8_t)(random_in(s, 1, 4) << 4 | random_in(s, 1, 4));
}

static void frame_byte(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = frame(b);
    if (p)
        b->data[p->at + (size_t)random_in(s, 1, (int)p->size - 1)] = (uint8_t)random_in(s, 0, 4);
}

static void scan_header_byte(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = any_part(b, SOS, SOS, s);
    if (p && p->size > 5)
        b->data[p->at + (size_t)random_in(s, 4, (int)p->size - 1)] = (uint8_t)random_in(s, 0, 63);
}

/* The components of a scan in another order than the frame's. */
static void scan_order(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = any_part(b, SOS, SOS, s);
    if (!p || p->size < 14)
        return;
    uint8_t *id = b->data + p->at + 5, first[2] = { id[0], id[1] };
    int with = random_in(s, 1, 2);
    memcpy(id, id + 2 * with, 2);
    memcpy(id + 2 * with, first, 2);
}

static void same_ids(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = frame(b);
    (void)s;
    if (p && p->size >= 16)
        b->data[p->at + 13] = b->data[p->at + 10];
}

static void table_byte(struct blob *b, uint64_t *s)
{
    int marker = random_in(s, 0, 2) ? DHT : DQT;
    const struct jpeg_part *p = any_part(b, marker, marker, s);
    if (p && p->size > 5)
        b->data[p->at + (size_t)random_in(s, 4, (int)p->size - 1)] = any_byte(s);
}

static void restart_number(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = any_part(b, RST0, RST0 + 7, s);
    if (p)
        b->data[p->at + 1] = (uint8_t)(RST0 + random_in(s, 0, 7));
}

static void restart_missing(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = any_part(b, RST0, RST0 + 7, s);
    if (p)
        blob_splice(b, p->at, p->size, NULL, 0);
}

static void restart_needless(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = scan(b, 2, s);
    uint8_t marker[2] = { 0xff, (uint8_t)(RST0 + random_in(s, 0, 7)) };
    if (p)
        blob_splice(b, p->at + (size_t)random_in(s, 0, (int)p->size), 0, marker, 2);
}

static void marker_in_scan(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = scan(b, 2, s);
    uint8_t marker[2] = { 0xff, (uint8_t)random_in(s, 0, 255) };
    if (p)
        blob_splice(b, p->at + (size_t)random_in(s, 0, (int)p->size), 0, marker, 2);
}

static void flipped_bits(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = scan(b, 1, s);
    for (int k = p ? random_in(s, 1, 5) : 0; k > 0; k--)
        b->data[p->at + (size_t)random_in(s, 0, (int)p->size - 1)] ^= (uint8_t)(1 << random_in(s, 0, 7));
}

/* Random bits in place of a scan: every code of the tables, blocks that overflow, coefficients out of all proportion.
 */
static void random_scan(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = scan(b, 4, s);
    if (!p)
        return;
    size_t at = p->at, old = p->size;
    struct blob bits = { malloc(2 * old), 0 };
    assert(bits.data);
    for (size_t i = 0; i < old; i++) {
        bits.data[bits.size++] = any_byte(s);
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
    const struct jpeg_part *p = scan(b, 2, s);
    if (p)
        blob_splice(b, p->at + (size_t)random_in(s, 0, (int)p->size), 0, random_in(s, 0, 1) ? ones : zeros,
                    2 * (size_t)random_in(s, 1, 10));
}

static void wild_quantisation(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = any_part(b, DQT, DQT, s);
    for (size_t i = 5; p && i < p->size; i++)
        if (i % 65 != 4)
            b->data[p->at + i] = any_byte(s);
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
    const struct jpeg_part *p = scan(b, 2, s);
    if (!p)
        return;
    size_t from = (size_t)random_in(s, 0, (int)p->size - 1);
    blob_splice(b, p->at + from, (size_t)random_in(s, 1, (int)(p->size - from)), NULL, 0);
}

static void any_bytes(struct blob *b, uint64_t *s)
{
    for (int k = b->size ? random_in(s, 1, 4) : 0; k > 0; k--)
        b->data[random_in(s, 0, (int)b->size - 1)] = any_byte(s);
}

const struct jpeg_oddity jpeg_oddities[] = {
    { "fill bytes", fill_bytes, true },
    { "APP segment", app_segment, true },
    { "Adobe segment", adobe_segment, true },
    { "JFIF segment", jfif_segment, true },
    { "no APP segments", no_app_segments, true },
    { "SOF1", sof1, true },
    { "DRI again", restart_interval_again, true },
    { "tables first", tables_first, true },
    { "rubbish at end", rubbish_at_end, true },
    { "rubbish before EOI", rubbish_before_eoi, true },
    { "stuffing at end", stuffing_at_end, true },
    { "table twice", table_twice, true },
    { "no EOI", no_eoi, false },
    { "needless DNL", needless_dnl, false },
    { "other DRI", other_restart_interval, false },
    { "no table", no_table, false },
    { "DNL", number_lines, false },
    { "other size", other_size, false },
    { "other sampling", other_sampling, false },
    { "frame byte", frame_byte, false },
    { "scan header byte", scan_header_byte, false },
    { "scan order", scan_order, false },
    { "same ids", same_ids, false },
    { "table byte", table_byte, false },
    { "RST number", restart_number, false },
    { "RST missing", restart_missing, false },
    { "RST needless", restart_needless, false },
    { "marker in scan", marker_in_scan, false },
    { "flipped bits", flipped_bits, false },
    { "random scan", random_scan, false },
    { "stretch of equal bits", stretch_of_ones, false },
    { "wild quantisation", wild_quantisation, true },
    { "cut", cut, false },
    { "cut near end", cut_near_end, false },
    { "hole", hole, false },
    { "any bytes", any_bytes, false },
    { 0 },
};

int jpeg_n_oddities(void)
{
    int n = 0;
    while (jpeg_oddities[n].name)
        n++;
    return n;
}

const struct jpeg_sampling jpeg_samplings[] = {
    { "4:4:4", { 1, 1, 1 }, { 1, 1, 1 } },
    { "4:2:2", { 2, 1, 1 }, { 1, 1, 1 } },
    { "4:2:0", { 2, 1, 1 }, { 2, 1, 1 } },
    { "4:4:0", { 1, 1, 1 }, { 2, 1, 1 } },
    { "4:1:1", { 4, 1, 1 }, { 1, 1, 1 } },
    { "4:4:4, all 1x2", { 1, 1, 1 }, { 2, 2, 2 } },
    { "4:4:4, all 2x1", { 2, 2, 2 }, { 1, 1, 1 } },
    { "4:4:4, all 3x1", { 3, 3, 3 }, { 1, 1, 1 } },
    { "4:2:2, 2x2 and 1x2", { 2, 1, 1 }, { 2, 2, 2 } },
    { "4:4:0, 2x2 and 2x1", { 2, 2, 2 }, { 2, 1, 1 } },
    { "2x2, 1x2, 1x1", { 2, 1, 1 }, { 2, 2, 1 } },
    { "2x2, 2x1, 1x2", { 2, 2, 1 }, { 2, 1, 2 } },
    { "2x2, 1x1, 2x2", { 2, 1, 2 }, { 2, 1, 2 } },
    { "luma coarser than chroma", { 1, 2, 2 }, { 1, 1, 1 } },
    { "one chroma finer than all", { 1, 2, 1 }, { 1, 2, 1 } },
    { "3x1", { 3, 1, 1 }, { 1, 1, 1 } },
    { "1x3", { 1, 1, 1 }, { 3, 1, 1 } },
    { "1x4", { 1, 1, 1 }, { 4, 1, 1 } },
    { "4x2", { 4, 1, 1 }, { 2, 1, 1 } },
    { "2x4", { 2, 1, 1 }, { 4, 1, 1 } },
    { 0 },
};

int jpeg_n_samplings(void)
{
    int n = 0;
    while (jpeg_samplings[n].name)
        n++;
    return n;
}

static void random_scans(struct jpeg_spec *spec, uint64_t *s)
{
    int kind = random_in(s, 0, 39);
    spec->progressive = kind == 0;
    spec->arithmetic = kind == 1;
    spec->interleaved_off = kind == 2;
    spec->partly_separate = kind == 3 && spec->color == JPEG_YCC;
    spec->dc_only = kind == 4;
    if (spec->arithmetic || spec->progressive)
        spec->huffman = HUFFMAN_BY_SEED;
}

static void random_factors(struct jpeg_spec *spec, uint64_t *s)
{
    int usual = random_in(s, 0, 1); /* the first four are what one meets */
    const struct jpeg_sampling *f = &jpeg_samplings[random_in(s, 0, usual ? 3 : jpeg_n_samplings() - 1)];
    memcpy(spec->h, f->h, sizeof(f->h));
    memcpy(spec->v, f->v, sizeof(f->v));
    if (spec->color >= JPEG_CMYK) {
        spec->h[0] = spec->h[3] = random_in(s, 1, 2);
        spec->v[0] = spec->v[3] = random_in(s, 1, 2);
        spec->h[1] = spec->h[2] = spec->v[1] = spec->v[2] = 1;
    }
}

struct jpeg_spec random_kind(uint64_t *s, int side)
{
    static const enum jpeg_color colors[] = { JPEG_GRAY, JPEG_PLAIN_RGB, JPEG_PLAIN_RGB, JPEG_CMYK, JPEG_YCCK };
    static const int restarts[] = { 0, 0, 0, 1, 2, 3, 5, 9, 60000 };
    struct jpeg_spec spec = { .width = random_in(s, 1, side), .height = random_in(s, 1, side), .color = JPEG_YCC };
    int color = random_in(s, 0, 15);
    if (color < 5)
        spec.color = colors[color];
    random_factors(&spec, s);
    spec.quality = random_in(s, 1, 100);
    spec.wide_quant = random_in(s, 0, 3) == 0;
    spec.restart = restarts[random_in(s, 0, 8)];
    if (random_in(s, 0, 7) == 0) /* at each row of MCUs */
        spec.restart = (spec.width + 8 * spec.h[0] - 1) / (8 * spec.h[0]);
    spec.content = (enum image_content)random_in(s, 0, CONTENT_EXTREME);
    spec.huffman = (enum jpeg_huffman)random_in(s, 0, HUFFMAN_FLAT);
    spec.ids = random_in(s, 0, 7) ? IDS_USUAL : (enum jpeg_ids)random_in(s, 0, IDS_RANDOM);
    spec.no_jfif = random_in(s, 0, 3) == 0;
    spec.adobe = random_in(s, 0, 5) == 0;
    spec.orientation = random_in(s, 0, 3) ? 0 : random_in(s, 1, 8);
    random_scans(&spec, s);
    spec.seed = next_random(s);
    return spec;
}

void describe_kind(const struct jpeg_spec *spec, char *text, size_t cap)
{
    snprintf(text, cap,
             "%d x %d color %d %dx%d,%dx%d,%dx%d quality %d%s restart %d content %d huffman %d ids %d%s%s%s%s",
             spec->width, spec->height, spec->color, spec->h[0], spec->v[0], spec->h[1], spec->v[1], spec->h[2],
             spec->v[2], spec->quality, spec->wide_quant ? " wide" : "", spec->restart, spec->content, spec->huffman,
             spec->ids, spec->no_jfif ? " no-jfif" : "", spec->adobe ? " adobe" : "",
             spec->progressive || spec->arithmetic ? " progressive-or-arithmetic" : "",
             spec->interleaved_off || spec->partly_separate ? " scans" : "");
}
