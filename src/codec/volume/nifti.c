/* nifti.c: the header of NIfTI-1 files (https://nifti.nimh.nih.gov): 348 bytes in either byte order.
 *
 * Axes 1 to 3 are space, x fastest; axis 4 (time) becomes channels.  Files in two parts (.hdr, .img) and numbers that
 * are no real numbers (complex, RGB) are refused by name.
 */
#include <math.h>
#include <string.h>

#include "codec/volume/volume.h"

enum { HEADER = 348, DATA = 352, MAX_DATA_AT = 1 << 24 };
enum { AT_DIM = 40, AT_TYPE = 70, AT_PIXDIM = 76, AT_OFFSET = 108, AT_SLOPE = 112, AT_INTER = 116, AT_MAGIC = 344 };

struct reader {
    const uint8_t *data;
    bool swap;
};

static uint32_t number_at(const struct reader *r, size_t at, int bytes)
{
    uint8_t b[4] = { 0 };
    for (int i = 0; i < bytes; i++)
        b[i] = r->data[at + (size_t)(r->swap ? bytes - 1 - i : i)];
    uint32_t whole;
    uint16_t half;
    memcpy(&half, b, sizeof half);
    memcpy(&whole, b, sizeof whole);
    return bytes == 2 ? half : whole;
}

static int64_t i16_at(const struct reader *r, size_t at)
{
    return (int16_t)number_at(r, at, 2);
}

static double f32_at(const struct reader *r, size_t at)
{
    uint32_t bits = number_at(r, at, 4);
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static bool is_header(const uint8_t *data, bool swap)
{
    struct reader r = { data, swap };
    return number_at(&r, 0, 4) == HEADER;
}

static bool probe(const uint8_t *data, size_t size)
{
    return size >= 4 && (is_header(data, false) || is_header(data, true));
}

static const struct {
    int code;
    char number;
    int bytes;
    const char *name; /* of types that are refused */
} types[] = {
    { 2, 'u', 1, NULL },    { 4, 'i', 2, NULL },        { 8, 'i', 4, NULL },          { 16, 'f', 4, NULL },
    { 64, 'f', 8, NULL },   { 256, 'i', 1, NULL },      { 512, 'u', 2, NULL },        { 768, 'u', 4, NULL },
    { 1024, 'i', 8, NULL }, { 1280, 'u', 8, NULL },     { 1, 0, 0, "1-bit" },         { 32, 0, 0, "complex64" },
    { 128, 0, 0, "RGB" },   { 1536, 0, 0, "float128" }, { 1792, 0, 0, "complex128" }, { 2048, 0, 0, "complex256" },
    { 2304, 0, 0, "RGBA" },
};

static dr_status read_type(const struct reader *r, dr__volume_info *info, dr_error *err)
{
    int64_t code = i16_at(r, AT_TYPE);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].code == code && types[i].name)
            return dr__fail(err, DR_ERR_UNSUPPORTED, "nifti: voxels of type %s are not supported", types[i].name);
        else if (types[i].code == code) {
            info->number = types[i].number;
            info->bytes = types[i].bytes;
            return DR_OK;
        }
    return dr__fail(err, DR_ERR_FORMAT, "nifti: data type %lld is not one of the format", (long long)code);
}

static dr_status read_dims(const struct reader *r, dr__volume_info *info, dr_error *err)
{
    int64_t n = i16_at(r, AT_DIM);
    if (n < 1 || n > 7)
        return dr__fail(err, DR_ERR_FORMAT, "nifti: axes must be 1 to 7, got %lld", (long long)n);
    for (int i = 0; i < 4; i++)
        info->stored[i] = 1;
    for (int64_t i = 1; i <= n; i++) {
        int64_t extent = i16_at(r, AT_DIM + 2 * (size_t)i);
        if (extent < 1 || (i > 4 && extent != 1))
            return dr__fail(err, DR_ERR_FORMAT, "nifti: axis %lld must have %s voxels, got %lld", (long long)i,
                            i > 4 ? "1" : "1 to 32767", (long long)extent);
        if (i <= 4)
            info->stored[4 - i] = extent;
    }
    for (int i = 0; i < 3; i++) {
        double step = fabs(f32_at(r, AT_PIXDIM + 4 * (size_t)(3 - i)));
        info->spacing[i] = isfinite(step) && 3 - i <= n ? step : 0; /* the file's order, slowest first */
    }
    return DR_OK;
}

static dr_status read_place(const struct reader *r, dr__volume_info *info, dr_error *err)
{
    double at = f32_at(r, AT_OFFSET);
    if (memcmp(r->data + AT_MAGIC, "n+1", 4))
        return dr__fail(err, DR_ERR_UNSUPPORTED, "nifti: not a single-file NIfTI-1 (its magic is not \"n+1\")");
    if (at == 0)
        at = DATA;
    if (!(at >= DATA && at <= MAX_DATA_AT) || at != (double)(int64_t)at)
        return dr__fail(err, DR_ERR_FORMAT, "nifti: offset of the voxels must be %d to %d, got %g", DATA, MAX_DATA_AT,
                        at);
    info->data_at = (uint64_t)at;
    return DR_OK;
}

static dr_status header(const uint8_t *data, size_t size, const dr__volume_options *options, dr__volume_info *info,
                        dr_error *err)
{
    static const int zyx[] = { 0, 1, 2, 3 }, xyz[] = { 0, 3, 2, 1 };
    struct reader r = { data, is_header(data, true) };
    if (size < HEADER)
        return dr__fail(err, DR_ERR_FORMAT, "nifti: the file ends in its header: %zu of %d bytes", size, HEADER);
    info->swap = r.swap;
    DR_TRY(read_type(&r, info, err));
    DR_TRY(read_dims(&r, info, err));
    DR_TRY(read_place(&r, info, err));
    double slope = f32_at(&r, AT_SLOPE), offset = f32_at(&r, AT_INTER);
    bool scaled = isfinite(slope) && isfinite(offset) && slope != 0;
    info->slope = scaled ? slope : 1;
    info->offset = scaled ? offset : 0;
    dr__volume_turn(info, options->xyz ? xyz : zyx);
    return DR_OK;
}

const dr_volume_codec dr__volume_codec_nifti = {
    .name = "nifti",
    .summary = "medical volumes, NIfTI-1 in one file",
    .probe = probe,
    .header = header,
};
