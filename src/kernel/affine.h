/* affine.h: PIL's Image.transform(AFFINE) and Image.rotate on 8-bit pixels, bit for bit.
 *
 * A matrix m maps output coordinates to input coordinates, with pixel centres at .5:
 *     x_in = m[0] * (x + .5) + m[1] * (y + .5) + m[2],    y_in = m[3] * (x + .5) + m[4] * (y + .5) + m[5]
 * Output pixels that map to outside the input get the fill.
 */
#ifndef DR_KERNEL_AFFINE_H
#define DR_KERNEL_AFFINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum dr__affine_filter {
    DR__AFFINE_NEAREST = 0,
    DR__AFFINE_BILINEAR = 1,
    DR__AFFINE_BICUBIC = 2,
} dr__affine_filter;

/* Rows of interleaved pixels, `stride` bytes apart; borrowed. */
typedef struct dr__raster {
    uint8_t *data;
    ptrdiff_t stride;
    int64_t w, h;
} dr__raster;

/* Fills dst from src.  `pixel` is the number of bytes (channels) of a pixel: 1, 3 or 4, with NEAREST any number, so
 * that it also moves wider elements.  With BILINEAR and BICUBIC, 4 channels are RGBA and are interpolated with
 * premultiplied colours, as PIL does; the fill is then premultiplied too.  `fill` has `pixel` bytes.  src is only
 * read; dst and src do not overlap. */
void dr__affine_u8(const dr__raster *dst, const dr__raster *src, size_t pixel, const double m[6],
                   dr__affine_filter filter, const uint8_t *fill);

/* Fills dst from src by nearest neighbours, in float32, as torchvision does on tensors.  m maps output coordinates to
 * input coordinates, both measured from the centre of the image.  `pixel` is any number of bytes. */
void dr__affine_nearest_torch(const dr__raster *dst, const dr__raster *src, size_t pixel, const double m[6],
                              const uint8_t *fill);

/* The matrix of torchvision's affine(): rotate by `angle` degrees, scale, shear (degrees in x and y) around the centre,
 * then translate. */
void dr__affine_matrix(double m[6], const double center[2], double angle, const double translate[2], double scale,
                       const double shear[2]);

/* The inverse map: from input coordinates to output coordinates. */
void dr__affine_forward(double m[6], const double center[2], double angle, const double translate[2], double scale,
                        const double shear[2]);

/* What PIL's rotate() does with an image of a given size. */
typedef struct dr__rotation {
    int turns; /* quarter turns counter-clockwise, done exactly; -1: by the matrix */
    double m[6];
    int64_t w, h; /* of the output */
} dr__rotation;

/* center: x, y in pixels; NULL: the centre of the image. */
dr__rotation dr__rotation_of(int64_t w, int64_t h, double angle, bool expand, const double *center);

/* Rotates an image; dst has the size given by dr__rotation_of. */
void dr__rotate_u8(const dr__raster *dst, const dr__raster *src, size_t pixel, const dr__rotation *rotation,
                   dr__affine_filter filter, const uint8_t *fill);

#endif
