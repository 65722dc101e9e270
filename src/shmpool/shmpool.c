/* shmpool.c: the memory of a shmpool: made, joined, let go; its blocks. */
#include "shmpool/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"

enum { MAX_WORKERS = 256, MAX_BATCHES = 1024, MAX_REORDER_WINDOW = 1024, PAGE = 4096 };
enum { LEAST_SPACE = 1 << 20, USUAL_SPACE = 1 << 30 };

/* Out of order, posts wait for a slow sample while their batches are taken: entries for these come on top. */
enum { REORDER_WINDOW = 32, SPARE = 32 };

void dr_shmpool_defaults(dr_shmpool_options *options)
{
    *options = (dr_shmpool_options){ .size = sizeof *options,
                                     .max_workers = 16,
                                     .max_batches = 64,
                                     .in_order = true,
                                     .lanes = true,
                                     .max_attempts = 3 };
}

/* --- layout --- */

static uint64_t round_up(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

/* Where the parts are; all but the space of the blocks is used from its beginning on, so it may be generous. */
static void lay_out(struct dr__board *b, uint64_t space)
{
    struct dr__arena *a = &b->arena;
    b->entries_at = round_up(sizeof *b, 64);
    b->workers_at = round_up(b->entries_at + b->n_entries * sizeof(struct dr__entry), 64);
    a->nodes_at = round_up(b->workers_at + b->max_workers * sizeof(struct dr__worker), PAGE);
    a->n_nodes = (uint32_t)DR_MAX(1024, DR_MIN(space / 256, 1 << 20));
    a->begin = round_up(a->nodes_at + a->n_nodes * sizeof(struct dr__node), PAGE);
    a->end = a->begin + round_up(space, PAGE);
    b->map_bytes = a->end;
}

static void point(dr_shmpool *c)
{
    c->board = (struct dr__board *)(void *)c->base;
    c->entries = (struct dr__entry *)(void *)(c->base + c->board->entries_at);
    c->workers = (struct dr__worker *)(void *)(c->base + c->board->workers_at);
}

/* --- making one --- */

static dr_status check_options(const dr_shmpool_options *o, dr_error *err)
{
    if (o->size != sizeof *o)
        return dr__fail(err, DR_ERR_ARG, "dr_shmpool_options.size must be %zu, got %zu: call dr_shmpool_defaults first",
                        sizeof *o, o->size);
    if (o->max_workers < 1 || o->max_workers > MAX_WORKERS)
        return dr__fail(err, DR_ERR_ARG, "shmpool: max_workers must be 1 to %d, got %d", MAX_WORKERS, o->max_workers);
    if (o->max_batches < 1 || o->max_batches > MAX_BATCHES)
        return dr__fail(err, DR_ERR_ARG, "shmpool: max_batches must be 1 to %d, got %d", MAX_BATCHES, o->max_batches);
    if (o->reorder_window < 0 || o->reorder_window > MAX_REORDER_WINDOW)
        return dr__fail(err, DR_ERR_ARG, "shmpool: reorder_window must be 0 to %d, got %d", MAX_REORDER_WINDOW,
                        o->reorder_window);
    if (o->max_attempts < 0 || o->max_attempts > 200)
        return dr__fail(err, DR_ERR_ARG, "shmpool: max_attempts must be 0 to 200, got %d", o->max_attempts);
    return DR_OK;
}

/* Space that is not touched costs nothing, as it is no part of a core dump.  What the container may use would have to
 * be read from files, which takes longer than all else here. */
static uint64_t wanted_space(const dr_shmpool_options *o)
{
    if (o->address_space)
        return DR_MAX(o->address_space, LEAST_SPACE);
    const long pages = sysconf(_SC_PHYS_PAGES); /* negative: unknown */
    return DR_MAX((uint64_t)DR_MAX(pages, 0) * (uint64_t)sysconf(_SC_PAGESIZE) * 2, USUAL_SPACE);
}

/* The kernel would make a page of each one that is not there yet, to write it down. */
static void leave_out_of_core_dumps(void *base, uint64_t bytes)
{
    madvise(base, bytes, MADV_DONTDUMP);
}

/* Maps as much as there is address space for: half of it, and half of that, until it fits. */
static dr_status map_new(dr_shmpool *c, struct dr__board *b, uint64_t space, dr_error *err)
{
    for (;; space /= 2) {
        lay_out(b, space);
        c->base = mmap(NULL, b->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, c->fd, 0);
        if (c->base != MAP_FAILED)
            break;
        if (errno != ENOMEM || space / 2 < LEAST_SPACE)
            return dr__fail_errno(err, DR_ERR_NOMEM, "shmpool: %llu bytes of address space",
                                  (unsigned long long)b->map_bytes);
    }
    leave_out_of_core_dumps(c->base, b->map_bytes);
    if (ftruncate(c->fd, (off_t)b->map_bytes) == 0)
        return DR_OK;
    munmap(c->base, b->map_bytes);
    return dr__fail_errno(err, DR_ERR_NOMEM, "shmpool: %llu bytes of shared memory", (unsigned long long)b->map_bytes);
}

static dr_status init_lock(pthread_mutex_t *lock, dr_error *err)
{
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    int error = pthread_mutex_init(lock, &attr);
    pthread_mutexattr_destroy(&attr);
    return error ? dr__fail(err, DR_ERR_UNSUPPORTED, "shmpool: a robust lock: error %d", error) : DR_OK;
}

static dr_status set_up(dr_shmpool *c, const dr_shmpool_options *o, dr_error *err)
{
    struct dr__board b = {
        .magic = DR__SHMPOOL_MAGIC,
        .n_entries = (uint32_t)(o->max_batches + (o->reorder_window ? o->reorder_window : REORDER_WINDOW) + SPARE),
        .reorder_window = o->reorder_window ? (uint32_t)o->reorder_window : REORDER_WINDOW,
        .max_workers = (uint32_t)o->max_workers,
        .max_batches = (uint32_t)o->max_batches,
        .max_attempts = o->max_attempts ? (uint32_t)o->max_attempts : 3,
        .in_order = o->in_order,
        .lanes = o->lanes,
        .arena.keep_free = o->keep_free,
    };
    DR_TRY(map_new(c, &b, wanted_space(o), err));
    memcpy(c->base, &b, sizeof b);
    point(c);
    dr__arena_init(c->base, &c->board->arena);
    dr_status status = init_lock(&c->board->lock, err);
    if (status != DR_OK)
        munmap(c->base, b.map_bytes);
    return status;
}

dr_status dr_shmpool_open(const dr_shmpool_options *options, dr_shmpool **out, dr_error *err)
{
    DR_TRY(check_options(options, err));
    dr_shmpool *c = dr__alloc_zero(1, sizeof *c);
    if (!c)
        return dr__fail(err, DR_ERR_NOMEM, "shmpool: out of memory");
    atomic_init(&c->refs, 1);
    c->fd = memfd_create("drapps-shmpool", MFD_CLOEXEC);
    dr_status status = c->fd < 0 ? dr__fail_errno(err, DR_ERR_IO, "shmpool: memfd_create") : set_up(c, options, err);
    if (status == DR_OK) {
        *out = c;
        return DR_OK;
    }
    if (c->fd >= 0)
        close(c->fd);
    dr__free(c);
    return status;
}

/* --- joining --- */

static dr_status map_existing(dr_shmpool *c, dr_error *err)
{
    struct dr__board b;
    struct stat info;
    if (fstat(c->fd, &info) < 0 || pread(c->fd, &b, sizeof b, 0) != (ssize_t)sizeof b)
        return dr__fail_errno(err, DR_ERR_IO, "shmpool: reading descriptor %d", c->fd);
    if (b.magic != DR__SHMPOOL_MAGIC || b.map_bytes != (uint64_t)info.st_size)
        return dr__fail(err, DR_ERR_FORMAT, "shmpool: descriptor %d is not the memory of a shmpool of this version",
                        c->fd);
    c->base = mmap(NULL, b.map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, c->fd, 0);
    if (c->base == MAP_FAILED)
        return dr__fail_errno(err, DR_ERR_NOMEM, "shmpool: %llu bytes of address space",
                              (unsigned long long)b.map_bytes);
    leave_out_of_core_dumps(c->base, b.map_bytes);
    point(c);
    return DR_OK;
}

dr_status dr_shmpool_join(int fd, dr_shmpool **out, dr_error *err)
{
    dr_shmpool *c = dr__alloc_zero(1, sizeof *c);
    if (!c)
        return dr__fail(err, DR_ERR_NOMEM, "shmpool: out of memory");
    atomic_init(&c->refs, 1);
    c->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    dr_status status = c->fd < 0 ? dr__fail_errno(err, DR_ERR_ARG, "shmpool: descriptor %d", fd) : map_existing(c, err);
    if (status == DR_OK) {
        *out = c;
        return DR_OK;
    }
    if (c->fd >= 0)
        close(c->fd);
    dr__free(c);
    return status;
}

int dr_shmpool_fd(const dr_shmpool *shmpool)
{
    return shmpool->fd;
}

void dr_shmpool_close_fd(dr_shmpool *shmpool)
{
    if (shmpool->fd >= 0)
        close(shmpool->fd);
    shmpool->fd = -1;
}

dr_shmpool *dr_shmpool_ref(dr_shmpool *shmpool)
{
    atomic_fetch_add(&shmpool->refs, 1);
    return shmpool;
}

void dr_shmpool_unref(dr_shmpool **shmpool)
{
    dr_shmpool *c = *shmpool;
    *shmpool = NULL;
    if (!c || atomic_fetch_sub(&c->refs, 1) != 1)
        return;
    munmap(c->base, c->board->map_bytes);
    dr_shmpool_close_fd(c);
    dr__free(c);
}

void dr_shmpool_close(dr_shmpool *shmpool)
{
    dr__shmpool_lock(
        shmpool); /* a worker that looks at the board now has not yet read the word that it will sleep on */
    atomic_store(&shmpool->board->closed, true);
    dr__shmpool_unlock_wake_all(shmpool);
}

/* --- blocks --- */

dr_status dr_shmpool_block_new(dr_shmpool *c, int worker, size_t bytes, dr_shmpool_block *out, dr_error *err)
{
    if (worker < -1 || worker >= (int)c->board->max_workers)
        return dr__fail(err, DR_ERR_ARG, "shmpool: worker must be -1 to %u, got %d", c->board->max_workers - 1, worker);
    struct dr__arena *a = &c->board->arena;
    dr__shmpool_lock(c);
    *out = dr__arena_new(c->base, a, bytes, worker < 0 ? DR__BY_OWNER : (uint16_t)worker, getpid());
    uint64_t used = a->used;
    dr__shmpool_unlock(c);
    if (*out)
        return DR_OK;
    return dr__fail(err, DR_ERR_NOMEM, "shmpool: no room for a block of %zu bytes: %llu of %llu bytes are in use",
                    bytes, (unsigned long long)used, (unsigned long long)(a->end - a->begin));
}

/* The fields of a node in use change for nobody but its holder: no lock is needed to read them. */
void *dr_shmpool_block_data(const dr_shmpool *c, dr_shmpool_block block)
{
    const struct dr__node *n = dr__arena_find(c->base, &c->board->arena, block);
    return n ? c->base + n->offset : NULL;
}

size_t dr_shmpool_block_bytes(const dr_shmpool *c, dr_shmpool_block block)
{
    const struct dr__node *n = dr__arena_find(c->base, &c->board->arena, block);
    return n ? n->bytes : 0;
}

/* Gives pages of free blocks back to the system while more are warm than should be. */
static void cool(dr_shmpool *c, int32_t pid)
{
    struct dr__arena *a = &c->board->arena;
    for (uint64_t block; (block = dr__arena_take_warm(c->base, a, pid)) != 0;) {
        dr__shmpool_unlock(c);
        dr__arena_cool(c->base, a, block);
        dr__shmpool_lock(c);
        dr__arena_free(c->base, a, block);
    }
}

void dr_shmpool_block_release(dr_shmpool *c, dr_shmpool_block block)
{
    struct dr__arena *a = &c->board->arena;
    int32_t pid = getpid();
    dr__shmpool_lock(c);
    const struct dr__node *n = dr__arena_find(c->base, a, block);
    if (n && n->pid == pid) {
        if (block == c->board->taken_slab)
            dr__slab_was_held(c->board);
        dr__arena_free(c->base, a, block);
        cool(c, pid);
    }
    dr__shmpool_unlock(c);
}
