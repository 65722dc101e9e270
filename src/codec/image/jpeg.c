/* jpeg: the own decoder for what it takes (jpeg_baseline.h), libjpeg-turbo for all else (jpeg_run.h). */
#include "codec/image/jpeg_baseline.h"
#include "codec/image/jpeg_run.h"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

#ifdef LIBJPEG_TURBO_VERSION
#define LIBRARY "libjpeg-turbo " TEXT(LIBJPEG_TURBO_VERSION)
#else
#error "libjpeg-turbo is needed: jpeg_crop_scanline and jpeg_skip_scanlines are its own"
#endif

static bool probe(const uint8_t *data, size_t size)
{
    return size >= 3 && data[0] == 0xff && data[1] == 0xd8 && data[2] == 0xff;
}

/* Entropy decoding runs from the first byte to the last row wanted; transform and colour only on what is wanted.
 * Progressive files are entropy-decoded as a whole, and each scan passes over the coefficients again. */
static double cost(const dr__image_info *info, size_t size, const dr_rect *rect)
{
    double rows = info->orientation >= 5 ? (double)(rect->x + rect->w) / (double)info->width
                                         : (double)(rect->y + rect->h) / (double)info->height;
    double pixels = (double)rect->w * (double)rect->h;
    if (info->progressive)
        return 12.0 * (double)size + 5.0 * (double)info->width * (double)info->height + 3.0 * pixels;
    return 8.5 * (double)size * rows + 3.0 * pixels;
}

/* A partial file that the own decoder could not use: nothing else may see it. */
static dr_status fail_partial(dr_error *err)
{
    return dr__fail(err, DR_ERR_STATE, "the ranges that were read of this JPEG are not enough to decode it");
}

static dr_status header(dr_codec_state *state, const uint8_t *data, size_t size, const dr__decode_options *options,
                        dr__image_info *info, dr_error *err)
{
    bool taken;
    DR_TRY(dr__baseline_header(state, data, size, options, info, &taken, err));
    if (taken)
        return DR_OK;
    if (options->partial)
        return fail_partial(err);
    DR_TRY(dr__jpeg_header(state, data, size, options, info, err));
    info->decoder = LIBRARY;
    return DR_OK;
}

static dr_status decode(dr_codec_state *state, const uint8_t *data, size_t size, const dr__decode_options *options,
                        const dr_rect *rect, dr_view *out, dr_error *err)
{
    bool taken;
    DR_TRY(dr__baseline_decode(state, data, size, options, rect, out, NULL, &taken, err));
    if (!taken && options->partial)
        return fail_partial(err);
    return taken ? DR_OK : dr__jpeg_decode(state, data, size, options, rect, out, err);
}

static dr_status stream(dr_codec_state *state, const uint8_t *data, size_t size, const dr__decode_options *options,
                        const dr_rect *rect, dr__bands *bands, dr_error *err)
{
    bool taken;
    DR_TRY(dr__baseline_decode(state, data, size, options, rect, NULL, bands, &taken, err));
    if (!taken && options->partial)
        return fail_partial(err);
    return taken ? DR_OK : dr__jpeg_stream(state, data, size, options, rect, bands, err);
}

const dr_image_codec dr__codec_jpeg = {
    .name = "jpeg",
    .summary = "photographs, lossy",
    .library = LIBRARY,
    .probe = probe,
    .own = "baseline",
    .header = header,
    .decode = decode,
    .stream = stream,
    .cost = cost,
};
