/* tiny_jpeg.c: one buffer, segment after segment. */
#include "unit/codec/image/tiny_jpeg.h"

#include <string.h>

const uint8_t tiny_table[18] = { 1, 1, [16] = 0, 1 };

struct buffer {
    uint8_t bytes[4096];
    size_t n;
};

static void put(struct buffer *b, const void *bytes, size_t n)
{
    memcpy(b->bytes + b->n, bytes, n);
    b->n += n;
}

static void put_segment(struct buffer *b, uint8_t marker, const uint8_t *bytes, size_t n)
{
    const uint8_t head[] = { 0xff, marker, (uint8_t)((n + 2) >> 8), (uint8_t)(n + 2) };
    put(b, head, 4);
    put(b, bytes, n);
}

static void put_table(struct buffer *b, uint8_t kind, const uint8_t *table)
{
    uint8_t segment[1 + 16 + 256] = { kind };
    size_t n = 0;
    for (int i = 0; i < 16; i++)
        n += table[i];
    memcpy(segment + 1, table, 16 + n);
    put_segment(b, 0xc4, segment, 1 + 16 + n);
}

static void put_frame(struct buffer *b, const struct tiny_jpeg *j)
{
    uint8_t s[15] = { 8,
                      (uint8_t)(j->height >> 8),
                      (uint8_t)j->height,
                      (uint8_t)(j->width >> 8),
                      (uint8_t)j->width,
                      (uint8_t)j->n_components };
    for (int i = 0; i < j->n_components; i++) {
        s[6 + 3 * i] = (uint8_t)(i + 1);
        s[7 + 3 * i] = j->factors[i];
    }
    put_segment(b, 0xc0, s, 6 + 3 * (size_t)j->n_components);
}

static void put_scan(struct buffer *b, int n)
{
    uint8_t s[10] = { (uint8_t)n };
    for (int i = 0; i < n; i++)
        s[1 + 2 * i] = (uint8_t)(i + 1);
    s[1 + 2 * n + 1] = 63;
    put_segment(b, 0xda, s, 4 + 2 * (size_t)n);
}

struct blob tiny_header(const struct tiny_jpeg *j)
{
    struct buffer b = { .n = 0 };
    uint8_t quant[65] = { 0 };
    memset(quant + 1, 1, 64);
    put(&b, "\xff\xd8", 2);
    if (j->extra)
        put(&b, j->extra, j->n_extra);
    put_segment(&b, 0xdb, quant, sizeof quant);
    put_frame(&b, j);
    put_table(&b, 0x00, j->dc ? j->dc : tiny_table);
    put_table(&b, 0x10, j->ac ? j->ac : tiny_table);
    put_scan(&b, j->n_components);
    return blob_copy(b.bytes, b.n);
}
