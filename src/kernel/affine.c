/* affine.c: samples an image under an affine map, in PIL's arithmetic.
 *
 * PIL has three code paths for nearest neighbour: a map without rotation and shear sums up the step in double; others
 * run in 16.16 fixed point if the image's corners fit, else in double.  Bilinear and bicubic compute each coordinate
 * anew in double and truncate the result to 8 bits.  The order of operations is that of PIL, since it decides the bits.
 * floor, ceil and fmod are exact by IEEE 754, so they are the same everywhere.
 */
#include "kernel/affine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmath.h"

enum { MAX_CHANNELS = 4 };

static inline const uint8_t *at(const dr__raster *r, size_t pixel, int64_t x, int64_t y)
{
    return r->data + y * r->stride + x * (int64_t)pixel;
}

static inline void put(uint8_t *dst, const uint8_t *src, size_t pixel)
{
    for (size_t i = 0; i < pixel; i++)
        dst[i] = src[i];
}

/* The whole part of a coordinate; -1 for negative ones, which are outside anyway. */
static inline int64_t coord(double v)
{
    return v < 0.0 ? -1 : v < 9e15 ? (int64_t)v : INT64_MAX;
}

static inline bool inside(const dr__raster *r, int64_t x, int64_t y)
{
    return x >= 0 && x < r->w && y >= 0 && y < r->h;
}

static void nearest_double(const dr__raster *dst, const dr__raster *src, size_t pixel, const double m[6],
                           const uint8_t *fill)
{
    /* A pure scaling starts from fewer terms: adding a zero product could not change it, but the order could. */
    bool scaling = m[1] == 0.0 && m[3] == 0.0;
    double row_x = scaling ? m[2] + m[0] * 0.5 : m[2] + m[1] * 0.5 + m[0] * 0.5;
    double row_y = scaling ? m[5] + m[4] * 0.5 : m[5] + m[4] * 0.5 + m[3] * 0.5;
    for (int64_t y = 0; y < dst->h; y++, row_x += m[1], row_y += m[4]) {
        uint8_t *out = dst->data + y * dst->stride;
        double x_in = row_x, y_in = row_y;
        for (int64_t x = 0; x < dst->w; x++, out += pixel, x_in += m[0], y_in += m[3]) {
            int64_t sx = coord(x_in), sy = coord(y_in);
            put(out, inside(src, sx, sy) ? at(src, pixel, sx, sy) : fill, pixel);
        }
    }
}

/* 16.16; the step of an image one pixel wide may be too large for it, but is not used. */
static int32_t fix(double v)
{
    return (int32_t)(uint32_t)(int64_t)floor(v * 65536.0 + 0.5);
}

static inline uint32_t step(uint32_t at, int32_t by)
{
    return at + (uint32_t)by; /* beyond the last pixel it may wrap, which unsigned arithmetic allows */
}

static void nearest_fixed(const dr__raster *dst, const dr__raster *src, size_t pixel, const double m[6],
                          const uint8_t *fill)
{
    int32_t a0 = fix(m[0]), a1 = fix(m[1]), a3 = fix(m[3]), a4 = fix(m[4]);
    uint32_t row_x = (uint32_t)fix(m[2] + m[0] * 0.5 + m[1] * 0.5);
    uint32_t row_y = (uint32_t)fix(m[5] + m[3] * 0.5 + m[4] * 0.5);
    for (int64_t y = 0; y < dst->h; y++, row_x = step(row_x, a1), row_y = step(row_y, a4)) {
        uint8_t *out = dst->data + y * dst->stride;
        uint32_t xx = row_x, yy = row_y;
        for (int64_t x = 0; x < dst->w; x++, out += pixel, xx = step(xx, a0), yy = step(yy, a3)) {
            int64_t sx = (int32_t)xx >> 16, sy = (int32_t)yy >> 16;
            put(out, inside(src, sx, sy) ? at(src, pixel, sx, sy) : fill, pixel);
        }
    }
}

static bool fits_fixed(const double m[6], double x, double y)
{
    return fabs(x * m[0] + y * m[1] + m[2]) < 32768.0 && fabs(x * m[3] + y * m[4] + m[5]) < 32768.0;
}

static void nearest(const dr__raster *dst, const dr__raster *src, size_t pixel, const double m[6], const uint8_t *fill)
{
    double w = (double)dst->w, h = (double)dst->h;
    bool fixed = !(m[1] == 0.0 && m[3] == 0.0) && fits_fixed(m, 0, 0) && fits_fixed(m, w, h) && fits_fixed(m, 0, h) &&
                 fits_fixed(m, w, 0);
    (fixed ? nearest_fixed : nearest_double)(dst, src, pixel, m, fill);
}

/* a * b / 255, rounded. */
static inline unsigned mul_255(unsigned a, unsigned b)
{
    unsigned t = a * b + 128;
    return ((t >> 8) + t) >> 8;
}

/* Channel k of a pixel as the filters see it. */
static inline double tap(const uint8_t *p, size_t channels, size_t k)
{
    return channels == 4 && k < 3 ? mul_255(p[k], p[3]) : p[k];
}

static void unpremultiply(uint8_t *p)
{
    unsigned alpha = p[3];
    if (alpha == 0 || alpha == 255)
        return;
    for (int k = 0; k < 3; k++) {
        unsigned v = 255u * p[k] / alpha;
        p[k] = (uint8_t)(v > 255 ? 255 : v);
    }
}

static inline int64_t clip(int64_t v, int64_t n)
{
    return v < 0 ? 0 : v < n ? v : n - 1;
}

static inline double mix(double a, double b, double d)
{
    return a + (b - a) * d;
}

static void bilinear_pixel(uint8_t *out, const dr__raster *src, size_t c, double x_in, double y_in)
{
    x_in -= 0.5;
    y_in -= 0.5;
    int64_t x = (int64_t)floor(x_in), y = (int64_t)floor(y_in);
    double dx = x_in - (double)x, dy = y_in - (double)y;
    int64_t x0 = clip(x, src->w), x1 = clip(x + 1, src->w), y0 = clip(y, src->h);
    bool below = y + 1 >= 0 && y + 1 < src->h;
    for (size_t k = 0; k < c; k++) {
        double top = mix(tap(at(src, c, x0, y0), c, k), tap(at(src, c, x1, y0), c, k), dx), bottom = top;
        if (below)
            bottom = mix(tap(at(src, c, x0, y + 1), c, k), tap(at(src, c, x1, y + 1), c, k), dx);
        out[k] = (uint8_t)mix(top, bottom, dy);
    }
}

static inline double cubic(double v1, double v2, double v3, double v4, double d)
{
    double p1 = v2;
    double p2 = -v1 + v3;
    double p3 = 2 * (v1 - v2) + v3 - v4;
    double p4 = -v1 + v2 - v3 + v4;
    return p1 + d * (p2 + d * (p3 + d * p4));
}

static double cubic_row(const dr__raster *src, size_t c, size_t k, int64_t x, int64_t y, double dx)
{
    double v[4];
    for (int i = 0; i < 4; i++)
        v[i] = tap(at(src, c, clip(x + i, src->w), y), c, k);
    return cubic(v[0], v[1], v[2], v[3], dx);
}

static void bicubic_pixel(uint8_t *out, const dr__raster *src, size_t c, double x_in, double y_in)
{
    x_in -= 0.5;
    y_in -= 0.5;
    double fx = floor(x_in), fy = floor(y_in);
    int64_t x = (int64_t)fx - 1, y = (int64_t)fy - 1;
    for (size_t k = 0; k < c; k++) {
        double v[4];
        v[0] = cubic_row(src, c, k, x, clip(y, src->h), x_in - fx);
        for (int i = 1; i < 4; i++) /* rows beyond the edge repeat the one before */
            v[i] = y + i >= 0 && y + i < src->h ? cubic_row(src, c, k, x, y + i, x_in - fx) : v[i - 1];
        double sum = cubic(v[0], v[1], v[2], v[3], y_in - fy);
        out[k] = (uint8_t)(sum <= 0.0 ? 0 : sum >= 255.0 ? 255 : sum);
    }
}

static void interpolate(const dr__raster *dst, const dr__raster *src, size_t c, const double m[6],
                        dr__affine_filter filter, const uint8_t *fill)
{
    double w = (double)src->w, h = (double)src->h;
    uint8_t blank[MAX_CHANNELS];
    memcpy(blank, fill, c);
    if (c == 4)
        unpremultiply(blank);
    for (int64_t y = 0; y < dst->h; y++) {
        uint8_t *out = dst->data + y * dst->stride;
        for (int64_t x = 0; x < dst->w; x++, out += c) {
            double px = (double)x + 0.5, py = (double)y + 0.5;
            double x_in = m[0] * px + m[1] * py + m[2], y_in = m[3] * px + m[4] * py + m[5];
            if (!(x_in >= 0.0 && x_in < w && y_in >= 0.0 && y_in < h)) {
                put(out, blank, c);
                continue;
            }
            (filter == DR__AFFINE_BICUBIC ? bicubic_pixel : bilinear_pixel)(out, src, c, x_in, y_in);
            if (c == 4)
                unpremultiply(out);
        }
    }
}

void dr__affine_u8(const dr__raster *dst, const dr__raster *src, size_t pixel, const double m[6],
                   dr__affine_filter filter, const uint8_t *fill)
{
    if (filter == DR__AFFINE_NEAREST)
        nearest(dst, src, pixel, m, fill);
    else
        interpolate(dst, src, pixel, m, filter, fill);
}

/* torch's affine_grid and grid_sample (align_corners=False), which use coordinates from -1 to 1 in between. */
void dr__affine_nearest_torch(const dr__raster *dst, const dr__raster *src, size_t pixel, const double m[6],
                              const uint8_t *fill)
{
    const float half_w = (float)src->w * 0.5f, half_h = (float)src->h * 0.5f;
    float g[6];
    for (int i = 0; i < 6; i++)
        g[i] = (float)m[i] / (i < 3 ? half_w : half_h);
    for (int64_t y = 0; y < dst->h; y++) {
        uint8_t *out = dst->data + y * dst->stride;
        const float py = (float)y + (1.0f - (float)dst->h) * 0.5f;
        for (int64_t x = 0; x < dst->w; x++, out += pixel) {
            const float px = (float)x + (1.0f - (float)dst->w) * 0.5f;
            const float gx = fmaf(py, g[1], px * g[0]) + g[2], gy = fmaf(py, g[4], px * g[3]) + g[5];
            const float sx = nearbyintf((gx + 1.0f) * half_w - 0.5f), sy = nearbyintf((gy + 1.0f) * half_h - 0.5f);
            const bool is_in = sx >= 0 && sx < (float)src->w && sy >= 0 && sy < (float)src->h;
            put(out, is_in ? at(src, pixel, (int64_t)sx, (int64_t)sy) : fill, pixel);
        }
    }
}

static double radians(double degrees)
{
    return degrees * (DR_PI / 180.0);
}

/* Rows a, b and c, d of rotation times shear, whose determinant is 1. */
static void rotate_and_shear(double rows[4], double angle, const double shear[2])
{
    double rot = radians(angle), sx = radians(shear[0]), sy = radians(shear[1]);
    double cos_sy = dr__cos(sy), tan_sx = dr__tan(sx);
    rows[0] = dr__cos(rot - sy) / cos_sy;
    rows[1] = -(rows[0] * tan_sx + dr__sin(rot));
    rows[2] = dr__sin(rot - sy) / cos_sy;
    rows[3] = dr__cos(rot) - rows[2] * tan_sx;
}

void dr__affine_matrix(double m[6], const double center[2], double angle, const double translate[2], double scale,
                       const double shear[2])
{
    double r[4], x = center[0] + translate[0], y = center[1] + translate[1];
    rotate_and_shear(r, angle, shear);
    m[0] = r[3] / scale;
    m[1] = -r[1] / scale;
    m[3] = -r[2] / scale;
    m[4] = r[0] / scale;
    m[2] = center[0] - m[0] * x - m[1] * y;
    m[5] = center[1] - m[3] * x - m[4] * y;
}

void dr__affine_forward(double m[6], const double center[2], double angle, const double translate[2], double scale,
                        const double shear[2])
{
    double r[4], x = center[0] + translate[0], y = center[1] + translate[1];
    rotate_and_shear(r, angle, shear);
    m[0] = r[0] * scale;
    m[1] = r[1] * scale;
    m[3] = r[2] * scale;
    m[4] = r[3] * scale;
    m[2] = x - m[0] * center[0] - m[1] * center[1];
    m[5] = y - m[3] * center[0] - m[4] * center[1];
}

/* Python's round(v, 15): the nearest decimal, then the nearest double. */
static double round_15(double v)
{
    char text[32];
    snprintf(text, sizeof text, "%.15f", v);
    return strtod(text, NULL);
}

static double map_x(const double m[6], double x, double y)
{
    return m[0] * x + m[1] * y + m[2];
}

static double map_y(const double m[6], double x, double y)
{
    return m[3] * x + m[4] * y + m[5];
}

/* The output size that holds the whole rotated image, and the matrix moved to its centre. */
static void expand_to_fit(dr__rotation *r)
{
    double w = (double)r->w, h = (double)r->h;
    const double corner[4][2] = { { 0, 0 }, { w, 0 }, { w, h }, { 0, h } };
    double x_min = INFINITY, x_max = -INFINITY, y_min = INFINITY, y_max = -INFINITY;
    for (int i = 0; i < 4; i++) {
        double x = map_x(r->m, corner[i][0], corner[i][1]), y = map_y(r->m, corner[i][0], corner[i][1]);
        x_min = fmin(x_min, x), x_max = fmax(x_max, x);
        y_min = fmin(y_min, y), y_max = fmax(y_max, y);
    }
    double nw = ceil(x_max) - floor(x_min), nh = ceil(y_max) - floor(y_min);
    double x = map_x(r->m, -(nw - w) / 2.0, -(nh - h) / 2.0), y = map_y(r->m, -(nw - w) / 2.0, -(nh - h) / 2.0);
    r->m[2] = x;
    r->m[5] = y;
    r->w = (int64_t)nw;
    r->h = (int64_t)nh;
}

/* Quarter turns that PIL does without sampling, or -1. */
static int exact_turns(int64_t w, int64_t h, double angle, bool expand)
{
    if (angle == 0.0)
        return 0;
    if (angle == 180.0)
        return 2;
    if ((angle == 90.0 || angle == 270.0) && (expand || w == h))
        return angle == 90.0 ? 1 : 3;
    return -1;
}

dr__rotation dr__rotation_of(int64_t w, int64_t h, double angle, bool expand, const double *center)
{
    angle = fmod(angle, 360.0);
    if (angle < 0.0)
        angle += 360.0;
    dr__rotation r = { .turns = center ? -1 : exact_turns(w, h, angle, expand), .w = w, .h = h };
    if (r.turns >= 0) {
        r.w = r.turns & 1 ? h : w;
        r.h = r.turns & 1 ? w : h;
        return r;
    }
    double cx = center ? center[0] : (double)w / 2, cy = center ? center[1] : (double)h / 2;
    double turn = -radians(angle);
    r.m[0] = round_15(dr__cos(turn));
    r.m[1] = round_15(dr__sin(turn));
    r.m[3] = round_15(-dr__sin(turn));
    r.m[4] = round_15(dr__cos(turn));
    double x = map_x(r.m, -cx, -cy), y = map_y(r.m, -cx, -cy);
    r.m[2] = x + cx;
    r.m[5] = y + cy;
    if (expand)
        expand_to_fit(&r);
    return r;
}

/* The input pixel of an output pixel under quarter turns counter-clockwise. */
static const uint8_t *turned(const dr__raster *src, size_t pixel, int turns, int64_t x, int64_t y)
{
    switch (turns) {
    case 1:
        return at(src, pixel, src->w - 1 - y, x);
    case 2:
        return at(src, pixel, src->w - 1 - x, src->h - 1 - y);
    case 3:
        return at(src, pixel, y, src->h - 1 - x);
    default:
        return at(src, pixel, x, y);
    }
}

void dr__rotate_u8(const dr__raster *dst, const dr__raster *src, size_t pixel, const dr__rotation *rotation,
                   dr__affine_filter filter, const uint8_t *fill)
{
    if (rotation->turns < 0) {
        dr__affine_u8(dst, src, pixel, rotation->m, filter, fill);
        return;
    }
    for (int64_t y = 0; y < dst->h; y++)
        for (int64_t x = 0; x < dst->w; x++)
            put(dst->data + y * dst->stride + x * (int64_t)pixel, turned(src, pixel, rotation->turns, x, y), pixel);
}
