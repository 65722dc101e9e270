/* jpeg_note.c: notes as bytes.
 *
 *   u8 version  u32 when  u64 hash  u64 size  u64 version of the file  u32 scan  u8 orientation
 *   then the segments of the head, each as   0 marker u16 length, bytes   or, for a DHT segment that holds only tables
 *   of annex K,   n, n times the number of a table
 *
 * Little-endian.  The version is another than that of packed seek points, which are kept beside notes.
 */
#include "codec/image/jpeg_note.h"

#include <string.h>
#include <xxhash.h>

#include "base/compiler.h"
#include "base/cursor.h"

enum {
    VERSION = 2,
    HEAD_BYTES = 1 + 4 + 8 + 8 + 8 + 4 + 1,
    SOI = 0xd8,
    DHT = 0xc4,
    N_TABLES = 4,
};

/* As in a DHT segment: class and number, counts of codes by length, symbols.  DC, then AC. */
static const uint8_t dc_luma[] = { 0x00, 0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0,  0, 0,
                                   0,    0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };
static const uint8_t dc_chroma[] = { 0x01, 0, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0,  0, 0,
                                     0,    0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };
static const uint8_t ac_luma[] = {
    0x10, 0,    2,    1,    3,    3,    2,    4,    3,    5,    5,    4,    4,    0,    0,    1,    125,  0x01,
    0x02, 0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13, 0x51, 0x61, 0x07, 0x22, 0x71, 0x14,
    0x32, 0x81, 0x91, 0xa1, 0x08, 0x23, 0x42, 0xb1, 0xc1, 0x15, 0x52, 0xd1, 0xf0, 0x24, 0x33, 0x62, 0x72, 0x82,
    0x09, 0x0a, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x34, 0x35, 0x36, 0x37, 0x38,
    0x39, 0x3a, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4a, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a,
    0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0x83, 0x84,
    0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0xa2, 0xa3, 0xa4,
    0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xc2, 0xc3, 0xc4,
    0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xe1, 0xe2, 0xe3,
    0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa,
};
static const uint8_t ac_chroma[] = {
    0x11, 0,    2,    1,    2,    4,    4,    3,    4,    7,    5,    4,    4,    0,    1,    2,    119,  0x00,
    0x01, 0x02, 0x03, 0x11, 0x04, 0x05, 0x21, 0x31, 0x06, 0x12, 0x41, 0x51, 0x07, 0x61, 0x71, 0x13, 0x22, 0x32,
    0x81, 0x08, 0x14, 0x42, 0x91, 0xa1, 0xb1, 0xc1, 0x09, 0x23, 0x33, 0x52, 0xf0, 0x15, 0x62, 0x72, 0xd1, 0x0a,
    0x16, 0x24, 0x34, 0xe1, 0x25, 0xf1, 0x17, 0x18, 0x19, 0x1a, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x35, 0x36, 0x37,
    0x38, 0x39, 0x3a, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4a, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59,
    0x5a, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0x82,
    0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0xa2,
    0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xc2,
    0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xe2,
    0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa,
};

static const struct {
    const uint8_t *bytes;
    size_t size;
} tables[N_TABLES] = {
    { dc_luma, sizeof dc_luma },
    { dc_chroma, sizeof dc_chroma },
    { ac_luma, sizeof ac_luma },
    { ac_chroma, sizeof ac_chroma },
};

uint64_t dr__jpeg_note_name(const dr__seek_key *content)
{
    const uint64_t facts[] = { content->hash, content->size };
    return XXH3_64bits(facts, sizeof facts);
}

/* --- packing --- */

static uint8_t *put(uint8_t *p, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *p++ = (uint8_t)(value >> 8 * i);
    return p;
}

static int table_at(const uint8_t *data, size_t size)
{
    for (int t = 0; t < N_TABLES; t++)
        if (size >= tables[t].size && !memcmp(data, tables[t].bytes, tables[t].size))
            return t;
    return -1;
}

/* The numbers of the tables that a DHT segment consists of; 0: it has others. */
static int known_tables(const uint8_t *data, size_t size, uint8_t numbers[N_TABLES])
{
    int n = 0;
    while (size > 0) {
        const int t = table_at(data, size);
        if (t < 0 || n == N_TABLES)
            return 0;
        numbers[n++] = (uint8_t)t;
        data += tables[t].size;
        size -= tables[t].size;
    }
    return n;
}

static uint8_t *put_segment(uint8_t *p, int marker, const uint8_t *data, size_t size)
{
    uint8_t numbers[N_TABLES];
    const int n = marker == DHT ? known_tables(data, size, numbers) : 0;
    *p++ = (uint8_t)n;
    if (n) {
        memcpy(p, numbers, (size_t)n);
        return p + n;
    }
    *p++ = (uint8_t)marker;
    p = put(p, size, 2);
    memcpy(p, data, size);
    return p + size;
}

size_t dr__jpeg_note_pack(const dr__jpeg_note *note, uint8_t *bytes)
{
    const dr__jpeg_head *head = &note->head;
    uint8_t *p = put(bytes, VERSION, 1);
    p = put(p, note->when, 4);
    p = put(p, note->content.hash, 8);
    p = put(p, note->content.size, 8);
    p = put(p, note->version, 8);
    p = put(p, head->scan, 4); /* the sizes of files that are noted fit */
    p = put(p, (uint64_t)head->orientation, 1);
    for (size_t at = 2; at + 4 <= head->size;) { /* as dr__jpeg_head_make has put them there */
        const size_t length = (size_t)head->bytes[at + 2] << 8 | head->bytes[at + 3];
        p = put_segment(p, head->bytes[at + 1], head->bytes + at + 4, length - 2);
        at += 2 + length;
    }
    return (size_t)(p - bytes);
}

/* --- unpacking --- */

static bool add(dr__jpeg_head *head, const uint8_t *data, size_t size)
{
    if (size > DR__JPEG_HEAD_MOST - head->size)
        return false;
    memcpy(head->bytes + head->size, data, size);
    head->size += size;
    return true;
}

static bool add_marker(dr__jpeg_head *head, int marker, size_t size)
{
    const uint8_t four[] = { 0xff, (uint8_t)marker, (uint8_t)((size + 2) >> 8), (uint8_t)(size + 2) };
    return add(head, four, sizeof four);
}

static bool add_tables(dr__jpeg_head *head, dr_cursor *c, int n)
{
    const uint8_t *numbers;
    size_t size = 0;
    if (n > N_TABLES || dr__cursor_bytes(c, (size_t)n, &numbers, NULL) != DR_OK)
        return false;
    for (int i = 0; i < n; i++) {
        if (numbers[i] >= N_TABLES)
            return false;
        size += tables[numbers[i]].size;
    }
    if (!add_marker(head, DHT, size))
        return false;
    for (int i = 0; i < n; i++)
        if (!add(head, tables[numbers[i]].bytes, tables[numbers[i]].size))
            return false;
    return true;
}

static bool add_segment(dr__jpeg_head *head, dr_cursor *c)
{
    const uint8_t *n, *four, *data;
    if (dr__cursor_bytes(c, 1, &n, NULL) != DR_OK)
        return false;
    if (*n)
        return add_tables(head, c, *n);
    if (dr__cursor_bytes(c, 3, &four, NULL) != DR_OK)
        return false;
    const size_t size = four[1] | (size_t)four[2] << 8;
    return size <= UINT16_MAX - 2 && dr__cursor_bytes(c, size, &data, NULL) == DR_OK &&
           add_marker(head, four[0], size) && add(head, data, size);
}

bool dr__jpeg_note_unpack(dr__jpeg_note *note, const uint8_t *bytes, size_t size)
{
    dr_cursor c = dr__cursor(bytes, size, "note");
    dr__jpeg_head *head = &note->head;
    const uint8_t *version, *orientation;
    uint32_t scan;
    if (dr__cursor_bytes(&c, 1, &version, NULL) != DR_OK || *version != VERSION ||
        dr__cursor_u32(&c, &note->when, NULL) != DR_OK || dr__cursor_u64(&c, &note->content.hash, NULL) != DR_OK ||
        dr__cursor_u64(&c, &note->content.size, NULL) != DR_OK || dr__cursor_u64(&c, &note->version, NULL) != DR_OK ||
        dr__cursor_u32(&c, &scan, NULL) != DR_OK || dr__cursor_bytes(&c, 1, &orientation, NULL) != DR_OK)
        return false;
    head->scan = scan;
    head->orientation = *orientation;
    head->size = 0;
    if (!add(head, (const uint8_t[]){ 0xff, SOI }, 2))
        return false;
    while (dr__cursor_left(&c))
        if (!add_segment(head, &c))
            return false;
    return head->orientation >= 1 && head->orientation <= 8 && scan <= note->content.size;
}

uint32_t dr__jpeg_note_when(const uint8_t *bytes, size_t size)
{
    if (size < HEAD_BYTES || bytes[0] != VERSION)
        return 0;
    return bytes[1] | (uint32_t)bytes[2] << 8 | (uint32_t)bytes[3] << 16 | (uint32_t)bytes[4] << 24;
}
