/* tiny_jpeg.h: a JPEG put together byte by byte, for what no encoder writes. */
#ifndef DR_TESTS_TINY_JPEG_H
#define DR_TESTS_TINY_JPEG_H

#include "unit/codec/image/blob.h"

/* 16 counts and symbols of a code with two words: of one bit and of two. */
extern const uint8_t tiny_table[18];

struct tiny_jpeg {
    int width, height;
    int n_components;
    uint8_t factors[3];     /* h << 4 | v */
    const uint8_t *dc, *ac; /* NULL: tiny_table */
    const uint8_t *extra;   /* segments after SOI; NULL: none */
    size_t n_extra;
};

/* SOI, extra, DQT, SOF0, two DHT, SOS: all up to the entropy-coded data.  To be freed by blob_free. */
struct blob tiny_header(const struct tiny_jpeg *jpeg);

#endif
