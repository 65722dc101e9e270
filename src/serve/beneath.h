/* beneath.h: opens files that a request names, and nothing outside of their folder: neither by "..", nor by an absolute
 * path, nor through a symbolic link. */
#ifndef DR_SERVE_BENEATH_H
#define DR_SERVE_BENEATH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"

/* A folder that paths are opened relative to.  -1 with DR_ERR_* otherwise. */
dr_status dr__beneath_root(const char *path, int *fd, dr_error *err);

/* Opens a regular file for reading.  Links are followed as long as they stay in the folder (where the kernel has no
 * openat2, Linux before 5.6, none is).  The caller closes *fd.
 *
 * @return DR_OK; DR_ERR_NOT_FOUND: no such file, or it is no regular file, or it lies outside; DR_ERR_IO. */
dr_status dr__beneath_open(int root, const char *path, int *fd, struct stat *st, dr_error *err);

/* A number that changes whenever the file does, as dr__source_facts.version. */
uint64_t dr__beneath_version(const struct stat *st);

#endif
