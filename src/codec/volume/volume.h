/* volume.h: volume codecs: files, plain or gzipped, to arrays of channels, depth, height, width.
 *
 * A codec is one file that ends in a `const dr_volume_codec`, and one row in volume_table.c.  It parses a header; the
 * header says all that planning and decoding need.  Decoding is the same for all: voxels are converted in one pass from
 * the order and type of the file.  Nothing is allocated: inflating works in memory that the caller gives.
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
    const char *format;   /* name of the codec */
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

/* Reads the header of a file by the codec that its first bytes belong to. */
dr_status dr__volume_header(const uint8_t *data, size_t size, const dr__volume_options *options, uint8_t *room,
                            dr__volume_info *info, dr_error *err);

/* All voxels into the dense array `out`, which has info->dims.  float32 takes every value; whole numbers that the
 * type of `out` cannot hold, and fractions, are an error there. */
dr_status dr__volume_decode(const uint8_t *data, size_t size, const dr__volume_info *info, uint8_t *room, dr_view *out,
                            dr_error *err);

typedef struct dr_volume_codec {
    const char *name; /* "nifti" */
    const char *summary;

    /* Whether these bytes, the first of an inflated file, begin like one of this codec. */
    bool (*probe)(const uint8_t *data, size_t size);

    /* Parses the header in the same bytes (at least those that probe needs).  Sets format, stored, spacing, number,
     * bytes, swap, slope, offset and data_at of `info`, which is otherwise zero, and names its axes by
     * dr__volume_turn. */
    dr_status (*header)(const uint8_t *data, size_t size, const dr__volume_options *options, dr__volume_info *info,
                        dr_error *err);
} dr_volume_codec;

extern const dr_volume_codec *const dr__volume_codecs[]; /* NULL ends it */

/* Names the axes of the result: stored axis i becomes axis[i]; fills dims. */
void dr__volume_turn(dr__volume_info *info, const int axis[4]);

#endif
