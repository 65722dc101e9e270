/* store_space.c: folders, and the space in them. */
#include "store/store_space.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/compiler.h"
#include "index/index_file.h"

bool dr__space_default_folder(char *path, size_t size)
{
    char folder[3072];
    if (!dr__cache_folder(folder, sizeof folder))
        return false;
    return (size_t)snprintf(path, size, "%s/samples", folder) < size;
}

dr_status dr__space_make_folder(const char *path, dr_error *err)
{
    char part[4096];
    struct stat st;
    if (strlen(path) >= sizeof part)
        return dr__fail(err, DR_ERR_LIMIT, "cache: the path has more than %zu bytes", sizeof part - 1);
    for (size_t i = 1; i <= strlen(path); i++) {
        if (path[i] != '/' && path[i])
            continue;
        snprintf(part, sizeof part, "%.*s", (int)i, path);
        if (mkdir(part, 0755) && errno != EEXIST && stat(part, &st))
            return dr__fail_errno(err, DR_ERR_IO, "cache: cannot make the folder %s", part);
    }
    if (stat(path, &st) || !S_ISDIR(st.st_mode))
        return dr__fail(err, DR_ERR_ARG, "cache: %s is not a folder", path);
    return DR_OK;
}

bool dr__is_data_name(const char *name)
{
    size_t n = strlen(name);
    return n > 10 && !strncmp(name, "data-", 5) && !strcmp(name + n - 5, ".drst");
}

static uint64_t used_by(int folder_fd, const char *name)
{
    uint64_t total = 0;
    int fd = openat(folder_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (!folder) {
        if (fd >= 0)
            close(fd);
        return 0;
    }
    struct stat st;
    for (struct dirent *entry; (entry = readdir(folder));)
        if (dr__is_data_name(entry->d_name) && !fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
            total += (uint64_t)DR_MAX(st.st_size, 0);
    closedir(folder);
    return total;
}

uint64_t dr__space_used(const char *path)
{
    uint64_t total = 0;
    DIR *root = opendir(path);
    if (!root)
        return 0;
    for (struct dirent *entry; (entry = readdir(root));)
        if (entry->d_name[0] != '.')
            total += used_by(dirfd(root), entry->d_name);
    closedir(root);
    return total;
}

uint64_t dr__space_free(const char *path)
{
    struct statvfs v;
    return statvfs(path, &v) ? 0 : (uint64_t)v.f_bavail * v.f_frsize;
}
