/* jpeg_run.c: one libjpeg decompressor per worker.
 *
 * libjpeg reports errors by a callback that must not return; ours jumps back into dr__jpeg_run, the only setjmp.
 * Warnings (damaged entropy-coded data) are passed over, as Pillow does.  The end of the input is an error unless all
 * pixels are there: libjpeg itself would invent an end marker and fill up with grey.
 *
 * The decompressor lives on between images, but its quantisation and Huffman tables must not: an image that lacks
 * them would be decoded with those of the one before it, and the result would depend on the schedule.  Their memory
 * belongs to the decompressor's permanent pool, so that a fresh decompressor now and then bounds it.
 */
#include "codec/image/jpeg_run.h"

#include <stdarg.h>
#include <string.h>

#include "base/alloc.h"

enum {
    IMAGES_PER_DECOMPRESSOR = 64,
    MAX_SCANS = 500, /* each costs a pass over the whole image; encoders write about ten */
};

_Noreturn void dr__jpeg_fail(struct dr__jpeg *jpeg, dr_status status, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    jpeg->status = dr__fail(jpeg->err, status, "%s", text);
    longjmp(jpeg->escape, 1);
}

void dr__jpeg_check(struct dr__jpeg *jpeg, dr_status status)
{
    if (status == DR_OK)
        return;
    jpeg->status = status;
    longjmp(jpeg->escape, 1);
}

/* libjpeg numbers its messages differently in each version, so they are told apart by how they begin. */
static const struct {
    const char *begins;
    dr_status status;
} kinds_of_error[] = {
    { "Insufficient memory", DR_ERR_NOMEM },
    { "Unsupported", DR_ERR_UNSUPPORTED },
    { "Maximum supported", DR_ERR_LIMIT },
};

static void on_error(j_common_ptr cinfo)
{
    struct dr__jpeg *jpeg = cinfo->client_data;
    char text[JMSG_LENGTH_MAX];
    cinfo->err->format_message(cinfo, text);
    for (size_t i = 0; i < DR_COUNT(kinds_of_error); i++)
        if (strncmp(text, kinds_of_error[i].begins, strlen(kinds_of_error[i].begins)) == 0)
            dr__jpeg_fail(jpeg, kinds_of_error[i].status, "JPEG: %s", text);
    dr__jpeg_fail(jpeg, DR_ERR_FORMAT, "damaged JPEG: %s", text);
}

static void on_message(j_common_ptr cinfo, int level)
{
    if (level < 0)
        cinfo->err->num_warnings++;
}

static void on_progress(j_common_ptr cinfo)
{
    j_decompress_ptr d = (j_decompress_ptr)cinfo;
    if (cinfo->is_decompressor && d->input_scan_number > MAX_SCANS)
        dr__jpeg_fail(cinfo->client_data, DR_ERR_LIMIT, "JPEG with more than %d scans", MAX_SCANS);
}

static void source_nothing(j_decompress_ptr cinfo)
{
    (void)cinfo;
}

static boolean source_fill(j_decompress_ptr cinfo)
{
    struct dr__jpeg *jpeg = cinfo->client_data;
    if (jpeg->complete) {
        jpeg->status = DR_OK;
        longjmp(jpeg->escape, 1);
    }
    dr__jpeg_fail(jpeg, DR_ERR_FORMAT, "truncated JPEG: its %zu bytes end before the image does", jpeg->size);
}

static void source_skip(j_decompress_ptr cinfo, long n)
{
    if (n <= 0)
        return;
    if ((size_t)n > cinfo->src->bytes_in_buffer)
        source_fill(cinfo);
    cinfo->src->next_input_byte += n;
    cinfo->src->bytes_in_buffer -= (size_t)n;
}

static void forget_tables(j_decompress_ptr cinfo)
{
    for (int i = 0; i < NUM_QUANT_TBLS; i++)
        cinfo->quant_tbl_ptrs[i] = NULL;
    for (int i = 0; i < NUM_HUFF_TBLS; i++)
        cinfo->dc_huff_tbl_ptrs[i] = cinfo->ac_huff_tbl_ptrs[i] = NULL;
}

static void make_decompressor(struct dr__jpeg *jpeg)
{
    if (jpeg->cinfo.mem && jpeg->n_images < IMAGES_PER_DECOMPRESSOR)
        return;
    if (jpeg->cinfo.mem)
        jpeg_destroy_decompress(&jpeg->cinfo);
    jpeg->cinfo.err = &jpeg->errors;
    jpeg->cinfo.client_data = jpeg;
    jpeg_create_decompress(&jpeg->cinfo);
    jpeg->cinfo.progress = &jpeg->progress;
    jpeg->n_images = 0;
}

static void open_input(struct dr__jpeg *jpeg, const uint8_t *data, size_t size)
{
    make_decompressor(jpeg);
    forget_tables(&jpeg->cinfo);
    jpeg->n_images++;
    jpeg->size = size;
    jpeg->complete = false;
    jpeg->source.next_input_byte = data;
    jpeg->source.bytes_in_buffer = size;
    jpeg->cinfo.src = &jpeg->source;
}

static DR_NOINLINE dr_status jpeg_of(dr_codec_state *state, dr_error *err)
{
    if (state->jpeg)
        return DR_OK;
    struct dr__jpeg *jpeg = dr__alloc_zero(1, sizeof(*jpeg));
    if (!jpeg)
        return dr__fail(err, DR_ERR_NOMEM, "no memory for a JPEG decoder");
    jpeg_std_error(&jpeg->errors);
    jpeg->errors.error_exit = on_error;
    jpeg->errors.emit_message = on_message;
    jpeg->progress.progress_monitor = on_progress;
    jpeg->source = (struct jpeg_source_mgr){
        .init_source = source_nothing,
        .fill_input_buffer = source_fill,
        .skip_input_data = source_skip,
        .resync_to_restart = jpeg_resync_to_restart,
        .term_source = source_nothing,
    };
    state->jpeg = jpeg;
    return DR_OK;
}

dr_status dr__jpeg_run(dr_codec_state *state, const uint8_t *data, size_t size, dr__jpeg_body *body, void *job,
                       dr_error *err)
{
    DR_TRY(jpeg_of(state, err));
    struct dr__jpeg *jpeg = state->jpeg;
    jpeg->err = err;
    if (setjmp(jpeg->escape) == 0) {
        open_input(jpeg, data, size);
        body(jpeg, job);
        jpeg->status = DR_OK;
    }
    if (jpeg->cinfo.mem)
        jpeg_abort_decompress(&jpeg->cinfo);
    dr__jpeg_coefs_end(jpeg);
    jpeg->source.next_input_byte = NULL;
    jpeg->source.bytes_in_buffer = 0;
    return jpeg->status;
}

void dr__jpeg_free(struct dr__jpeg **jpeg)
{
    if (!*jpeg)
        return;
    if ((*jpeg)->cinfo.mem)
        jpeg_destroy_decompress(&(*jpeg)->cinfo);
    dr__free(*jpeg);
    *jpeg = NULL;
}
