/* voxels.h: what the ops on volumes share: extents, numbers as float32, parts of volumes. */
#ifndef DR_OP_VOLUME_VOXELS_H
#define DR_OP_VOLUME_VOXELS_H

#include "op/op.h"

/* The element types that these ops compute with. */
#define DR__VOXEL_TYPES                                                                                                \
    (1u << DR_U8 | 1u << DR_I8 | 1u << DR_U16 | 1u << DR_I16 | 1u << DR_I32 | 1u << DR_F16 | 1u << DR_BF16 |           \
     1u << DR_F32)

/* A size setting: one number for all three extents, or depth, height, width.  Two are an error. */
dr_status dr__volume_size(const dr_ints *size, int64_t out[3], const char *op, dr_error *err);

/* Elements of a volume, or of one channel of it. */
int64_t dr__voxels(const dr_desc *d);
int64_t dr__channel_voxels(const dr_desc *d);

/* n elements as float32. */
void dr__voxels_load(dr_dtype dtype, const uint8_t *src, float *dst, size_t n);

/* The same description with other extents in space. */
dr_desc dr__volume_resized(const dr_desc *d, const int64_t size[3]);

/* Copies a box of voxels, `at` in `in` to the start of `out`, whose extents it has. */
void dr__volume_cut(const dr_view *in, const int64_t at[3], dr_view *out);

/* For ops with `passes`: class numbers have no intensity. */
bool dr__passes_masks(const dr_desc *in);

#endif
