/* tiff: the first page of a TIFF by libtiff, in strips or tiles, as Pillow converts it.
 *
 * libtiff decompresses; what the samples mean is decided here, from the tags, as Pillow decides it.  Kinds of which
 * Pillow's pixels are not known to be the same are refused by name.  The orientation tag is always obeyed, as Pillow
 * obeys it.
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
#include "codec/image/exif.h"
#include "codec/image/sink.h"

enum { MAX_KEPT = 4, MAX_EXTRA = 3, LEAST_LIMIT = 1 << 20 /* bytes that libtiff may need for tags */ };

struct tags {
    uint32_t width, height;
    uint16_t bits, samples, format, photometric, compression, planar, fill_order;
    uint16_t n_extra, extra[MAX_EXTRA];
    bool extra_said; /* n_extra stands in the file */
};

struct job {
    const uint8_t *data;
    size_t size, at;
    const dr__decode_options *options;
    dr_error *err;
    char said[160]; /* libtiff's first complaint */

    dr_codec_state *state;
    TIFF *tiff;
    struct tags tags;
    dr__image_info facts;
    dr__pixel_kind kind;
    int kept; /* samples of a pixel that are used, the first ones */
    bool inverted, indexed, premultiplied, ink;
    const uint16_t *map[3]; /* palette; libtiff's */

    bool tiled;
    int64_t chunk_width, chunk_height; /* pixels */
    size_t chunk_bytes, chunk_stride;
    int planes;

    const dr_rect *rect; /* NULL: only the header is asked for */
    dr_view *out;
};

/* --- libtiff's view of memory --- */

static tmsize_t on_read(thandle_t handle, void *to, tmsize_t n)
{
    struct job *j = handle;
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
    struct job *j = handle;
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
    return ((struct job *)handle)->size;
}

/* libtiff only reads what is mapped; the file is opened for reading. */
static int on_map(thandle_t handle, void **base, toff_t *size)
{
    struct job *j = handle;
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
    struct job *j = user;
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

static dr_status open_tiff(struct job *j)
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

/* --- what the tags say --- */

static bool probe(const uint8_t *data, size_t size)
{
    return size >= 8 && (memcmp(data, "II*\0", 4) == 0 || memcmp(data, "MM\0*", 4) == 0 ||
                         memcmp(data, "II+\0", 4) == 0 || memcmp(data, "MM\0+", 4) == 0);
}

static dr_status refuse(const struct job *j, const char *what)
{
    const struct tags *t = &j->tags;
    return dr__fail(j->err, DR_ERR_UNSUPPORTED,
                    "TIFF %s (photometric %d, %d samples of %d bits, %d extra, format %d, compression %d, planes %s, "
                    "fill order %d)",
                    what, t->photometric, t->samples, t->bits, t->n_extra, t->format, t->compression,
                    t->planar == PLANARCONFIG_SEPARATE ? "separate" : "together", t->fill_order);
}

/* An unsigned number of n bytes; 0 beyond the end. */
static uint64_t number(const struct job *j, uint64_t at, uint64_t n)
{
    uint64_t v = 0;
    if (at > j->size || n > j->size - at)
        return 0;
    for (uint64_t i = 0; i < n; i++)
        v = v << 8 | j->data[at + (j->data[0] == 'M' ? i : n - 1 - i)];
    return v;
}

/* The first value of a tag as it stands in the first directory, or `none` where it is not there; -1 where it is there
 * twice or is no whole number.  *count: how many values it has, if that is asked for. */
static int64_t raw_value(const struct job *j, uint32_t tag, int64_t none, uint64_t *count)
{
    bool big = number(j, 2, 2) == 43, seen = false;
    uint64_t word = big ? 8 : 4, entry = 4 + 2 * word, at = number(j, big ? 8 : 4, word);
    uint64_t left = number(j, at, big ? 8 : 2), n = 0;
    int64_t found = none;
    for (at += big ? 8 : 2; left > 0 && at < j->size && j->size - at >= entry; left--, at += entry) {
        if (number(j, at, 2) != tag)
            continue;
        uint64_t type = number(j, at + 2, 2);
        uint64_t bytes = type == TIFF_BYTE    ? 1
                         : type == TIFF_SHORT ? 2
                         : type == TIFF_LONG  ? 4
                         : type == TIFF_LONG8 ? 8
                                              : 0;
        n = number(j, at + 4, word);
        if (seen || bytes == 0 || n == 0)
            return -1;
        seen = true;
        uint64_t value = n > word / bytes ? number(j, at + 4 + word, word) : at + 4 + word;
        found = (int64_t)(number(j, value, bytes) & INT64_MAX);
    }
    if (count)
        *count = n;
    return found;
}

/* libtiff mends tags that do not fit together; Pillow goes by what the file says, so the two have to agree. */
static dr_status check_tags(const struct job *j)
{
    const struct tags *t = &j->tags;
    const struct {
        uint16_t tag;
        int64_t none, got;
    } all[] = {
        { TIFFTAG_IMAGEWIDTH, -1, t->width },       { TIFFTAG_IMAGELENGTH, -1, t->height },
        { TIFFTAG_BITSPERSAMPLE, 1, t->bits },      { TIFFTAG_COMPRESSION, 1, t->compression },
        { TIFFTAG_PHOTOMETRIC, 0, t->photometric }, { TIFFTAG_FILLORDER, 1, t->fill_order },
        { TIFFTAG_SAMPLESPERPIXEL, 1, t->samples }, { TIFFTAG_PLANARCONFIG, 1, t->planar },
        { TIFFTAG_SAMPLEFORMAT, 1, t->format },
    };
    for (size_t i = 0; i < DR_COUNT(all); i++) {
        int64_t raw = raw_value(j, all[i].tag, all[i].none, NULL);
        if (raw != all[i].got)
            return dr__fail(j->err, DR_ERR_FORMAT,
                            "damaged TIFF: tag %d does not fit the others: libtiff takes it for %" PRId64, all[i].tag,
                            all[i].got);
    }
    return DR_OK;
}

static dr_status read_tags(struct job *j)
{
    struct tags *t = &j->tags;
    uint16_t *extra = NULL;
    if (!TIFFGetField(j->tiff, TIFFTAG_IMAGEWIDTH, &t->width) ||
        !TIFFGetField(j->tiff, TIFFTAG_IMAGELENGTH, &t->height))
        return dr__fail(j->err, DR_ERR_FORMAT, "damaged TIFF: no width or height");
    DR_TRY(dr__check_size(j->options, "TIFF", t->width, t->height, j->err));
    TIFFGetFieldDefaulted(j->tiff, TIFFTAG_BITSPERSAMPLE, &t->bits);
    TIFFGetFieldDefaulted(j->tiff, TIFFTAG_SAMPLESPERPIXEL, &t->samples);
    TIFFGetFieldDefaulted(j->tiff, TIFFTAG_SAMPLEFORMAT, &t->format);
    TIFFGetFieldDefaulted(j->tiff, TIFFTAG_COMPRESSION, &t->compression);
    TIFFGetFieldDefaulted(j->tiff, TIFFTAG_PLANARCONFIG, &t->planar);
    TIFFGetFieldDefaulted(j->tiff, TIFFTAG_FILLORDER, &t->fill_order);
    if (!TIFFGetField(j->tiff, TIFFTAG_PHOTOMETRIC, &t->photometric))
        t->photometric = PHOTOMETRIC_MINISWHITE;
    t->extra_said = TIFFGetField(j->tiff, TIFFTAG_EXTRASAMPLES, &t->n_extra, &extra);
    if (!t->extra_said)
        t->n_extra = 0;
    if (t->n_extra > MAX_EXTRA)
        return refuse(j, "with more extra samples than Pillow reads");
    for (int i = 0; i < t->n_extra; i++)
        t->extra[i] = extra[i];
    return check_tags(j);
}

static dr_status check_compression(const struct job *j)
{
    static const uint16_t known[] = { COMPRESSION_NONE,          COMPRESSION_CCITTRLE, COMPRESSION_CCITTFAX3,
                                      COMPRESSION_CCITTFAX4,     COMPRESSION_LZW,      COMPRESSION_JPEG,
                                      COMPRESSION_ADOBE_DEFLATE, COMPRESSION_PACKBITS, COMPRESSION_DEFLATE,
                                      COMPRESSION_LZMA,          COMPRESSION_ZSTD };
    for (size_t i = 0; i < DR_COUNT(known); i++)
        if (known[i] == j->tags.compression)
            return TIFFIsCODECConfigured(known[i]) ? DR_OK
                                                   : refuse(j, "of a compression that this libtiff was built without");
    return refuse(j, "of a compression that is not read");
}

static bool is_raw(const struct tags *t)
{
    return t->compression == COMPRESSION_NONE;
}

static bool is_separate(const struct tags *t)
{
    return t->planar == PLANARCONFIG_SEPARATE;
}

/* Extra samples after the first have to be of no known meaning, as in Pillow's table. */
static bool rest_unspecified(const struct tags *t, int from)
{
    for (int i = from; i < t->n_extra; i++)
        if (t->extra[i] != EXTRASAMPLE_UNSPECIFIED)
            return false;
    return true;
}

/* Grey or an index, and alpha or something that is passed over. */
static dr_status choose_pair(struct job *j)
{
    const struct tags *t = &j->tags;
    bool alpha = t->n_extra == 1 && t->extra[0] == EXTRASAMPLE_UNASSALPHA;
    bool other = t->n_extra == 1 && t->extra[0] == EXTRASAMPLE_UNSPECIFIED && j->indexed;
    if (t->bits != 8 || t->photometric == PHOTOMETRIC_MINISWHITE || is_separate(t) || t->format != SAMPLEFORMAT_UINT ||
        t->fill_order != FILLORDER_MSB2LSB || !(alpha || other))
        return refuse(j, "with a second sample that is not read");
    j->kept = alpha ? 2 : 1;
    j->kind = j->indexed ? (alpha ? DR__PIXEL_RGBA : DR__PIXEL_RGB) : DR__PIXEL_LA;
    return DR_OK;
}

/* Where 0 is white, Pillow does not turn these values round, and does not read them if they are big-endian. */
static dr_status choose_deep_grey(struct job *j)
{
    const struct tags *t = &j->tags;
    if (t->format != SAMPLEFORMAT_UINT || t->fill_order != FILLORDER_MSB2LSB || (is_raw(t) && is_separate(t)) ||
        (t->photometric == PHOTOMETRIC_MINISWHITE && TIFFIsBigEndian(j->tiff)))
        return refuse(j, "of 16-bit samples that are not read");
    j->kind = DR__PIXEL_L16;
    return DR_OK;
}

/* Grey or an index. */
static dr_status choose_single(struct job *j)
{
    const struct tags *t = &j->tags;
    bool plain = t->fill_order == FILLORDER_MSB2LSB, black_zero = t->photometric == PHOTOMETRIC_MINISBLACK;
    j->indexed = t->photometric == PHOTOMETRIC_PALETTE;
    j->inverted = t->photometric == PHOTOMETRIC_MINISWHITE;
    j->kept = 1;
    if (t->samples == 2)
        return choose_pair(j);
    if (t->samples != 1 || t->n_extra != 0)
        return refuse(j, "of a number of samples that is not read");
    if (t->bits == 16 && !j->indexed) {
        j->inverted = false;
        return choose_deep_grey(j);
    }
    bool bytes = t->format == SAMPLEFORMAT_INT && t->bits == 8 && black_zero && plain; /* taken as unsigned */
    if ((t->bits != 1 && t->bits != 2 && t->bits != 4 && t->bits != 8) || (t->format != SAMPLEFORMAT_UINT && !bytes))
        return refuse(j, "of samples that are not read");
    /* Without compression Pillow loses how these are packed when their plane is called separate. */
    if (is_raw(t) && is_separate(t) && (j->inverted || !plain || (t->bits != 8 && (t->bits != 1 || j->indexed))))
        return refuse(j, "of one sample in separate planes");
    j->kind = j->indexed ? DR__PIXEL_RGB : DR__PIXEL_L;
    return DR_OK;
}

/* Planes that lie one after the other; what Pillow does with them depends on the compression. */
static dr_status check_separate(const struct job *j, int colors)
{
    const struct tags *t = &j->tags;
    bool four = t->samples > colors && j->kept > colors;
    if (is_raw(t) && (t->bits != 8 || t->samples != j->kept || j->premultiplied || t->fill_order != FILLORDER_MSB2LSB))
        return refuse(j, "of separate planes without compression");
    if (!is_raw(t) && four && (t->samples != 4 || !t->extra_said))
        return refuse(j, "of separate planes with alpha that is not read");
    return DR_OK;
}

static dr_status choose_alpha(struct job *j, int colors)
{
    const struct tags *t = &j->tags;
    int n = t->samples - colors;
    j->kept = colors;
    if (n == 0 && t->n_extra == 0)
        return DR_OK;
    if (colors == 3 && n == 1 && !t->extra_said) {
        j->kept = 4;
        return DR_OK;
    }
    if (n != t->n_extra || n > (colors == 3 ? 3 : 2) || (t->bits == 16 && n > (colors == 3 ? 1 : 0)))
        return refuse(j, "with extra samples that are not read");
    if (rest_unspecified(t, 0))
        return DR_OK;
    if (colors != 3 || !rest_unspecified(t, 1))
        return refuse(j, "with extra samples that are not read");
    j->premultiplied = t->extra[0] == EXTRASAMPLE_ASSOCALPHA;
    j->kept = 4;
    return DR_OK;
}

static dr_status choose_color(struct job *j, int colors)
{
    const struct tags *t = &j->tags;
    bool deep = t->bits == 16, keep_deep = deep && j->options->mode == DR__MODE_UNCHANGED;
    if ((t->bits != 8 && !deep) || t->format != SAMPLEFORMAT_UINT)
        return refuse(j, "of colour samples that are not read");
    if (t->fill_order != FILLORDER_MSB2LSB && (colors != 3 || t->samples != 3 || deep))
        return refuse(j, "of a fill order that is not read");
    DR_TRY(choose_alpha(j, colors));
    if (is_separate(t))
        DR_TRY(check_separate(j, colors));
    j->ink = colors == 4;
    if (keep_deep && (j->ink || j->premultiplied))
        return refuse(j, "whose 16 bits are not kept; modes RGB, RGBA and L are read");
    if (j->ink)
        j->kind = DR__PIXEL_CMYK_INVERTED;
    else if (j->kept == 4)
        j->kind = keep_deep ? DR__PIXEL_RGBA16 : DR__PIXEL_RGBA;
    else
        j->kind = keep_deep ? DR__PIXEL_RGB16 : DR__PIXEL_RGB;
    return DR_OK;
}

/* libjpeg makes RGB of it, as for a JPEG file; in other compressions libtiff would, whose versions need not agree. */
static dr_status choose_ycbcr(struct job *j)
{
    const struct tags *t = &j->tags;
    if (t->compression != COMPRESSION_JPEG || is_separate(t) || t->samples != 3 || t->n_extra || t->bits != 8 ||
        t->format != SAMPLEFORMAT_UINT || t->fill_order != FILLORDER_MSB2LSB)
        return refuse(j, "in YCbCr that is not JPEG");
    TIFFSetField(j->tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    j->kept = 3;
    j->kind = DR__PIXEL_RGB;
    return DR_OK;
}

static dr_status choose_kind(struct job *j)
{
    DR_TRY(check_compression(j));
    switch (j->tags.photometric) {
    case PHOTOMETRIC_MINISWHITE:
    case PHOTOMETRIC_MINISBLACK:
        j->facts.stored = "gray";
        return choose_single(j);
    case PHOTOMETRIC_PALETTE:
        j->facts.stored = "palette";
        return choose_single(j);
    case PHOTOMETRIC_RGB:
        j->facts.stored = "RGB";
        return choose_color(j, 3);
    case PHOTOMETRIC_SEPARATED:
        j->facts.stored = "CMYK";
        return choose_color(j, 4);
    case PHOTOMETRIC_YCBCR:
        j->facts.stored = "YCbCr";
        return choose_ycbcr(j);
    default:
        return refuse(j, "in colours that are not read");
    }
}

static int orientation_of(const struct job *j)
{
    uint16_t tag = 0;
    uint32_t n = 0;
    void *xmp = NULL;
    if (TIFFGetField(j->tiff, TIFFTAG_ORIENTATION, &tag))
        return tag >= 1 && tag <= 8 ? tag : 1;
    if (!TIFFGetField(j->tiff, TIFFTAG_XMLPACKET, &n, &xmp))
        return 1;
    int found = dr__xmp_orientation(xmp, n);
    return found ? found : 1;
}

/* --- chunks --- */

static const char *chunk_name(const struct job *j)
{
    return j->tiled ? "tiles" : "strips";
}

static dr_status measure_chunks(struct job *j)
{
    const struct tags *t = &j->tags;
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
    int64_t in_chunk = is_separate(t) ? 1 : t->samples;
    if (width < 1 || height < 1 || bytes < 1 || stride < ((int64_t)width * in_chunk * t->bits + 7) / 8 ||
        bytes / stride < (tmsize_t)height)
        return dr__fail(j->err, DR_ERR_FORMAT, "damaged TIFF: %s of %" PRIu32 " x %" PRIu32 " pixels", chunk_name(j),
                        width, height);
    j->chunk_width = width;
    j->chunk_height = height;
    j->chunk_bytes = (size_t)bytes;
    j->chunk_stride = (size_t)stride;
    j->planes = is_separate(t) ? j->kept : 1;
    return DR_OK;
}

/* Of strips that are not compressed Pillow takes all that there are, libtiff those that the image needs. */
static dr_status check_number(const struct job *j)
{
    const struct tags *t = &j->tags;
    int64_t rows = j->tiled ? j->chunk_height : raw_value(j, TIFFTAG_ROWSPERSTRIP, t->height, NULL);
    uint64_t there = 0;
    if (rows < 1 || raw_value(j, j->tiled ? TIFFTAG_TILEOFFSETS : TIFFTAG_STRIPOFFSETS, -1, &there) < 0)
        return dr__fail(j->err, DR_ERR_FORMAT, "damaged TIFF: where its %s are is not said", chunk_name(j));
    uint64_t down = (uint64_t)((t->height - 1) / rows + 1), across = (uint64_t)((t->width - 1) / j->chunk_width + 1);
    uint64_t needed = down * across * (is_separate(t) ? t->samples : 1);
    if (is_raw(t) && there != needed)
        return dr__fail(j->err, DR_ERR_FORMAT, "damaged TIFF: %" PRIu64 " %s where there should be %" PRIu64, there,
                        chunk_name(j), needed);
    return DR_OK;
}

/* libtiff holds a chunk as it is compressed only where it cannot read it in place. */
static dr_status check_memory(const struct job *j)
{
    double area = (double)j->tags.width * (double)j->tags.height;
    double output = area * j->facts.channels * (j->facts.dtype == DR_U16 ? 2 : 1);
    double columns = (double)((j->tags.width - 1) / j->chunk_width + 1);
    double chunks = columns * j->planes * (double)j->chunk_bytes;
    double rows = (double)j->tags.width * (2.0 * MAX_KEPT + 4);
    return dr__check_bytes(j->options, "TIFF", output + chunks + rows, j->err);
}

static dr_status read_header(struct job *j)
{
    DR_TRY(read_tags(j));
    DR_TRY(choose_kind(j));
    if (j->indexed && !TIFFGetField(j->tiff, TIFFTAG_COLORMAP, &j->map[0], &j->map[1], &j->map[2]))
        return dr__fail(j->err, DR_ERR_FORMAT, "damaged TIFF: a palette image without a palette");
    DR_TRY(measure_chunks(j));
    DR_TRY(check_number(j));
    dr__decode_options turned = *j->options;
    turned.exif_orient = true;
    j->facts.width = j->tags.width;
    j->facts.height = j->tags.height;
    j->facts.bits = j->tags.bits;
    j->facts.orientation = orientation_of(j);
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

static dr_status read_chunk(struct job *j, uint8_t *to, int64_t x, int64_t y, int plane)
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

static dr_status read_chunks(struct job *j, const struct target *t, int64_t y)
{
    uint8_t *to = t->chunks;
    for (int p = 0; p < j->planes; p++)
        for (int64_t c = 0; c < t->n; c++, to += j->chunk_bytes)
            DR_TRY(read_chunk(j, to, (t->column + c) * j->chunk_width, y, p));
    return DR_OK;
}

/* Samples of fewer than 8 bits: indices as they are, greys scaled. */
static void unpack_bits(const struct job *j, uint8_t *dst, const uint8_t *src, int64_t x, int64_t n)
{
    int bits = j->tags.bits, most = (1 << bits) - 1, scale = j->indexed ? 1 : 255 / most;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = (x + i) * bits;
        dst[i] = (uint8_t)((src[at / 8] >> (8 - bits - at % 8) & most) * scale);
    }
}

/* `n` pixels from x on of a chunk's row; in a plane of its own a pixel has one sample, the c-th of those kept. */
static void unpack(const struct job *j, uint8_t *dst, const uint8_t *src, int64_t x, int64_t n, int plane)
{
    size_t step = is_separate(&j->tags) ? 1 : j->tags.samples, kept = (size_t)j->kept;
    size_t count = is_separate(&j->tags) ? 1 : kept, c0 = (size_t)plane;
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
static void gather(const struct job *j, const struct target *t, int64_t y_in_chunk)
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

static void color_row(const struct job *j, const struct target *t)
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

static const uint8_t *finish_row(const struct job *j, const struct target *t)
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

static dr_status read_rows(struct job *j, const struct target *t)
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

static dr_status read_pixels(struct job *j)
{
    struct target t;
    DR_TRY(dr__check_target(&j->facts, j->rect, j->out, j->err));
    t.area = dr__orient_rect(j->facts.orientation, j->tags.width, j->tags.height, j->rect);
    DR_TRY(dr__sink_open(&t.sink, j->state, j->kind, j->options, j->facts.orientation, t.area.w, t.area.h, j->out,
                         j->err));
    t.column = t.area.x / j->chunk_width;
    t.n = (t.area.x + t.area.w - 1) / j->chunk_width - t.column + 1;
    size_t chunks = (size_t)t.n * (size_t)j->planes * j->chunk_bytes, row = (size_t)t.area.w * 2 * MAX_KEPT;
    t.samples = dr__reuse_buffer_get(&j->state->rows, row + (size_t)t.area.w * 4 + chunks);
    if (!t.samples)
        return dr__fail(j->err, DR_ERR_NOMEM, "no memory for %zu bytes of TIFF strips or tiles", chunks);
    t.row = t.samples + row;
    t.chunks = t.row + (size_t)t.area.w * 4;
    return read_rows(j, &t);
}

static dr_status run(struct job *j)
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
    struct job j = { .state = state, .data = data, .size = size, .options = options, .err = err };
    DR_TRY(run(&j));
    *info = j.facts;
    return DR_OK;
}

static dr_status decode(dr_codec_state *state, const uint8_t *data, size_t size, const dr__decode_options *options,
                        const dr_rect *rect, dr_view *out, dr_error *err)
{
    struct job j = {
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
