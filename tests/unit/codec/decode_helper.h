/* decode_helper.h: decoding into guarded memory, for tests. */
#ifndef DR_TESTS_DECODE_HELPER_H
#define DR_TESTS_DECODE_HELPER_H

#include <stdlib.h>
#include <string.h>

#include "codec/image.h"
#include "data/desc.h"
#include "unit/codec/make_image.h"

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
