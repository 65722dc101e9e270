/* byte_ranges.h: some ranges of a file's bytes: which ones are asked for, and those that were read. */
#ifndef DR_DATA_BYTE_RANGES_H
#define DR_DATA_BYTE_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DR__MOST_RANGES = 256 };

typedef struct dr__byte_range {
    uint64_t offset, size;
} dr__byte_range;

/* In the order of the file; neither empty, nor touching each other. */
typedef struct dr__byte_ranges {
    int n;
    dr__byte_range at[DR__MOST_RANGES];
} dr__byte_ranges;

/* Adds a range that does not begin before the last one; what lies less than `gap` bytes behind that one is joined to
 * it, with the bytes between.  False: there is no more room. */
bool dr__byte_ranges_add(dr__byte_ranges *ranges, uint64_t offset, uint64_t size, uint64_t gap);

/* Bytes in all ranges together. */
uint64_t dr__byte_ranges_total(const dr__byte_ranges *ranges);

/* One range that was read. */
typedef struct dr__byte_piece {
    uint64_t offset; /* in the file */
    size_t size;
    const uint8_t *data; /* borrowed */
} dr__byte_piece;

/* The piece that has the byte at `offset`; NULL: it was not read. */
const dr__byte_piece *dr__byte_piece_at(const dr__byte_piece *pieces, int n, uint64_t offset);

#endif
