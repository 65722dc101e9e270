/* task_board.c: the lock, waiting and waking, and what is computed anew after a death.
 *
 * A worker sleeps on a word of its own, the main process's threads on one word of the board.  A sleeper reads the word
 * with the lock held, a waker changes it with the lock held: no wake is lost, and a sleeper that is killed leaves
 * nothing but its flag `waits`.  A wake may be lost with its sender, killed between unlock and futex: dr_shmpool_reap
 * wakes everybody.
 */
#include "shmpool/shared.h"

#include <assert.h>
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"

enum { SPINS = 40 };

static const uint64_t slice_ns = 500000000; /* a sleeper looks again after this, whatever was lost */

/* --- steps --- */

static atomic_long steps_left; /* tests only */

void dr__step_die_at(long n)
{
    atomic_store(&steps_left, n);
}

void dr__step(void)
{
    atomic_signal_fence(memory_order_seq_cst); /* enough: a killed process's stores are seen in their order */
    if (DR_UNLIKELY(atomic_load_explicit(&steps_left, memory_order_relaxed)))
        if (atomic_fetch_sub(&steps_left, 1) == 1)
            kill(getpid(), SIGKILL);
}

/* --- the lock --- */

/* It is held for less time than it takes to fall asleep: trying again comes first. */
static int take_lock(pthread_mutex_t *lock)
{
    for (int i = 0; i < SPINS; i++) {
        int error = pthread_mutex_trylock(lock);
        if (error != EBUSY)
            return error;
        DR_PAUSE();
    }
    return pthread_mutex_lock(lock);
}

void dr__shmpool_lock(dr_shmpool *c)
{
    int error = take_lock(&c->board->lock);
    if (error == EOWNERDEAD) {
        c->board->n_deaths++;
        dr__repair(c);
        pthread_mutex_consistent(&c->board->lock);
    }
    assert(!error || error == EOWNERDEAD);
}

void dr__shmpool_unlock(dr_shmpool *c)
{
    pthread_mutex_unlock(&c->board->lock);
}

/* --- waiting and waking --- */

uint64_t dr__deadline(int timeout_ms)
{
    return timeout_ms < 0 ? UINT64_MAX : dr__now_ns() + (uint64_t)timeout_ms * 1000000;
}

bool dr__sleep(atomic_uint *word, unsigned seen, uint64_t deadline)
{
    uint64_t now = dr__now_ns();
    if (now >= deadline)
        return false;
    uint64_t ns = DR_MIN(deadline - now, slice_ns);
    struct timespec t = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
    syscall(SYS_futex, word, FUTEX_WAIT, seen, &t, NULL, 0); /* woken, changed, signal or time: the caller looks */
    return true;
}

static void futex_wake(atomic_uint *word, int n)
{
    syscall(SYS_futex, word, FUTEX_WAKE, n, NULL, NULL, 0);
}

void dr__wake_worker(dr_shmpool *c, struct dr__wakes *wakes, uint32_t worker)
{
    struct dr__worker *w = &c->workers[worker];
    if (!w->waits)
        return;
    w->waits = 0;
    atomic_fetch_add(&w->wake, 1);
    wakes->workers[worker / 64] |= UINT64_C(1) << worker % 64;
}

void dr__wake_some(dr_shmpool *c, struct dr__wakes *wakes, uint32_t n)
{
    for (uint32_t i = 0; n && i < c->board->max_workers; i++)
        if (c->workers[i].waits) {
            dr__wake_worker(c, wakes, i);
            n--;
        }
}

void dr__wake_main(dr_shmpool *c, struct dr__wakes *wakes)
{
    atomic_fetch_add(&c->board->ready, 1);
    wakes->main = true;
}

void dr__shmpool_unlock_wake(dr_shmpool *c, const struct dr__wakes *wakes)
{
    dr__shmpool_unlock(c);
    for (unsigned word = 0; word < DR_COUNT(wakes->workers); word++)
        for (uint64_t bits = wakes->workers[word]; bits; bits &= bits - 1)
            futex_wake(&c->workers[word * 64 + (unsigned)__builtin_ctzll(bits)].wake, 1);
    if (wakes->main && atomic_load(&c->board->ready_waiters))
        futex_wake(&c->board->ready, INT32_MAX);
}

void dr__shmpool_unlock_wake_all(dr_shmpool *c)
{
    for (uint32_t i = 0; i < c->board->max_workers; i++) {
        c->workers[i].waits = 0;
        atomic_fetch_add(&c->workers[i].wake, 1);
    }
    atomic_fetch_add(&c->board->ready, 1);
    dr__shmpool_unlock(c);
    for (uint32_t i = 0; i < c->board->max_workers; i++)
        futex_wake(&c->workers[i].wake, INT32_MAX);
    futex_wake(&c->board->ready, INT32_MAX);
}

/* --- repair --- */

static void batch_keeps(dr_shmpool *c, dr_shmpool_block block)
{
    dr__arena_give(c->base, &c->board->arena, block, DR__BY_BOARD, 0);
}

/* Blocks that a batch was given belong to it.  Samples that were only placed are marked anew by their slots. */
static void repair_batch(dr_shmpool *c, struct dr__entry *e)
{
    e->n_taken = e->n_done = 0;
    if (e->batch == DR__GONE)
        return;
    batch_keeps(c, e->slab);
    if (e->batch == DR__READY)
        batch_keeps(c, e->head);
    dr_shmpool_sample *samples = dr__samples(c, e);
    for (uint32_t i = 0; i < e->n_slots; i++) {
        if (samples[i].state == DR__TAKEN)
            samples[i].state = DR__EMPTY;
        if (samples[i].state == DR__EMPTY)
            continue;
        batch_keeps(c, samples[i].block);
        e->n_taken++, e->n_done++;
    }
}

/* A slot that has its place is over when its sample is; else its place is taken. */
static void repair_placed(dr_shmpool *c, struct dr__slot *s)
{
    struct dr__entry *to = &c->entries[s->batch];
    dr_shmpool_sample *sample = &dr__samples(c, to)[s->place];
    if (sample->state != DR__EMPTY) {
        s->state = DR__SLOT_OVER;
        return;
    }
    sample->state = DR__TAKEN;
    to->n_taken++;
}

static void repair_post(dr_shmpool *c, struct dr__entry *e)
{
    struct dr__slot *slots = dr__slots(c, e);
    e->n_waiting = e->n_claimed = e->n_over = e->n_slow = e->n_redo = e->first_waiting = 0;
    e->slow_ns = e->fast_ns = 0;
    for (uint32_t i = 0; i < e->n_slots; i++) {
        struct dr__slot *s = &slots[i];
        if (e->dropped && s->state == DR__SLOT_WAITING)
            s->state = DR__SLOT_OVER; /* nobody will fill its place: it is not taken any more */
        if (s->placed && s->state != DR__SLOT_OVER)
            repair_placed(c, s);
        e->n_claimed += s->state == DR__SLOT_CLAIMED;
        e->n_over += s->state == DR__SLOT_OVER;
        if (s->state == DR__SLOT_WAITING)
            dr__count_waiting(c, e, i, 1);
    }
}

static void repair_state(dr_shmpool *c, struct dr__entry *e)
{
    if (e->batch == DR__FILLING && e->n_done == e->n_slots)
        e->batch = DR__COMPLETE;
    if (e->batch == DR__READY)
        dr__batch_ready(c, e);
    dr__entry_sweep(c, e);
}

static void count_entry(struct dr__board *b, const struct dr__entry *e)
{
    b->n_dropped += e->dropped;
    if (e->dropped)
        return;
    b->n_untaken += e->batch != DR__GONE;
    b->n_complete += e->batch == DR__COMPLETE;
    b->started_slots += e->n_claimed + e->n_over;
    b->started_slots -= e->batch == DR__GONE ? e->n_slots : 0; /* what filled it may be counted with other posts */
}

static void each_live(dr_shmpool *c, void (*act)(dr_shmpool *, struct dr__entry *))
{
    for (uint32_t i = 0; i < c->board->n_entries; i++)
        if (c->entries[i].live)
            act(c, &c->entries[i]);
}

void dr__repair(dr_shmpool *c)
{
    struct dr__board *b = c->board;
    dr__arena_rebuild(c->base, &b->arena);
    for (uint32_t i = 0; i < b->n_entries; i++)
        if (!c->entries[i].live)
            dr__entry_free(c, &c->entries[i]); /* who ended it may have died before that was done */
    each_live(c, repair_batch);
    each_live(c, repair_post);
    each_live(c, repair_state);
    b->n_untaken = b->n_complete = b->started_slots = b->n_dropped = 0;
    b->head = b->tail;
    for (uint32_t i = 0; i < b->n_entries; i++)
        if (c->entries[i].live) {
            count_entry(b, &c->entries[i]);
            b->head = DR_MIN(b->head, c->entries[i].seq);
        }
    b->open = b->fill = b->take = b->head;
    dr__board_advance(c);
}
