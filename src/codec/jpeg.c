/* jpeg: baseline, progressive and arithmetic-coded JPEG by libjpeg-turbo. */
#include "codec/jpeg_run.h"

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

static const char *const extensions[] = { ".jpg", ".jpeg", ".jpe", ".jfif", NULL };

const dr_image_codec dr__codec_jpeg = {
    .name = "jpeg",
    .summary = "photographs, lossy",
    .library = LIBRARY,
    .extensions = extensions,
    .probe = probe,
    .header = dr__jpeg_header,
    .decode = dr__jpeg_decode,
    .stream = dr__jpeg_stream,
    .cost = cost,
};
