/* audio.h: audio codecs: encoded bytes to samples of sound, whole or a range of frames.
 *
 * The table is empty: this build decodes no audio.  A codec will be one file that ends in a `const dr_audio_codec`, and
 * one row in audio_table.c.  A frame is one value of each channel.
 */
#ifndef DR_CODEC_AUDIO_H
#define DR_CODEC_AUDIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drapps/data.h>

#include "base/error.h"

typedef struct dr__audio_options {
    int64_t max_frames; /* most that a header may declare */
    size_t max_bytes;   /* of decoder working memory and output together */
} dr__audio_options;

typedef struct dr__audio_info {
    int64_t frames;      /* DR_UNKNOWN: only decoding tells */
    int channels;        /* 1 or more */
    int rate_hz;         /* frames per second */
    dr_dtype dtype;      /* that decode gives: DR_I16 or DR_F32 */
    const char *encoded; /* "pcm_s16le", ...: for people */
} dr__audio_info;

typedef struct dr_audio_codec {
    const char *name;
    const char *summary;
    const char *library; /* with its version; NULL: none */

    /* Whether the bytes begin like a file of this codec. */
    bool (*probe)(const uint8_t *data, size_t size);

    /* Reads the facts of a file without decoding it. */
    dr_status (*header)(const uint8_t *data, size_t size, const dr__audio_options *options, dr__audio_info *info,
                        dr_error *err);

    /* Decodes frames first .. first + n - 1 into the dense array `out` (n, channels), whose type is info->dtype.  The
     * result equals the same range of the whole decoded file. */
    dr_status (*decode)(const uint8_t *data, size_t size, const dr__audio_options *options, int64_t first, int64_t n,
                        dr_view *out, dr_error *err);
} dr_audio_codec;

extern const dr_audio_codec *const dr__audio_codecs[]; /* NULL ends it */

#endif
