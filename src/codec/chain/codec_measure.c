/* codec_measure.c: how fast a codec is on an array, and how small it makes it. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "codec/chain/codec_handle.h"

typedef struct trial {
    const dr_codec *codec;
    const dr_desc *desc;
    const void *data;
    uint8_t *frame, *back;
    size_t raw_bytes, cap, frame_bytes;
} trial;

static dr_status encode(trial *t, dr_error *err)
{
    return dr_codec_encode(t->codec, t->desc, t->data, t->frame, t->cap, &t->frame_bytes, err);
}

static dr_status decode(trial *t, dr_error *err)
{
    return dr_codec_decode(t->frame, t->frame_bytes, t->codec->dict, t->back, t->raw_bytes, err);
}

/* The least time of one call, in ns, of as many as begin within the budget. */
static dr_status fastest(dr_status (*run)(trial *, dr_error *), trial *t, uint64_t budget_ns, double *best,
                         dr_error *err)
{
    const uint64_t begin = dr__now_ns();
    *best = 0;
    for (uint64_t now = begin;;) {
        DR_TRY(run(t, err));
        const uint64_t end = dr__now_ns();
        const double ns = end > now ? (double)(end - now) : 1;
        *best = *best == 0 || ns < *best ? ns : *best;
        now = end;
        if (now - begin >= budget_ns)
            return DR_OK;
    }
}

dr_status dr_codec_measure(const dr_codec *codec, const dr_desc *desc, const void *data, uint64_t budget_ns,
                           dr_codec_speed *out, dr_error *err)
{
    dr_codec_frame facts;
    trial t = { .codec = codec, .desc = desc, .data = data };
    double encode_ns = 0, decode_ns = 0;
    DR_TRY(dr_codec_bound(codec, desc, &t.cap, err));
    t.frame = dr__alloc(t.cap);
    dr_status status = t.frame ? fastest(encode, &t, budget_ns / 2, &encode_ns, err)
                               : dr__fail(err, DR_ERR_NOMEM, "codec: no memory for %zu bytes", t.cap);
    if (status == DR_OK)
        status = dr_codec_peek(t.frame, t.frame_bytes, &facts, err);
    if (status == DR_OK) {
        t.raw_bytes = (size_t)facts.raw_bytes;
        t.back = dr__alloc(t.raw_bytes ? t.raw_bytes : 1);
        status = t.back ? fastest(decode, &t, budget_ns / 2, &decode_ns, err)
                        : dr__fail(err, DR_ERR_NOMEM, "codec: no memory for %zu bytes", t.raw_bytes);
    }
    if (status == DR_OK)
        *out = (dr_codec_speed){ .encode_bytes_per_s = (double)t.raw_bytes / encode_ns * 1e9,
                                 .decode_bytes_per_s = (double)t.raw_bytes / decode_ns * 1e9,
                                 .ratio = (double)t.raw_bytes / (double)t.frame_bytes,
                                 .measured = true };
    dr__free(t.frame);
    dr__free(t.back);
    return status;
}
