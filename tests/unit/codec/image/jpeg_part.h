/* jpeg_part.h: a JPEG file taken apart at its markers, and put together otherwise.
 *
 * Works on any bytes, so that a fuzzer can use it on what earlier changes have left.
 */
#ifndef DR_TESTS_JPEG_PART_H
#define DR_TESTS_JPEG_PART_H

#include "unit/codec/image/blob.h"

enum { SOF0 = 0xc0, DHT = 0xc4, RST0 = 0xd0, SOI = 0xd8, EOI, SOS, DQT, DNL, DRI, APP0 = 0xe0 };

/* A marker with its segment, or (marker 0) the bytes between two markers: entropy-coded data, or rubbish. */
struct jpeg_part {
    int marker; /* 0xC0 to 0xFE */
    size_t at, size;
};

/* The parts of these bytes in their order, at most `max`; together they are all of them if max is enough. */
int jpeg_split(const uint8_t *data, size_t size, struct jpeg_part *parts, int max);

/* Replaces `remove` bytes at `at` by n others. */
void blob_splice(struct blob *b, size_t at, size_t remove, const uint8_t *bytes, size_t n);

/* One part by chance: with a marker from lo to hi; of entropy-coded data of at least `least` bytes; of all.  Then the
 * first frame header.  NULL: there is none.  Valid until the next call. */
const struct jpeg_part *part_any(const struct blob *b, int lo, int hi, uint64_t *seed);
const struct jpeg_part *part_scan(const struct blob *b, size_t least, uint64_t *seed);
struct jpeg_part part_of_all(const struct blob *b, uint64_t *seed); /* empty where there is none */
const struct jpeg_part *part_frame(const struct blob *b);

/* Puts bytes in before a part; does nothing for NULL. */
void part_put(struct blob *b, const struct jpeg_part *before, const uint8_t *bytes, size_t n);

/* Takes a part out and puts it in before what is at `to`. */
void part_move(struct blob *b, struct jpeg_part from, size_t to);

#endif
