/* bytes_zstd.c: one Zstandard frame, which says how large its content is. */
#include "codec/bytes/byte_codec.h"
#include "codec/bytes/zstd_state.h"

enum { LEVEL_MIN = -50, LEVEL_DEFAULT = 3, LEVEL_MAX = 22 };

static size_t bound(size_t size)
{
    const size_t n = size ? ZSTD_compressBound(size) : 0;
    return ZSTD_isError(n) ? 0 : n;
}

static size_t encode_at(const void *data, size_t size, void *out, size_t cap, int level)
{
    ZSTD_CCtx *context = size ? dr__zstd_encoder() : NULL;
    if (!context)
        return 0;
    const size_t n = ZSTD_compressCCtx(context, out, cap, data, size, level);
    dr__zstd_encoder_used();
    return ZSTD_isError(n) ? 0 : n;
}

static size_t encode(const void *data, size_t size, void *out, size_t cap)
{
    return encode_at(data, size, out, cap, LEVEL_DEFAULT);
}

static bool decode(const void *data, size_t size, void *out, size_t out_size)
{
    ZSTD_DCtx *context = dr__zstd_decoder();
    return context && ZSTD_decompressDCtx(context, out, out_size, data, size) == out_size;
}

const dr_byte_codec dr__byte_codec_zstd = {
    .name = "zstd",
    .summary = "good compression at many levels; dictionaries for small samples",
    .library = "libzstd " ZSTD_VERSION_STRING,
    .wire_id = DR__BYTES_ZSTD,
    .bound = bound,
    .encode = encode,
    .encode_at = encode_at,
    .min_level = LEVEL_MIN,
    .max_level = LEVEL_MAX,
    .default_level = LEVEL_DEFAULT,
    .decode = decode,
};
