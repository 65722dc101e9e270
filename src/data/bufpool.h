/* bufpool.h: reuses large buffers.
 *
 * Touching a fresh page costs several times a write to a mapped one, so the memory of a batch returns to its pool when
 * the last holder releases it.  A buffer may be freed by any thread, after its pool is closed, and in a forked child,
 * where it is only unmapped: a thread that does not exist in the child may hold the pool's lock.
 */
#ifndef DR_DATA_BUFPOOL_H
#define DR_DATA_BUFPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct dr__bufpool dr__bufpool;

/* A buffer, owned; 64-byte aligned, uninitialised. */
typedef struct dr__buf {
    uint8_t *data;
    size_t size;       /* requested bytes */
    size_t mapped;     /* mapped bytes */
    dr__bufpool *pool; /* a reference */
    unsigned generation;
    struct dr__buf *next;
} dr__buf;

/* Makes a pool.  keep: how many idle buffers stay mapped.  NULL: out of memory. */
dr__bufpool *dr__bufpool_new(int keep);

/* Closes a pool: idle buffers are unmapped now, others when they are freed. */
void dr__bufpool_close(dr__bufpool **pool);

/* Changes how many idle buffers stay mapped. */
void dr__bufpool_keep(dr__bufpool *pool, int keep);

/* The bytes of all buffers, in use and idle. */
size_t dr__bufpool_bytes(const dr__bufpool *pool);

/* Whether dr__buf_new would find an idle buffer for `size` bytes. */
bool dr__bufpool_has_idle(dr__bufpool *pool, size_t size);

/* Takes a buffer of at least `size` bytes, idle or new.  NULL: out of memory. */
dr__buf *dr__buf_new(dr__bufpool *pool, size_t size);
void dr__buf_free(dr__buf **buf);

#endif
