/* data.h: descriptions of arrays (element type, shape, layout, device) and views of arrays in memory.
 *
 * All types are plain values: they own no memory and have nothing to free.  All functions may be called from any
 * thread.
 */
#ifndef DRAPPS_DATA_H
#define DRAPPS_DATA_H

#include <stddef.h>
#include <stdint.h>

#include <drapps/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, value, bytes, text).  All element types: their name, pinned value, size in bytes, and NumPy name. */
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

/* The type of one element: DR_U8, DR_F32, ... */
typedef enum dr_dtype {
#define DR_DTYPE_ENUM(name, value, bytes, text) DR_##name = value,
    DR_DTYPE_MAP(DR_DTYPE_ENUM)
#undef DR_DTYPE_ENUM
} dr_dtype;

/* What the numbers of an array mean.  The kind decides which ops act on a field where the graph names none, and how:
 * masks, boxes and key points follow their image; a mask is resized by nearest neighbour and never normalised. */
typedef enum dr_kind {
    DR_KIND_ARRAY = 0,       /* plain numbers: labels, features, ragged tokens */
    DR_KIND_IMAGE = 1,       /* pixels; shape and order of the channels by dr_layout */
    DR_KIND_MASK = 2,        /* class numbers of pixels, likewise */
    DR_KIND_BOXES = 3,       /* n x 4, x0 y0 x1 y1 in pixels */
    DR_KIND_BYTES = 4,       /* an encoded object; dims[0] is its size */
    DR_KIND_TEXT = 5,        /* UTF-8, not terminated; dims[0] is its size in bytes */
    DR_KIND_VOLUME = 6,      /* channels x depth x height x width */
    DR_KIND_VOLUME_MASK = 7, /* likewise, class numbers: what a mask is to an image */
    DR_KIND_KEYPOINTS =
        8, /* ... x 2: x and y in pixels; or ... x 3: also a number that ops leave alone, as COCO's visibility */
    DR_KIND_LABELS = 9, /* a row for each box: class numbers, areas, scores */
    DR_KIND_MASKS = 10, /* n x height x width: a mask for each box */
} dr_kind;

/* The order of an image's axes. */
typedef enum dr_layout {
    DR_LAYOUT_ANY = 0, /* no image, or not decided yet */
    DR_LAYOUT_HWC = 1, /* height, width, channels */
    DR_LAYOUT_CHW = 2, /* channels, height, width */
} dr_layout;

/* The kind of memory that an array lies in.  This version has arrays in CPU memory only. */
typedef enum dr_device_type {
    DR_DEVICE_CPU = 0,
    DR_DEVICE_OPENCL = 1,
    DR_DEVICE_CUDA = 2,
} dr_device_type;

typedef struct dr_device {
    dr_device_type type;
    int id; /* number of the device among those of its type, from 0 */
} dr_device;

/* Most axes of an array. */
enum { DR_MAX_DIMS = 8 };

/* An extent that is not known beforehand, because it depends on the sample. */
#define DR_UNKNOWN ((int64_t)-1)

/* The description of an array. */
typedef struct dr_desc {
    dr_kind kind;
    dr_dtype dtype;
    dr_layout layout;          /* of images */
    dr_device device;          /* zeros: CPU memory */
    int n_dims;                /* number of axes, 0 .. DR_MAX_DIMS; 0: a scalar */
    int64_t dims[DR_MAX_DIMS]; /* extents in elements, the slowest axis first; DR_UNKNOWN: depends on the sample */
    double spacing[3];         /* of volumes: distance of voxels along depth, height, width, in the unit of the file
                                  (mostly mm); 0: not known */
} dr_desc;

/* A rectangle in pixels: its upper left corner, counted from that of the image, and its size. */
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
    uint8_t *data;    /* the first element in memory; borrowed */
    ptrdiff_t stride; /* of images: bytes from one row to the next */
    dr_desc desc;
    dr_rect window; /* of images: the part that is in memory */
} dr_view;

/**
 * Get the size of one element.
 *
 * @param dtype An element type.
 *
 * @return Its size in bytes; 0 for a value that is no dr_dtype.
 */
DR_API size_t dr_dtype_size(dr_dtype dtype);

/**
 * Get the name of an element type, as NumPy spells it: "uint8", "float32".
 *
 * @param dtype An element type.
 *
 * @return A static text; "?" for a value that is no dr_dtype.  Never NULL.
 */
DR_API const char *dr_dtype_name(dr_dtype dtype);

/**
 * Find an element type by its name.
 *
 * @param name "uint8", "float32", ...; terminated, not NULL.
 *
 * @return The element type, or 0 where no type has that name.
 */
DR_API dr_dtype dr_dtype_parse(const char *name);

#ifdef __cplusplus
}
#endif
#endif
