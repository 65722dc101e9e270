/* bufpool.h: large buffers that stay warm.
 *
 * A fresh page costs several times what writing to a warm one does, so the memory of a batch goes back to its pool
 * when the last holder lets go, from any thread, after the pool's owner is gone, and in a forked child (where it is
 * simply unmapped: the pool's lock may be held by a thread that does not exist there).
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
    size_t size;       /* asked for */
    size_t mapped;     /* really there */
    dr__bufpool *pool; /* counted */
    unsigned generation;
    struct dr__buf *next;
} dr__buf;

/* keep: how many idle buffers stay mapped.  NULL: out of memory. */
dr__bufpool *dr__bufpool_new(int keep);

/* Lets go of the pool: idle buffers are unmapped now, others when they are freed. */
void dr__bufpool_close(dr__bufpool **pool);

void dr__bufpool_keep(dr__bufpool *pool, int keep);

/* Bytes of all buffers, in use and idle; and whether an idle one serves for `size`. */
size_t dr__bufpool_bytes(const dr__bufpool *pool);
bool dr__bufpool_has_idle(dr__bufpool *pool, size_t size);

/* A buffer of at least `size` bytes, idle or new.  NULL: out of memory. */
dr__buf *dr__buf_new(dr__bufpool *pool, size_t size);
void dr__buf_free(dr__buf **buf);

#endif
