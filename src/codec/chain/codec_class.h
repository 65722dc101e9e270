/* codec_class.h: samples of arrays, by which their class is told and codecs are tried. */
#ifndef DR_CODEC_CODEC_CLASS_H
#define DR_CODEC_CODEC_CLASS_H

#include <drapps/codec.h>

/* Copies up to `cap` bytes of an array of `bytes`, as up to 4 whole pieces from all over it; pieces begin and end at
 * elements. Returns the bytes copied. */
size_t dr__codec_sample(const void *data, size_t bytes, size_t elem, uint8_t *out, size_t cap);

#endif
