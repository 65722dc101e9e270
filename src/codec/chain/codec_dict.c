/* codec_dict.c: dictionaries of Zstandard, shared by the codecs and frames that use them. */
#include "codec/chain/codec_dict.h"

#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "codec/codec_config.h"

#ifdef DR_HAVE_ZSTD

#include <zdict.h>
#include <zstd.h>

#include "codec/bytes/zstd_state.h"

struct dr_codec_dict {
    _Atomic unsigned n_refs;
    uint32_t id;
    ZSTD_DDict *decoder;
    size_t size;
    uint8_t data[];
};

struct dr__zstd_encoder_dict {
    ZSTD_CDict *dict;
};

dr_codec_dict *dr__codec_dict_ref(dr_codec_dict *dict)
{
    atomic_fetch_add(&dict->n_refs, 1);
    return dict;
}

void dr_codec_dict_close(dr_codec_dict **dict)
{
    dr_codec_dict *d = *dict;
    *dict = NULL;
    if (!d || atomic_fetch_sub(&d->n_refs, 1) > 1)
        return;
    ZSTD_freeDDict(d->decoder);
    dr__free(d);
}

dr_status dr_codec_dict_open(const void *data, size_t size, dr_codec_dict **out, dr_error *err)
{
    const unsigned id = ZDICT_getDictID(data, size);
    if (!id)
        return dr__fail(err, DR_ERR_FORMAT, "dictionary: these %zu bytes are not a dictionary of zstd", size);
    dr_codec_dict *d = dr__alloc(sizeof *d + size);
    if (!d)
        return dr__fail(err, DR_ERR_NOMEM, "dictionary: no memory for %zu bytes", size);
    atomic_init(&d->n_refs, 1);
    d->id = id;
    d->size = size;
    memcpy(d->data, data, size);
    d->decoder = ZSTD_createDDict(d->data, size);
    if (!d->decoder) { /* that it has no memory and that the tables are damaged looks the same */
        dr__free(d);
        return dr__fail(err, DR_ERR_FORMAT, "dictionary: its tables are damaged");
    }
    *out = d;
    return DR_OK;
}

dr_status dr_codec_dict_train(const void *samples, const size_t *sizes, size_t n_samples, size_t max_size,
                              dr_codec_dict **out, dr_error *err)
{
    if (n_samples > UINT32_MAX)
        return dr__fail(err, DR_ERR_LIMIT, "dictionary: %zu samples are too many", n_samples);
    uint8_t *data = dr__alloc(max_size ? max_size : 1);
    if (!data)
        return dr__fail(err, DR_ERR_NOMEM, "dictionary: no memory for %zu bytes", max_size);
    const size_t n = ZDICT_trainFromBuffer(data, max_size, samples, sizes, (unsigned)n_samples);
    const dr_status status = ZDICT_isError(n)
                                 ? dr__fail(err, DR_ERR_ARG, "dictionary: training from %zu samples failed: %s",
                                            n_samples, ZDICT_getErrorName(n))
                                 : dr_codec_dict_open(data, n, out, err);
    dr__free(data);
    return status;
}

const void *dr_codec_dict_bytes(const dr_codec_dict *dict, size_t *size)
{
    *size = dict->size;
    return dict->data;
}

uint32_t dr_codec_dict_id(const dr_codec_dict *dict)
{
    return dict->id;
}

const void *dr__codec_dict_prepared(const dr_codec_dict *dict)
{
    return dict->decoder;
}

dr__zstd_encoder_dict *dr__zstd_encoder_dict_new(const dr_codec_dict *dict, int level)
{
    dr__zstd_encoder_dict *d = dr__alloc(sizeof *d);
    if (d)
        d->dict = ZSTD_createCDict(dict->data, dict->size, level);
    if (d && !d->dict) {
        dr__free(d);
        d = NULL;
    }
    return d;
}

void dr__zstd_encoder_dict_free(dr__zstd_encoder_dict *dict)
{
    if (dict)
        ZSTD_freeCDict(dict->dict);
    dr__free(dict);
}

size_t dr__zstd_dict_encode(const dr__zstd_encoder_dict *dict, const void *data, size_t size, void *out, size_t cap)
{
    ZSTD_CCtx *context = dr__zstd_encoder();
    if (!context)
        return 0;
    const size_t n = ZSTD_compress_usingCDict(context, out, cap, data, size, dict->dict);
    dr__zstd_encoder_used();
    return ZSTD_isError(n) ? 0 : n;
}

bool dr__zstd_dict_decode(const dr_codec_dict *dict, const void *data, size_t size, void *out, size_t out_size)
{
    ZSTD_DCtx *context = dr__zstd_decoder();
    return context && ZSTD_decompress_usingDDict(context, out, out_size, data, size, dict->decoder) == out_size;
}

#else /* a build without zstd: there is no way to a dictionary, and nothing else is ever called */

struct dr_codec_dict {
    uint32_t id;
};

static dr_status lacking(dr_error *err)
{
    return dr__fail(err, DR_ERR_UNSUPPORTED, "dictionary: this build has no zstd");
}

dr_status dr_codec_dict_open(const void *data, size_t size, dr_codec_dict **out, dr_error *err)
{
    (void)data, (void)size, (void)out;
    return lacking(err);
}

dr_status dr_codec_dict_train(const void *samples, const size_t *sizes, size_t n_samples, size_t max_size,
                              dr_codec_dict **out, dr_error *err)
{
    (void)samples, (void)sizes, (void)n_samples, (void)max_size, (void)out;
    return lacking(err);
}

dr_codec_dict *dr__codec_dict_ref(dr_codec_dict *dict)
{
    return dict;
}

void dr_codec_dict_close(dr_codec_dict **dict)
{
    *dict = NULL;
}

const void *dr_codec_dict_bytes(const dr_codec_dict *dict, size_t *size)
{
    *size = 0;
    return dict;
}

uint32_t dr_codec_dict_id(const dr_codec_dict *dict)
{
    return dict->id;
}

const void *dr__codec_dict_prepared(const dr_codec_dict *dict)
{
    return dict;
}

dr__zstd_encoder_dict *dr__zstd_encoder_dict_new(const dr_codec_dict *dict, int level)
{
    (void)dict, (void)level;
    return NULL;
}

void dr__zstd_encoder_dict_free(dr__zstd_encoder_dict *dict)
{
    (void)dict;
}

size_t dr__zstd_dict_encode(const dr__zstd_encoder_dict *dict, const void *data, size_t size, void *out, size_t cap)
{
    (void)dict, (void)data, (void)size, (void)out, (void)cap;
    return 0;
}

bool dr__zstd_dict_decode(const dr_codec_dict *dict, const void *data, size_t size, void *out, size_t out_size)
{
    (void)dict, (void)data, (void)size, (void)out, (void)out_size;
    return false;
}

#endif
