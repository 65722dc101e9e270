/* tar_reader.h: the members of a tar archive, one after the other.
 *
 * Reads ustar, GNU and pax archives from any source, looking at headers only.  Nothing in them is trusted: sizes are
 * checked against the archive, names against a limit.
 */
#ifndef DR_FORMAT_TAR_READER_H
#define DR_FORMAT_TAR_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "source/source.h"

enum { DR__TAR_NAME = 4096, DR__TAR_WINDOW = 8192 };

typedef struct dr__tar_member {
    char name[DR__TAR_NAME]; /* terminated */
    size_t name_len;
    uint64_t header;       /* where its first header begins, those of long names included */
    uint64_t offset, size; /* of its bytes in the archive */
} dr__tar_member;

typedef struct dr__tar_reader {
    dr__source *source; /* borrowed */
    uint64_t size, at;
    uint8_t window[DR__TAR_WINDOW]; /* the last bytes read: small members and their headers come with one read */
    uint64_t window_at;
    size_t window_len;
} dr__tar_reader;

dr_status dr__tar_open(dr__tar_reader *reader, dr__source *source, dr_error *err);

/* The next regular file; folders, links, devices and sparse files are passed over.  DR_END after the last. */
dr_status dr__tar_next(dr__tar_reader *reader, dr__tar_member *member, dr_error *err);

/* `size` (up to DR__TAR_WINDOW) bytes of the archive, borrowed until the next call. */
dr_status dr__tar_peek(dr__tar_reader *reader, uint64_t offset, size_t size, const uint8_t **out, dr_error *err);

#endif
