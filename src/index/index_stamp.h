/* index_stamp.h: which index files are believed: those that this user, or root, has written where they are now.
 *
 * What an index says cannot be checked against the data without doing again what it saves: seek points of a JPEG follow
 * from all that stands before them, so that a forged set of points can agree with itself everywhere and still shift the
 * brightness of every crop; the names and labels of a shard are all over it.  Checksums find accidents, not forgeries,
 * because anyone can compute them.  So a file is judged by where it comes from:
 *
 * - its owner is this user or root, and nobody else has the permission to write to it;
 * - its last 8 bytes, the stamp, are a hash of its inode number, its time of birth and its length.  A file that came
 * out of an archive, a download or a copy is the user's own, but has another inode and another birth than whoever made
 * it could know.  File systems without a time of birth leave it out.
 *
 * Anything else is as if it were not there.
 */
#ifndef DR_INDEX_INDEX_STAMP_H
#define DR_INDEX_INDEX_STAMP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

enum { DR__INDEX_STAMP_BYTES = 8 };

/* Opens an index file for reading; *size: its bytes without the stamp.  -1: there is none that is believed. */
int dr__index_open(const char *path, struct stat *st, uint64_t *size);

/* Adds the stamp to a file that is open for writing and otherwise complete. */
bool dr__index_stamp(int fd);

/* A file of this name belongs to someone else (neither this user nor root): it is not ours to replace. */
bool dr__index_is_foreign(const char *path);

#endif
