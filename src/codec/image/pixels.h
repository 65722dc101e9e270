/* pixels.h: kinds of stored pixels, and their conversion to the mode asked for, with Pillow's arithmetic. */
#ifndef DR_CODEC_PIXELS_H
#define DR_CODEC_PIXELS_H

#include "codec/image/image.h"

typedef enum dr__pixel_kind {
    DR__PIXEL_L,  /* grey */
    DR__PIXEL_LA, /* grey, alpha */
    DR__PIXEL_RGB,
    DR__PIXEL_RGBA,
    DR__PIXEL_CMYK_INVERTED, /* as libjpeg gives it: 255 is no ink */
    DR__PIXEL_L16,           /* 16 bits in the machine's byte order */
    DR__PIXEL_LA16,
    DR__PIXEL_RGB16,
    DR__PIXEL_RGBA16,
    DR__PIXEL_KINDS,
} dr__pixel_kind;

/* Converts n pixels; dst and src do not overlap. */
typedef void dr__pixel_convert(uint8_t *dst, const uint8_t *src, size_t n);

int dr__pixel_channels(dr__pixel_kind kind);
dr_dtype dr__pixel_dtype(dr__pixel_kind kind);
size_t dr__pixel_bytes(dr__pixel_kind kind);

/* What decoding this kind in that mode gives. */
dr__pixel_kind dr__pixel_result(dr__pixel_kind kind, dr__color_mode mode);

/* The conversion to it, or NULL when the bytes are already right. */
dr__pixel_convert *dr__pixel_converter(dr__pixel_kind kind, dr__color_mode mode);

#endif
