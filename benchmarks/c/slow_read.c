/* slow_read.c: storage of little bandwidth, for programs that cannot tell: a library for LD_PRELOAD.
 *
 *   SLOW_READ=/data/ SLOW_READ_RATE=rate.bin LD_PRELOAD=./slow_read.so program
 *
 * rate.bin has one native 64-bit integer: bytes a second that all threads of the program together may read from files
 * whose path has SLOW_READ in it; 0: as many as there are.  It may be changed while the program runs.  What is slowed
 * down is pread and read; a file that is mapped into memory is as fast as before.
 *
 * Reads stand in line: each begins where the one before it ends, and its thread sleeps until its own end.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#undef _FILE_OFFSET_BITS /* else both names of a function would be one */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static const char *part;
static const _Atomic int64_t *rate; /* NULL: nothing is slow */
static _Atomic int64_t free_at_ns;  /* when the storage has done all reads so far */

__attribute__((constructor)) static void look_at_the_environment(void)
{
    const char *path = getenv("SLOW_READ_RATE");
    part = getenv("SLOW_READ");
    if (!path || !part || !*part)
        return;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *p = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *rate, PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) {
        fprintf(stderr, "slow_read: %s: %s\n", path, strerror(errno));
        _exit(2);
    }
    close(fd);
    rate = p;
}

static bool is_slow(int fd)
{
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n < 0 ? 0 : n] = '\0';
    return strstr(path, part);
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* Sleeps until the storage would have delivered n bytes. */
static void wait_for(int fd, ssize_t n)
{
    int saved = errno;
    int64_t bytes_per_s = rate ? atomic_load(rate) : 0;
    if (n > 0 && bytes_per_s > 0 && is_slow(fd)) {
        int64_t took = (int64_t)((double)n * 1e9 / (double)bytes_per_s), before = atomic_load(&free_at_ns), end;
        do {
            int64_t now = now_ns();
            end = (before > now ? before : now) + took;
        } while (!atomic_compare_exchange_weak(&free_at_ns, &before, end));
        struct timespec until = { end / 1000000000, end % 1000000000 };
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
            ;
    }
    errno = saved;
}

#define PREAD(name)                                                                                                    \
    EXPORT ssize_t name(int fd, void *data, size_t size, off_t offset)                                                 \
    {                                                                                                                  \
        static ssize_t (*_Atomic real)(int, void *, size_t, off_t);                                                    \
        if (!real)                                                                                                     \
            real = (ssize_t(*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, #name);                                    \
        ssize_t n = real(fd, data, size, offset);                                                                      \
        wait_for(fd, n);                                                                                               \
        return n;                                                                                                      \
    }

PREAD(pread)
PREAD(pread64)

EXPORT ssize_t read(int fd, void *data, size_t size)
{
    static ssize_t (*_Atomic real)(int, void *, size_t);
    if (!real)
        real = (ssize_t(*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
    ssize_t n = real(fd, data, size);
    wait_for(fd, n);
    return n;
}
