/* codec_encode.c: arrays to frames. */
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "codec/chain/codec_frame.h"
#include "codec/chain/codec_handle.h"
#include "codec/chain/scratch.h"

static dr_status begin(const dr_codec *codec, const dr_desc *desc, dr__codec_frame *f, dr_error *err)
{
    *f = (dr__codec_frame){ .chain = codec->chain,
                            .desc = *desc,
                            .block_log = dr__chain_block_log(&codec->chain),
                            .dict_id = codec->dict ? dr_codec_dict_id(codec->dict) : 0 };
    f->desc.device = (dr_device){ 0 };
    DR_TRY(dr__codec_desc_bytes(desc, &f->raw_bytes, err));
    return dr__chain_plan_for(&f->chain, desc->dtype, &f->plan, err);
}

dr_status dr_codec_bound(const dr_codec *codec, const dr_desc *desc, size_t *out, dr_error *err)
{
    dr__codec_frame f;
    DR_TRY(begin(codec, desc, &f, err));
    const size_t block = (size_t)1 << f.block_log, elem = f.plan.in[0].size;
    const size_t head = 4 * DR__MAX_STAGES, left = f.raw_bytes % block;
    size_t n = DR__CODEC_FRAME_HEADER_MAX, all;
    if (!dr__mul_size(f.raw_bytes / block, dr__chain_bound(&f.plan, block / elem) + head, &all) ||
        !dr__add_size(n, all, &n) || !dr__add_size(n, left ? dr__chain_bound(&f.plan, left / elem) + head : 0, &n))
        return dr__fail(err, DR_ERR_LIMIT, "codec: the array is too large");
    *out = n;
    return DR_OK;
}

/* The checksum goes over what decoding gives: with a lossy stage, that is found out by decoding. */
static dr_status add_checksum(const dr__codec_frame *f, const dr__block *block, const uint8_t *raw,
                              const uint8_t *encoded, uint64_t *checksum, dr_error *err)
{
    if (f->chain.n_lossy) {
        uint8_t *back = dr__scratch(DR__SCRATCH_RAW, block->sizes[0]);
        if (!back)
            return dr__fail(err, DR_ERR_NOMEM, "codec: no memory for a block of %zu bytes", block->sizes[0]);
        DR_TRY(dr__chain_decode(&f->plan, block, encoded, back, err));
        raw = back;
    }
    *checksum = dr__codec_frame_hash(raw, block->sizes[0], *checksum);
    return DR_OK;
}

static dr_status no_room(dr_error *err)
{
    return dr__fail(err, DR_ERR_LIMIT, "codec: the frame needs more room than it was given");
}

/* One block at `out`.  Its header goes before its bytes, and its size is known after them: where the room is too tight
 * to encode in place, that is done elsewhere. */
static dr_status encode_block(dr__codec_frame *f, const uint8_t *raw, size_t bytes, size_t first, uint8_t *out,
                              size_t cap, uint64_t *checksum, size_t *n_out, dr_error *err)
{
    const size_t n = bytes / f->plan.in[0].size, bound = dr__chain_bound(&f->plan, n);
    const size_t most = dr__codec_frame_block_head(f, f->chain.n);
    const bool in_place = cap >= most + bound;
    uint8_t *to = in_place ? out + most : dr__scratch(DR__SCRATCH_RAW, bound);
    dr__stage_note note = { 0 };
    dr__block block;
    if (!to)
        return dr__fail(err, DR_ERR_NOMEM, "codec: no memory for a block of %zu bytes", bytes);
    DR_TRY(dr__chain_encode(&f->plan, raw, n, first, to, bound, &block, &note, err));
    const size_t head = dr__codec_frame_block_head(f, block.n_stages), size = block.sizes[block.n_stages];
    if (head + size > cap)
        return no_room(err);
    if (to != out + head)
        memmove(out + head, to, size);
    dr__codec_frame_write_block(f, &block, out);
    f->abs_error = DR_MAX(f->abs_error, note.abs_error);
    f->rel_error = DR_MAX(f->rel_error, note.rel_error);
    *n_out = head + size;
    return add_checksum(f, &block, raw, out + head, checksum, err);
}

dr_status dr_codec_encode(const dr_codec *codec, const dr_desc *desc, const void *data, void *out, size_t cap,
                          size_t *n_out, dr_error *err)
{
    dr__codec_frame f;
    uint8_t head[DR__CODEC_FRAME_HEADER_MAX], *to = out;
    uint64_t checksum = 0;
    DR_TRY(begin(codec, desc, &f, err));
    size_t at = dr__codec_frame_write_head(&f, 0, head);
    if (cap < at)
        return dr__fail(err, DR_ERR_LIMIT, "codec: the frame needs more room than the %zu bytes that it was given",
                        cap);
    dr_status status = DR_OK;
    for (size_t raw = 0; raw < f.raw_bytes && status == DR_OK;) {
        const size_t bytes = dr__codec_frame_block_bytes(&f, raw);
        size_t n = 0;
        status = encode_block(&f, (const uint8_t *)data + raw, bytes, raw / f.plan.in[0].size, to + at, cap - at,
                              &checksum, &n, err);
        at += n;
        raw += bytes;
    }
    dr__scratch_done();
    if (status != DR_OK)
        return status;
    memcpy(to, head, dr__codec_frame_write_head(&f, checksum, head));
    *n_out = at;
    return DR_OK;
}
