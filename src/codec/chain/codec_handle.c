/* codec_handle.c: codecs as handles: opening, closing, facts. */
#include "codec/chain/codec_handle.h"

#include <string.h>

#include "base/alloc.h"
#include "codec/chain/codec_files.h"

static dr_status use_dict(dr_codec *codec, dr_codec_dict *dict, dr_error *err)
{
    const dr__chain_stage *last = &codec->chain.stages[codec->chain.n - 1];
    if (!last->bytes || last->bytes->wire_id != DR__BYTES_ZSTD)
        return dr__fail(err, DR_ERR_ARG, "codec \"%s\": a dictionary needs a zstd stage", codec->spec);
    codec->dict = dr__codec_dict_ref(dict);
    codec->encoder_dict = dr__zstd_encoder_dict_new(dict, last->param);
    if (!codec->encoder_dict)
        return dr__fail(err, DR_ERR_NOMEM, "codec \"%s\": no memory for its dictionary", codec->spec);
    codec->chain.encoder_dict = codec->encoder_dict;
    codec->chain.decoder_dict = codec->dict;
    return DR_OK;
}

dr_status dr_codec_open(const char *spec, dr_codec_dict *dict, dr_codec **out, dr_error *err)
{
    dr__chain chain;
    DR_TRY(dr__chain_parse(spec, &chain, err));
    dr_codec *codec = dr__alloc_zero(1, sizeof *codec);
    if (!codec)
        return dr__fail(err, DR_ERR_NOMEM, "codec \"%s\": no memory", spec);
    codec->chain = chain;
    dr__chain_text(&chain, codec->spec);
    const dr_status status = dict ? use_dict(codec, dict, err) : DR_OK;
    if (status == DR_OK)
        *out = codec;
    else
        dr_codec_close(&codec);
    return status;
}

void dr_codec_close(dr_codec **codec)
{
    if (!*codec)
        return;
    dr__zstd_encoder_dict_free((*codec)->encoder_dict);
    dr_codec_dict_close(&(*codec)->dict);
    dr__free(*codec);
    *codec = NULL;
}

dr_codec_facts dr_codec_about(const dr_codec *codec)
{
    const dr__chain *c = &codec->chain;
    return (dr_codec_facts){ .spec = codec->spec,
                             .lossless = !c->n_lossy,
                             .extension = c->n == 1 && c->stages[0].bytes
                                              ? dr__codec_extension(c->stages[0].bytes->wire_id)
                                              : NULL };
}

bool dr_codec_takes(const dr_codec *codec, dr_dtype dtype)
{
    dr__chain_plan plan;
    return dr__chain_plan_for(&codec->chain, dtype, &plan, NULL) == DR_OK;
}

void dr_codec_free(void *p)
{
    dr__free(p);
}
