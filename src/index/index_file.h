/* index_file.h: the container of listings and tar indexes, and the paths of such files.
 *
 *   "DRIDX\r\n\x1a"  u32 version  u32 n_sections
 *   n_sections times: u32 id  u32 zero  u64 offset  u64 length  u64 xxh3 of the section
 *   u64 xxh3 of everything before
 *   the sections
 *   u64 stamp (index_stamp.h)
 *
 * Little-endian.  Unknown ids are skipped.  An index is a cache: one that is damaged, stale, of another user or
 * cannot be written is never an error.
 */
#ifndef DR_INDEX_INDEX_FILE_H
#define DR_INDEX_INDEX_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cache_folder.h"
#include "base/cursor.h"

enum { DR__INDEX_MAX_SECTIONS = 64 };

/* Bytes of one section while it is made.  A failed put sets `failed`, which stays set: one
 * check at the end is enough. */
typedef struct dr__section {
    uint32_t id;
    uint8_t *data;
    size_t size, cap;
    bool failed;
} dr__section;

void dr__put_bytes(dr__section *s, const void *data, size_t size);
void dr__put_u8(dr__section *s, uint8_t value);
void dr__put_u32(dr__section *s, uint32_t value);
void dr__put_u64(dr__section *s, uint64_t value);

/* Finds a section in the bytes of an index and checks it. */
dr_status dr__index_section(const void *data, size_t size, uint32_t id, dr_cursor *out, dr_error *err);

/* The paths that an index may have: beside its data, and in the user's cache folder.  NULL: not there. */
typedef struct dr__index_paths {
    char *beside;
    char *cached;
} dr__index_paths;

/* `beside` is a path or NULL.  The name in the cache folder ($XDG_CACHE_HOME/drapps, ~/.cache/drapps) is made from
 * `identity`, which the index must hold, too: two identities may have the same hash. */
void dr__index_paths_make(dr__index_paths *place, const char *beside, const char *identity);
void dr__index_paths_free(dr__index_paths *place);

/* The bytes of a file without its stamp, owned by the caller (dr__free); NULL when there is none that is trusted
 * (index_stamp.h) or it cannot be read. */
uint8_t *dr__index_load(const char *path, size_t *size);

/* Writes an index to a temporary name, syncs, renames.  False when that was not possible; nothing is left behind.
 * When it is not `beside` its data the cache folder is made first, where it is missing. */
bool dr__index_save(const char *path, bool beside, const dr__section *sections, int n_sections);

/* The bytes of such a file without its stamp, into *out, which begins as zeros; out->failed: out of memory. */
void dr__index_encode(const dr__section *sections, int n_sections, dr__section *out);

/* A file under a temporary name that replaces the one at `path` once it is complete: what dr__index_save does, for
 * callers that write it in pieces. */
typedef struct dr__index_temp {
    int fd;
    char name[4200];
} dr__index_temp;

/* False: the folder cannot be written to, or the path has a file of another user. */
bool dr__index_temp_open(dr__index_temp *temp, const char *path, bool beside);

/* Stamps, syncs and renames the file, or removes it where `good` is false or one of these fails; returns whether the
 * file is there. */
bool dr__index_temp_close(dr__index_temp *temp, const char *path, bool good);

bool dr__write_all(int fd, const void *data, size_t size);

void dr__sections_free(dr__section *sections, int n_sections);

#endif
