/* sample_store.c: opening and reading a store.
 *
 *   <folder>/<32 digits: hash of the identity>/about.txt              the identity, for people
 *                                              data-<process>.drst    one file of each process that has written
 *
 * The table says where the sample of each key lies.  It is filled by reading the heads of all records when the store is
 * opened, and now and then, when something is not found, from where reading ended before: so processes that work on one
 * data set find each other's samples.  Every record is checked against its checksums.
 *
 * Files are read, not mapped: a mapped file that somebody cuts short would end the process.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/thread.h"
#include "index/index_file.h"
#include "source/file.h"
#include "store/store_parts.h"
#include "store/store_space.h"

#define PAGE_CACHE_SHARE 0.8 /* of the memory that could be used for it */

enum {
    MOST_OPEN = 64,
    TIME_EVERY = 16 /* reads: telling what a thread waited for costs some microseconds */,
    FRESH = 64 << 20 /* bytes written last, which may still be in the page cache */
};

/* --- opening and closing --- */

static dr_store_key hash_of(const void *data, size_t size, uint64_t seed)
{
    XXH128_hash_t h = XXH3_128bits_withSeed(data, size, seed);
    return (dr_store_key){ h.low64, h.high64 };
}

/* Explains the folder to people; no code reads it. */
static void write_about(int folder_fd, const char *identity)
{
    int fd = openat(folder_fd, "about.txt", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return;
    dr__write_all(fd, identity, strlen(identity));
    dr__write_all(fd, "\n", 1);
    close(fd);
}

/* Whoever writes to a store decides what batches hold.  The owner of the folder that the user named is trusted, and the
 * group to which it belongs; all users of the machine are not.  Where they may write to the named folder (/tmp), one of
 * them could have made the store's folder in it, or put another one in its place: it must be this user's, or root's.
 * Files are opened relative to folder_fd, so what happens to the named folder later does not matter. */
static dr_status check_trust(const dr_store *s, const char *path, dr_error *err)
{
    struct stat root, own;
    if (stat(s->root, &root) || fstat(s->folder_fd, &own))
        return dr__fail_errno(err, DR_ERR_IO, "cache: cannot look at %s", path);
    if (own.st_mode & S_IWOTH)
        return dr__fail(err, DR_ERR_ARG, "cache: every user may write to %s; delete it, or take another folder", path);
    if (root.st_mode & S_IWOTH && own.st_uid != geteuid() && own.st_uid != 0)
        return dr__fail(err, DR_ERR_ARG,
                        "cache: every user may write to %s, and %s belongs to user %u; take another folder", s->root,
                        path, (unsigned)own.st_uid);
    return DR_OK;
}

static dr_status open_folder(dr_store *s, const char *folder, const char *identity, dr_error *err)
{
    char path[4200];
    if (!strcmp(folder, "auto")) {
        if (!dr__space_default_folder(s->root, sizeof s->root))
            return dr__fail(err, DR_ERR_NOT_FOUND, "cache: the user has no cache folder (XDG_CACHE_HOME, HOME)");
    } else if ((size_t)snprintf(s->root, sizeof s->root, "%s", folder) >= sizeof s->root) {
        return dr__fail(err, DR_ERR_LIMIT, "cache: the path has more than %zu bytes", sizeof s->root - 1);
    }
    snprintf(path, sizeof path, "%s/%016" PRIx64 "%016" PRIx64, s->root, s->identity.high, s->identity.low);
    DR_TRY(dr__space_make_folder(path, err));
    s->folder_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->folder_fd < 0)
        return dr__fail_errno(err, DR_ERR_IO, "cache: cannot open %s", path);
    DR_TRY(check_trust(s, path, err));
    write_about(s->folder_fd, identity);
    return DR_OK;
}

static dr_status open_disk(dr_store *s, const char *folder, const char *identity, uint64_t limit, dr_error *err)
{
    DR_TRY(open_folder(s, folder, identity, err));
    s->used = dr__space_used(s->root);
    atomic_store(&s->taken, s->used);
    s->limit = limit ? limit : s->used + dr__space_free(s->root) / 2;
    dr__limits limits;
    dr__limits_read("", &limits);
    s->page_cache = PAGE_CACHE_SHARE * (double)dr__limits_page_cache("", &limits);
    dr__store_refresh(s);
    return DR_OK;
}

dr_status dr_store_open_tiers(const char *folder, const char *identity, uint64_t limit, uint64_t memory, dr_store **out,
                              dr_error *err)
{
    *out = NULL;
    if ((!folder && !memory) || (folder && !*folder))
        return dr__fail(err, DR_ERR_ARG, "cache: needs a folder, or \"auto\"");
    if (!identity)
        return dr__fail(err, DR_ERR_ARG, "cache: needs an identity, got NULL");
    dr_store *s = dr__alloc_zero(1, sizeof *s);
    if (!s)
        return dr__fail(err, DR_ERR_NOMEM, "cache: out of memory");
    s->generation = dr__fork_generation();
    s->own = s->folder_fd = -1;
    s->most_open = MOST_OPEN;
    dr__codec_manager_init(&s->codecs);
    dr__codec_manager_init(&s->memory_codecs);
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->write_lock, NULL);
    s->identity = hash_of(identity, strlen(identity), 0);
    dr_status status = folder ? open_disk(s, folder, identity, limit, err) : DR_OK;
    if (status == DR_OK && memory)
        status = dr__memory_open(&s->identity, memory, &s->memory, err);
    if (status == DR_OK)
        *out = s;
    else
        dr_store_close(&s);
    return status;
}

dr_status dr_store_open(const char *folder, const char *identity, uint64_t limit, dr_store **out, dr_error *err)
{
    return dr_store_open_tiers(folder ? folder : "", identity, limit, 0, out, err);
}

void dr_store_close(dr_store **store)
{
    dr_store *s = *store;
    *store = NULL;
    if (!s)
        return;
    dr__memory_close(&s->memory);
    dr__store_close_files(s);
    dr__key_table_free(&s->table);
    if (s->folder_fd >= 0)
        close(s->folder_fd);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->write_lock);
    dr__free(s);
}

/* Of stores that do not adapt. */
static int default_codec(void)
{
    return dr__byte_codec_find(DR__BYTES_LZ4) ? DR__BYTES_LZ4 : DR__BYTES_NONE;
}

void dr_store_adapt(dr_store *s, bool adaptive)
{
    if (!dr__store_is_ours(s))
        return;
    pthread_mutex_lock(&s->lock);
    dr__codec_manager_force(&s->codecs, adaptive ? DR__CODEC_AUTO : default_codec());
    dr__codec_manager_force(&s->memory_codecs, adaptive ? DR__CODEC_AUTO : default_codec());
    pthread_mutex_unlock(&s->lock);
}

bool dr__store_force_codec(dr_store *s, int wire_id)
{
    if (!dr__store_is_ours(s))
        return false;
    pthread_mutex_lock(&s->lock);
    const bool good =
        dr__codec_manager_force(&s->codecs, wire_id) && dr__codec_manager_force(&s->memory_codecs, wire_id);
    pthread_mutex_unlock(&s->lock);
    return good;
}

void dr__store_tell(dr_store *s, const dr__store_facts *facts)
{
    if (!dr__store_is_ours(s))
        return;
    pthread_mutex_lock(&s->lock);
    s->facts = *facts;
    pthread_mutex_unlock(&s->lock);
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

void dr__store_use_tiers(dr_store *s, bool disk, bool memory)
{
    atomic_store(&s->disk_off, !disk);
    atomic_store(&s->memory_off, !memory);
}

static bool disk_is_on(dr_store *s)
{
    return s->folder_fd >= 0 && !atomic_load(&s->disk_off);
}

/* lock: */
static bool look_up(dr_store *s, const dr_store_key *key, dr__key_location *location)
{
    bool found = disk_is_on(s) && dr__key_table_find(&s->table, key, location);
    if (!found && disk_is_on(s) && dr__now_ns() >= s->refresh_at_ns) {
        dr__store_refresh(s);
        found = dr__key_table_find(&s->table, key, location);
    }
    return found;
}

/* GONE is forgotten, so that the sample is made and kept again; what is only OUT_OF_REACH may be had another time. */
typedef enum outcome { GOOD, GONE, OUT_OF_REACH } outcome;

/* lock: */
static dr__data_file *use(dr_store *s, uint32_t number, outcome *result)
{
    dr__data_file *file = number < s->n_files ? dr__store_use(s, number) : NULL;
    bool short_of = !file && (errno == EMFILE || errno == ENFILE || errno == ENOMEM);
    *result = file ? GOOD : short_of ? OUT_OF_REACH : GONE;
    return file;
}

/* lock: */
static void note(dr_store *s, outcome result, const dr_store_key *key, dr__key_location location)
{
    s->stats.misses += result != GOOD;
    s->stats.damaged += result == GONE;
    if (result == GONE)
        dr__key_table_drop(&s->table, key, location);
}

static bool is_record_of(const dr__data_file *file, uint64_t offset, const dr_store_key *key, dr_stored *out)
{
    uint64_t next;
    return dr__data_read_head(file, offset, out, &next) && out->key.low == key->low && out->key.high == key->high;
}

bool dr_store_find(dr_store *s, const dr_store_key *key, dr_stored *out)
{
    dr__key_location location = { 0 };
    outcome result = OUT_OF_REACH;
    if (!dr__store_is_ours(s))
        return false;
    if (dr__store_memory_is_on(s) && dr__store_memory_find(s, key, out))
        return true;
    pthread_mutex_lock(&s->lock);
    bool found = look_up(s, key, &location);
    dr__data_file *file = found ? use(s, location.file, &result) : NULL;
    pthread_mutex_unlock(&s->lock);
    if (file && !is_record_of(file, location.offset, key, out))
        result = GONE;
    pthread_mutex_lock(&s->lock);
    if (file)
        dr__store_release(s, file);
    note(s, result, key, location);
    pthread_mutex_unlock(&s->lock);
    out->file = location.file;
    return result == GOOD;
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

/* What a read took. */
typedef struct read_time {
    bool timed;                        /* in: read_ns is wanted */
    unsigned threads;                  /* in: that read at this moment */
    uint64_t read_ns;                  /* reading, without the time in which the thread had no CPU */
    uint64_t unpack_ns, unpack_cpu_ns; /* checking and decompressing */
    double slowdown;                   /* time for each CPU time; 0: not known */
} read_time;

static outcome read_stored(int fd, const dr_stored *f, void *memory, read_time *took)
{
    const bool raw = f->codec == DR__BYTES_NONE;
    void *packed = raw ? memory : dr__alloc(f->payload_bytes);
    if (!packed)
        return OUT_OF_REACH;
    const uint64_t start = took->timed ? dr__busy_ns() : 0;
    bool good = read_payload(fd, f, packed);
    took->read_ns = took->timed ? dr__busy_since(start) : 0;
    const uint64_t wall = dr__now_ns(), cpu = dr__thread_cpu_ns();
    good = good && is_whole(f, packed);
    if (!raw) {
        const dr_byte_codec *codec = dr__byte_codec_find(f->codec);
        good = good && codec && codec->decode(packed, f->payload_bytes, memory, f->bytes);
        dr__free(packed);
    }
    took->unpack_ns = dr__now_ns() - wall;
    took->unpack_cpu_ns = dr__thread_cpu_ns() - cpu;
    took->slowdown = took->timed ? dr__thread_slowdown() : 0;
    return good ? GOOD : GONE;
}

/* lock: was it among the last that this process wrote? */
static bool is_fresh(const dr_store *s, const dr_stored *f)
{
    return s->own >= 0 && f->file == (uint32_t)s->own && f->record_at + FRESH > s->stats.written_bytes;
}

/* lock: what a read says of codec and disk. */
static void note_times(dr_store *s, const dr_stored *f, const read_time *took)
{
    const int which = dr__codec_index(&s->codecs, f->codec);
    const uint64_t stretched = (uint64_t)((double)took->unpack_cpu_ns * took->slowdown);
    if (which >= 0)
        dr__codec_note_decoded(&s->codecs, dr__data_class_of(f->fields, f->n_fields), which, f->bytes,
                               took->unpack_cpu_ns, stretched);
    if (took->timed && !is_fresh(s, f))
        dr__codec_note_read(&s->codecs, f->payload_bytes, took->read_ns / took->threads);
}

static bool read_disk(dr_store *s, const dr_stored *f, void *memory)
{
    outcome result;
    const uint64_t start = dr__now_ns();
    read_time took = { 0 };
    pthread_mutex_lock(&s->lock);
    dr__data_file *file = use(s, f->file, &result);
    took.timed = s->stats.hits % TIME_EVERY == 0;
    took.threads = ++s->reading;
    pthread_mutex_unlock(&s->lock);
    if (file)
        result = read_stored(file->fd, f, memory, &took);
    pthread_mutex_lock(&s->lock);
    s->reading--;
    if (file)
        dr__store_release(s, file);
    note(s, result, &f->key, (dr__key_location){ f->file, f->record_at });
    s->stats.hits += result == GOOD;
    s->stats.unpack_ns += took.unpack_ns;
    s->stats.read_ns += dr__now_ns() - start;
    s->stats.read_bytes += result == GOOD ? f->payload_bytes : 0;
    if (result == GOOD)
        note_times(s, f, &took);
    pthread_mutex_unlock(&s->lock);
    return result == GOOD;
}

bool dr__store_read(dr_store *s, const dr_stored *f, void *memory, const dr__use *use)
{
    if (!dr__store_is_ours(s))
        return false;
    if (f->in_memory)
        return dr__store_memory_read(s, f, memory, use);
    if (!read_disk(s, f, memory))
        return false;
    if (dr__store_memory_is_on(s))
        dr__store_memory_put(s, f, memory, use);
    return true;
}

bool dr_store_read(dr_store *s, const dr_stored *f, void *memory)
{
    return dr__store_read(s, f, memory, NULL);
}

double dr__store_fill(const dr_store *s)
{
    dr__memory_stats memory = { 0 };
    if (s->folder_fd < 0 && s->memory)
        dr__memory_get_stats(s->memory, &memory);
    const double limit = (double)(memory.limit ? memory.limit : DR_MAX(s->limit, 1));
    return DR_MIN((double)(memory.limit ? memory.bytes : atomic_load(&s->taken)) / limit, 1);
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
    if (s->chosen.n)
        dr__codec_explain(&s->codecs, &s->chosen, out->codec, sizeof out->codec);
    else
        snprintf(out->codec, sizeof out->codec, "not chosen yet");
    if (s->memory && s->memory_chosen.n)
        dr__codec_explain(&s->memory_codecs, &s->memory_chosen, out->memory_codec, sizeof out->memory_codec);
    else if (s->memory)
        snprintf(out->memory_codec, sizeof out->memory_codec, "not chosen yet");
    pthread_mutex_unlock(&s->lock);
    out->disk_bytes = disk;
    out->limit_bytes = limit;
    if (s->memory) {
        dr__memory_stats memory;
        dr__memory_get_stats(s->memory, &memory);
        out->memory_records = memory.records;
        out->memory_bytes = memory.bytes;
        out->memory_limit_bytes = memory.limit;
        out->memory_evicted = memory.evicted;
    }
}
