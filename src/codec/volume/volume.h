/* volume.h: stored volumes (NIfTI-1, plain or gzipped, and .npy) to arrays of channels, depth, height, width.
 *
 * The header says all that is needed to plan; voxels are converted in one pass from the file's order and type.  Nothing
 * is allocated: inflating works in room that the caller gives.
 */
#ifndef DR_CODEC_VOLUME_H
#define DR_CODEC_VOLUME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drapps/data.h>

#include "base/error.h"

enum { DR__VOLUME_ROOM = 320 * 1024 }; /* bytes that header and decode work in; 64-byte aligned */

typedef struct dr__volume_options {
    bool xyz;           /* NIfTI: the first axis of the file is the depth, as nibabel's arrays; else it is the width */
    int64_t max_voxels; /* most that a header may declare */
} dr__volume_options;

typedef struct dr__volume_info {
    const char *format;   /* "nifti" or "npy" */
    int64_t dims[4];      /* of the result: channels, depth, height, width */
    double spacing[3];    /* of the last three; 0: not known */
    int64_t stored[4];    /* extents as they lie in the file, the slowest first */
    int axis[4];          /* which axis of the result each of them is */
    char number;          /* 'u', 'i' or 'f' */
    int bytes;            /* of one number: 1, 2, 4, 8 */
    bool swap;            /* its bytes are in the other order than this machine's */
    double slope, offset; /* value = slope * stored + offset */
    uint64_t data_at;     /* where the numbers begin, in the inflated file */
    bool gzip;
} dr__volume_info;

/* Reads the header of a file of either format. */
dr_status dr__volume_header(const uint8_t *data, size_t size, const dr__volume_options *options, uint8_t *room,
                            dr__volume_info *info, dr_error *err);

/* All voxels into the dense array `out`, which has info->dims.  float32 takes every value; whole numbers that the
 * type of `out` cannot hold, and fractions, are an error there. */
dr_status dr__volume_decode(const uint8_t *data, size_t size, const dr__volume_info *info, uint8_t *room, dr_view *out,
                            dr_error *err);

/* For the formats: the header in its bytes (at least 4 of them), after inflating. */
dr_status dr__nifti_header(const uint8_t *data, size_t size, const dr__volume_options *options, dr__volume_info *info,
                           dr_error *err);
dr_status dr__npy_header(const uint8_t *data, size_t size, dr__volume_info *info, dr_error *err);
bool dr__nifti_probe(const uint8_t *data, size_t size);
bool dr__npy_probe(const uint8_t *data, size_t size);

/* Names the axes of the result: stored axis i becomes axis[i]; fills dims. */
void dr__volume_turn(dr__volume_info *info, const int axis[4]);

#endif
