/* tiff_tags.c: what the samples of a TIFF mean, by its tags, as Pillow decides it.  Kinds of which Pillow's pixels are
 * not known to be the same are refused by name. */
#include "codec/image/tiff_tags.h"

#include <inttypes.h>
#include <string.h>

#include "codec/image/exif.h"

static dr_status refuse(const dr__tiff_job *j, const char *what)
{
    const dr__tiff_tags *t = &j->tags;
    return dr__fail(j->err, DR_ERR_UNSUPPORTED,
                    "TIFF %s (photometric %d, %d samples of %d bits, %d extra, format %d, compression %d, planes %s, "
                    "fill order %d)",
                    what, t->photometric, t->samples, t->bits, t->n_extra, t->format, t->compression,
                    t->planar == PLANARCONFIG_SEPARATE ? "separate" : "together", t->fill_order);
}

/* An unsigned number of n bytes; 0 beyond the end. */
static uint64_t number(const dr__tiff_job *j, uint64_t at, uint64_t n)
{
    uint64_t v = 0;
    if (at > j->size || n > j->size - at)
        return 0;
    for (uint64_t i = 0; i < n; i++)
        v = v << 8 | j->data[at + (j->data[0] == 'M' ? i : n - 1 - i)];
    return v;
}

int64_t dr__tiff_raw_value(const dr__tiff_job *j, uint32_t tag, int64_t none, uint64_t *count)
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
static dr_status check_tags(const dr__tiff_job *j)
{
    const dr__tiff_tags *t = &j->tags;
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
        int64_t raw = dr__tiff_raw_value(j, all[i].tag, all[i].none, NULL);
        if (raw != all[i].got)
            return dr__fail(j->err, DR_ERR_FORMAT,
                            "damaged TIFF: tag %d does not fit the others: libtiff takes it for %" PRId64, all[i].tag,
                            all[i].got);
    }
    return DR_OK;
}

dr_status dr__tiff_read_tags(dr__tiff_job *j)
{
    dr__tiff_tags *t = &j->tags;
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
    if (t->n_extra > DR__TIFF_MAX_EXTRA)
        return refuse(j, "with more extra samples than Pillow reads");
    for (int i = 0; i < t->n_extra; i++)
        t->extra[i] = extra[i];
    return check_tags(j);
}

static dr_status check_compression(const dr__tiff_job *j)
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

/* Extra samples after the first have to be of no known meaning, as in Pillow's table. */
static bool rest_unspecified(const dr__tiff_tags *t, int from)
{
    for (int i = from; i < t->n_extra; i++)
        if (t->extra[i] != EXTRASAMPLE_UNSPECIFIED)
            return false;
    return true;
}

/* Grey or an index, and alpha or something that is passed over. */
static dr_status choose_pair(dr__tiff_job *j)
{
    const dr__tiff_tags *t = &j->tags;
    bool alpha = t->n_extra == 1 && t->extra[0] == EXTRASAMPLE_UNASSALPHA;
    bool other = t->n_extra == 1 && t->extra[0] == EXTRASAMPLE_UNSPECIFIED && j->indexed;
    if (t->bits != 8 || t->photometric == PHOTOMETRIC_MINISWHITE || dr__tiff_is_separate(t) ||
        t->format != SAMPLEFORMAT_UINT || t->fill_order != FILLORDER_MSB2LSB || !(alpha || other))
        return refuse(j, "with a second sample that is not read");
    j->kept = alpha ? 2 : 1;
    j->kind = j->indexed ? (alpha ? DR__PIXEL_RGBA : DR__PIXEL_RGB) : DR__PIXEL_LA;
    return DR_OK;
}

/* Where 0 is white, Pillow does not turn these values round, and does not read them if they are big-endian. */
static dr_status choose_deep_grey(dr__tiff_job *j)
{
    const dr__tiff_tags *t = &j->tags;
    if (t->format != SAMPLEFORMAT_UINT || t->fill_order != FILLORDER_MSB2LSB ||
        (dr__tiff_is_raw(t) && dr__tiff_is_separate(t)) ||
        (t->photometric == PHOTOMETRIC_MINISWHITE && TIFFIsBigEndian(j->tiff)))
        return refuse(j, "of 16-bit samples that are not read");
    j->kind = DR__PIXEL_L16;
    return DR_OK;
}

/* Grey or an index. */
static dr_status choose_single(dr__tiff_job *j)
{
    const dr__tiff_tags *t = &j->tags;
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
    if (dr__tiff_is_raw(t) && dr__tiff_is_separate(t) &&
        (j->inverted || !plain || (t->bits != 8 && (t->bits != 1 || j->indexed))))
        return refuse(j, "of one sample in separate planes");
    j->kind = j->indexed ? DR__PIXEL_RGB : DR__PIXEL_L;
    return DR_OK;
}

/* Planes that lie one after the other; what Pillow does with them depends on the compression. */
static dr_status check_separate(const dr__tiff_job *j, int colors)
{
    const dr__tiff_tags *t = &j->tags;
    bool four = t->samples > colors && j->kept > colors;
    if (dr__tiff_is_raw(t) &&
        (t->bits != 8 || t->samples != j->kept || j->premultiplied || t->fill_order != FILLORDER_MSB2LSB))
        return refuse(j, "of separate planes without compression");
    if (!dr__tiff_is_raw(t) && four && (t->samples != 4 || !t->extra_said))
        return refuse(j, "of separate planes with alpha that is not read");
    return DR_OK;
}

static dr_status choose_alpha(dr__tiff_job *j, int colors)
{
    const dr__tiff_tags *t = &j->tags;
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

static dr_status choose_color(dr__tiff_job *j, int colors)
{
    const dr__tiff_tags *t = &j->tags;
    bool deep = t->bits == 16, keep_deep = deep && j->options->mode == DR__MODE_UNCHANGED;
    if ((t->bits != 8 && !deep) || t->format != SAMPLEFORMAT_UINT)
        return refuse(j, "of colour samples that are not read");
    if (t->fill_order != FILLORDER_MSB2LSB && (colors != 3 || t->samples != 3 || deep))
        return refuse(j, "of a fill order that is not read");
    DR_TRY(choose_alpha(j, colors));
    if (dr__tiff_is_separate(t))
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
static dr_status choose_ycbcr(dr__tiff_job *j)
{
    const dr__tiff_tags *t = &j->tags;
    if (t->compression != COMPRESSION_JPEG || dr__tiff_is_separate(t) || t->samples != 3 || t->n_extra ||
        t->bits != 8 || t->format != SAMPLEFORMAT_UINT || t->fill_order != FILLORDER_MSB2LSB)
        return refuse(j, "in YCbCr that is not JPEG");
    TIFFSetField(j->tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    j->kept = 3;
    j->kind = DR__PIXEL_RGB;
    return DR_OK;
}

dr_status dr__tiff_choose_kind(dr__tiff_job *j)
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

int dr__tiff_orientation(const dr__tiff_job *j)
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
