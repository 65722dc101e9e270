/* jpeg_seek.h: where the rows of a JPEG begin.
 *
 * Huffman-coded data has no marks, so that the lower half of an image can be reached only through the upper.  What was
 * learnt on the way is a few bytes for each row of MCUs: the position of its first bit, and the DC values that its
 * differences build on.  A decoder that is given them begins at the row it needs and stops at the last column.
 *
 * Points are a cache of facts about one exact sequence of bytes.  The decoder checks that they are plausible and reads
 * nothing outside its buffers whatever they say; that they belong to these bytes is what the store sees to.
 */
#ifndef DR_CODEC_JPEG_SEEK_H
#define DR_CODEC_JPEG_SEEK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DR__SEEK_COMPONENTS = 3 };

/* The first MCU of a row, after a restart marker that may stand before it. */
typedef struct dr__seek_point {
    uint64_t bit; /* from the start of the file, stuffed bytes counted: byte * 8 + bit, 0 the most significant */
    int32_t dc[DR__SEEK_COMPONENTS]; /* predictors; those of absent components are 0 */
} dr__seek_point;

/* Points of MCU rows 0 to n - 1 of one image.  Zeros are an empty one. */
typedef struct dr__seek_points {
    dr__seek_point *at;
    uint32_t n, cap;
    uint32_t rows; /* of MCUs in the image; 0 until a decoder has said so */
} dr__seek_points;

void dr__seek_free(dr__seek_points *points);

/* Forgets the points, keeps the memory. */
void dr__seek_clear(dr__seek_points *points);

/* Adds the next row.  False: out of memory, nothing changed. */
bool dr__seek_add(dr__seek_points *points, const dr__seek_point *point);

/* The points as few bytes (varints of differences): at most dr__seek_pack_bound(points), returns how many. */
size_t dr__seek_pack_bound(const dr__seek_points *points);
size_t dr__seek_pack(const dr__seek_points *points, uint8_t *bytes);

/* The reverse.  False, with points cleared, for bytes that are no packed points, or without memory. */
bool dr__seek_unpack(dr__seek_points *points, const uint8_t *bytes, size_t size);

/* How many points packed bytes say they hold; 0 also for bytes that are none. */
uint32_t dr__seek_packed_count(const uint8_t *bytes, size_t size);

#endif
