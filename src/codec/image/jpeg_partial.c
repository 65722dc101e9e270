/* jpeg_partial.c: heads of files, and the ranges that a rectangle needs. */
#include "codec/image/jpeg_partial.h"

#include <string.h>

#include "base/compiler.h"
#include "codec/image/jpeg_baseline.h"

enum {
    SOI = 0xd8,
    SOS = 0xda,
    APP0 = 0xe0,
    APP14 = 0xee,
    APP15 = 0xef,
    COM = 0xfe,
    JFIF_BYTES = 14,  /* of an APP0 segment: without the thumbnail */
    ADOBE_BYTES = 12, /* of an APP14 segment */
};

/* --- heads --- */

static bool put(dr__jpeg_head *head, int marker, const uint8_t *data, size_t size)
{
    if (DR__JPEG_HEAD_MOST - head->size < 4 + size)
        return false;
    uint8_t *p = head->bytes + head->size;
    p[0] = 0xff;
    p[1] = (uint8_t)marker;
    p[2] = (uint8_t)((size + 2) >> 8);
    p[3] = (uint8_t)(size + 2);
    memcpy(p + 4, data, size);
    head->size += 4 + size;
    return true;
}

/* What decoding needs of a segment; that of most application segments and comments is nothing. */
static bool put_needed(dr__jpeg_head *head, int marker, const uint8_t *data, size_t size)
{
    if (marker == APP0 && size >= JFIF_BYTES && !memcmp(data, "JFIF", 5))
        return put(head, marker, data, JFIF_BYTES);
    if (marker == APP14 && size >= ADOBE_BYTES && !memcmp(data, "Adobe", 5))
        return put(head, marker, data, ADOBE_BYTES);
    if (marker == COM || (marker >= APP0 && marker <= APP15))
        return true;
    return put(head, marker, data, size);
}

bool dr__jpeg_head_make(const uint8_t *data, size_t size, dr__jpeg_head *head)
{
    dr__jpeg_frame frame;
    if (!dr__jpeg_parse(data, size, true, &frame))
        return false;
    *head = (dr__jpeg_head){ .scan = frame.scan, .orientation = frame.orientation, .size = 2, .bytes = { 0xff, SOI } };
    for (size_t at = 2; at < frame.scan;) { /* parsed above, so that every length is right */
        const size_t length = (size_t)data[at + 2] << 8 | data[at + 3];
        if (!put_needed(head, data[at + 1], data + at + 4, length - 2))
            return false;
        at += 2 + length;
    }
    return true;
}

bool dr__jpeg_head_parse(const uint8_t *bytes, size_t size, uint64_t scan, int orientation, dr__jpeg_frame *frame)
{
    if (orientation < 1 || orientation > 8 || !dr__jpeg_parse(bytes, size, false, frame) || frame->scan != size)
        return false;
    frame->scan = scan;
    frame->orientation = orientation;
    return true;
}

/* --- ranges --- */

/* Where the data before a point ends: its first bit may share a byte with bits before it, and that byte may be an FF,
 * to which the stuffed byte behind it belongs.  After the last point: the end of the file. */
static uint64_t end_before(const dr__seek_points *points, int64_t point, uint64_t size)
{
    return point < points->n ? DR_MIN(points->at[point].bit / 8 + 2, size) : size;
}

/* From one point, or the last known before it, to the MCU before `end`. */
static bool add_run(const dr__seek_points *points, const dr__seek_grid *grid, uint64_t size, uint64_t scan,
                    int64_t first, int64_t end, uint64_t gap, dr__byte_ranges *ranges, bool *sound)
{
    const uint64_t from = points->at[DR_MIN(first, (int64_t)points->n - 1)].bit / 8;
    const uint64_t to = end_before(points, dr__seek_point_of(grid, end - 1) + 1, size);
    *sound = from >= scan && from < to;
    return *sound && dr__byte_ranges_add(ranges, from, to - from, gap);
}

/* False: there are too many, or (*sound) these are not the points of such a file. */
static bool collect(const dr__jpeg_frame *f, const dr__seek_points *points, uint64_t size, const dr__mcu_range *r,
                    uint64_t gap, dr__byte_ranges *ranges, bool *sound)
{
    const dr__seek_grid grid = dr__seek_grid_of(f->mcus_across, f->mcu_rows);
    ranges->n = 0;
    for (int64_t row = r->first_row; row < r->end_row; row++) {
        const int64_t base = row * f->mcus_across;
        if (!add_run(points, &grid, size, f->scan, dr__seek_point_of(&grid, base + r->first_column),
                     base + r->end_column, gap, ranges, sound))
            return false;
    }
    if (r->end_row < f->mcu_rows)
        return true;
    const int64_t all = f->mcus_across * f->mcu_rows; /* the last row is read to its end */
    return add_run(points, &grid, size, f->scan, grid.total - 1, all, gap, ranges, sound);
}

bool dr__jpeg_ranges(const dr__jpeg_frame *frame, const dr__seek_points *points, uint64_t size, const dr_rect *area,
                     uint64_t gap, dr__byte_ranges *ranges)
{
    const dr__mcu_range r = dr__lines_range(frame, area);
    const dr__seek_grid grid = dr__seek_grid_of(frame->mcus_across, frame->mcu_rows);
    bool sound = points->n > 0 && points->total == grid.total;
    if (!sound || collect(frame, points, size, &r, gap, ranges, &sound))
        return sound;
    uint64_t low = gap, high = size; /* too many with `low`, one with `high`: the least gap that is large enough */
    while (sound && high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        if (collect(frame, points, size, &r, middle, ranges, &sound))
            high = middle;
        else
            low = middle;
    }
    return sound && collect(frame, points, size, &r, high, ranges, &sound);
}
