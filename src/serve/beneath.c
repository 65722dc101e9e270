/* beneath.c: opens files below a folder by openat2, or component by component without following links. */
#include "serve/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xxhash.h>

#include "format/remote_index.h"

#if defined(__has_include)
#if __has_include(<linux/openat2.h>)
#include <linux/openat2.h>
#define HAVE_OPENAT2 1
#endif
#endif

enum { FILE_FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, MOST_TRIES = 16 };

dr_status dr__beneath_root(const char *path, int *fd, dr_error *err)
{
    *fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return *fd >= 0 ? DR_OK
                    : dr__fail_errno(err, errno == ENOENT ? DR_ERR_NOT_FOUND : DR_ERR_IO, "%s: cannot open", path);
}

/* Each folder by itself; none may be a link. */
static int open_steps(int root, const char *path)
{
    char part[NAME_MAX + 1];
    int at = root;
    for (;;) {
        const size_t n = strcspn(path, "/");
        const bool last = !path[n];
        int next = -1;
        if (n > NAME_MAX) {
            errno = ENAMETOOLONG;
        } else {
            memcpy(part, path, n);
            part[n] = 0;
            next = openat(at, part, last ? FILE_FLAGS | O_NOFOLLOW : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        }
        const int why = errno;
        if (at != root)
            close(at);
        errno = why;
        if (next < 0 || last)
            return next;
        at = next;
        path += n + 1;
    }
}

static int open_beneath(int root, const char *path)
{
#ifdef HAVE_OPENAT2
    static atomic_bool absent;
    if (!atomic_load_explicit(&absent, memory_order_relaxed)) { /* only saves a system call */
        const struct open_how how = { .flags = FILE_FLAGS, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
        int fd, tries = 0;
        do /* EAGAIN: a folder on the way was renamed just now */
            fd = (int)syscall(SYS_openat2, root, path, &how, sizeof how);
        while (fd < 0 && (errno == EINTR || errno == EAGAIN) && ++tries < MOST_TRIES);
        if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
            return fd;
        if (errno == EPERM) /* a filter of system calls that does not know it; or the file's own refusal */
            return open_steps(root, path);
        atomic_store(&absent, true);
    }
#endif
    return open_steps(root, path);
}

dr_status dr__beneath_open(int root, const char *path, int *fd, struct stat *st, dr_error *err)
{
    *fd = -1;
    if (!dr__remote_path_is_plain(path))
        return dr__fail(err, DR_ERR_NOT_FOUND, "no such file");
    const int f = open_beneath(root, path);
    if (f < 0) {
        const bool broken = errno == EIO || errno == EMFILE || errno == ENFILE || errno == ENOMEM;
        return broken ? dr__fail_errno(err, DR_ERR_IO, "cannot open") : dr__fail(err, DR_ERR_NOT_FOUND, "no such file");
    }
    if (fstat(f, st) || !S_ISREG(st->st_mode)) {
        close(f);
        return dr__fail(err, DR_ERR_NOT_FOUND, "no such file");
    }
    *fd = f;
    return DR_OK;
}

uint64_t dr__beneath_version(const struct stat *st)
{
    const uint64_t mtime_ns = (uint64_t)st->st_mtim.tv_sec * 1000000000 + (uint64_t)st->st_mtim.tv_nsec;
    const uint64_t ctime_ns = (uint64_t)st->st_ctim.tv_sec * 1000000000 + (uint64_t)st->st_ctim.tv_nsec;
    const uint64_t facts[] = { mtime_ns, ctime_ns, (uint64_t)st->st_ino, (uint64_t)st->st_size };
    return XXH3_64bits(facts, sizeof facts);
}
