/* file_zstd.c: .zst files: frames with the size of their content and a checksum, as the program zstd writes them. */
#include <zstd.h>

#include "base/error.h"
#include "codec/bytes/byte_codec.h"
#include "codec/bytes/zstd_state.h"
#include "codec/chain/codec_dict.h"
#include "codec/chain/codec_files.h"

enum { WINDOW_LOG_MAX = 27 }; /* as the program: 128 MiB */

static bool is_file(const uint8_t *data, size_t size)
{
    if (size < 4)
        return false;
    const uint32_t magic = data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24;
    return magic == ZSTD_MAGICNUMBER || (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

static dr_status compress(const void *dict, int level, const uint8_t *data, size_t size, dr__file_out *out,
                          dr_error *err)
{
    DR_TRY(dr__file_room(out, ZSTD_compressBound(size), err));
    size_t n;
    if (dict) {
        n = dr__zstd_dict_encode(dict, data, size, out->data, out->cap);
    } else {
        ZSTD_CCtx *context = dr__zstd_encoder();
        if (!context)
            return dr__fail(err, DR_ERR_NOMEM, "zstd: no memory");
        ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level);
        ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
        n = ZSTD_compress2(context, out->data, out->cap, data, size);
        ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters);
        dr__zstd_encoder_used();
        n = ZSTD_isError(n) ? 0 : n;
    }
    out->n = n;
    return n ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "zstd: no memory to compress %zu bytes", size);
}

/* Content is made piece by piece, so that a wrong size in the header makes nobody allocate it. */
static dr_status stream(ZSTD_DCtx *context, const uint8_t *data, size_t size, dr__file_out *out, size_t *taken,
                        dr_error *err)
{
    ZSTD_inBuffer in = { data, size, 0 };
    for (size_t left = 1; left;) {
        const unsigned long long told = ZSTD_getFrameContentSize(data, size);
        const bool is_told = told != ZSTD_CONTENTSIZE_UNKNOWN && told != ZSTD_CONTENTSIZE_ERROR;
        const size_t most = size > SIZE_MAX / 64 ? SIZE_MAX : size * 64;
        size_t want = out->n == out->cap ? ZSTD_DStreamOutSize() : 0;
        if (is_told && told <= most && !in.pos && told <= out->max - out->n)
            want = (size_t)told;
        const size_t room = out->max - out->n;
        if (room)
            DR_TRY(dr__file_room(out, want < room ? want : room, err));
        ZSTD_outBuffer to = { out->data + out->n, out->cap - out->n, 0 };
        const size_t before = in.pos;
        left = ZSTD_decompressStream(context, &to, &in);
        if (ZSTD_isError(left))
            return dr__fail(err, DR_ERR_FORMAT, "zstd: %s", ZSTD_getErrorName(left));
        out->n += to.pos;
        if (left && !to.pos && in.pos == before && out->n == out->max)
            return dr__file_too_large(out, err);
        if (left && in.pos == size && out->n < out->cap)
            return dr__fail(err, DR_ERR_FORMAT, "zstd: the file is cut off");
    }
    *taken = in.pos;
    return DR_OK;
}

static dr_status decompress(const void *dict, const uint8_t *data, size_t size, dr__file_out *out, size_t *taken,
                            dr_error *err)
{
    ZSTD_DCtx *context = dr__zstd_decoder();
    if (!context)
        return dr__fail(err, DR_ERR_NOMEM, "zstd: no memory");
    ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
    if (dict)
        ZSTD_DCtx_refDDict(context, dr__codec_dict_prepared(dict));
    const dr_status status = stream(context, data, size, out, taken, err);
    ZSTD_DCtx_reset(context, ZSTD_reset_session_and_parameters);
    return status;
}

const dr__codec_file dr__file_zstd = {
    .extension = ".zst",
    .wire_id = DR__BYTES_ZSTD,
    .is_file = is_file,
    .compress = compress,
    .decompress = decompress,
};
