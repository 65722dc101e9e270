/* grow.h: arrays that grow by doubling. */
#ifndef DR_BASE_GROW_H
#define DR_BASE_GROW_H

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

#endif
