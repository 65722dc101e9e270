/* store_files.c: the data files of a store: finding them, reading the heads of their records, and their descriptors.
 *
 * Every process that has written leaves a file, so there may be thousands.  A bounded number is open at a time; opening
 * another one closes the least recently used.
 */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/grow.h"
#include "store/store_parts.h"
#include "store/store_space.h"

enum { REFRESH_NS = 1000000000, REFRESH_SHARE = 20 };

/* --- descriptors; all under lock --- */

/* The least recently used file that no thread is reading; never the file that is being written. */
static dr__data_file *find_oldest(const dr_store *s)
{
    dr__data_file *oldest = NULL;
    for (size_t i = 0; i < s->n_files; i++) {
        dr__data_file *f = s->files[i];
        if (f->fd >= 0 && !f->users && (int)i != s->own && (!oldest || f->used_at < oldest->used_at))
            oldest = f;
    }
    return oldest;
}

static void close_one(dr_store *s, dr__data_file *file)
{
    dr__data_close(file);
    s->n_open--;
}

static void make_room(dr_store *s)
{
    dr__data_file *oldest = s->n_open < s->most_open ? NULL : find_oldest(s);
    if (oldest)
        close_one(s, oldest);
}

int dr__store_add_file(dr_store *s, const dr__data_file *file)
{
    dr__data_file *copy = dr__alloc(sizeof *copy);
    dr__data_file **files = copy ? dr__grow(s->files, &s->files_cap, s->n_files + 1, sizeof *files) : NULL;
    if (!files) {
        dr__free(copy);
        return -1;
    }
    s->files = files;
    make_room(s);
    *copy = *file;
    copy->used_at = ++s->uses;
    s->n_open++;
    s->files[s->n_files] = copy;
    return (int)s->n_files++;
}

dr__data_file *dr__store_use(dr_store *s, uint32_t number)
{
    dr__data_file *f = s->files[number], again;
    if (f->fd < 0) {
        make_room(s);
        if (!dr__data_open(s->folder_fd, f->name, &s->identity, &again))
            return NULL;
        f->fd = again.fd;
        s->n_open++;
    }
    f->used_at = ++s->uses;
    f->users++;
    return f;
}

void dr__store_release(dr_store *s, dr__data_file *file)
{
    if (!--file->users && s->n_open > s->most_open && file != s->own_file)
        close_one(s, file);
}

void dr__store_close_files(dr_store *s)
{
    for (size_t i = 0; i < s->n_files; i++) {
        dr__data_close(s->files[i]);
        dr__free(s->files[i]);
    }
    dr__free(s->files);
}

/* --- finding what is there; all under lock --- */

static bool is_known(const dr_store *s, const char *name)
{
    for (size_t i = 0; i < s->n_files; i++)
        if (!strcmp(s->files[i]->name, name))
            return true;
    return false;
}

/* A closed file is opened only when it has grown. */
static bool has_more(const dr_store *s, const dr__data_file *f)
{
    struct stat st;
    return f->fd >= 0 || (!fstatat(s->folder_fd, f->name, &st, 0) && (uint64_t)st.st_size > f->scanned);
}

static void scan_file(dr_store *s, uint32_t number)
{
    dr__data_file *f = has_more(s, s->files[number]) ? dr__store_use(s, number) : NULL;
    dr_stored head;
    uint64_t next;
    if (!f)
        return;
    while (dr__data_read_head(f, f->scanned, &head, &next)) {
        if (!dr__key_table_set(&s->table, &head.key, (dr__key_location){ number, f->scanned }))
            break;
        f->scanned = next;
    }
    dr__store_release(s, f);
}

/* Each is read at once, while it is open. */
static void add_new_file(dr_store *s, const char *name)
{
    dr__data_file file;
    if (!dr__is_data_name(name) || is_known(s, name) || !dr__data_open(s->folder_fd, name, &s->identity, &file))
        return;
    int number = dr__store_add_file(s, &file);
    if (number >= 0)
        scan_file(s, (uint32_t)number);
    else
        dr__data_close(&file);
}

static void add_new_files(dr_store *s)
{
    int fd = openat(s->folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (!folder) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (struct dirent *entry; (entry = readdir(folder));)
        add_new_file(s, entry->d_name);
    closedir(folder);
}

void dr__store_refresh(dr_store *s)
{
    uint64_t start = dr__now_ns();
    for (size_t i = 0; i < s->n_files; i++)
        if ((int)i != s->own)
            scan_file(s, (uint32_t)i);
    add_new_files(s);
    uint64_t end = dr__now_ns();
    s->refresh_at_ns = end + DR_MAX((end - start) * REFRESH_SHARE, (uint64_t)REFRESH_NS);
}
