/* source_file.c: local files as a source.
 *
 * pread, not mmap: a file that is cut short while it is read must be an error, not a signal.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "source/file.h"
#include "source/source.h"

struct file {
    dr__source head;
    int fd;
};

dr_status dr__errno_status(int code)
{
    if (code == ENOENT || code == ENOTDIR)
        return DR_ERR_NOT_FOUND;
    return code == ENOMEM ? DR_ERR_NOMEM : DR_ERR_IO;
}

dr_status dr__file_open(int dir_fd, const char *folder, const char *path, int *fd, struct stat *st, dr_error *err)
{
    const char *base = folder && path[0] != '/' ? folder : "", *slash = *base ? "/" : "";
    int f;
    do
        f = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    while (f < 0 && errno == EINTR);
    if (f < 0)
        return dr__fail_errno(err, dr__errno_status(errno), "%s%s%s: cannot open", base, slash, path);
    if (fstat(f, st)) {
        dr_status status = dr__fail_errno(err, DR_ERR_IO, "%s%s%s: cannot stat", base, slash, path);
        close(f);
        return status;
    }
    if (!S_ISREG(st->st_mode)) {
        close(f);
        return dr__fail(err, DR_ERR_IO, "%s%s%s: is a %s, not a file", base, slash, path,
                        S_ISDIR(st->st_mode) ? "folder" : "pipe, socket or device");
    }
    *fd = f;
    return DR_OK;
}

int dr__file_pread(int fd, void *buf, size_t size, uint64_t offset, size_t *got)
{
    size_t done = 0;
    while (done < size) {
        ssize_t n = pread(fd, (char *)buf + done, size - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    *got = done;
    return 0;
}

uint64_t dr__file_version(const struct stat *st)
{
    const uint64_t ctime_ns = (uint64_t)st->st_ctim.tv_sec * 1000000000 + (uint64_t)st->st_ctim.tv_nsec;
    const uint64_t facts[] = { (uint64_t)dr__mtime_ns(st), ctime_ns, (uint64_t)st->st_ino };
    const uint64_t version = XXH3_64bits(facts, sizeof facts);
    return version ? version : 1;
}

static dr_status open_file(const char *name, dr__source **out, dr_error *err)
{
    struct stat st;
    int fd;
    DR_TRY(dr__file_open(AT_FDCWD, NULL, name, &fd, &st, err));
    struct file *f = dr__alloc_zero(1, sizeof *f);
    if (!f) {
        close(fd);
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", name);
    }
    f->fd = fd;
    f->head.version = dr__file_version(&st);
    *out = &f->head;
    return DR_OK;
}

static dr_status size(dr__source *source, uint64_t *out, dr_error *err)
{
    struct stat st;
    if (fstat(((struct file *)source)->fd, &st))
        return dr__fail_errno(err, DR_ERR_IO, "%s: cannot stat", source->name);
    *out = (uint64_t)st.st_size;
    return DR_OK;
}

static dr_status read_at(dr__source *source, void *buf, size_t n, uint64_t offset, size_t *got, dr_error *err)
{
    if (offset > INT64_MAX || n > INT64_MAX - offset)
        return dr__fail(err, DR_ERR_ARG, "%s: read beyond what a file can hold", source->name);
    if (dr__file_pread(((struct file *)source)->fd, buf, n, offset, got))
        return dr__fail_errno(err, DR_ERR_IO, "%s: cannot read", source->name);
    return DR_OK;
}

static void close_file(dr__source *source)
{
    close(((struct file *)source)->fd);
}

const dr_source_def dr__source_file = {
    .scheme = NULL,
    .summary = "files of the local file system",
    .open = open_file,
    .size = size,
    .read_at = read_at,
    .close = close_file,
};
