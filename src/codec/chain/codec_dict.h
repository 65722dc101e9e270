/* codec_dict.h: dictionaries of the zstd stage. */
#ifndef DR_CODEC_CODEC_DICT_H
#define DR_CODEC_CODEC_DICT_H

#include <stdbool.h>

#include <drapps/codec.h>

/* A dictionary prepared for encoding at one level. */
typedef struct dr__zstd_encoder_dict dr__zstd_encoder_dict;

dr_codec_dict *dr__codec_dict_ref(dr_codec_dict *dict);

/* NULL: memory is short, or a build without zstd, which has no dictionaries. */
dr__zstd_encoder_dict *dr__zstd_encoder_dict_new(const dr_codec_dict *dict, int level);
void dr__zstd_encoder_dict_free(dr__zstd_encoder_dict *dict);

/* As dr_byte_codec's functions. */
size_t dr__zstd_dict_encode(const dr__zstd_encoder_dict *dict, const void *data, size_t size, void *out, size_t cap);
bool dr__zstd_dict_decode(const dr_codec_dict *dict, const void *data, size_t size, void *out, size_t out_size);

/* For ZSTD_DCtx_refDDict. */
const void *dr__codec_dict_prepared(const dr_codec_dict *dict);

#endif
