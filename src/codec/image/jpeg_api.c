/* jpeg_api.c: the JPEG decoder by itself (drapps/jpeg.h), over the codec that the loaders use. */
#include <drapps/jpeg.h>

#include <inttypes.h>

#include "base/alloc.h"
#include "base/error.h"
#include "codec/image/image.h"
#include "codec/image/seek_store.h"
#include "data/desc.h"

struct dr_jpeg {
    dr_codec_state *codecs;
    bool libjpeg;
};

/* Points, and what tells the bytes they were learnt from; without points it may become that of any file. */
struct dr_jpeg_index {
    dr__seek_points points;
    dr__seek_key key;
};

dr_status dr_jpeg_open(dr_jpeg **out, dr_error *err)
{
    dr_jpeg *jpeg = dr__alloc_zero(1, sizeof *jpeg);
    *out = NULL;
    if (jpeg)
        jpeg->codecs = dr__codec_state_new();
    if (!jpeg || !jpeg->codecs) {
        dr_jpeg_close(&jpeg);
        return dr__fail(err, DR_ERR_NOMEM, "jpeg: no memory for a decoder");
    }
    *out = jpeg;
    return DR_OK;
}

void dr_jpeg_close(dr_jpeg **jpeg)
{
    if (!jpeg || !*jpeg)
        return;
    dr__codec_state_free(&(*jpeg)->codecs);
    dr__free(*jpeg);
    *jpeg = NULL;
}

void dr_jpeg_use_libjpeg(dr_jpeg *jpeg, bool only)
{
    jpeg->libjpeg = only;
}

static dr__decode_options options_of(const dr_jpeg *jpeg)
{
    dr__decode_options options;
    dr__decode_defaults(&options);
    options.libjpeg = jpeg->libjpeg;
    return options;
}

/* Bytes that begin like something else are named before a decoder sees them. */
static dr_status check_kind(const void *data, size_t size, dr_error *err)
{
    const dr_image_codec *codec;
    DR_TRY(dr__image_probe(data, size, &codec, err));
    if (codec != &dr__codec_jpeg)
        return dr__fail(err, DR_ERR_FORMAT, "not a JPEG: an image of the format %s", codec->name);
    return DR_OK;
}

dr_status dr_jpeg_header(dr_jpeg *jpeg, const void *data, size_t size, dr_jpeg_info *info, dr_error *err)
{
    dr__decode_options options = options_of(jpeg);
    dr__image_info facts = { 0 };
    DR_TRY(check_kind(data, size, err));
    DR_TRY(dr__codec_jpeg.header(jpeg->codecs, data, size, &options, &facts, err));
    *info = (dr_jpeg_info){
        .width = facts.width, .height = facts.height, .stored = facts.stored, .decoder = facts.decoder
    };
    return DR_OK;
}

/* --- index --- */

dr_status dr_jpeg_index_new(dr_jpeg_index **out, dr_error *err)
{
    *out = dr__alloc_zero(1, sizeof **out);
    return *out ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "jpeg: no memory for an index");
}

void dr_jpeg_index_free(dr_jpeg_index **index)
{
    if (!index || !*index)
        return;
    dr__seek_free(&(*index)->points);
    dr__free(*index);
    *index = NULL;
}

size_t dr_jpeg_index_bytes(const dr_jpeg_index *index)
{
    if (index->points.n == 0)
        return 0;
    size_t bound = dr__seek_pack_bound(&index->points);
    uint8_t *bytes = dr__alloc(bound);
    size_t size = bytes ? dr__seek_pack(&index->points, bytes) : bound;
    dr__free(bytes);
    return size;
}

/* An index without points takes the file at hand for its own; all others must see its bytes again. */
static dr_status claim(dr_jpeg_index *index, const uint8_t *data, size_t size, dr_error *err)
{
    const dr__seek_key key = dr__seek_key_of(data, size);
    if (index->points.n == 0)
        index->key = key;
    if (index->key.size != size)
        return dr__fail(err, DR_ERR_ARG, "jpeg: the index was learnt from a file of %llu bytes, this one has %zu",
                        (unsigned long long)index->key.size, size);
    if (index->key.hash != key.hash)
        return dr__fail(err, DR_ERR_ARG, "jpeg: the index was learnt from another file of %zu bytes", size);
    return DR_OK;
}

/* --- decode --- */

static dr_status whole_image(dr_jpeg *jpeg, const void *data, size_t size, dr_rect *rect, dr_error *err)
{
    dr_jpeg_info info;
    DR_TRY(dr_jpeg_header(jpeg, data, size, &info, err));
    *rect = (dr_rect){ 0, 0, info.width, info.height };
    return DR_OK;
}

/* The least that the memory must be able to hold; whether the rectangle lies in the image is for the decoder, which
 * has to read the header anyway. */
static dr_status check_rows(const dr_rect *rect, ptrdiff_t stride, dr_error *err)
{
    if (rect->w < 1 || rect->h < 1)
        return dr__fail(err, DR_ERR_ARG, "jpeg: crop must be at least 1 x 1 pixels, got %" PRId64 " x %" PRId64,
                        rect->w, rect->h);
    if (stride < 0 || stride / 3 < rect->w)
        return dr__fail(err, DR_ERR_ARG, "jpeg: stride must be at least 3 * %" PRId64 " bytes, got %td", rect->w,
                        stride);
    return DR_OK;
}

dr_status dr_jpeg_decode(dr_jpeg *jpeg, const void *data, size_t size, const dr_rect *crop, dr_jpeg_index *index,
                         uint8_t *pixels, ptrdiff_t stride, dr_error *err)
{
    dr__decode_options options = options_of(jpeg);
    dr_rect rect;
    if (crop)
        rect = *crop;
    else
        DR_TRY(whole_image(jpeg, data, size, &rect, err));
    DR_TRY(check_rows(&rect, stride, err));
    DR_TRY(check_kind(data, size, err));
    if (index) {
        DR_TRY(claim(index, data, size, err));
        options.seek = &index->points;
    }
    dr_view out = {
        .data = pixels, .stride = stride, .desc = dr__desc_image(DR_U8, DR_UNKNOWN, DR_UNKNOWN, 3), .window = rect
    };
    return dr__codec_jpeg.decode(jpeg->codecs, data, size, &options, &rect, &out, err);
}
