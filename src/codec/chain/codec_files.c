/* codec_files.c: files of the reference tools: which format, and the memory that their content goes to. */
#include "codec/chain/codec_files.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "codec/chain/codec_handle.h"
#include "codec/codec_config.h"

extern const dr__codec_file dr__file_zstd, dr__file_lz4, dr__file_snappy;

static const dr__codec_file *const files[] = {
#ifdef DR_HAVE_ZSTD
    &dr__file_zstd,
#endif
#ifdef DR_HAVE_LZ4
    &dr__file_lz4,
#endif
#ifdef DR_HAVE_SNAPPY
    &dr__file_snappy,
#endif
    NULL,
};

static const dr__codec_file *of_codec(unsigned wire_id)
{
    for (const dr__codec_file *const *f = files; *f && wire_id; f++)
        if ((*f)->wire_id == wire_id || (*f)->other_wire_id == wire_id)
            return *f;
    return NULL;
}

const char *dr__codec_extension(unsigned wire_id)
{
    const dr__codec_file *file = of_codec(wire_id);
    return file ? file->extension : NULL;
}

dr_status dr__file_too_large(const dr__file_out *out, dr_error *err)
{
    return dr__fail(err, DR_ERR_LIMIT, "decompress: the content has more than the allowed %zu bytes", out->max - 1);
}

dr_status dr__file_room(dr__file_out *out, size_t more, dr_error *err)
{
    if (out->data && more <= out->cap - out->n)
        return DR_OK;
    if (more > out->max - out->n)
        return dr__file_too_large(out, err);
    size_t cap = out->n + DR_MAX(more, out->n / 2);
    cap = DR_MIN(DR_MAX(cap, (size_t)64), out->max);
    uint8_t *grown = dr__realloc(out->data, cap, 1);
    if (!grown)
        return dr__fail(err, DR_ERR_NOMEM, "decompress: no memory for %zu bytes", cap);
    out->data = grown;
    out->cap = cap;
    return DR_OK;
}

dr_status dr_codec_compress(const dr_codec *codec, const void *data, size_t size, uint8_t **out, size_t *n_out,
                            dr_error *err)
{
    const dr__chain_stage *s = &codec->chain.stages[0];
    const dr__codec_file *file = codec->chain.n == 1 && s->bytes ? of_codec(s->bytes->wire_id) : NULL;
    if (!file)
        return dr__fail(err, DR_ERR_ARG, "codec \"%s\": has no file format; must be zstd, lz4, lz4hc or snappy alone",
                        codec->spec);
    dr__file_out to = { .max = SIZE_MAX };
    const dr_status status = file->compress(codec->encoder_dict, s->param, data, size, &to, err);
    if (status == DR_OK) {
        *out = to.data;
        *n_out = to.n;
    } else {
        dr__free(to.data);
    }
    return status;
}

static const dr__codec_file *of_bytes(const uint8_t *data, size_t size)
{
    for (const dr__codec_file *const *f = files; *f; f++)
        if ((*f)->is_file(data, size))
            return *f;
    return NULL;
}

dr_status dr_codec_decompress(const void *file, size_t size, const dr_codec_dict *dict, size_t max_size, uint8_t **out,
                              size_t *n_out, dr_error *err)
{
    const uint8_t *at = file;
    const dr__codec_file *format = of_bytes(at, size);
    if (!format)
        return dr__fail(err, DR_ERR_FORMAT, "decompress: not a .zst, .lz4 or .sz file that this build can read");
    /* Room for one byte more: so a file that is cut off is told from one that is too large. */
    dr__file_out to = { .max = max_size < SIZE_MAX ? max_size + 1 : max_size };
    dr_status status = dr__file_room(&to, 0, err);
    for (size_t left = size; status == DR_OK && left;) {
        size_t taken = 0;
        status = format->is_file(at, left) ? format->decompress(dict, at, left, &to, &taken, err)
                                           : dr__fail(err, DR_ERR_FORMAT,
                                                      "decompress: %zu bytes after the end of the "
                                                      "content belong to nothing",
                                                      left);
        at += taken;
        left -= taken;
        if (status == DR_OK && to.n > max_size)
            status = dr__file_too_large(&to, err);
    }
    if (status == DR_OK) {
        *out = to.data;
        *n_out = to.n;
    } else {
        dr__free(to.data);
    }
    return status;
}
