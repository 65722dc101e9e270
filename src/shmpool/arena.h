/* arena.h: blocks of any size in shared memory.
 *
 * The space is cut into extents, each with a node in a table beside it, so that a stray write into a block cannot harm
 * the bookkeeping.  Told (see shared.h): the chain of nodes in the order of addresses (offset, next) and what each one
 * is (state, generation, holder).  Derived: lists of free extents by size, the list of those with warm pages, counts.
 * An extent is split by one store (its node.next becomes the new node) and joined with the one after it by one store.
 *
 * Free extents keep their pages until more than `keep` bytes of them do; then the longest unused go back to the system.
 */
#ifndef DR_SHMPOOL_ARENA_H
#define DR_SHMPOOL_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DR__BINS = 192,        /* four for each doubling of the size */
    DR__BY_OWNER = 0xffff, /* holders that are no workers: the process that trains, */
    DR__BY_BOARD = 0xfffe, /* a batch, */
    DR__BY_COOL = 0xfffd,  /* the worker that gives its pages back: it counts as free */
    DR__NODE_FREE = 0,
    DR__NODE_USED = 1,
};

struct dr__node {
    uint64_t offset; /* from the start of the memory */
    uint64_t bytes;  /* asked for */
    uint32_t next;   /* in the order of addresses; the last one has size 0 and is never free */
    uint32_t generation;
    int32_t pid; /* of the holder; 0: the board */
    uint16_t holder;
    uint8_t state;
    /* derived */
    uint8_t linked;
    uint32_t prev;
    uint32_t bin_prev, bin_next;
    uint32_t warm_prev, warm_next; /* older, newer */
    uint64_t warm;                 /* bytes of a free extent that may have pages, */
    uint64_t warm_head;            /* how many of them are at its beginning, without a gap, as far as that is known, */
    uint64_t warm_end; /* and the offset where the last of them ends: estimates, good enough to be kept after a death */
};

struct dr__arena {
    uint64_t nodes_at; /* from the start of the memory */
    uint64_t begin, end;
    uint32_t n_nodes; /* room in the table */
    uint32_t high;    /* nodes below it were used at some time; told */
    uint32_t spare;   /* list of nodes below `high` that are not in use, by next */
    uint32_t bins[DR__BINS];
    uint64_t bin_bits[DR__BINS / 64];
    uint32_t oldest, newest;  /* of the free extents with warm pages */
    uint64_t used, held;      /* bytes in use; of them not the main process's */
    uint64_t peak, recent[2]; /* the most of `used`: ever, and in this and the last row of batches */
    uint64_t warm;            /* bytes of free extents that may have pages */
    uint64_t keep_free;       /* given; 0: what the last batches needed at once */
    uint64_t largest;         /* bytes of the largest batch */
};

/* The first nodes of a new arena.  base: where the memory begins in this process, in all calls. */
void dr__arena_init(char *base, struct dr__arena *a);

/* A block of that size, 64-byte aligned; 0: no room. */
uint64_t dr__arena_new(char *base, struct dr__arena *a, size_t bytes, uint16_t holder, int32_t pid);

/* Whether a block of that size would be made of warm pages, but for a quarter of them at most. */
bool dr__arena_has_warm(char *base, const struct dr__arena *a, size_t bytes);

/* The node of a block that is in use; NULL: it is none (any more). */
struct dr__node *dr__arena_find(char *base, const struct dr__arena *a, uint64_t block);

/* Frees a block; nothing when it is none. */
void dr__arena_free(char *base, struct dr__arena *a, uint64_t block);

/* Another holder. */
void dr__arena_give(char *base, struct dr__arena *a, uint64_t block, uint16_t holder, int32_t pid);

/* Frees every block of a worker, or of a process. */
void dr__arena_free_of(char *base, struct dr__arena *a, uint16_t holder, int32_t pid);

/* Too many pages are warm: takes an extent out (or the part of it up to its last warm page), whose pages are to be
 * given back by dr__arena_cool without the lock; dr__arena_free puts it back.  0: there is nothing to do. */
uint64_t dr__arena_take_warm(char *base, struct dr__arena *a, int32_t pid);
void dr__arena_cool(char *base, const struct dr__arena *a, uint64_t block);

/* A row of batches is over: what was needed before it does not count any more for what is kept warm. */
void dr__arena_next_row(struct dr__arena *a);

/* Computes the derived fields. */
void dr__arena_rebuild(char *base, struct dr__arena *a);

#endif
