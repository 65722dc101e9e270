/* numeric.h: rows of elements as float32 and back, for ops that compute with values. */
#ifndef DR_OP_IMAGE_NUMERIC_H
#define DR_OP_IMAGE_NUMERIC_H

#include "op/op.h"

/* The element types that these read and write, as a set for dr__want_image: uint8, uint16 and the floats of up to 32
 * bits.  Each of their values is a float32. */
#define DR__NUMERIC_TYPES (1u << DR_U8 | 1u << DR_U16 | 1u << DR_F16 | 1u << DR_BF16 | 1u << DR_F32)

void dr__floats_load(dr_dtype dtype, const uint8_t *src, float *dst, size_t n);

/* Floats are rounded to nearest even; integers take the whole part, kept within their range, NaN as 0. */
void dr__floats_store(dr_dtype dtype, uint8_t *dst, const float *src, size_t n);

/* v as an element of that type would hold it. */
float dr__float_as(dr_dtype dtype, float v);

/* out[i] = f(in[i]) over all pixels of an HWC image; f gets the channel and how to compute in `how`. */
typedef float (*dr__value_fn)(const void *how, int channel, float v);
void dr__map_values(const dr__kernels *k, const dr_view *in, dr_view *out, dr__value_fn f, const void *how);

#endif
