/* file_lz4.c: .lz4 files: frames with the size of their content and a checksum, as the program lz4 writes them. */
#include <lz4frame.h>

#include "base/error.h"
#include "codec/bytes/byte_codec.h"
#include "codec/chain/codec_files.h"

enum { STEP = 1 << 18, MAGIC = 0x184d2204, SKIPPABLE = 0x184d2a50 };

static bool is_file(const uint8_t *data, size_t size)
{
    if (size < 4)
        return false;
    const uint32_t magic = data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24;
    return magic == MAGIC || (magic & ~15u) == SKIPPABLE;
}

static dr_status compress(const void *dict, int level, const uint8_t *data, size_t size, dr__file_out *out,
                          dr_error *err)
{
    (void)dict;
    LZ4F_preferences_t how = { .compressionLevel = level };
    how.frameInfo.contentSize = size;
    how.frameInfo.contentChecksumFlag = LZ4F_contentChecksumEnabled;
    how.frameInfo.blockSizeID = LZ4F_max4MB;
    DR_TRY(dr__file_room(out, LZ4F_compressFrameBound(size, &how), err));
    const size_t n = LZ4F_compressFrame(out->data, out->cap, data, size, &how);
    if (LZ4F_isError(n))
        return dr__fail(err, DR_ERR_NOMEM, "lz4: %s", LZ4F_getErrorName(n));
    out->n = n;
    return DR_OK;
}

static dr_status stream(LZ4F_dctx *context, const uint8_t *data, size_t size, dr__file_out *out, size_t *taken,
                        dr_error *err)
{
    size_t at = 0;
    for (size_t left = 1; left;) {
        if (out->n == out->cap && out->max > out->n)
            DR_TRY(dr__file_room(out, out->max - out->n < STEP ? out->max - out->n : (size_t)STEP, err));
        size_t made = out->cap - out->n, used = size - at;
        left = LZ4F_decompress(context, out->data + out->n, &made, data + at, &used, NULL);
        if (LZ4F_isError(left))
            return dr__fail(err, DR_ERR_FORMAT, "lz4: %s", LZ4F_getErrorName(left));
        at += used;
        out->n += made;
        if (left && !made && !used && out->n == out->max)
            return dr__file_too_large(out, err);
        if (left && at == size && out->n < out->cap)
            return dr__fail(err, DR_ERR_FORMAT, "lz4: the file is cut off");
    }
    *taken = at;
    return DR_OK;
}

static dr_status decompress(const void *dict, const uint8_t *data, size_t size, dr__file_out *out, size_t *taken,
                            dr_error *err)
{
    (void)dict;
    LZ4F_dctx *context = NULL;
    if (LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION)))
        return dr__fail(err, DR_ERR_NOMEM, "lz4: no memory");
    const dr_status status = stream(context, data, size, out, taken, err);
    LZ4F_freeDecompressionContext(context);
    return status;
}

const dr__codec_file dr__file_lz4 = {
    .extension = ".lz4",
    .wire_id = DR__BYTES_LZ4,
    .other_wire_id = DR__BYTES_LZ4HC,
    .is_file = is_file,
    .compress = compress,
    .decompress = decompress,
};
