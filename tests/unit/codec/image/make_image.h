/* make_image.h: small encoded images for the tests, made by the codecs' own encoders. */
#ifndef DR_TESTS_MAKE_IMAGE_H
#define DR_TESTS_MAKE_IMAGE_H

#include <stdbool.h>

#include "unit/codec/image/blob.h"

enum jpeg_color { JPEG_GRAY, JPEG_YCC, JPEG_PLAIN_RGB, JPEG_CMYK, JPEG_YCCK };
enum image_content { CONTENT_MIXED, CONTENT_NOISE, CONTENT_SMOOTH, CONTENT_FLAT, CONTENT_EXTREME };
enum jpeg_huffman {
    HUFFMAN_BY_SEED,  /* of the standard, or optimal if the seed is odd */
    HUFFMAN_STANDARD, /* as JPEG's annex K has them */
    HUFFMAN_OPTIMAL,
    HUFFMAN_LONG,  /* all codes of 16 bits */
    HUFFMAN_STEEP, /* one code of each length as long as they last, symbols in random order */
    HUFFMAN_FLAT   /* all of 8 bits */
};
enum jpeg_ids { IDS_USUAL, IDS_RGB, IDS_RANDOM };

struct jpeg_spec {
    int width, height;
    enum jpeg_color color;
    int h[4], v[4]; /* sampling factors; 0 means 1 */
    int quality;    /* 0 means 90 */
    int restart;    /* MCUs between restart markers; 0: none */
    bool progressive, arithmetic, interleaved_off, dc_only;
    int orientation; /* 1..8 writes an EXIF segment; 0 none */
    bool big_endian; /* of that segment */
    enum image_content content;
    enum jpeg_huffman huffman;
    enum jpeg_ids ids;    /* of the components */
    bool no_jfif, adobe;  /* the segments that say what the colours are; else as libjpeg writes them */
    bool wide_quant;      /* 16-bit quantisation tables, if the quality is below 25 */
    bool partly_separate; /* the first component in a scan of its own, then the others together */
    bool no_tables;       /* quantisation and Huffman tables are left out */
    uint64_t seed;
};
struct blob make_jpeg(const struct jpeg_spec *spec);

struct png_spec {
    int width, height;
    int color_type, depth; /* libpng's numbers */
    bool interlaced, transparent;
    int orientation;
    uint64_t seed;
};
struct blob make_png(const struct png_spec *spec);

struct webp_spec {
    int width, height;
    bool lossless, alpha;
    int quality; /* 0 means 80 */
    uint64_t seed;
};
struct blob make_webp(const struct webp_spec *spec);

/* A still WebP image as the first of an animation's frames, at (x, y) of a larger canvas. */
struct blob make_animation(const struct webp_spec *spec, int x, int y, int canvas_width, int canvas_height);

/* An EXIF block (without "Exif\0\0") that says this orientation. */
size_t make_exif(uint8_t block[26], int orientation, bool big_endian);

#endif
