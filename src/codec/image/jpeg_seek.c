/* jpeg_seek.c: seek points in memory, and packed for keeping.
 *
 *   u8 version  varint total  varint n  u8 components
 *   n times: varint difference of bit, `components` times zigzag varint difference of dc
 *
 * Differences are to the point before; those of the first are to 0.  A varint has 7 bits a byte, low ones first, the
 * top bit set in all bytes but the last.  Components that are 0 in every point are left out.  That makes 6 or 7 bytes a
 * point: two or three for the position, one or two for each predictor.
 */
#include "codec/image/jpeg_seek.h"

#include "base/compiler.h"
#include "base/grow.h"

enum {
    VERSION = 1,
    MOST = 8192 * DR__SEEK_PARTS, /* 65535 lines, 8 in a row of MCUs */
    HEAD_BYTES = 1 + 5 + 5 + 1,
    BIT_BYTES = 10,
    DC_BYTES = 5,
    LEAST_PART = 4, /* MCUs: less is not worth a point */
};

dr__seek_grid dr__seek_grid_of(int64_t mcus_across, int64_t mcu_rows)
{
    dr__seek_grid grid = { .across = mcus_across };
    grid.part = DR_MAX((mcus_across + DR__SEEK_PARTS - 1) / DR__SEEK_PARTS, LEAST_PART);
    grid.parts = (mcus_across + grid.part - 1) / grid.part;
    grid.total = grid.parts * mcu_rows;
    return grid;
}

void dr__seek_free(dr__seek_points *points)
{
    dr__free(points->at);
    *points = (dr__seek_points){ 0 };
}

void dr__seek_clear(dr__seek_points *points)
{
    points->n = points->total = 0;
}

static bool reserve(dr__seek_points *points, uint32_t n)
{
    size_t cap = points->cap;
    dr__seek_point *at = dr__grow(points->at, &cap, n, sizeof *at);
    if (!at)
        return false;
    points->at = at;
    points->cap = (uint32_t)cap;
    return true;
}

bool dr__seek_add(dr__seek_points *points, const dr__seek_point *point)
{
    if (!reserve(points, points->n + 1))
        return false;
    points->at[points->n++] = *point;
    return true;
}

static uint8_t *put_varint(uint8_t *p, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *p++ = (uint8_t)(value | 0x80);
    *p++ = (uint8_t)value;
    return p;
}

/* The number at *p; false where it does not end before `end` or is above `most`. */
static bool get_varint(const uint8_t **p, const uint8_t *end, uint64_t most, uint64_t *value)
{
    uint64_t v = 0;
    for (int shift = 0; shift < 64 && *p < end; shift += 7) {
        uint8_t byte = *(*p)++;
        if (shift == 63 && byte > 1)
            return false;
        v |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            *value = v;
            return v <= most;
        }
    }
    return false;
}

/* Small numbers of either sign as small numbers, and back.  Unsigned throughout: differences may wrap. */
static uint32_t zigzag(uint32_t difference)
{
    return difference << 1 ^ (difference >> 31 ? UINT32_MAX : 0);
}

static uint32_t unzigzag(uint32_t value)
{
    return value >> 1 ^ (value & 1 ? UINT32_MAX : 0);
}

static int components_used(const dr__seek_points *points)
{
    int used = 0;
    for (uint32_t i = 0; i < points->n; i++)
        for (int c = used; c < DR__SEEK_COMPONENTS; c++)
            if (points->at[i].dc[c])
                used = c + 1;
    return used;
}

size_t dr__seek_pack_bound(const dr__seek_points *points)
{
    return HEAD_BYTES + (size_t)points->n * (BIT_BYTES + DR__SEEK_COMPONENTS * DC_BYTES);
}

size_t dr__seek_pack(const dr__seek_points *points, uint8_t *bytes)
{
    int components = components_used(points);
    uint8_t *p = bytes;
    *p++ = VERSION;
    p = put_varint(p, points->total);
    p = put_varint(p, points->n);
    *p++ = (uint8_t)components;
    dr__seek_point last = { 0 };
    for (uint32_t i = 0; i < points->n; i++) {
        const dr__seek_point *at = &points->at[i];
        p = put_varint(p, at->bit - last.bit);
        for (int c = 0; c < components; c++)
            p = put_varint(p, zigzag((uint32_t)at->dc[c] - (uint32_t)last.dc[c]));
        last = *at;
    }
    return (size_t)(p - bytes);
}

static bool unpack_point(const uint8_t **p, const uint8_t *end, int components, dr__seek_point *last)
{
    uint64_t value;
    if (!get_varint(p, end, UINT64_MAX - last->bit, &value) || value == 0)
        return false;
    last->bit += value;
    for (int c = 0; c < components; c++) {
        if (!get_varint(p, end, UINT32_MAX, &value))
            return false;
        last->dc[c] = (int32_t)((uint32_t)last->dc[c] + unzigzag((uint32_t)value));
    }
    return true;
}

static bool unpack_head(const uint8_t **p, const uint8_t *end, uint64_t *total, uint64_t *n)
{
    return *p < end && *(*p)++ == VERSION && get_varint(p, end, MOST, total) && get_varint(p, end, *total, n);
}

uint32_t dr__seek_packed_count(const uint8_t *bytes, size_t size)
{
    uint64_t total, n;
    return unpack_head(&bytes, bytes + size, &total, &n) ? (uint32_t)n : 0;
}

static bool unpack(dr__seek_points *points, const uint8_t *p, const uint8_t *end)
{
    uint64_t total, n;
    if (!unpack_head(&p, end, &total, &n) || p == end || *p > DR__SEEK_COMPONENTS)
        return false;
    int components = *p++;
    if (n > (size_t)(end - p) || !reserve(points, (uint32_t)n)) /* a point has a byte at least */
        return false;
    dr__seek_point last = { 0 };
    for (; points->n < n; points->at[points->n++] = last)
        if (!unpack_point(&p, end, components, &last))
            return false;
    points->total = (uint32_t)total;
    return p == end;
}

bool dr__seek_unpack(dr__seek_points *points, const uint8_t *bytes, size_t size)
{
    dr__seek_clear(points);
    if (unpack(points, bytes, bytes + size))
        return true;
    dr__seek_clear(points);
    return false;
}
