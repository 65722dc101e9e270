/* codec_handle.h: what is behind a dr_codec. */
#ifndef DR_CODEC_CODEC_HANDLE_H
#define DR_CODEC_CODEC_HANDLE_H

#include "codec/chain/codec_chain.h"

struct dr_codec {
    dr__chain chain; /* borrows the two below */
    dr_codec_dict *dict;
    dr__zstd_encoder_dict *encoder_dict;
    char spec[DR_CODEC_SPEC_TEXT];
};

#endif
