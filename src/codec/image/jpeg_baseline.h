/* jpeg_baseline.h: the own JPEG decoder: a rectangle of a baseline image as rows.
 *
 *   jpeg_parse    header to dr__jpeg_frame
 *   jpeg_huffman  code lengths to lookup tables
 *   jpeg_entropy  bits to coefficients
 *   jpeg_baseline which MCUs are read and which are transformed; seek points
 *   jpeg_lines    transformed samples to pixels: upsampling, colour
 *   jpeg_partial  which bytes of the file a rectangle needs
 *
 * The pixels are those of libjpeg-turbo (JDCT_ISLOW, fancy upsampling), bit for bit.
 */
#ifndef DR_CODEC_JPEG_BASELINE_H
#define DR_CODEC_JPEG_BASELINE_H

#include "codec/image/jpeg_entropy.h"
#include "codec/image/jpeg_partial.h"
#include "codec/image/sink.h"
#include "kernel/kernel.h"

/* MCUs that are entropy-decoded, then transformed: their coefficients stay in the first cache. */
enum { DR__CHUNK = 4 };

/* Where finished rows go: a sink, or bands and the conversion (NULL: none) that they need. */
typedef struct dr__rows_out {
    const dr__sink *sink;
    dr__bands *bands;
    dr__pixel_convert *convert;
    size_t pixel; /* bytes of a pixel of the bands */
} dr__rows_out;

/* The samples of one component in the MCU row at hand.  at[-stride], if the image has components at half height, is
 * the line above; there is room for one more below. */
typedef struct dr__plane {
    uint8_t *at; /* first line, first column that is kept */
    ptrdiff_t stride;
    int64_t x; /* that column, in the component's samples */
} dr__plane;

/* From samples to rows of pixels. */
typedef struct dr__lines {
    const dr__jpeg_frame *frame;
    const dr__kernels *k;
    dr_rect area; /* in pixels */
    bool context; /* some component is at half height: a row needs the lines above or below */
    dr__plane plane[DR__JPEG_CHANNELS];
    size_t plane_width[DR__JPEG_CHANNELS]; /* samples kept */
    uint8_t *wide[DR__JPEG_CHANNELS];      /* a line after upsampling */
    uint8_t *row;                          /* one row before conversion */
    uint8_t *band;                         /* rows of one MCU row */
    ptrdiff_t band_stride;
    int64_t next; /* row of the image that comes next */
    dr__rows_out out;
} dr__lines;

/* The MCUs that the area needs: columns and rows [first, end). */
typedef struct dr__mcu_range {
    int64_t first_column, end_column, first_row, end_row;
} dr__mcu_range;

dr__mcu_range dr__lines_range(const dr__jpeg_frame *frame, const dr_rect *area);

/* Lays the planes and rows into memory that `warm` keeps.  False: out of memory. */
bool dr__lines_open(dr__lines *lines, const dr__mcu_range *range, dr__reuse_buffer *warm);

/* MCU row r is transformed: gives out the rows that can be made, and prepares for the next. */
void dr__lines_emit(dr__lines *lines, int64_t r);

/* What header() says of an image that the own decoder takes.  *taken false: not this one. */
dr_status dr__baseline_header(dr_codec_state *state, const uint8_t *data, size_t size,
                              const dr__decode_options *options, dr__image_info *info, bool *taken, dr_error *err);

/* As dr_image_codec's decode and stream (out or bands is NULL).  *taken false: libjpeg has to do it, from the start:
 * the image is of another kind, or its data is not sound. */
dr_status dr__baseline_decode(dr_codec_state *state, const uint8_t *data, size_t size,
                              const dr__decode_options *options, const dr_rect *rect, dr_view *out, dr__bands *bands,
                              bool *taken, dr_error *err);

#endif
