/* pixels.c: conversions of one row of pixels.
 *
 * Each function is the conversion that Pillow's Image.convert does between the modes of the same names, in integer
 * arithmetic and bit for bit.  16-bit colour keeps its high byte (Pillow reads it so); 16-bit grey is clipped at 255
 * (Pillow opens it as "I;16" and clips when it converts).
 */
#include "codec/image/pixels.h"

#include <assert.h>
#include <string.h>

static const struct {
    int channels;
    dr_dtype dtype;
} kinds[DR__PIXEL_KINDS] = {
    [DR__PIXEL_L] = { 1, DR_U8 },
    [DR__PIXEL_LA] = { 2, DR_U8 },
    [DR__PIXEL_RGB] = { 3, DR_U8 },
    [DR__PIXEL_RGBA] = { 4, DR_U8 },
    [DR__PIXEL_CMYK_INVERTED] = { 4, DR_U8 },
    [DR__PIXEL_L16] = { 1, DR_U16 },
    [DR__PIXEL_LA16] = { 2, DR_U16 },
    [DR__PIXEL_RGB16] = { 3, DR_U16 },
    [DR__PIXEL_RGBA16] = { 4, DR_U16 },
};

int dr__pixel_channels(dr__pixel_kind kind)
{
    return kinds[kind].channels;
}

dr_dtype dr__pixel_dtype(dr__pixel_kind kind)
{
    return kinds[kind].dtype;
}

size_t dr__pixel_bytes(dr__pixel_kind kind)
{
    return (size_t)kinds[kind].channels * (kinds[kind].dtype == DR_U16 ? 2 : 1);
}

/* ITU-R 601-2 luma with 16 fractional bits. */
static uint8_t luma(unsigned r, unsigned g, unsigned b)
{
    return (uint8_t)((r * 19595 + g * 38470 + b * 7471 + 0x8000) >> 16);
}

/* a * b / 255, rounded. */
static unsigned scale255(unsigned a, unsigned b)
{
    unsigned t = a * b + 128;
    return (t + (t >> 8)) >> 8;
}

static void l_to_rgb(uint8_t *dst, const uint8_t *src, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[3 * i] = dst[3 * i + 1] = dst[3 * i + 2] = src[i];
}

static void l_to_rgba(uint8_t *dst, const uint8_t *src, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        dst[4 * i] = dst[4 * i + 1] = dst[4 * i + 2] = src[i];
        dst[4 * i + 3] = 255;
    }
}

static void la_to_l(uint8_t *dst, const uint8_t *src, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = src[2 * i];
}

static void la_to_rgb(uint8_t *dst, const uint8_t *src, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[3 * i] = dst[3 * i + 1] = dst[3 * i + 2] = src[2 * i];
}

static void la_to_rgba(uint8_t *dst, const uint8_t *src, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        dst[4 * i] = dst[4 * i + 1] = dst[4 * i + 2] = src[2 * i];
        dst[4 * i + 3] = src[2 * i + 1];
    }
}

static void rgb_to_l(uint8_t *dst, const uint8_t *src, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = luma(src[3 * i], src[3 * i + 1], src[3 * i + 2]);
}

static void rgb_to_rgba(uint8_t *dst, const uint8_t *src, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        dst[4 * i] = src[3 * i];
        dst[4 * i + 1] = src[3 * i + 1];
        dst[4 * i + 2] = src[3 * i + 2];
        dst[4 * i + 3] = 255;
    }
}

static void rgba_to_l(uint8_t *dst, const uint8_t *src, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = luma(src[4 * i], src[4 * i + 1], src[4 * i + 2]);
}

static void rgba_to_rgb(uint8_t *dst, const uint8_t *src, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        dst[3 * i] = src[4 * i];
        dst[3 * i + 1] = src[4 * i + 1];
        dst[3 * i + 2] = src[4 * i + 2];
    }
}

/* Ink c under black k leaves (255 - k) - c * (255 - k) / 255 of the light; never negative since c <= 255. */
static void ink_to_light(uint8_t light[3], const uint8_t *inverted)
{
    unsigned white = inverted[3];
    for (int c = 0; c < 3; c++)
        light[c] = (uint8_t)(white - scale255(255u - inverted[c], white));
}

static void cmyk_to_rgb(uint8_t *dst, const uint8_t *src, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ink_to_light(dst + 3 * i, src + 4 * i);
}

static void cmyk_to_rgba(uint8_t *dst, const uint8_t *src, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        ink_to_light(dst + 4 * i, src + 4 * i);
        dst[4 * i + 3] = 255;
    }
}

static void cmyk_to_l(uint8_t *dst, const uint8_t *src, size_t n)
{
    uint8_t rgb[3];
    for (size_t i = 0; i < n; i++) {
        ink_to_light(rgb, src + 4 * i);
        dst[i] = luma(rgb[0], rgb[1], rgb[2]);
    }
}

static void cmyk_uninvert(uint8_t *dst, const uint8_t *src, size_t n)
{
    for (size_t i = 0; i < 4 * n; i++)
        dst[i] = (uint8_t)(255 - src[i]);
}

static uint8_t clip16(const uint8_t *src)
{
    uint16_t v;
    memcpy(&v, src, sizeof(v));
    return v > 255 ? 255 : (uint8_t)v;
}

static void l16_to_l(uint8_t *dst, const uint8_t *src, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = clip16(src + 2 * i);
}

static void l16_to_rgb(uint8_t *dst, const uint8_t *src, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[3 * i] = dst[3 * i + 1] = dst[3 * i + 2] = clip16(src + 2 * i);
}

static void l16_to_rgba(uint8_t *dst, const uint8_t *src, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        dst[4 * i] = dst[4 * i + 1] = dst[4 * i + 2] = clip16(src + 2 * i);
        dst[4 * i + 3] = 255;
    }
}

/* Deep colour has no row here except in mode UNCHANGED: codecs hand it over as 8-bit pixels, high bytes. */
static dr__pixel_convert *const converters[DR__PIXEL_KINDS][3] = {
    [DR__PIXEL_L] = { [DR__MODE_RGB] = l_to_rgb, [DR__MODE_RGBA] = l_to_rgba },
    [DR__PIXEL_LA] = { [DR__MODE_RGB] = la_to_rgb, [DR__MODE_GRAY] = la_to_l, [DR__MODE_RGBA] = la_to_rgba },
    [DR__PIXEL_RGB] = { [DR__MODE_GRAY] = rgb_to_l, [DR__MODE_RGBA] = rgb_to_rgba },
    [DR__PIXEL_RGBA] = { [DR__MODE_RGB] = rgba_to_rgb, [DR__MODE_GRAY] = rgba_to_l },
    [DR__PIXEL_CMYK_INVERTED] = { [DR__MODE_RGB] = cmyk_to_rgb,
                                  [DR__MODE_GRAY] = cmyk_to_l,
                                  [DR__MODE_RGBA] = cmyk_to_rgba },
    [DR__PIXEL_L16] = { [DR__MODE_RGB] = l16_to_rgb, [DR__MODE_GRAY] = l16_to_l, [DR__MODE_RGBA] = l16_to_rgba },
};

dr__pixel_kind dr__pixel_result(dr__pixel_kind kind, dr__color_mode mode)
{
    switch (mode) {
    case DR__MODE_RGB:
        return DR__PIXEL_RGB;
    case DR__MODE_GRAY:
        return DR__PIXEL_L;
    case DR__MODE_RGBA:
        return DR__PIXEL_RGBA;
    default:
        return kind;
    }
}

dr__pixel_convert *dr__pixel_converter(dr__pixel_kind kind, dr__color_mode mode)
{
    if (mode == DR__MODE_UNCHANGED)
        return kind == DR__PIXEL_CMYK_INVERTED ? cmyk_uninvert : NULL;
    assert(kind <= DR__PIXEL_L16);
    return converters[kind][mode];
}
