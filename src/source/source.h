/* source.h: bytes by name and range.
 *
 * A source is one file ending in a `const dr_source_def`, and one row in source_table.c.  A name with a scheme
 * ("s3://...") goes to the row with that scheme, any other name to the file system.  An open source may be read by
 * many threads at once.
 */
#ifndef DR_SOURCE_SOURCE_H
#define DR_SOURCE_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct dr__source dr__source;

typedef struct dr_source_def {
    const char *scheme; /* "s3" for "s3://..."; NULL: plain paths */
    const char *summary;

    dr_status (*open)(const char *name, dr__source **out, dr_error *err);
    dr_status (*size)(dr__source *source, uint64_t *size, dr_error *err);

    /* Reads `size` bytes from `offset`; fewer only where the source ends. */
    dr_status (*read_at)(dr__source *source, void *buf, size_t size, uint64_t offset, size_t *got, dr_error *err);

    void (*close)(dr__source *source);
} dr_source_def;

/* The head of every open source; a def puts its own struct around it. */
struct dr__source {
    const dr_source_def *def;
    char *name;       /* for messages; owned */
    uint64_t version; /* changes with the content (dr__file_version); 0: not known */
};

extern const dr_source_def *const dr__source_table[]; /* NULL ends it */
extern const dr_source_def dr__source_file;

dr_status dr__source_open(const char *name, dr__source **out, dr_error *err);
dr_status dr__source_size(dr__source *source, uint64_t *size, dr_error *err);
dr_status dr__source_read_at(dr__source *source, void *buf, size_t size, uint64_t offset, size_t *got, dr_error *err);
void dr__source_close(dr__source **source);

/* A source over memory that the caller keeps for as long as it is open. */
dr_status dr__source_memory(const void *data, size_t size, const char *name, dr__source **out, dr_error *err);

#endif
