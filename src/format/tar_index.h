/* tar_index.h: what is where in one tar shard: samples with their keys, labels and members.
 *
 * In WebDataset form a sample is a run of members with the same path up to the first dot of the name; what follows
 * the dot says which field a member is.  Numbers in .cls members are kept here and not read again.
 */
#ifndef DR_FORMAT_TAR_INDEX_H
#define DR_FORMAT_TAR_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "format/names.h"
#include "format/tar_reader.h"
#include "index/index_file.h"
#include "source/source.h"

enum { DR__TAR_MAX_EXTS = 128 };

#define DR__LABEL_NONE INT64_MIN
#define DR__LABEL_BAD (INT64_MIN + 1) /* there is a .cls member, but no number in it */

typedef struct dr__tar_sample {
    uint64_t header; /* where its first member's header begins */
    int64_t label;
    uint32_t first; /* number of its first member; the next sample's ends it */
    uint32_t pad;
} dr__tar_sample;

typedef struct dr__tar_part {
    uint32_t offset; /* of its bytes, from the sample's header */
    uint32_t size;
} dr__tar_part;

typedef struct dr__tar_index {
    uint64_t tar_size;
    uint64_t tar_version;
    dr__names keys;
    dr__tar_sample *samples; /* keys.n of them */
    size_t samples_cap;
    dr__tar_part *parts;
    uint8_t *part_ext; /* number of the member's extension in exts */
    size_t n_parts, parts_cap, part_ext_cap;
    dr__names exts; /* in lower case, without the first dot; .cls is not among them */
    uint64_t *sums; /* of packed sets: xxh3 of each part; else NULL */
    size_t sums_cap;
    uint32_t *raw_sizes; /* of packed sets: size of each part once it is decompressed; 0: it is not compressed */
    size_t raw_cap;
    dr__names origins; /* of packed sets: the key that each sample had where it came from; else none */
    bool has_labels;
    bool image_ext[DR__TAR_MAX_EXTS]; /* which of exts are image files (codec/file_types.h) */
    bool two_images;                  /* a sample has images in more than one encoding */
} dr__tar_index;

/* Reads all headers of a shard. */
dr_status dr__tar_index_build(dr__source *source, dr__tar_index *out, dr_error *err);
void dr__tar_index_free(dr__tar_index *index);

/* Takes the shard's index from `<path>.drapps-index` or the cache folder while it holds, else builds and keeps it. */
dr_status dr__tar_index_open(const char *path, const dr__source_options *options, bool use_index, dr__tar_index *out,
                             dr_error *err);

/* From the bytes of an index file, for a shard of that size and version.  `what` names the shard in the cache folder.
 */
dr_status dr__tar_index_decode(const void *data, size_t size, const char *what, uint64_t tar_size, uint64_t tar_version,
                               dr__tar_index *out, dr_error *err);

/* The bytes of an index file without its stamp (index/index_file.h), into *out, which the caller frees; out->failed:
 * out of memory. */
void dr__tar_index_encode(const dr__tar_index *index, const char *what, dr__section *out);

/* For whoever finds members in their order: adds one to the sample that it belongs to, or to a new one.  Members that
 * are of no sample (no dot in their name) are left out.  `label`: of .cls members, their number.  A part's number is
 * index->n_parts - 1 afterwards. */
dr_status dr__tar_index_add(dr__tar_index *index, dr__source *source, const dr__tar_member *member, int64_t label,
                            dr_error *err);

/* Is the extension one that becomes the field "image"? */
bool dr__tar_is_image(const char *ext);

#endif
