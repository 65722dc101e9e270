/* sink.c: lays decoded rows down in a view, turned by an EXIF orientation.
 *
 * An orientation is three choices about the stored pixel (i, j): count i from the right, count j from the bottom,
 * exchange the two.  Its place in the view is then linear in i and j, so that no turned copy of the image is needed.
 */
#include "codec/image/sink.h"

#include <string.h>

static bool from_right(int orientation)
{
    return orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
}

static bool from_bottom(int orientation)
{
    return orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
}

dr_rect dr__orient_rect(int orientation, int64_t width, int64_t height, const dr_rect *turned)
{
    dr_rect r = *turned;
    if (dr__orient_swaps(orientation))
        r = (dr_rect){ turned->y, turned->x, turned->h, turned->w };
    if (from_right(orientation))
        r.x = width - r.x - r.w;
    if (from_bottom(orientation))
        r.y = height - r.y - r.h;
    return r;
}

dr_status dr__sink_open(dr__sink *sink, dr_codec_state *state, dr__pixel_kind kind, const dr__decode_options *options,
                        int orientation, int64_t width, int64_t height, dr_view *out, dr_error *err)
{
    size_t pixel = dr__pixel_bytes(dr__pixel_result(kind, options->mode));
    bool swap = dr__orient_swaps(orientation);
    *sink = (dr__sink){ .pixel = pixel, .width = (size_t)width, .convert = dr__pixel_converter(kind, options->mode) };
    sink->step_x = swap ? out->stride : (ptrdiff_t)pixel;
    sink->step_y = swap ? (ptrdiff_t)pixel : out->stride;
    sink->origin = out->data;
    if (from_right(orientation)) {
        sink->origin += (ptrdiff_t)(width - 1) * sink->step_x;
        sink->step_x = -sink->step_x;
    }
    if (from_bottom(orientation)) {
        sink->origin += (ptrdiff_t)(height - 1) * sink->step_y;
        sink->step_y = -sink->step_y;
    }
    if (sink->step_x == (ptrdiff_t)pixel)
        return DR_OK;
    sink->turned = dr__reuse_buffer_get(&state->turned, (size_t)width * pixel);
    return sink->turned ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "no memory for a row of %lld pixels", (long long)width);
}

bool dr__sink_direct(const dr__sink *sink)
{
    return !sink->convert && !sink->turned;
}

uint8_t *dr__sink_row_at(const dr__sink *sink, int64_t y)
{
    return sink->origin + (ptrdiff_t)y * sink->step_y;
}

static void scatter(const dr__sink *sink, uint8_t *dst, const uint8_t *row)
{
    for (size_t i = 0; i < sink->width; i++, dst += sink->step_x, row += sink->pixel)
        memcpy(dst, row, sink->pixel);
}

void dr__sink_put(const dr__sink *sink, int64_t y, const uint8_t *row)
{
    uint8_t *dst = dr__sink_row_at(sink, y);
    if (!sink->turned) {
        if (sink->convert)
            sink->convert(dst, row, sink->width);
        else
            memcpy(dst, row, sink->width * sink->pixel);
        return;
    }
    if (sink->convert) {
        sink->convert(sink->turned, row, sink->width);
        row = sink->turned;
    }
    scatter(sink, dst, row);
}
