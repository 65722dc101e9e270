/* Large slabs: their pages are used again, by workers that wait for a main process about to let go of them, and are not
 * taken by small blocks. */
#include "unit/shmpool/shmpool_helper.h"

#include <pthread.h>

#include "base/clock.h"
#include "shmpool/shared.h"

enum { SLAB = 2 << 20 };

static const uint64_t long_ns = UINT64_C(3600000000000);

static void place_slab(dr_shmpool *shmpool, size_t bytes, dr_shmpool_block *slab)
{
    dr_error err;
    uint32_t slot;
    assert_ok(dr_shmpool_place(shmpool, 0, 0, bytes, &slot, slab, &err));
    assert_int_not_equal(*slab, 0);
}

static dr_shmpool_result make_and_take(dr_shmpool *shmpool, uint64_t tag, size_t slab_bytes)
{
    dr_shmpool_block slab;
    post(shmpool, tag, 1);
    claim(shmpool, 0);
    place_slab(shmpool, slab_bytes, &slab);
    assert_true(done(shmpool, 0, 0, 1));
    return next(shmpool);
}

/* The main process holds two batches, and has its time to release the first of them set to go on for so long. */
static dr_shmpool *open_holding(dr_shmpool_result held[2], uint64_t for_ns)
{
    dr_shmpool *shmpool = open_shmpool(1, 4, true);
    for (uint64_t tag = 0; tag < 2; tag++)
        held[tag] = make_and_take(shmpool, tag, SLAB);
    post(shmpool, 2, 1);
    claim(shmpool, 0);
    shmpool->board->taken_ns += for_ns;
    return shmpool;
}

static void end_holding(dr_shmpool *shmpool, dr_shmpool_result *held, int n)
{
    assert_true(done(shmpool, 0, 0, 1));
    dr_shmpool_result last = next(shmpool);
    release(shmpool, &last);
    for (int i = 0; i < n; i++)
        release(shmpool, &held[i]);
    end_shmpool(shmpool);
}

/* --- the main process lets go --- */

struct placing {
    dr_shmpool *shmpool;
    dr_shmpool_block slab;
};

static void *place_in_thread(void *arg)
{
    struct placing *p = arg;
    place_slab(p->shmpool, SLAB, &p->slab);
    return NULL;
}

/* A slot gets its place and its slab under one lock, unless the worker waits for the latter. */
static void until_it_waits(dr_shmpool *shmpool)
{
    for (bool waits = false; !waits; usleep(100)) {
        dr__shmpool_lock(shmpool);
        const struct dr__entry *e = dr__entry_of(shmpool, shmpool->board->tail - 1);
        waits = dr__slots(shmpool, e)->placed;
        assert_int_equal(e->slab, 0);
        dr__shmpool_unlock(shmpool);
    }
}

/* What a small block was beside is joined with it: the next large one may begin there. */
static void assert_same_pages(dr_shmpool *shmpool, dr_shmpool_block slab, const char *pages)
{
    ptrdiff_t apart = (const char *)dr_shmpool_block_data(shmpool, slab) - pages;
    assert_true(apart > -4096 && apart < 4096);
}

/* A worker places a slab and waits; the main process lets go of a batch; the slab has that one's pages. */
static void place_while_released(dr_shmpool *shmpool, const dr_shmpool_result *held)
{
    struct placing p = { .shmpool = shmpool };
    pthread_t thread;
    const char *pages = dr_shmpool_block_data(shmpool, held->slab);
    pthread_create(&thread, NULL, place_in_thread, &p);
    until_it_waits(shmpool);
    release(shmpool, held);
    pthread_join(thread, NULL);
    assert_same_pages(shmpool, p.slab, pages);
}

static void a_worker_waits_for_what_the_main_process_lets_go(void **state)
{
    (void)state;
    dr_shmpool_result held[2];
    dr_shmpool *shmpool = open_holding(held, long_ns);
    place_while_released(shmpool, &held[0]);
    assert_true(counter(shmpool, "peak_bytes") < 3 * SLAB);
    end_holding(shmpool, &held[1], 1);
}

/* The main process has taken a batch, of a window of so many, and has a long time to let go of it. */
static dr_shmpool *open_holding_one(dr_shmpool_result *held, uint32_t window)
{
    dr_shmpool *shmpool = open_shmpool(1, 4, true);
    dr_shmpool_set_window(shmpool, window, 0);
    *held = make_and_take(shmpool, 0, SLAB);
    post(shmpool, 1, 1);
    claim(shmpool, 0);
    shmpool->board->taken_ns += long_ns;
    return shmpool;
}

static void a_quick_main_process_is_waited_for_where_one_batch_is_made_at_a_time(void **state)
{
    (void)state;
    dr_shmpool_result held;
    dr_shmpool *shmpool = open_holding_one(&held, 1);
    place_while_released(shmpool, &held);
    assert_true(counter(shmpool, "peak_bytes") < 2 * SLAB);
    end_holding(shmpool, NULL, 0);
}

/* Though two samples are made sooner. */
static void a_main_process_that_holds_batches_for_milliseconds_is_quick(void **state)
{
    (void)state;
    dr_shmpool_result held;
    dr_shmpool *shmpool = open_holding_one(&held, 1);
    shmpool->board->hold_ns = 5000000;
    assert_true(shmpool->board->hold_ns > 2 * dr__times_mean(&shmpool->board->times));
    place_while_released(shmpool, &held);
    assert_true(counter(shmpool, "peak_bytes") < 2 * SLAB);
    end_holding(shmpool, NULL, 0);
}

static void the_time_that_slabs_are_held_is_learnt(void **state)
{
    (void)state;
    dr_shmpool *shmpool = open_shmpool(1, 4, true);
    dr_shmpool_result held = make_and_take(shmpool, 0, SLAB);
    assert_int_equal(shmpool->board->hold_ns, 0);
    shmpool->board->taken_ns -= long_ns;
    release(shmpool, &held);
    assert_true(shmpool->board->hold_ns >= long_ns);
    held = make_and_take(shmpool, 1, SLAB);
    shmpool->board->taken_ns -= long_ns * 2;
    dr_shmpool_result last = make_and_take(shmpool, 2, SLAB);                                    /* so long at least */
    assert_true(shmpool->board->hold_ns > long_ns && shmpool->board->hold_ns < long_ns * 5 / 4); /* a single one */
    release(shmpool, &held);
    release(shmpool, &last);
    end_shmpool(shmpool);
}

/* --- it does not --- */

static void a_main_process_that_keeps_all_holds_nobody_up(void **state)
{
    (void)state;
    dr_shmpool_result held[2];
    dr_shmpool_block slab;
    dr_shmpool *shmpool = open_holding(held, 0);
    place_slab(shmpool, SLAB, &slab);
    assert_true(dr__now_ns() >= shmpool->board->taken_ns + 3000000);
    end_holding(shmpool, held, 2);
}

/* Each of these would wait for an hour. */
static void only_large_slabs_of_a_known_size_are_waited_for(void **state)
{
    (void)state;
    dr_shmpool_result held[2];
    dr_shmpool_block slab;
    dr_shmpool *shmpool = open_holding(held, long_ns);
    place_slab(shmpool, SLAB / 4, &slab);
    end_holding(shmpool, held, 2);
    shmpool = open_holding(held, long_ns);
    place_slab(shmpool, SLAB * 2, &slab); /* what the main process holds would not do */
    end_holding(shmpool, held, 2);
    shmpool = open_holding(held, long_ns);
    release(shmpool, &held[0]);
    place_slab(shmpool, SLAB, &slab);
    end_holding(shmpool, &held[1], 1);
}

static void where_batches_are_made_ahead_the_only_one_of_the_main_process_is_not_waited_for(void **state)
{
    (void)state;
    for (uint32_t window = 0; window < 3; window += 2) {
        dr_shmpool_result held;
        dr_shmpool_block slab;
        dr_shmpool *shmpool = open_holding_one(&held, window);
        place_slab(shmpool, SLAB, &slab);
        end_holding(shmpool, &held, 1);
    }
}

static void a_main_process_that_is_slow_or_waits_itself_is_not_waited_for(void **state)
{
    (void)state;
    dr_shmpool_result held;
    dr_shmpool_block slab;
    dr_shmpool *shmpool = open_holding_one(&held, 1);
    shmpool->board->hold_ns = long_ns;
    place_slab(shmpool, SLAB, &slab);
    end_holding(shmpool, &held, 1);
    shmpool = open_holding_one(&held, 1);
    shmpool->board->ready_waiters++;
    place_slab(shmpool, SLAB, &slab);
    shmpool->board->ready_waiters--;
    end_holding(shmpool, &held, 1);
}

/* --- small blocks --- */

static void small_blocks_leave_the_place_of_a_large_one_whole(void **state)
{
    (void)state;
    dr_shmpool_block slab;
    dr_shmpool *shmpool = open_shmpool(1, 8, true);
    dr_shmpool_result held = make_and_take(shmpool, 0, SLAB);
    const char *pages = dr_shmpool_block_data(shmpool, held.slab);
    post(shmpool, 1, 1); /* behind it */
    release(shmpool, &held);
    for (uint64_t tag = 2; tag < 6; tag++)
        post(shmpool, tag, 16);
    claim(shmpool, 0);
    place_slab(shmpool, SLAB, &slab);
    assert_same_pages(shmpool, slab, pages);
    assert_true(done(shmpool, 0, 0, 1));
    held = next(shmpool);
    release(shmpool, &held);
    dr_error err;
    assert_ok(dr_shmpool_clear(shmpool, 0, &err));
    end_shmpool(shmpool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_waits_for_what_the_main_process_lets_go),
        cmocka_unit_test(a_main_process_that_keeps_all_holds_nobody_up),
        cmocka_unit_test(only_large_slabs_of_a_known_size_are_waited_for),
        cmocka_unit_test(a_quick_main_process_is_waited_for_where_one_batch_is_made_at_a_time),
        cmocka_unit_test(a_main_process_that_holds_batches_for_milliseconds_is_quick),
        cmocka_unit_test(the_time_that_slabs_are_held_is_learnt),
        cmocka_unit_test(where_batches_are_made_ahead_the_only_one_of_the_main_process_is_not_waited_for),
        cmocka_unit_test(a_main_process_that_is_slow_or_waits_itself_is_not_waited_for),
        cmocka_unit_test(small_blocks_leave_the_place_of_a_large_one_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
