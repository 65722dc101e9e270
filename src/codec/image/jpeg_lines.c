/* jpeg_lines.c: samples of an MCU row to pixels.
 *
 * Components at half height are interpolated between lines, so that the last row of an MCU row waits for the next one,
 * and its lines are kept above the next one's.  Beyond the borders of the image the outermost sample is repeated, which
 * gives libjpeg's special cases for first and last lines and columns without having any.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "codec/image/jpeg_baseline.h"

enum {
    MARGIN = 128, /* before and after a line: kernels read up to 65 bytes too far */
    ALIGN = 64,
};

static bool halves_x(const dr__jpeg_frame *f)
{
    return f->n_components == 3 && (f->component[1].half_x || f->component[2].half_x);
}

static bool halves_y(const dr__jpeg_frame *f)
{
    return f->n_components == 3 && (f->component[1].half_y || f->component[2].half_y);
}

/* MCUs that hold pixels [at, at + n), and with interpolation the neighbour that the outermost ones need. */
static void span(int64_t at, int64_t n, int64_t size, int64_t mcu, bool halves, int64_t *first, int64_t *end)
{
    int64_t last = at + n - 1;
    if (halves && at % 2 == 0 && at > 0)
        at--;
    if (halves && last % 2 == 1 && last < size - 1)
        last++;
    *first = at / mcu;
    *end = last / mcu + 1;
}

dr__mcu_range dr__lines_range(const dr__jpeg_frame *f, const dr_rect *area)
{
    dr__mcu_range r;
    span(area->x, area->w, f->width, f->mcu_width, halves_x(f), &r.first_column, &r.end_column);
    span(area->y, area->h, f->height, f->mcu_height, halves_y(f), &r.first_row, &r.end_row);
    return r;
}

static size_t round_up(size_t n)
{
    return (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

/* Cuts a block into pieces; without a base it only counts.  Sizes are far below any overflow: 65500 columns. */
static uint8_t *cut(uint8_t *base, size_t *used, size_t bytes)
{
    uint8_t *piece = base ? base + *used : NULL;
    *used += round_up(bytes);
    return piece;
}

static size_t lay_out(dr__lines *l, const dr__mcu_range *range, uint8_t *base)
{
    const dr__jpeg_frame *f = l->frame;
    size_t used = 0;
    const size_t columns = (size_t)(range->end_column - range->first_column), width = (size_t)l->area.w;
    for (int c = 0; c < f->n_components; c++) {
        const dr__jpeg_component *comp = &f->component[c];
        dr__plane *p = &l->plane[c];
        l->plane_width[c] = columns * 8 * (size_t)comp->h;
        p->stride = (ptrdiff_t)round_up(l->plane_width[c] + 2 * MARGIN);
        p->x = range->first_column * 8 * comp->h;
        uint8_t *lines = cut(base, &used, (size_t)p->stride * (8 * (size_t)comp->v + 2));
        p->at = lines ? lines + p->stride + MARGIN : NULL;
        l->wide[c] = cut(base, &used, width + 2 * MARGIN);
    }
    l->row = cut(base, &used, 4 * width + MARGIN);
    if (l->out.bands) {
        l->band_stride = (ptrdiff_t)round_up(width * l->out.pixel);
        l->band = cut(base, &used, (size_t)l->band_stride * (size_t)(f->mcu_height + 1) + DR__BAND_SLACK);
    }
    return used;
}

bool dr__lines_open(dr__lines *l, const dr__mcu_range *range, dr__reuse_buffer *warm)
{
    l->context = halves_y(l->frame);
    l->next = l->area.y;
    uint8_t *block = dr__reuse_buffer_get(warm, lay_out(l, range, NULL));
    if (!block)
        return false;
    lay_out(l, range, block);
    return true;
}

/* --- borders --- */

static uint8_t *line(const dr__lines *l, int c, int64_t y)
{
    return l->plane[c].at + y * l->plane[c].stride;
}

static void copy_line(const dr__lines *l, int c, int64_t to, int64_t from)
{
    memcpy(line(l, c, to) - 1, line(l, c, from) - 1, l->plane_width[c] + 2);
}

/* The samples left and right of the image, where the planes reach its sides. */
static void extend_sideways(const dr__lines *l, int c)
{
    const dr__jpeg_component *comp = &l->frame->component[c];
    const int64_t end = comp->width - l->plane[c].x;
    const bool left = l->plane[c].x == 0, right = end <= (int64_t)l->plane_width[c];
    if (!comp->half_x || (!left && !right))
        return;
    for (int64_t y = 0; y < 8 * comp->v; y++) {
        uint8_t *s = line(l, c, y);
        if (left)
            s[-1] = s[0];
        if (right)
            s[end] = s[end - 1];
    }
}

/* The line above the first of the image, and the one below its last. */
static void extend_vertically(const dr__lines *l, int c, int64_t r)
{
    const dr__jpeg_component *comp = &l->frame->component[c];
    const int64_t last = comp->height - 1 - r * 8 * comp->v;
    if (r == 0)
        copy_line(l, c, -1, 0);
    if (last < 8 * comp->v)
        copy_line(l, c, last + 1, last);
}

/* --- rows --- */

/* The samples of component c for row y of the image (MCU row r is in the planes), at full resolution. */
static const uint8_t *full_line(const dr__lines *l, int c, int64_t r, int64_t y)
{
    const dr__jpeg_component *comp = &l->frame->component[c];
    const int64_t near = (y >> comp->half_y) - r * 8 * comp->v, far = y % 2 ? near + 1 : near - 1;
    const int64_t x = l->area.x >> comp->half_x, skip = l->area.x & comp->half_x;
    const int64_t end = (l->area.x + l->area.w - 1) >> comp->half_x;
    const size_t n = (size_t)(end - x + 1);
    const uint8_t *s = line(l, c, near) + (x - l->plane[c].x);
    if (!comp->half_x && !comp->half_y)
        return s;
    const uint8_t *t = line(l, c, far) + (x - l->plane[c].x);
    if (!comp->half_y)
        l->k->upsample_h2(l->wide[c], s, n);
    else if (comp->half_x)
        l->k->upsample_h2v2(l->wide[c], s, t, n);
    else
        l->k->upsample_v2(l->wide[c], s, t, n, y % 2 ? 2 : 1);
    return l->wide[c] + skip;
}

static void interleave(uint8_t *dst, const uint8_t *const *s, size_t n)
{
    for (size_t i = 0; i < n; i++, dst += 3) {
        dst[0] = s[0][i];
        dst[1] = s[1][i];
        dst[2] = s[2][i];
    }
}

/* One row of pixels as stored (grey or RGB): in `room`, or where it already is. */
static const uint8_t *make_row(const dr__lines *l, int64_t r, int64_t y, uint8_t *room)
{
    const uint8_t *s[DR__JPEG_CHANNELS];
    const size_t n = (size_t)l->area.w;
    for (int c = 0; c < l->frame->n_components; c++)
        s[c] = full_line(l, c, r, y);
    if (l->frame->n_components == 1)
        return s[0];
    if (l->frame->rgb)
        interleave(room, s, n);
    else
        l->k->ycc_to_rgb(room, s[0], s[1], s[2], n);
    return room;
}

static void row_to_sink(const dr__lines *l, int64_t r, int64_t y)
{
    const dr__sink *sink = l->out.sink;
    const bool direct = dr__sink_direct(sink);
    uint8_t *room = direct ? dr__sink_row_at(sink, y - l->area.y) : l->row;
    const uint8_t *row = make_row(l, r, y, room);
    if (!direct || row != room)
        dr__sink_put(sink, y - l->area.y, row);
}

static void row_to_band(const dr__lines *l, int64_t r, int64_t y, uint8_t *to)
{
    const size_t n = (size_t)l->area.w;
    if (l->out.convert) {
        l->out.convert(to, make_row(l, r, y, l->row), n);
        return;
    }
    const uint8_t *row = make_row(l, r, y, to);
    if (row != to)
        memcpy(to, row, n * l->out.pixel);
}

static void give_rows(dr__lines *l, int64_t r, int64_t end)
{
    if (l->next >= end)
        return;
    const int n = (int)(end - l->next);
    for (int i = 0; i < n; i++) {
        if (l->out.bands)
            row_to_band(l, r, l->next + i, l->band + i * l->band_stride);
        else
            row_to_sink(l, r, l->next + i);
    }
    if (l->out.bands)
        l->out.bands->take(l->out.bands, l->band, l->band_stride, n);
    l->next = end;
}

void dr__lines_emit(dr__lines *l, int64_t r)
{
    const dr__jpeg_frame *f = l->frame;
    const bool last = r == f->mcu_rows - 1;
    int64_t end = (r + 1) * f->mcu_height - (l->context && !last ? 1 : 0);
    end = DR_MIN(end, l->area.y + l->area.h);
    for (int c = 0; c < f->n_components; c++) {
        extend_sideways(l, c);
        if (f->component[c].half_y)
            extend_vertically(l, c, r);
    }
    give_rows(l, r, end);
    for (int c = 0; c < f->n_components && l->context; c++)
        copy_line(l, c, -1, 8 * f->component[c].v - 1);
}
