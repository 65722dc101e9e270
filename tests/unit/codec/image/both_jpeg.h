/* both_jpeg.h: one JPEG through drapps' decoder and through libjpeg: the same status and pixels are expected. */
#ifndef DR_TESTS_BOTH_JPEG_H
#define DR_TESTS_BOTH_JPEG_H

#include "codec/image/image.h"
#include "codec/image/jpeg_seek.h"

struct both_jpeg {
    const uint8_t *data;
    size_t size;
    dr__decode_options options; /* libjpeg and seek are set by the calls below */
    dr_codec_state *own, *reference;
    bool may_overflow;    /* 16 bits, as no encoder's coefficients do: then pixels are libjpeg's on x86 alone */
    dr__image_info info;  /* after both_header */
    dr_status status;     /* of libjpeg, after either call */
    char difference[400]; /* why a call returned false */
};

/* Do both say the same of the header? */
bool both_header(struct both_jpeg *both);

/* Do both give the same for this rectangle?  Of a file that ends early drapps may give a rectangle that libjpeg does
 * not; the pixels must then be those that libjpeg gives when told that the data is over.  bands: rows are taken as a
 * stream, where the codec has one.  may_overflow, not on x86: the pixels must be those of the C kernels.  seek: for
 * drapps' decoder alone, or NULL. */
bool both_decode(struct both_jpeg *both, const dr_rect *rect, bool bands, dr__seek_points *seek);

/* Decodes by drapps alone; for seek points that may be wrong, where only staying in bounds is asked for. */
bool own_decode(struct both_jpeg *both, const dr_rect *rect, bool bands, dr__seek_points *seek);

/* From now on drapps decodes by the C kernels (0), by those below the machine's best level (1), or by the best (2). */
void use_kernels(struct both_jpeg *both, int which);

#endif
