/* fuzz_jpeg_diff: drapps' JPEG decoder beside libjpeg on any bytes: the same pixels, or both refuse alike.
 *
 * Input: five bytes, then a file.  The first byte chooses: 1, 2 the mode; 4 EXIF turning; 8 the best kernels; 16 bands
 * instead of a view; 32, 64 seek points: none, kept from rectangle to rectangle, or wrong ones; 128
 * a decoder that has not seen other images.  The others are a rectangle as in fuzz_image.h.
 */
#include "fuzz/fuzz_image.h"
#include "unit/codec/image/both_jpeg.h"

enum { NO_POINTS = 0, WRONG_POINTS = 3 };

static struct both_jpeg both;
static dr__seek_points points;

static void expect(bool same)
{
    fuzz_note(both.status == DR_OK ? "read" : both.status == DR_ERR_FORMAT ? "damaged" : "refused");
    if (same)
        return;
    fprintf(stderr, "%s\n", both.difference);
    abort();
}

static void set_up(const uint8_t *prefix, const uint8_t *file, size_t size)
{
    if (prefix[0] & 128)
        dr__codec_state_free(&both.own);
    if (!both.own)
        both.own = dr__codec_state_new();
    if (!both.reference)
        both.reference = dr__codec_state_new();
    both.data = file;
    both.size = size;
    both.may_overflow = true;
    fuzz_options(prefix, &both.options);
    both.options.scale_denom = 1;
    both.options.max_pixels = 1 << 15;
    use_kernels(&both, prefix[0] & 8 ? 2 : prefix[4] & 1);
    dr__seek_clear(&points);
}

/* Replaces what was learnt by something as plausible. */
static void spoil_points(const uint8_t *prefix)
{
    uint64_t s = (uint64_t)prefix[1] << 24 | (uint64_t)prefix[2] << 16 | (uint64_t)prefix[3] << 8 | prefix[4];
    for (uint32_t i = 0; i < points.n; i++) {
        s = s * 6364136223846793005u + 1442695040888963407u;
        points.at[i].bit = s >> 63 ? s >> 8 : (points.at[i].bit + (s >> 32)) % (both.size * 8 + 64);
        points.at[i].dc[s >> 40 & 1] = (int32_t)(s >> 16);
    }
    points.total += prefix[4] == 255;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < FUZZ_PREFIX)
        return 0;
    set_up(data, data + FUZZ_PREFIX, size - FUZZ_PREFIX);
    expect(both_header(&both));
    if (both.status != DR_OK)
        return 0;
    fuzz_note(both.info.stored);
    dr_rect all = { 0, 0, both.info.width, both.info.height };
    bool bands = data[0] & 16;
    int kind = data[0] >> 5 & 3;
    dr__seek_points *seek = kind == NO_POINTS ? NULL : &points;
    for (int variant = 0; variant < FUZZ_RECTS; variant++) {
        dr_rect r = fuzz_rect(data, &both.info, variant);
        expect(both_decode(&both, &r, bands, seek));
    }
    expect(both_decode(&both, &all, bands, seek));
    if (kind == WRONG_POINTS)
        spoil_points(data);
    for (int variant = 0; seek && variant < FUZZ_RECTS; variant++) {
        dr_rect r = fuzz_rect(data, &both.info, variant);
        expect(kind == WRONG_POINTS ? own_decode(&both, &r, bands, seek) : both_decode(&both, &r, !bands, seek));
    }
    return 0;
}
