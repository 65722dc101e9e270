/* bytes_none.c: bytes as they are. */
#include <string.h>

#include "codec/bytes/byte_codec.h"

static size_t bound(size_t size)
{
    return size;
}

static size_t encode(const void *data, size_t size, void *out, size_t cap)
{
    if (size > cap)
        return 0;
    if (size)
        memcpy(out, data, size);
    return size;
}

static bool decode(const void *data, size_t size, void *out, size_t out_size)
{
    return size == out_size && encode(data, size, out, out_size) == size;
}

const dr_byte_codec dr__byte_codec_none = {
    .name = "none",
    .summary = "bytes as they are",
    .wire_id = DR__BYTES_NONE,
    .bound = bound,
    .encode = encode,
    .decode = decode,
};
