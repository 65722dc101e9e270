/* byte_codec_table.c: the byte codecs of this build. */
#include <assert.h>

#include "codec/bytes/byte_codec.h"
#include "codec/codec_config.h"

extern const dr_byte_codec dr__byte_codec_none;
extern const dr_byte_codec dr__byte_codec_lz4;

const dr_byte_codec *const dr__byte_codecs[] = {
    &dr__byte_codec_none,
#ifdef DR_HAVE_LZ4
    &dr__byte_codec_lz4,
#endif
    NULL,
};

uint32_t dr__byte_codec_ratio(unsigned wire_id)
{
    static const uint32_t ratios[] = { [DR__BYTES_NONE] = 1, [DR__BYTES_LZ4] = 255 };
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
