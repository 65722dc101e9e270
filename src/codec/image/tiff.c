/* tiff: the first page of a TIFF by libtiff, in strips or tiles, as Pillow converts it.
 *
 * libtiff decompresses; what the samples mean is decided from the tags (tiff_tags.c).  The orientation tag is always
 * obeyed, as Pillow obeys it.
 *
 * A strip or tile is a chunk.  The chunks of one row of them, over all planes, are in memory together; a rectangle
 * costs those that it touches.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <tiffio.h>

#include "codec/codec_config.h"
#include "codec/image/image_state.h"
#include "codec/image/sink.h"
#include "codec/image/tiff_tags.h"

enum { LEAST_LIMIT = 1 << 20 /* bytes that libtiff may need for tags */ };

/* --- libtiff's view of memory --- */

static tmsize_t on_read(thandle_t handle, void *to, tmsize_t n)
{
    dr__tiff_job *j = handle;
    size_t left = j->at < j->size ? j->size - j->at : 0, take = n < 0 ? 0 : DR_MIN((size_t)n, left);
    memcpy(to, j->data + (take ? j->at : 0), take);
    j->at += take;
    return (tmsize_t)take;
}

static tmsize_t on_write(thandle_t handle, void *from, tmsize_t n)
{
    (void)handle;
    (void)from;
    (void)n;
    return -1;
}

static toff_t on_seek(thandle_t handle, toff_t to, int whence)
{
    dr__tiff_job *j = handle;
    j->at = (size_t)(to + (whence == SEEK_CUR ? j->at : whence == SEEK_END ? j->size : 0));
    return j->at;
}

static int on_close(thandle_t handle)
{
    (void)handle;
    return 0;
}

static toff_t on_size(thandle_t handle)
{
    return ((dr__tiff_job *)handle)->size;
}

/* libtiff only reads what is mapped; the file is opened for reading. */
static int on_map(thandle_t handle, void **base, toff_t *size)
{
    dr__tiff_job *j = handle;
    *base = (void *)(uintptr_t)j->data;
    *size = j->size;
    return 1;
}

static void on_unmap(thandle_t handle, void *base, toff_t size)
{
    (void)handle;
    (void)base;
    (void)size;
}

static int on_error(TIFF *tiff, void *user, const char *module, const char *format, va_list args)
{
    dr__tiff_job *j = user;
    (void)tiff;
    (void)module;
    if (!j->said[0])
        vsnprintf(j->said, sizeof(j->said), format, args);
    return 1; /* the handler of the process, which prints, is not called */
}

static int on_warning(TIFF *tiff, void *user, const char *module, const char *format, va_list args)
{
    (void)tiff;
    (void)user;
    (void)module;
    (void)format;
    (void)args;
    return 1;
}

static dr_status open_tiff(dr__tiff_job *j)
{
    TIFFOpenOptions *o = TIFFOpenOptionsAlloc();
    if (!o)
        return dr__fail(j->err, DR_ERR_NOMEM, "no memory for a TIFF decoder");
    tmsize_t limit = (tmsize_t)DR_MIN(DR_MAX(j->options->max_bytes, LEAST_LIMIT), (size_t)PTRDIFF_MAX);
    TIFFOpenOptionsSetMaxSingleMemAlloc(o, limit);
#if TIFFLIB_VERSION >= 20240911 /* 4.7 */
    TIFFOpenOptionsSetMaxCumulatedMemAlloc(o, limit);
#endif
    TIFFOpenOptionsSetErrorHandlerExtR(o, on_error, j);
    TIFFOpenOptionsSetWarningHandlerExtR(o, on_warning, j);
    j->tiff = TIFFClientOpenExt("image", "r", j, on_read, on_write, on_seek, on_close, on_size, on_map, on_unmap, o);
    TIFFOpenOptionsFree(o);
    if (j->tiff)
        return DR_OK;
    return dr__fail(j->err, DR_ERR_FORMAT, "damaged TIFF: %s", j->said[0] ? j->said : "its first page cannot be read");
}

static bool probe(const uint8_t *data, size_t size)
{
    return size >= 8 && (memcmp(data, "II*\0", 4) == 0 || memcmp(data, "MM\0*", 4) == 0 ||
                         memcmp(data, "II+\0", 4) == 0 || memcmp(data, "MM\0+", 4) == 0);
}

/* --- chunks --- */

static const char *chunk_name(const dr__tiff_job *j)
{
    return j->tiled ? "tiles" : "strips";
}

static dr_status measure_chunks(dr__tiff_job *j)
{
    const dr__tiff_tags *t = &j->tags;
    uint32_t width = t->width, height = t->height;
    j->tiled = TIFFIsTiled(j->tiff);
    if (j->tiled) {
        TIFFGetField(j->tiff, TIFFTAG_TILEWIDTH, &width);
        TIFFGetField(j->tiff, TIFFTAG_TILELENGTH, &height);
    } else {
        TIFFGetFieldDefaulted(j->tiff, TIFFTAG_ROWSPERSTRIP, &height);
        height = DR_MIN(height, t->height);
    }
    tmsize_t bytes = j->tiled ? TIFFTileSize(j->tiff) : TIFFStripSize(j->tiff);
    tmsize_t stride = j->tiled ? TIFFTileRowSize(j->tiff) : TIFFScanlineSize(j->tiff);
    int64_t in_chunk = dr__tiff_is_separate(t) ? 1 : t->samples;
    if (width < 1 || height < 1 || bytes < 1 || stride < ((int64_t)width * in_chunk * t->bits + 7) / 8 ||
        bytes / stride < (tmsize_t)height)
        return dr__fail(j->err, DR_ERR_FORMAT, "damaged TIFF: %s of %" PRIu32 " x %" PRIu32 " pixels", chunk_name(j),
                        width, height);
    j->chunk_width = width;
    j->chunk_height = height;
    j->chunk_bytes = (size_t)bytes;
    j->chunk_stride = (size_t)stride;
    j->planes = dr__tiff_is_separate(t) ? j->kept : 1;
    return DR_OK;
}

/* Of strips that are not compressed Pillow takes all that there are, libtiff those that the image needs. */
static dr_status check_number(const dr__tiff_job *j)
{
    const dr__tiff_tags *t = &j->tags;
    int64_t rows = j->tiled ? j->chunk_height : dr__tiff_raw_value(j, TIFFTAG_ROWSPERSTRIP, t->height, NULL);
    uint64_t there = 0;
    if (rows < 1 || dr__tiff_raw_value(j, j->tiled ? TIFFTAG_TILEOFFSETS : TIFFTAG_STRIPOFFSETS, -1, &there) < 0)
        return dr__fail(j->err, DR_ERR_FORMAT, "damaged TIFF: where its %s are is not said", chunk_name(j));
    uint64_t down = (uint64_t)((t->height - 1) / rows + 1), across = (uint64_t)((t->width - 1) / j->chunk_width + 1);
    uint64_t needed = down * across * (dr__tiff_is_separate(t) ? t->samples : 1);
    if (dr__tiff_is_raw(t) && there != needed)
        return dr__fail(j->err, DR_ERR_FORMAT, "damaged TIFF: %" PRIu64 " %s where there should be %" PRIu64, there,
                        chunk_name(j), needed);
    return DR_OK;
}

/* libtiff holds a chunk as it is compressed only where it cannot read it in place. */
static dr_status check_memory(const dr__tiff_job *j)
{
    double area = (double)j->tags.width * (double)j->tags.height;
    double output = area * j->facts.channels * (j->facts.dtype == DR_U16 ? 2 : 1);
    double columns = (double)((j->tags.width - 1) / j->chunk_width + 1);
    double chunks = columns * j->planes * (double)j->chunk_bytes;
    double rows = (double)j->tags.width * (2.0 * DR__TIFF_MAX_KEPT + 4);
    return dr__check_bytes(j->options, "TIFF", output + chunks + rows, j->err);
}

static dr_status read_header(dr__tiff_job *j)
{
    DR_TRY(dr__tiff_read_tags(j));
    DR_TRY(dr__tiff_choose_kind(j));
    if (j->indexed && !TIFFGetField(j->tiff, TIFFTAG_COLORMAP, &j->map[0], &j->map[1], &j->map[2]))
        return dr__fail(j->err, DR_ERR_FORMAT, "damaged TIFF: a palette image without a palette");
    DR_TRY(measure_chunks(j));
    DR_TRY(check_number(j));
    dr__decode_options turned = *j->options;
    turned.exif_orient = true;
    j->facts.width = j->tags.width;
    j->facts.height = j->tags.height;
    j->facts.bits = j->tags.bits;
    j->facts.orientation = dr__tiff_orientation(j);
    dr__info_decoded(&j->facts, j->kind, &turned);
    return check_memory(j);
}

struct target {
    dr__sink sink;
    dr_rect area;      /* in stored pixels */
    uint8_t *chunks;   /* those of a row of chunks: planes, and in each of them columns */
    int64_t column, n; /* first column of chunks, number of columns */
    uint8_t *samples;  /* kept samples of a row of the area: 8 bits, or 16 if the kind has 16 */
    uint8_t *row;      /* the same as pixels of the kind */
};

static dr_status read_chunk(dr__tiff_job *j, uint8_t *to, int64_t x, int64_t y, int plane)
{
    uint16_t p = (uint16_t)plane;
    uint32_t number =
        j->tiled ? TIFFComputeTile(j->tiff, (uint32_t)x, (uint32_t)y, 0, p) : TIFFComputeStrip(j->tiff, (uint32_t)y, p);
    /* Some decoders leave what is missing as it was. */
    memset(to, 0, j->chunk_bytes);
    tmsize_t got = j->tiled ? TIFFReadEncodedTile(j->tiff, number, to, (tmsize_t)j->chunk_bytes)
                            : TIFFReadEncodedStrip(j->tiff, number, to, (tmsize_t)j->chunk_bytes);
    if (got >= 0)
        return DR_OK;
    return dr__fail(j->err, DR_ERR_FORMAT, "damaged TIFF: %s %" PRIu32 ": %s", j->tiled ? "tile" : "strip", number,
                    j->said[0] ? j->said : "it cannot be decoded");
}

static dr_status read_chunks(dr__tiff_job *j, const struct target *t, int64_t y)
{
    uint8_t *to = t->chunks;
    for (int p = 0; p < j->planes; p++)
        for (int64_t c = 0; c < t->n; c++, to += j->chunk_bytes)
            DR_TRY(read_chunk(j, to, (t->column + c) * j->chunk_width, y, p));
    return DR_OK;
}

/* Samples of fewer than 8 bits: indices as they are, greys scaled. */
static void unpack_bits(const dr__tiff_job *j, uint8_t *dst, const uint8_t *src, int64_t x, int64_t n)
{
    int bits = j->tags.bits, most = (1 << bits) - 1, scale = j->indexed ? 1 : 255 / most;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = (x + i) * bits;
        dst[i] = (uint8_t)((src[at / 8] >> (8 - bits - at % 8) & most) * scale);
    }
}

/* `n` pixels from x on of a chunk's row; in a plane of its own a pixel has one sample, the c-th of those kept. */
static void unpack(const dr__tiff_job *j, uint8_t *dst, const uint8_t *src, int64_t x, int64_t n, int plane)
{
    size_t step = dr__tiff_is_separate(&j->tags) ? 1 : j->tags.samples, kept = (size_t)j->kept;
    size_t count = dr__tiff_is_separate(&j->tags) ? 1 : kept, c0 = (size_t)plane;
    bool deep = dr__pixel_dtype(j->kind) == DR_U16;
    if (j->tags.bits < 8) {
        unpack_bits(j, dst, src, x, n);
        return;
    }
    for (size_t i = 0; i < (size_t)n; i++)
        for (size_t c = 0; c < count; c++) {
            size_t from = ((size_t)x + i) * step + c, to = i * kept + c0 + c;
            uint16_t v;
            if (j->tags.bits == 8) {
                dst[to] = src[from];
                continue;
            }
            memcpy(&v, src + 2 * from, 2);
            if (deep)
                memcpy(dst + 2 * to, &v, 2);
            else
                dst[to] = (uint8_t)(v >> 8);
        }
}

/* The samples of a row, gathered from all chunks that it passes through. */
static void gather(const dr__tiff_job *j, const struct target *t, int64_t y_in_chunk)
{
    size_t pixel = (size_t)j->kept * (dr__pixel_dtype(j->kind) == DR_U16 ? 2 : 1);
    const uint8_t *chunk = t->chunks + (size_t)y_in_chunk * j->chunk_stride;
    for (int p = 0; p < j->planes; p++)
        for (int64_t c = 0; c < t->n; c++, chunk += j->chunk_bytes) {
            int64_t left = (t->column + c) * j->chunk_width;
            int64_t from = DR_MAX(left, t->area.x);
            int64_t end = DR_MIN(left + j->chunk_width, t->area.x + t->area.w);
            if (end > from)
                unpack(j, t->samples + (size_t)(from - t->area.x) * pixel, chunk, from - left, end - from, p);
        }
}

static void color_row(const dr__tiff_job *j, const struct target *t)
{
    size_t kept = (size_t)j->kept, out = kept + 2;
    for (size_t i = 0; i < (size_t)t->area.w; i++) {
        const uint8_t *s = t->samples + i * kept;
        for (int c = 0; c < 3; c++)
            t->row[i * out + (size_t)c] = (uint8_t)(j->map[c][s[0]] >> 8);
        if (kept == 2)
            t->row[i * out + 3] = s[1];
    }
}

/* Divides the colours by alpha; what is quite transparent is black. */
static void divide_row(uint8_t *row, int64_t n)
{
    for (int64_t i = 0; i < n; i++, row += 4)
        for (int c = 0; c < 3; c++) {
            int v = row[3] ? row[c] * 255 / row[3] : 0;
            row[c] = (uint8_t)DR_MIN(v, 255);
        }
}

static const uint8_t *finish_row(const dr__tiff_job *j, const struct target *t)
{
    size_t n = (size_t)(t->area.w * j->kept);
    if (j->indexed) {
        color_row(j, t);
        return t->row;
    }
    if (j->premultiplied)
        divide_row(t->samples, t->area.w);
    for (size_t i = 0; (j->inverted || j->ink) && i < n; i++)
        t->samples[i] = (uint8_t)(255 - t->samples[i]);
    return t->samples;
}

static dr_status read_rows(dr__tiff_job *j, const struct target *t)
{
    int64_t end = t->area.y + t->area.h;
    for (int64_t top = t->area.y / j->chunk_height * j->chunk_height; top < end; top += j->chunk_height) {
        DR_TRY(read_chunks(j, t, top));
        for (int64_t y = DR_MAX(top, t->area.y); y < DR_MIN(top + j->chunk_height, end); y++) {
            gather(j, t, y - top);
            dr__sink_put(&t->sink, y - t->area.y, finish_row(j, t));
        }
    }
    return DR_OK;
}

static dr_status read_pixels(dr__tiff_job *j)
{
    struct target t;
    DR_TRY(dr__check_target(&j->facts, j->rect, j->out, j->err));
    t.area = dr__orient_rect(j->facts.orientation, j->tags.width, j->tags.height, j->rect);
    DR_TRY(dr__sink_open(&t.sink, j->state, j->kind, j->options, j->facts.orientation, t.area.w, t.area.h, j->out,
                         j->err));
    t.column = t.area.x / j->chunk_width;
    t.n = (t.area.x + t.area.w - 1) / j->chunk_width - t.column + 1;
    size_t chunks = (size_t)t.n * (size_t)j->planes * j->chunk_bytes, row = (size_t)t.area.w * 2 * DR__TIFF_MAX_KEPT;
    t.samples = dr__reuse_buffer_get(&j->state->rows, row + (size_t)t.area.w * 4 + chunks);
    if (!t.samples)
        return dr__fail(j->err, DR_ERR_NOMEM, "no memory for %zu bytes of TIFF strips or tiles", chunks);
    t.row = t.samples + row;
    t.chunks = t.row + (size_t)t.area.w * 4;
    return read_rows(j, &t);
}

static dr_status run(dr__tiff_job *j)
{
    if (!probe(j->data, j->size))
        return dr__fail(j->err, DR_ERR_FORMAT, "damaged TIFF: no header in its %zu bytes", j->size);
    DR_TRY(open_tiff(j));
    dr_status status = read_header(j);
    if (status == DR_OK && j->rect)
        status = read_pixels(j);
    TIFFClose(j->tiff);
    dr__reuse_buffer_trim(&j->state->rows);
    return status;
}

static dr_status header(dr_codec_state *state, const uint8_t *data, size_t size, const dr__decode_options *options,
                        dr__image_info *info, dr_error *err)
{
    dr__tiff_job j = { .state = state, .data = data, .size = size, .options = options, .err = err };
    DR_TRY(run(&j));
    *info = j.facts;
    return DR_OK;
}

static dr_status decode(dr_codec_state *state, const uint8_t *data, size_t size, const dr__decode_options *options,
                        const dr_rect *rect, dr_view *out, dr_error *err)
{
    dr__tiff_job j = {
        .state = state, .data = data, .size = size, .options = options, .err = err, .rect = rect, .out = out
    };
    return run(&j);
}

/* Where the chunks are is not known here: as if they were as wide as the image, and low. */
static double cost(const dr__image_info *info, size_t size, const dr_rect *rect)
{
    double rows = (double)rect->h / (double)info->height;
    return rows * (4.0 * (double)size + 2.0 * (double)info->width * (double)info->height * info->channels) +
           3.0 * (double)rect->w * (double)rect->h;
}

const dr_image_codec dr__codec_tiff = {
    .name = "tiff",
    .summary = "scans, satellite and microscope images; the first page",
    .library = "libtiff " DR_TIFF_VERSION,
    .probe = probe,
    .header = header,
    .decode = decode,
    .cost = cost,
};
