/* file.h: plain files by descriptor, for the file source and for readers of files that are always local: index files,
 * stores. */
#ifndef DR_SOURCE_FILE_H
#define DR_SOURCE_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"

/* Opens a regular file for reading, `path` relative to the folder `dir_fd` (AT_FDCWD: the current one), and stats it.
 * Never blocks: a FIFO or device is an error.  Messages call it `folder`/`path`, or `path` where folder is NULL or the
 * path absolute.  The caller closes *fd. */
dr_status dr__file_open(int dir_fd, const char *folder, const char *path, int *fd, struct stat *st, dr_error *err);

/* Reads until `size` bytes are there or the file ends, through signals and short reads.  Returns 0, or -1 with
 * errno. */
int dr__file_pread(int fd, void *buf, size_t size, uint64_t offset, size_t *got);

/* The status for a failed system call: DR_ERR_NOT_FOUND, DR_ERR_NOMEM or DR_ERR_IO. */
dr_status dr__errno_status(int code);

#endif
