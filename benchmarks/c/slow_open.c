/* slow_open.c: storage whose files take long to open, for programs that cannot tell: a library for LD_PRELOAD.
 *
 *   SLOW_OPEN=/data/ SLOW_OPEN_US=1000 LD_PRELOAD=./slow_open.so program
 *
 * Every open of a file whose path has SLOW_OPEN in it, or that is opened below a directory of such a path, first sleeps
 * for SLOW_OPEN_US microseconds.  Directories are opened at once.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#undef _FILE_OFFSET_BITS /* else both names of a function would be one */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* Is it a path below the slow folder? */
static bool is_slow(int dir_fd, const char *path)
{
    const char *part = getenv("SLOW_OPEN");
    if (!part || !*part)
        return false;
    if (strstr(path, part))
        return true;
    if (path[0] == '/' || dir_fd == AT_FDCWD)
        return false;
    char link[64], dir[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", dir_fd);
    ssize_t n = readlink(link, dir, sizeof dir - 2);
    if (n < 0)
        return false;
    dir[n] = '/', dir[n + 1] = '\0';
    return strstr(dir, part);
}

static void wait_for(int dir_fd, const char *path, int flags)
{
    const char *us = getenv("SLOW_OPEN_US");
    int saved = errno;
    if (us && !(flags & O_DIRECTORY) && is_slow(dir_fd, path)) {
        long ns = strtol(us, NULL, 10) * 1000;
        nanosleep(&(struct timespec){ ns / 1000000000, ns % 1000000000 }, NULL);
    }
    errno = saved;
}

static mode_t mode_of(int flags, va_list args)
{
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
}

#define OPEN(name)                                                                                                     \
    EXPORT int name(const char *path, int flags, ...)                                                                  \
    {                                                                                                                  \
        static int (*real)(const char *, int, ...);                                                                    \
        if (!real)                                                                                                     \
            real = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, #name);                                           \
        va_list args;                                                                                                  \
        va_start(args, flags);                                                                                         \
        mode_t mode = mode_of(flags, args);                                                                            \
        va_end(args);                                                                                                  \
        wait_for(AT_FDCWD, path, flags);                                                                               \
        return real(path, flags, mode);                                                                                \
    }

#define OPENAT(name)                                                                                                   \
    EXPORT int name(int dir_fd, const char *path, int flags, ...)                                                      \
    {                                                                                                                  \
        static int (*real)(int, const char *, int, ...);                                                               \
        if (!real)                                                                                                     \
            real = (int (*)(int, const char *, int, ...))dlsym(RTLD_NEXT, #name);                                      \
        va_list args;                                                                                                  \
        va_start(args, flags);                                                                                         \
        mode_t mode = mode_of(flags, args);                                                                            \
        va_end(args);                                                                                                  \
        wait_for(dir_fd, path, flags);                                                                                 \
        return real(dir_fd, path, flags, mode);                                                                        \
    }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
