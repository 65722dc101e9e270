/* png: PNG of every colour type and depth by libpng.
 *
 * libpng reports errors by a callback that must not return; ours jumps back into run(), the only setjmp.  Gamma,
 * colour profiles and backgrounds are passed over, as Pillow does.  Rows come one after the other, so a rectangle
 * costs the rows above it too; decoding stops after its last row.  Interlaced images are decoded as a whole.
 */
#include <assert.h>
#include <setjmp.h>
#include <string.h>

#include <png.h>

#include "base/alloc.h"
#include "codec/codec_config.h"
#include "codec/image/image_state.h"
#include "codec/image/exif.h"
#include "codec/image/sink.h"

enum { SIGNATURE = 8, CHUNK_FRAME = 12, IHDR_END = SIGNATURE + CHUNK_FRAME + 13, MAX_CHUNK_BYTES = 8 << 20 };

static const uint8_t signature[SIGNATURE] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n' };

struct job {
    dr_codec_state *state;
    const uint8_t *data;
    size_t size, at;
    const dr__decode_options *options;
    dr_error *err;
    dr_status status;

    png_structp png;
    png_infop info;
    dr__image_info facts;
    dr__pixel_kind kind;   /* of the rows that libpng gives */
    int64_t width, height; /* as stored */
    bool interlaced;
    bool keyed; /* one colour stands for "transparent" and becomes alpha */
    uint8_t key[3];

    const dr_rect *rect; /* NULL: only the header is asked for */
    dr_view *out;
};

static void on_error(png_structp png, png_const_charp text)
{
    struct job *j = png_get_error_ptr(png);
    if (j->status == DR_OK)
        j->status = dr__fail(j->err, DR_ERR_FORMAT, "damaged PNG: %s", text);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

static void *on_alloc(png_structp png, png_alloc_size_t size)
{
    (void)png;
    return dr__alloc(size);
}

static void on_free(png_structp png, void *p)
{
    (void)png;
    dr__free(p);
}

/* Ends the call when a check has failed. */
static void check(struct job *j, dr_status status)
{
    j->status = status;
    if (status != DR_OK)
        png_longjmp(j->png, 1);
}

static void on_read(png_structp png, png_bytep to, size_t n)
{
    struct job *j = png_get_io_ptr(png);
    if (n > j->size - j->at)
        check(j, dr__fail(j->err, DR_ERR_FORMAT, "truncated PNG: its %zu bytes end before the image does", j->size));
    memcpy(to, j->data + j->at, n);
    j->at += n;
}

static uint32_t u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* An uncompressed iTXt chunk with an XMP packet; 0 when it is something else. */
static int xmp_chunk(const uint8_t *data, size_t size)
{
    static const char key[] = "XML:com.adobe.xmp";
    if (size < sizeof(key) + 2 || memcmp(data, key, sizeof(key)) != 0 || data[sizeof(key)] != 0)
        return 0;
    return dr__xmp_orientation(data + sizeof(key) + 2, size - sizeof(key) - 2);
}

/* Metadata may stand before or after the pixels, so the chunks are walked. */
static int orientation_of(const uint8_t *data, size_t size)
{
    int exif = 0, xmp = 0;
    for (size_t at = SIGNATURE; size - at >= CHUNK_FRAME;) {
        size_t n = u32(data + at);
        if (n > size - at - CHUNK_FRAME)
            break;
        const uint8_t *body = data + at + 8;
        if (memcmp(data + at + 4, "eXIf", 4) == 0)
            exif = dr__exif_orientation(body, n);
        else if (memcmp(data + at + 4, "iTXt", 4) == 0 && xmp == 0)
            xmp = xmp_chunk(body, n);
        at += n + CHUNK_FRAME;
    }
    return exif ? exif : xmp ? xmp : 1;
}

static bool probe(const uint8_t *data, size_t size)
{
    return size >= SIGNATURE && memcmp(data, signature, SIGNATURE) == 0;
}

/* The declared size stands at a fixed place; it is checked before libpng sees anything. */
static dr_status check_declared(const struct job *j)
{
    if (j->size < IHDR_END || memcmp(j->data + SIGNATURE + 4, "IHDR", 4) != 0)
        return dr__fail(j->err, DR_ERR_FORMAT, "damaged PNG: no header in its %zu bytes", j->size);
    return dr__check_size(j->options, "PNG", u32(j->data + 16), u32(j->data + 20), j->err);
}

/* Chunks that say nothing about pixels as Pillow makes them: not parsed, since some are large or compressed. */
static void pass_over_metadata(png_structp png)
{
#ifdef PNG_HANDLE_AS_UNKNOWN_SUPPORTED
    static const png_byte chunks[] = "bKGD\0cHRM\0cICP\0eXIf\0gAMA\0hIST\0iCCP\0iTXt\0oFFs\0pCAL\0pHYs\0"
                                     "sBIT\0sCAL\0sPLT\0sRGB\0sTER\0tEXt\0tIME\0zTXt";
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, chunks, (int)(sizeof(chunks) / 5));
#else
    (void)png;
#endif
}

static const char *stored_name(int color_type)
{
    switch (color_type) {
    case PNG_COLOR_TYPE_GRAY:
        return "gray";
    case PNG_COLOR_TYPE_GRAY_ALPHA:
        return "gray with alpha";
    case PNG_COLOR_TYPE_PALETTE:
        return "palette";
    case PNG_COLOR_TYPE_RGB:
        return "RGB";
    default:
        return "RGB with alpha";
    }
}

/* The transparent colour as Pillow compares it: the low byte of the stored value with the 8-bit pixel. */
static void find_key(struct job *j, int color_type, int depth)
{
    png_color_16p color = NULL;
    png_bytep alpha = NULL;
    int n = 0;
    if (j->options->mode != DR__MODE_RGBA || !png_get_tRNS(j->png, j->info, &alpha, &n, &color) || !color)
        return;
    j->keyed = true;
    if (color_type == PNG_COLOR_TYPE_RGB) {
        j->key[0] = (uint8_t)color->red;
        j->key[1] = (uint8_t)color->green;
        j->key[2] = (uint8_t)color->blue;
    } else {
        uint8_t gray = depth == 1 ? (color->gray ? 255 : 0) : (uint8_t)color->gray;
        memset(j->key, gray, sizeof(j->key));
    }
}

/* Which rows libpng shall give, and what they are. */
static void choose_kind(struct job *j, int color_type, int depth)
{
    bool deep = depth == 16;
    bool keep_deep = deep && j->options->mode == DR__MODE_UNCHANGED;
    switch (color_type) {
    case PNG_COLOR_TYPE_GRAY:
        j->kind = deep ? DR__PIXEL_L16 : DR__PIXEL_L;
        keep_deep = deep;
        find_key(j, color_type, depth);
        png_set_expand_gray_1_2_4_to_8(j->png);
        break;
    case PNG_COLOR_TYPE_GRAY_ALPHA:
        j->kind = keep_deep ? DR__PIXEL_LA16 : DR__PIXEL_LA;
        break;
    case PNG_COLOR_TYPE_PALETTE:
        j->kind = png_get_valid(j->png, j->info, PNG_INFO_tRNS) ? DR__PIXEL_RGBA : DR__PIXEL_RGB;
        png_set_palette_to_rgb(j->png);
        break;
    case PNG_COLOR_TYPE_RGB:
        j->kind = keep_deep ? DR__PIXEL_RGB16 : DR__PIXEL_RGB;
        find_key(j, color_type, depth);
        break;
    default:
        j->kind = keep_deep ? DR__PIXEL_RGBA16 : DR__PIXEL_RGBA;
        break;
    }
    if (deep && !keep_deep)
        png_set_strip_16(j->png);
#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (keep_deep)
        png_set_swap(j->png);
#endif
}

static void read_header(struct job *j)
{
    png_read_info(j->png, j->info);
    int color_type = png_get_color_type(j->png, j->info);
    int depth = png_get_bit_depth(j->png, j->info);
    j->width = png_get_image_width(j->png, j->info);
    j->height = png_get_image_height(j->png, j->info);
    j->interlaced = png_get_interlace_type(j->png, j->info) != PNG_INTERLACE_NONE;
    choose_kind(j, color_type, depth);

    j->facts.width = j->width;
    j->facts.height = j->height;
    j->facts.bits = depth;
    j->facts.stored = stored_name(color_type);
    j->facts.progressive = j->interlaced;
    j->facts.orientation = j->options->exif_orient ? orientation_of(j->data, j->size) : 1;
    dr__info_decoded(&j->facts, j->kind, j->options);

    size_t pixel = dr__pixel_bytes(j->kind);
    double area = (double)j->width * (double)j->height;
    double output = area * j->facts.channels * (j->facts.dtype == DR_U16 ? 2 : 1);
    check(j, dr__check_bytes(j->options, "PNG", output + (double)pixel * (j->interlaced ? area : (double)j->width),
                             j->err));
}

static void *need(struct job *j, dr__reuse_buffer *warm, size_t size)
{
    void *p = dr__reuse_buffer_get(warm, size);
    if (!p)
        check(j, dr__fail(j->err, DR_ERR_NOMEM, "no memory for %zu bytes of PNG rows", size));
    return p;
}

struct target {
    dr__sink sink;
    dr_rect area; /* in stored pixels */
    size_t pixel; /* bytes, as libpng gives it */
    uint8_t *keyed;
};

/* Gives the transparent colour its alpha: n pixels of kind j->kind become RGBA. */
static const uint8_t *key_row(const struct job *j, const struct target *t, const uint8_t *row)
{
    size_t n = (size_t)t->area.w;
    dr__pixel_converter(j->kind, DR__MODE_RGBA)(t->keyed, row, n);
    for (size_t i = 0; i < n; i++)
        if (memcmp(t->keyed + 4 * i, j->key, 3) == 0)
            t->keyed[4 * i + 3] = 0;
    return t->keyed;
}

/* Takes row y of the whole image, if it is wanted. */
static void put_row(const struct job *j, const struct target *t, int64_t y, const uint8_t *row)
{
    if (y < t->area.y || y >= t->area.y + t->area.h)
        return;
    row += (size_t)t->area.x * t->pixel;
    dr__sink_put(&t->sink, y - t->area.y, j->keyed ? key_row(j, t, row) : row);
}

static void read_plain(struct job *j, const struct target *t)
{
    uint8_t *row = need(j, &j->state->rows, (size_t)j->width * t->pixel);
    bool in_place = dr__sink_direct(&t->sink) && !j->keyed && t->area.w == j->width;
    for (int64_t y = 0; y < t->area.y + t->area.h; y++) {
        bool wanted = y >= t->area.y;
        if (in_place && wanted) {
            png_read_row(j->png, dr__sink_row_at(&t->sink, y - t->area.y), NULL);
            continue;
        }
        png_read_row(j->png, row, NULL);
        put_row(j, t, y, row);
    }
}

static void read_interlaced(struct job *j, const struct target *t)
{
    size_t row_bytes = (size_t)j->width * t->pixel;
    uint8_t *image = need(j, &j->state->rows, row_bytes * (size_t)j->height);
    png_bytep *rows = need(j, &j->state->pointers, (size_t)j->height * sizeof(*rows));
    for (int64_t y = 0; y < j->height; y++)
        rows[y] = image + (size_t)y * row_bytes;
    png_read_image(j->png, rows);
    for (int64_t y = t->area.y; y < t->area.y + t->area.h; y++)
        put_row(j, t, y, rows[y]);
}

static void read_pixels(struct job *j)
{
    struct target t = { .pixel = dr__pixel_bytes(j->kind) };
    check(j, dr__check_target(&j->facts, j->rect, j->out, j->err));
    t.area = dr__orient_rect(j->facts.orientation, j->width, j->height, j->rect);
    check(j, dr__sink_open(&t.sink, j->state, j->keyed ? DR__PIXEL_RGBA : j->kind, j->options, j->facts.orientation,
                           t.area.w, t.area.h, j->out, j->err));
    if (j->keyed)
        t.keyed = need(j, &j->state->keyed, (size_t)t.area.w * 4);
    if (j->interlaced)
        png_set_interlace_handling(j->png);
    png_read_update_info(j->png, j->info);
    assert(png_get_rowbytes(j->png, j->info) == (size_t)j->width * t.pixel);
    if (j->interlaced)
        read_interlaced(j, &t);
    else
        read_plain(j, &t);
}

static dr_status run(struct job *j)
{
    DR_TRY(check_declared(j));
    j->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, j, on_error, on_warning, NULL, on_alloc, on_free);
    if (!j->png)
        return dr__fail(j->err, DR_ERR_NOMEM, "no memory for a PNG decoder");
    if (setjmp(png_jmpbuf(j->png)) == 0) {
        j->info = png_create_info_struct(j->png);
        if (!j->info)
            check(j, dr__fail(j->err, DR_ERR_NOMEM, "no memory for a PNG decoder"));
        png_set_read_fn(j->png, j, on_read);
        png_set_user_limits(j->png, 0x7fffffff, 0x7fffffff);
        png_set_chunk_malloc_max(j->png, MAX_CHUNK_BYTES);
        pass_over_metadata(j->png);
        read_header(j);
        if (j->rect)
            read_pixels(j);
    }
    png_destroy_read_struct(&j->png, &j->info, NULL);
    dr__reuse_buffer_trim(&j->state->rows);
    return j->status;
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

/* Inflating and unfiltering run from the top to the last row wanted; interlaced images are decoded as a whole. */
static double cost(const dr__image_info *info, size_t size, const dr_rect *rect)
{
    double rows = info->progressive ? 1.0 : (double)(rect->y + rect->h) / (double)info->height;
    return rows * (4.0 * (double)size + 2.0 * (double)info->width * (double)info->height * info->channels) +
           (double)rect->w * (double)rect->h;
}

const dr_image_codec dr__codec_png = {
    .name = "png",
    .summary = "graphics, lossless",
    .library = "libpng " DR_PNG_VERSION,
    .probe = probe,
    .header = header,
    .decode = decode,
    .cost = cost,
};
