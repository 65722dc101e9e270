/* webp: lossy and lossless WebP, with alpha, by libwebp; of an animation its first frame, as Pillow opens it.
 *
 * Rectangles are cropped by libwebp.  Its upsampling of chroma treats the border of the crop as the image's, so a
 * margin of two pixels is decoded where the image goes on, and cut off again.
 */
#include <string.h>

#include <webp/decode.h>

#include "codec/codec_config.h"
#include "codec/image/image_state.h"
#include "codec/image/exif.h"
#include "codec/image/sink.h"

enum { RIFF_HEADER = 12, CHUNK_HEADER = 8, FRAME_HEADER = 16, MARGIN = 2 };

/* Where the pixels of an image are: a whole still image, or the first frame somewhere on an animation's canvas. */
struct still {
    const uint8_t *data;
    size_t size;
    int64_t width, height; /* of the canvas */
    dr_rect frame;         /* on it */
    bool alpha, lossless, animated;
};

static uint32_t little(const uint8_t *p, int n)
{
    uint32_t v = 0;
    while (n-- > 0)
        v = v << 8 | p[n];
    return v;
}

static bool probe(const uint8_t *data, size_t size)
{
    return size >= RIFF_HEADER && memcmp(data, "RIFF", 4) == 0 && memcmp(data + 8, "WEBP", 4) == 0;
}

/* The first chunk with that name, from *at on; moves *at behind it.  NULL when there is none. */
static const uint8_t *find_chunk(const uint8_t *data, size_t size, const char *name, size_t *at, size_t *n)
{
    while (*at <= size && size - *at >= CHUNK_HEADER) {
        const uint8_t *chunk = data + *at;
        size_t length = little(chunk + 4, 4);
        size_t room = size - *at - CHUNK_HEADER;
        *n = DR_MIN(length, room);
        *at += CHUNK_HEADER + DR_MIN(length + (length & 1), room);
        if (memcmp(chunk, name, 4) == 0)
            return chunk + CHUNK_HEADER;
    }
    return NULL;
}

static int orientation_of(const uint8_t *data, size_t size)
{
    size_t at = RIFF_HEADER, n = 0;
    const uint8_t *chunk = find_chunk(data, size, "EXIF", &at, &n);
    int orientation = chunk ? dr__exif_orientation(chunk, n) : 0;
    if (orientation)
        return orientation;
    at = RIFF_HEADER;
    chunk = find_chunk(data, size, "XMP ", &at, &n);
    orientation = chunk ? dr__xmp_orientation(chunk, n) : 0;
    return orientation ? orientation : 1;
}

static dr_status fail(VP8StatusCode code, size_t size, dr_error *err)
{
    switch (code) {
    case VP8_STATUS_OUT_OF_MEMORY:
        return dr__fail(err, DR_ERR_NOMEM, "no memory to decode a WebP image");
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
        return dr__fail(err, DR_ERR_FORMAT, "truncated WebP: its %zu bytes end before the image does", size);
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return dr__fail(err, DR_ERR_UNSUPPORTED, "WebP with a feature that libwebp does not know");
    default:
        return dr__fail(err, DR_ERR_FORMAT, "damaged WebP: libwebp says %d", (int)code);
    }
}

/* Replaces the file in s by its first frame. */
static dr_status find_frame(struct still *s, dr_error *err)
{
    size_t at = RIFF_HEADER, n = 0;
    if (little(s->data + 4, 4) > s->size - CHUNK_HEADER) /* later frames are missing: Pillow refuses such a file */
        return fail(VP8_STATUS_NOT_ENOUGH_DATA, s->size, err);
    const uint8_t *frame = find_chunk(s->data, s->size, "ANMF", &at, &n);
    if (!frame || n < FRAME_HEADER)
        return dr__fail(err, DR_ERR_FORMAT, "damaged WebP: an animation without frames");
    s->frame = (dr_rect){ 2 * (int64_t)little(frame, 3), 2 * (int64_t)little(frame + 3, 3),
                          1 + (int64_t)little(frame + 6, 3), 1 + (int64_t)little(frame + 9, 3) };
    if (s->frame.x + s->frame.w > s->width || s->frame.y + s->frame.h > s->height)
        return dr__fail(err, DR_ERR_FORMAT, "damaged WebP: a frame outside its canvas");
    s->data = frame + FRAME_HEADER;
    s->size = n - FRAME_HEADER;

    WebPBitstreamFeatures f;
    VP8StatusCode code = WebPGetFeatures(s->data, s->size, &f);
    if (code != VP8_STATUS_OK)
        return fail(code, s->size, err);
    if (f.width != s->frame.w || f.height != s->frame.h)
        return dr__fail(err, DR_ERR_FORMAT, "damaged WebP: a frame of another size than it says");
    s->lossless = f.format == 2;
    return DR_OK;
}

static dr_status find_still(struct still *s, const uint8_t *data, size_t size, const dr__decode_options *options,
                            dr_error *err)
{
    WebPBitstreamFeatures f;
    VP8StatusCode code = WebPGetFeatures(data, size, &f);
    if (code != VP8_STATUS_OK)
        return fail(code, size, err);
    DR_TRY(dr__check_size(options, "WebP", f.width, f.height, err));
    *s = (struct still){ .data = data,
                         .size = size,
                         .width = f.width,
                         .height = f.height,
                         .alpha = f.has_alpha,
                         .lossless = f.format == 2,
                         .animated = f.has_animation };
    s->frame = (dr_rect){ 0, 0, f.width, f.height };
    return s->animated ? find_frame(s, err) : DR_OK;
}

static dr__pixel_kind kind_of(const struct still *s)
{
    return s->alpha ? DR__PIXEL_RGBA : DR__PIXEL_RGB;
}

static void describe(const struct still *s, const uint8_t *data, size_t size, const dr__decode_options *options,
                     dr__image_info *info)
{
    *info = (dr__image_info){
        .width = s->width,
        .height = s->height,
        .bits = 8,
        .stored = s->animated   ? "animation"
                  : s->lossless ? "lossless"
                  : s->alpha    ? "lossy with alpha"
                                : "lossy",
        .orientation = options->exif_orient ? orientation_of(data, size) : 1,
    };
    dr__info_decoded(info, kind_of(s), options);
}

/* libwebp holds all pixels of a lossless image, all alpha of a lossy one; and we the decoded rectangle. */
static dr_status check_memory(const struct still *s, const dr__image_info *info, const dr__decode_options *options,
                              dr_error *err)
{
    double area = (double)s->width * (double)s->height;
    double working = s->lossless ? 8.0 * area : (s->alpha ? 2.0 * area : 0.0) + 64.0 * (double)s->width;
    return dr__check_bytes(options, "WebP", working + area * (info->channels + (s->alpha ? 4 : 3)), err);
}

static dr_status header(dr_codec_state *state, const uint8_t *data, size_t size, const dr__decode_options *options,
                        dr__image_info *info, dr_error *err)
{
    struct still s;
    (void)state;
    DR_TRY(find_still(&s, data, size, options, err));
    describe(&s, data, size, options, info);
    return check_memory(&s, info, options, err);
}

/* Decodes `part` of the frame to rows `stride` apart. */
static dr_status decode_part(const struct still *s, const dr_rect *part, uint8_t *to, size_t stride, dr_error *err)
{
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config))
        return dr__fail(err, DR_ERR_UNSUPPORTED, "libwebp is of another version than this build");
    config.options.use_cropping = part->w != s->frame.w || part->h != s->frame.h;
    config.options.crop_left = (int)part->x;
    config.options.crop_top = (int)part->y;
    config.options.crop_width = (int)part->w;
    config.options.crop_height = (int)part->h;
    config.output.colorspace = s->alpha ? MODE_RGBA : MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = to;
    config.output.u.RGBA.stride = (int)stride;
    config.output.u.RGBA.size = stride * (size_t)part->h;
    VP8StatusCode code = WebPDecode(s->data, s->size, &config);
    WebPFreeDecBuffer(&config.output);
    return code == VP8_STATUS_OK ? DR_OK : fail(code, s->size, err);
}

static dr_rect intersect(const dr_rect *a, const dr_rect *b)
{
    dr_rect r = { .x = DR_MAX(a->x, b->x), .y = DR_MAX(a->y, b->y) };
    r.w = DR_MIN(a->x + a->w, b->x + b->w) - r.x;
    r.h = DR_MIN(a->y + a->h, b->y + b->h) - r.y;
    return r;
}

/* The part of the frame to decode for `wanted` (in frame pixels): with a margin, and from even pixels on. */
static dr_rect with_margin(const dr_rect *wanted, const dr_rect *frame)
{
    dr_rect r = { .x = DR_MAX(wanted->x - MARGIN, 0) & ~(int64_t)1, .y = DR_MAX(wanted->y - MARGIN, 0) & ~(int64_t)1 };
    r.w = DR_MIN(wanted->x + wanted->w + MARGIN, frame->w) - r.x;
    r.h = DR_MIN(wanted->y + wanted->h + MARGIN, frame->h) - r.y;
    return r;
}

/* Hands out the rows of `area`: decoded pixels where the frame is, transparent black elsewhere. */
static void put_rows(const dr__sink *sink, const dr_rect *area, const dr_rect *seen, const uint8_t *decoded,
                     size_t stride, size_t pixel, uint8_t *blank)
{
    for (int64_t y = 0; y < area->h; y++) {
        bool inside = seen->w > 0 && seen->h > 0 && area->y + y >= seen->y && area->y + y < seen->y + seen->h;
        const uint8_t *row = inside ? decoded + (size_t)(area->y + y - seen->y) * stride : NULL;
        if (row && seen->w == area->w) {
            dr__sink_put(sink, y, row);
            continue;
        }
        memset(blank, 0, (size_t)area->w * pixel);
        if (row)
            memcpy(blank + (size_t)(seen->x - area->x) * pixel, row, (size_t)seen->w * pixel);
        dr__sink_put(sink, y, blank);
    }
}

static dr_status decode_area(dr_codec_state *state, const struct still *s, const dr_rect *area, const dr__sink *sink,
                             dr_error *err)
{
    size_t pixel = dr__pixel_bytes(kind_of(s));
    dr_rect seen = intersect(area, &s->frame), part = { 0 };
    size_t stride = 0;
    if (seen.w > 0 && seen.h > 0) {
        dr_rect wanted = { seen.x - s->frame.x, seen.y - s->frame.y, seen.w, seen.h };
        part = with_margin(&wanted, &s->frame);
        stride = (size_t)part.w * pixel;
        bool whole = seen.w == area->w && seen.h == area->h && part.w == area->w && part.h == area->h;
        if (whole && dr__sink_direct(sink) && sink->step_y > 0)
            return decode_part(s, &part, sink->origin, (size_t)sink->step_y, err);
    }
    size_t blank = stride * (size_t)part.h;
    uint8_t *rows = dr__reuse_buffer_get(&state->rows, blank + (size_t)area->w * pixel);
    if (!rows)
        return dr__fail(err, DR_ERR_NOMEM, "no memory for %lld WebP rows", (long long)area->h);
    const uint8_t *first = rows;
    if (stride > 0) {
        DR_TRY(decode_part(s, &part, rows, stride, err));
        first += (size_t)(seen.y - s->frame.y - part.y) * stride + (size_t)(seen.x - s->frame.x - part.x) * pixel;
    }
    put_rows(sink, area, &seen, first, stride, pixel, rows + blank);
    return DR_OK;
}

static dr_status decode(dr_codec_state *state, const uint8_t *data, size_t size, const dr__decode_options *options,
                        const dr_rect *rect, dr_view *out, dr_error *err)
{
    struct still s;
    dr__image_info info;
    dr__sink sink;
    DR_TRY(find_still(&s, data, size, options, err));
    describe(&s, data, size, options, &info);
    DR_TRY(check_memory(&s, &info, options, err));
    DR_TRY(dr__check_target(&info, rect, out, err));
    dr_rect area = dr__orient_rect(info.orientation, s.width, s.height, rect);
    DR_TRY(dr__sink_open(&sink, state, kind_of(&s), options, info.orientation, area.w, area.h, out, err));
    dr_status status = decode_area(state, &s, &area, &sink, err);
    dr__reuse_buffer_trim(&state->rows);
    return status;
}

static double cost(const dr__image_info *info, size_t size, const dr_rect *rect)
{
    double rows = (double)(rect->y + rect->h) / (double)info->height;
    return rows * (10.0 * (double)size + 6.0 * (double)info->width * (double)info->height) +
           4.0 * (double)rect->w * (double)rect->h;
}

const dr_image_codec dr__codec_webp = {
    .name = "webp",
    .summary = "photographs and graphics, lossy or lossless",
    .library = "libwebp " DR_WEBP_VERSION,
    .probe = probe,
    .header = header,
    .decode = decode,
    .cost = cost,
};
