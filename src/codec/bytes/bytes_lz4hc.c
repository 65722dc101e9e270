/* bytes_lz4hc.c: LZ4 blocks that took more time to make: smaller, and as fast to decode. */
#include <lz4.h>
#include <lz4hc.h>

#include "codec/bytes/byte_codec.h"

extern const dr_byte_codec dr__byte_codec_lz4;

enum { LEVEL_MIN = 3, LEVEL_DEFAULT = 9, LEVEL_MAX = 12 };

static size_t bound(size_t size)
{
    return dr__byte_codec_lz4.bound(size);
}

static size_t encode_at(const void *data, size_t size, void *out, size_t cap, int level)
{
    if (!size || size > LZ4_MAX_INPUT_SIZE)
        return 0;
    const int room = cap < LZ4_MAX_INPUT_SIZE ? (int)cap : LZ4_MAX_INPUT_SIZE;
    const int n = LZ4_compress_HC(data, out, (int)size, room, level);
    return n > 0 ? (size_t)n : 0;
}

static size_t encode(const void *data, size_t size, void *out, size_t cap)
{
    return encode_at(data, size, out, cap, LEVEL_DEFAULT);
}

static bool decode(const void *data, size_t size, void *out, size_t out_size)
{
    return dr__byte_codec_lz4.decode(data, size, out, out_size);
}

const dr_byte_codec dr__byte_codec_lz4hc = {
    .name = "lz4hc",
    .summary = "LZ4 with a longer search: slow to make, as fast to decode",
    .library = "liblz4 " LZ4_VERSION_STRING,
    .wire_id = DR__BYTES_LZ4HC,
    .bound = bound,
    .encode = encode,
    .encode_at = encode_at,
    .min_level = LEVEL_MIN,
    .max_level = LEVEL_MAX,
    .default_level = LEVEL_DEFAULT,
    .decode = decode,
};
