/* shard_source.h: the open file of a shard: opened when it is first read, and kept open within a limit. */
#ifndef DR_FORMAT_SHARD_SOURCE_H
#define DR_FORMAT_SHARD_SOURCE_H

#include <stdatomic.h>

#include "source/source.h"

enum { DR__SHARDS_OPEN = 128 }; /* the first ones of a data set stay open; others are opened for each read */

typedef struct dr__shard_source {
    _Atomic(dr__source *) source;
} dr__shard_source;

/* The source of shard `number`, at `path`.  *own: the caller closes it. */
dr_status dr__shard_source_get(dr__shard_source *shard, size_t number, const char *path,
                               const dr__source_options *options, dr__source **out, bool *own, dr_error *err);

/* Ranges of a member, which begins at `offset` and has `size` bytes, one behind the other to `to`. */
dr_status dr__shard_source_ranges(dr__source *source, uint64_t offset, uint64_t size, const dr__byte_ranges *ranges,
                                  uint8_t *to, dr_error *err);

void dr__shard_source_close(dr__shard_source *shard);

#endif
