/* index_file.c: writing, checking and finding index files. */
#include "index/index_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "index/index_stamp.h"
#include "source/file.h"

static const char magic[8] = { 'D', 'R', 'I', 'D', 'X', '\r', '\n', 0x1A };

enum { VERSION = 1, ENTRY = 32 };

void dr__put_bytes(dr__section *s, const void *data, size_t size)
{
    size_t need;
    uint8_t *p = NULL;
    if (!s->failed && dr__add_size(s->size, size, &need))
        p = dr__grow(s->data, &s->cap, need, 1);
    if (!p) {
        s->failed = true;
        return;
    }
    s->data = p;
    if (size)
        memcpy(p + s->size, data, size);
    s->size += size;
}

void dr__put_u8(dr__section *s, uint8_t value)
{
    dr__put_bytes(s, &value, 1);
}

void dr__put_u32(dr__section *s, uint32_t value)
{
    uint8_t b[4] = { (uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16), (uint8_t)(value >> 24) };
    dr__put_bytes(s, b, sizeof b);
}

void dr__put_u64(dr__section *s, uint64_t value)
{
    dr__put_u32(s, (uint32_t)value);
    dr__put_u32(s, (uint32_t)(value >> 32));
}

void dr__sections_free(dr__section *sections, int n_sections)
{
    for (int i = 0; i < n_sections; i++) {
        dr__free(sections[i].data);
        sections[i] = (dr__section){ .id = sections[i].id };
    }
}

/* Reads the head and leaves the cursor at the table, which is whole and unharmed. */
static dr_status check_head(dr_cursor *c, uint32_t *n_sections, dr_error *err)
{
    const uint8_t *start = c->at, *p;
    uint32_t version;
    uint64_t sum;
    DR_TRY(dr__cursor_bytes(c, sizeof magic, &p, err));
    if (memcmp(p, magic, sizeof magic))
        return dr__fail(err, DR_ERR_FORMAT, "index: not an index file");
    DR_TRY(dr__cursor_u32(c, &version, err));
    DR_TRY(dr__cursor_u32(c, n_sections, err));
    if (version != VERSION || *n_sections > DR__INDEX_MAX_SECTIONS)
        return dr__fail(err, DR_ERR_FORMAT, "index: version %u with %u sections", version, *n_sections);
    dr_cursor table = *c;
    DR_TRY(dr__cursor_bytes(c, (size_t)*n_sections * ENTRY, &p, err));
    size_t head = (size_t)(c->at - start);
    DR_TRY(dr__cursor_u64(c, &sum, err));
    if (sum != XXH3_64bits(start, head))
        return dr__fail(err, DR_ERR_FORMAT, "index: table is damaged");
    *c = table;
    return DR_OK;
}

dr_status dr__index_section(const void *data, size_t size, uint32_t id, dr_cursor *out, dr_error *err)
{
    dr_cursor c = dr__cursor(data, size, "index");
    uint32_t n_sections, seen, zero;
    uint64_t offset, length, sum;
    DR_TRY(check_head(&c, &n_sections, err));
    for (uint32_t i = 0; i < n_sections; i++) {
        DR_TRY(dr__cursor_u32(&c, &seen, err));
        DR_TRY(dr__cursor_u32(&c, &zero, err));
        DR_TRY(dr__cursor_u64(&c, &offset, err));
        DR_TRY(dr__cursor_u64(&c, &length, err));
        DR_TRY(dr__cursor_u64(&c, &sum, err));
        if (seen != id)
            continue;
        if (offset > size || length > size - offset)
            return dr__fail(err, DR_ERR_FORMAT, "index: section %u lies outside the file", id);
        *out = dr__cursor((const uint8_t *)data + offset, (size_t)length, "index section");
        if (sum != XXH3_64bits(out->at, (size_t)length))
            return dr__fail(err, DR_ERR_FORMAT, "index: section %u is damaged", id);
        return DR_OK;
    }
    return dr__fail(err, DR_ERR_FORMAT, "index: no section %u", id);
}

void dr__index_paths_make(dr__index_paths *place, const char *beside, const char *identity)
{
    char folder[3072], path[4096];
    *place = (dr__index_paths){ .beside = beside ? dr__strdup(beside) : NULL };
    if (!dr__cache_folder(folder, sizeof folder))
        return;
    snprintf(path, sizeof path, "%s/%016llx.drapps-index", folder,
             (unsigned long long)XXH3_64bits(identity, strlen(identity)));
    place->cached = dr__strdup(path);
}

void dr__index_paths_free(dr__index_paths *place)
{
    dr__free(place->beside);
    dr__free(place->cached);
    *place = (dr__index_paths){ 0 };
}

uint8_t *dr__index_load(const char *path, size_t *size)
{
    struct stat st;
    uint64_t bytes;
    int fd = dr__index_open(path, &st, &bytes);
    if (fd < 0)
        return NULL;
    uint8_t *data = dr__alloc((size_t)bytes);
    if (data && dr__file_pread(fd, data, (size_t)bytes, 0, size)) {
        dr__free(data);
        data = NULL;
    }
    close(fd);
    return data;
}

bool dr__write_all(int fd, const void *data, size_t size)
{
    const char *p = data;
    while (size) {
        ssize_t n = write(fd, p, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        size -= (size_t)n;
    }
    return true;
}

static void make_head(dr__section *head, const dr__section *sections, int n)
{
    uint64_t offset = sizeof magic + 8 + (uint64_t)n * ENTRY + 8;
    dr__put_bytes(head, magic, sizeof magic);
    dr__put_u32(head, VERSION);
    dr__put_u32(head, (uint32_t)n);
    for (int i = 0; i < n; i++) {
        dr__put_u32(head, sections[i].id);
        dr__put_u32(head, 0);
        dr__put_u64(head, offset);
        dr__put_u64(head, sections[i].size);
        dr__put_u64(head, XXH3_64bits(sections[i].data, sections[i].size));
        offset += sections[i].size;
    }
    if (!head->failed)
        dr__put_u64(head, XXH3_64bits(head->data, head->size));
}

static bool write_sections(int fd, const dr__section *sections, int n)
{
    dr__section head = { 0 };
    make_head(&head, sections, n);
    bool good = !head.failed && dr__write_all(fd, head.data, head.size);
    dr__free(head.data);
    for (int i = 0; good && i < n; i++)
        good = dr__write_all(fd, sections[i].data, sections[i].size);
    return good;
}

void dr__index_encode(const dr__section *sections, int n, dr__section *out)
{
    *out = (dr__section){ 0 };
    make_head(out, sections, n);
    for (int i = 0; i < n; i++) {
        out->failed = out->failed || sections[i].failed;
        dr__put_bytes(out, sections[i].data, sections[i].size);
    }
}

/* The cache folder and its parent, where they are missing. */
static void make_cache_folder(void)
{
    char folder[3072];
    if (!dr__cache_folder(folder, sizeof folder))
        return;
    char *last = strrchr(folder, '/');
    *last = 0;
    mkdir(folder, 0700);
    *last = '/';
    mkdir(folder, 0700);
}

/* Does the folder of this file grant no one the permission to write?  Root could write all the same, and is the usual
 * user of a container; but data that was made read-only stays unchanged. */
static bool is_read_only(const char *path)
{
    char folder[4096];
    struct stat st;
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) + 1 : 1;
    if (len >= sizeof folder)
        return true;
    memcpy(folder, slash ? path : ".", len);
    folder[len] = 0;
    return !stat(folder, &st) && !(st.st_mode & (S_IWUSR | S_IWGRP | S_IWOTH));
}

bool dr__index_temp_open(dr__index_temp *temp, const char *path, bool beside)
{
    static atomic_uint counter; /* two threads may build the same index */
    struct timespec now;        /* and in a container each run may have the number of the last one, which was killed */
    if (!beside)
        make_cache_folder();
    if (is_read_only(path) || dr__index_is_foreign(path))
        return false;
    clock_gettime(CLOCK_REALTIME, &now);
    int len = snprintf(temp->name, sizeof temp->name, "%s.%ld.%u.%llx", path, (long)getpid(),
                       atomic_fetch_add(&counter, 1), now.tv_sec * 1000000000ull + (unsigned long long)now.tv_nsec);
    if (len < 0 || (size_t)len >= sizeof temp->name)
        return false;
    temp->fd = open(temp->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    return temp->fd >= 0;
}

bool dr__index_temp_close(dr__index_temp *temp, const char *path, bool good)
{
    good = good && dr__index_stamp(temp->fd) && !fsync(temp->fd);
    good = !close(temp->fd) && good && !rename(temp->name, path);
    if (!good)
        unlink(temp->name);
    return good;
}

bool dr__index_save(const char *path, bool beside, const dr__section *sections, int n_sections)
{
    dr__index_temp temp;
    for (int i = 0; i < n_sections; i++)
        if (sections[i].failed)
            return false;
    return path && dr__index_temp_open(&temp, path, beside) &&
           dr__index_temp_close(&temp, path, write_sections(temp.fd, sections, n_sections));
}
