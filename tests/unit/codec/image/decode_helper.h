/* decode_helper.h: decoding into guarded memory, for tests. */
#ifndef DR_TESTS_DECODE_HELPER_H
#define DR_TESTS_DECODE_HELPER_H

#include <stdlib.h>
#include <string.h>

#include "codec/image/image.h"
#include "data/desc.h"
#include "unit/codec/image/make_image.h"

enum { GUARD = 64, GUARD_BYTE = 0xa5 };

struct picture {
    dr__image_info info;
    uint8_t *memory, *pixels; /* GUARD bytes before and after, and after each row */
    size_t stride, row;
    dr_rect rect;
};

static inline void picture_free(struct picture *p)
{
    free(p->memory);
    *p = (struct picture){ 0 };
}

/* Decodes rect (NULL: everything).  On failure nothing is left to free. */
static inline dr_status picture_decode(dr_codec_state *state, const struct blob *b, const dr__decode_options *options,
                                       const dr_rect *rect, struct picture *p, dr_error *err)
{
    const dr_image_codec *codec;
    *p = (struct picture){ 0 };
    DR_TRY(dr__image_probe(b->data, b->size, &codec, err));
    DR_TRY(codec->header(state, b->data, b->size, options, &p->info, err));
    p->rect = rect ? *rect : (dr_rect){ 0, 0, p->info.width, p->info.height };
    p->row = (size_t)p->rect.w * (size_t)p->info.channels * dr_dtype_size(p->info.dtype);
    p->stride = p->row + GUARD;
    size_t total = GUARD + p->stride * (size_t)p->rect.h;
    p->memory = malloc(total);
    if (!p->memory)
        return dr__fail(err, DR_ERR_NOMEM, "test: no memory");
    memset(p->memory, GUARD_BYTE, total);
    p->pixels = p->memory + GUARD;
    dr_view out = { .data = p->pixels,
                    .stride = (ptrdiff_t)p->stride,
                    .window = p->rect,
                    .desc = dr__desc_image(p->info.dtype, p->info.height, p->info.width, p->info.channels) };
    dr_status status = codec->decode(state, b->data, b->size, options, &p->rect, &out, err);
    if (status != DR_OK)
        picture_free(p);
    return status;
}

/* Bands that are laid down in a picture. */
struct band_taker {
    dr__bands bands;
    struct picture *to;
    int64_t y;
    uint8_t touched; /* of the slack: sanitizers see what may not be read */
};

static inline void bands_begin(dr__bands *bands)
{
    ((struct band_taker *)bands)->y = 0;
}

static inline void bands_take(dr__bands *bands, const uint8_t *rows, ptrdiff_t stride, int n)
{
    struct band_taker *t = (struct band_taker *)bands;
    for (int i = 0; i < n; i++, t->y++) {
        memcpy(t->to->pixels + (size_t)t->y * t->to->stride, rows + i * stride, t->to->row);
        for (int k = 0; k < DR__BAND_SLACK; k++)
            t->touched ^= ((const volatile uint8_t *)rows)[i * stride + (ptrdiff_t)t->to->row + k];
    }
}

/* Decodes the rectangle of p again, as bands, into its place; codecs that cannot leave it as it is. */
static inline dr_status picture_stream(dr_codec_state *state, const struct blob *b, const dr__decode_options *options,
                                       struct picture *p, dr_error *err)
{
    const dr_image_codec *codec;
    struct band_taker taker = { .bands = { bands_begin, bands_take }, .to = p, .y = -1 };
    DR_TRY(dr__image_probe(b->data, b->size, &codec, err));
    if (!codec->stream || p->info.orientation != 1)
        return DR_OK;
    memset(p->pixels, GUARD_BYTE, p->stride * (size_t)p->rect.h);
    DR_TRY(codec->stream(state, b->data, b->size, options, &p->rect, &taker.bands, err));
    return taker.y == p->rect.h ? DR_OK : dr__fail(err, DR_ERR_FORMAT, "test: %lld rows came", (long long)taker.y);
}

/* Nothing written outside the rows? */
static inline bool picture_guarded(const struct picture *p)
{
    for (size_t i = 0; i < GUARD; i++)
        if (p->memory[i] != GUARD_BYTE)
            return false;
    for (int64_t y = 0; y < p->rect.h; y++)
        for (size_t i = p->row; i < p->stride; i++)
            if (p->pixels[(size_t)y * p->stride + i] != GUARD_BYTE)
                return false;
    return true;
}

/* Is `part` what lies at its place in `whole`? */
static inline bool picture_matches(const struct picture *part, const struct picture *whole)
{
    size_t pixel = (size_t)whole->info.channels * dr_dtype_size(whole->info.dtype);
    for (int64_t y = 0; y < part->rect.h; y++) {
        const uint8_t *want = whole->pixels + (size_t)(part->rect.y + y) * whole->stride + (size_t)part->rect.x * pixel;
        if (memcmp(part->pixels + (size_t)y * part->stride, want, part->row) != 0)
            return false;
    }
    return true;
}

static inline dr_rect random_rect(uint64_t *seed, int64_t width, int64_t height)
{
    dr_rect r = { .w = random_in(seed, 1, (int)width), .h = random_in(seed, 1, (int)height) };
    if (random_in(seed, 0, 3) == 0) /* narrow ones meet the edge cases of cropping */
        r.w = random_in(seed, 1, (int)(width < 4 ? width : 4));
    if (random_in(seed, 0, 3) == 0)
        r.h = random_in(seed, 1, (int)(height < 4 ? height : 4));
    r.x = random_in(seed, 0, (int)(width - r.w));
    r.y = random_in(seed, 0, (int)(height - r.h));
    return r;
}

#endif
