/* jpeg_header.c: what a JPEG header says, and the decoding parameters that give Pillow's pixels. */
#include "codec/image/jpeg_parse.h"
#include "codec/image/jpeg_run.h"

enum { BLOCK_BYTES = DCTSIZE2 * sizeof(JCOEF) };

static const char *sampling_name(const struct jpeg_decompress_struct *cinfo)
{
    const jpeg_component_info *c = cinfo->comp_info;
    const int h[] = { c[0].h_samp_factor, c[1].h_samp_factor, c[2].h_samp_factor };
    const int v[] = { c[0].v_samp_factor, c[1].v_samp_factor, c[2].v_samp_factor };
    return dr__jpeg_sampling_name(h, v);
}

static const char *stored_name(const struct jpeg_decompress_struct *cinfo)
{
    switch (cinfo->jpeg_color_space) {
    case JCS_GRAYSCALE:
        return "gray";
    case JCS_YCbCr:
        return sampling_name(cinfo);
    case JCS_RGB:
        return "RGB";
    case JCS_CMYK:
        return "CMYK";
    case JCS_YCCK:
        return "YCCK";
    default:
        return "unknown";
    }
}

static int orientation_of(const struct jpeg_decompress_struct *cinfo)
{
    dr__jpeg_turn turn = { 0 };
    for (jpeg_saved_marker_ptr m = cinfo->marker_list; m; m = m->next)
        if (m->marker == JPEG_APP0 + 1)
            dr__jpeg_turn_add(&turn, m->data, m->data_length);
    return dr__jpeg_turn_of(&turn);
}

static void check_kind(struct dr__jpeg *jpeg, dr__jpeg_facts *facts)
{
    struct jpeg_decompress_struct *cinfo = &jpeg->cinfo;
    if (cinfo->data_precision != 8)
        dr__jpeg_fail(jpeg, DR_ERR_UNSUPPORTED, "%d-bit JPEG; 8 bits per channel can be read", cinfo->data_precision);
    switch (cinfo->num_components) {
    case 1:
        facts->kind = DR__PIXEL_L;
        cinfo->out_color_space = JCS_GRAYSCALE;
        break;
    case 3:
        facts->kind = DR__PIXEL_RGB;
        cinfo->out_color_space = JCS_RGB;
        break;
    case 4:
        facts->kind = DR__PIXEL_CMYK_INVERTED;
        cinfo->out_color_space = JCS_CMYK;
        break;
    default:
        dr__jpeg_fail(jpeg, DR_ERR_UNSUPPORTED, "JPEG with %d channels; 1, 3 and 4 can be read", cinfo->num_components);
    }
}

/* libjpeg's own memory: some rows of each component, and for more than one scan all coefficients. */
static double working_bytes(struct dr__jpeg *jpeg)
{
    struct jpeg_decompress_struct *cinfo = &jpeg->cinfo;
    double blocks = 0, row_samples = 0;
    for (int c = 0; c < cinfo->num_components; c++) {
        const jpeg_component_info *info = &cinfo->comp_info[c];
        double across = info->width_in_blocks + (double)info->h_samp_factor;
        blocks += across * (info->height_in_blocks + (double)info->v_samp_factor);
        row_samples += across * DCTSIZE * info->v_samp_factor;
    }
    double rows = 3.0 * DCTSIZE * row_samples;
    return jpeg_has_multiple_scans(cinfo) ? rows + blocks * BLOCK_BYTES : rows;
}

static void check_memory(struct dr__jpeg *jpeg, const dr__decode_options *options, const dr__jpeg_facts *facts)
{
    int channels = dr__pixel_channels(dr__pixel_result(facts->kind, options->mode));
    double working = working_bytes(jpeg);
    double output = (double)facts->width * (double)facts->height * channels;
    dr__jpeg_check(jpeg, dr__check_bytes(options, "JPEG", working + output, jpeg->err));
    /* The same promise kept by libjpeg, which else takes what it likes; it counts in long. */
    jpeg->cinfo.mem->max_memory_to_use = (long)DR_MIN(options->max_bytes, (size_t)1 << 40);
}

void dr__jpeg_read_header(struct dr__jpeg *jpeg, const dr__decode_options *options, dr__jpeg_facts *facts)
{
    struct jpeg_decompress_struct *cinfo = &jpeg->cinfo;
    *facts = (dr__jpeg_facts){ 0 };
    jpeg_save_markers(cinfo, JPEG_APP0 + 1, options->exif_orient ? 0xffff : 0);
    while (jpeg_read_header(cinfo, FALSE) == JPEG_HEADER_TABLES_ONLY)
        ; /* tables alone may stand before the image */
    check_kind(jpeg, facts);
    dr__jpeg_check(jpeg, dr__check_size(options, "JPEG", cinfo->image_width, cinfo->image_height, jpeg->err));

    cinfo->scale_num = 1;
    cinfo->scale_denom = (unsigned)DR_MAX(options->scale_denom, 1);
    cinfo->dct_method = JDCT_ISLOW;
    cinfo->do_fancy_upsampling = TRUE;
    jpeg_calc_output_dimensions(cinfo);
    facts->width = cinfo->output_width;
    facts->height = cinfo->output_height;
    check_memory(jpeg, options, facts);

    facts->info.width = facts->width;
    facts->info.height = facts->height;
    facts->info.orientation = options->exif_orient ? orientation_of(cinfo) : 1;
    facts->info.bits = cinfo->data_precision;
    facts->info.stored = stored_name(cinfo);
    facts->info.progressive = cinfo->progressive_mode;
    dr__info_decoded(&facts->info, facts->kind, options);
}

struct header_job {
    const dr__decode_options *options;
    dr__jpeg_facts facts;
};

static void header_body(struct dr__jpeg *jpeg, void *job)
{
    struct header_job *h = job;
    dr__jpeg_read_header(jpeg, h->options, &h->facts);
}

dr_status dr__jpeg_header(dr_codec_state *state, const uint8_t *data, size_t size, const dr__decode_options *options,
                          dr__image_info *info, dr_error *err)
{
    struct header_job job = { .options = options };
    DR_TRY(dr__jpeg_run(state, data, size, header_body, &job, err));
    *info = job.facts.info;
    return DR_OK;
}
