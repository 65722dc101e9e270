/* fuzz_header: probing, header facts, limits and orientation on any bytes.
 *
 * The first byte chooses the options.  What header() says must keep to the limits it was given.
 */
#include "codec/image/exif.h"
#include "fuzz/fuzz_image.h"

static void check_info(const dr__image_info *info, const dr__decode_options *options)
{
    if (info->width < 1 || info->height < 1 || info->width > options->max_side || info->height > options->max_side)
        abort();
    if (options->scale_denom == 1 && info->width * info->height > options->max_pixels)
        abort();
    if (info->channels < 1 || info->channels > 4 || info->orientation < 1 || info->orientation > 8)
        abort();
    if (info->dtype != DR_U8 && (info->dtype != DR_U16 || options->mode != DR__MODE_UNCHANGED))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static dr_codec_state *state;
    if (size < 1)
        return 0;
    if (!state)
        state = dr__codec_state_new();
    dr__decode_options options;
    fuzz_options(data, &options);
    data++;
    size--;
    if (dr__exif_orientation(data, size) > 8 || dr__xmp_orientation(data, size) > 8)
        abort();

    const dr_image_codec *codec;
    dr__image_info info;
    dr_error err = { 0 };
    dr_status status = dr__image_probe(data, size, &codec, &err);
    if (status == DR_OK)
        status = codec->header(state, data, size, &options, &info, &err);
    fuzz_note(status == DR_OK ? info.stored : err.text);
    if (status == DR_OK) {
        check_info(&info, &options);
        dr_rect all = { 0, 0, info.width, info.height };
        if (!(codec->cost(&info, size, &all) > 0))
            abort();
    }
    return 0;
}
