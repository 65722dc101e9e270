/* decode: encoded bytes (JPEG, PNG, ...) to an HWC image.
 *
 * What the header says is read before anything is drawn (peek), so that later ops know the size of the image; when the
 * op that follows reads only a part, run decodes only that (out->window), with the same pixels; stream hands that part
 * on in bands of rows instead of laying it down.
 */
#include <stdio.h>

#include "codec/image/image.h"
#include "codec/image/jpeg_partial.h"
#include "codec/image/seek_store.h"
#include "codec/image/sink.h"
#include "format/dataset_internal.h"
#include "op/op.h"
#include "op/op_defs.h"

struct conf {
    int mode;
    bool exif_orientation;
    bool fast_decode;
    int64_t max_side;
    int64_t max_pixels;
    int64_t max_bytes;
    int decoder;
};

struct par {
    const dr_image_codec *codec;
    dr__image_info info;
    int scale;
    size_t stored_bytes; /* of a file of which only ranges are there; else 0 */
};

enum { AUTO, LIBJPEG };

static const char *const modes[] = { "RGB", "L", "RGBA", "unchanged", NULL };
static const char *const decoders[] = { [AUTO] = "auto", [LIBJPEG] = "libjpeg", NULL };

static const dr_param params[] = {
    DR_CHOICE(struct conf, mode, "\"RGB\"", modes,
              "channels wanted: RGB, L (grey) or RGBA as Pillow converts to them; unchanged keeps channels and depth"),
    DR_BOOLEAN(struct conf, exif_orientation, "false", "turn the image as its EXIF orientation says"),
    DR_BOOLEAN(struct conf, fast_decode, "false",
               "let a JPEG be decoded at 1/2, 1/4 or 1/8 of its size where the next op scales it down further; faster, "
               "and not the same pixels"),
    DR_INT(struct conf, max_side, "65535", 1, 1 << 24, "largest width or height accepted"),
    DR_INT(struct conf, max_pixels, "178956970", 1, 1e12, "most pixels accepted (default: Pillow's own limit)"),
    DR_INT(struct conf, max_bytes, "1073741824", 1, 1e15, "most memory for decoding one image"),
    DR_CHOICE(struct conf, decoder, "\"auto\"", decoders,
              "what decodes JPEG: auto is drapps' own decoder for the files it reads and libjpeg-turbo for the rest; "
              "libjpeg is libjpeg-turbo for all; the pixels are the same"),
    { 0 },
};

static bool by_libjpeg(const struct conf *c, bool reference)
{
    return reference || c->decoder == LIBJPEG;
}

static dr__decode_options options_of(const dr_task *task, int scale)
{
    const struct conf *c = task->conf;
    dr__decode_options o;
    dr__decode_defaults(&o);
    o.mode = (dr__color_mode)c->mode;
    o.exif_orient = c->exif_orientation;
    o.scale_denom = scale;
    o.max_side = c->max_side;
    o.max_pixels = c->max_pixels;
    o.max_bytes = (size_t)c->max_bytes;
    o.libjpeg = by_libjpeg(c, task->reference);
    return o;
}

/* What was read of a file in ranges, for the decoder; NULL: it was read whole. */
static const dr__jpeg_partial *partial_of(const dr_task *task, dr__jpeg_partial *partial)
{
    const dr__record_part *part = task->part;
    if (!part)
        return NULL;
    *partial = (dr__jpeg_partial){ .size = part->size,
                                   .scan = part->scan,
                                   .orientation = part->orientation,
                                   .pieces = part->pieces,
                                   .n_pieces = part->n };
    return partial;
}

static dr_status peek(dr_task *task, const dr_view *in, void *par)
{
    struct par *p = par;
    dr__decode_options options = options_of(task, task->scale);
    size_t size = (size_t)in->desc.dims[0];
    dr__jpeg_partial partial;
    options.partial = partial_of(task, &partial);
    p->scale = task->scale;
    p->stored_bytes = task->part ? (size_t)task->part->size : 0;
    DR_TRY(dr__image_probe(in->data, size, &p->codec, task->err));
    return p->codec->header(task->codecs, in->data, size, &options, &p->info, task->err);
}

static dr_status plan(const void *conf, const void *par, const dr_desc *in, dr_plan *out, dr_error *err)
{
    const struct conf *c = conf;
    const struct par *p = par;
    if (in->kind != DR_KIND_BYTES)
        return dr__fail(err, DR_ERR_ARG,
                        "decode: needs encoded bytes; this field is decoded already: leave .decode() out (of a packed "
                        "set by pipe.use(folder), or pack files as they are by upto=0)");
    static const int64_t channels[] = { 3, 1, 4, DR_UNKNOWN };
    if (p)
        out->desc = dr__desc_image(p->info.dtype, p->info.height, p->info.width, p->info.channels);
    else
        out->desc = dr__desc_image(DR_U8, DR_UNKNOWN, DR_UNKNOWN, channels[c->mode]);
    return DR_OK;
}

static double part_cost(const void *conf, const void *par, const dr_desc *in, const dr_rect *part)
{
    const struct par *p = par;
    (void)conf;
    size_t size = p->stored_bytes ? p->stored_bytes : (size_t)in->dims[0];
    if (p->codec->cost)
        return p->codec->cost(&p->info, size, part);
    return 10.0 * (double)size + 2.0 * (double)(p->info.width * p->info.height);
}

static double cost(const void *conf, const void *par, const dr_desc *in)
{
    const struct par *p = par;
    const dr_rect all = { 0, 0, p->info.width, p->info.height };
    return part_cost(conf, par, in, &all);
}

/* What was known of an image's rows before it was decoded. */
struct seeking {
    dr__seek_key key;
    uint32_t n_known;
};

/* Gives the decoder the seek points of the image, where it can use them and there is a store. */
static void seek_begin(const dr_task *task, const struct par *p, const dr_view *in, dr__decode_options *options,
                       struct seeking *s)
{
    if (!task->seek || !p->info.seekable || task->reference)
        return;
    options->seek = dr__codec_seek_points(task->codecs);
    s->key = task->part ? task->part->content : dr__seek_key_of(in->data, (size_t)in->desc.dims[0]);
    dr__seek_store_find(task->seek, &s->key, options->seek);
    s->n_known = options->seek->n;
}

/* Keeps what a decoder that succeeded has learnt. */
static dr_status seek_end(const dr_task *task, const dr__decode_options *options, const struct seeking *s,
                          dr_status status)
{
    if (options->seek && status == DR_OK && options->seek->n > s->n_known)
        dr__seek_store_put(task->seek, &s->key, options->seek);
    return status;
}

static bool ranges(dr_task *task, const void *par, const dr_view *in, const dr_rect *window, uint64_t gap,
                   dr__byte_ranges *out)
{
    const struct par *p = par;
    const dr__record_part *part = task->part;
    dr__jpeg_frame frame;
    dr__seek_points *points = dr__codec_seek_points(task->codecs);
    if (!part || !task->seek || !p->info.seekable || task->reference ||
        !dr__jpeg_head_parse(in->data, (size_t)in->desc.dims[0], part->scan, part->orientation, &frame) ||
        !dr__seek_store_look(task->seek, &part->content, points))
        return false;
    const dr_rect area = dr__orient_rect(p->info.orientation, frame.width, frame.height, window);
    return dr__jpeg_ranges(&frame, points, part->size, &area, gap, out);
}

static dr_status run(dr_task *task, const void *par, const dr_view *in, dr_view *out)
{
    const struct par *p = par;
    dr__decode_options options = options_of(task, p->scale);
    struct seeking seeking;
    dr__jpeg_partial partial;
    options.partial = partial_of(task, &partial);
    options.bleed = task->bleed;
    seek_begin(task, p, in, &options, &seeking);
    dr_status status =
        p->codec->decode(task->codecs, in->data, (size_t)in->desc.dims[0], &options, &out->window, out, task->err);
    return seek_end(task, &options, &seeking, status);
}

static bool streams(const void *par)
{
    const struct par *p = par;
    return p->codec->stream && p->info.orientation == 1 && p->info.dtype == DR_U8;
}

static dr_status stream(dr_task *task, const void *par, const dr_view *in, const dr_rect *window, dr__bands *bands)
{
    const struct par *p = par;
    dr__decode_options options = options_of(task, p->scale);
    struct seeking seeking;
    dr__jpeg_partial partial;
    options.partial = partial_of(task, &partial);
    seek_begin(task, p, in, &options, &seeking);
    dr_status status =
        p->codec->stream(task->codecs, in->data, (size_t)in->desc.dims[0], &options, window, bands, task->err);
    return seek_end(task, &options, &seeking, status);
}

static bool may_scale(const void *conf)
{
    return ((const struct conf *)conf)->fast_decode;
}

static void note(const void *conf, bool reference, char *text, size_t cap)
{
    char by[128];
    dr__image_decoder_text(&dr__codec_jpeg, by_libjpeg(conf, reference), by, sizeof by);
    snprintf(text, cap, "JPEG by %s", by);
}

const dr_op_def dr__op_decode = {
    .name = "decode",
    .version = 1,
    .summary = "encoded image (JPEG, PNG, WebP, BMP, GIF, TIFF, PNM) to pixels, as Pillow decodes and converts",
    .params = params,
    .conf_size = sizeof(struct conf),
    .par_size = sizeof(struct par),
    .flags = DR_OP_DECODE,
    .peek = peek,
    .ranges = ranges,
    .may_scale = may_scale,
    .plan = plan,
    .cost = cost,
    .part_cost = part_cost,
    .run = run,
    .streams = streams,
    .stream = stream,
    .note = note,
};
