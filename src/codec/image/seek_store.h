/* seek_store.h: the seek points of many JPEGs, by what the files hold; and notes of what named files hold.
 *
 * Points are found by a 64-bit hash and the size of the encoded bytes themselves, not by a name: a file that was
 * changed, moved, or read out of a tar shard brings the points that belong to its bytes, or none.  Several workers,
 * loaders and processes may use a store at once.
 *
 * New points stay in memory, packed, within a limit; beyond it new ones are not kept.  dr__seek_store_save writes all
 * to an index file beside the data or in the user's cache folder (temporary name, sync, rename), merged with what
 * another process has written there meanwhile.  Points in the file are not brought into memory: only a small
 * directory is, and a lookup reads the few bytes it needs.  The file may be deleted at any time.
 *
 * Notes (jpeg_note.h) lead from a name to the points, where the bytes have not been read yet.  They are kept in the
 * same way and in the same file, but are replaced by later ones of the same name.
 */
#ifndef DR_CODEC_SEEK_STORE_H
#define DR_CODEC_SEEK_STORE_H

#include "base/error.h"
#include "codec/image/jpeg_note.h"
#include "codec/image/jpeg_seek.h"

typedef struct dr__seek_store dr__seek_store;

dr__seek_key dr__seek_key_of(const uint8_t *data, size_t size);

/* `beside`: path of the index file, or NULL; `identity`: names the data for the cache folder, or NULL: in memory only.
 * `limit`: bytes of memory for new points.  A file that is missing, damaged or foreign is an empty store. */
dr_status dr__seek_store_open(const char *beside, const char *identity, size_t limit, dr__seek_store **out,
                              dr_error *err);
void dr__seek_store_close(dr__seek_store **store);

/* The points of these bytes into `points`, cleared first; false: none are known. */
bool dr__seek_store_find(dr__seek_store *store, const dr__seek_key *key, dr__seek_points *points);

/* The same without counting it as a lookup: for those who plan what a decoder will do. */
bool dr__seek_store_look(dr__seek_store *store, const dr__seek_key *key, dr__seek_points *points);

/* Keeps points that reach further than those known.  Never fails: what cannot be kept is forgotten. */
void dr__seek_store_put(dr__seek_store *store, const dr__seek_key *key, const dr__seek_points *points);

/* The note of a name, which is a hash; false: there is none. */
bool dr__seek_store_find_note(dr__seek_store *store, uint64_t name, dr__jpeg_note *note);

/* Keeps a note in place of an earlier one; note->when is set.  Never fails, as dr__seek_store_put. */
void dr__seek_store_put_note(dr__seek_store *store, uint64_t name, dr__jpeg_note *note);

/* Writes what is new, if it is worth it: a 16th of what the file has, or, as the last call before closing, less; some
 * kilobytes in any case.  False when there is no place that can be written.  May take seconds for millions of images;
 * others may use the store meanwhile. */
bool dr__seek_store_save(dr__seek_store *store, bool last);

/* The memory is nearly used up, and saving would make room. */
bool dr__seek_store_is_full(dr__seek_store *store);

typedef struct dr__seek_counts {
    uint64_t images;       /* whose points are known */
    uint64_t memory_bytes; /* held in memory, tables included */
    uint64_t file_bytes;
    uint64_t found, missed; /* lookups */
} dr__seek_counts;

void dr__seek_store_counts(dr__seek_store *store, dr__seek_counts *counts);

#endif
