/* place.c: where a sample goes: its place in a batch, and the batch's common block. */
#include "shmpool/shared.h"

#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/error.h"

enum { LARGE_SLAB = 1 << 20 };

/* Since the last take: for the slab before the last one, and for the last one. */
static const uint64_t earlier_within_ns = 3000000, last_within_ns = 20000000;

static const uint64_t brief_ns = 8000000; /* to hold a batch so long */

/* A moving mean, on which a single long time (a main process without the CPU, a validation) has little weight. */
void dr__slab_was_held(struct dr__board *b)
{
    uint64_t ns = dr__now_ns() - b->taken_ns, mean = b->hold_ns;
    if (b->taken_slab)
        b->hold_ns = mean ? mean - mean / 8 + DR_MIN(ns, 2 * mean) / 8 : DR_MAX(ns, 1);
    b->taken_slab = 0;
}

/* The main process does not wait for the next batch, and mostly lets go of one sooner than two samples are made: a
 * second slab would be little faster; or within some milliseconds, in which no model is trained, but large memory read,
 * and the second slab would be half of what all of it takes.  Not when batches are to be made ahead. */
static bool holds_last_briefly(const struct dr__board *b, size_t bytes)
{
    bool holds_last = b->taken_slab && b->taken_bytes >= bytes - bytes / 4;
    return holds_last && b->window_batches == 1 && !atomic_load(&b->ready_waiters) &&
           b->hold_ns <= DR_MAX(brief_ns, 2 * dr__times_mean(&b->times));
}

/* A main process that takes a batch mostly lets go of the one before as soon as it has the CPU. */
static bool release_is_near(const dr_shmpool *c, size_t bytes)
{
    const struct dr__board *b = c->board;
    uint64_t taken = b->arena.used - b->arena.held;
    bool holds_earlier = taken >= b->taken_bytes + bytes - bytes / 4;
    if (holds_earlier)
        return dr__now_ns() < b->taken_ns + earlier_within_ns;
    return holds_last_briefly(b, bytes) && dr__now_ns() < b->taken_ns + last_within_ns;
}

/* With the lock held, which is let go meanwhile: a large slab waits for pages that are about to be free, so that a
 * window of one batch takes the memory of two batches, not of three, and that of one where the main process is quick.
 * Returns the time that it took. */
static uint64_t await_warm(dr_shmpool *c, const struct dr__entry *e, size_t bytes)
{
    const struct timespec a_while = { .tv_nsec = 100000 };
    const uint64_t begin_ns = dr__now_ns();
    if (bytes < LARGE_SLAB)
        return 0;
    while (!e->slab && !dr__arena_has_warm(c->base, &c->board->arena, bytes) && release_is_near(c, bytes)) {
        dr__shmpool_unlock(c);
        nanosleep(&a_while, NULL);
        dr__shmpool_lock(c);
    }
    return dr__now_ns() - begin_ns;
}

/* The common block of a batch, made by the first worker that needs it. */
static dr_shmpool_block slab_of(dr_shmpool *c, int worker, struct dr__entry *e, size_t bytes)
{
    struct dr__arena *a = &c->board->arena;
    if (!e->slab && bytes) {
        dr_shmpool_block slab = dr__arena_new(c->base, a, bytes, (uint16_t)worker, getpid());
        e->slab_bytes = bytes;
        dr__step();
        e->slab = slab;
        dr__step();
        dr__arena_give(c->base, a, slab, DR__BY_BOARD, 0);
    }
    return e->slab_bytes == bytes ? e->slab : 0;
}

dr_status dr_shmpool_place(dr_shmpool *c, int worker, uint32_t i, size_t slab_bytes, uint32_t *slot,
                           dr_shmpool_block *slab, dr_error *err)
{
    DR_TRY(dr__check_claim(c, worker, i, 1, err));
    struct dr__worker *w = &c->workers[worker];
    struct dr__entry *e = &c->entries[w->entry];
    bool no_room = false;
    *slot = w->first + i;
    *slab = 0; /* and stays so when the batch was given up */
    dr__shmpool_lock(c);
    dr__slot_place(c, e, w->first + i, atomic_load(&w->since_ns));
    const struct dr__slot *s = &dr__slots(c, e)[w->first + i];
    if (s->placed) {
        *slot = s->place;
        const uint64_t waited = await_warm(c, &c->entries[s->batch], slab_bytes);
        w->mark_ns += waited; /* is no time of the sample */
        atomic_fetch_add(&w->since_ns, waited);
        *slab = slab_of(c, worker, &c->entries[s->batch], slab_bytes);
        no_room = slab_bytes && !c->entries[s->batch].slab;
    }
    dr__board_advance(c);
    dr__shmpool_unlock(c);
    if (no_room)
        return dr__fail(err, DR_ERR_NOMEM, "shmpool: no room for a batch of %zu bytes", slab_bytes);
    return DR_OK;
}
