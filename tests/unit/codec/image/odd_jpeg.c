/* odd_jpeg.c: what is rare but right: after these changes libjpeg still reads a file. */
#include "unit/codec/image/odd_jpeg.h"

#include <stdbool.h>
#include <string.h>

#include "unit/codec/image/jpeg_part.h"

static void fill_bytes(struct blob *b, uint64_t *s)
{
    static const uint8_t fill[4] = { 0xff, 0xff, 0xff, 0xff };
    part_put(b, part_any(b, SOF0, SOI - 1, s), fill, (size_t)random_in(s, 1, 4));
    part_put(b, part_any(b, EOI, 0xfe, s), fill, (size_t)random_in(s, 1, 4));
}

static void app_segment(struct blob *b, uint64_t *s)
{
    uint8_t segment[104] = { 0xff, (uint8_t)(random_in(s, 0, 15) == 15 ? 0xfe : APP0 + random_in(s, 0, 15)) };
    int n = random_in(s, 2, 100);
    for (int i = 4; i < n + 2; i++)
        segment[i] = (uint8_t)next_random(s);
    segment[3] = (uint8_t)n;
    part_put(b, part_any(b, DHT, DHT, s), segment, (size_t)n + 2);
}

static void adobe_segment(struct blob *b, uint64_t *s)
{
    uint8_t segment[16] = { 0xff, APP0 + 14, 0, 14, 'A', 'd', 'o', 'b', 'e', 0, 100 };
    segment[15] = (uint8_t)random_in(s, 0, 3);
    part_put(b, part_any(b, DQT, DQT, s), segment, 16);
}

static void jfif_segment(struct blob *b, uint64_t *s)
{
    static const uint8_t segment[18] = { 0xff, APP0, 0, 16, 'J', 'F', 'I', 'F', 0, 1, 1, 0, 0, 1, 0, 1 };
    part_put(b, part_any(b, DQT, DQT, s), segment, 18);
}

static void no_app_segments(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p;
    while ((p = part_any(b, APP0, APP0 + 15, s)) != NULL)
        blob_splice(b, p->at, p->size, NULL, 0);
}

static void sof1(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = part_any(b, SOF0, SOF0, s);
    if (p)
        b->data[p->at + 1] = 0xc1;
}

static void restart_interval_again(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *have = part_any(b, DRI, DRI, s);
    uint8_t segment[6] = { 0xff, DRI, 0, 4 };
    if (have && have->size == 6)
        memcpy(segment, b->data + have->at, 6);
    part_put(b, part_any(b, SOS, SOS, s), segment, 6);
}

/* SOI, all tables, EOI; then the image without them. */
static void tables_first(struct blob *b, uint64_t *s)
{
    static const uint8_t soi[2] = { 0xff, SOI }, eoi[2] = { 0xff, EOI };
    struct blob tables = blob_copy(soi, 2);
    const struct jpeg_part *p;
    for (int marker = DHT; marker <= DQT; marker += DQT - DHT)
        while ((p = part_any(b, marker, marker, s)) != NULL) {
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
        bytes[i] = (uint8_t)next_random(s);
    blob_splice(b, b->size, 0, bytes, (size_t)random_in(s, 1, 40));
}

static void rubbish_before_eoi(struct blob *b, uint64_t *s)
{
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(next_random(s) & 0x7f);
    part_put(b, part_any(b, EOI, EOI, s), bytes, (size_t)random_in(s, 1, 8));
}

/* Stuffed bytes, which are data, where a segment should be over. */
static void stuffing_at_end(struct blob *b, uint64_t *s)
{
    static const uint8_t bytes[6] = { 0xff, 0, 0xff, 0, 0xff, 0 };
    bool restart = random_in(s, 0, 1);
    part_put(b, part_any(b, restart ? RST0 : EOI, restart ? RST0 + 7 : EOI, s), bytes, 2 * (size_t)random_in(s, 1, 3));
}

/* The table is written twice, the first time with other contents. */
static void table_twice(struct blob *b, uint64_t *s)
{
    int marker = random_in(s, 0, 1) ? DHT : DQT;
    const struct jpeg_part *p = part_any(b, marker, marker, s);
    if (!p || p->size < 24)
        return;
    struct blob copy = blob_copy(b->data + p->at, p->size);
    for (size_t i = marker == DHT ? 21 : 5; i < copy.size; i++)
        if (marker == DQT || copy.data[4] >= 0x10)
            copy.data[i] ^= 1;
    blob_splice(b, p->at, 0, copy.data, copy.size);
    blob_free(&copy);
}

/* Coefficients overflow 16 bits; then only libjpeg-turbo's x86 code has the bits of idct.c. */
#ifdef __x86_64__
static void wild_quantisation(struct blob *b, uint64_t *s)
{
    const struct jpeg_part *p = part_any(b, DQT, DQT, s);
    for (size_t i = 5; p && i < p->size; i++)
        if (i % 65 != 4)
            b->data[p->at + i] = (uint8_t)next_random(s);
}
#endif

/* All segments of a marker as one, where the first stood. */
static void join(struct blob *b, int marker)
{
    struct jpeg_part parts[100], *first = NULL;
    int n = jpeg_split(b->data, b->size, parts, 100);
    for (int i = 0; i < n; i++) {
        struct jpeg_part *p = &parts[i];
        if (p->marker != marker || p->size < 4)
            continue;
        if (first && first->size + p->size < 0xffff) { /* what lies between the two goes on after both */
            part_move(b, *p, first->at + first->size);
            blob_splice(b, first->at + first->size, 4, NULL, 0);
            first->size += p->size - 4;
            b->data[first->at + 2] = (uint8_t)((first->size - 2) >> 8);
            b->data[first->at + 3] = (uint8_t)(first->size - 2);
            for (int k = i + 1; k < n; k++)
                parts[k].at -= 4;
        }
        if (!first)
            first = p;
    }
}

static void tables_joined(struct blob *b, uint64_t *s)
{
    (void)s;
    join(b, DHT);
    join(b, DQT);
}

static void quantisation_late(struct blob *b, uint64_t *s)
{
    struct jpeg_part parts[100];
    int n = jpeg_split(b->data, b->size, parts, 100);
    const struct jpeg_part *table = part_any(b, DQT, DQT, s);
    for (int i = 0; table && i < n; i++)
        if (parts[i].marker == SOS) {
            if (table->at < parts[i].at)
                part_move(b, *table, parts[i].at);
            return;
        }
}

static void two_images(struct blob *b, uint64_t *s)
{
    (void)s;
    struct blob copy = blob_copy(b->data, b->size);
    blob_splice(b, b->size, 0, copy.data, copy.size);
    blob_free(&copy);
}

const struct jpeg_change jpeg_oddities[] = {
    { "tables joined", tables_joined },
    { "DQT after SOF", quantisation_late },
    { "two images", two_images },
    { "fill bytes", fill_bytes },
    { "APP segment", app_segment },
    { "Adobe segment", adobe_segment },
    { "JFIF segment", jfif_segment },
    { "no APP segments", no_app_segments },
    { "SOF1", sof1 },
    { "DRI again", restart_interval_again },
    { "tables first", tables_first },
    { "rubbish at end", rubbish_at_end },
    { "rubbish before EOI", rubbish_before_eoi },
    { "stuffing at end", stuffing_at_end },
    { "table twice", table_twice },
#ifdef __x86_64__
    { "wild quantisation", wild_quantisation },
#endif
    { 0 },
};
