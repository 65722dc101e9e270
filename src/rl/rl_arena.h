/* rl_arena.h: many arrays in one block.
 *
 * A layout function takes its arrays from an arena.  It runs twice: without a block it counts, and with one it hands out.
 * The block is allocated between the two, zeroed, so nothing is allocated later and one free ends it.
 */
#ifndef DR_RL_RL_ARENA_H
#define DR_RL_RL_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"

typedef struct dr__rl_arena {
    char *block; /* NULL while counting */
    size_t n;    /* bytes taken */
} dr__rl_arena;

/* Room for `count` elements of `size` bytes, aligned to 64; NULL while counting. */
static inline void *dr__rl_take(dr__rl_arena *arena, size_t count, size_t size)
{
    void *p = arena->block ? arena->block + arena->n : NULL;
    arena->n += (count * size + 63) & ~(size_t)63;
    return p;
}

static inline float *dr__rl_take_floats(dr__rl_arena *arena, size_t count)
{
    return dr__rl_take(arena, count, sizeof(float));
}

/* Runs a layout function twice and allocates the block between; false when memory is short. */
static inline int dr__rl_arena_fill(dr__rl_arena *arena, void (*lay_out)(void *owner, dr__rl_arena *arena), void *owner)
{
    *arena = (dr__rl_arena){ 0 };
    lay_out(owner, arena);
    char *block = dr__alloc_aligned(arena->n ? arena->n : 64);
    if (!block)
        return 0;
    for (size_t i = 0; i < arena->n; i++)
        block[i] = 0;
    *arena = (dr__rl_arena){ .block = block };
    lay_out(owner, arena);
    return 1;
}

static inline void dr__rl_arena_free(dr__rl_arena *arena)
{
    dr__free_aligned(arena->block);
    *arena = (dr__rl_arena){ 0 };
}

#endif
