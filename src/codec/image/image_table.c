/* image_table.c: the image codecs of this build, in the order in which bytes are probed. */
#include "codec/codec_config.h"
#include "codec/image/image.h"

extern const dr_image_codec dr__codec_bmp;
extern const dr_image_codec dr__codec_gif;
extern const dr_image_codec dr__codec_png;
extern const dr_image_codec dr__codec_pnm;
extern const dr_image_codec dr__codec_tiff;
extern const dr_image_codec dr__codec_webp;

const dr_image_codec *const dr__image_codecs[] = {
    &dr__codec_jpeg,
#ifdef DR_HAVE_PNG
    &dr__codec_png,
#endif
#ifdef DR_HAVE_WEBP
    &dr__codec_webp,
#endif
    &dr__codec_bmp,
#ifdef DR_HAVE_GIF
    &dr__codec_gif,
#endif
    &dr__codec_pnm,
#ifdef DR_HAVE_TIFF
    &dr__codec_tiff,
#endif
    NULL,
};
