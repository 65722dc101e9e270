/* bytes_lz4.c: LZ4 blocks. */
#include <lz4.h>

#include "codec/bytes/byte_codec.h"

static size_t bound(size_t size)
{
    return size && size <= LZ4_MAX_INPUT_SIZE ? (size_t)LZ4_compressBound((int)size) : 0;
}

static size_t encode(const void *data, size_t size, void *out, size_t cap)
{
    if (!size || size > LZ4_MAX_INPUT_SIZE)
        return 0;
    const int room = cap < LZ4_MAX_INPUT_SIZE ? (int)cap : LZ4_MAX_INPUT_SIZE;
    const int n = LZ4_compress_default(data, out, (int)size, room);
    return n > 0 ? (size_t)n : 0;
}

static bool decode(const void *data, size_t size, void *out, size_t out_size)
{
    if (size > LZ4_MAX_INPUT_SIZE || out_size > LZ4_MAX_INPUT_SIZE)
        return false;
    return LZ4_decompress_safe(data, out, (int)size, (int)out_size) == (int)out_size;
}

const dr_byte_codec dr__byte_codec_lz4 = {
    .name = "lz4",
    .summary = "fast compression",
    .library = "liblz4 " LZ4_VERSION_STRING,
    .wire_id = DR__BYTES_LZ4,
    .bound = bound,
    .encode = encode,
    .decode = decode,
};
