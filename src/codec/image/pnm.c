/* pnm: Netpbm's bitmaps, graymaps and pixmaps (PBM, PGM, PPM), as text (P1 to P3) and as bytes (P4 to P6).
 *
 * The header is text: magic, width, height and, but for bitmaps, the largest value (maxval).  Samples are scaled from
 * 0..maxval to 0..255 or, for grey with a maxval above 255, to 0..65535, with Pillow's rounding.  Rows of bytes are
 * found by their number; text is read from the beginning.
 */
#include <inttypes.h>
#include <string.h>

#include "codec/image/image_state.h"
#include "codec/image/sink.h"

enum { MAX_DIGITS = 10, MAGIC = 2 };

struct pnm {
    bool text, bitmap;
    int channels;
    uint32_t maxval;
    int64_t width, height;
    size_t data_at;
    dr__pixel_kind kind;
    const char *stored;
};

struct reader {
    const uint8_t *data;
    size_t size, at;
};

static bool is_space(int c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The next byte, -1 at the end.  A comment, from # to the end of its line, is as if it were not there, even inside a
 * number. */
static int next(struct reader *r)
{
    while (r->at < r->size) {
        int c = r->data[r->at++];
        if (c != '#')
            return c;
        while (r->at < r->size && r->data[r->at] != '\r' && r->data[r->at] != '\n')
            r->at++;
        r->at += r->at < r->size;
    }
    return -1;
}

static int next_visible(struct reader *r)
{
    int c = next(r);
    while (is_space(c))
        c = next(r);
    return c;
}

static dr_status truncated(size_t size, dr_error *err)
{
    return dr__fail(err, DR_ERR_FORMAT, "truncated PNM: its %zu bytes end before the image does", size);
}

/* A number and the byte after it, which is a space or the end of the file. */
static dr_status read_number(struct reader *r, int64_t *value, dr_error *err)
{
    int c = next_visible(r), digits = 0;
    if (c < 0)
        return truncated(r->size, err);
    for (*value = 0; c >= 0 && !is_space(c); c = next(r)) {
        if (c < '0' || c > '9')
            return dr__fail(err, DR_ERR_FORMAT, "damaged PNM: byte %d before offset %zu, where a digit should be", c,
                            r->at);
        if (++digits > MAX_DIGITS)
            return dr__fail(err, DR_ERR_FORMAT, "damaged PNM: a number of more than %d digits before offset %zu",
                            MAX_DIGITS, r->at);
        *value = *value * 10 + (c - '0');
    }
    return DR_OK;
}

static bool probe(const uint8_t *data, size_t size)
{
    return size > MAGIC && data[0] == 'P' && data[1] >= '1' && data[1] <= '6' && is_space(data[MAGIC]);
}

static void choose_kind(struct pnm *p, dr__color_mode mode)
{
    bool deep = p->maxval > 255;
    if (p->channels == 1) {
        p->kind = deep ? DR__PIXEL_L16 : DR__PIXEL_L;
        p->stored = p->bitmap ? "bitmap" : "gray";
    } else {
        p->kind = deep && mode == DR__MODE_UNCHANGED ? DR__PIXEL_RGB16 : DR__PIXEL_RGB;
        p->stored = "RGB";
    }
}

static dr_status read_header(struct pnm *p, const uint8_t *data, size_t size, const dr__decode_options *options,
                             dr_error *err)
{
    struct reader r = { data, size, MAGIC + 1 };
    int64_t maxval = 255;
    if (!probe(data, size))
        return dr__fail(err, DR_ERR_FORMAT, "damaged PNM: no magic in its %zu bytes", size);
    int type = data[1] - '1';
    *p = (struct pnm){ .text = type < 3, .bitmap = type % 3 == 0, .channels = type % 3 == 2 ? 3 : 1 };
    DR_TRY(read_number(&r, &p->width, err));
    DR_TRY(read_number(&r, &p->height, err));
    if (!p->bitmap)
        DR_TRY(read_number(&r, &maxval, err));
    if (maxval < 1 || maxval > 65535)
        return dr__fail(err, DR_ERR_FORMAT, "damaged PNM: the largest value must be 1 to 65535, is %" PRId64, maxval);
    DR_TRY(dr__check_size(options, "PNM", p->width, p->height, err));
    p->maxval = (uint32_t)maxval;
    p->data_at = r.at;
    choose_kind(p, options->mode);
    return DR_OK;
}

static void describe(const struct pnm *p, const dr__decode_options *options, dr__image_info *info)
{
    *info = (dr__image_info){ .width = p->width, .height = p->height, .orientation = 1, .stored = p->stored };
    info->bits = p->bitmap ? 1 : p->maxval > 255 ? 16 : 8;
    info->progressive = p->text;
    dr__info_decoded(info, p->kind, options);
}

/* What a sample of value v becomes: as Python's round(v / maxval * most), which rounds a half to even. */
static uint16_t scaled(uint32_t v, uint32_t maxval, uint32_t most)
{
    double x = (double)v / maxval * most;
    uint32_t whole = (uint32_t)x;
    double rest = x - whole;
    return (uint16_t)(whole + (rest > 0.5 || (rest == 0.5 && whole % 2 == 1)));
}

static uint32_t most_of(const struct pnm *p)
{
    return dr__pixel_dtype(p->kind) == DR_U16 ? 65535 : 255;
}

static bool needs_scaling(const struct pnm *p)
{
    return !p->bitmap && p->maxval != most_of(p);
}

static dr_status check_memory(const struct pnm *p, const dr__image_info *info, const dr__decode_options *options,
                              dr_error *err)
{
    double pixel = info->channels * (info->dtype == DR_U16 ? 2 : 1);
    double output = (double)p->width * (double)p->height * pixel;
    double table = needs_scaling(p) ? 2.0 * (p->maxval + 1) : 0;
    return dr__check_bytes(options, "PNM", output + table + (double)p->width * (double)dr__pixel_bytes(p->kind), err);
}

static dr_status open_pnm(struct pnm *p, const uint8_t *data, size_t size, const dr__decode_options *options,
                          dr__image_info *info, dr_error *err)
{
    DR_TRY(read_header(p, data, size, options, err));
    describe(p, options, info);
    return check_memory(p, info, options, err);
}

static dr_status header(dr_codec_state *state, const uint8_t *data, size_t size, const dr__decode_options *options,
                        dr__image_info *info, dr_error *err)
{
    struct pnm p;
    (void)state;
    return open_pnm(&p, data, size, options, info, err);
}

struct target {
    dr__sink sink;
    dr_rect area;
    uint8_t *row;          /* of finished samples */
    const uint16_t *table; /* what each value becomes; NULL: itself */
    uint32_t most;
};

static void put_sample(const struct pnm *p, const struct target *t, size_t i, uint32_t v)
{
    uint16_t made = (uint16_t)(v > p->maxval ? t->most : t->table ? t->table[v] : v);
    if (t->most == 255)
        t->row[i] = (uint8_t)made;
    else
        memcpy(t->row + 2 * i, &made, 2);
}

static void unpack_bytes(const struct pnm *p, const struct target *t, const uint8_t *row)
{
    size_t n = (size_t)(t->area.w * p->channels), first = (size_t)(t->area.x * p->channels);
    for (size_t i = 0; i < n; i++) {
        const uint8_t *at = row + (p->maxval > 255 ? 2 : 1) * (first + i);
        put_sample(p, t, i, p->maxval > 255 ? (uint32_t)at[0] << 8 | at[1] : at[0]);
    }
}

/* A bit that is set is black. */
static void unpack_bits(const struct target *t, const uint8_t *row)
{
    for (int64_t i = 0; i < t->area.w; i++) {
        int64_t x = t->area.x + i;
        t->row[i] = row[x / 8] >> (7 - x % 8) & 1 ? 0 : 255;
    }
}

static dr_status read_bytes(const struct pnm *p, const struct target *t, const uint8_t *data, size_t size,
                            dr_error *err)
{
    size_t row_bytes =
        p->bitmap ? ((size_t)p->width + 7) / 8 : (size_t)p->width * (size_t)p->channels * (p->maxval > 255 ? 2 : 1);
    size_t rows = (size_t)(t->area.y + t->area.h);
    if (row_bytes > (size - p->data_at) / rows)
        return truncated(size, err);
    for (int64_t y = 0; y < t->area.h; y++) {
        const uint8_t *row = data + p->data_at + (size_t)(t->area.y + y) * row_bytes;
        if (!p->bitmap && !t->table && p->maxval == 255) {
            dr__sink_put(&t->sink, y, row + t->area.x * p->channels);
            continue;
        }
        if (p->bitmap)
            unpack_bits(t, row);
        else
            unpack_bytes(p, t, row);
        dr__sink_put(&t->sink, y, t->row);
    }
    return DR_OK;
}

/* Digits of a bitmap need no space between them. */
static dr_status read_digit(struct reader *r, int64_t *value, dr_error *err)
{
    int c = next_visible(r);
    if (c < 0)
        return truncated(r->size, err);
    if (c != '0' && c != '1')
        return dr__fail(err, DR_ERR_FORMAT, "damaged PNM: byte %d before offset %zu, where 0 or 1 should be", c, r->at);
    *value = c == '1' ? 0 : 255;
    return DR_OK;
}

static dr_status read_sample(const struct pnm *p, struct reader *r, int64_t *value, dr_error *err)
{
    if (p->bitmap)
        return read_digit(r, value, err);
    DR_TRY(read_number(r, value, err));
    if (*value <= p->maxval)
        return DR_OK;
    return dr__fail(err, DR_ERR_FORMAT, "damaged PNM: a value of %" PRId64 " before offset %zu; %u is the largest",
                    *value, r->at, p->maxval);
}

static dr_status read_text(const struct pnm *p, const struct target *t, const uint8_t *data, size_t size, dr_error *err)
{
    struct reader r = { data, size, p->data_at };
    int64_t first = t->area.x * p->channels, n = t->area.w * p->channels;
    for (int64_t y = 0; y < t->area.y + t->area.h; y++) {
        for (int64_t i = 0; i < p->width * p->channels; i++) {
            int64_t value;
            DR_TRY(read_sample(p, &r, &value, err));
            if (i >= first && i < first + n)
                put_sample(p, t, (size_t)(i - first), (uint32_t)value);
        }
        if (y >= t->area.y)
            dr__sink_put(&t->sink, y - t->area.y, t->row);
    }
    return DR_OK;
}

static dr_status make_table(dr_codec_state *state, const struct pnm *p, struct target *t, dr_error *err)
{
    uint16_t *table = dr__reuse_buffer_get(&state->table, 2 * ((size_t)p->maxval + 1));
    if (!table)
        return dr__fail(err, DR_ERR_NOMEM, "no memory for the values of a PNM image");
    for (uint32_t v = 0; v <= p->maxval; v++)
        table[v] = scaled(v, p->maxval, t->most);
    t->table = table;
    return DR_OK;
}

static dr_status decode(dr_codec_state *state, const uint8_t *data, size_t size, const dr__decode_options *options,
                        const dr_rect *rect, dr_view *out, dr_error *err)
{
    struct pnm p;
    dr__image_info info;
    DR_TRY(open_pnm(&p, data, size, options, &info, err));
    DR_TRY(dr__check_target(&info, rect, out, err));
    struct target t = { .area = *rect, .most = most_of(&p) };
    DR_TRY(dr__sink_open(&t.sink, state, p.kind, options, 1, rect->w, rect->h, out, err));
    t.row = dr__reuse_buffer_get(&state->rows, (size_t)rect->w * dr__pixel_bytes(p.kind));
    if (!t.row)
        return dr__fail(err, DR_ERR_NOMEM, "no memory for a row of %" PRId64 " PNM pixels", rect->w);
    if (needs_scaling(&p))
        DR_TRY(make_table(state, &p, &t, err));
    return p.text ? read_text(&p, &t, data, size, err) : read_bytes(&p, &t, data, size, err);
}

static double cost(const dr__image_info *info, size_t size, const dr_rect *rect)
{
    double text = info->progressive ? 3.0 * (double)size * (double)(rect->y + rect->h) / (double)info->height : 0;
    return text + 2.0 * (double)rect->w * (double)rect->h * info->channels;
}

const dr_image_codec dr__codec_pnm = {
    .name = "pnm",
    .summary = "Netpbm's bitmaps, graymaps and pixmaps, not compressed",
    .library = "drapps",
    .probe = probe,
    .header = header,
    .decode = decode,
    .cost = cost,
};
