/* py_dlpack.h: the parts of the DLPack interface (versions 0 and 1) that arrays on the CPU need.
 *
 * Layouts are fixed by the DLPack specification; names are ours.
 */
#ifndef DRAPPS_PY_DLPACK_H
#define DRAPPS_PY_DLPACK_H

#include <stdint.h>

enum { DL_CPU = 1 };
enum { DL_INT = 0, DL_UINT = 1, DL_FLOAT = 2, DL_BFLOAT = 4, DL_BOOL = 6 };

typedef struct dl_tensor {
    void *data;
    struct {
        int32_t type, id;
    } device;
    int32_t n_dims;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } dtype;
    int64_t *dims;
    int64_t *strides; /* in elements */
    uint64_t byte_offset;
} dl_tensor;

typedef struct dl_managed {
    dl_tensor tensor;
    void *owner;
    void (*deleter)(struct dl_managed *self);
} dl_managed;

typedef struct dl_versioned {
    struct {
        uint32_t major, minor;
    } version;
    void *owner;
    void (*deleter)(struct dl_versioned *self);
    uint64_t flags;
    dl_tensor tensor;
} dl_versioned;

#endif
