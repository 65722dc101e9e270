/* source_file.c: the local file system as a source.
 *
 * pread, not mmap: a file that is cut short while it is read must be an error, not a signal.  A directory handle is a
 * descriptor that paths are opened relative to: the kernel then walks only the part below it, and the folder may be
 * renamed while it is read.  A file costs openat, fstat, pread and close.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "source/file.h"
#include "source/source.h"

struct file {
    dr__source head;
    int fd;
};

struct dir {
    dr__source_dir head;
    int fd; /* AT_FDCWD: no directory */
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

/* --- facts --- */

static uint64_t version_of(const struct stat *st)
{
    const uint64_t mtime_ns = (uint64_t)st->st_mtim.tv_sec * 1000000000 + (uint64_t)st->st_mtim.tv_nsec;
    const uint64_t ctime_ns = (uint64_t)st->st_ctim.tv_sec * 1000000000 + (uint64_t)st->st_ctim.tv_nsec;
    const uint64_t facts[] = { mtime_ns, ctime_ns, (uint64_t)st->st_ino, (uint64_t)st->st_size };
    const uint64_t version = XXH3_64bits(facts, sizeof facts);
    return version ? version : 1;
}

static dr__source_facts facts_of(const struct stat *st)
{
    return (dr__source_facts){
        .kind = S_ISREG(st->st_mode)   ? DR__SOURCE_FILE
                : S_ISDIR(st->st_mode) ? DR__SOURCE_DIR
                                       : DR__SOURCE_OTHER,
        .size = (uint64_t)st->st_size,
        .mtime_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec,
        .version = version_of(st),
        .id = { (uint64_t)st->st_dev, (uint64_t)st->st_ino },
    };
}

static dr_status check_options(const char *name, const dr__source_options *options, dr_error *err)
{
    if (options->credentials)
        return dr__fail(err, DR_ERR_UNSUPPORTED, "%s: local files take no credentials", name);
    return DR_OK;
}

/* --- one file --- */

static dr_status open_file(const char *name, const dr__source_options *options, dr__source **out, dr_error *err)
{
    struct stat st;
    int fd;
    DR_TRY(check_options(name, options, err));
    DR_TRY(dr__file_open(AT_FDCWD, NULL, name, &fd, &st, err));
    struct file *f = dr__alloc_zero(1, sizeof *f);
    if (!f) {
        close(fd);
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", name);
    }
    f->fd = fd;
    f->head.facts = facts_of(&st);
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

/* --- a directory --- */

static dr_status open_dir(const char *name, const dr__source_options *options, dr__source_dir **out, dr_error *err)
{
    DR_TRY(check_options(name ? name : ".", options, err));
    int fd = name ? open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : AT_FDCWD;
    if (name && fd < 0)
        return dr__fail_errno(err, dr__errno_status(errno), "%s: cannot open folder", name);
    struct dir *d = dr__alloc_zero(1, sizeof *d);
    if (!d) {
        if (name)
            close(fd);
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", name ? name : ".");
    }
    d->fd = fd;
    *out = &d->head;
    return DR_OK;
}

static void close_dir(dr__source_dir *dir)
{
    const int fd = ((struct dir *)dir)->fd;
    if (fd >= 0)
        close(fd);
}

/* Reads until the file ends.  One byte more than expected is asked for, so that the usual file needs a single read. */
static dr_status read_whole(int fd, size_t expect, dr__source_target *target, size_t *size, dr_error *err)
{
    size_t done = 0, ask = expect + 1;
    for (;;) {
        dr_status status = DR_OK;
        uint8_t *memory = target->reserve(target, done + ask, done, &status, err);
        if (!memory)
            return status;
        ssize_t n = pread(fd, memory + done, ask, (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return dr__fail_errno(err, DR_ERR_IO, "cannot read");
        done += (size_t)n;
        if (n == 0 || done == expect)
            break;
        ask = done < expect ? expect + 1 - done : 65536;
    }
    *size = done;
    return DR_OK;
}

static dr_status name_path(const dr__source_dir *dir, const char *path, dr_status status, dr_error *err)
{
    if (status != DR_OK)
        dr__error_prefix(err, "%s%s%s", path[0] == '/' ? "" : dir->name, path[0] == '/' ? "" : "/", path);
    return status;
}

static dr_status get(dr__source_dir *dir, const char *path, dr__source_target *target, size_t *size, dr_error *err)
{
    struct stat st;
    int fd;
    DR_TRY(dr__file_open(((struct dir *)dir)->fd, dir->name, path, &fd, &st, err));
    dr_status status = read_whole(fd, (size_t)st.st_size, target, size, err);
    close(fd);
    return name_path(dir, path, status, err);
}

/* What was written to while it was read has no version. */
static dr_status get_versioned(dr__source_dir *dir, const char *path, dr__source_target *target, size_t *size,
                               uint64_t *version, dr_error *err)
{
    struct stat st, after;
    int fd;
    DR_TRY(dr__file_open(((struct dir *)dir)->fd, dir->name, path, &fd, &st, err));
    dr_status status = read_whole(fd, (size_t)st.st_size, target, size, err);
    *version = status == DR_OK && !fstat(fd, &after) && version_of(&after) == version_of(&st) ? version_of(&st) : 0;
    close(fd);
    return name_path(dir, path, status, err);
}

static dr_status read_range(int fd, uint64_t offset, size_t n, dr__source_target *target, size_t *got, dr_error *err)
{
    dr_status status = DR_OK;
    if (offset > INT64_MAX || n > INT64_MAX - offset)
        return dr__fail(err, DR_ERR_ARG, "read beyond what a file can hold");
    uint8_t *memory = target->reserve(target, n, 0, &status, err);
    if (!memory)
        return status;
    if (dr__file_pread(fd, memory, n, offset, got))
        return dr__fail_errno(err, DR_ERR_IO, "cannot read");
    return DR_OK;
}

static dr_status get_range(dr__source_dir *dir, const char *path, uint64_t version, uint64_t offset, size_t n,
                           dr__source_target *target, size_t *got, dr_error *err)
{
    struct stat st;
    int fd;
    DR_TRY(dr__file_open(((struct dir *)dir)->fd, dir->name, path, &fd, &st, err));
    dr_status status = DR_OK;
    if (version && version_of(&st) != version)
        status = dr__fail(err, DR_ERR_STATE, "was changed while the data set is open");
    if (status == DR_OK)
        status = read_range(fd, offset, n, target, got, err);
    close(fd);
    return name_path(dir, path, status, err);
}

/* Not more than was asked for: reading ahead would bring the bytes that are to be left out. */
static dr_status read_ranges(int fd, const dr__byte_ranges *ranges, uint8_t *to, dr_error *err)
{
    size_t got;
    posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    for (int i = 0; i < ranges->n; to += ranges->at[i++].size) {
        const dr__byte_range *r = &ranges->at[i];
        if (r->offset > INT64_MAX || r->size > INT64_MAX - r->offset)
            return dr__fail(err, DR_ERR_ARG, "read beyond what a file can hold");
        if (dr__file_pread(fd, to, (size_t)r->size, r->offset, &got))
            return dr__fail_errno(err, DR_ERR_IO, "cannot read");
        if (got != r->size)
            return dr__fail(err, DR_ERR_FORMAT, "%llu bytes wanted at %llu, %zu there", (unsigned long long)r->size,
                            (unsigned long long)r->offset, got);
    }
    return DR_OK;
}

static dr_status get_ranges(dr__source_dir *dir, const char *path, uint64_t version, const dr__byte_ranges *ranges,
                            uint8_t *to, dr_error *err)
{
    struct stat st;
    int fd;
    DR_TRY(dr__file_open(((struct dir *)dir)->fd, dir->name, path, &fd, &st, err));
    dr_status status = DR_OK;
    const bool right = !version || version_of(&st) == version;
    if (right)
        status = read_ranges(fd, ranges, to, err);
    if (!right || (status == DR_OK && version && (fstat(fd, &st) || version_of(&st) != version)))
        status = dr__fail(err, DR_ERR_STATE, "was changed while the data set is open");
    close(fd);
    return name_path(dir, path, status, err);
}

/* dir NULL: the path is used as it is. */
static dr_status stat_path(dr__source_dir *dir, const char *path, dr__source_facts *facts, dr_error *err)
{
    struct stat st;
    if (fstatat(dir ? ((struct dir *)dir)->fd : AT_FDCWD, *path ? path : ".", &st, 0))
        return dr__fail_errno(err, dr__errno_status(errno), "%s%scannot stat %s", dir ? dir->name : "", dir ? ": " : "",
                              path);
    *facts = facts_of(&st);
    return DR_OK;
}

/* As os.walk: what is not a folder, or cannot be asked, is a file. */
static bool is_dir(int fd, const struct dirent *e, bool *by_link)
{
    struct stat st;
    *by_link = e->d_type != DT_DIR;
    if (e->d_type != DT_LNK && e->d_type != DT_UNKNOWN)
        return e->d_type == DT_DIR;
    return !fstatat(fd, e->d_name, &st, 0) && S_ISDIR(st.st_mode);
}

static dr_status read_entries(const dr__source_dir *dir, const char *path, DIR *stream, dr__source_lister *lister,
                              dr_error *err)
{
    for (;;) {
        errno = 0;
        const struct dirent *e = readdir(stream);
        if (!e && errno)
            return dr__fail_errno(err, DR_ERR_IO, "%s/%s: cannot list", dir->name, path);
        if (!e)
            return DR_OK;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        dr__source_entry entry = { .name = e->d_name };
        entry.is_dir = is_dir(dirfd(stream), e, &entry.by_link);
        dr_status status = lister->take(lister, &entry, err);
        if (status != DR_OK)
            return status == DR_END ? DR_OK : status;
    }
}

static dr_status list(dr__source_dir *dir, const char *path, dr__source_lister *lister, dr_error *err)
{
    struct stat st;
    int fd = openat(((struct dir *)dir)->fd, *path ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return dr__fail_errno(err, dr__errno_status(errno), "%s/%s: cannot list", dir->name, path);
    if (fstat(fd, &st)) {
        dr_status status = dr__fail_errno(err, DR_ERR_IO, "%s/%s: cannot list", dir->name, path);
        close(fd);
        return status;
    }
    const dr__source_facts facts = facts_of(&st);
    if (lister->begin && !lister->begin(lister, &facts)) {
        close(fd);
        return DR_OK;
    }
    DIR *stream = fdopendir(fd);
    if (!stream) {
        dr_status status = dr__fail_errno(err, DR_ERR_NOMEM, "%s/%s: cannot list", dir->name, path);
        close(fd);
        return status;
    }
    dr_status status = read_entries(dir, path, stream, lister, err);
    closedir(stream);
    return status;
}

const dr_source_def dr__source_file = {
    .scheme = NULL,
    .summary = "files of the local file system",
    .open = open_file,
    .size = size,
    .read_at = read_at,
    .close = close_file,
    .open_dir = open_dir,
    .get = get,
    .get_versioned = get_versioned,
    .get_range = get_range,
    .get_ranges = get_ranges,
    .stat = stat_path,
    .list = list,
    .close_dir = close_dir,
};
