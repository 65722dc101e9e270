/* image.c: what the image codecs share: defaults, probing, limits, the state of a worker. */
#include "codec/image/image.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "codec/image/image_state.h"
#include "codec/image/sink.h"
#include "data/desc.h"
#include "kernel/cpu.h"

void dr__decode_defaults(dr__decode_options *options)
{
    *options = (dr__decode_options){
        .mode = DR__MODE_RGB,
        .scale_denom = 1,
        .max_side = 65535,
        .max_pixels = 178956970,
        .max_bytes = (size_t)1 << 30,
    };
}

dr_codec_state *dr__codec_state_new(void)
{
    dr_codec_state *state = dr__alloc_zero(1, sizeof(dr_codec_state));
    if (state) {
        state->kernels = dr__kernels_best();
        state->bmi2 = dr__cpu_bmi2();
    }
    return state;
}

void dr__codec_state_free(dr_codec_state **state)
{
    dr_codec_state *s = *state;
    if (!s)
        return;
    dr__jpeg_free(&s->jpeg);
    dr__baseline_free(&s->baseline);
    dr__reuse_buffer_free(&s->rows);
    dr__reuse_buffer_free(&s->turned);
    dr__reuse_buffer_free(&s->keyed);
    dr__reuse_buffer_free(&s->pointers);
    dr__reuse_buffer_free(&s->table);
    dr__seek_free(&s->seek);
    dr__free(s);
    *state = NULL;
}

dr__seek_points *dr__codec_seek_points(dr_codec_state *state)
{
    return &state->seek;
}

/* Beginnings of files that people have.  Those with a package can be decoded by a build that has it. */
static const struct {
    size_t offset, n;
    const char *magic, *name, *package;
} known[] = {
    { 0, 8, "\x89PNG\r\n\x1a\n", "PNG", "libpng (Debian: libpng-dev)" },
    { 8, 4, "WEBP", "WebP", "libwebp (Debian: libwebp-dev)" },
    { 0, 6, "GIF87a", "GIF", "giflib (Debian: libgif-dev)" },
    { 0, 6, "GIF89a", "GIF", "giflib (Debian: libgif-dev)" },
    { 0, 4, "II*\0", "TIFF", "libtiff (Debian: libtiff-dev)" },
    { 0, 4, "MM\0*", "TIFF", "libtiff (Debian: libtiff-dev)" },
    { 0, 4, "II+\0", "TIFF", "libtiff (Debian: libtiff-dev)" },
    { 0, 4, "MM\0+", "TIFF", "libtiff (Debian: libtiff-dev)" },
    { 0, 12, "\0\0\0\x0cjP  \r\n\x87\n", "JPEG 2000", NULL },
    { 0, 2, "\xff\x0a", "JPEG XL", NULL },
    { 0, 12, "\0\0\0\x0cJXL \r\n\x87\n", "JPEG XL", NULL },
    { 4, 8, "ftypavif", "AVIF", NULL },
    { 4, 8, "ftypheic", "HEIC", NULL },
    { 0, 5, "%PDF-", "PDF", NULL },
    { 0, 2, "PK", "zip", NULL },
    { 0, 2, "\x1f\x8b", "gzip", NULL },
    { 0, 1, "<", "HTML, XML or SVG", NULL },
};

static dr_status unknown_format(const uint8_t *data, size_t size, dr_error *err)
{
    for (size_t i = 0; i < DR_COUNT(known); i++) {
        if (size < known[i].offset + known[i].n || memcmp(data + known[i].offset, known[i].magic, known[i].n) != 0)
            continue;
        if (known[i].package)
            return dr__fail(err, DR_ERR_UNSUPPORTED, "a %s image, but this build has no %s", known[i].name,
                            known[i].package);
        return dr__fail(err, DR_ERR_UNSUPPORTED, "looks like %s, which no image codec reads%s", known[i].name,
                        strcmp(known[i].name, "gzip") == 0 ? " (a .nii.gz volume: decode_volume)" : "");
    }
    char head[3 * 8 + 1] = "";
    for (size_t i = 0; i < DR_MIN(size, 8); i++)
        snprintf(head + 3 * i, 4, "%02x ", data[i]);
    return dr__fail(err, DR_ERR_FORMAT, "not an image that can be read: %zu bytes that begin with %s", size, head);
}

dr_status dr__image_probe(const uint8_t *data, size_t size, const dr_image_codec **codec, dr_error *err)
{
    *codec = NULL;
    if (size == 0)
        return dr__fail(err, DR_ERR_FORMAT, "not an image: 0 bytes");
    for (const dr_image_codec *const *c = dr__image_codecs; *c; c++) {
        if ((*c)->probe(data, size)) {
            *codec = *c;
            return DR_OK;
        }
    }
    return unknown_format(data, size, err);
}

char *dr__image_decoder_text(const dr_image_codec *codec, bool libjpeg, char *text, size_t cap)
{
    if (codec->own && !libjpeg)
        snprintf(text, cap, "drapps %s decoder (%s), %s for the rest", codec->own, dr__cpu_name(dr__cpu_use()),
                 codec->library);
    else
        snprintf(text, cap, "%s", codec->library);
    return text;
}

dr_status dr__check_size(const dr__decode_options *options, const char *format, int64_t width, int64_t height,
                         dr_error *err)
{
    if (width < 1 || height < 1)
        return dr__fail(err, DR_ERR_FORMAT, "%s of %" PRId64 " x %" PRId64 " pixels", format, width, height);
    if (width > options->max_side || height > options->max_side)
        return dr__fail(err, DR_ERR_LIMIT, "%s of %" PRId64 " x %" PRId64 " pixels; max_side is %" PRId64, format,
                        width, height, options->max_side);
    if (width > options->max_pixels / height)
        return dr__fail(err, DR_ERR_LIMIT, "%s of %" PRId64 " x %" PRId64 " pixels; max_pixels is %" PRId64, format,
                        width, height, options->max_pixels);
    return DR_OK;
}

dr_status dr__check_bytes(const dr__decode_options *options, const char *format, double bytes, dr_error *err)
{
    if (bytes <= (double)options->max_bytes)
        return DR_OK;
    return dr__fail(err, DR_ERR_LIMIT, "decoding this %s takes %.0f bytes; max_bytes is %zu", format, bytes,
                    options->max_bytes);
}

void dr__info_decoded(dr__image_info *info, dr__pixel_kind stored, const dr__decode_options *options)
{
    dr__pixel_kind result = dr__pixel_result(stored, options->mode);
    info->channels = dr__pixel_channels(result);
    info->dtype = dr__pixel_dtype(result);
    if (!options->exif_orient || info->orientation < 1)
        info->orientation = 1;
    if (dr__orient_swaps(info->orientation)) {
        int64_t width = info->width;
        info->width = info->height;
        info->height = width;
    }
}

dr_status dr__check_rect(const dr__image_info *info, const dr_rect *rect, dr_error *err)
{
    if (rect->x < 0 || rect->y < 0 || rect->w < 1 || rect->h < 1 || rect->w > info->width - rect->x ||
        rect->h > info->height - rect->y)
        return dr__fail(err, DR_ERR_ARG,
                        "rectangle %" PRId64 ",%" PRId64 " %" PRId64 " x %" PRId64
                        " is not inside the image of %" PRId64 " x %" PRId64 " pixels",
                        rect->x, rect->y, rect->w, rect->h, info->width, info->height);
    return DR_OK;
}

dr_status dr__check_target(const dr__image_info *info, const dr_rect *rect, const dr_view *out, dr_error *err)
{
    const dr_desc *d = &out->desc;
    DR_TRY(dr__check_rect(info, rect, err));
    if (d->layout != DR_LAYOUT_HWC || d->dtype != info->dtype || dr__channels(d) != info->channels)
        return dr__fail(err, DR_ERR_ARG, "output must be %s HWC with %d channels", dr_dtype_name(info->dtype),
                        info->channels);
    return DR_OK;
}
