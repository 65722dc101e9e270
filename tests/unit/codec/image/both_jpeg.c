/* both_jpeg.c: see both_jpeg.h. */
#include "unit/codec/image/both_jpeg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/image/image_state.h"
#include "data/desc.h"
#include "kernel/cpu.h"

enum { GAP = 48, GAP_BYTE = 0xa5 };

extern const dr_image_codec dr__codec_jpeg;

/* Rows with gaps before and between them, so that writing beside a row is seen; the last row ends the memory. */
struct rows {
    dr__bands bands;
    uint8_t *memory, *first;
    size_t row, stride;
    int64_t n, taken; /* rows there are, rows that a stream has brought */
    bool begun, too_many;
    unsigned slack; /* of bytes behind rows, read because a stream promises that one may */
    dr_status status;
    dr_error err;
};

void use_kernels(struct both_jpeg *both, int which)
{
    static dr__kernels table;
    dr__cpu_level best = dr__cpu_use(), below = best == DR__CPU_AVX512 ? DR__CPU_AVX2 : DR__CPU_C;
    dr__kernels_fill(&table, which == 0 ? DR__CPU_C : which == 1 ? below : best);
    both->own->kernels = &table;
}

static void begin_rows(dr__bands *bands)
{
    struct rows *r = (struct rows *)bands;
    r->begun = true;
    r->taken = 0;
}

static void take_rows(dr__bands *bands, const uint8_t *rows, ptrdiff_t stride, int n)
{
    struct rows *r = (struct rows *)bands;
    if (!r->begun || n < 1 || r->taken + n > r->n) {
        r->too_many = true;
        return;
    }
    for (int i = 0; i < n; i++, r->taken++) {
        const uint8_t *row = rows + i * stride;
        memcpy(r->first + (size_t)r->taken * r->stride, row, r->row);
        r->slack += row[r->row] + row[r->row + DR__BAND_SLACK - 1];
    }
}

static struct rows make_rows(const dr__image_info *info, const dr_rect *rect)
{
    struct rows r = { .bands = { begin_rows, take_rows }, .n = rect->h };
    r.row = (size_t)rect->w * (size_t)info->channels * dr_dtype_size(info->dtype);
    r.stride = r.row + GAP;
    r.memory = malloc((size_t)rect->h * r.stride);
    if (!r.memory)
        abort();
    memset(r.memory, GAP_BYTE, (size_t)rect->h * r.stride);
    r.first = r.memory + GAP;
    return r;
}

static bool gaps_untouched(const struct rows *r)
{
    for (int64_t y = 0; y < r->n; y++)
        for (size_t i = 0; i < GAP; i++)
            if (r->memory[(size_t)y * r->stride + i] != GAP_BYTE)
                return false;
    return true;
}

static struct rows decode(const struct both_jpeg *both, bool libjpeg, const dr_rect *rect, bool bands,
                          dr__seek_points *seek)
{
    struct rows r = make_rows(&both->info, rect);
    dr__decode_options options = both->options;
    dr_codec_state *state = libjpeg ? both->reference : both->own;
    options.libjpeg = libjpeg;
    options.seek = seek;
    if (bands && dr__codec_jpeg.stream && both->info.orientation == 1) {
        r.status = dr__codec_jpeg.stream(state, both->data, both->size, &options, rect, &r.bands, &r.err);
        return r;
    }
    dr_view out = { .data = r.first,
                    .stride = (ptrdiff_t)r.stride,
                    .window = *rect,
                    .desc =
                        dr__desc_image(both->info.dtype, both->info.height, both->info.width, both->info.channels) };
    r.status = dr__codec_jpeg.decode(state, both->data, both->size, &options, rect, &out, &r.err);
    r.taken = r.n;
    return r;
}

/* What is wrong with one decoder's result, or NULL. */
static const char *wrong(const struct rows *r)
{
    if (!gaps_untouched(r))
        return "wrote beside its rows";
    if (r->too_many)
        return "gave rows before the first or after the last";
    if (r->status == DR_OK && r->taken != r->n)
        return "gave too few rows";
    if (r->status > 0 || (r->status < 0 && r->err.text[0] == 0))
        return "failed without a reason";
    return NULL;
}

static int64_t first_difference(const struct rows *a, const struct rows *b)
{
    for (int64_t y = 0; y < a->n; y++)
        if (memcmp(a->first + (size_t)y * a->stride, b->first + (size_t)y * b->stride, a->row) != 0)
            return y;
    return -1;
}

static const char *points_wrong(const struct both_jpeg *both, const dr__seek_points *seek)
{
    if (!seek)
        return NULL;
    if (seek->n > seek->total || seek->n > seek->cap)
        return "more seek points than there are";
    for (uint32_t i = 0; i < seek->n; i++)
        if (seek->at[i].bit / 8 > both->size || (i && seek->at[i].bit <= seek->at[i - 1].bit))
            return "seek points out of order or outside";
    return NULL;
}

/* True, or false with the difference described. */
static bool verdict(struct both_jpeg *both, const dr_rect *rect, const struct rows *own, const struct rows *want)
{
    char where[100];
    snprintf(where, sizeof(where), "%lld,%lld %lld x %lld", (long long)rect->x, (long long)rect->y, (long long)rect->w,
             (long long)rect->h);
    const char *mistake = wrong(own);
    if (mistake)
        snprintf(both->difference, sizeof(both->difference), "%s: drapps %s", where, mistake);
    else if (own->status != want->status)
        snprintf(both->difference, sizeof(both->difference), "%s: drapps %d %.120s, libjpeg %d %.120s", where,
                 own->status, own->err.text, want->status, want->err.text);
    else if (own->status == DR_OK && first_difference(own, want) >= 0)
        snprintf(both->difference, sizeof(both->difference), "%s: row %lld differs", where,
                 (long long)first_difference(own, want));
    else
        return true;
    return false;
}

/* A rectangle is decoded by drapps from fewer bytes than libjpeg needs, which reads whole rows of MCUs and one ahead of
 * those it gives.  Where the file ends in between, libjpeg's pixels are those of the file with an end marker. */
static struct rows decode_ended(const struct both_jpeg *both, const dr_rect *rect)
{
    static const uint8_t eoi[2] = { 0xff, 0xd9 };
    struct both_jpeg ended = *both;
    uint8_t *copy = malloc(both->size + sizeof(eoi));
    if (!copy)
        abort();
    memcpy(copy, both->data, both->size);
    memcpy(copy + both->size, eoi, sizeof(eoi));
    ended.data = copy;
    ended.size += sizeof(eoi);
    struct rows r = decode(&ended, true, rect, false, NULL);
    free(copy);
    return r;
}

static bool cut_short(const struct both_jpeg *both, const dr_rect *rect, const struct rows *r)
{
    bool all = rect->w == both->info.width && rect->h == both->info.height;
    return r->status == DR_ERR_FORMAT && !all && strncmp(r->err.text, "truncated", 9) == 0;
}

/* Of coefficients that overflow only libjpeg-turbo's x86 code makes the pixels of idct.c. */
static bool has_own_pixels(const struct both_jpeg *both)
{
#ifdef __x86_64__
    (void)both;
    return false;
#else
    return both->may_overflow;
#endif
}

static struct rows decode_by_c(struct both_jpeg *both, const dr_rect *rect)
{
    const dr__kernels *kernels = both->own->kernels;
    both->own->kernels = dr__kernels_c();
    struct rows r = decode(both, false, rect, false, NULL);
    both->own->kernels = kernels;
    return r;
}

bool both_decode(struct both_jpeg *both, const dr_rect *rect, bool bands, dr__seek_points *seek)
{
    struct rows want = decode(both, true, rect, false, NULL), own = decode(both, false, rect, bands, seek);
    both->status = want.status;
    if (own.status == DR_OK && cut_short(both, rect, &want)) {
        free(want.memory);
        want = decode_ended(both, rect);
    }
    if (want.status == DR_OK && has_own_pixels(both)) {
        free(want.memory);
        want = decode_by_c(both, rect);
    }
    bool same = verdict(both, rect, &own, &want);
    if (same && points_wrong(both, seek)) {
        snprintf(both->difference, sizeof(both->difference), "%s", points_wrong(both, seek));
        same = false;
    }
    free(want.memory);
    free(own.memory);
    return same;
}

bool own_decode(struct both_jpeg *both, const dr_rect *rect, bool bands, dr__seek_points *seek)
{
    struct rows own = decode(both, false, rect, bands, seek);
    const char *mistake = wrong(&own);
    if (mistake)
        snprintf(both->difference, sizeof(both->difference), "drapps %s", mistake);
    free(own.memory);
    return !mistake;
}

static bool same_facts(const dr__image_info *a, const dr__image_info *b)
{
    return a->width == b->width && a->height == b->height && a->channels == b->channels && a->dtype == b->dtype &&
           a->orientation == b->orientation && a->bits == b->bits && strcmp(a->stored, b->stored) == 0 &&
           a->progressive == b->progressive;
}

bool both_header(struct both_jpeg *both)
{
    dr__image_info want = { 0 };
    dr_error err = { 0 }, own_err = { 0 };
    dr__decode_options options = both->options;
    options.seek = NULL;
    options.libjpeg = false;
    dr_status own = dr__codec_jpeg.header(both->own, both->data, both->size, &options, &both->info, &own_err);
    options.libjpeg = true;
    both->status = dr__codec_jpeg.header(both->reference, both->data, both->size, &options, &want, &err);
    if (own != both->status) {
        snprintf(both->difference, sizeof(both->difference), "header: drapps %d %.120s, libjpeg %d %.120s", own,
                 own_err.text, both->status, err.text);
        return false;
    }
    if (own == DR_OK && !same_facts(&both->info, &want)) {
        snprintf(both->difference, sizeof(both->difference), "header: drapps %lld x %lld x %d %s, libjpeg %s",
                 (long long)both->info.width, (long long)both->info.height, both->info.channels, both->info.stored,
                 want.stored);
        return false;
    }
    return true;
}
