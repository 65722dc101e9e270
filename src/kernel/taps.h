/* taps.h: the resampling filters of PIL and of torch as tables of integer coefficients. */
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
    DR__FILTER_NEAREST_EXACT = 6, /* torch's; the same as nearest where PIL's rule holds */
} dr__filter;

/* The library whose arithmetic is used.  The rules of torch are those of torch.nn.functional.interpolate on CPU tensors
 * of uint8, for bilinear, bicubic and nearest neighbours, with coefficients of 16 bits. */
typedef enum dr__resize_rule {
    DR__RULE_PIL = 0,
    DR__RULE_TORCH,         /* antialias=True */
    DR__RULE_TORCH_ALIASED, /* antialias=False */
} dr__resize_rule;

/* A bound of dr__taps.stride, the coefficients of one output, for n_in pixels that become n_out.  Not for nearest
 * neighbours, which have none. */
int dr__taps_room(int n_in, int n_out, dr__filter filter, dr__resize_rule rule);

/* The number of doubles of scratch that dr__taps_fill needs: torch computes all weights before it rounds any. */
size_t dr__taps_weights(int n_in, int n_out, dr__filter filter, dr__resize_rule rule);

/* Fills t, whose pointers the caller has set: start and size have n_out entries, coef n_out times the room, split
 * twice that; `weights` is scratch.  Bit-equal to PIL's precompute_coeffs and normalize_coeffs_8bpc, up to the last bit
 * of its libm's sine for Lanczos and Hamming, or to torch's compute_index_ranges_int16_weights on x86 with AVX2. */
void dr__taps_fill(dr__taps *t, double *weights, int n_in, int n_out, dr__filter filter, dr__resize_rule rule);

/* Source positions of nearest neighbours, n_out of them; -1 where PIL's running sum leaves the image. */
void dr__taps_nearest(int32_t *start, int n_in, int n_out, dr__filter filter, dr__resize_rule rule);

#endif
