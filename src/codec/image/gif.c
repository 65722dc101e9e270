/* gif: the first frame of a GIF by giflib, as Pillow shows it.
 *
 * A frame may be smaller than the screen, or reach beyond it, which makes the image larger.  Where there is no frame,
 * the image has the transparent colour, or colour 0.  A palette that is a ramp of greys, or none, makes a grey image.
 * Rows come one after the other, so a rectangle costs the rows above it too; interlaced frames are decoded as a whole.
 */
#include <inttypes.h>
#include <string.h>

#include <gif_lib.h>

#include "codec/image/image_state.h"
#include "codec/image/sink.h"

#define TEXT(x) #x
#define TEXT_OF(x) TEXT(x)

enum { SIGNATURE = 6, OPAQUE = -1 };

struct job {
    dr_codec_state *state;
    const uint8_t *data;
    size_t size, at;
    int made_up; /* bytes that were asked for after the end, and given as 0 */
    bool ended;  /* more was asked for than there is */
    const dr__decode_options *options;
    dr_error *err;

    GifFileType *gif;
    dr__image_info facts;
    dr__pixel_kind kind;
    int64_t width, height;
    dr_rect frame;
    bool interlaced;
    int transparent;        /* index, or OPAQUE */
    uint8_t colors[256][4]; /* the pixel that an index becomes, as the kind has it */

    const dr_rect *rect; /* NULL: only the header is asked for */
    dr_view *out;
};

/* Whole blocks, as Pillow wants them.  The byte that ends the last one may be missing: a 0 is given for it and counted.
 */
static int on_read(GifFileType *gif, GifByteType *to, int n)
{
    struct job *j = gif->UserData;
    if (n == 1 && j->at == j->size) {
        *to = 0;
        j->made_up++;
        return 1;
    }
    if (n < 0 || (size_t)n > j->size - j->at) {
        j->ended = true;
        return 0;
    }
    memcpy(to, j->data + j->at, (size_t)n);
    j->at += (size_t)n;
    return n;
}

static bool probe(const uint8_t *data, size_t size)
{
    return size >= SIGNATURE && (memcmp(data, "GIF87a", SIGNATURE) == 0 || memcmp(data, "GIF89a", SIGNATURE) == 0);
}

static dr_status fail(const struct job *j, int code)
{
    if (code == D_GIF_ERR_NOT_ENOUGH_MEM)
        return dr__fail(j->err, DR_ERR_NOMEM, "no memory for a GIF decoder");
    if (j->ended || j->made_up)
        return dr__fail(j->err, DR_ERR_FORMAT, "truncated GIF: its %zu bytes end before the image does", j->size);
    const char *text = GifErrorString(code);
    return dr__fail(j->err, DR_ERR_FORMAT, "damaged GIF: %s", text ? text : "its first frame cannot be read");
}

/* A graphic control extension says which colour is transparent; others are passed over. */
static dr_status read_extension(struct job *j)
{
    int code;
    GifByteType *block;
    if (DGifGetExtension(j->gif, &code, &block) != GIF_OK)
        return fail(j, j->gif->Error);
    if (code == GRAPHICS_EXT_FUNC_CODE && block) {
        if (block[0] < 4)
            return dr__fail(j->err, DR_ERR_FORMAT, "damaged GIF: a graphic control extension of %d bytes", block[0]);
        if (block[1] & 1)
            j->transparent = block[4];
    }
    while (block)
        if (DGifGetExtensionNext(j->gif, &block) != GIF_OK)
            return fail(j, j->gif->Error);
    return DR_OK;
}

/* Goes on to the data of the first frame. */
static dr_status find_frame(struct job *j)
{
    for (;;) {
        GifRecordType type;
        if (DGifGetRecordType(j->gif, &type) != GIF_OK) {
            if (j->gif->Error == D_GIF_ERR_WRONG_RECORD && !j->made_up)
                continue; /* a byte that begins nothing is passed over */
            return fail(j, j->gif->Error);
        }
        if (type == TERMINATE_RECORD_TYPE)
            return dr__fail(j->err, DR_ERR_FORMAT, "damaged GIF: there is no frame in it");
        if (type == IMAGE_DESC_RECORD_TYPE)
            break;
        if (type == EXTENSION_RECORD_TYPE)
            DR_TRY(read_extension(j));
    }
    return DGifGetImageDesc(j->gif) == GIF_OK ? DR_OK : fail(j, j->gif->Error);
}

/* Is there a palette, and not one that gives each index the grey of the same number? */
static bool has_colors(const ColorMapObject *map)
{
    for (int i = 0; map && i < map->ColorCount; i++) {
        const GifColorType *c = &map->Colors[i];
        if (c->Red != i || c->Green != i || c->Blue != i)
            return true;
    }
    return false;
}

static void make_grey(struct job *j)
{
    j->kind = j->transparent == OPAQUE ? DR__PIXEL_L : DR__PIXEL_LA;
    for (int i = 0; i < 256; i++) {
        j->colors[i][0] = (uint8_t)i;
        j->colors[i][1] = i == j->transparent ? 0 : 255;
    }
    j->facts.stored = "gray";
}

/* Indices beyond the palette are black. */
static void make_colors(struct job *j, const ColorMapObject *map)
{
    j->kind = j->transparent == OPAQUE ? DR__PIXEL_RGB : DR__PIXEL_RGBA;
    for (int i = 0; i < 256; i++) {
        if (i < map->ColorCount)
            memcpy(j->colors[i], (uint8_t[]){ map->Colors[i].Red, map->Colors[i].Green, map->Colors[i].Blue }, 3);
        j->colors[i][3] = i == j->transparent ? 0 : 255;
    }
    j->facts.stored = "palette";
}

static dr_status choose_colors(struct job *j)
{
    const ColorMapObject *local = j->gif->Image.ColorMap, *global = j->gif->SColorMap;
    if (local && !has_colors(local) && has_colors(global))
        return dr__fail(
            j->err, DR_ERR_UNSUPPORTED,
            "GIF whose first frame has a grey palette beside that of the file, where Pillow takes the wrong one");
    const ColorMapObject *map = local ? local : global;
    if (has_colors(map))
        make_colors(j, map);
    else
        make_grey(j);
    return DR_OK;
}

static dr_status check_memory(struct job *j)
{
    double area = (double)j->width * (double)j->height;
    double frame = j->interlaced ? (double)j->frame.w * (double)j->frame.h : (double)j->frame.w;
    double rows = (double)j->width * (double)dr__pixel_bytes(j->kind);
    return dr__check_bytes(j->options, "GIF", area * j->facts.channels + frame + rows, j->err);
}

static dr_status read_header(struct job *j)
{
    DR_TRY(find_frame(j));
    const GifImageDesc *d = &j->gif->Image;
    j->frame = (dr_rect){ d->Left, d->Top, d->Width, d->Height };
    j->interlaced = d->Interlace;
    j->width = DR_MAX(j->gif->SWidth, j->frame.x + j->frame.w);
    j->height = DR_MAX(j->gif->SHeight, j->frame.y + j->frame.h);
    if (j->frame.w < 1 || j->frame.h < 1)
        return dr__fail(j->err, DR_ERR_FORMAT, "damaged GIF: a frame of %" PRId64 " x %" PRId64 " pixels", j->frame.w,
                        j->frame.h);
    DR_TRY(dr__check_size(j->options, "GIF", j->width, j->height, j->err));
    DR_TRY(choose_colors(j));
    j->facts.width = j->width;
    j->facts.height = j->height;
    j->facts.bits = 8;
    j->facts.progressive = j->interlaced;
    j->facts.orientation = 1;
    dr__info_decoded(&j->facts, j->kind, j->options);
    return check_memory(j);
}

struct target {
    dr__sink sink;
    uint8_t *row; /* finished pixels of the rectangle */
};

/* Row y of the image; `indices` are those of the frame's row, NULL where it has none. */
static void put_row(const struct job *j, const struct target *t, int64_t y, const uint8_t *indices)
{
    size_t pixel = dr__pixel_bytes(j->kind);
    uint8_t ground = (uint8_t)(j->transparent == OPAQUE ? 0 : j->transparent);
    for (int64_t i = 0; i < j->rect->w; i++) {
        int64_t x = j->rect->x + i - j->frame.x;
        uint8_t index = indices && x >= 0 && x < j->frame.w ? indices[x] : ground;
        memcpy(t->row + (size_t)i * pixel, j->colors[index], pixel);
    }
    dr__sink_put(&t->sink, y - j->rect->y, t->row);
}

/* The next row that the file has; `last`: none comes after it, so that its end may be missing. */
static dr_status read_line(struct job *j, uint8_t *line, bool last)
{
    if (DGifGetLine(j->gif, line, (int)j->frame.w) != GIF_OK || j->made_up > (last ? 1 : 0))
        return fail(j, j->gif->Error);
    return DR_OK;
}

static dr_status read_plain(struct job *j, const struct target *t, uint8_t *line)
{
    int64_t end = j->rect->y + j->rect->h;
    for (int64_t y = 0; y < end; y++) {
        bool inside = y >= j->frame.y && y < j->frame.y + j->frame.h;
        if (inside)
            DR_TRY(read_line(j, line, y == j->frame.y + j->frame.h - 1));
        if (y >= j->rect->y)
            put_row(j, t, y, inside ? line : NULL);
    }
    return DR_OK;
}

static dr_status read_interlaced(struct job *j, const struct target *t, uint8_t *lines)
{
    static const struct {
        int first, step;
    } passes[] = { { 0, 8 }, { 4, 8 }, { 2, 4 }, { 1, 2 } };
    int64_t n = 0;
    for (size_t k = 0; k < DR_COUNT(passes); k++)
        for (int64_t y = passes[k].first; y < j->frame.h; y += passes[k].step)
            DR_TRY(read_line(j, lines + (size_t)(y * j->frame.w), ++n == j->frame.h));
    for (int64_t y = j->rect->y; y < j->rect->y + j->rect->h; y++) {
        int64_t line = y - j->frame.y;
        put_row(j, t, y, line >= 0 && line < j->frame.h ? lines + (size_t)(line * j->frame.w) : NULL);
    }
    return DR_OK;
}

static dr_status read_pixels(struct job *j)
{
    struct target t;
    DR_TRY(dr__check_target(&j->facts, j->rect, j->out, j->err));
    DR_TRY(dr__sink_open(&t.sink, j->state, j->kind, j->options, 1, j->rect->w, j->rect->h, j->out, j->err));
    size_t lines = (size_t)(j->frame.w * (j->interlaced ? j->frame.h : 1));
    uint8_t *room = dr__reuse_buffer_get(&j->state->rows, lines + (size_t)j->rect->w * dr__pixel_bytes(j->kind));
    if (!room)
        return dr__fail(j->err, DR_ERR_NOMEM, "no memory for %zu bytes of GIF rows", lines);
    t.row = room + lines;
    return j->interlaced ? read_interlaced(j, &t, room) : read_plain(j, &t, room);
}

static dr_status run(struct job *j)
{
    int code = 0;
    j->transparent = OPAQUE;
    if (!probe(j->data, j->size))
        return dr__fail(j->err, DR_ERR_FORMAT, "damaged GIF: no header in its %zu bytes", j->size);
    j->gif = DGifOpen(j, on_read, &code);
    if (!j->gif)
        return fail(j, code);
    dr_status status = read_header(j);
    if (status == DR_OK && j->rect)
        status = read_pixels(j);
    DGifCloseFile(j->gif, NULL);
    dr__reuse_buffer_trim(&j->state->rows);
    return status;
}

static dr_status header(dr_codec_state *state, const uint8_t *data, size_t size, const dr__decode_options *options,
                        dr__image_info *info, dr_error *err)
{
    struct job j = { .state = state, .data = data, .size = size, .options = options, .err = err };
    DR_TRY(run(&j));
    *info = j.facts;
    return DR_OK;
}

static dr_status decode(dr_codec_state *state, const uint8_t *data, size_t size, const dr__decode_options *options,
                        const dr_rect *rect, dr_view *out, dr_error *err)
{
    struct job j = {
        .state = state, .data = data, .size = size, .options = options, .err = err, .rect = rect, .out = out
    };
    return run(&j);
}

/* An animation is a large file of which only the beginning is read. */
static double cost(const dr__image_info *info, size_t size, const dr_rect *rect)
{
    double area = (double)info->width * (double)info->height;
    double rows = info->progressive ? 1.0 : (double)(rect->y + rect->h) / (double)info->height;
    return 4.0 * rows * (area + DR_MIN((double)size, area)) + 3.0 * (double)rect->w * (double)rect->h;
}

const dr_image_codec dr__codec_gif = {
    .name = "gif",
    .summary = "graphics of at most 256 colours; of an animation the first frame",
    .library = "giflib " TEXT_OF(GIFLIB_MAJOR) "." TEXT_OF(GIFLIB_MINOR) "." TEXT_OF(GIFLIB_RELEASE),
    .probe = probe,
    .header = header,
    .decode = decode,
    .cost = cost,
};
