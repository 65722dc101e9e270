/* index_stamp.h: which index files are trusted: those that this user, or root, has written in this place.
 *
 * The content of an index cannot be checked against the data without the work that it saves: the seek points of a JPEG
 * depend on all bytes before them, so that forged points can be consistent and still shift the brightness of every
 * crop; the names and labels of a shard are spread over it.  Checksums detect accidents, not forgeries, because anyone
 * can compute them.  So a file is judged by its origin:
 *
 * - its owner is this user or root, and no other user may write to it;
 * - its last 8 bytes, the stamp, are a hash of its inode number, its time of birth and its length.  A file from an
 * archive, a download or a copy belongs to the user, but its inode and birth could not be known to its author.  File
 * systems without a time of birth leave it out.
 *
 * All other files are ignored.
 */
#ifndef DR_INDEX_INDEX_STAMP_H
#define DR_INDEX_INDEX_STAMP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

enum { DR__INDEX_STAMP_BYTES = 8 };

/* Opens an index file for reading; *size: its bytes without the stamp.  -1: there is none that is trusted. */
int dr__index_open(const char *path, struct stat *st, uint64_t *size);

/* Adds the stamp to a file that is open for writing and otherwise complete. */
bool dr__index_stamp(int fd);

/* Does a file of this name belong to another user (neither this one nor root)?  It must not be replaced then. */
bool dr__index_is_foreign(const char *path);

#endif
