/* fuzz_jpeg_own: drapps' JPEG decoder by itself, without libjpeg: what it does not take counts as refused.
 *
 * Built from the decoder's own files alone, so that MemorySanitizer can follow every byte (it cannot in a program with
 * libraries that it has not compiled).  The state is new for each input: buffers that an earlier image has filled would
 * hide reads of what this one has not written.  Input as in fuzz_jpeg_diff.c.
 */
#include "codec/image/image_state.h"
#include "codec/image/jpeg_baseline.h"
#include "fuzz/fuzz_image.h"

#ifdef FUZZ_ALONE
#include <sanitizer/msan_interface.h>

/* What the state and probing would need of the other codecs. */
const dr_image_codec *const dr__image_codecs[] = { NULL };

void dr__jpeg_free(struct dr__jpeg **jpeg)
{
    if (*jpeg)
        abort();
}

static void expect_written(const uint8_t *data, size_t size)
{
    __msan_check_mem_is_initialized(data, size);
}
#else
static void expect_written(const uint8_t *data, size_t size)
{
    (void)data;
    (void)size;
}
#endif

struct input {
    dr_codec_state *state;
    const uint8_t *data;
    size_t size;
    dr__decode_options options;
    dr__image_info info;
    dr__seek_points points;
};

struct rows {
    dr__bands bands;
    uint8_t *data;
    size_t row;
    dr_rect rect;
    int64_t taken;
    bool sound;
};

static void begin_rows(dr__bands *bands)
{
    ((struct rows *)bands)->taken = 0;
}

static void take_rows(dr__bands *bands, const uint8_t *rows, ptrdiff_t stride, int n)
{
    struct rows *r = (struct rows *)bands;
    if (n < 1 || r->taken + n > r->rect.h)
        abort();
    for (int i = 0; i < n; i++, r->taken++)
        memcpy(r->data + (size_t)r->taken * r->row, rows + i * stride, r->row);
}

static struct rows decode(struct input *in, dr_rect rect, bool bands)
{
    struct rows r = { .bands = { begin_rows, take_rows }, .rect = rect };
    dr_error err = { 0 };
    r.row = (size_t)rect.w * (size_t)in->info.channels;
    r.data = malloc(r.row * (size_t)rect.h);
    if (!r.data)
        abort();
    dr_view out = { .data = r.data,
                    .stride = (ptrdiff_t)r.row,
                    .window = rect,
                    .desc = dr__desc_image(DR_U8, in->info.height, in->info.width, in->info.channels) };
    bands = bands && in->info.orientation == 1;
    dr_status status = dr__baseline_decode(in->state, in->data, in->size, &in->options, &rect, bands ? NULL : &out,
                                           bands ? &r.bands : NULL, &r.sound, &err);
    if (status != DR_OK)
        abort(); /* the header was fine, and what is wrong behind it is libjpeg's business */
    if (r.sound && bands && r.taken != rect.h)
        abort();
    if (r.sound)
        expect_written(r.data, r.row * (size_t)rect.h);
    return r;
}

static void compare(const struct rows *part, const struct rows *whole, size_t pixel)
{
    for (int64_t y = 0; part->sound && whole->sound && y < part->rect.h; y++) {
        const uint8_t *want = whole->data + (size_t)(part->rect.y + y) * whole->row + (size_t)part->rect.x * pixel;
        if (memcmp(part->data + (size_t)y * part->row, want, part->row) != 0)
            abort();
    }
}

/* Any bits as points; what comes out is not looked at. */
static void spoil(struct input *in, const uint8_t *prefix)
{
    for (uint32_t i = 0; i < in->points.n; i++) {
        in->points.at[i].bit = (in->points.at[i].bit + prefix[1 + i % 4]) % (in->size * 8 + 64);
        in->points.at[i].dc[i % 3] += prefix[1] << prefix[2] % 24;
    }
}

static void decode_all(struct input *in, const uint8_t *prefix)
{
    bool bands = prefix[0] & 16, wrong = (prefix[0] >> 5 & 3) == 3;
    in->options.seek = prefix[0] >> 5 & 3 ? &in->points : NULL;
    struct rows whole = decode(in, (dr_rect){ 0, 0, in->info.width, in->info.height }, bands);
    if (prefix[0] & 128) /* points are then found again in pieces */
        dr__seek_clear(&in->points);
    if (wrong)
        spoil(in, prefix);
    for (int variant = 0; variant < FUZZ_RECTS; variant++) {
        struct rows part = decode(in, fuzz_rect(prefix, &in->info, variant), bands == (variant & 1));
        if (!wrong)
            compare(&part, &whole, (size_t)in->info.channels);
        free(part.data);
    }
    free(whole.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < FUZZ_PREFIX)
        return 0;
    struct input in = { .state = dr__codec_state_new(), .data = data + FUZZ_PREFIX, .size = size - FUZZ_PREFIX };
    bool taken = false;
    dr_error err = { 0 };
    fuzz_options(data, &in.options);
    in.options.scale_denom = 1;
    in.options.max_pixels = 1 << 15;
    if (!(data[0] & 8))
        in.state->kernels = dr__kernels_c();
    dr_status status = dr__baseline_header(in.state, in.data, in.size, &in.options, &in.info, &taken, &err);
    fuzz_note(status == DR_OK && taken ? in.info.stored : err.text);
    if (status == DR_OK && taken)
        decode_all(&in, data);
    dr__seek_free(&in.points);
    dr__codec_state_free(&in.state);
    return 0;
}
