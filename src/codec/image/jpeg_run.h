/* jpeg_run.h: libjpeg under control: one decompressor per worker, errors as statuses, input from memory. */
#ifndef DR_CODEC_JPEG_RUN_H
#define DR_CODEC_JPEG_RUN_H

#include <setjmp.h>
#include <stdio.h> /* jpeglib.h needs it */

#include <jpeglib.h>

#include "codec/image/image_state.h"

/* Fields that libjpeg names after the API version it is built for. */
#if JPEG_LIB_VERSION >= 70
#define DR__MIN_DCT_SIZE(cinfo) ((cinfo)->min_DCT_h_scaled_size)
#define DR__DCT_SIZE(component) ((component)->DCT_h_scaled_size)
#else
#define DR__MIN_DCT_SIZE(cinfo) ((cinfo)->min_DCT_scaled_size)
#define DR__DCT_SIZE(component) ((component)->DCT_scaled_size)
#endif

/* Memory of a large image of several scans (jpeg_coefs.c). */
struct dr__jpeg_coefs {
    bool replaced;                  /* these methods of libjpeg's, for this image: */
    struct jpeg_memory_mgr methods; /* as they were */
    jvirt_barray_ptr arrays;
    void *pages;
    size_t bytes;
};

struct dr__jpeg {
    struct jpeg_decompress_struct cinfo;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    jmp_buf escape;   /* back into dr__jpeg_run */
    dr_error *err;    /* of the running call */
    dr_status status; /* what it will return */
    size_t size;      /* of its input */
    bool complete;    /* all pixels are there: an early end of the file is no longer an error */
    int n_images;     /* decoded since the decompressor was made */
    struct dr__jpeg_coefs coefs;
};

/* Around the decoding of an image whose header was read; end is called whether it succeeds or not, after the abort. */
void dr__jpeg_coefs_begin(struct dr__jpeg *jpeg);
void dr__jpeg_coefs_end(struct dr__jpeg *jpeg);

typedef void dr__jpeg_body(struct dr__jpeg *jpeg, void *job);

/* Points the worker's decompressor at data and calls body; whatever libjpeg or body fails with becomes the status. */
dr_status dr__jpeg_run(dr_codec_state *state, const uint8_t *data, size_t size, dr__jpeg_body *body, void *job,
                       dr_error *err);

/* For bodies: ends the call with this error.  Does not return. */
_Noreturn void dr__jpeg_fail(struct dr__jpeg *jpeg, dr_status status, const char *format, ...) DR_PRINTF(3, 4);

/* For bodies: ends the call when a check has failed (it has filled jpeg->err). */
void dr__jpeg_check(struct dr__jpeg *jpeg, dr_status status);

/* What the header says, after dr__jpeg_read_header. */
typedef struct dr__jpeg_facts {
    dr__image_info info;   /* of the decoded image */
    dr__pixel_kind kind;   /* of the rows that libjpeg gives */
    int64_t width, height; /* of those rows: scaled, not turned */
} dr__jpeg_facts;

/* Reads the header, checks it against the options, sets the decoding parameters. */
void dr__jpeg_read_header(struct dr__jpeg *jpeg, const dr__decode_options *options, dr__jpeg_facts *facts);

dr_status dr__jpeg_header(dr_codec_state *state, const uint8_t *data, size_t size, const dr__decode_options *options,
                          dr__image_info *info, dr_error *err);
dr_status dr__jpeg_decode(dr_codec_state *state, const uint8_t *data, size_t size, const dr__decode_options *options,
                          const dr_rect *rect, dr_view *out, dr_error *err);
dr_status dr__jpeg_stream(dr_codec_state *state, const uint8_t *data, size_t size, const dr__decode_options *options,
                          const dr_rect *rect, dr__bands *bands, dr_error *err);

#endif
