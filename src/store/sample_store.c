/* sample_store.c: a store at work.
 *
 *   <folder>/<32 digits: hash of the identity>/about.txt              the identity, for people
 *                                              data-<process>.drst    one file of each process that has written
 *
 * The table says where the sample of each key lies.  It is filled by reading the heads of all records when the store is
 * opened, and now and then, when something is not found, from where reading ended before: so processes that work on one
 * data set find each other's samples.  Nothing of a record is believed that its checksums do not confirm.
 *
 * Files are read, not mapped: a mapped file that somebody cuts short would end the process.
 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/grow.h"
#include "base/thread.h"
#include "format/index_file.h"
#include "source/file.h"
#include "store/store_parts.h"
#include "store/store_room.h"

enum { REFRESH_NS = 1000000000, REFRESH_SHARE = 20 };

/* --- finding what is there --- */

/* lock: */
static bool is_known(const dr_store *s, uint64_t name)
{
    for (size_t i = 0; i < s->n_files; i++)
        if (s->files[i]->name == name)
            return true;
    return false;
}

int dr__store_add_file(dr_store *s, const dr__data_file *file)
{
    dr__data_file *copy = dr__alloc(sizeof *copy);
    dr__data_file **files = copy ? dr__grow(s->files, &s->files_cap, s->n_files + 1, sizeof *files) : NULL;
    if (!files) {
        dr__free(copy);
        return -1;
    }
    *copy = *file;
    s->files = files;
    s->files[s->n_files] = copy;
    return (int)s->n_files++;
}

/* lock: */
static void open_new_files(dr_store *s)
{
    int fd = openat(s->folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (!folder) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (struct dirent *entry; (entry = readdir(folder));) {
        dr__data_file file;
        if (!dr__is_data_name(entry->d_name) || is_known(s, dr__data_name(entry->d_name)))
            continue;
        if (dr__data_open(s->folder_fd, entry->d_name, &s->identity, &file) && dr__store_add_file(s, &file) < 0)
            dr__data_close(&file);
    }
    closedir(folder);
}

/* lock: */
static void scan_file(dr_store *s, uint32_t number)
{
    dr__data_file *f = s->files[number];
    dr_stored head;
    uint64_t next;
    while (dr__data_read_head(f, f->scanned, &head, &next)) {
        if (!dr__key_table_set(&s->table, &head.key, (dr__key_place){ number, f->scanned }))
            return;
        f->scanned = next;
    }
}

/* lock: */
static void refresh(dr_store *s)
{
    uint64_t start = dr__now_ns();
    open_new_files(s);
    for (size_t i = 0; i < s->n_files; i++)
        if ((int)i != s->own)
            scan_file(s, (uint32_t)i);
    uint64_t end = dr__now_ns();
    s->refresh_at_ns = end + DR_MAX((end - start) * REFRESH_SHARE, (uint64_t)REFRESH_NS);
}

/* --- opening and closing --- */

static dr_store_key hash_of(const void *data, size_t size, uint64_t seed)
{
    XXH128_hash_t h = XXH3_128bits_withSeed(data, size, seed);
    return (dr_store_key){ h.low64, h.high64 };
}

/* For people who wonder what a folder is; nothing reads it. */
static void write_about(int folder_fd, const char *identity)
{
    int fd = openat(folder_fd, "about.txt", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return;
    dr__write_all(fd, identity, strlen(identity));
    dr__write_all(fd, "\n", 1);
    close(fd);
}

static dr_status open_folder(dr_store *s, const char *folder, const char *identity, dr_error *err)
{
    char path[4200];
    if (!strcmp(folder, "auto")) {
        if (!dr__room_standard(s->root, sizeof s->root))
            return dr__fail(err, DR_ERR_NOT_FOUND, "cache: the user has no cache folder (XDG_CACHE_HOME, HOME)");
    } else if ((size_t)snprintf(s->root, sizeof s->root, "%s", folder) >= sizeof s->root) {
        return dr__fail(err, DR_ERR_LIMIT, "cache: the path has more than %zu bytes", sizeof s->root - 1);
    }
    s->identity = hash_of(identity, strlen(identity), 0);
    snprintf(path, sizeof path, "%s/%016" PRIx64 "%016" PRIx64, s->root, s->identity.high, s->identity.low);
    DR_TRY(dr__room_make(path, err));
    s->folder_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->folder_fd < 0)
        return dr__fail_errno(err, DR_ERR_IO, "cache: cannot open %s", path);
    write_about(s->folder_fd, identity);
    return DR_OK;
}

dr_status dr_store_open(const char *folder, const char *identity, uint64_t limit, dr_store **out, dr_error *err)
{
    *out = NULL;
    if (!folder || !*folder)
        return dr__fail(err, DR_ERR_ARG, "cache: needs a folder, or \"auto\"");
    dr_store *s = dr__alloc_zero(1, sizeof *s);
    if (!s)
        return dr__fail(err, DR_ERR_NOMEM, "cache: out of memory");
    s->generation = dr__fork_generation();
    s->own = s->folder_fd = -1;
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->write_lock, NULL);
    dr_status status = open_folder(s, folder, identity, err);
    if (status != DR_OK) {
        dr_store_close(&s);
        return status;
    }
    s->used = dr__room_used(s->root);
    s->limit = limit ? limit : s->used + dr__room_free(s->root) / 2;
    refresh(s);
    *out = s;
    return DR_OK;
}

void dr_store_close(dr_store **store)
{
    dr_store *s = *store;
    *store = NULL;
    if (!s)
        return;
    for (size_t i = 0; i < s->n_files; i++) {
        dr__data_close(s->files[i]);
        dr__free(s->files[i]);
    }
    dr__free(s->files);
    dr__key_table_free(&s->table);
    if (s->folder_fd >= 0)
        close(s->folder_fd);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->write_lock);
    dr__free(s);
}

bool dr__store_is_ours(const dr_store *s)
{
    return s->generation == dr__fork_generation();
}

dr_store_key dr_store_key_of(const dr_store *s, const void *name, size_t size)
{
    return hash_of(name, size, s->identity.low);
}

/* --- reading --- */

/* lock: */
static bool look_up(dr_store *s, const dr_store_key *key, dr__key_place *place, dr__data_file **file)
{
    bool found = dr__key_table_find(&s->table, key, place);
    if (!found && dr__now_ns() >= s->refresh_at_ns) {
        refresh(s);
        found = dr__key_table_find(&s->table, key, place);
    }
    if (found)
        *file = s->files[place->file];
    return found;
}

static void forget(dr_store *s, const dr_store_key *key, dr__key_place place)
{
    pthread_mutex_lock(&s->lock);
    dr__key_table_drop(&s->table, key, place);
    s->stats.damaged++;
    pthread_mutex_unlock(&s->lock);
}

bool dr_store_find(dr_store *s, const dr_store_key *key, dr_stored *out)
{
    dr__key_place place;
    dr__data_file *file;
    uint64_t next;
    if (!dr__store_is_ours(s))
        return false;
    pthread_mutex_lock(&s->lock);
    bool found = look_up(s, key, &place, &file);
    s->stats.misses += !found;
    pthread_mutex_unlock(&s->lock);
    if (!found)
        return false;
    if (dr__data_read_head(file, place.offset, out, &next) && out->key.low == key->low && out->key.high == key->high) {
        out->file = place.file;
        return true;
    }
    forget(s, key, place);
    pthread_mutex_lock(&s->lock);
    s->stats.misses++;
    pthread_mutex_unlock(&s->lock);
    return false;
}

static bool read_payload(int fd, const dr_stored *f, void *memory)
{
    size_t got;
    return !dr__file_pread(fd, memory, f->payload_bytes, f->payload_at, &got) && got == f->payload_bytes;
}

static bool is_whole(const dr_stored *f, const void *payload)
{
    return XXH3_64bits(payload, f->payload_bytes) == f->payload_sum;
}

static bool read_packed(int fd, const dr_stored *f, void *memory, uint64_t *unpack_ns)
{
    void *packed = dr__alloc(f->payload_bytes);
    bool good = packed && read_payload(fd, f, packed);
    uint64_t start = dr__now_ns();
    good = good && is_whole(f, packed) && dr__lz4_unpack(packed, f->payload_bytes, memory, f->bytes);
    *unpack_ns = dr__now_ns() - start;
    dr__free(packed);
    return good;
}

static bool read_raw(int fd, const dr_stored *f, void *memory, uint64_t *unpack_ns)
{
    bool good = read_payload(fd, f, memory);
    uint64_t start = dr__now_ns();
    good = good && is_whole(f, memory);
    *unpack_ns = dr__now_ns() - start;
    return good;
}

bool dr_store_read(dr_store *s, const dr_stored *f, void *memory)
{
    if (!dr__store_is_ours(s))
        return false;
    pthread_mutex_lock(&s->lock);
    int fd = f->file < s->n_files ? s->files[f->file]->fd : -1;
    pthread_mutex_unlock(&s->lock);
    uint64_t start = dr__now_ns(), unpack_ns = 0;
    bool packed = f->codec == DR__CODEC_LZ4;
    bool good = fd >= 0 && (packed ? read_packed : read_raw)(fd, f, memory, &unpack_ns);
    if (!good)
        forget(s, &f->key, (dr__key_place){ f->file, f->record_at });
    pthread_mutex_lock(&s->lock);
    s->stats.hits += good;
    s->stats.misses += !good;
    s->stats.unpack_ns += unpack_ns;
    s->stats.read_ns += dr__now_ns() - start;
    s->stats.read_bytes += good ? f->payload_bytes : 0;
    pthread_mutex_unlock(&s->lock);
    return good;
}

void dr_store_get_stats(dr_store *s, dr_store_stats *out)
{
    *out = (dr_store_stats){ 0 };
    if (!dr__store_is_ours(s))
        return;
    pthread_mutex_lock(&s->write_lock);
    uint64_t disk = s->used + s->since, limit = s->limit;
    pthread_mutex_unlock(&s->write_lock);
    pthread_mutex_lock(&s->lock);
    *out = s->stats;
    out->records = s->table.n;
    dr__squeeze_explain(&s->squeeze, out->codec, sizeof out->codec);
    pthread_mutex_unlock(&s->lock);
    out->disk_bytes = disk;
    out->limit_bytes = limit;
}
