/* fuzz_partial: a JPEG from the ranges that a rectangle needs, each in memory of its own; points and ranges may lie.
 *
 * Input as in fuzz_image.h.  The file is decoded whole by drapps' decoder, which learns its points.  With true points a
 * rectangle from pieces must succeed and be what lies at its place in the whole.  Bit 7 of the first byte spoils
 * points, bit 6 the places of pieces, bit 5 their ends: then only staying inside the pieces is asked for.
 */
#include "codec/image/image_state.h"
#include "codec/image/jpeg_baseline.h"
#include "fuzz/fuzz_image.h"

struct input {
    dr_codec_state *state;
    const uint8_t *prefix, *data;
    size_t size;
    dr__decode_options options;
    dr__image_info info;
    dr__seek_points points;
    dr__jpeg_head head;
};

static uint8_t *decode(struct input *in, const uint8_t *data, size_t size, dr_rect rect, bool *sound)
{
    dr_error err = { 0 };
    const size_t row = (size_t)rect.w * (size_t)in->info.channels;
    uint8_t *pixels = calloc((size_t)rect.h, row);
    if (!pixels)
        abort();
    dr_view out = { .data = pixels,
                    .stride = (ptrdiff_t)row,
                    .window = rect,
                    .desc = dr__desc_image(DR_U8, in->info.height, in->info.width, in->info.channels) };
    if (dr__baseline_decode(in->state, data, size, &in->options, &rect, &out, NULL, sound, &err) != DR_OK)
        abort(); /* the header was fine */
    return pixels;
}

static void spoil_points(struct input *in)
{
    for (uint32_t i = 0; i < in->points.n; i++) {
        in->points.at[i].bit = (in->points.at[i].bit + in->prefix[1 + i % 4]) % (in->size * 8 + 64);
        in->points.at[i].dc[i % 3] += in->prefix[1] << in->prefix[2] % 24;
    }
}

static void compare(const struct input *in, const uint8_t *part, dr_rect rect, const uint8_t *whole)
{
    const size_t pixel = (size_t)in->info.channels, row = (size_t)rect.w * pixel;
    for (int64_t y = 0; y < rect.h; y++)
        if (memcmp(part + (size_t)y * row,
                   whole + ((size_t)(rect.y + y) * (size_t)in->info.width + (size_t)rect.x) * pixel, row) != 0)
            abort();
}

static void decode_part(struct input *in, dr_rect rect, uint64_t gap, const uint8_t *whole)
{
    dr__jpeg_frame frame;
    dr__byte_ranges ranges;
    dr__byte_piece pieces[DR__MOST_RANGES];
    const bool lies = in->prefix[0] >> 5;
    if (in->prefix[1] & 1) /* the rest is found again */
        in->points.n = 1 + in->prefix[2] % in->points.n;
    if (!dr__jpeg_head_parse(in->head.bytes, in->head.size, in->head.scan, in->head.orientation, &frame))
        abort();
    const dr_rect area = dr__orient_rect(in->info.orientation, frame.width, frame.height, &rect);
    if (!dr__jpeg_ranges(&frame, &in->points, in->size, &area, gap, &ranges)) {
        if (!lies)
            abort();
        return;
    }
    for (int i = 0; i < ranges.n; i++) {
        const dr__byte_range *r = &ranges.at[i];
        size_t size = (size_t)r->size - (in->prefix[0] & 32 ? in->prefix[i % 5] % (size_t)r->size : 0);
        uint8_t *copy = malloc(size);
        if (!copy)
            abort();
        memcpy(copy, in->data + r->offset, size);
        pieces[i] = (dr__byte_piece){ r->offset + (in->prefix[0] & 64 ? in->prefix[4 - i % 5] : 0), size, copy };
    }
    const dr__jpeg_partial partial = { .size = in->size,
                                       .scan = in->head.scan,
                                       .orientation = in->head.orientation,
                                       .pieces = pieces,
                                       .n_pieces = ranges.n };
    const dr__seek_points before = in->points; /* a decoder that fails clears them */
    bool sound;
    in->options.partial = &partial;
    uint8_t *part = decode(in, in->head.bytes, in->head.size, rect, &sound);
    in->options.partial = NULL;
    if (!sound)
        in->points.n = before.n, in->points.total = before.total;
    if (!lies && !sound)
        abort();
    if (!lies)
        compare(in, part, rect, whole);
    for (int i = 0; i < ranges.n; i++)
        free((uint8_t *)pieces[i].data);
    free(part);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < FUZZ_PREFIX)
        return 0;
    struct input in = {
        .state = dr__codec_state_new(), .prefix = data, .data = data + FUZZ_PREFIX, .size = size - FUZZ_PREFIX
    };
    bool sound = false;
    dr_error err = { 0 };
    fuzz_options(data, &in.options);
    in.options.scale_denom = 1;
    in.options.max_pixels = 1 << 15;
    in.options.seek = &in.points;
    dr_status status = dr__baseline_header(in.state, in.data, in.size, &in.options, &in.info, &sound, &err);
    fuzz_note(status == DR_OK && sound ? in.info.stored : err.text);
    if (status == DR_OK && sound) {
        uint8_t *whole = decode(&in, in.data, in.size, (dr_rect){ 0, 0, in.info.width, in.info.height }, &sound);
        if (sound && dr__jpeg_head_make(in.data, in.size, &in.head)) {
            if (data[0] & 128)
                spoil_points(&in);
            for (int variant = 0; variant < FUZZ_RECTS; variant++)
                decode_part(&in, fuzz_rect(data, &in.info, variant), variant == 3 ? UINT64_MAX : (uint64_t)variant * 8,
                            whole);
        }
        free(whole);
    }
    dr__seek_free(&in.points);
    dr__codec_state_free(&in.state);
    return 0;
}
