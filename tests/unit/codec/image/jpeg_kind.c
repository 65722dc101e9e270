/* jpeg_kind.c: see jpeg_kind.h. */
#include "unit/codec/image/jpeg_kind.h"

#include <stdio.h>
#include <string.h>

const struct jpeg_sampling jpeg_samplings[] = {
    { "4:4:4", { 1, 1, 1 }, { 1, 1, 1 } },
    { "4:2:2", { 2, 1, 1 }, { 1, 1, 1 } },
    { "4:2:0", { 2, 1, 1 }, { 2, 1, 1 } },
    { "4:4:0", { 1, 1, 1 }, { 2, 1, 1 } },
    { "4:1:1", { 4, 1, 1 }, { 1, 1, 1 } },
    { "4:4:4, all 1x2", { 1, 1, 1 }, { 2, 2, 2 } },
    { "4:4:4, all 2x1", { 2, 2, 2 }, { 1, 1, 1 } },
    { "4:4:4, all 3x1", { 3, 3, 3 }, { 1, 1, 1 } },
    { "4:2:2, 2x2 and 1x2", { 2, 1, 1 }, { 2, 2, 2 } },
    { "4:4:0, 2x2 and 2x1", { 2, 2, 2 }, { 2, 1, 1 } },
    { "2x2, 1x2, 1x1", { 2, 1, 1 }, { 2, 2, 1 } },
    { "2x2, 2x1, 1x2", { 2, 2, 1 }, { 2, 1, 2 } },
    { "2x2, 1x1, 2x2", { 2, 1, 2 }, { 2, 1, 2 } },
    { "luma coarser than chroma", { 1, 2, 2 }, { 1, 1, 1 } },
    { "one chroma finer than all", { 1, 2, 1 }, { 1, 2, 1 } },
    { "3x1", { 3, 1, 1 }, { 1, 1, 1 } },
    { "1x3", { 1, 1, 1 }, { 3, 1, 1 } },
    { "1x4", { 1, 1, 1 }, { 4, 1, 1 } },
    { "4x2", { 4, 1, 1 }, { 2, 1, 1 } },
    { "2x4", { 2, 1, 1 }, { 4, 1, 1 } },
    { 0 },
};

int jpeg_n_samplings(void)
{
    int n = 0;
    while (jpeg_samplings[n].name)
        n++;
    return n;
}

static void random_scans(struct jpeg_spec *spec, uint64_t *s)
{
    int kind = random_in(s, 0, 39);
    spec->progressive = kind == 0;
    spec->arithmetic = kind == 1;
    spec->interleaved_off = kind == 2;
    spec->partly_separate = kind == 3 && spec->color == JPEG_YCC;
    spec->dc_only = kind == 4;
    if (spec->arithmetic || spec->progressive)
        spec->huffman = HUFFMAN_BY_SEED;
}

static void random_factors(struct jpeg_spec *spec, uint64_t *s)
{
    int usual = random_in(s, 0, 1); /* the first four are what one meets */
    const struct jpeg_sampling *f = &jpeg_samplings[random_in(s, 0, usual ? 3 : jpeg_n_samplings() - 1)];
    memcpy(spec->h, f->h, sizeof(f->h));
    memcpy(spec->v, f->v, sizeof(f->v));
    if (spec->color >= JPEG_CMYK) {
        spec->h[0] = spec->h[3] = random_in(s, 1, 2);
        spec->v[0] = spec->v[3] = random_in(s, 1, 2);
        spec->h[1] = spec->h[2] = spec->v[1] = spec->v[2] = 1;
    }
}

struct jpeg_spec random_kind(uint64_t *s, int side)
{
    static const enum jpeg_color colors[] = { JPEG_GRAY, JPEG_PLAIN_RGB, JPEG_PLAIN_RGB, JPEG_CMYK, JPEG_YCCK };
    static const int restarts[] = { 0, 0, 0, 1, 2, 3, 5, 9, 60000 };
    struct jpeg_spec spec = { .width = random_in(s, 1, side), .height = random_in(s, 1, side), .color = JPEG_YCC };
    int color = random_in(s, 0, 15);
    if (color < 5)
        spec.color = colors[color];
    random_factors(&spec, s);
    spec.quality = random_in(s, 1, 100);
    spec.wide_quant = random_in(s, 0, 3) == 0;
    spec.restart = restarts[random_in(s, 0, 8)];
    if (random_in(s, 0, 7) == 0) /* at each row of MCUs */
        spec.restart = (spec.width + 8 * spec.h[0] - 1) / (8 * spec.h[0]);
    spec.content = (enum image_content)random_in(s, 0, CONTENT_EXTREME);
    spec.huffman = (enum jpeg_huffman)random_in(s, 0, HUFFMAN_FLAT);
    spec.ids = random_in(s, 0, 7) ? IDS_USUAL : (enum jpeg_ids)random_in(s, 0, IDS_RANDOM);
    spec.no_jfif = random_in(s, 0, 3) == 0;
    spec.adobe = random_in(s, 0, 5) == 0;
    spec.orientation = random_in(s, 0, 3) ? 0 : random_in(s, 1, 8);
    random_scans(&spec, s);
    spec.seed = next_random(s);
    return spec;
}

void describe_kind(const struct jpeg_spec *spec, char *text, size_t cap)
{
    snprintf(text, cap,
             "%d x %d color %d %dx%d,%dx%d,%dx%d quality %d%s restart %d content %d huffman %d ids %d%s%s%s%s",
             spec->width, spec->height, spec->color, spec->h[0], spec->v[0], spec->h[1], spec->v[1], spec->h[2],
             spec->v[2], spec->quality, spec->wide_quant ? " wide" : "", spec->restart, spec->content, spec->huffman,
             spec->ids, spec->no_jfif ? " no-jfif" : "", spec->adobe ? " adobe" : "",
             spec->progressive || spec->arithmetic ? " progressive-or-arithmetic" : "",
             spec->interleaved_off || spec->partly_separate ? " scans" : "");
}
