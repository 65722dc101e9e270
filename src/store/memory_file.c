/* memory_file.c: the file of a memory tier.
 *
 *   head  entries  rows  blocks (what follows each)  heap  data: n_blocks times block_bytes
 *
 * All but the data is mapped, and allocated when the file is made: a page of it that the system has no memory for would
 * end the process.  Data is read and written by system calls, which fail instead.
 *
 * Every user holds a shared lock (flock) on the file, which the system takes back when it dies.  Who gets the exclusive
 * one is alone: it may delete the file, or is the one to make it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "store/memory_parts.h"

static const char magic[8] = { 'D', 'R', 'M', 'E', 'M', '\r', '\n', 0x1A };

#define SUFFIX ".memory"

enum {
    VERSION = 1,
    PAGE = 4096,
    LEAST_BLOCK = 4096, /* a record's head lies in its first block */
    MOST_BLOCK = 16384,
    BLOCKS = 1 << 16, /* larger blocks are for tiers that would have more of the least ones */
    TRIES = 20,       /* at the lock */
    OPEN_TRIES = 200, /* at a file that another process is making, or that comes and goes; 5 ms apart */
};

/* --- layout --- */

/* Bytes of the tables of n blocks, and where they begin. */
static uint64_t layout(uint32_t n, uint64_t at[4], uint32_t *n_rows)
{
    uint32_t rows = 64;
    while (rows < n)
        rows *= 2;
    *n_rows = rows;
    at[0] = (sizeof(dr__memory_head) + 63) & ~UINT64_C(63);
    at[1] = at[0] + (uint64_t)n * sizeof(dr__memory_entry);
    at[2] = at[1] + (uint64_t)rows * sizeof(_Atomic uint32_t);
    at[3] = at[2] + (uint64_t)n * sizeof(_Atomic uint32_t);
    return (at[3] + (uint64_t)n * sizeof(uint32_t) + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

/* The most blocks that fit with their tables. */
static uint32_t count_blocks(uint64_t limit, uint32_t *block_bytes)
{
    uint64_t at[4], bytes = LEAST_BLOCK;
    uint32_t rows;
    while (bytes < MOST_BLOCK && limit / bytes > BLOCKS)
        bytes *= 2;
    uint64_t least = 0, most = limit / bytes;
    most = most < DR__MEMORY_NONE / 4 ? most : DR__MEMORY_NONE / 4;
    while (least < most) {
        const uint64_t middle = (least + most + 1) / 2;
        if (layout((uint32_t)middle, at, &rows) + middle * bytes <= limit)
            least = middle;
        else
            most = middle - 1;
    }
    *block_bytes = (uint32_t)bytes;
    return (uint32_t)least;
}

static void find_parts(dr__memory_tier *t)
{
    uint64_t at[4];
    uint32_t rows;
    layout(t->head->n_blocks, at, &rows);
    uint8_t *base = (uint8_t *)t->head;
    t->entries = (dr__memory_entry *)(void *)(base + at[0]);
    t->rows = (_Atomic uint32_t *)(void *)(base + at[1]);
    t->blocks = (_Atomic uint32_t *)(void *)(base + at[2]);
    t->heap = (uint32_t *)(void *)(base + at[3]);
}

/* --- the lock --- */

void dr__memory_wipe(dr__memory_tier *t)
{
    dr__memory_head *h = t->head;
    for (uint32_t i = 0; i < h->n_blocks; i++) {
        const uint64_t generation = atomic_load(&t->entries[i].stamp) / DR__MEMORY_STATES;
        atomic_store(&t->entries[i].stamp, (generation + 1) * DR__MEMORY_STATES + DR__MEMORY_FREE);
    }
    for (uint32_t i = 0; i < h->n_rows; i++)
        atomic_store(&t->rows[i], DR__MEMORY_NONE);
    h->free_entry = h->free_block = DR__MEMORY_NONE;
    h->n_used_entries = h->n_used_blocks = h->n_heap = h->full = 0;
    h->n_free = h->n_blocks;
    atomic_store(&h->records, 0);
    atomic_store(&h->blocks, 0);
    atomic_store(&h->latest, 0);
}

bool dr__memory_lock(dr__memory_tier *t)
{
    for (int i = 0; i < TRIES; i++) {
        const int status = pthread_mutex_trylock(&t->head->lock);
        if (status == EOWNERDEAD) { /* it may have been in the middle of anything */
            dr__memory_wipe(t);
            pthread_mutex_consistent(&t->head->lock);
        }
        if (!status || status == EOWNERDEAD)
            return true;
        if (i > TRIES / 2)
            sched_yield();
    }
    return false;
}

void dr__memory_unlock(dr__memory_tier *t)
{
    pthread_mutex_unlock(&t->head->lock);
}

/* --- making and opening --- */

static bool map(dr__memory_tier *t, size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, t->fd, 0);
    t->head = p == MAP_FAILED ? NULL : p;
    t->mapped = bytes;
    return t->head != NULL;
}

/* Alone with an empty file: gives it its size and its tables. */
static bool make(dr__memory_tier *t, const dr_store_key *identity, uint64_t limit)
{
    uint32_t block_bytes, n_rows;
    uint64_t at[4];
    const uint32_t n = count_blocks(limit, &block_bytes);
    const uint64_t data_at = layout(n, at, &n_rows);
    if (ftruncate(t->fd, (off_t)(data_at + (uint64_t)n * block_bytes)))
        return false;
    const int code = posix_fallocate(t->fd, 0, (off_t)data_at);
    if (code) {
        errno = code;
        return false;
    }
    if (!map(t, data_at))
        return false;
    dr__memory_head *h = t->head;
    *h = (dr__memory_head){ .version = VERSION, .block_bytes = block_bytes, .n_blocks = n, .n_rows = n_rows };
    h->limit = limit;
    h->data_at = data_at;
    h->identity[0] = identity->low;
    h->identity[1] = identity->high;
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
    const bool good = !pthread_mutex_init(&h->lock, &a);
    pthread_mutexattr_destroy(&a);
    find_parts(t);
    dr__memory_wipe(t);
    memcpy(h->magic, magic, sizeof magic);
    return good;
}

static void unmap(dr__memory_tier *t)
{
    if (t->head)
        munmap(t->head, t->mapped);
    t->head = NULL;
}

/* Others use it: maps it; false: it is none of ours. */
static bool join(dr__memory_tier *t, const dr_store_key *identity)
{
    struct stat s;
    uint64_t at[4];
    uint32_t rows;
    if (fstat(t->fd, &s) || s.st_size < (off_t)sizeof(dr__memory_head) || !map(t, sizeof(dr__memory_head)))
        return false;
    const dr__memory_head h = *t->head;
    unmap(t);
    if (memcmp(h.magic, magic, sizeof magic) || h.version != VERSION || h.identity[0] != identity->low ||
        h.identity[1] != identity->high || h.n_blocks >= DR__MEMORY_NONE || h.block_bytes < LEAST_BLOCK ||
        h.data_at != layout(h.n_blocks, at, &rows) || h.n_rows != rows ||
        (uint64_t)s.st_size != h.data_at + (uint64_t)h.n_blocks * h.block_bytes || !map(t, (size_t)h.data_at))
        return false;
    find_parts(t);
    return true;
}

static bool is_at_path(const dr__memory_tier *t)
{
    struct stat file, place;
    return !fstat(t->fd, &file) && !stat(t->path, &place) && file.st_dev == place.st_dev && file.st_ino == place.st_ino;
}

static void give_up(dr__memory_tier *t)
{
    unmap(t);
    if (t->fd >= 0)
        close(t->fd);
    t->fd = -1;
}

/* Alone with the file at the path: makes it, where it is new.  What belonged to users that have all been killed is
 * deleted, not made anew: between the two locks of its maker it looks like such a file, and its maker has it mapped. */
static bool make_alone(dr__memory_tier *t, const dr_store_key *identity, uint64_t limit, bool *again)
{
    struct stat s;
    *again = !is_at_path(t) || fstat(t->fd, &s) || s.st_size > 0;
    if (*again || !make(t, identity, limit)) {
        const int code = errno;
        if (is_at_path(t))
            unlink(t->path);
        errno = code;
        return false;
    }
    *again = flock(t->fd, LOCK_SH | LOCK_NB) != 0;
    return !*again;
}

/* One try; *again: another process was at the file just now. */
static bool open_once(dr__memory_tier *t, const dr_store_key *identity, uint64_t limit, bool *again)
{
    bool good;
    *again = false;
    t->fd = open(t->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (t->fd < 0)
        return false;
    if (!flock(t->fd, LOCK_EX | LOCK_NB)) {
        good = make_alone(t, identity, limit, again);
    } else {
        good = !flock(t->fd, LOCK_SH | LOCK_NB) && is_at_path(t) && join(t, identity);
        *again = !good;
    }
    if (good && !is_at_path(t)) {
        good = false;
        *again = true;
    }
    if (!good) {
        const int code = errno;
        give_up(t);
        errno = code;
    }
    return good;
}

static bool open_shared(dr__memory_tier *t, const dr_store_key *identity, uint64_t limit)
{
    const struct timespec pause = { .tv_nsec = 5000000 };
    bool again = true, good = false;
    for (int i = 0; i < OPEN_TRIES && again && !good; i++) {
        good = open_once(t, identity, limit, &again);
        if (!good && again)
            nanosleep(&pause, NULL);
    }
    return good;
}

/* The folder, which only this user may enter; "": there is none. */
static void find_folder(char *path, size_t size)
{
    struct stat s;
    const char *given = getenv("DRAPPS_SHM");
    const int n = snprintf(path, size, "%s/drapps-cache-%u", given && *given ? given : "/dev/shm", (unsigned)geteuid());
    mkdir(path, 0700);
    if (n < 0 || (size_t)n >= size || lstat(path, &s) || !S_ISDIR(s.st_mode) || s.st_uid != geteuid() ||
        s.st_mode & 077)
        path[0] = 0;
}

/* Deletes what killed users have left, but for one file. */
static void sweep(const char *folder, const char *keep)
{
    DIR *d = opendir(folder);
    if (!d)
        return;
    for (struct dirent *entry; (entry = readdir(d));) {
        const size_t n = strlen(entry->d_name);
        if (n <= strlen(SUFFIX) || strcmp(entry->d_name + n - strlen(SUFFIX), SUFFIX) || !strcmp(entry->d_name, keep))
            continue;
        const int fd = openat(dirfd(d), entry->d_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        if (fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB))
            unlinkat(dirfd(d), entry->d_name, 0);
        if (fd >= 0)
            close(fd);
    }
    closedir(d);
}

dr_status dr__memory_open(const dr_store_key *identity, uint64_t limit, dr__memory_tier **out, dr_error *err)
{
    char folder[96], name[64];
    *out = NULL;
    if (limit < DR__MEMORY_LEAST)
        return dr__fail(err, DR_ERR_ARG, "cache_memory must be 0 or at least %d bytes, got %" PRIu64, DR__MEMORY_LEAST,
                        limit);
    dr__memory_tier *t = dr__alloc_zero(1, sizeof *t);
    if (!t)
        return dr__fail(err, DR_ERR_NOMEM, "cache: out of memory");
    t->fd = -1;
    t->generation = dr__fork_generation();
    find_folder(folder, sizeof folder);
    snprintf(name, sizeof name, "%016" PRIx64 "%016" PRIx64 SUFFIX, identity->high, identity->low);
    if (folder[0]) {
        sweep(folder, name);
        snprintf(t->path, sizeof t->path, "%s/%s", folder, name);
    }
    bool good = t->path[0] && open_shared(t, identity, limit);
    if (!good) {
        t->path[0] = 0;
        t->fd = memfd_create("drapps-cache", MFD_CLOEXEC);
        good = t->fd >= 0 && make(t, identity, limit);
    }
    if (good) {
        *out = t;
        return DR_OK;
    }
    dr__fail_errno(err, DR_ERR_IO, "cache_memory: cannot make a file of %" PRIu64 " bytes in memory", limit);
    dr__memory_close(&t);
    return DR_ERR_IO;
}

void dr__memory_close(dr__memory_tier **tier)
{
    dr__memory_tier *t = *tier;
    *tier = NULL;
    if (!t)
        return;
    /* In the child of a fork the lock is the parent's, too. */
    if (t->path[0] && t->fd >= 0 && t->generation == dr__fork_generation() && !flock(t->fd, LOCK_EX | LOCK_NB) &&
        is_at_path(t))
        unlink(t->path);
    give_up(t);
    dr__free(t);
}
