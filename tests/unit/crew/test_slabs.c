/* Large slabs: their pages are used again, by workers that wait for an owner about to let go of them, and are not taken
 * by small blocks. */
#include "unit/crew/crew_helper.h"

#include <pthread.h>

#include "base/clock.h"
#include "crew/shared.h"

enum { SLAB = 2 << 20 };

static const uint64_t long_ns = UINT64_C(3600000000000);

static void place_slab(dr_crew *crew, size_t bytes, dr_crew_block *slab)
{
    dr_error err;
    uint32_t slot;
    assert_ok(dr_crew_place(crew, 0, 0, bytes, &slot, slab, &err));
    assert_int_not_equal(*slab, 0);
}

static dr_crew_result make_and_take(dr_crew *crew, uint64_t tag, size_t slab_bytes)
{
    dr_crew_block slab;
    post(crew, tag, 1);
    claim(crew, 0);
    place_slab(crew, slab_bytes, &slab);
    assert_true(done(crew, 0, 0, 1));
    return next(crew);
}

/* The owner holds two batches, and has its time to release the first of them set to go on for so long. */
static dr_crew *open_holding(dr_crew_result held[2], uint64_t for_ns)
{
    dr_crew *crew = open_crew(1, 4, true);
    for (uint64_t tag = 0; tag < 2; tag++)
        held[tag] = make_and_take(crew, tag, SLAB);
    post(crew, 2, 1);
    claim(crew, 0);
    crew->board->taken_ns += for_ns;
    return crew;
}

static void end_holding(dr_crew *crew, dr_crew_result *held, int n)
{
    assert_true(done(crew, 0, 0, 1));
    dr_crew_result last = next(crew);
    release(crew, &last);
    for (int i = 0; i < n; i++)
        release(crew, &held[i]);
    end_crew(crew);
}

/* --- the owner lets go --- */

struct placing {
    dr_crew *crew;
    dr_crew_block slab;
};

static void *place_in_thread(void *arg)
{
    struct placing *p = arg;
    place_slab(p->crew, SLAB, &p->slab);
    return NULL;
}

/* A slot gets its place and its slab under one lock, unless the worker waits for the latter. */
static void until_it_waits(dr_crew *crew)
{
    for (bool waits = false; !waits; usleep(100)) {
        dr__crew_lock(crew);
        const struct dr__entry *e = dr__entry_of(crew, crew->board->tail - 1);
        waits = dr__slots(crew, e)->placed;
        assert_int_equal(e->slab, 0);
        dr__crew_unlock(crew);
    }
}

/* What a small block was beside is joined with it: the next large one may begin there. */
static void assert_same_pages(dr_crew *crew, dr_crew_block slab, const char *pages)
{
    ptrdiff_t apart = (const char *)dr_crew_block_data(crew, slab) - pages;
    assert_true(apart > -4096 && apart < 4096);
}

/* A worker places a slab and waits; the owner lets go of a batch; the slab has that one's pages. */
static void place_while_released(dr_crew *crew, const dr_crew_result *held)
{
    struct placing p = { .crew = crew };
    pthread_t thread;
    const char *pages = dr_crew_block_data(crew, held->slab);
    pthread_create(&thread, NULL, place_in_thread, &p);
    until_it_waits(crew);
    release(crew, held);
    pthread_join(thread, NULL);
    assert_same_pages(crew, p.slab, pages);
}

static void a_worker_waits_for_what_the_owner_lets_go(void **state)
{
    (void)state;
    dr_crew_result held[2];
    dr_crew *crew = open_holding(held, long_ns);
    place_while_released(crew, &held[0]);
    assert_true(counter(crew, "peak_bytes") < 3 * SLAB);
    end_holding(crew, &held[1], 1);
}

/* The owner has taken a batch, of a window of so many, and has a long time to let go of it. */
static dr_crew *open_holding_one(dr_crew_result *held, uint32_t window)
{
    dr_crew *crew = open_crew(1, 4, true);
    dr_crew_set_window(crew, window, 0);
    *held = make_and_take(crew, 0, SLAB);
    post(crew, 1, 1);
    claim(crew, 0);
    crew->board->taken_ns += long_ns;
    return crew;
}

static void a_quick_owner_is_waited_for_where_one_batch_is_made_at_a_time(void **state)
{
    (void)state;
    dr_crew_result held;
    dr_crew *crew = open_holding_one(&held, 1);
    place_while_released(crew, &held);
    assert_true(counter(crew, "peak_bytes") < 2 * SLAB);
    end_holding(crew, NULL, 0);
}

/* Though two samples are made sooner. */
static void an_owner_that_holds_batches_for_milliseconds_is_quick(void **state)
{
    (void)state;
    dr_crew_result held;
    dr_crew *crew = open_holding_one(&held, 1);
    crew->board->hold_ns = 5000000;
    assert_true(crew->board->hold_ns > 2 * dr__times_mean(&crew->board->times));
    place_while_released(crew, &held);
    assert_true(counter(crew, "peak_bytes") < 2 * SLAB);
    end_holding(crew, NULL, 0);
}

static void the_time_that_slabs_are_held_is_learnt(void **state)
{
    (void)state;
    dr_crew *crew = open_crew(1, 4, true);
    dr_crew_result held = make_and_take(crew, 0, SLAB);
    assert_int_equal(crew->board->hold_ns, 0);
    crew->board->taken_ns -= long_ns;
    release(crew, &held);
    assert_true(crew->board->hold_ns >= long_ns);
    held = make_and_take(crew, 1, SLAB);
    crew->board->taken_ns -= long_ns * 2;
    dr_crew_result last = make_and_take(crew, 2, SLAB);                                    /* so long at least */
    assert_true(crew->board->hold_ns > long_ns && crew->board->hold_ns < long_ns * 5 / 4); /* a single one */
    release(crew, &held);
    release(crew, &last);
    end_crew(crew);
}

/* --- it does not --- */

static void an_owner_that_keeps_all_holds_nobody_up(void **state)
{
    (void)state;
    dr_crew_result held[2];
    dr_crew_block slab;
    dr_crew *crew = open_holding(held, 0);
    place_slab(crew, SLAB, &slab);
    assert_true(dr__now_ns() >= crew->board->taken_ns + 3000000);
    end_holding(crew, held, 2);
}

/* Each of these would wait for an hour. */
static void only_large_slabs_of_a_known_size_are_waited_for(void **state)
{
    (void)state;
    dr_crew_result held[2];
    dr_crew_block slab;
    dr_crew *crew = open_holding(held, long_ns);
    place_slab(crew, SLAB / 4, &slab);
    end_holding(crew, held, 2);
    crew = open_holding(held, long_ns);
    place_slab(crew, SLAB * 2, &slab); /* what the owner holds would not do */
    end_holding(crew, held, 2);
    crew = open_holding(held, long_ns);
    release(crew, &held[0]);
    place_slab(crew, SLAB, &slab);
    end_holding(crew, &held[1], 1);
}

static void where_batches_are_made_ahead_the_only_one_of_the_owner_is_not_waited_for(void **state)
{
    (void)state;
    for (uint32_t window = 0; window < 3; window += 2) {
        dr_crew_result held;
        dr_crew_block slab;
        dr_crew *crew = open_holding_one(&held, window);
        place_slab(crew, SLAB, &slab);
        end_holding(crew, &held, 1);
    }
}

static void an_owner_that_is_slow_or_waits_itself_is_not_waited_for(void **state)
{
    (void)state;
    dr_crew_result held;
    dr_crew_block slab;
    dr_crew *crew = open_holding_one(&held, 1);
    crew->board->hold_ns = long_ns;
    place_slab(crew, SLAB, &slab);
    end_holding(crew, &held, 1);
    crew = open_holding_one(&held, 1);
    crew->board->ready_waiters++;
    place_slab(crew, SLAB, &slab);
    crew->board->ready_waiters--;
    end_holding(crew, &held, 1);
}

/* --- small blocks --- */

static void small_blocks_leave_the_place_of_a_large_one_whole(void **state)
{
    (void)state;
    dr_crew_block slab;
    dr_crew *crew = open_crew(1, 8, true);
    dr_crew_result held = make_and_take(crew, 0, SLAB);
    const char *pages = dr_crew_block_data(crew, held.slab);
    post(crew, 1, 1); /* behind it */
    release(crew, &held);
    for (uint64_t tag = 2; tag < 6; tag++)
        post(crew, tag, 16);
    claim(crew, 0);
    place_slab(crew, SLAB, &slab);
    assert_same_pages(crew, slab, pages);
    assert_true(done(crew, 0, 0, 1));
    held = next(crew);
    release(crew, &held);
    dr_error err;
    assert_ok(dr_crew_clear(crew, 0, &err));
    end_crew(crew);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_waits_for_what_the_owner_lets_go),
        cmocka_unit_test(an_owner_that_keeps_all_holds_nobody_up),
        cmocka_unit_test(only_large_slabs_of_a_known_size_are_waited_for),
        cmocka_unit_test(a_quick_owner_is_waited_for_where_one_batch_is_made_at_a_time),
        cmocka_unit_test(an_owner_that_holds_batches_for_milliseconds_is_quick),
        cmocka_unit_test(the_time_that_slabs_are_held_is_learnt),
        cmocka_unit_test(where_batches_are_made_ahead_the_only_one_of_the_owner_is_not_waited_for),
        cmocka_unit_test(an_owner_that_is_slow_or_waits_itself_is_not_waited_for),
        cmocka_unit_test(small_blocks_leave_the_place_of_a_large_one_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
