/* bmp: Windows and OS/2 bitmaps of 1, 4, 8, 16, 24 and 32 bits, with bit fields and run lengths.
 *
 * Which files are read, and what becomes of odd ones, is as in Pillow: a palette that is a ramp of greys makes a grey
 * image; masks are those that occur; a 32-bit pixel without masks has no alpha.  Rows lie one after the other, mostly
 * from the bottom up, and are found by their number; run lengths are followed from the beginning.
 */
#include <inttypes.h>
#include <string.h>

#include "codec/image/image_state.h"
#include "codec/image/sink.h"

enum { FILE_HEADER = 14, CORE_HEADER = 12, INFO_HEADER = 40, ALPHA_HEADER = 56, MASKS_AT = FILE_HEADER + INFO_HEADER };
enum { MAX_COLORS = 65536 }; /* that Pillow lets a file claim */
enum { RAW, RLE8, RLE4, BITFIELDS };
enum layout { INDEXED, FIVES /* 5, 5, 5 bits */, SIXES /* 5, 6, 5 */, BYTES };

struct bmp {
    int64_t width, height;
    int bits;     /* of a pixel */
    int row_bits; /* of a pixel, as it is taken from its row: Pillow does not always go by the former */
    uint32_t compression;
    bool top_down;
    size_t data_at; /* where the pixels begin; may be beyond the end */
    enum layout layout;
    int order[4]; /* BYTES: where in a pixel red, green, blue and alpha are */
    uint8_t palette[256][3];
    bool grey, black_white; /* INDEXED: the index is the pixel; any but 0 is white */
    dr__pixel_kind kind;
    const char *stored;
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
    return size >= 2 && data[0] == 'B' && data[1] == 'M';
}

static dr_status truncated(size_t size, dr_error *err)
{
    return dr__fail(err, DR_ERR_FORMAT, "truncated BMP: its %zu bytes end before the image does", size);
}

/* The masks of 32-bit pixels that Pillow knows; each is a byte, or there is none.  All 0 is blue first, alpha last. */
static const uint32_t masks32[][4] = {
    { 0xff0000, 0xff00, 0xff, 0 },          { 0xff000000, 0xff0000, 0xff00, 0 },
    { 0xff000000, 0xff00, 0xff, 0 },        { 0xff000000, 0xff0000, 0xff00, 0xff },
    { 0xff, 0xff00, 0xff0000, 0xff000000 }, { 0xff0000, 0xff00, 0xff, 0xff000000 },
    { 0xff000000, 0xff00, 0xff, 0xff0000 }, { 0, 0, 0, 0 },
};

static int byte_of(uint32_t mask)
{
    return mask == 0xff ? 0 : mask == 0xff00 ? 1 : mask == 0xff0000 ? 2 : 3;
}

static void set_bytes(struct bmp *b, bool alpha, int red, int green, int blue, int last)
{
    b->layout = BYTES;
    b->order[0] = red;
    b->order[1] = green;
    b->order[2] = blue;
    b->order[3] = last;
    b->kind = alpha ? DR__PIXEL_RGBA : DR__PIXEL_RGB;
    b->stored = alpha ? "RGB with alpha" : "RGB";
}

static bool set_masks32(struct bmp *b, const uint32_t masks[4])
{
    for (size_t i = 0; i < DR_COUNT(masks32); i++) {
        if (memcmp(masks, masks32[i], sizeof(masks32[i])) != 0)
            continue;
        if (masks[0] == 0)
            set_bytes(b, true, 2, 1, 0, 3);
        else
            set_bytes(b, masks[3] != 0, byte_of(masks[0]), byte_of(masks[1]), byte_of(masks[2]), byte_of(masks[3]));
        return true;
    }
    return false;
}

static dr_status read_masks(struct bmp *b, const uint8_t *data, size_t size, uint32_t header_size, dr_error *err)
{
    uint32_t m[4] = { 0 };
    size_t n = header_size >= ALPHA_HEADER ? 4 : 3;
    if (size < MASKS_AT + 4 * n)
        return truncated(size, err);
    for (size_t i = 0; i < n; i++)
        m[i] = little(data + MASKS_AT + 4 * i, 4);
    if (b->bits == 32 && set_masks32(b, m))
        return DR_OK;
    if (b->bits == 24 && m[0] == 0xff0000 && m[1] == 0xff00 && m[2] == 0xff) {
        set_bytes(b, false, 2, 1, 0, 0);
        return DR_OK;
    }
    if (b->bits == 16 && m[2] == 0x1f && ((m[0] == 0xf800 && m[1] == 0x7e0) || (m[0] == 0x7c00 && m[1] == 0x3e0))) {
        b->layout = m[0] == 0xf800 ? SIXES : FIVES;
        return DR_OK;
    }
    return dr__fail(err, DR_ERR_UNSUPPORTED, "BMP of %d bits with the masks %x, %x, %x, %x, which Pillow does not read",
                    b->bits, m[0], m[1], m[2], m[3]);
}

/* Is entry i the grey that makes the palette superfluous?  Of two colours they are black and white. */
static bool is_ramp(const uint8_t *entry, uint32_t i, uint32_t n)
{
    uint8_t want = (uint8_t)(n == 2 ? 255 * i : i);
    return entry[0] == want && entry[1] == want && entry[2] == want;
}

static size_t stride_of(const struct bmp *b)
{
    return ((size_t)b->width * (size_t)b->bits + 31) / 32 * 4;
}

static dr_status read_palette(struct bmp *b, const uint8_t *data, size_t size, size_t at, uint32_t n, size_t entry,
                              dr_error *err)
{
    uint64_t there = at < size ? (size - at) / entry : 0; /* entries; the file may end among them */
    bool ramp = there >= n;
    if (n > MAX_COLORS || DR_MIN(n, there) > 256)
        return dr__fail(err, DR_ERR_UNSUPPORTED, "BMP with a palette of %" PRIu32 " colours; 256 are the most", n);
    for (uint32_t i = 0; i < DR_MIN(n, there); i++, at += entry) {
        for (int c = 0; c < 3; c++)
            b->palette[i][c] = data[at + 2 - (size_t)c];
        ramp = ramp && is_ramp(data + at, i, n);
    }
    b->grey = ramp;
    b->black_white = ramp && n <= 2;
    b->kind = ramp ? DR__PIXEL_L : DR__PIXEL_RGB;
    b->stored = b->black_white ? "black and white" : ramp ? "gray" : "palette";
    /* Pillow takes a ramp of two for 1 bit a pixel and any other for 8, whatever the file says. */
    if (ramp && b->compression == RAW)
        b->row_bits = b->black_white ? 1 : 8;
    if (b->width * b->row_bits > 8 * (int64_t)stride_of(b))
        return dr__fail(err, DR_ERR_UNSUPPORTED,
                        "BMP of %d bits with a ramp of %" PRIu32 " greys for a palette, which Pillow does not read",
                        b->bits, n);
    return DR_OK;
}

static dr_status check_kind(const struct bmp *b, dr_error *err)
{
    if (b->bits != 1 && b->bits != 4 && b->bits != 8 && b->bits != 16 && b->bits != 24 && b->bits != 32)
        return dr__fail(err, DR_ERR_UNSUPPORTED, "BMP of %d bits a pixel", b->bits);
    if (b->compression > BITFIELDS)
        return dr__fail(err, DR_ERR_UNSUPPORTED, "BMP of compression %" PRIu32 ", which Pillow does not read",
                        b->compression);
    if ((b->compression == BITFIELDS) == (b->bits < 16) && b->compression != RAW)
        return dr__fail(err, DR_ERR_UNSUPPORTED, "BMP of %d bits with compression %" PRIu32, b->bits, b->compression);
    return DR_OK;
}

/* Layout and palette, for which the header's size and number of colours are known. */
static dr_status read_layout(struct bmp *b, const uint8_t *data, size_t size, uint32_t header_size, uint32_t colors,
                             dr_error *err)
{
    size_t entry = header_size == CORE_HEADER ? 3 : 4, at = FILE_HEADER + header_size;
    b->row_bits = b->bits;
    DR_TRY(check_kind(b, err));
    if (b->bits <= 8) {
        uint32_t n = colors ? colors : 1u << b->bits;
        DR_TRY(read_palette(b, data, size, at, n, entry, err));
        if (b->data_at == at || b->data_at == 0)
            b->data_at = at + entry * n;
        return DR_OK;
    }
    b->kind = DR__PIXEL_RGB;
    b->stored = "RGB";
    if (b->bits == 16)
        b->layout = FIVES;
    else
        set_bytes(b, false, 2, 1, 0, 0);
    if (b->compression == BITFIELDS)
        DR_TRY(read_masks(b, data, size, header_size, err));
    if (b->data_at == 0)
        b->data_at = at + (b->compression == BITFIELDS && header_size == INFO_HEADER ? 12 : 0);
    return DR_OK;
}

static dr_status read_header(struct bmp *b, const uint8_t *data, size_t size, const dr__decode_options *options,
                             dr_error *err)
{
    uint32_t colors = 0;
    *b = (struct bmp){ 0 };
    if (!probe(data, size) || size < FILE_HEADER + 4)
        return dr__fail(err, DR_ERR_FORMAT, "damaged BMP: no header in its %zu bytes", size);
    const uint8_t *h = data + FILE_HEADER;
    uint32_t n = little(h, 4);
    if (n != 12 && n != 40 && n != 52 && n != 56 && n != 64 && n != 108 && n != 124)
        return dr__fail(err, DR_ERR_UNSUPPORTED, "BMP with a header of %" PRIu32 " bytes", n);
    if (size - FILE_HEADER < n)
        return truncated(size, err);
    b->data_at = little(data + 10, 4);
    if (n == CORE_HEADER) {
        b->width = little(h + 4, 2);
        b->height = little(h + 6, 2);
        b->bits = (int)little(h + 10, 2);
    } else {
        b->top_down = h[11] == 0xff;
        b->width = little(h + 4, 4);
        b->height = b->top_down ? ((int64_t)1 << 32) - little(h + 8, 4) : little(h + 8, 4);
        b->bits = (int)little(h + 14, 2);
        b->compression = little(h + 16, 4);
        colors = little(h + 32, 4);
    }
    DR_TRY(dr__check_size(options, "BMP", b->width, b->height, err));
    return read_layout(b, data, size, n, colors, err);
}

static bool is_rle(const struct bmp *b)
{
    return b->compression == RLE8 || b->compression == RLE4;
}

static dr_status open_bmp(struct bmp *b, const uint8_t *data, size_t size, const dr__decode_options *options,
                          dr__image_info *info, dr_error *err)
{
    DR_TRY(read_header(b, data, size, options, err));
    *info = (dr__image_info){ .width = b->width, .height = b->height, .orientation = 1, .stored = b->stored };
    info->bits = b->bits <= 8 ? b->bits : b->bits == 16 ? 5 : 8;
    info->progressive = is_rle(b);
    dr__info_decoded(info, b->kind, options);
    double output = (double)b->width * (double)b->height * info->channels;
    return dr__check_bytes(options, "BMP", output + 5.0 * (double)b->width, err);
}

static dr_status header(dr_codec_state *state, const uint8_t *data, size_t size, const dr__decode_options *options,
                        dr__image_info *info, dr_error *err)
{
    struct bmp b;
    (void)state;
    return open_bmp(&b, data, size, options, info, err);
}

struct target {
    dr__sink sink;
    dr_rect area;
    uint8_t *indices; /* run lengths: a whole row */
    uint8_t *row;     /* finished pixels of the area */
};

static void put_index(const struct bmp *b, uint8_t *dst, uint8_t index)
{
    if (b->grey)
        *dst = b->black_white && index ? 255 : index;
    else
        memcpy(dst, b->palette[index], 3);
}

static void unpack_indexed(const struct bmp *b, const struct target *t, const uint8_t *row, int bits)
{
    size_t pixel = dr__pixel_bytes(b->kind);
    int mask = (1 << bits) - 1;
    for (int64_t i = 0; i < t->area.w; i++) {
        int64_t at = (t->area.x + i) * bits;
        put_index(b, t->row + (size_t)i * pixel, (uint8_t)(row[at / 8] >> (8 - bits - at % 8) & mask));
    }
}

static void unpack_words(const struct bmp *b, const struct target *t, const uint8_t *row)
{
    int green_bits = b->layout == SIXES ? 6 : 5, most = (1 << green_bits) - 1;
    for (int64_t i = 0; i < t->area.w; i++) {
        int v = (int)little(row + 2 * (t->area.x + i), 2);
        t->row[3 * i] = (uint8_t)((v >> (5 + green_bits) & 31) * 255 / 31);
        t->row[3 * i + 1] = (uint8_t)((v >> 5 & most) * 255 / most);
        t->row[3 * i + 2] = (uint8_t)((v & 31) * 255 / 31);
    }
}

static void unpack_pixels(const struct bmp *b, const struct target *t, const uint8_t *row)
{
    size_t channels = dr__pixel_bytes(b->kind), step = (size_t)b->bits / 8;
    for (size_t i = 0; i < (size_t)t->area.w; i++)
        for (size_t c = 0; c < channels; c++)
            t->row[channels * i + c] = row[step * ((size_t)t->area.x + i) + (size_t)b->order[c]];
}

/* Row `stored` of the file, if it is wanted. */
static void put_row(const struct bmp *b, const struct target *t, int64_t stored, const uint8_t *row, int bits)
{
    int64_t y = (b->top_down ? stored : b->height - 1 - stored) - t->area.y;
    if (y < 0 || y >= t->area.h)
        return;
    if (b->layout == INDEXED)
        unpack_indexed(b, t, row, bits);
    else if (b->layout == BYTES)
        unpack_pixels(b, t, row);
    else
        unpack_words(b, t, row);
    dr__sink_put(&t->sink, y, t->row);
}

/* The rows of the file that are wanted: [first, end). */
static void stored_rows(const struct bmp *b, const dr_rect *area, int64_t *first, int64_t *end)
{
    *first = b->top_down ? area->y : b->height - area->y - area->h;
    *end = *first + area->h;
}

static dr_status read_rows(const struct bmp *b, const struct target *t, const uint8_t *data, size_t size, dr_error *err)
{
    size_t stride = stride_of(b);
    size_t needed = ((size_t)b->width * (size_t)b->row_bits + 7) / 8; /* the last row may lack the rest */
    int64_t first, end;
    stored_rows(b, &t->area, &first, &end);
    size_t last_at = (size_t)(end - 1) * stride;
    if (b->data_at > size || size - b->data_at < needed || size - b->data_at - needed < last_at)
        return truncated(size, err);
    for (int64_t y = first; y < end; y++)
        put_row(b, t, y, data + b->data_at + (size_t)y * stride, b->row_bits);
    return DR_OK;
}

/* Run lengths make one pixel after the other, over the ends of rows. */
struct rle {
    const struct bmp *bmp;
    const struct target *target;
    const uint8_t *data;
    size_t size, at;
    int64_t made, last; /* pixels; decoding ends with the last that is wanted */
    int64_t column;     /* as encoded runs count it: it may pass the end of the row */
};

static void add_pixel(struct rle *r, uint8_t index)
{
    int64_t width = r->bmp->width, x = r->made % width;
    if (r->made == r->last)
        return;
    r->target->indices[x] = index;
    r->made++;
    if (x == width - 1)
        put_row(r->bmp, r->target, r->made / width - 1, r->target->indices, 8);
}

static void add_zeros(struct rle *r, int64_t n)
{
    for (int64_t i = 0; i < n && r->made < r->last; i++)
        add_pixel(r, 0);
}

static void add_run(struct rle *r, int n, uint8_t value)
{
    int64_t left = r->bmp->width - r->column, fit = n > left ? DR_MAX(left, 0) : n;
    for (int64_t i = 0; i < fit; i++)
        add_pixel(r, r->bmp->compression == RLE8 ? value : i % 2 ? value & 15 : value >> 4);
    r->column += fit;
}

/* Pixels one by one; false: the file ends among them. */
static bool add_literal(struct rle *r, int n)
{
    bool half = r->bmp->compression == RLE4;
    for (int i = 0; i < n; i++) {
        size_t at = r->at + (size_t)(half ? i / 2 : i);
        if (at >= r->size)
            return false;
        uint8_t v = r->data[at];
        add_pixel(r, !half ? v : i % 2 ? v & 15 : v >> 4);
    }
    r->at += (size_t)(half ? (n + 1) / 2 : n);
    r->at += r->at % 2; /* to an even place in the file */
    r->column += n;
    return true;
}

/* What follows a 0: the end of a row or of the image, a leap, or literal pixels.  False: nothing comes after it. */
static bool escape(struct rle *r, int code)
{
    int64_t width = r->bmp->width;
    if (code > 2)
        return add_literal(r, code);
    if (code == 1)
        return false;
    if (code == 0) {
        add_zeros(r, (width - r->made % width) % width);
        r->column = 0;
        return true;
    }
    if (r->size - r->at < 2)
        return false;
    int right = r->data[r->at], up = r->data[r->at + 1];
    r->at += 2;
    add_zeros(r, right + up * width);
    r->column = r->made % width;
    return true;
}

static dr_status read_runs(const struct bmp *b, const struct target *t, const uint8_t *data, size_t size, dr_error *err)
{
    struct rle r = { .bmp = b, .target = t, .data = data, .size = size, .at = DR_MIN(b->data_at, size) };
    int64_t first, end;
    stored_rows(b, &t->area, &first, &end);
    r.last = end * b->width;
    for (bool more = true; more && r.made < r.last && r.size - r.at >= 2;) {
        int n = data[r.at], value = data[r.at + 1];
        r.at += 2;
        if (n > 0)
            add_run(&r, n, (uint8_t)value);
        else
            more = escape(&r, value);
        r.at = DR_MIN(r.at, r.size);
    }
    if (r.made == r.last)
        return DR_OK;
    return dr__fail(err, DR_ERR_FORMAT, "truncated BMP: its run lengths end after %" PRId64 " of %" PRId64 " pixels",
                    r.made, b->width * b->height);
}

static dr_status decode(dr_codec_state *state, const uint8_t *data, size_t size, const dr__decode_options *options,
                        const dr_rect *rect, dr_view *out, dr_error *err)
{
    struct bmp b;
    dr__image_info info;
    DR_TRY(open_bmp(&b, data, size, options, &info, err));
    DR_TRY(dr__check_target(&info, rect, out, err));
    struct target t = { .area = *rect };
    DR_TRY(dr__sink_open(&t.sink, state, b.kind, options, 1, rect->w, rect->h, out, err));
    t.indices = dr__reuse_buffer_get(&state->rows, 5 * (size_t)b.width);
    if (!t.indices)
        return dr__fail(err, DR_ERR_NOMEM, "no memory for a row of %" PRId64 " BMP pixels", b.width);
    t.row = t.indices + b.width;
    return is_rle(&b) ? read_runs(&b, &t, data, size, err) : read_rows(&b, &t, data, size, err);
}

static double cost(const dr__image_info *info, size_t size, const dr_rect *rect)
{
    double runs = info->progressive ? (double)size + 2.0 * (double)info->width * (double)info->height : 0;
    return runs + 3.0 * (double)rect->w * (double)rect->h;
}

const dr_image_codec dr__codec_bmp = {
    .name = "bmp",
    .summary = "Windows and OS/2 bitmaps, mostly not compressed",
    .library = "drapps",
    .probe = probe,
    .header = header,
    .decode = decode,
    .cost = cost,
};
