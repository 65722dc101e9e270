/* grow.h: arrays that grow by doubling, and blocks that may shrink again. */
#ifndef DR_BASE_GROW_H
#define DR_BASE_GROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"

/* Room for at least `need` elements of `size` bytes in the array p with room for *cap.  Returns the array, which may
 * have moved, or NULL when memory is short; then p is as it was. */
static inline void *dr__grow(void *p, size_t *cap, size_t need, size_t size)
{
    if (p && need <= *cap)
        return p;
    size_t room = *cap > SIZE_MAX / 2 ? need : *cap * 2;
    room = room < need ? need : room;
    room = room < 8 ? 8 : room;
    void *q = dr__realloc(p, room, size);
    if (q)
        *cap = room;
    return q;
}

enum { DR__SHRINK_ABOVE = 4 << 20, DR__SHRINK_AFTER = 64 };

/* For a block that is reused and made larger when needed: asked at each use, says when to let it go because a long row
 * of uses needed less than a quarter of it.  So one unusual sample does not keep its memory, and ordinary ones do not
 * make it come and go.  *n_small is the caller's, 0 at first. */
static inline bool dr__should_shrink(unsigned *n_small, size_t cap, size_t need)
{
    *n_small = cap > DR__SHRINK_ABOVE && need < cap / 4 ? *n_small + 1 : 0;
    return *n_small >= DR__SHRINK_AFTER;
}

#endif
