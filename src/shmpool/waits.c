/* waits.c: in which functions workers are blocked, as far as they were profiled.
 *
 * A small table by name, with the lock held.  When it is full, the name that waited least makes room, and the new one
 * begins with what that one had (the space-saving sketch of Metwally, Agrawal and El Abbadi): so a name that waits much
 * stays, however many others pass.
 */
#include <string.h>

#include "base/compiler.h"
#include "shmpool/shared.h"

static dr_shmpool_blocked_time *find(struct dr__board *b, const char *where)
{
    dr_shmpool_blocked_time *least = &b->waits[0];
    for (int i = 0; i < DR_SHMPOOL_MAX_WAITS; i++) {
        dr_shmpool_blocked_time *w = &b->waits[i];
        if (!strcmp(w->where, where))
            return w;
        least = w->ns < least->ns ? w : least;
    }
    memcpy(least->where, where, DR_SHMPOOL_WHERE_BYTES);
    return least;
}

void dr_shmpool_waited(dr_shmpool *c, const char *where, uint64_t ns)
{
    char name[DR_SHMPOOL_WHERE_BYTES] = { 0 };
    size_t n = DR_MIN(strlen(where), sizeof name - 1);
    while (n < strlen(where) && n && (where[n] & 0xc0) == 0x80)
        n--; /* not in the middle of a character */
    memcpy(name, where, n);
    if (!n || !ns)
        return;
    dr__shmpool_lock(c);
    find(c->board, name)->ns += ns;
    dr__shmpool_unlock(c);
}

size_t dr_shmpool_waits(dr_shmpool *c, dr_shmpool_blocked_time out[DR_SHMPOOL_MAX_WAITS])
{
    size_t n = 0;
    dr__shmpool_lock(c);
    for (int i = 0; i < DR_SHMPOOL_MAX_WAITS; i++) {
        const dr_shmpool_blocked_time w = c->board->waits[i];
        size_t at = n;
        if (!w.ns)
            continue;
        for (n++; at && out[at - 1].ns < w.ns; at--)
            out[at] = out[at - 1];
        out[at] = w;
    }
    dr__shmpool_unlock(c);
    return n;
}
