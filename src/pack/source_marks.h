/* source_marks.h: what a packed set remembers of the samples that it was made of, so that it notices when one changes.
 *
 * Beside each shard lies NAME.drapps-source (the container of index/index_file.h without a stamp of its own) with the
 * section SOURCE_MARKS: for each sample u64 modified, u64 content.  It is no part of the set: neither the manifest nor
 * the index has its checksum, because times differ between copies of the same data.
 */
#ifndef DR_PACK_SOURCE_MARKS_H
#define DR_PACK_SOURCE_MARKS_H

#include <drapps/pack.h>

#include "format/dataset_internal.h"
#include "index/index_file.h"

#define DR__SHARD_MARKS ".drapps-source"

typedef struct dr__source_mark {
    uint64_t modified; /* dr__stamp.modified; 0: not known */
    uint64_t content;  /* dr__record_hash of the sample as it was read; 0: it could not be read */
} dr__source_mark;

/* The mark of a sample, but for its content. */
dr__source_mark dr__source_mark_of(const dr_dataset *set, uint64_t id);

/* Adds the mark of the next sample of a shard to the section; and writes the file of that shard. */
void dr__marks_add(dr__section *marks, const dr__source_mark *mark);
dr_status dr__marks_save(const char *folder, const char *shard, const dr__section *marks, dr_error *err);

/* Compares the samples of a shard with those of the data set that they were made of, where they begin at `first`, and
 * adds what it finds to *out.  See dr_dataset_compare. */
dr_status dr__marks_compare(const char *folder, const char *shard, uint64_t n_samples, const dr_dataset *source,
                            uint64_t first, dr_pack_changes *out, dr_error *err);

/* Is the file of a shard sound?  DR_ERR_FORMAT: no.  A missing one is. */
dr_status dr__marks_check(const char *folder, const char *shard, uint64_t n_samples, dr_error *err);

#endif
