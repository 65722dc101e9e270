/* jpeg_decode.c: the pixels of a rectangle of a JPEG, exactly those of decoding everything and cropping.
 *
 * Rows above the rectangle are skipped (entropy-decoded only), columns beside it are not transformed, and decoding
 * stops after its last row.  Columns begin and end at blocks; the smoothing ("fancy") upsampling of subsampled
 * chroma treats the first and last column of what it is given as the image's border, so that a margin of one pixel
 * is decoded on each side where the image goes on, and cut off again.  Where libjpeg cannot crop exactly
 * (can_crop) the whole width is decoded.
 */
#include <string.h>

#include "codec/image/jpeg_run.h"
#include "codec/image/sink.h"

enum { ROWS_AT_ONCE = 8 };

struct decode_job {
    dr_codec_state *state;
    const dr__decode_options *options;
    const dr_rect *rect; /* of the turned image */
    dr_view *out;
    dr__bands *bands; /* instead of out and sink */

    dr__jpeg_facts facts;
    dr_rect area; /* the same rectangle in stored pixels */
    dr__sink sink;
    int64_t left; /* columns decoded before area.x, to be cut off */
    size_t pixel; /* bytes of a pixel as libjpeg gives it */
};

/* Interblock smoothing of an unfinished progressive image looks at neighbouring blocks that a crop leaves out. */
static bool smooths_blocks(const struct jpeg_decompress_struct *cinfo)
{
    if (!cinfo->progressive_mode || !cinfo->coef_bits)
        return false;
    for (int c = 0; c < cinfo->num_components; c++)
        for (int k = 0; k < 10; k++)
            if (cinfo->coef_bits[c][k] != 0)
                return true;
    return false;
}

/* With scaled DCTs libjpeg gets the width of some components wrong when it crops: those that are transformed at a
 * larger size and still have to be upsampled. */
static bool can_crop(const struct jpeg_decompress_struct *cinfo)
{
    for (int c = 0; c < cinfo->num_components; c++) {
        const jpeg_component_info *info = &cinfo->comp_info[c];
        int growth = DR__DCT_SIZE(info) / DR__MIN_DCT_SIZE(cinfo);
        if (growth > 1 && (info->h_samp_factor * growth != cinfo->max_h_samp_factor ||
                           info->v_samp_factor * growth != cinfo->max_v_samp_factor))
            return false;
    }
    return cinfo->num_components > 1 || cinfo->max_h_samp_factor == 1;
}

static bool upsamples_across(const struct jpeg_decompress_struct *cinfo)
{
    for (int c = 0; c < cinfo->num_components; c++)
        if (cinfo->comp_info[c].h_samp_factor != cinfo->max_h_samp_factor)
            return true;
    return false;
}

/* Limits libjpeg to the columns that the area needs. */
static void crop_columns(struct decode_job *job, struct jpeg_decompress_struct *cinfo)
{
    job->left = job->area.x;
    if (!can_crop(cinfo))
        return;
    int64_t margin = upsamples_across(cinfo) ? 1 : 0;
    int64_t align = (int64_t)DR__MIN_DCT_SIZE(cinfo) * cinfo->max_h_samp_factor;
    int64_t first = DR_MAX(job->area.x - margin, 0) / align * align;
    int64_t end = DR_MIN(job->area.x + job->area.w + margin, job->facts.width);
    /* At fewer than three samples of a component libjpeg would change its way of upsampling. */
    int64_t least = 3 * (int64_t)cinfo->max_h_samp_factor;
    if (end - first < least)
        end = DR_MIN(first + least, job->facts.width);
    while (end - first < least && first > 0)
        first = DR_MAX(first - align, 0);

    JDIMENSION x = (JDIMENSION)first, width = (JDIMENSION)(end - first);
    jpeg_crop_scanline(cinfo, &x, &width);
    job->left = job->area.x - (int64_t)x;
}

static void fail_short(struct dr__jpeg *jpeg)
{
    dr__jpeg_fail(jpeg, DR_ERR_FORMAT, "damaged JPEG: decoding stopped at row %u of %u",
                  (unsigned)jpeg->cinfo.output_scanline, (unsigned)jpeg->cinfo.output_height);
}

static uint8_t *row_buffer(struct dr__jpeg *jpeg, struct decode_job *job)
{
    size_t row = jpeg->cinfo.output_width * job->pixel;
    uint8_t *rows = dr__reuse_buffer_get(&job->state->rows, ROWS_AT_ONCE * row + DR__BAND_SLACK);
    if (!rows)
        dr__jpeg_fail(jpeg, DR_ERR_NOMEM, "no memory for %d JPEG rows of %zu bytes", ROWS_AT_ONCE, row);
    return rows;
}

/* Reads `n` rows and gives them to the sink; without a sink they are dropped. */
static void read_rows(struct dr__jpeg *jpeg, struct decode_job *job, int64_t n, const dr__sink *sink)
{
    struct jpeg_decompress_struct *cinfo = &jpeg->cinfo;
    uint8_t *buffer = row_buffer(jpeg, job);
    size_t row = cinfo->output_width * job->pixel;
    JSAMPROW rows[ROWS_AT_ONCE];
    for (int i = 0; i < ROWS_AT_ONCE; i++)
        rows[i] = buffer + (size_t)i * row;
    for (int64_t y = 0; y < n;) {
        JDIMENSION got = jpeg_read_scanlines(cinfo, rows, (JDIMENSION)DR_MIN(n - y, ROWS_AT_ONCE));
        if (got == 0)
            fail_short(jpeg);
        for (JDIMENSION i = 0; sink && i < got; i++)
            dr__sink_put(sink, y + i, rows[i] + (size_t)job->left * job->pixel);
        y += got;
    }
}

/* Can libjpeg write finished rows into the view itself, columns to be cut off included? */
static bool fits_in_place(const struct dr__jpeg *jpeg, const struct decode_job *job)
{
    size_t right = (size_t)(jpeg->cinfo.output_width - job->left - job->area.w);
    return dr__sink_direct(&job->sink) && (size_t)job->left * job->pixel <= job->options->bleed &&
           right * job->pixel <= job->options->bleed;
}

static void read_rows_in_place(struct dr__jpeg *jpeg, struct decode_job *job)
{
    JSAMPROW rows[ROWS_AT_ONCE];
    for (int64_t y = 0; y < job->area.h;) {
        int64_t n = DR_MIN(job->area.h - y, ROWS_AT_ONCE);
        for (int64_t i = 0; i < n; i++)
            rows[i] = dr__sink_row_at(&job->sink, y + i) - (size_t)job->left * job->pixel;
        JDIMENSION got = jpeg_read_scanlines(&jpeg->cinfo, rows, (JDIMENSION)n);
        if (got == 0)
            fail_short(jpeg);
        y += got;
    }
}

/* Rows for bands in the mode asked for; where that is what libjpeg gives, its own. */
static const uint8_t *converted(struct dr__jpeg *jpeg, struct decode_job *job, const uint8_t *rows, ptrdiff_t *stride,
                                int n)
{
    dr__pixel_convert *convert = dr__pixel_converter(job->facts.kind, job->options->mode);
    if (!convert)
        return rows;
    size_t row = (size_t)job->area.w * dr__pixel_bytes(dr__pixel_result(job->facts.kind, job->options->mode));
    uint8_t *to = dr__reuse_buffer_get(&job->state->turned, ROWS_AT_ONCE * row + DR__BAND_SLACK);
    if (!to)
        dr__jpeg_fail(jpeg, DR_ERR_NOMEM, "no memory for %d JPEG rows of %zu bytes", ROWS_AT_ONCE, row);
    for (int i = 0; i < n; i++)
        convert(to + (size_t)i * row, rows + i * *stride, (size_t)job->area.w);
    *stride = (ptrdiff_t)row;
    return to;
}

/* All rows of the area, as many at once as there is room for. */
static void read_bands(struct dr__jpeg *jpeg, struct decode_job *job)
{
    uint8_t *buffer = row_buffer(jpeg, job);
    size_t row = jpeg->cinfo.output_width * job->pixel;
    JSAMPROW rows[ROWS_AT_ONCE];
    for (int i = 0; i < ROWS_AT_ONCE; i++)
        rows[i] = buffer + (size_t)i * row;
    job->bands->begin(job->bands);
    for (int64_t y = 0; y < job->area.h;) {
        int n = (int)DR_MIN(job->area.h - y, ROWS_AT_ONCE);
        for (int got = 0; got < n;) {
            JDIMENSION more = jpeg_read_scanlines(&jpeg->cinfo, rows + got, (JDIMENSION)(n - got));
            if (more == 0)
                fail_short(jpeg);
            got += (int)more;
        }
        ptrdiff_t stride = (ptrdiff_t)row;
        const uint8_t *band = converted(jpeg, job, buffer + (size_t)job->left * job->pixel, &stride, n);
        job->bands->take(job->bands, band, stride, n);
        y += n;
    }
}

static void skip_rows(struct dr__jpeg *jpeg, struct decode_job *job, bool exact)
{
    if (job->area.y == 0)
        return;
    if (!exact)
        read_rows(jpeg, job, job->area.y, NULL);
    else if (jpeg_skip_scanlines(&jpeg->cinfo, (JDIMENSION)job->area.y) != (JDIMENSION)job->area.y)
        fail_short(jpeg);
}

/* After the last row of an image what follows is checked as far as Pillow does: it may end, but not be wrong. */
static void finish(struct dr__jpeg *jpeg)
{
    if (jpeg->cinfo.output_scanline < jpeg->cinfo.output_height)
        return;
    jpeg->complete = true;
    jpeg_finish_decompress(&jpeg->cinfo);
}

/* Begins at the first row of the area. */
static void start(struct dr__jpeg *jpeg, struct decode_job *job)
{
    dr__jpeg_coefs_begin(jpeg);
    jpeg_start_decompress(&jpeg->cinfo);
    bool exact = !smooths_blocks(&jpeg->cinfo);
    job->left = job->area.x;
    if (exact)
        crop_columns(job, &jpeg->cinfo);
    skip_rows(jpeg, job, exact);
}

static void decode_body(struct dr__jpeg *jpeg, void *argument)
{
    struct decode_job *job = argument;
    dr__jpeg_facts *facts = &job->facts;
    dr__jpeg_read_header(jpeg, job->options, facts);
    dr__jpeg_check(jpeg, dr__check_target(&facts->info, job->rect, job->out, jpeg->err));
    int orientation = facts->info.orientation;
    job->area = dr__orient_rect(orientation, facts->width, facts->height, job->rect);
    job->pixel = dr__pixel_bytes(facts->kind);
    dr__jpeg_check(jpeg, dr__sink_open(&job->sink, job->state, facts->kind, job->options, orientation, job->area.w,
                                       job->area.h, job->out, jpeg->err));
    start(jpeg, job);
    if (fits_in_place(jpeg, job))
        read_rows_in_place(jpeg, job);
    else
        read_rows(jpeg, job, job->area.h, &job->sink);
    finish(jpeg);
}

static void stream_body(struct dr__jpeg *jpeg, void *argument)
{
    struct decode_job *job = argument;
    dr__jpeg_facts *facts = &job->facts;
    dr__jpeg_read_header(jpeg, job->options, facts);
    dr__jpeg_check(jpeg, dr__check_rect(&facts->info, job->rect, jpeg->err));
    if (facts->info.orientation != 1)
        dr__jpeg_fail(jpeg, DR_ERR_ARG, "a JPEG to be turned (EXIF orientation %d) has no rows to hand out",
                      facts->info.orientation);
    job->area = *job->rect;
    job->pixel = dr__pixel_bytes(facts->kind);
    start(jpeg, job);
    read_bands(jpeg, job);
    finish(jpeg);
}

dr_status dr__jpeg_decode(dr_codec_state *state, const uint8_t *data, size_t size, const dr__decode_options *options,
                          const dr_rect *rect, dr_view *out, dr_error *err)
{
    struct decode_job job = { .state = state, .options = options, .rect = rect, .out = out };
    return dr__jpeg_run(state, data, size, decode_body, &job, err);
}

dr_status dr__jpeg_stream(dr_codec_state *state, const uint8_t *data, size_t size, const dr__decode_options *options,
                          const dr_rect *rect, dr__bands *bands, dr_error *err)
{
    struct decode_job job = { .state = state, .options = options, .rect = rect, .bands = bands };
    return dr__jpeg_run(state, data, size, stream_body, &job, err);
}
