/* fuzz_image.h: what the image fuzz targets share.
 *
 * Input: five bytes (mode, orientation, scale and a rectangle in 1/256 of the image), then a file.  The file is
 * decoded whole and in rectangles, into memory of exactly the right size.  If both succeed, a rectangle must be
 * what lies at its place in the whole; a decoder that lives on from input to input must agree with a new one.
 */
#ifndef DR_TESTS_FUZZ_IMAGE_H
#define DR_TESTS_FUZZ_IMAGE_H

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/image/image.h"
#include "data/desc.h"

enum { FUZZ_PREFIX = 5, FUZZ_RECTS = 4, FUZZ_COUNTERS = 1024 };

/* The libraries are not instrumented; what they say tells the fuzzer where inside them an input got to. */
#ifdef DR_FUZZ
__attribute__((section("__libfuzzer_extra_counters")))
#endif
static uint8_t fuzz_counters[FUZZ_COUNTERS];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void fuzz_note(const char *text)
{
    uint32_t hash = 2166136261u;
    for (int i = 0; *text && i < 32; text++, i++) /* the rest names values */
        if (!isdigit((unsigned char)*text))
            hash = (hash ^ (uint8_t)*text) * 16777619u;
    fuzz_counters[hash % FUZZ_COUNTERS] = 1;
}

static inline void fuzz_options(const uint8_t *prefix, dr__decode_options *options)
{
    dr__decode_defaults(options);
    options->mode = (dr__color_mode)(prefix[0] & 3);
    options->exif_orient = prefix[0] >> 2 & 1;
    options->scale_denom = 1 << (prefix[0] >> 3 & 3);
    options->max_pixels = 1 << 18;
    options->max_bytes = 32 << 20;
}

/* The rectangle of the prefix, and variants of it where crops go wrong: at the edges of blocks, one pixel wide, at
 * the image's right and lower edge. */
static inline dr_rect fuzz_rect(const uint8_t *prefix, const dr__image_info *info, int variant)
{
    dr_rect r = { .x = info->width * prefix[1] / 256, .y = info->height * prefix[2] / 256 };
    if (variant == 1) {
        r.x &= ~(int64_t)15;
        r.y &= ~(int64_t)15;
    }
    r.w = 1 + (info->width - r.x - 1) * prefix[3] / 255;
    r.h = 1 + (info->height - r.y - 1) * prefix[4] / 255;
    if (variant == 2)
        r = (dr_rect){ r.x & ~(int64_t)7, r.y & ~(int64_t)7, 1, r.h };
    if (variant == 3)
        r = (dr_rect){ info->width - 1, info->height - r.h, 1, r.h };
    return r;
}

struct fuzz_pixels {
    uint8_t *data;
    size_t row;
    dr_rect rect;
    dr_status status;
};

static inline struct fuzz_pixels fuzz_decode(const dr_image_codec *codec, dr_codec_state *state, const uint8_t *data,
                                             size_t size, const dr__decode_options *options, const dr__image_info *info,
                                             dr_rect rect, int fill)
{
    struct fuzz_pixels p = { .rect = rect };
    dr_error err = { 0 };
    p.row = (size_t)rect.w * (size_t)info->channels * dr_dtype_size(info->dtype);
    p.data = malloc(p.row * (size_t)rect.h);
    if (!p.data)
        abort();
    memset(p.data, fill, p.row * (size_t)rect.h);
    dr_view out = { .data = p.data,
                    .stride = (ptrdiff_t)p.row,
                    .window = rect,
                    .desc = dr__desc_image(info->dtype, info->height, info->width, info->channels) };
    p.status = codec->decode(state, data, size, options, &rect, &out, &err);
    if (p.status != DR_OK && (p.status > 0 || err.text[0] == 0))
        abort(); /* a failure says why */
    fuzz_note(err.text);
    return p;
}

static inline void fuzz_compare(const struct fuzz_pixels *part, const struct fuzz_pixels *whole, size_t pixel)
{
    if (part->status != DR_OK || whole->status != DR_OK)
        return;
    for (int64_t y = 0; y < part->rect.h; y++) {
        const uint8_t *want = whole->data + (size_t)(part->rect.y + y) * whole->row + (size_t)part->rect.x * pixel;
        if (memcmp(part->data + (size_t)y * part->row, want, part->row) != 0) {
            fprintf(stderr, "rectangle %lld,%lld %lld x %lld differs in row %lld\n", (long long)part->rect.x,
                    (long long)part->rect.y, (long long)part->rect.w, (long long)part->rect.h, (long long)y);
            abort();
        }
    }
}

static inline int fuzz_codec(const dr_image_codec *codec, const uint8_t *data, size_t size)
{
    static dr_codec_state *warm;
    if (size < FUZZ_PREFIX)
        return 0;
    if (!warm)
        warm = dr__codec_state_new();
    dr__decode_options options;
    dr__image_info info;
    dr_error err = { 0 };
    fuzz_options(data, &options);
    const uint8_t *file = data + FUZZ_PREFIX;
    size -= FUZZ_PREFIX;
    dr_status status = codec->header(warm, file, size, &options, &info, &err);
    fuzz_note(status == DR_OK ? info.stored : err.text);
    if (status != DR_OK)
        return 0;

    size_t pixel = (size_t)info.channels * dr_dtype_size(info.dtype);
    dr_rect all = { 0, 0, info.width, info.height };
    dr_codec_state *fresh = dr__codec_state_new();
    struct fuzz_pixels whole = fuzz_decode(codec, fresh, file, size, &options, &info, all, 0x11);
    for (int variant = 0; variant < FUZZ_RECTS; variant++) {
        dr_rect rect = fuzz_rect(data, &info, variant);
        struct fuzz_pixels part = fuzz_decode(codec, warm, file, size, &options, &info, rect, 0xee);
        fuzz_compare(&part, &whole, pixel);
        free(part.data);
    }
    dr__codec_state_free(&fresh);
    free(whole.data);
    return 0;
}

#endif
