/* image_state.h: what a worker keeps from image to image, and the checks that all image codecs share. */
#ifndef DR_CODEC_IMAGE_STATE_H
#define DR_CODEC_IMAGE_STATE_H

#include "codec/image/image.h"
#include "codec/image/jpeg_seek.h"
#include "codec/image/pixels.h"
#include "codec/image/reuse_buffer.h"
#include "kernel/kernel.h"

struct dr__jpeg;
struct dr__baseline;

struct dr_codec_state {
    struct dr__jpeg *jpeg;         /* libjpeg, made at the first JPEG that needs it */
    struct dr__baseline *baseline; /* the own decoder, made at the first JPEG */
    const dr__kernels *kernels;    /* those of this machine, unless a test sets others */
    bool bmi2;                     /* for entropy decoding */
    dr__reuse_buffer rows;         /* rows (or a whole interlaced image) as the library decodes them */
    dr__reuse_buffer turned;       /* rows in the mode asked for, before they are turned or handed out */
    dr__reuse_buffer keyed;        /* one row to which a transparent colour gave its alpha */
    dr__reuse_buffer pointers;     /* row pointers of an interlaced PNG */
    dr__reuse_buffer table;        /* what the sample values of a PNM become */
    dr__seek_points seek;          /* of the JPEG at hand */
};

void dr__jpeg_free(struct dr__jpeg **jpeg);
void dr__baseline_free(struct dr__baseline **baseline);

/* Is the declared size within max_side and max_pixels?  `format` names the file format in the message. */
dr_status dr__check_size(const dr__decode_options *options, const char *format, int64_t width, int64_t height,
                         dr_error *err);

/* Are `bytes` of working memory and output within max_bytes? */
dr_status dr__check_bytes(const dr__decode_options *options, const char *format, double bytes, dr_error *err);

/* Turns facts of the stored image (width, height, orientation set) into those of the decoded one. */
void dr__info_decoded(dr__image_info *info, dr__pixel_kind stored, const dr__decode_options *options);

/* Does the caller's rectangle lie in the image? */
dr_status dr__check_rect(const dr__image_info *info, const dr_rect *rect, dr_error *err);

/* The same, and is out made for it? */
dr_status dr__check_target(const dr__image_info *info, const dr_rect *rect, const dr_view *out, dr_error *err);

#endif
