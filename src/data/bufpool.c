/* bufpool.c: a list of idle mappings under a lock, with a reference count. */
#include "data/bufpool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/thread.h"

enum { HUGE_PAGE = 2 << 20, PAGE = 4096 };

struct dr__bufpool {
    atomic_int refs; /* the owner's and one for each buffer in use */
    atomic_size_t bytes;
    pthread_mutex_t lock;
    dr__buf *idle; /* lock */
    int n_idle;    /* lock */
    int keep;      /* lock; -1: closed */
};

dr__bufpool *dr__bufpool_new(int keep)
{
    dr__bufpool *pool = dr__alloc_zero(1, sizeof *pool);
    if (!pool)
        return NULL;
    atomic_init(&pool->refs, 1);
    pthread_mutex_init(&pool->lock, NULL);
    pool->keep = keep;
    return pool;
}

static void pool_unref(dr__bufpool *pool)
{
    if (atomic_fetch_sub(&pool->refs, 1) != 1)
        return;
    pthread_mutex_destroy(&pool->lock);
    dr__free(pool);
}

static void unmap(dr__buf *buf)
{
    munmap(buf->data, buf->mapped);
    dr__free(buf);
}

/* Unmaps idle buffers until at most `keep` are left. */
static void shrink(dr__bufpool *pool, int keep)
{
    for (;;) {
        pthread_mutex_lock(&pool->lock);
        dr__buf *buf = pool->n_idle > DR_MAX(keep, 0) ? pool->idle : NULL;
        if (buf) {
            pool->idle = buf->next;
            pool->n_idle--;
        }
        pthread_mutex_unlock(&pool->lock);
        if (!buf)
            return;
        atomic_fetch_sub(&pool->bytes, buf->mapped);
        unmap(buf);
    }
}

void dr__bufpool_keep(dr__bufpool *pool, int keep)
{
    pthread_mutex_lock(&pool->lock);
    pool->keep = keep;
    pthread_mutex_unlock(&pool->lock);
    shrink(pool, keep);
}

void dr__bufpool_close(dr__bufpool **pool)
{
    if (!pool || !*pool)
        return;
    dr__bufpool_keep(*pool, -1);
    pool_unref(*pool);
    *pool = NULL;
}

size_t dr__bufpool_bytes(const dr__bufpool *pool)
{
    return atomic_load(&pool->bytes);
}

/* lock: the link to an idle buffer that fits `size`, or the end of the list.  A buffer of more than twice the size does
 * not fit: a small array would hold the memory of a large one. */
static dr__buf **find_idle(dr__bufpool *pool, size_t size)
{
    dr__buf **at = &pool->idle;
    while (*at && !((*at)->mapped >= size && (*at)->mapped / 2 <= DR_MAX(size, PAGE)))
        at = &(*at)->next;
    return at;
}

bool dr__bufpool_has_idle(dr__bufpool *pool, size_t size)
{
    pthread_mutex_lock(&pool->lock);
    bool has = *find_idle(pool, size);
    pthread_mutex_unlock(&pool->lock);
    return has;
}

static dr__buf *take_idle(dr__bufpool *pool, size_t size)
{
    pthread_mutex_lock(&pool->lock);
    dr__buf **at = find_idle(pool, size);
    dr__buf *buf = *at;
    if (buf) {
        *at = buf->next;
        pool->n_idle--;
    }
    pthread_mutex_unlock(&pool->lock);
    return buf;
}

static dr__buf *map_new(size_t size)
{
    size_t unit = size >= 8 * (size_t)HUGE_PAGE ? HUGE_PAGE : PAGE;
    if (size > SIZE_MAX - unit)
        return NULL;
    dr__buf *buf = dr__alloc_zero(1, sizeof *buf);
    if (!buf)
        return NULL;
    buf->mapped = (DR_MAX(size, 1) + unit - 1) / unit * unit;
    buf->data = mmap(NULL, buf->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buf->data == MAP_FAILED) {
        dr__free(buf);
        return NULL;
    }
    if (unit == HUGE_PAGE) { /* fewer page faults.  The last page is not huge, since it would be partly empty */
        size_t full = size / HUGE_PAGE * HUGE_PAGE;
        madvise(buf->data, full, MADV_HUGEPAGE);
        madvise(buf->data + full, buf->mapped - full, MADV_NOHUGEPAGE);
    }
    return buf;
}

dr__buf *dr__buf_new(dr__bufpool *pool, size_t size)
{
    dr__buf *buf = take_idle(pool, size);
    if (!buf && (buf = map_new(size)))
        atomic_fetch_add(&pool->bytes, buf->mapped);
    if (!buf)
        return NULL;
    buf->size = size;
    buf->next = NULL;
    buf->pool = pool;
    buf->generation = dr__fork_generation();
    atomic_fetch_add(&pool->refs, 1);
    return buf;
}

void dr__buf_free(dr__buf **at)
{
    if (!at || !*at)
        return;
    dr__buf *buf = *at;
    *at = NULL;
    if (buf->generation != dr__fork_generation()) {
        unmap(buf); /* the pool belongs to the parent */
        return;
    }
    dr__bufpool *pool = buf->pool;
    buf->pool = NULL;
    pthread_mutex_lock(&pool->lock);
    bool kept = pool->n_idle < pool->keep;
    if (kept) {
        buf->next = pool->idle;
        pool->idle = buf;
        pool->n_idle++;
    }
    pthread_mutex_unlock(&pool->lock);
    if (!kept) {
        atomic_fetch_sub(&pool->bytes, buf->mapped);
        unmap(buf);
    }
    pool_unref(pool);
}
