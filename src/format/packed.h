/* packed.h: packed sets as data sets: shards by their manifest, every read checked. */
#ifndef DR_FORMAT_PACKED_H
#define DR_FORMAT_PACKED_H

#include "format/set_manifest.h"
#include "format/tar_index.h"

/* Has the folder a manifest, or is it being packed for the first time? */
bool dr__packed_is(const char *folder);

dr_status dr__packed_open(const char *folder, const dr_read_options *options, dr_dataset **out, dr_error *err);

/* The manifest of a packed set; NULL: another data set. */
const dr__manifest *dr__packed_manifest(const dr_dataset *set);

/* Its folder. */
const char *dr__packed_folder(const dr_dataset *set);

/* The index of a shard: from its file where that is the one that the manifest means, else from the shard itself where
 * that is whole.  `path`: of the shard.  DR_ERR_FORMAT where neither is. */
dr_status dr__packed_index(const dr__manifest *manifest, const dr__set_shard *shard, const char *path,
                           const dr__source_options *options, dr__tar_index *out, dr_error *err);

/* xxh3 of a whole file, and its size. */
dr_status dr__packed_sum(const char *path, const dr__source_options *options, uint64_t *sum, uint64_t *size,
                         dr_error *err);

/* The key in the bytes of an origin.json: owned by the caller (dr__free); NULL: there is none.  field: instead, the
 * name of the file of that field. */
char *dr__origin_get(const void *data, size_t size, const char *field);

/* What stands for the origin of samples in the index of a packed set, in place of a path. */
#define DR__PACKED_WHAT "packed"

#endif
