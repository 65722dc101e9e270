/* file.h: plain files by descriptor: what the file source and the readers of whole small files share. */
#ifndef DR_SOURCE_FILE_H
#define DR_SOURCE_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"

/* Opens a regular file for reading, `path` relative to the folder `dir_fd` (AT_FDCWD: the current one), and says what
 * it is.  Never waits: a FIFO or device is an error.  Messages call it `folder`/`path`, or `path` when folder is NULL.
 * *fd is owned by the caller. */
dr_status dr__file_open(int dir_fd, const char *folder, const char *path, int *fd, struct stat *st, dr_error *err);

/* Reads until `size` bytes are there or the file ends: signals and short reads are no news to the caller.
 * Returns 0, or -1 with errno. */
int dr__file_pread(int fd, void *buf, size_t size, uint64_t offset, size_t *got);

/* The status for a failed system call: DR_ERR_NOT_FOUND, DR_ERR_NOMEM or DR_ERR_IO. */
dr_status dr__errno_status(int code);

/* Changes whenever the content does, and is never 0: of the times of modification and of change, and the inode number.
 * The time of change cannot be set, so that what rsync -a, tar -p or touch -r do to a file is seen as well. */
uint64_t dr__file_version(const struct stat *st);

static inline int64_t dr__mtime_ns(const struct stat *st)
{
    return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

#endif
