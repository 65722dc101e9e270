/* image.h: image codecs: encoded bytes to pixels, whole or a rectangle of them.
 *
 * A codec is one file that ends in a `const dr_image_codec`, and one row in image_table.c; its file name extensions are
 * rows of codec/file_types.h.  header() reads facts without decoding.  decode() gives the pixels of a rectangle, bit
 * for bit those of the whole decoded image, and does as little of the rest as it can.
 */
#ifndef DR_CODEC_IMAGE_H
#define DR_CODEC_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drapps/data.h>

#include "base/error.h"

typedef enum dr__color_mode {
    DR__MODE_RGB = 0,       /* 3 x uint8, as Pillow's convert("RGB") */
    DR__MODE_GRAY = 1,      /* 1 x uint8, as Pillow's convert("L") */
    DR__MODE_RGBA = 2,      /* 4 x uint8, as Pillow's convert("RGBA"): alpha kept, opaque where there is none */
    DR__MODE_UNCHANGED = 3, /* channels and depth as stored: uint16 for 16-bit files, palettes expanded (with alpha if
                             * they have it), fewer than 8 bits scaled to 8, CMYK with 255 as full ink */
} dr__color_mode;

typedef struct dr__decode_options {
    dr__color_mode mode;
    bool exif_orient; /* turn by the EXIF orientation; off by default, as PIL */
    int scale_denom;  /* 1 exact; 2, 4, 8: DCT-scaled JPEG (fast_decode), other codecs ignore it */
    int64_t max_side; /* limits on what a header may declare, checked before anything is allocated */
    int64_t max_pixels;
    size_t max_bytes;             /* of decoder working memory and output together */
    size_t bleed;                 /* unused bytes before and after each row of the output: a decoder that makes a few
                                     columns more than asked for may write them there instead of copying rows; 0 by default */
    bool libjpeg;                 /* decode every JPEG by libjpeg-turbo */
    struct dr__seek_points *seek; /* in and out: what is known of where the rows of this JPEG begin (jpeg_seek.h); rows
                                     that are passed for the first time are added.  NULL: nothing is used or kept */
    const struct dr__jpeg_partial *partial; /* the data is the head of a JPEG of which these ranges are there
                                               (jpeg_partial.h); seek has its points.  NULL: a whole file */
} dr__decode_options;

/* Fills the defaults: RGB, exact, max_side 65535, max_pixels 178956970 (Pillow's error limit), max_bytes 1 GiB. */
void dr__decode_defaults(dr__decode_options *options);

typedef struct dr__image_info {
    int64_t width, height; /* of the pixels that decode gives: after EXIF turning and scaling, if asked for */
    int channels;          /* that decode gives in the mode asked for */
    dr_dtype dtype;        /* likewise: DR_U8 or DR_U16 */
    int orientation;       /* EXIF, 1..8; 1 when absent or not asked for */
    int bits;              /* per channel, as stored */
    const char *stored;    /* "YCbCr 4:2:0", "gray", "palette", ...: for people */
    bool progressive;
    bool seekable;       /* decode can use and add seek points */
    const char *decoder; /* of a JPEG: "drapps", or the library's name with its version */
} dr__image_info;

/* Takes the rows of a rectangle from the top, a few at a time, while they are in the cache. */
typedef struct dr__bands {
    /* The first row comes next.  Called once before any row, and again if decoding has to start over. */
    void (*begin)(struct dr__bands *bands);

    /* The next n rows, `stride` bytes apart; borrowed for the call.  DR__BAND_SLACK bytes after the end of each row may
     * be read. */
    void (*take)(struct dr__bands *bands, const uint8_t *rows, ptrdiff_t stride, int n);
} dr__bands;

enum { DR__BAND_SLACK = 1024 };

/* Reusable decoders of one worker thread: libjpeg's structures and buffers stay warm from image to image. */
typedef struct dr_codec_state dr_codec_state;
dr_codec_state *dr__codec_state_new(void); /* NULL: out of memory */
void dr__codec_state_free(dr_codec_state **state);

/* Room for the seek points of the image at hand, kept from image to image. */
struct dr__seek_points *dr__codec_seek_points(dr_codec_state *state);

typedef struct dr_image_codec {
    const char *name;
    const char *summary;
    const char *library; /* "libjpeg-turbo 2.1.5": what decodes */
    const char *own;     /* "baseline": files that drapps decodes by itself; NULL: none */

    bool (*probe)(const uint8_t *data, size_t size);
    dr_status (*header)(dr_codec_state *state, const uint8_t *data, size_t size, const dr__decode_options *options,
                        dr__image_info *info, dr_error *err);

    /* Decodes the rectangle `rect` (inside the image that header described) into out: out->desc and out->window are
     * set by the caller, out->window == *rect, rows out->stride apart.  Damaged data is an error, as it is for PIL
     * with its defaults (LOAD_TRUNCATED_IMAGES off): a truncated file is one, while entropy-coded data that libjpeg
     * only warns about is decoded as libjpeg does.  Data is checked as far as it is read: a rectangle above the place
     * where a file ends early may succeed although decoding everything fails. */
    dr_status (*decode)(dr_codec_state *state, const uint8_t *data, size_t size, const dr__decode_options *options,
                        const dr_rect *rect, dr_view *out, dr_error *err);

    /* Optional: as decode, into bands, rows in the mode asked for.  Only for images that are not turned. */
    dr_status (*stream)(dr_codec_state *state, const uint8_t *data, size_t size, const dr__decode_options *options,
                        const dr_rect *rect, dr__bands *bands, dr_error *err);

    /* Optional: work units (about ns) to decode rect of an image of `size` bytes. */
    double (*cost)(const dr__image_info *info, size_t size, const dr_rect *rect);
} dr_image_codec;

extern const dr_image_codec *const dr__image_codecs[]; /* NULL ends it */
extern const dr_image_codec dr__codec_jpeg;            /* the one that every build has */

/* What decodes, for people: "drapps baseline decoder (avx2), libjpeg-turbo 2.1.5 for the rest".  At most cap bytes with
 * the 0 at the end; returns text. */
char *dr__image_decoder_text(const dr_image_codec *codec, bool libjpeg, char *text, size_t cap);

/* The codec that these bytes begin like, or an error that says what they look like. */
dr_status dr__image_probe(const uint8_t *data, size_t size, const dr_image_codec **codec, dr_error *err);

#endif
