/* jpeg_parse.c: JPEG segments up to the first scan, read strictly. */
#include "codec/image/jpeg_parse.h"

#include <string.h>

#include "base/compiler.h"
#include "codec/image/exif.h"

enum {
    SOF0 = 0xc0,
    SOF1 = 0xc1,
    DHT = 0xc4,
    SOI = 0xd8,
    SOS = 0xda,
    DQT = 0xdb,
    DRI = 0xdd,
    APP0 = 0xe0,
    APP1 = 0xe1,
    APP14 = 0xee,
    APP15 = 0xef,
    COM = 0xfe,
    MAX_SIDE = 65500, /* libjpeg's limit */
};

const uint8_t dr__jpeg_zigzag[256] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,
    14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60,
    61, 54, 47, 55, 62, 63, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64,
};

/* What decides between YCbCr and RGB. */
struct hints {
    bool jfif, adobe;
    int transform;
};

struct parse {
    dr__jpeg_frame *frame;
    struct hints hints;
    dr__jpeg_turn turn;
    bool orient, has_frame;
};

/* One segment without its length. */
struct segment {
    const uint8_t *at;
    size_t size;
};

static unsigned u16(const uint8_t *p)
{
    return (unsigned)p[0] << 8 | p[1];
}

void dr__jpeg_turn_add(dr__jpeg_turn *turn, const uint8_t *app1, size_t size)
{
    static const char xmp_id[] = "http://ns.adobe.com/xap/1.0/";
    if (size >= 6 && memcmp(app1, "Exif\0\0", 6) == 0 && turn->exif == 0)
        turn->exif = dr__exif_orientation(app1, size);
    else if (size > sizeof(xmp_id) && memcmp(app1, xmp_id, sizeof(xmp_id)) == 0)
        turn->xmp = dr__xmp_orientation(app1, size);
}

int dr__jpeg_turn_of(const dr__jpeg_turn *turn)
{
    return turn->exif ? turn->exif : turn->xmp ? turn->xmp : 1;
}

const char *dr__jpeg_sampling_name(const int h[3], const int v[3])
{
    static const struct {
        int h, v;
        const char *name;
    } names[] = {
        { 1, 1, "YCbCr 4:4:4" }, { 2, 1, "YCbCr 4:2:2" }, { 2, 2, "YCbCr 4:2:0" },
        { 1, 2, "YCbCr 4:4:0" }, { 4, 1, "YCbCr 4:1:1" }, { 4, 2, "YCbCr 4:1:0" },
    };
    if (h[1] != h[2] || v[1] != v[2])
        return "YCbCr";
    for (size_t i = 0; i < DR_COUNT(names); i++)
        if (h[0] == names[i].h * h[1] && v[0] == names[i].v * v[1])
            return names[i].name;
    return "YCbCr";
}

static bool read_quant(struct parse *p, struct segment s)
{
    while (s.size > 0) {
        int wide = s.at[0] >> 4, n = s.at[0] & 15;
        size_t bytes = 1 + (wide ? 128 : 64);
        if (n >= DR__JPEG_TABLES || s.size < bytes)
            return false;
        for (size_t i = 0; i < 64; i++)
            p->frame->quant[n][dr__jpeg_zigzag[i]] = (int16_t)(wide ? u16(s.at + 1 + 2 * i) : s.at[1 + i]);
        p->frame->has_quant[n] = true;
        s.at += bytes;
        s.size -= bytes;
    }
    return true;
}

static bool read_huffman(struct parse *p, struct segment s)
{
    while (s.size > 0) {
        if (s.size < 17 || s.at[0] & 0xec)
            return false;
        size_t count = 0;
        for (int i = 1; i <= 16; i++)
            count += s.at[i];
        if (count > 256 || s.size < 17 + count)
            return false;
        p->frame->huffman[s.at[0] >> 4][s.at[0] & 3] = s.at + 1;
        s.at += 17 + count;
        s.size -= 17 + count;
    }
    return true;
}

static bool read_frame(struct parse *p, struct segment s)
{
    dr__jpeg_frame *f = p->frame;
    if (p->has_frame || s.size < 6 || s.at[0] != 8)
        return false;
    f->height = u16(s.at + 1);
    f->width = u16(s.at + 3);
    f->n_components = s.at[5];
    if ((f->n_components != 1 && f->n_components != 3) || s.size != 6 + 3 * (size_t)f->n_components)
        return false;
    for (int i = 0; i < f->n_components; i++) {
        const uint8_t *c = s.at + 6 + 3 * i;
        f->component[i] = (dr__jpeg_component){ .id = c[0], .h = c[1] >> 4, .v = c[1] & 15, .quant = c[2] };
    }
    p->has_frame = true;
    return f->width > 0 && f->height > 0 && f->width <= MAX_SIDE && f->height <= MAX_SIDE;
}

/* All components in their order, all coefficients. */
static bool read_scan(struct parse *p, struct segment s)
{
    dr__jpeg_frame *f = p->frame;
    size_t n = (size_t)f->n_components;
    if (!p->has_frame || s.size != 4 + 2 * n || s.at[0] != n)
        return false;
    for (size_t i = 0; i < n; i++) {
        dr__jpeg_component *c = &f->component[i];
        c->dc = s.at[2 + 2 * i] >> 4;
        c->ac = s.at[2 + 2 * i] & 15;
        if (s.at[1 + 2 * i] != c->id)
            return false;
    }
    const uint8_t *spectral = s.at + 1 + 2 * n;
    return spectral[0] == 0 && spectral[1] == 63 && spectral[2] == 0;
}

static void read_hints(struct hints *h, int marker, struct segment s)
{
    if (marker == APP0 && s.size >= 14 && memcmp(s.at, "JFIF", 5) == 0)
        h->jfif = true;
    if (marker == APP14 && s.size >= 12 && memcmp(s.at, "Adobe", 5) == 0) {
        h->adobe = true;
        h->transform = s.at[11];
    }
}

static bool read_segment(struct parse *p, int marker, struct segment s)
{
    switch (marker) {
    case SOF0:
    case SOF1:
        return read_frame(p, s);
    case DHT:
        return read_huffman(p, s);
    case DQT:
        return read_quant(p, s);
    case DRI:
        if (s.size != 2)
            return false;
        p->frame->restart = u16(s.at);
        return true;
    case APP1:
        if (p->orient)
            dr__jpeg_turn_add(&p->turn, s.at, s.size);
        return true;
    default:
        read_hints(&p->hints, marker, s);
        return marker == COM || (marker >= APP0 && marker <= APP15);
    }
}

/* As libjpeg guesses. */
static bool is_rgb(const dr__jpeg_frame *f, const struct hints *h)
{
    if (f->n_components == 1 || h->jfif)
        return false;
    if (h->adobe)
        return h->transform == 0;
    const dr__jpeg_component *c = f->component;
    return c[0].id == 'R' && c[1].id == 'G' && c[2].id == 'B';
}

static bool has_tables(const dr__jpeg_frame *f, const dr__jpeg_component *c)
{
    return c->quant < DR__JPEG_TABLES && c->dc < DR__JPEG_TABLES && c->ac < DR__JPEG_TABLES && f->has_quant[c->quant] &&
           f->huffman[0][c->dc] && f->huffman[1][c->ac];
}

/* Sizes in MCUs and samples; false for resolutions that are not decoded here. */
static bool lay_out(dr__jpeg_frame *f)
{
    dr__jpeg_component *c = f->component;
    if (f->n_components == 1) { /* whatever the factors say, a scan of one component has MCUs of one block */
        if (c[0].h < 1 || c[0].h > 4 || c[0].v < 1 || c[0].v > 4)
            return false;
        c[0].h = c[0].v = 1;
    }
    const int h = c[0].h, v = c[0].v;
    if (h < 1 || h > 2 || v < 1 || v > 2)
        return false;
    f->mcu_width = 8 * h;
    f->mcu_height = 8 * v;
    f->mcus_across = (f->width + f->mcu_width - 1) / f->mcu_width;
    f->mcu_rows = (f->height + f->mcu_height - 1) / f->mcu_height;
    int blocks = 0;
    for (int i = 0; i < f->n_components; i++) {
        if (c[i].h < 1 || c[i].h > h || c[i].v < 1 || c[i].v > v || !has_tables(f, &c[i]))
            return false;
        c[i].half_x = c[i].h < h;
        c[i].half_y = c[i].v < v;
        c[i].width = (f->width + c[i].half_x) >> c[i].half_x;
        c[i].height = (f->height + c[i].half_y) >> c[i].half_y;
        blocks += c[i].h * c[i].v;
        if (c[i].half_x && c[i].width <= 2) /* libjpeg upsamples those by another rule */
            return false;
    }
    return blocks <= 10;
}

bool dr__jpeg_parse(const uint8_t *data, size_t size, bool orient, dr__jpeg_frame *frame)
{
    struct parse p = { .frame = frame, .orient = orient };
    *frame = (dr__jpeg_frame){ 0 };
    if (size < 4 || u16(data) != (0xff00 | SOI))
        return false;
    for (size_t at = 2; size - at >= 4;) {
        if (data[at] != 0xff)
            return false;
        int marker = data[at + 1];
        size_t length = u16(data + at + 2);
        struct segment s = { .at = data + at + 4, .size = length - 2 };
        if (length < 2 || length > size - at - 2)
            return false;
        at += 2 + length;
        if (marker == SOS) {
            frame->scan = at;
            frame->rgb = is_rgb(frame, &p.hints);
            frame->orientation = dr__jpeg_turn_of(&p.turn);
            return read_scan(&p, s) && lay_out(frame);
        }
        if (!read_segment(&p, marker, s))
            return false;
    }
    return false;
}
