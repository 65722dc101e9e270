/* make_seeds: writes first inputs for the image fuzz targets: one small file of each kind.
 *
 *   make_seeds FOLDER      writes FOLDER/jpeg/..., FOLDER/jpeg_diff/..., FOLDER/jpeg_own/..., FOLDER/png/...,
 * FOLDER/webp/..., FOLDER/header/...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "codec/codec_config.h"
#include "unit/codec/image/jpeg_kind.h"
#include "unit/codec/image/make_image.h"
#include "unit/codec/image/odd_jpeg.h"

static const char *folder;
static int n_seeds;

/* The options: RGB with a rectangle in the middle, a whole one turned, ... */
static const uint8_t prefixes[][5] = {
    { 0, 140, 140, 128, 128 }, { 4, 0, 0, 255, 255 }, { 1, 130, 80, 90, 60 }, { 10, 10, 200, 255, 4 }
};

static void put(const char *target, const uint8_t *prefix, size_t n, const struct blob *b)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", folder, target);
    mkdir(path, 0777);
    snprintf(path, sizeof(path), "%s/%s/seed%03d", folder, target, n_seeds);
    FILE *out = fopen(path, "wb");
    if (!out || fwrite(prefix, 1, n, out) != n || fwrite(b->data, 1, b->size, out) != b->size || fclose(out) != 0) {
        perror(path);
        exit(1);
    }
}

static void seed(const char *target, struct blob b)
{
    const uint8_t *prefix = prefixes[n_seeds % 4];
    put(target, prefix, 5, &b);
    put("header", prefix, 1, &b);
    n_seeds++;
    blob_free(&b);
}

static void jpeg_seeds(void)
{
    static const int sampling[][2] = { { 1, 1 }, { 2, 1 }, { 2, 2 }, { 1, 2 }, { 4, 1 } };
    for (int color = JPEG_GRAY; color <= JPEG_YCCK; color++)
        for (int coding = 0; coding < 4; coding++) {
            struct jpeg_spec s = {
                .width = 35 + 5 * coding, .height = 37, .color = (enum jpeg_color)color, .quality = 60, .seed = 1
            };
            s.h[0] = sampling[(color + coding) % 5][0];
            s.v[0] = sampling[(color + coding) % 5][1];
            s.progressive = coding == 1;
            s.arithmetic = coding == 2;
            s.interleaved_off = coding == 3;
            s.restart = coding == 0 ? 2 : 0;
            s.orientation = (color + coding) % 9;
            seed("jpeg", make_jpeg(&s));
        }
}

/* Small JPEGs of all kinds, good ones and odd ones, for the comparison with libjpeg. */
static void jpeg_diff_seeds(void)
{
    uint64_t s = 1;
    for (int i = 0; i < 300; i++) {
        struct jpeg_spec spec = random_kind(&s, i % 3 ? 40 : 20);
        if (i % 5 == 0) { /* wide enough for several seek points in a row */
            spec.width *= 6;
            spec.quality /= 2;
        }
        struct blob b = make_jpeg(&spec);
        uint8_t prefix[5];
        if (i % 4 == 3)
            any_jpeg_change(&s)->apply(&b, &s);
        for (int k = 0; k < 5; k++)
            prefix[k] = (uint8_t)next_random(&s);
        if (b.size < 3500) {
            put("jpeg_diff", prefix, 5, &b);
            put("jpeg_own", prefix, 5, &b);
        }
        n_seeds++;
        blob_free(&b);
    }
}

#ifdef DR_HAVE_PNG
static void png_seeds(void)
{
    static const int kinds[][2] = { { 0, 1 }, { 0, 2 }, { 0, 8 }, { 0, 16 }, { 2, 8 }, { 2, 16 },
                                    { 3, 1 }, { 3, 4 }, { 4, 8 }, { 6, 8 },  { 6, 16 } };
    for (int i = 0; i < 11; i++) {
        struct png_spec s = { .width = 9, .height = 7, .color_type = kinds[i][0], .depth = kinds[i][1], .seed = 1 };
        s.interlaced = i & 1;
        s.transparent = s.color_type < 4 && (i & 2);
        s.orientation = i % 9;
        seed("png", make_png(&s));
    }
}
#endif

#ifdef DR_HAVE_WEBP
static void webp_seeds(void)
{
    for (int i = 0; i < 8; i++) {
        struct webp_spec s = {
            .width = 18 + i, .height = 17, .lossless = i & 1, .alpha = i & 2, .quality = 30, .seed = 1
        };
        seed("webp", i & 4 ? make_animation(&s, 2, 4, 40, 30) : make_webp(&s));
    }
}
#endif

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    folder = argv[1];
    jpeg_seeds();
    jpeg_diff_seeds();
#ifdef DR_HAVE_PNG
    png_seeds();
#endif
#ifdef DR_HAVE_WEBP
    webp_seeds();
#endif
    printf("%d seeds\n", n_seeds);
    return 0;
}
