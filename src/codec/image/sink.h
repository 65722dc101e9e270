/* sink.h: where decoded rows go: converted to the mode asked for, turned by the EXIF orientation, into a view. */
#ifndef DR_CODEC_SINK_H
#define DR_CODEC_SINK_H

#include "codec/image/image_state.h"

/* The stored rectangle that becomes `turned` of the turned image; width and height are those of the stored image. */
dr_rect dr__orient_rect(int orientation, int64_t width, int64_t height, const dr_rect *turned);

/* Orientations 5 to 8 exchange width and height. */
static inline bool dr__orient_swaps(int orientation)
{
    return orientation >= 5;
}

typedef struct dr__sink {
    uint8_t *origin;          /* where pixel (0, 0) of the stored rectangle goes */
    ptrdiff_t step_x, step_y; /* to its right and lower neighbour */
    size_t pixel;             /* bytes of a finished pixel */
    size_t width;             /* of the stored rectangle */
    dr__pixel_convert *convert;
    uint8_t *turned; /* room for a converted row, when rows are not laid down as they are */
} dr__sink;

/* A sink for rows of `width` x `height` stored pixels (what dr__orient_rect gave). */
dr_status dr__sink_open(dr__sink *sink, dr_codec_state *state, dr__pixel_kind kind, const dr__decode_options *options,
                        int orientation, int64_t width, int64_t height, dr_view *out, dr_error *err);

/* May the decoder write finished rows itself, at dr__sink_row_at? */
bool dr__sink_direct(const dr__sink *sink);
uint8_t *dr__sink_row_at(const dr__sink *sink, int64_t y);

/* Takes row y of the stored rectangle. */
void dr__sink_put(const dr__sink *sink, int64_t y, const uint8_t *row);

#endif
