/* taps.h: PIL's resampling filters as tables of integer coefficients. */
#ifndef DR_KERNEL_TAPS_H
#define DR_KERNEL_TAPS_H

#include "kernel/kernel.h"

typedef enum dr__filter {
    DR__FILTER_NEAREST = 0, /* values are PIL's Image.Resampling */
    DR__FILTER_LANCZOS = 1,
    DR__FILTER_BILINEAR = 2,
    DR__FILTER_BICUBIC = 3,
    DR__FILTER_BOX = 4,
    DR__FILTER_HAMMING = 5,
} dr__filter;

/* Room for the coefficients of one output when n_in pixels become n_out: a bound of dr__taps.stride.  Not for
 * DR__FILTER_NEAREST, which has none. */
int dr__taps_room(int n_in, int n_out, dr__filter filter);

/* Fills t, whose pointers the caller has set: start and size have n_out entries, coef n_out times the room, split
 * twice that; `weights` is scratch for `room` doubles.  Bit-equal to PIL's precompute_coeffs and
 * normalize_coeffs_8bpc, up to the last bit of its libm's sine for Lanczos and Hamming. */
void dr__taps_fill(dr__taps *t, double *weights, int n_in, int n_out, dr__filter filter);

/* Source positions of PIL's nearest neighbour, n_out of them; -1 where its running sum leaves the image. */
void dr__taps_nearest(int32_t *start, int n_in, int n_out);

#endif
