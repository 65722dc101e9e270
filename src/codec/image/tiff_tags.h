/* tiff_tags.h: what the tags of a TIFF say of its pixels. */
#ifndef DR_CODEC_IMAGE_TIFF_TAGS_H
#define DR_CODEC_IMAGE_TIFF_TAGS_H

#include <tiffio.h>

#include "codec/image/image_state.h"

enum { DR__TIFF_MAX_KEPT = 4, DR__TIFF_MAX_EXTRA = 3 };

/* The tags, as libtiff understands them. */
typedef struct dr__tiff_tags {
    uint32_t width, height;
    uint16_t bits, samples, format, photometric, compression, planar, fill_order;
    uint16_t n_extra, extra[DR__TIFF_MAX_EXTRA];
    bool extra_said; /* n_extra stands in the file */
} dr__tiff_tags;

/* The decoding of one file. */
typedef struct dr__tiff_job {
    const uint8_t *data;
    size_t size, at;
    const dr__decode_options *options;
    dr_error *err;
    char said[160]; /* libtiff's first complaint */

    dr_codec_state *state;
    TIFF *tiff;
    dr__tiff_tags tags;
    dr__image_info facts;
    dr__pixel_kind kind;
    int kept; /* samples of a pixel that are used, the first ones */
    bool inverted, indexed, premultiplied, ink;
    const uint16_t *map[3]; /* palette; libtiff's */

    bool tiled;
    int64_t chunk_width, chunk_height; /* pixels */
    size_t chunk_bytes, chunk_stride;
    int planes;

    const dr_rect *rect; /* NULL: only the header is asked for */
    dr_view *out;
} dr__tiff_job;

static inline bool dr__tiff_is_raw(const dr__tiff_tags *t)
{
    return t->compression == COMPRESSION_NONE;
}

static inline bool dr__tiff_is_separate(const dr__tiff_tags *t)
{
    return t->planar == PLANARCONFIG_SEPARATE;
}

/* Reads the tags of the first page, and checks that libtiff and Pillow understand them alike. */
dr_status dr__tiff_read_tags(dr__tiff_job *j);

/* Decides by the tags what the pixels become.  DR_ERR_UNSUPPORTED: Pillow's pixels are not known to be the same. */
dr_status dr__tiff_choose_kind(dr__tiff_job *j);

/* The orientation by its tag, else by XMP: 1 to 8. */
int dr__tiff_orientation(const dr__tiff_job *j);

/* The first value of a tag in the first directory, as the file has it; `none`: the tag is missing; -1: it is there
 * twice or is no whole number.  *count (may be NULL) receives the number of its values. */
int64_t dr__tiff_raw_value(const dr__tiff_job *j, uint32_t tag, int64_t none, uint64_t *count);

#endif
