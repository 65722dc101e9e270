/* unordered.c: unordered loaders (in_order = false): a finished sample goes to the batch that is being filled.
 *
 * Each sample has a byte of marks.  Every sample below `worked_below` is finished.  Claims stay within the prefetch
 * window above it, which bounds how far a slow sample is displaced, and within the window above what was delivered,
 * which bounds the memory.  In pushed order the number of samples is not known: the marks are then a ring as wide as
 * the widest window.
 */
#include <string.h>

#include "base/alloc.h"
#include "exec/exec.h"
#include "sched/prefetch_rule.h"

static uint8_t *marks_of(const dr__exec *e, uint64_t local)
{
    return &e->unordered.marks[local % e->unordered.n_marks];
}

dr_status dr__unordered_begin(dr__exec *e, const uint8_t *done, dr_error *err)
{
    dr__free(e->unordered.marks);
    e->unordered.marks = NULL;
    if (!e->unordered.on)
        return DR_OK;
    e->unordered.n_marks = e->o.pushed_order ? DR__PREFETCH_MOST * e->o.batch_size : DR_MAX(e->order.n_local, 1);
    e->unordered.marks = dr__alloc_zero(e->unordered.n_marks, 1);
    if (!e->unordered.marks)
        return dr__fail(err, DR_ERR_NOMEM, "out of memory");
    for (uint64_t i = 0; done && i < e->order.n_local; i++)
        e->unordered.marks[i] = done[i] ? DR__DONE_BEFORE : 0;
    return DR_OK;
}

uint64_t dr__unordered_window(const dr__exec *e)
{
    return DR_MIN(e->unordered.worked_below, e->progress.delivered_samples) + dr__prefetch_window(e) * e->o.batch_size;
}

bool dr__unordered_was_delivered(const dr__exec *e, uint64_t local)
{
    return e->unordered.marks && *marks_of(e, local) & DR__DONE_BEFORE;
}

/* pool lock: NULL: the ring is full. */
static dr_batch **free_ring_slot(dr__exec *e)
{
    for (int i = 0; i < DR__RING; i++)
        if (!e->ring[i])
            return &e->ring[i];
    return NULL;
}

/* pool lock */
static dr_status open_filling(dr__exec *e, dr_error *err)
{
    dr_batch **place = free_ring_slot(e);
    dr_batch *b = place ? dr__batch_new(e, e->order.first_batch + e->progress.opened, e->o.batch_size, 0) : NULL;
    if (!b)
        return dr__fail(err, DR_ERR_NOMEM, "out of memory for a batch of %llu samples",
                        (unsigned long long)e->o.batch_size);
    *place = e->unordered.filling = b;
    e->progress.opened++;
    return DR_OK;
}

dr_status dr__unordered_take_slot(dr__exec *e, dr_batch **batch, uint64_t *slot, dr_error *err)
{
    dr__pool_lock();
    dr_status status = e->unordered.filling ? DR_OK : open_filling(e, err);
    if (status == DR_OK) {
        *batch = e->unordered.filling;
        *slot = e->unordered.filling->used++;
        if (e->unordered.filling->used == e->unordered.filling->n_slots)
            e->unordered.filling = NULL;
    }
    dr__pool_unlock();
    return status;
}

/* pool lock */
static void note_worked(dr__exec *e, uint64_t local)
{
    e->progress.finished++;
    *marks_of(e, local) |= DR__DONE_WORKED;
    if (local != e->unordered.worked_below)
        return;
    for (; e->unordered.worked_below < e->order.n_local && *marks_of(e, e->unordered.worked_below) & DR__DONE_WORKED;
         e->unordered.worked_below++)
        *marks_of(e, e->unordered.worked_below) &= (uint8_t)~DR__DONE_WORKED;
    dr__pool_wake(); /* the window has moved */
}

/* pool lock, released here: after the last sample of the epoch, finishes the batch being filled. */
static void close_and_unlock(dr__exec *e, int by)
{
    const bool idle = e->progress.finished == e->order.n_local, last = e->order.complete && idle;
    dr_batch *b = last ? e->unordered.filling : NULL;
    uint64_t unused = 0;
    if (b) {
        unused = b->n_slots - b->used;
        memset(b->missing + b->used, 1, unused);
        e->unordered.filling = NULL;
    }
    if (idle) /* the end of the epoch, or skipped samples to report */
        dr__cond_broadcast(&e->changed);
    dr__pool_unlock();
    if (b)
        dr__slots_done(e, b, unused, by);
}

void dr__unordered_sample_done(dr__exec *e, uint64_t local, bool left_out, int by)
{
    dr__pool_lock();
    if (left_out || *marks_of(e, local) & DR__DONE_BEFORE) {
        e->progress.delivered_samples++; /* moves the window on */
        dr__pool_wake();
    }
    if (left_out && !e->o.pushed_order)
        *marks_of(e, local) |= DR__DONE_DELIVERED;
    note_worked(e, local);
    close_and_unlock(e, by);
}

void dr__unordered_close(dr__exec *e)
{
    dr__pool_lock();
    close_and_unlock(e, 0);
}

uint64_t dr__unordered_local(const dr__exec *e, uint64_t position)
{
    return (position - e->order.base - e->o.rank) / e->o.world_size;
}

void dr__unordered_delivered(dr__exec *e, const dr_batch *b)
{
    e->progress.delivered_samples += b->n_accounted;
    for (uint64_t i = 0; i < b->n_accounted && !e->o.pushed_order; i++)
        *marks_of(e, dr__unordered_local(e, b->positions[i])) |= DR__DONE_DELIVERED;
}
