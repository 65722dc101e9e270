/* image_zoo: writes one small image of every kind that the codecs read, for comparison with other decoders.
 *
 *   image_zoo FOLDER
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "codec/codec_config.h"
#include "unit/codec/image/make_image.h"

static const char *folder;

static void put(const char *name, struct blob b)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *out = fopen(path, "wb");
    if (!out || fwrite(b.data, 1, b.size, out) != b.size || fclose(out) != 0) {
        perror(path);
        exit(1);
    }
    blob_free(&b);
}

static void jpegs_of(int color, int h, int v)
{
    static const char *const colors[] = { "gray", "ycc", "rgb", "cmyk", "ycck" };
    static const char *const codings[] = { "baseline", "progressive", "arithmetic",
                                           "scans",    "restarts",    "ari-progressive" };
    for (int coding = 0; coding < 6; coding++) {
        char name[128];
        struct jpeg_spec s = { .width = 61, .height = 47, .color = (enum jpeg_color)color, .h = { h }, .v = { v } };
        s.seed = (uint64_t)(coding + 6 * color);
        s.quality = 70 + 5 * coding;
        s.progressive = coding == 1 || coding == 5;
        s.arithmetic = coding == 2 || coding == 5;
        s.interleaved_off = coding == 3;
        s.restart = coding == 4 ? 3 : 0;
        s.orientation = (color + coding + 4 * h + v) % 9;
        snprintf(name, sizeof(name), "%s-%dx%d-%s-exif%d.jpg", colors[color], h, v, codings[coding], s.orientation);
        put(name, make_jpeg(&s));
    }
}

static void jpegs(void)
{
    static const int sampling[][2] = { { 1, 1 }, { 2, 1 }, { 2, 2 }, { 1, 2 }, { 4, 1 }, { 3, 1 } };
    for (int color = JPEG_GRAY; color <= JPEG_YCCK; color++)
        for (size_t i = 0; i < DR_COUNT(sampling); i++)
            jpegs_of(color, sampling[i][0], sampling[i][1]);
}

#ifdef DR_HAVE_PNG
static void pngs(void)
{
    static const int kinds[][2] = { { 0, 1 }, { 0, 2 }, { 0, 4 }, { 0, 8 }, { 0, 16 }, { 2, 8 }, { 2, 16 }, { 3, 1 },
                                    { 3, 2 }, { 3, 4 }, { 3, 8 }, { 4, 8 }, { 4, 16 }, { 6, 8 }, { 6, 16 } };
    for (size_t i = 0; i < DR_COUNT(kinds); i++)
        for (int variant = 0; variant < 4; variant++) {
            char name[128];
            struct png_spec s = {
                .width = 41, .height = 29, .color_type = kinds[i][0], .depth = kinds[i][1], .seed = i
            };
            s.interlaced = variant & 1;
            s.transparent = (variant & 2) && s.color_type < 4;
            s.orientation = (int)(i + (size_t)variant) % 9;
            snprintf(name, sizeof(name), "type%d-%dbit%s%s-exif%d.png", s.color_type, s.depth,
                     s.interlaced ? "-interlaced" : "", s.transparent ? "-trns" : "", s.orientation);
            put(name, make_png(&s));
        }
}
#endif

#ifdef DR_HAVE_WEBP
static void webps(void)
{
    for (int i = 0; i < 16; i++) {
        char name[128];
        struct webp_spec s = { .width = 45 + (i & 1),
                               .height = 38 + (i >> 1 & 1),
                               .lossless = i & 4,
                               .alpha = i & 8,
                               .quality = 20 + 5 * i,
                               .seed = (uint64_t)i };
        snprintf(name, sizeof(name), "%s%s-%dx%d.webp", s.lossless ? "lossless" : "lossy", s.alpha ? "-alpha" : "",
                 s.width, s.height);
        put(name, make_webp(&s));
        snprintf(name, sizeof(name), "animated-%d.webp", i);
        put(name, make_animation(&s, 2 * (i % 5), 4, s.width + 10, s.height + 7));
    }
}
#endif

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    folder = argv[1];
    jpegs();
#ifdef DR_HAVE_PNG
    pngs();
#endif
#ifdef DR_HAVE_WEBP
    webps();
#endif
    return 0;
}
