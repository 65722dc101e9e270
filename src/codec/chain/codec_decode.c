/* codec_decode.c: frames to arrays. */
#include "codec/chain/codec_frame.h"
#include "codec/chain/scratch.h"

dr_status dr_codec_peek(const void *frame, size_t size, dr_codec_frame *out, dr_error *err)
{
    dr__codec_frame f;
    DR_TRY(dr__codec_frame_read(frame, size, &f, err));
    *out = (dr_codec_frame){ .desc = f.desc,
                             .raw_bytes = f.raw_bytes,
                             .dict_id = f.dict_id,
                             .lossless = !f.chain.n_lossy,
                             .max_abs_error = f.abs_error,
                             .max_rel_error = f.rel_error };
    dr__chain_text(&f.chain, out->spec);
    return DR_OK;
}

static dr_status check_dict(const dr__codec_frame *f, const dr_codec_dict *dict, dr_error *err)
{
    if (!f->dict_id)
        return DR_OK;
    if (!dict)
        return dr__fail(err, DR_ERR_ARG, "frame: it needs the dictionary with number %u", f->dict_id);
    if (dr_codec_dict_id(dict) != f->dict_id)
        return dr__fail(err, DR_ERR_ARG, "frame: it needs the dictionary with number %u, got that with number %u",
                        f->dict_id, dr_codec_dict_id(dict));
    return DR_OK;
}

static dr_status decode_blocks(const dr__codec_frame *f, const uint8_t *at, const uint8_t *end, uint8_t *out,
                               uint64_t *checksum, dr_error *err)
{
    for (size_t raw = 0; raw < f->raw_bytes;) {
        const size_t bytes = dr__codec_frame_block_bytes(f, raw);
        dr__block block;
        if (!dr__codec_frame_read_block(f, &at, end, bytes, &block)) /* only where the caller changes it meanwhile */
            return dr__fail(err, DR_ERR_FORMAT, "frame: the block at byte %zu of the array is damaged", raw);
        DR_TRY(dr__chain_decode(&f->plan, &block, at, out + raw, err));
        *checksum = dr__codec_frame_hash(out + raw, bytes, *checksum);
        at += block.sizes[block.n_stages];
        raw += bytes;
    }
    return DR_OK;
}

dr_status dr_codec_decode(const void *frame, size_t size, const dr_codec_dict *dict, void *out, size_t out_size,
                          dr_error *err)
{
    const uint8_t *start = frame;
    dr__codec_frame f;
    uint64_t checksum = 0;
    DR_TRY(dr__codec_frame_read(frame, size, &f, err));
    if (f.raw_bytes != out_size)
        return dr__fail(err, DR_ERR_ARG, "frame: out_size must be %zu, the size of the array, got %zu", f.raw_bytes,
                        out_size);
    DR_TRY(check_dict(&f, dict, err));
    f.chain.decoder_dict = f.dict_id ? dict : NULL;
    f.plan.chain = &f.chain;
    const dr_status status = decode_blocks(&f, start + f.head_bytes, start + size, out, &checksum, err);
    dr__scratch_done();
    if (status != DR_OK)
        return status;
    if (dr__codec_frame_hash(frame, f.head_bytes - 8, checksum) != f.checksum)
        return dr__fail(err, DR_ERR_FORMAT, "frame: the checksum is wrong: it is damaged");
    return DR_OK;
}
