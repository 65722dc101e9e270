/* jpeg_partial.h: a JPEG of which only some bytes are read.
 *
 * With the seek points of a file known, a rectangle needs its header and, of each row of MCUs that the rectangle
 * touches, the bytes from the last point before its first column to the first point after its last.  Rows follow each
 * other in the file, so that one contiguous range holds all of them.  Where points end early, which happens when nobody
 * has decoded the lower rows yet, a rectangle there needs the bytes from the last point to the end of the file, and
 * decoding it adds points.
 *
 *   dr__jpeg_head_make    once, from the whole file: what the decoder needs of the header, without thumbnails and the
 * like dr__jpeg_ranges       from head, points and rectangle: the ranges of the file to read dr__decode_options
 * .partial and .seek: the decoder then gets the head as its data, and the ranges from here
 *
 * The pixels are those of the whole file.  The own decoder reads nothing but the pieces; where they do not suffice, or
 * what is in them is not sound, it fails, and the caller reads the whole file.  libjpeg-turbo never sees a partial
 * file.
 */
#ifndef DR_CODEC_JPEG_PARTIAL_H
#define DR_CODEC_JPEG_PARTIAL_H

#include <drapps/data.h>

#include "codec/image/jpeg_parse.h"
#include "codec/image/jpeg_seek.h"
#include "data/byte_ranges.h"

enum { DR__JPEG_HEAD_MOST = 2048 };

/* A header of a file that the own decoder takes: a JPEG that ends where its entropy-coded data would begin. */
typedef struct dr__jpeg_head {
    uint64_t scan;   /* where that data begins in the file */
    int orientation; /* EXIF, 1 to 8 */
    size_t size;
    uint8_t bytes[DR__JPEG_HEAD_MOST];
} dr__jpeg_head;

/* False: the own decoder does not take this file, or its tables are too many. */
bool dr__jpeg_head_make(const uint8_t *data, size_t size, dr__jpeg_head *head);

/* The frame that such a head describes, places in the file as they are there.  False: it is none. */
bool dr__jpeg_head_parse(const uint8_t *bytes, size_t size, uint64_t scan, int orientation, dr__jpeg_frame *frame);

/* Which bytes of a file of `size` bytes decoding `area` (stored pixels, inside the image) reads besides the head.
 * Ranges that are less than `gap` bytes apart are joined, and more than that where they would be too many; UINT64_MAX:
 * one range.  False: no point is known, or these are not the points of such a file. */
bool dr__jpeg_ranges(const dr__jpeg_frame *frame, const dr__seek_points *points, uint64_t size, const dr_rect *area,
                     uint64_t gap, dr__byte_ranges *ranges);

/* What the decoder gets, in dr__decode_options, together with the seek points of the file.  The data that it is called
 * with is the head's bytes.  Borrows all of it. */
typedef struct dr__jpeg_partial {
    uint64_t size; /* of the whole file */
    uint64_t scan;
    int orientation;
    const dr__byte_piece *pieces;
    int n_pieces;
} dr__jpeg_partial;

#endif
