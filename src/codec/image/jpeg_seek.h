/* jpeg_seek.h: where the parts of a JPEG begin.
 *
 * Huffman-coded data has no marks, so that the lower half of an image can be reached only through the upper, and the
 * right half of a row only through the left.  What was learnt on the way is a few bytes for each point: the position of
 * an MCU's first bit, and the DC values that its differences build on.  A decoder that is given points begins each row
 * shortly before the first column it needs and stops at the last.
 *
 * Each row of MCUs has points at its beginning and at each further part of its width: DR__SEEK_PARTS to a row, or
 * fewer in narrow images.  More points save less and less: for random crops of training, four parts leave about a ninth
 * less to be read than the beginnings of rows alone, eight a sixth less.
 *
 * Points are a cache of facts about one exact sequence of bytes.  The decoder checks that they are plausible and reads
 * nothing outside its buffers whatever they say; that they belong to these bytes is what the store sees to, and that
 * they are true: it takes them from decoders of this process, and from files that this user has written.
 */
#ifndef DR_CODEC_JPEG_SEEK_H
#define DR_CODEC_JPEG_SEEK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DR__SEEK_COMPONENTS = 3, DR__SEEK_PARTS = 4 };

/* An MCU, after a restart marker that may stand before it. */
typedef struct dr__seek_point {
    uint64_t bit; /* from the start of the file, stuffed bytes counted: byte * 8 + bit, 0 the most significant */
    int32_t dc[DR__SEEK_COMPONENTS]; /* predictors; those of absent components are 0 */
} dr__seek_point;

/* The first n points of one image, row after row.  Zeros are an empty one. */
typedef struct dr__seek_points {
    dr__seek_point *at;
    uint32_t n, cap;
    uint32_t total; /* points of the image when all are known; 0 until a decoder has said so */
} dr__seek_points;

/* Where the points of an image lie among its MCUs. */
typedef struct dr__seek_grid {
    int64_t across; /* MCUs of a row */
    int64_t part;   /* MCUs from one point of a row to the next */
    int64_t parts;  /* points of a row */
    int64_t total;  /* points of the image */
} dr__seek_grid;

dr__seek_grid dr__seek_grid_of(int64_t mcus_across, int64_t mcu_rows);

/* The last point at or before an MCU, and the MCU of a point.  One past the last MCU gives one past the last point. */
static inline int64_t dr__seek_point_of(const dr__seek_grid *grid, int64_t mcu)
{
    return mcu / grid->across * grid->parts + mcu % grid->across / grid->part;
}

static inline int64_t dr__seek_mcu_of(const dr__seek_grid *grid, int64_t point)
{
    return point / grid->parts * grid->across + point % grid->parts * grid->part;
}

void dr__seek_free(dr__seek_points *points);

/* Forgets the points, keeps the memory. */
void dr__seek_clear(dr__seek_points *points);

/* Adds the next point.  False: out of memory, nothing changed. */
bool dr__seek_add(dr__seek_points *points, const dr__seek_point *point);

/* The points as few bytes (varints of differences): at most dr__seek_pack_bound(points), returns how many. */
size_t dr__seek_pack_bound(const dr__seek_points *points);
size_t dr__seek_pack(const dr__seek_points *points, uint8_t *bytes);

/* The reverse.  False, with points cleared, for bytes that are no packed points, or without memory. */
bool dr__seek_unpack(dr__seek_points *points, const uint8_t *bytes, size_t size);

/* How many points packed bytes say they hold; 0 also for bytes that are none. */
uint32_t dr__seek_packed_count(const uint8_t *bytes, size_t size);

#endif
