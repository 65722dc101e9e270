/* shard_writer.h: one shard and its index, written sample by sample. */
#ifndef DR_PACK_SHARD_WRITER_H
#define DR_PACK_SHARD_WRITER_H

#include <xxhash.h>

#include "format/packed.h"
#include "pack/atomic_file.h"
#include "pack/made_sample.h"

typedef struct dr__shard_writer {
    dr__atomic_file file; /* fd -1: none is open */
    dr__tar_index index;
    dr__set_shard facts;
    dr__source name; /* its name alone, for messages */
    XXH3_state_t *sum;
    dr__section marks; /* of the samples' sources */
} dr__shard_writer;

void dr__shard_writer_init(dr__shard_writer *writer);

/* Begins the shard FOLDER/NAME. */
dr_status dr__shard_begin(dr__shard_writer *writer, const char *folder, const char *name, dr__key_form keys,
                          dr_error *err);
dr_status dr__shard_add(dr__shard_writer *writer, const dr__made *made, dr_error *err);

/* Writes the index and the marks, and brings all to their names, on disk; writer->facts then has what the manifest says
 * of them. */
dr_status dr__shard_commit(dr__shard_writer *writer, const char *folder, dr_error *err);

/* Deletes the shard at hand, if it was not committed, and frees what the writer holds. */
void dr__shard_drop(dr__shard_writer *writer);

static inline bool dr__shard_is_open(const dr__shard_writer *writer)
{
    return writer->file.fd >= 0;
}

#endif
