/* seek_layout.h: numbers of the file in seek_file.h that its reader and its writer share. */
#ifndef DR_CODEC_SEEK_LAYOUT_H
#define DR_CODEC_SEEK_LAYOUT_H

#include <stdint.h>

static const char dr__seek_magic[8] = { 'D', 'R', 'S', 'E', 'K', '\r', '\n', 0x1A };

enum { DR__SEEK_VERSION = 1, DR__SEEK_HEAD_BYTES = 8 + 4 + 4 + 8, DR__SEEK_ENTRY_BYTES = 8 + 4 + 4 };

static inline uint64_t dr__seek_buckets_start(uint32_t n_buckets)
{
    return DR__SEEK_HEAD_BYTES + (uint64_t)n_buckets * 4 + 8;
}

/* hash * n_buckets / 2^64, by halves. */
static inline uint32_t dr__seek_bucket_of(uint64_t hash, uint32_t n_buckets)
{
    uint64_t low = (hash & UINT32_MAX) * n_buckets, high = (hash >> 32) * n_buckets;
    return (uint32_t)((high + (low >> 32)) >> 32);
}

#endif
