/* bytes_snappy.c: Snappy blocks. */
#include <snappy-c.h>

#include "codec/bytes/byte_codec.h"
#include "codec/codec_config.h"

#include <string.h>

#include "base/alloc.h"

#define MOST ((size_t)UINT32_MAX) /* the format has the size in 32 bits */

static size_t bound(size_t size)
{
    return size && size <= MOST ? snappy_max_compressed_length(size) : 0;
}

/* The library writes only where there is room for the worst case. */
static size_t encode(const void *data, size_t size, void *out, size_t cap)
{
    const size_t worst = bound(size);
    if (!worst)
        return 0;
    char *room = cap >= worst ? out : dr__alloc(worst);
    size_t n = worst;
    if (!room || snappy_compress(data, size, room, &n) != SNAPPY_OK || n > cap)
        n = 0;
    if (room != out) {
        if (n)
            memcpy(out, room, n);
        dr__free(room);
    }
    return n;
}

static bool decode(const void *data, size_t size, void *out, size_t out_size)
{
    size_t n;
    return snappy_uncompressed_length(data, size, &n) == SNAPPY_OK && n == out_size &&
           snappy_uncompress(data, size, out, &n) == SNAPPY_OK && n == out_size;
}

const dr_byte_codec dr__byte_codec_snappy = {
    .name = "snappy",
    .summary = "fast compression, in a format that data tools share",
    .library = "libsnappy " DR_SNAPPY_VERSION,
    .wire_id = DR__BYTES_SNAPPY,
    .bound = bound,
    .encode = encode,
    .decode = decode,
};
