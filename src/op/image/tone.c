/* tone.c: colour changes that are one table of 256 values per channel: invert, posterize, solarize, autocontrast,
 * equalize.  The tables are built as Pillow's ImageOps builds them, in double, so that results are equal. */
#include <string.h>

#include "op/image/adjust.h"

enum { MAX_CHANNELS = 4 };

typedef uint8_t tone_table[256];

static void table_row_rgba(uint8_t *dst, const uint8_t *src, size_t w, const uint8_t *table)
{
    for (size_t x = 0; x < w; x++, dst += 4, src += 4) {
        for (int c = 0; c < 3; c++)
            dst[c] = table[src[c]];
        dst[3] = src[3];
    }
}

void dr__tone_table(const dr_task *task, const dr_view *in, dr_view *out, const uint8_t *table)
{
    size_t w = (size_t)dr__width(&in->desc), row = dr__row_bytes(&in->desc);
    for (int64_t y = 0; y < dr__height(&in->desc); y++) {
        uint8_t *dst = out->data + y * out->stride;
        const uint8_t *src = in->data + y * in->stride;
        if (dr__channels(&in->desc) == 4)
            table_row_rgba(dst, src, w, table);
        else
            task->k->lut_u8(dst, src, row, table);
    }
}

void dr__tone_invert(const dr_task *task, const dr_view *in, dr_view *out)
{
    tone_table table;
    for (int v = 0; v < 256; v++)
        table[v] = (uint8_t)(255 - v);
    dr__tone_table(task, in, out, table);
}

void dr__tone_posterize(const dr_task *task, const dr_view *in, dr_view *out, int bits)
{
    tone_table table;
    for (int v = 0; v < 256; v++)
        table[v] = (uint8_t)(v & ~((1 << (8 - bits)) - 1));
    dr__tone_table(task, in, out, table);
}

void dr__tone_solarize(const dr_task *task, const dr_view *in, dr_view *out, double threshold)
{
    tone_table table;
    for (int v = 0; v < 256; v++)
        table[v] = (uint8_t)(v < threshold ? v : 255 - v);
    dr__tone_table(task, in, out, table);
}

static void count_row(uint32_t (*hist)[256], const uint8_t *row, size_t w, int channels)
{
    if (channels == 1) {
        for (size_t x = 0; x < w; x++)
            hist[0][row[x]]++;
        return;
    }
    for (size_t x = 0; x < w; x++, row += 3) {
        hist[0][row[0]]++;
        hist[1][row[1]]++;
        hist[2][row[2]]++;
    }
}

static void count_values(uint32_t (*hist)[256], const dr_view *in)
{
    int channels = (int)dr__channels(&in->desc);
    memset(hist, 0, sizeof *hist * MAX_CHANNELS);
    for (int64_t y = 0; y < dr__height(&in->desc); y++)
        count_row(hist, in->data + y * in->stride, (size_t)dr__width(&in->desc), channels);
}

static void tables_row_rgb(uint8_t *dst, const uint8_t *src, size_t w, const tone_table *tables)
{
    for (size_t x = 0; x < w; x++, dst += 3, src += 3) {
        dst[0] = tables[0][src[0]];
        dst[1] = tables[1][src[1]];
        dst[2] = tables[2][src[2]];
    }
}

void dr__tone_by_histogram(const dr_task *task, const dr_view *in, dr_view *out,
                           void (*build)(const uint32_t *hist, uint8_t *table))
{
    uint32_t hist[MAX_CHANNELS][256];
    tone_table tables[MAX_CHANNELS];
    int channels = (int)dr__channels(&in->desc);
    count_values(hist, in);
    for (int c = 0; c < channels; c++)
        build(hist[c], tables[c]);
    if (channels == 1) {
        dr__tone_table(task, in, out, tables[0]);
        return;
    }
    for (int64_t y = 0; y < dr__height(&in->desc); y++)
        tables_row_rgb(out->data + y * out->stride, in->data + y * in->stride, (size_t)dr__width(&in->desc),
                       (const tone_table *)tables);
}

static void identity(uint8_t *table)
{
    for (int v = 0; v < 256; v++)
        table[v] = (uint8_t)v;
}

static void build_autocontrast(const uint32_t *hist, uint8_t *table)
{
    int lo = 0, hi = 255;
    while (lo < 255 && !hist[lo])
        lo++;
    while (hi > 0 && !hist[hi])
        hi--;
    if (hi <= lo) {
        identity(table);
        return;
    }
    double scale = 255.0 / (hi - lo), offset = -lo * scale;
    for (int v = 0; v < 256; v++) {
        int t = (int)(v * scale + offset);
        table[v] = (uint8_t)(t < 0 ? 0 : t > 255 ? 255 : t);
    }
}

void dr__tone_autocontrast(const dr_task *task, const dr_view *in, dr_view *out)
{
    dr__tone_by_histogram(task, in, out, build_autocontrast);
}

static void build_equalize(const uint32_t *hist, uint8_t *table)
{
    uint64_t total = 0, last = 0;
    for (int v = 0; v < 256; v++) {
        total += hist[v];
        last = hist[v] ? hist[v] : last;
    }
    uint64_t step = (total - last) / 255; /* 0 also when there is only one value */
    if (!step) {
        identity(table);
        return;
    }
    uint64_t n = step / 2;
    for (int v = 0; v < 256; v++) {
        table[v] = (uint8_t)DR_MIN(n / step, 255);
        n += hist[v];
    }
}

void dr__tone_equalize(const dr_task *task, const dr_view *in, dr_view *out)
{
    dr__tone_by_histogram(task, in, out, build_equalize);
}
