/* post.c: the main process's side: posts, results, clearing, limits. */
#include "shmpool/shared.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/spread.h"

enum { ROW = 16 }; /* batches between two checks of how much memory is needed */

/* --- posting --- */

static dr_status check_post(const dr_shmpool *c, const dr_shmpool_post_options *o, dr_error *err)
{
    if (o->size != sizeof *o)
        return dr__fail(err, DR_ERR_ARG, "shmpool: post options of %zu bytes, expected %zu", o->size, sizeof *o);
    if (o->n_slots < 1 || o->n_slots > 1u << 24)
        return dr__fail(err, DR_ERR_ARG, "shmpool: n_slots must be 1 to %u, got %u", 1u << 24, o->n_slots);
    if (o->worker < -1 || o->worker >= (int)c->board->max_workers)
        return dr__fail(err, DR_ERR_ARG, "shmpool: worker must be -1 to %u, got %d", c->board->max_workers - 1,
                        o->worker);
    if (atomic_load(&c->board->closed))
        return dr__fail(err, DR_ERR_CANCELLED, "shmpool: closed");
    return DR_OK;
}

static bool is_full(const struct dr__board *b)
{
    return b->n_untaken >= b->max_batches || b->tail - b->head >= b->n_entries;
}

/* What is no time is unknown; what is too long is as good as a month. */
static float sane_cost(float ns)
{
    const float most = 2.6e15f;
    return ns > 0 ? ns < most ? ns : most : 0;
}

/* Memory for slots and request, and for samples: filled before the board knows of them. */
struct items {
    dr_shmpool_block slots, samples;
};

static dr_status new_items(dr_shmpool *c, const dr_shmpool_post_options *o, struct items *out, dr_error *err)
{
    struct dr__arena *a = &c->board->arena;
    size_t bytes = o->n_slots * sizeof(struct dr__slot) + o->request_bytes;
    dr__shmpool_lock(c);
    bool full = is_full(c->board);
    if (!full) {
        out->slots = dr__arena_new(c->base, a, bytes, DR__BY_OWNER, getpid());
        out->samples = dr__arena_new(c->base, a, o->n_slots * sizeof(dr_shmpool_sample), DR__BY_OWNER, getpid());
    }
    dr__shmpool_unlock(c);
    if (full)
        return DR_AGAIN;
    if (out->slots && out->samples)
        return DR_OK;
    dr_shmpool_block_release(c, out->slots);
    dr_shmpool_block_release(c, out->samples);
    return dr__fail(err, DR_ERR_NOMEM, "shmpool: no room for a post of %u slots and %zu bytes", o->n_slots,
                    o->request_bytes);
}

static void fill_items(dr_shmpool *c, const dr_shmpool_post_options *o, const struct items *items)
{
    struct dr__slot *slots = dr_shmpool_block_data(c, items->slots);
    dr_shmpool_sample *samples = dr_shmpool_block_data(c, items->samples);
    memset(slots, 0, o->n_slots * sizeof *slots);
    for (uint32_t i = 0; i < o->n_slots; i++) {
        slots[i].cost_ns = o->cost_ns ? sane_cost(o->cost_ns[i]) : 0;
        samples[i] = (dr_shmpool_sample){ .state = DR__EMPTY };
    }
    if (o->request_bytes)
        memcpy(slots + o->n_slots, o->request, o->request_bytes);
}

/* Which slots are slow is decided by what is known now, and does not change with what is learnt later. */
static bool is_slow(const dr_shmpool *c, const struct dr__entry *e, const struct dr__slot *s)
{
    bool lanes = c->board->lanes && !e->whole_only && e->worker < 0;
    return lanes && (double)s->cost_ns > (double)dr__threshold(c->board);
}

static void sort_new(dr_shmpool *c, struct dr__entry *e)
{
    struct dr__slot *slots = dr__slots(c, e);
    for (uint32_t i = 0; i < e->n_slots; i++) {
        slots[i].slow = is_slow(c, e, &slots[i]);
        dr__count_waiting(c, e, i, 1);
    }
}

/* About how many claims a post allows; each worker that claims wakes one more while there are slots left. */
static uint32_t claims_of(const dr_shmpool *c, const struct dr__entry *e)
{
    uint64_t mean = dr__times_mean(&c->board->times);
    if (e->whole_only)
        return 1;
    if (!mean || !e->min_claim_ns)
        return e->n_slots;
    uint64_t a_claim = DR_MAX(e->min_claim_ns / mean, 1);
    return (uint32_t)((e->n_slots + a_claim - 1) / a_claim);
}

static void add_entry(dr_shmpool *c, const dr_shmpool_post_options *o, const struct items *items,
                      struct dr__wakes *wakes)
{
    struct dr__board *b = c->board;
    struct dr__entry *e = dr__entry_of(c, b->tail);
    *e = (struct dr__entry){
        .keep = b->in_order || o->keep || o->worker >= 0 || o->min_claim_ns == UINT32_MAX,
        .whole_only = o->min_claim_ns == UINT32_MAX,
        .worker = o->worker,
        .n_slots = o->n_slots,
        .min_claim_ns = o->min_claim_ns,
        .seq = b->tail,
        .tag = o->tag,
        .group = b->group,
        .items = items->slots,
        .request_bytes = o->request_bytes,
        .samples = items->samples,
    };
    dr__arena_give(c->base, &b->arena, e->items, DR__BY_BOARD, 0);
    dr__arena_give(c->base, &b->arena, e->samples, DR__BY_BOARD, 0);
    sort_new(c, e);
    dr__step();
    e->live = 1;
    b->tail++;
    b->n_untaken++;
    if (o->worker >= 0)
        dr__wake_worker(c, wakes, (uint32_t)o->worker);
    else
        dr__wake_some(c, wakes, claims_of(c, e));
}

dr_status dr_shmpool_post(dr_shmpool *c, const dr_shmpool_post_options *options, dr_error *err)
{
    DR_TRY(check_post(c, options, err));
    struct items items = { 0 };
    DR_TRY(new_items(c, options, &items, err));
    fill_items(c, options, &items);
    struct dr__wakes wakes = { 0 };
    dr__shmpool_lock(c);
    bool full = is_full(c->board);
    if (!full)
        add_entry(c, options, &items, &wakes);
    dr__shmpool_unlock_wake(c, &wakes);
    if (full) { /* another thread posted meanwhile */
        dr_shmpool_block_release(c, items.slots);
        dr_shmpool_block_release(c, items.samples);
    }
    return full ? DR_AGAIN : DR_OK;
}

void dr_shmpool_post_end(dr_shmpool *c)
{
    dr__shmpool_lock(c);
    c->board->group++;
    dr__shmpool_unlock(c);
}

/* --- results --- */

static struct dr__entry *find_ready(const dr_shmpool *c)
{
    const struct dr__board *b = c->board;
    for (uint64_t seq = b->take; seq < b->tail; seq++) {
        struct dr__entry *e = dr__entry_of(c, seq);
        if (!e->live || e->dropped || e->batch == DR__GONE)
            continue;
        if (e->batch == DR__READY)
            return e;
        if (b->in_order)
            return NULL;
    }
    return NULL;
}

static void main_process_gets(dr_shmpool *c, dr_shmpool_block block)
{
    dr__arena_give(c->base, &c->board->arena, block, DR__BY_OWNER, getpid());
}

static void count_latency(struct dr__board *b, uint64_t ns)
{
    b->latency_ns += ns;
    b->latency_n[dr__spread_bin(ns)]++;
}

static void take_result(dr_shmpool *c, struct dr__entry *e, dr_shmpool_result *out)
{
    struct dr__board *b = c->board;
    const dr_shmpool_sample *samples = dr__samples(c, e);
    *out = (dr_shmpool_result){
        .tag = dr__batch_tag(c, e),
        .number = b->n_results++,
        .n_samples = e->n_slots,
        .worker = e->finisher,
        .failed = e->failed,
        .head = e->head,
        .head_bytes = e->head_bytes,
        .slab = e->slab,
        .opened_ns = e->opened_ns,
        .ready_ns = e->ready_ns,
        .samples = samples,
        .items = e->samples,
    };
    main_process_gets(c, e->head);
    main_process_gets(c, e->slab);
    for (uint32_t i = 0; i < e->n_slots; i++) {
        main_process_gets(c, samples[i].block);
        b->n_bad += samples[i].state != DR_SHMPOOL_OK;
    }
    b->taken_samples += e->n_slots;
    b->batch_samples = e->n_slots;
    count_latency(b, e->opened_ns && e->ready_ns > e->opened_ns ? e->ready_ns - e->opened_ns : 0);
    main_process_gets(c, e->samples);
    dr__slab_was_held(b);
    b->taken_ns = dr__now_ns();
    b->taken_bytes = e->slab_bytes;
    b->taken_slab = e->slab;
    b->n_served = e->group == b->served_group ? b->n_served + 1 : 1;
    b->served_group = e->group;
    e->batch = DR__GONE;
    b->n_untaken--;
    b->started_slots -= e->n_slots;
    if (b->n_results % ROW == 0)
        dr__arena_next_row(&b->arena);
    dr__entry_sweep(c, e);
    dr__board_advance(c);
}

/* The window may be open again. */
static void let_on(dr_shmpool *c, struct dr__wakes *wakes)
{
    if (c->board->held_back)
        dr__wake_some(c, wakes, UINT32_MAX);
    c->board->held_back = false;
}

static dr_status try_next(dr_shmpool *c, dr_shmpool_result *out, unsigned *seen)
{
    struct dr__wakes wakes = { 0 };
    dr__shmpool_lock(c);
    struct dr__entry *e = find_ready(c);
    dr_status status = e ? DR_OK : c->board->n_untaken ? DR_AGAIN : DR_END;
    if (e) {
        take_result(c, e, out);
        let_on(c, &wakes);
        if (!c->board->n_untaken)
            dr__wake_main(c, &wakes); /* for other threads, this is the end */
    }
    *seen = atomic_load(&c->board->ready);
    if (status == DR_AGAIN)
        atomic_fetch_add(&c->board->ready_waiters, 1);
    dr__shmpool_unlock_wake(c, &wakes);
    return status;
}

static dr_status wait_next(dr_shmpool *c, int timeout_ms, dr_shmpool_result *out)
{
    uint64_t deadline = dr__deadline(timeout_ms);
    unsigned wakes = atomic_load(&c->board->wakes);
    for (;;) {
        unsigned seen;
        dr_status status = try_next(c, out, &seen);
        if (status != DR_AGAIN)
            return status;
        bool over = atomic_load(&c->board->wakes) != wakes || !dr__sleep(&c->board->ready, seen, deadline);
        atomic_fetch_sub(&c->board->ready_waiters, 1);
        if (over)
            return DR_AGAIN;
    }
}

dr_status dr_shmpool_next(dr_shmpool *c, int timeout_ms, dr_shmpool_result *out, dr_error *err)
{
    const uint64_t came_ns = dr__now_ns();
    (void)err;
    dr__consumer_comes(c, came_ns);
    dr_status status = wait_next(c, timeout_ms, out);
    dr__consumer_leaves(c, came_ns, status);
    return status;
}

void dr_shmpool_wake(dr_shmpool *c)
{
    struct dr__wakes wakes = { 0 };
    dr__shmpool_lock(c);
    atomic_fetch_add(&c->board->wakes, 1);
    dr__wake_main(c, &wakes);
    dr__shmpool_unlock_wake(c, &wakes);
}

/* --- clearing --- */

static void drop_all(dr_shmpool *c)
{
    struct dr__board *b = c->board;
    for (uint32_t i = 0; i < b->n_entries; i++)
        if (c->entries[i].live)
            c->entries[i].dropped = 1;
    b->group++;
    atomic_store(&b->waited_ns, 0); /* for a batch that does not come */
    dr__repair(c);                  /* drops what waits, frees what nobody is at */
}

dr_status dr_shmpool_clear(dr_shmpool *c, int timeout_ms, dr_error *err)
{
    uint64_t deadline = dr__deadline(timeout_ms);
    struct dr__wakes wakes = { 0 };
    (void)err;
    dr__shmpool_lock(c);
    drop_all(c);
    dr__wake_main(c, &wakes); /* for threads that wait in dr_shmpool_next, this is the end */
    dr__shmpool_unlock_wake(c, &wakes);
    for (;;) {
        dr__shmpool_lock(c);
        bool cleared = !c->board->n_dropped;
        unsigned seen = atomic_load(&c->board->ready);
        atomic_fetch_add(&c->board->ready_waiters, 1);
        dr__shmpool_unlock(c);
        bool over = cleared || !dr__sleep(&c->board->ready, seen, deadline);
        atomic_fetch_sub(&c->board->ready_waiters, 1);
        if (over)
            return cleared ? DR_OK : DR_AGAIN;
    }
}

/* --- limits --- */

void dr_shmpool_set_window(dr_shmpool *c, uint32_t batches, uint64_t bytes)
{
    struct dr__wakes wakes = { 0 };
    dr__shmpool_lock(c);
    c->board->window_batches = batches;
    c->board->window_bytes = bytes == UINT64_MAX ? c->board->window_bytes : bytes;
    let_on(c, &wakes);
    dr__shmpool_unlock_wake(c, &wakes);
}

void dr__shmpool_set_bytes(dr_shmpool *c, uint64_t bytes)
{
    struct dr__wakes wakes = { 0 };
    dr__shmpool_lock(c);
    c->board->window_bytes = bytes;
    let_on(c, &wakes);
    dr__shmpool_unlock_wake(c, &wakes);
}

uint64_t dr__shmpool_bytes(dr_shmpool *c)
{
    dr__shmpool_lock(c);
    uint64_t bytes = c->board->window_bytes;
    dr__shmpool_unlock(c);
    return bytes;
}

/* Sorts what waits anew. */
static void sort_again(dr_shmpool *c, struct dr__entry *e)
{
    struct dr__slot *slots = dr__slots(c, e);
    for (uint32_t i = 0; i < e->n_slots; i++)
        if (slots[i].state == DR__SLOT_WAITING) {
            dr__count_waiting(c, e, i, -1);
            slots[i].slow = is_slow(c, e, &slots[i]);
            dr__count_waiting(c, e, i, 1);
        }
}

static void sort_all_again(dr_shmpool *c)
{
    for (uint64_t seq = c->board->head; seq < c->board->tail; seq++)
        if (dr__entry_of(c, seq)->live)
            sort_again(c, dr__entry_of(c, seq));
}

void dr_shmpool_expect(dr_shmpool *c, uint64_t median_ns)
{
    dr__shmpool_lock(c);
    dr__times_expect(&c->board->times, median_ns);
    dr__shmpool_unlock(c);
}

void dr_shmpool_set_threshold(dr_shmpool *c, uint64_t slow_ns)
{
    dr__shmpool_lock(c);
    c->board->set_threshold_ns = slow_ns;
    sort_all_again(c);
    dr__shmpool_unlock(c);
}

void dr__shmpool_set_lane(dr_shmpool *c, double times)
{
    dr__shmpool_lock(c);
    dr__times_set_slow(&c->board->times, times);
    sort_all_again(c);
    dr__shmpool_unlock(c);
}

double dr__shmpool_lane(dr_shmpool *c)
{
    dr__shmpool_lock(c);
    double times = dr__times_slow(&c->board->times);
    dr__shmpool_unlock(c);
    return times;
}
