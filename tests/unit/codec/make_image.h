/* make_image.h: small encoded images for the tests, made by the codecs' own encoders. */
#ifndef DR_TESTS_MAKE_IMAGE_H
#define DR_TESTS_MAKE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Owned by the caller; freed by blob_free.  Exactly `size` bytes are allocated, so that sanitizers see overreads. */
struct blob {
    uint8_t *data;
    size_t size;
};

void blob_free(struct blob *blob);
struct blob blob_copy(const uint8_t *data, size_t size);

/* A small generator with a state of its own: tests print the seed they began with. */
uint64_t next_random(uint64_t *state);
int random_in(uint64_t *state, int lo, int hi); /* both ends included */

enum jpeg_color { JPEG_GRAY, JPEG_YCC, JPEG_PLAIN_RGB, JPEG_CMYK, JPEG_YCCK };

struct jpeg_spec {
    int width, height;
    enum jpeg_color color;
    int h[4], v[4]; /* sampling factors; 0 means 1 */
    int quality;    /* 0 means 90 */
    int restart;    /* MCUs between restart markers; 0: none */
    bool progressive, arithmetic, interleaved_off, dc_only;
    int orientation; /* 1..8 writes an EXIF segment; 0 none */
    bool big_endian; /* of that segment */
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
