/* live_place.c: finds the folders of live files and tells whether their writers are alive.
 *
 * Another user could have planted a folder in /dev/shm or /tmp.  A folder is used only if it is not a symbolic link, is
 * owned by this user, and nobody else may write to it.
 */
#include "trace/live_place.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 512 };

/* The i-th candidate, best first.  A folder in memory is preferred to /tmp: if that is on a disk, a busy disk could
 * delay the stores of the writer. */
static bool folder_path(int i, char path[PATH_SIZE])
{
    const char *given = getenv("DRAPPS_LIVE"), *run = getenv("XDG_RUNTIME_DIR");
    const unsigned uid = (unsigned)geteuid();
    int n = -1;
    if (given && *given)
        n = i == 0 && strcmp(given, "off") != 0 ? snprintf(path, PATH_SIZE, "%s", given) : -1;
    else if (i == 0)
        n = run && *run == '/' ? snprintf(path, PATH_SIZE, "%s/drapps", run) : -1;
    else if (i == 1)
        n = snprintf(path, PATH_SIZE, "/dev/shm/drapps-%u", uid);
    else if (i == 2)
        n = snprintf(path, PATH_SIZE, "/tmp/drapps-%u", uid);
    else if (i == 3) /* for readers that were started without XDG_RUNTIME_DIR */
        n = snprintf(path, PATH_SIZE, "/run/user/%u/drapps", uid);
    return n > 0 && n < PATH_SIZE;
}

static int open_own(const char *path)
{
    struct stat s;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &s) == 0 && s.st_uid == geteuid() && !(s.st_mode & 022))
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

int dr__live_folder_make(void)
{
    char path[PATH_SIZE];
    int fd = -1;
    for (int i = 0; fd < 0 && i < 3; i++)
        if (folder_path(i, path)) {
            mkdir(path, 0700); /* may exist already; open_own checks it */
            fd = open_own(path);
        }
    return fd;
}

static bool same_folder(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int dr__live_folder_open(int i)
{
    char path[PATH_SIZE], before[PATH_SIZE];
    if (!folder_path(i, path))
        return -1;
    for (int k = 0; k < i; k++)
        if (folder_path(k, before) && same_folder(before, path))
            return -1;
    return open_own(path);
}

uint64_t dr__live_start_ticks(int pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return 0;
    text[n] = 0;
    const char *rest = strrchr(text, ')'); /* the program's name may contain blanks and brackets */
    char life = 0;
    unsigned long long ticks = 0;
    if (!rest || sscanf(rest + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
                        &life, &ticks) != 2)
        return 0;
    return life == 'Z' || life == 'X' ? 0 : ticks;
}

uint64_t dr__live_pid_namespace(void)
{
    struct stat s;
    return stat("/proc/self/ns/pid", &s) == 0 ? (uint64_t)s.st_ino : 0;
}

bool dr__live_is_alive(int fd, const dr__live_head *head)
{
    if (flock(fd, LOCK_SH | LOCK_NB) == 0) {
        flock(fd, LOCK_UN);
        return false;
    }
    if (!head->pid_space || head->pid_space != dr__live_pid_namespace())
        return true;
    return dr__live_start_ticks(head->pid) == head->start_ticks;
}

static bool is_abandoned(int fd)
{
    dr__live_head head;
    if (pread(fd, &head, sizeof head, 0) >= DR__LIVE_COMMON && !memcmp(head.magic, DR__LIVE_MAGIC, sizeof head.magic))
        return !dr__live_is_alive(fd, &head);
    /* Not filled yet: its writer has the lock, or is about to take it and will see that the file was removed. */
    return flock(fd, LOCK_SH | LOCK_NB) == 0;
}

/* File names are never reused (live.c), so the file that is removed is the one that was checked. */
static void sweep_one(int folder, const char *name)
{
    size_t n = strlen(name), suffix = strlen(DR__LIVE_SUFFIX);
    if (n <= suffix || strcmp(name + n - suffix, DR__LIVE_SUFFIX) != 0)
        return;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    if (is_abandoned(fd))
        unlinkat(folder, name, 0);
    close(fd);
}

void dr__live_sweep(int folder)
{
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = copy >= 0 ? fdopendir(copy) : NULL;
    if (!list) {
        if (copy >= 0)
            close(copy);
        return;
    }
    for (const struct dirent *e; (e = readdir(list));)
        sweep_one(folder, e->d_name);
    closedir(list);
}
