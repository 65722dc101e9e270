/* jpeg_baseline.c: which MCUs are read, which are transformed, and what is learnt on the way.
 *
 * Without seek points everything before the last row wanted is entropy-decoded; what is outside the columns wanted goes
 * no further.  With them, each row wanted begins at the last point before its first column and ends at its last
 * column.  Points are noted whenever decoding comes to one that is not yet known, so that they cost nothing.
 *
 * When the last row of MCUs is wanted it is read to its end, and what follows must be the end of the image: else
 * libjpeg judges.
 */
#include "codec/image/jpeg_baseline.h"

#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"

enum { BLOCKS = DR__MCU_BLOCKS * (DR__CHUNK + 1) + 1 };

struct dr__baseline {
    dr__ac_table ac[DR__JPEG_TABLES];
    dr__dc_table dc[DR__JPEG_TABLES];
    dr__jpeg_frame frame;
    dr__reuse_buffer planes;
    _Alignas(64) int16_t blocks[BLOCKS * DR__BLOCK];
};

/* One call. */
struct job {
    struct dr__baseline *own;
    const dr__jpeg_frame *frame;
    const uint8_t *data;
    size_t size;
    const dr__jpeg_partial *partial; /* NULL: data and size are the whole file */
    dr__scan scan;
    dr__block_places keep, pass;           /* where blocks go that are transformed, and those that are not */
    int16_t *blocks[DR__JPEG_CHANNELS][2]; /* first block of each component and line of blocks */
    dr__mcu_range range;
    dr__lines lines;
    dr__seek_points *seek; /* NULL: none */
    dr__seek_grid grid;
    dr__byte_piece piece; /* of the file, that `bits` reads */
    dr__bits bits;
    int32_t dc[DR__JPEG_CHANNELS];
    int64_t at; /* number of the MCU that is read next; -1: reading has not begun */
};

void dr__baseline_free(struct dr__baseline **baseline)
{
    if (!*baseline)
        return;
    dr__reuse_buffer_free(&(*baseline)->planes);
    dr__free_aligned(*baseline);
    *baseline = NULL;
}

static DR_NOINLINE dr_status baseline_of(dr_codec_state *state, dr_error *err)
{
    if (state->baseline)
        return DR_OK;
    struct dr__baseline *own = dr__alloc_aligned(sizeof *own);
    if (!own)
        return dr__fail(err, DR_ERR_NOMEM, "no memory for a JPEG decoder");
    memset(own, 0, sizeof *own);
    state->baseline = own;
    return DR_OK;
}

/* --- header --- */

static dr__pixel_kind kind_of(const dr__jpeg_frame *f)
{
    return f->n_components == 1 ? DR__PIXEL_L : DR__PIXEL_RGB;
}

static const char *stored_name(const dr__jpeg_frame *f)
{
    const dr__jpeg_component *c = f->component;
    if (f->n_components == 1)
        return "gray";
    if (f->rgb)
        return "RGB";
    return dr__jpeg_sampling_name((const int[]){ c[0].h, c[1].h, c[2].h }, (const int[]){ c[0].v, c[1].v, c[2].v });
}

/* Counted as libjpeg's memory is (jpeg_header.c): what max_bytes refuses must not depend on the decoder.  All but tiny
 * images take less here. */
static double working_bytes(const dr__jpeg_frame *f, const dr__decode_options *options)
{
    const int channels = dr__pixel_channels(dr__pixel_result(kind_of(f), options->mode));
    double row_samples = 0;
    for (int i = 0; i < f->n_components; i++) {
        const dr__jpeg_component *c = &f->component[i];
        row_samples += (double)((c->width + 7) / 8 + c->h) * 8 * c->v;
    }
    return 24 * row_samples + (double)f->width * (double)f->height * channels;
}

static bool parse(const uint8_t *data, size_t size, const dr__decode_options *options, dr__jpeg_frame *f)
{
    const dr__jpeg_partial *partial = options->partial;
    if (!partial)
        return dr__jpeg_parse(data, size, options->exif_orient, f);
    return dr__jpeg_head_parse(data, size, partial->scan, options->exif_orient ? partial->orientation : 1, f);
}

/* Parses and checks the limits. */
dr_status dr__baseline_header(dr_codec_state *state, const uint8_t *data, size_t size,
                              const dr__decode_options *options, dr__image_info *info, bool *taken, dr_error *err)
{
    *taken = false;
    if (options->libjpeg || options->scale_denom > 1)
        return DR_OK;
    DR_TRY(baseline_of(state, err));
    dr__jpeg_frame *f = &state->baseline->frame;
    if (!parse(data, size, options, f))
        return DR_OK;
    DR_TRY(dr__check_size(options, "JPEG", f->width, f->height, err));
    DR_TRY(dr__check_bytes(options, "JPEG", working_bytes(f, options), err));
    *info = (dr__image_info){
        .width = f->width,
        .height = f->height,
        .orientation = f->orientation,
        .bits = 8,
        .stored = stored_name(f),
        .seekable = true,
        .decoder = "drapps",
    };
    dr__info_decoded(info, kind_of(f), options);
    *taken = true;
    return DR_OK;
}

/* --- scan --- */

static bool make_tables(struct dr__baseline *own, const dr__jpeg_frame *f)
{
    for (int i = 0; i < f->n_components; i++) {
        const dr__jpeg_component *c = &f->component[i];
        if (!dr__dc_table_make(&own->dc[c->dc], f->huffman[0][c->dc]) ||
            !dr__ac_table_make(&own->ac[c->ac], f->huffman[1][c->ac]))
            return false;
    }
    return true;
}

static void add_block(struct job *job, int component, int16_t *place, int step)
{
    const dr__jpeg_component *c = &job->frame->component[component];
    const int b = job->scan.n_blocks++;
    job->scan.block[b].dc = &job->own->dc[c->dc];
    job->scan.block[b].ac = &job->own->ac[c->ac];
    job->scan.block[b].component = component;
    job->keep.at[b] = place;
    job->keep.step[b] = step;
    job->pass.at[b] = job->own->blocks; /* all over each other */
    job->pass.step[b] = 0;
}

/* Blocks that stand side by side in the image stand one after the other, with one to spare at the end. */
static void place_blocks(struct job *job)
{
    int16_t *at = job->own->blocks;
    for (int i = 0; i < job->frame->n_components; i++) {
        const dr__jpeg_component *c = &job->frame->component[i];
        for (int y = 0; y < c->v; y++) {
            job->blocks[i][y] = at;
            for (int x = 0; x < c->h; x++)
                add_block(job, i, at + x * DR__BLOCK, c->h * DR__BLOCK);
            at += (DR__CHUNK * c->h + 1) * DR__BLOCK;
        }
    }
}

/* Reads n MCUs, restart markers included: one that follows them, too. */
static bool read_mcus(struct job *job, int64_t n, const dr__block_places *places)
{
    const dr__jpeg_frame *f = job->frame;
    dr__block_places now = *places;
    while (n > 0) {
        const int64_t now_n = f->restart ? DR_MIN(n, f->restart - job->at % f->restart) : n;
        if (!dr__scan_mcus(&job->scan, &job->bits, job->dc, (int)now_n, &now))
            return false;
        for (int b = 0; b < job->scan.n_blocks; b++)
            now.at[b] += now_n * now.step[b];
        job->at += now_n;
        n -= now_n;
        if (f->restart && job->at % f->restart == 0 && job->at < f->mcus_across * f->mcu_rows) {
            if (!dr__bits_restart(&job->bits, (int)(job->at / f->restart - 1) & 7))
                return false;
            memset(job->dc, 0, sizeof job->dc);
        }
    }
    return true;
}

static void transform(struct job *job, int64_t column, int n)
{
    const dr__jpeg_frame *f = job->frame;
    for (int i = 0; i < f->n_components; i++) {
        const dr__jpeg_component *c = &f->component[i];
        const dr__plane *p = &job->lines.plane[i];
        const int64_t x = column * 8 * c->h - p->x;
        for (int y = 0; y < c->v; y++)
            job->lines.k->idct_8x8(p->at + 8 * y * p->stride + x, p->stride, job->blocks[i][y], f->quant[c->quant],
                                   n * c->h);
    }
}

/* --- seek points --- */

/* False: a partial file, of which no point is known. */
static bool open_points(struct job *job)
{
    job->grid = dr__seek_grid_of(job->frame->mcus_across, job->frame->mcu_rows);
    if (job->seek && job->seek->total != job->grid.total) {
        dr__seek_clear(job->seek);
        job->seek->total = (uint32_t)job->grid.total;
    }
    return !job->partial || (job->seek && job->seek->n > 0);
}

/* Begins reading at a bit of the file.  False: it is not there. */
static bool begin_at(struct job *job, uint64_t bit)
{
    const dr__byte_piece whole = { .size = job->size, .data = job->data }, *piece = &whole;
    if (job->partial)
        piece = dr__byte_piece_at(job->partial->pieces, job->partial->n_pieces, bit / 8);
    if (!piece || bit / 8 - piece->offset >= piece->size)
        return false;
    job->piece = *piece;
    job->bits = dr__bits_at(piece->data, piece->size, bit - piece->offset * 8);
    return true;
}

/* Notes where reading stands, if that is the first point that is not known. */
static void note(struct job *job)
{
    if (!job->seek || job->seek->n >= job->seek->total || dr__seek_mcu_of(&job->grid, job->seek->n) != job->at)
        return;
    dr__seek_point p = { .bit = job->piece.offset * 8 + dr__bits_tell(&job->bits, job->piece.data) };
    memcpy(p.dc, job->dc, sizeof p.dc);
    dr__seek_add(job->seek, &p); /* without memory: not noted */
}

/* MCUs that can be read before the next point must be noted. */
static int64_t before_note(const struct job *job)
{
    const int64_t end = job->frame->mcus_across * job->frame->mcu_rows;
    if (!job->seek || job->seek->n >= job->seek->total)
        return end - job->at;
    const int64_t next = dr__seek_mcu_of(&job->grid, job->seek->n);
    return (next > job->at ? next : end) - job->at;
}

/* Leaps to the last point known before an MCU, if that is ahead. */
static bool leap(struct job *job, int64_t mcu)
{
    if (!job->seek || job->seek->n == 0)
        return true;
    const int64_t point = DR_MIN(dr__seek_point_of(&job->grid, mcu), (int64_t)job->seek->n - 1);
    const dr__seek_point *p = &job->seek->at[point];
    if (dr__seek_mcu_of(&job->grid, point) <= job->at)
        return true;
    if (p->bit < job->frame->scan * 8 || !begin_at(job, p->bit))
        return false;
    job->at = dr__seek_mcu_of(&job->grid, point);
    memcpy(job->dc, p->dc, sizeof job->dc);
    return true;
}

/* --- rows of MCUs --- */

/* Goes to an MCU: by a point, and reading what is between. */
static bool go_to(struct job *job, int64_t mcu)
{
    if (!leap(job, mcu))
        return false;
    while (job->at < mcu) {
        if (!read_mcus(job, DR_MIN(mcu - job->at, before_note(job)), &job->pass))
            return false;
        note(job);
    }
    return true;
}

/* The wanted columns of a row. */
static bool read_row(struct job *job, int64_t row)
{
    const int64_t base = row * job->frame->mcus_across, end = base + job->range.end_column;
    if (!go_to(job, base + job->range.first_column))
        return false;
    while (job->at < end) {
        const int64_t column = job->at - base;
        const int n = (int)DR_MIN(DR_MIN(DR__CHUNK, end - job->at), before_note(job));
        if (!read_mcus(job, n, &job->keep))
            return false;
        transform(job, column, n);
        note(job);
    }
    return true;
}

static bool read_rows(struct job *job)
{
    const dr__jpeg_frame *f = job->frame;
    if (job->partial) /* the first leap begins */
        job->at = -1;
    else if (begin_at(job, f->scan * 8))
        note(job);
    else
        return false;
    for (int64_t row = job->range.first_row; row < job->range.end_row; row++) {
        if (!read_row(job, row))
            return false;
        if (row == f->mcu_rows - 1 && !(go_to(job, f->mcus_across * f->mcu_rows) && dr__bits_over(&job->bits)))
            return false;
        dr__lines_emit(&job->lines, row);
    }
    return true;
}

/* *taken false: not sound. */
static dr_status decode_area(dr_codec_state *state, const uint8_t *data, size_t size, const dr__decode_options *options,
                             const dr_rect *area, const dr__rows_out *out, bool *taken, dr_error *err)
{
    struct dr__baseline *own = state->baseline;
    struct job job = {
        .own = own,
        .frame = &own->frame,
        .data = data,
        .size = size,
        .partial = options->partial,
        .range = dr__lines_range(&own->frame, area),
        .lines = { .frame = &own->frame, .k = state->kernels, .area = *area, .out = *out },
        .scan = { .bmi2 = state->bmi2 },
        .seek = options->seek,
    };
    *taken = false;
    if (!make_tables(own, &own->frame))
        return DR_OK;
    if (!open_points(&job))
        return DR_OK;
    place_blocks(&job);
    if (!dr__lines_open(&job.lines, &job.range, &own->planes))
        return dr__fail(err, DR_ERR_NOMEM, "no memory for rows of a JPEG %lld pixels wide", (long long)area->w);
    if (out->bands)
        out->bands->begin(out->bands);
    *taken = read_rows(&job);
    dr__reuse_buffer_trim(&own->planes);
    if (!*taken && options->seek)
        dr__seek_clear(options->seek); /* whatever they were, they do not belong to sound data */
    return DR_OK;
}

static dr_status decode_to_view(dr_codec_state *state, const uint8_t *data, size_t size,
                                const dr__decode_options *options, const dr_rect *rect, const dr__image_info *info,
                                dr_view *out, bool *taken, dr_error *err)
{
    const dr__jpeg_frame *f = &state->baseline->frame;
    dr__sink sink;
    DR_TRY(dr__check_target(info, rect, out, err));
    const dr_rect area = dr__orient_rect(info->orientation, f->width, f->height, rect);
    DR_TRY(dr__sink_open(&sink, state, kind_of(f), options, info->orientation, area.w, area.h, out, err));
    return decode_area(state, data, size, options, &area, &(dr__rows_out){ .sink = &sink }, taken, err);
}

dr_status dr__baseline_decode(dr_codec_state *state, const uint8_t *data, size_t size,
                              const dr__decode_options *options, const dr_rect *rect, dr_view *out, dr__bands *bands,
                              bool *taken, dr_error *err)
{
    dr__image_info info;
    DR_TRY(dr__baseline_header(state, data, size, options, &info, taken, err));
    if (!*taken)
        return DR_OK;
    if (out)
        return decode_to_view(state, data, size, options, rect, &info, out, taken, err);
    DR_TRY(dr__check_rect(&info, rect, err));
    if (info.orientation != 1)
        return dr__fail(err, DR_ERR_ARG, "a JPEG to be turned (EXIF orientation %d) has no rows to hand out",
                        info.orientation);
    const dr__pixel_kind kind = kind_of(&state->baseline->frame);
    const dr__rows_out to = {
        .bands = bands,
        .convert = dr__pixel_converter(kind, options->mode),
        .pixel = dr__pixel_bytes(dr__pixel_result(kind, options->mode)),
    };
    return decode_area(state, data, size, options, rect, &to, taken, err);
}
