/* resize.h: PIL's Image.resize of 8-bit images, or torch's interpolate, bit for bit, a row at a time.
 *
 * To resize a crop, pass a pointer to its first pixel and its size: pixels outside it have no influence, as when PIL
 * crops first.  Finished rows are passed to the sink one by one from the top, while they are in the L1 cache.  RGBA is
 * treated as four plain channels; PIL multiplies colours by alpha before and divides after, which is left to the
 * caller; torch does not.
 *
 *     size_t bytes;
 *     if (!dr__resize_scratch(&spec, &bytes)) ...too large
 *     dr__resize_plan(&r, &spec, scratch);         (once for each size)
 *     dr__resize_run(&r, kernels, pixels, stride, sink, user);
 *
 * An image that is never completely in memory is pushed some rows at a time, with the same result:
 *
 *     dr__resize_begin(&flow, &r, kernels, sink, user);
 *     dr__resize_take(&flow, rows, stride, n, slack);      (until all in_h rows were given)
 */
#ifndef DR_KERNEL_RESIZE_H
#define DR_KERNEL_RESIZE_H

#include <stdbool.h>

#include "kernel/kernel.h"
#include "kernel/taps.h"

/* The largest width or height: PIL keeps them in floats. */
#define DR__RESIZE_MAX (1 << 24)

typedef struct dr__resize_spec {
    int in_w, in_h, out_w, out_h; /* 1 to DR__RESIZE_MAX */
    int channels;                 /* 1, 3 or 4; for nearest neighbours any number of bytes per pixel */
    dr__filter filter;
    dr__resize_rule rule;
} dr__resize_spec;

/* The order of the passes. */
typedef enum dr__resize_order {
    DR__RESIZE_COPY,
    DR__RESIZE_NEAREST,
    DR__RESIZE_H,
    DR__RESIZE_V,
    DR__RESIZE_HV,
    DR__RESIZE_VH,
} dr__resize_order;

/* A plan; its pointers point into the scratch block. */
typedef struct dr__resize {
    dr__resize_spec spec;
    dr__resize_order order;
    dr__taps h, v; /* for nearest neighbour only `start` is used */
    double *weights;
    int n_ring;           /* rows in the ring */
    uint8_t *ring;        /* row y in slot y % n_ring.  HV: input rows after the horizontal pass; V, VH: input rows of
                             earlier bands that are still needed */
    uint8_t *middle;      /* VH: 4 rows after the vertical pass */
    uint8_t *padded;      /* H, HV: copies of input rows with too few readable bytes behind them */
    uint8_t *out;         /* 4 finished rows */
    size_t padded_stride; /* of padded and middle */
    size_t out_stride;    /* of out */
    size_t ring_stride;
    const uint8_t **rows; /* arguments of the vertical pass */
} dr__resize;

/* Called for y = 0, 1, ... out_h - 1; `row` has out_w pixels and is valid during the call. */
typedef void (*dr__resize_sink)(void *user, const uint8_t *row, int y);

/* Computes the bytes of scratch that a plan and its runs need; false: a size is out of range. */
bool dr__resize_scratch(const dr__resize_spec *spec, size_t *bytes);

/* Fills r and the scratch block (64-byte aligned, of the size by dr__resize_scratch), which r borrows. */
void dr__resize_plan(dr__resize *r, const dr__resize_spec *spec, void *scratch);

/* Resizes the image at src, whose rows are `stride` bytes apart.  Uses the plan's scratch: one thread at a time. */
void dr__resize_run(const dr__resize *r, const dr__kernels *k, const uint8_t *src, ptrdiff_t stride,
                    dr__resize_sink sink, void *user);

/* An image that is being pushed through a plan. */
typedef struct dr__resize_flow {
    const dr__resize *r;
    const dr__kernels *k;
    dr__resize_sink sink;
    void *user;
    int taken;    /* input rows of earlier bands */
    int y;        /* the next output row */
    int n_middle; /* VH: rows before it that wait for the horizontal pass */

    const uint8_t *rows; /* the current band: */
    ptrdiff_t stride;
    int n;
    size_t slack;
} dr__resize_flow;

/* Starts an image.  The plan and its scratch are borrowed until its last row: one flow at a time. */
void dr__resize_begin(dr__resize_flow *flow, const dr__resize *r, const dr__kernels *k, dr__resize_sink sink,
                      void *user);

/* Pushes the next n >= 1 rows, `stride` bytes apart and borrowed for the call; `slack` bytes after the end of each can
 * be read.  The horizontal pass takes four rows at once, so bands of 4, 8 or 16 rows are fastest. */
void dr__resize_take(dr__resize_flow *flow, const uint8_t *rows, ptrdiff_t stride, int n, size_t slack);

#endif
