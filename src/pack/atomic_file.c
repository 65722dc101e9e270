/* atomic_file.c: temporary name, sync, rename. */
#include "pack/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

dr_status dr__atomic_begin(dr__atomic_file *f, const char *folder, const char *name, dr_error *err)
{
    f->fd = -1;
    const int n = snprintf(f->path, sizeof f->path, "%s/%s", folder, name);
    const int k = snprintf(f->part, sizeof f->part, "%s/%s" DR__PART, folder, name);
    if (n < 0 || k >= (int)sizeof f->part)
        return dr__fail(err, DR_ERR_LIMIT, "%.200s...: path too long", folder);
    f->fd = open(f->part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    return f->fd >= 0 ? DR_OK : dr__fail_errno(err, DR_ERR_IO, "%s: cannot be written", f->part);
}

dr_status dr__atomic_write(dr__atomic_file *f, const void *data, size_t size, dr_error *err)
{
    const char *p = data;
    while (size) {
        const ssize_t n = write(f->fd, p, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == ENOSPC || errno == EDQUOT))
            return dr__fail_errno(err, DR_ERR_IO, "%s: the disk is full; free some space and run it again to go on",
                                  f->path);
        if (n <= 0)
            return dr__fail_errno(err, DR_ERR_IO, "%s: cannot be written", f->path);
        p += n;
        size -= (size_t)n;
    }
    return DR_OK;
}

dr_status dr__atomic_commit(dr__atomic_file *f, dr_error *err)
{
    const int fd = f->fd;
    f->fd = -1;
    const bool synced = !fsync(fd);
    const int reason = errno;
    const bool closed = !close(fd);
    if (synced && closed && !rename(f->part, f->path))
        return DR_OK;
    if (!synced)
        errno = reason;
    dr_status status = dr__fail_errno(err, DR_ERR_IO, "%s: cannot be written", f->path);
    unlink(f->part);
    return status;
}

void dr__atomic_drop(dr__atomic_file *f)
{
    if (f->fd < 0)
        return;
    close(f->fd);
    unlink(f->part);
    f->fd = -1;
}

dr_status dr__sync_folder(const char *folder, dr_error *err)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool good = fd >= 0 && (!fsync(fd) || errno == EINVAL); /* some file systems cannot sync a folder */
    dr_status status = good ? DR_OK : dr__fail_errno(err, DR_ERR_IO, "%s: cannot be synced", folder);
    if (fd >= 0)
        close(fd);
    return status;
}

dr_status dr__atomic_save(const char *folder, const char *name, const void *data, size_t size, dr_error *err)
{
    dr__atomic_file f;
    DR_TRY(dr__atomic_begin(&f, folder, name, err));
    dr_status status = dr__atomic_write(&f, data, size, err);
    if (status == DR_OK)
        status = dr__atomic_commit(&f, err);
    dr__atomic_drop(&f);
    return status == DR_OK ? dr__sync_folder(folder, err) : status;
}
