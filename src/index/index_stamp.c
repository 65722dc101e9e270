/* index_stamp.c: owner, permissions and stamp of index files. */
#include "index/index_stamp.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include "source/file.h"

static bool is_ours(const struct stat *st)
{
    return st->st_uid == geteuid() || st->st_uid == 0;
}

/* The stamp of a file with `size` bytes before it; false: the system does not tell. */
static bool stamp_of(int fd, uint64_t size, uint64_t *stamp)
{
    struct statx x;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &x))
        return false;
    const bool born = x.stx_mask & STATX_BTIME;
    const uint64_t facts[] = { x.stx_ino, born ? (uint64_t)x.stx_btime.tv_sec : 0, born ? x.stx_btime.tv_nsec : 0,
                               size };
    *stamp = XXH3_64bits(facts, sizeof facts);
    return true;
}

static bool is_trusted(int fd, const struct stat *st)
{
    uint64_t want, got;
    size_t n;
    if (!is_ours(st) || st->st_mode & (S_IWGRP | S_IWOTH) || st->st_size < DR__INDEX_STAMP_BYTES)
        return false;
    const uint64_t size = (uint64_t)st->st_size - DR__INDEX_STAMP_BYTES;
    return !dr__file_pread(fd, &got, sizeof got, size, &n) && n == sizeof got && stamp_of(fd, size, &want) &&
           got == want;
}

int dr__index_open(const char *path, struct stat *st, uint64_t *size)
{
    int fd;
    if (!path || dr__file_open(AT_FDCWD, NULL, path, &fd, st, NULL) != DR_OK)
        return -1;
    if (!is_trusted(fd, st)) {
        close(fd);
        return -1;
    }
    *size = (uint64_t)st->st_size - DR__INDEX_STAMP_BYTES;
    return fd;
}

bool dr__index_stamp(int fd)
{
    struct stat st;
    uint64_t stamp;
    if (fstat(fd, &st) || !stamp_of(fd, (uint64_t)st.st_size, &stamp))
        return false;
    ssize_t n;
    do
        n = pwrite(fd, &stamp, sizeof stamp, st.st_size);
    while (n < 0 && errno == EINTR);
    return n == sizeof stamp;
}

bool dr__index_is_foreign(const char *path)
{
    struct stat st;
    return !lstat(path, &st) && !is_ours(&st);
}
