/* memory_parts.h: the inside of a memory tier: its file, as mapped, and the order of eviction. */
#ifndef DR_STORE_MEMORY_PARTS_H
#define DR_STORE_MEMORY_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/memory_tier.h"

#define DR__MEMORY_NONE UINT32_MAX

enum { DR__MEMORY_FREE, DR__MEMORY_WRITING, DR__MEMORY_READY, DR__MEMORY_STATES };

/* stamp: DR__MEMORY_STATES * generation + state.  What readers look at is atomic; the rest is the lock's. */
typedef struct dr__memory_entry {
    atomic_uint_fast64_t stamp, low, high; /* key */
    _Atomic uint32_t first, n_blocks;
    _Atomic uint32_t next; /* of its row, or of the free ones */
    uint32_t heap_at;
    uint64_t next_use, since_ns;
} dr__memory_entry;

/* The beginning of the file.  Sizes never change; the lock's: what is not atomic. */
typedef struct dr__memory_head {
    char magic[8];
    uint32_t version, block_bytes, n_blocks, n_rows; /* n_rows: a power of two; as many entries as blocks */
    uint64_t identity[2];
    uint64_t limit, data_at;
    pthread_mutex_t lock; /* robust, shared by processes */
    uint32_t free_entry, free_block;
    uint32_t n_used_entries; /* entries and blocks from here on were never used */
    uint32_t n_used_blocks;
    uint32_t n_free; /* blocks that can be had */
    uint32_t n_heap;
    uint32_t full; /* the system has no more memory: blocks that were never used stay so */
    atomic_uint_fast64_t tick, evicted, records, blocks;
    atomic_uint_fast64_t latest; /* the next use on top of the heap; 0: it is empty */
} dr__memory_head;

struct dr__memory_tier {
    dr__memory_head *head; /* mapped, with the tables behind it */
    dr__memory_entry *entries;
    _Atomic uint32_t *rows;   /* first entry of each */
    _Atomic uint32_t *blocks; /* what comes after each block */
    uint32_t *heap;           /* entries */
    size_t mapped;
    int fd;
    unsigned generation; /* of the process that opened it */
    char path[160];      /* "": of this process alone */
};

/* --- memory_file.c --- */

/* The lock, unless somebody has it; after the death of its owner the tier is empty. */
bool dr__memory_lock(dr__memory_tier *tier);
void dr__memory_unlock(dr__memory_tier *tier);

/* lock, or alone: forgets everything. */
void dr__memory_wipe(dr__memory_tier *tier);

/* --- memory_order.c: a heap with the latest next use on top; all under lock --- */

void dr__memory_order_add(dr__memory_tier *tier, uint32_t entry, uint64_t next_use);
void dr__memory_order_change(dr__memory_tier *tier, uint32_t entry, uint64_t next_use);
void dr__memory_order_remove(dr__memory_tier *tier, uint32_t entry);
uint32_t dr__memory_order_top(const dr__memory_tier *tier); /* DR__MEMORY_NONE: it is empty */

#endif
