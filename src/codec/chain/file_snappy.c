/* file_snappy.c: .sz files: the Snappy framing format, chunks of up to 65536 bytes with a checksum each. */
#include <string.h>

#include <snappy-c.h>

#include "base/error.h"
#include "codec/bytes/byte_codec.h"
#include "codec/chain/codec_files.h"
#include "codec/chain/crc32c.h"

enum { CHUNK = 65536, HEAD = 4, SUM = 4, COMPRESSED = 0, AS_IT_IS = 1, SKIPPABLE = 0x80, STREAM = 0xff };

static const uint8_t stream_id[10] = { 0xff, 6, 0, 0, 's', 'N', 'a', 'P', 'p', 'Y' };

static bool is_file(const uint8_t *data, size_t size)
{
    return size >= sizeof stream_id && !memcmp(data, stream_id, sizeof stream_id);
}

/* The sum as the format has it, so that sums of data with sums in it are no problem. */
static uint32_t masked_sum(const uint8_t *data, size_t size)
{
    const uint32_t sum = dr__crc32c(data, size);
    return (sum >> 15 | sum << 17) + 0xa282ead8u;
}

/* One chunk at `out`, which has room for the worst case; returns its size. */
static size_t put_chunk(const uint8_t *data, size_t n, uint8_t *out)
{
    const uint32_t sum = masked_sum(data, n);
    size_t packed = snappy_max_compressed_length(CHUNK);
    uint8_t type = COMPRESSED, *body = out + HEAD + SUM;
    if (snappy_compress((const char *)data, n, (char *)body, &packed) != SNAPPY_OK || packed >= n - n / 8) {
        type = AS_IT_IS;
        packed = n;
        memcpy(body, data, n);
    }
    const size_t size = packed + SUM;
    const uint8_t head[HEAD] = { type, (uint8_t)size, (uint8_t)(size >> 8), (uint8_t)(size >> 16) };
    memcpy(out, head, HEAD);
    memcpy(out + HEAD, &sum, SUM);
    return HEAD + size;
}

static dr_status compress(const void *dict, int level, const uint8_t *data, size_t size, dr__file_out *out,
                          dr_error *err)
{
    (void)dict;
    (void)level;
    DR_TRY(dr__file_room(out, sizeof stream_id, err));
    memcpy(out->data, stream_id, sizeof stream_id);
    out->n = sizeof stream_id;
    for (size_t at = 0; at < size; at += CHUNK) {
        const size_t n = size - at < CHUNK ? size - at : CHUNK;
        DR_TRY(dr__file_room(out, HEAD + SUM + snappy_max_compressed_length(CHUNK), err));
        out->n += put_chunk(data + at, n, out->data + out->n);
    }
    return DR_OK;
}

static dr_status take_data(unsigned type, const uint8_t *body, size_t size, dr__file_out *out, dr_error *err)
{
    uint32_t sum;
    size_t n = size - SUM;
    if (size < SUM)
        return dr__fail(err, DR_ERR_FORMAT, "snappy: a chunk is damaged");
    const char *packed = (const char *)body + SUM;
    if (type == COMPRESSED && snappy_uncompressed_length(packed, size - SUM, &n) != SNAPPY_OK)
        return dr__fail(err, DR_ERR_FORMAT, "snappy: a chunk is damaged");
    if (n > CHUNK)
        return dr__fail(err, DR_ERR_FORMAT, "snappy: a chunk has %zu bytes, the format allows %d", n, CHUNK);
    DR_TRY(dr__file_room(out, n, err));
    uint8_t *to = out->data + out->n;
    if (type == AS_IT_IS)
        memcpy(to, packed, n);
    else if (snappy_uncompress(packed, size - SUM, (char *)to, &n) != SNAPPY_OK)
        return dr__fail(err, DR_ERR_FORMAT, "snappy: a chunk is damaged");
    memcpy(&sum, body, SUM);
    if (sum != masked_sum(to, n))
        return dr__fail(err, DR_ERR_FORMAT, "snappy: the checksum of a chunk is wrong");
    out->n += n;
    return DR_OK;
}

/* A stream ends where the file ends, or another stream begins. */
static dr_status decompress(const void *dict, const uint8_t *data, size_t size, dr__file_out *out, size_t *taken,
                            dr_error *err)
{
    (void)dict;
    size_t at = sizeof stream_id;
    while (at < size && data[at] != STREAM) {
        if (size - at < HEAD)
            return dr__fail(err, DR_ERR_FORMAT, "snappy: the file is cut off");
        const unsigned type = data[at];
        const size_t n = data[at + 1] | (size_t)data[at + 2] << 8 | (size_t)data[at + 3] << 16;
        at += HEAD;
        if (size - at < n)
            return dr__fail(err, DR_ERR_FORMAT, "snappy: the file is cut off");
        if (type == COMPRESSED || type == AS_IT_IS)
            DR_TRY(take_data(type, data + at, n, out, err));
        else if (type < SKIPPABLE)
            return dr__fail(err, DR_ERR_UNSUPPORTED, "snappy: a chunk has type %u, which must not be skipped", type);
        at += n;
    }
    *taken = at;
    return DR_OK;
}

const dr__codec_file dr__file_snappy = {
    .extension = ".sz",
    .wire_id = DR__BYTES_SNAPPY,
    .is_file = is_file,
    .compress = compress,
    .decompress = decompress,
};
