/* data.h: what an array is: element type, shape, layout, device; and a view of one in memory. */
#ifndef DRAPPS_DATA_H
#define DRAPPS_DATA_H

#include <stddef.h>
#include <stdint.h>

#include <drapps/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, value, bytes, text).  Values are pinned. */
#define DR_DTYPE_MAP(X)                                                                                                \
    X(U8, 1, 1, "uint8")                                                                                               \
    X(I8, 2, 1, "int8")                                                                                                \
    X(U16, 3, 2, "uint16")                                                                                             \
    X(I16, 4, 2, "int16")                                                                                              \
    X(I32, 5, 4, "int32")                                                                                              \
    X(I64, 6, 8, "int64")                                                                                              \
    X(F16, 7, 2, "float16")                                                                                            \
    X(BF16, 8, 2, "bfloat16")                                                                                          \
    X(F32, 9, 4, "float32")                                                                                            \
    X(F64, 10, 8, "float64")                                                                                           \
    X(BOOL, 11, 1, "bool")

typedef enum dr_dtype {
#define DR_DTYPE_ENUM(name, value, bytes, text) DR_##name = value,
    DR_DTYPE_MAP(DR_DTYPE_ENUM)
#undef DR_DTYPE_ENUM
} dr_dtype;

/* What the numbers mean; decides which ops act on a field where none are named, and how (masks, boxes and key points
 * follow their image; a mask is resized by nearest neighbour and never normalised). */
typedef enum dr_kind {
    DR_KIND_ARRAY = 0, /* plain numbers: labels, features, ragged tokens */
    DR_KIND_IMAGE = 1,
    DR_KIND_MASK = 2,
    DR_KIND_BOXES = 3,       /* n x 4, x0 y0 x1 y1 in pixels */
    DR_KIND_BYTES = 4,       /* an encoded object; dims[0] is its size */
    DR_KIND_TEXT = 5,        /* UTF-8, not terminated; dims[0] is its size in bytes */
    DR_KIND_VOLUME = 6,      /* channels x depth x height x width */
    DR_KIND_VOLUME_MASK = 7, /* likewise, class numbers: what a mask is to an image */
    DR_KIND_KEYPOINTS = 8,   /* ... x 2, x and y in pixels; or ... x 3: and a number that stays, as COCO's visibility */
    DR_KIND_LABELS = 9,      /* a row for each box: class numbers, areas, scores */
    DR_KIND_MASKS = 10,      /* n x height x width: a mask for each box */
} dr_kind;

typedef enum dr_layout {
    DR_LAYOUT_ANY = 0,
    DR_LAYOUT_HWC = 1,
    DR_LAYOUT_CHW = 2,
} dr_layout;

typedef enum dr_device_type {
    DR_DEVICE_CPU = 0,
    DR_DEVICE_OPENCL = 1,
    DR_DEVICE_CUDA = 2,
} dr_device_type;

typedef struct dr_device {
    dr_device_type type;
    int id;
} dr_device;

enum { DR_MAX_DIMS = 8 };

/* An unknown extent: the shape depends on the sample. */
#define DR_UNKNOWN ((int64_t)-1)

typedef struct dr_desc {
    dr_kind kind;
    dr_dtype dtype;
    dr_layout layout;
    dr_device device;
    int n_dims; /* 0: a scalar */
    int64_t dims[DR_MAX_DIMS];
    double spacing[3]; /* of a volume: from one voxel to the next along depth, height, width; 0: not known */
} dr_desc;

/* A rectangle in pixels. */
typedef struct dr_rect {
    int64_t x, y, w, h;
} dr_rect;

/* An array in memory, borrowed.  Rows of an image are `stride` bytes apart and each is dense; everything else is
 * dense.  For CHW images `stride` is the distance of rows within a plane and planes follow each other densely
 * (`stride` * height).
 *
 * An image view may hold only a part of the image it stands for: `desc` has the shape of the whole image, `window`
 * says which part is in memory, and `data` points to the window's first pixel.  A whole image has the window
 * {0, 0, width, height}; arrays that are not images leave it zero. */
typedef struct dr_view {
    uint8_t *data;
    ptrdiff_t stride;
    dr_desc desc;
    dr_rect window;
} dr_view;

/* Bytes of one element; 0 for a value that is no dr_dtype. */
DR_API size_t dr_dtype_size(dr_dtype dtype);

/* "uint8", "float32", ...; "?" for a value that is no dr_dtype. */
DR_API const char *dr_dtype_name(dr_dtype dtype);

/* The dtype with that name, or 0. */
DR_API dr_dtype dr_dtype_parse(const char *name);

#ifdef __cplusplus
}
#endif
#endif
