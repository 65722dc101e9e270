/* byte_codec_table.c: the byte codecs of this build. */
#include <assert.h>

#include "codec/bytes/byte_codec.h"
#include "codec/codec_config.h"

extern const dr_byte_codec dr__byte_codec_none;
extern const dr_byte_codec dr__byte_codec_lz4;
extern const dr_byte_codec dr__byte_codec_lz4hc;
extern const dr_byte_codec dr__byte_codec_zstd;
extern const dr_byte_codec dr__byte_codec_snappy;

const dr_byte_codec *const dr__byte_codecs[] = {
    &dr__byte_codec_none,
#ifdef DR_HAVE_LZ4
    &dr__byte_codec_lz4,
    &dr__byte_codec_lz4hc,
#endif
#ifdef DR_HAVE_ZSTD
    &dr__byte_codec_zstd,
#endif
#ifdef DR_HAVE_SNAPPY
    &dr__byte_codec_snappy,
#endif
    NULL,
};

uint32_t dr__byte_codec_ratio(unsigned wire_id)
{
    static const uint32_t ratios[] = {
        [DR__BYTES_NONE] = 1,    [DR__BYTES_LZ4] = 255,
        [DR__BYTES_LZ4HC] = 255, [DR__BYTES_ZSTD] = 32768, /* a block of 4 bytes repeats one byte 128 Ki times */
        [DR__BYTES_SNAPPY] = 22,                           /* a copy of 3 bytes makes 64 */
    };
    assert(wire_id <= DR__BYTES_LAST);
    return ratios[wire_id];
}

const dr_byte_codec *dr__byte_codec_find(unsigned wire_id)
{
    for (const dr_byte_codec *const *c = dr__byte_codecs; *c; c++)
        if ((*c)->wire_id == wire_id)
            return *c;
    return NULL;
}
