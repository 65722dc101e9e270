/* choose.c: what a worker does next.  With the lock held.
 *
 * First, batches that only wait to be finished.  Then slots: in the order of posting, in runs that are worth a claim;
 * with lanes, slow slots are taken ahead of that by a part of the workers: in order, those of the oldest post that has
 * some, as the main process waits for its batch; out of order, those of all posts; the longest first.  Out of order, a
 * slot that always found longer ones before it comes when it is due, before its post holds back the later ones; and a
 * pass begins with the shortest slots, so that the main process gets its first batches soon.  A worker never goes
 * without when there is something that it may claim.
 */
#include "shmpool/shared.h"

#include "base/clock.h"
#include "base/compiler.h"

enum { BEGINNING = 4 }; /* batches */

/* --- what may be claimed now --- */

struct view {
    dr_shmpool *shmpool;
    int worker;
    uint64_t always; /* seq of the post that goes on though the window is closed */
    uint64_t until;  /* out of order: no post from this seq on */
    bool no_bytes;   /* the window is closed for memory */
    bool in_turn;    /* one post after the other: there is nobody else to take the slow slots of the oldest */
};

static bool any_batch_at_hand(const dr_shmpool *c)
{
    const struct dr__board *b = c->board;
    for (uint64_t seq = b->take; seq < b->tail; seq++) {
        const struct dr__entry *e = dr__entry_of(c, seq);
        if (e->live && !e->dropped && e->batch != DR__GONE && e->batch != DR__FILLING)
            return true;
        if (b->in_order)
            return false;
    }
    return false;
}

/* While the main process has nothing to take, the oldest post that is not over continues: its samples (in order), or
 * those of it and the posts after it (out of order), complete a batch, whatever the window says. */
static struct view make_view(dr_shmpool *c, int worker)
{
    const struct dr__board *b = c->board;
    bool limited = b->window_batches || b->window_bytes;
    return (struct view){
        .shmpool = c,
        .worker = worker,
        .always = limited && !any_batch_at_hand(c) ? b->open : UINT64_MAX,
        .until = b->in_order ? UINT64_MAX : b->open + b->reorder_window + 1,
        .no_bytes = b->window_bytes && b->arena.held >= b->window_bytes,
    };
}

/* In order, every batch from the oldest on counts, so that a slow slot does not begin one that is far ahead.  Out of
 * order, the batch that a sample goes to is not known yet: slots count. */
static bool few_batches(const struct dr__board *b, const struct dr__entry *e)
{
    if (!b->window_batches)
        return true;
    if (b->in_order)
        return e->seq < b->take + b->window_batches;
    return b->started_slots < (uint64_t)b->window_batches * e->n_slots;
}

static bool window_open(const struct view *v, const struct dr__entry *e)
{
    if (e->seq == v->always || e->n_redo)
        return true;
    return !v->no_bytes && few_batches(v->shmpool->board, e);
}

static bool may_claim(const struct view *v, const struct dr__entry *e)
{
    if (!e->live || e->dropped || !e->n_waiting || (e->worker >= 0 && e->worker != v->worker))
        return false;
    if (e->seq < v->until && window_open(v, e))
        return true;
    v->shmpool->board->held_back = true;
    return false;
}

/* --- runs of fast slots --- */

static bool fits_run(const struct view *v, const struct dr__entry *e, const struct dr__slot *s, uint64_t *sum)
{
    if (s->state != DR__SLOT_WAITING || s->slow)
        return false;
    if (e->whole_only)
        return true;
    uint64_t cost = dr__slot_cost(v->shmpool, s);
    if (!cost || *sum + cost > e->min_claim_ns)
        return false;
    *sum += cost;
    return true;
}

/* A slot, and, if it is a fast one, as many beside it as a claim takes. */
static struct dr__choice run_around(const struct view *v, struct dr__entry *e, uint32_t slot)
{
    const struct dr__slot *slots = dr__slots(v->shmpool, e);
    uint64_t sum = dr__slot_cost(v->shmpool, &slots[slot]);
    uint32_t first = slot, end = slot + 1;
    if ((sum || e->whole_only) && !slots[slot].slow) {
        while (first > 0 && fits_run(v, e, &slots[first - 1], &sum))
            first--;
        while (end < e->n_slots && fits_run(v, e, &slots[end], &sum))
            end++;
    }
    return (struct dr__choice){ .kind = DR_SHMPOOL_WORK, .entry = e, .first = first, .n = end - first };
}

static bool find_run(const struct view *v, struct dr__entry *e, struct dr__choice *out)
{
    const struct dr__slot *slots = dr__slots(v->shmpool, e);
    while (e->first_waiting < e->n_slots && slots[e->first_waiting].state != DR__SLOT_WAITING)
        e->first_waiting++;
    uint32_t first = e->first_waiting;
    while (first < e->n_slots && (slots[first].state != DR__SLOT_WAITING || slots[first].slow))
        first++;
    if (first == e->n_slots)
        return false;
    *out = run_around(v, e, first);
    return true;
}

static bool find_fast(const struct view *v, struct dr__choice *out)
{
    const struct dr__board *b = v->shmpool->board;
    for (uint64_t seq = b->open; seq < b->tail; seq++) {
        struct dr__entry *e = dr__entry_of(v->shmpool, seq);
        if (!may_claim(v, e))
            continue;
        if (e->n_waiting > e->n_slow && find_run(v, e, out))
            return true;
        if (v->in_turn && e->n_slow)
            return false;
    }
    return false;
}

/* --- slow slots --- */

static void longest_of(const struct view *v, struct dr__entry *e, struct dr__choice *out, float *cost)
{
    const struct dr__slot *slots = dr__slots(v->shmpool, e);
    for (uint32_t i = e->first_waiting; i < e->n_slots; i++)
        if (slots[i].state == DR__SLOT_WAITING && slots[i].slow && slots[i].cost_ns > *cost) {
            *out = (struct dr__choice){ .kind = DR_SHMPOOL_WORK, .entry = e, .first = i, .n = 1 };
            *cost = slots[i].cost_ns;
        }
}

/* Out of order: half as many batches were filled since its turn as may be. */
static bool is_due(const struct dr__board *b, const struct dr__entry *e)
{
    return b->fill > e->seq + b->reorder_window / 2;
}

static bool find_slow(const struct view *v, struct dr__choice *out)
{
    const struct dr__board *b = v->shmpool->board;
    float cost = 0;
    for (uint64_t seq = b->open; seq < b->tail; seq++) {
        struct dr__entry *e = dr__entry_of(v->shmpool, seq);
        if (!e->n_slow || !may_claim(v, e))
            continue;
        longest_of(v, e, out, &cost);
        if (cost > 0 && (b->in_order || is_due(b, e)))
            break;
    }
    return cost > 0;
}

/* --- the beginning of a pass --- */

/* Out of order, the main process has hardly a batch of the pass, and nothing that it could take. */
static bool has_just_begun(const dr_shmpool *c)
{
    const struct dr__board *b = c->board;
    if (b->in_order || b->open == b->tail || any_batch_at_hand(c))
        return false;
    return b->served_group != dr__entry_of(c, b->open)->group || b->n_served < BEGINNING;
}

static void shortest_of(const struct view *v, struct dr__entry *e, struct dr__choice *out, float *cost)
{
    const struct dr__slot *slots = dr__slots(v->shmpool, e);
    for (uint32_t i = e->first_waiting; i < e->n_slots; i++)
        if (slots[i].state == DR__SLOT_WAITING && slots[i].cost_ns > 0 && (*cost == 0 || slots[i].cost_ns < *cost)) {
            *out = (struct dr__choice){ .kind = DR_SHMPOOL_WORK, .entry = e, .first = i };
            *cost = slots[i].cost_ns;
        }
}

/* Of posts whose slots may go to any batch. */
static bool find_shortest(const struct view *v, struct dr__choice *out)
{
    const struct dr__board *b = v->shmpool->board;
    float cost = 0;
    for (uint64_t seq = b->open; seq < b->tail; seq++) {
        struct dr__entry *e = dr__entry_of(v->shmpool, seq);
        if (!e->keep && may_claim(v, e))
            shortest_of(v, e, out, &cost);
    }
    if (cost > 0)
        *out = run_around(v, out->entry, out->first);
    return cost > 0;
}

/* --- how many workers may be at slow slots --- */

static uint64_t waiting_ns(const dr_shmpool *c, bool slow)
{
    uint64_t sum = 0, mean = dr__times_mean(&c->board->times);
    for (uint64_t seq = c->board->open; seq < c->board->tail; seq++) {
        const struct dr__entry *e = dr__entry_of(c, seq);
        if (e->live && !e->dropped)
            sum += slow ? e->slow_ns : e->fast_ns ? e->fast_ns : (e->n_waiting - e->n_slow) * mean;
    }
    return sum;
}

/* Workers by number: there, and at a slot that is slow, by its prediction or by now. */
static void count_workers(const dr_shmpool *c, uint32_t *n_workers, uint32_t *n_slow)
{
    uint64_t threshold = dr__threshold(c->board), now = dr__now_ns();
    *n_workers = *n_slow = 0;
    for (uint32_t i = 0; i < c->board->max_workers; i++) {
        const struct dr__worker *w = &c->workers[i];
        uint64_t since = atomic_load(&w->since_ns);
        bool late = w->kind && now > since && now - since > threshold;
        *n_workers += w->pid != 0;
        *n_slow += w->pid && w->kind && (w->slow || late);
    }
}

static bool is_alone(const dr_shmpool *c)
{
    uint32_t n_workers, n_slow;
    count_workers(c, &n_workers, &n_slow);
    return n_workers < 2;
}

static bool slow_lane_has_room(const dr_shmpool *c)
{
    uint32_t n_workers, n_slow;
    count_workers(c, &n_workers, &n_slow);
    if (n_workers < 2)
        return false;
    double slow = (double)waiting_ns(c, true), fast = (double)waiting_ns(c, false);
    uint32_t part = (uint32_t)(slow / (slow + fast + 1) * n_workers + 0.5);
    return n_slow < DR_MIN(DR_MAX(part, 1), n_workers - 1);
}

/* --- the choice --- */

static bool find_complete(const dr_shmpool *c, struct dr__choice *out)
{
    if (!c->board->n_complete)
        return false;
    for (uint64_t seq = c->board->take; seq < c->board->tail; seq++) {
        struct dr__entry *e = dr__entry_of(c, seq);
        if (e->live && !e->dropped && e->batch == DR__COMPLETE) {
            *out = (struct dr__choice){ .kind = DR_SHMPOOL_FINISH, .entry = e };
            return true;
        }
    }
    return false;
}

static bool any_slow(const dr_shmpool *c)
{
    for (uint64_t seq = c->board->open; seq < c->board->tail; seq++)
        if (dr__entry_of(c, seq)->live && dr__entry_of(c, seq)->n_slow)
            return true;
    return false;
}

void dr__choose(dr_shmpool *c, int worker, struct dr__choice *out)
{
    out->kind = 0;
    if (find_complete(c, out))
        return;
    struct view v = make_view(c, worker);
    if (c->board->lanes && has_just_begun(c) && find_shortest(&v, out))
        return;
    bool slow = c->board->lanes && any_slow(c);
    v.in_turn = slow && c->board->in_order && is_alone(c);
    if (slow && slow_lane_has_room(c) && find_slow(&v, out))
        return;
    if (find_fast(&v, out))
        return;
    if (slow)
        find_slow(&v, out);
}
