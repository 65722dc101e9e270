/* nifti_make.h: small NIfTI-1 files in memory, in either byte order, and gzipped ones. */
#ifndef DR_TESTS_NIFTI_MAKE_H
#define DR_TESTS_NIFTI_MAKE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "codec/codec_config.h"
#ifdef DR_HAVE_ZLIB
#include <zlib.h>
#endif

enum { NIFTI_HEADER = 352, NIFTI_MOST = 8192 };

struct nifti {
    uint8_t bytes[NIFTI_MOST];
    size_t size;
    bool swap;
};

static inline void nifti_put(struct nifti *n, size_t at, const void *value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        n->bytes[at + i] = ((const uint8_t *)value)[n->swap ? bytes - 1 - i : i];
}

static inline void nifti_i16(struct nifti *n, size_t at, int16_t v)
{
    nifti_put(n, at, &v, sizeof v);
}

static inline void nifti_f32(struct nifti *n, size_t at, float v)
{
    nifti_put(n, at, &v, sizeof v);
}

/* x, y, z voxels of a type; steps of 0.5, 1.5, 2.5. */
static inline void nifti_begin(struct nifti *n, bool swap, int16_t type, int16_t x, int16_t y, int16_t z)
{
    const int32_t header = 348;
    memset(n, 0, sizeof *n);
    n->swap = swap;
    n->size = NIFTI_HEADER;
    nifti_put(n, 0, &header, 4);
    nifti_i16(n, 40, 3);
    nifti_i16(n, 42, x);
    nifti_i16(n, 44, y);
    nifti_i16(n, 46, z);
    nifti_i16(n, 70, type);
    for (int i = 0; i < 3; i++)
        nifti_f32(n, 80 + 4 * (size_t)i, 0.5f + (float)i);
    nifti_f32(n, 108, NIFTI_HEADER);
    memcpy(n->bytes + 344, "n+1", 4);
}

static inline void nifti_voxel(struct nifti *n, const void *value, size_t bytes)
{
    nifti_put(n, n->size, value, bytes);
    n->size += bytes;
}

#ifdef DR_HAVE_ZLIB
/* The first `split` bytes and the rest as two gzip members with some padding between; 0: one. */
static inline size_t nifti_gzip(const struct nifti *n, size_t split, uint8_t out[NIFTI_MOST])
{
    size_t done = 0;
    for (int part = split ? 0 : 1; part < 2; part++) {
        z_stream z = { 0 };
        deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
        z.next_in = (uint8_t *)n->bytes + (part ? split : 0);
        z.avail_in = (unsigned)(part ? n->size - split : split);
        z.next_out = out + done;
        z.avail_out = (unsigned)(NIFTI_MOST - done);
        deflate(&z, Z_FINISH);
        done += z.total_out;
        deflateEnd(&z);
        for (int i = 0; i < 3 && !part; i++)
            out[done++] = 0;
    }
    return done;
}
#endif

#endif
