/* index_file.h: the container that listings and tar indexes are kept in, and where it lies.
 *
 *   "DRIDX\r\n\x1a"  u32 version  u32 n_sections
 *   n_sections times: u32 id  u32 zero  u64 offset  u64 length  u64 xxh3 of the section
 *   u64 xxh3 of everything before
 *   the sections
 *   u64 stamp (index_stamp.h)
 *
 * Little-endian.  Unknown ids are skipped.  An index is a cache: one that is damaged, stale, foreign or cannot be
 * written is never an error, only slower.
 */
#ifndef DR_INDEX_INDEX_FILE_H
#define DR_INDEX_INDEX_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"

enum { DR__INDEX_MAX_SECTIONS = 64 };

/* Bytes of one section while it is made.  After a failed put `failed` stays set, so that one check at the end does. */
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

/* $XDG_CACHE_HOME/drapps or ~/.cache/drapps; false when the user has neither. */
bool dr__cache_folder(char *text, size_t size);

/* Where an index may lie: beside what it describes, and in the user's cache folder.  NULL: not there. */
typedef struct dr__index_place {
    char *beside;
    char *cached;
} dr__index_place;

/* `beside` is a path or NULL.  The name in the cache folder ($XDG_CACHE_HOME/drapps, ~/.cache/drapps) is made from
 * `identity`, which the index must hold, too: two things may by chance have one name. */
void dr__index_place_make(dr__index_place *place, const char *beside, const char *identity);
void dr__index_place_free(dr__index_place *place);

/* The bytes of a file without its stamp, owned by the caller (dr__free); NULL when there is none that is believed
 * (index_stamp.h) or it cannot be read. */
uint8_t *dr__index_load(const char *path, size_t *size);

/* Writes an index to a temporary name, syncs, renames.  False when that was not possible; nothing is left behind.
 * When it is not `beside` its data the cache folder is made first, where it is missing. */
bool dr__index_save(const char *path, bool beside, const dr__section *sections, int n_sections);

/* A file under a temporary name that takes the place of the one at `path` once it is whole: what dr__index_save does,
 * for those who write piece by piece. */
typedef struct dr__index_temp {
    int fd;
    char name[4200];
} dr__index_temp;

/* False: the place cannot be written, or has a file of someone else. */
bool dr__index_temp_open(dr__index_temp *temp, const char *path, bool beside);

/* Stamps, syncs and renames, or, unless all was `good` so far, removes it; false: nothing is left behind. */
bool dr__index_temp_close(dr__index_temp *temp, const char *path, bool good);

bool dr__write_all(int fd, const void *data, size_t size);

void dr__sections_free(dr__section *sections, int n_sections);

#endif
