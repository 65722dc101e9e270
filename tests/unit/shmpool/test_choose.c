/* Which slots a worker gets: runs, lanes, windows, displacement. */
#include "unit/shmpool/shmpool_helper.h"

#include "base/compiler.h"
#include "shmpool/shared.h"

static void post_costs(dr_shmpool *shmpool, uint64_t tag, uint32_t n, const float *cost_ns, uint32_t min_claim_ns)
{
    dr_error err;
    dr_shmpool_post_options o = a_post(tag, n);
    o.cost_ns = cost_ns;
    o.min_claim_ns = min_claim_ns;
    assert_ok(dr_shmpool_post(shmpool, &o, &err));
}

static void give_up_all(dr_shmpool *shmpool)
{
    dr_error err;
    for (int i = 0; i < (int)shmpool->board->max_workers; i++)
        dr_shmpool_reap(shmpool, i, NULL, 0);
    assert_ok(dr_shmpool_clear(shmpool, 0, &err));
    end_shmpool(shmpool);
}

static void attach(dr_shmpool *shmpool, int n)
{
    dr_error err;
    for (int i = 0; i < n; i++)
        assert_ok(dr_shmpool_attach(shmpool, i, 1000 + i, &err));
}

/* --- runs --- */

static void cheap_samples_are_claimed_in_runs(void **state)
{
    (void)state;
    dr_shmpool *shmpool = open_shmpool(2, 8, true);
    const float costs[] = { 100, 100, 300, 100, 100, 100, 100, 5000 };
    post_costs(shmpool, 0, 8, costs, 500);
    dr_shmpool_claim c = claim(shmpool, 0);
    assert_int_equal(c.first, 0);
    assert_int_equal(c.n, 3); /* 100 + 100 + 300 */
    assert_false(c.whole);
    c = claim(shmpool, 1);
    assert_int_equal(c.first, 3);
    assert_int_equal(c.n, 4);
    done(shmpool, 1, 0, 4);
    c = claim(shmpool, 1);
    assert_int_equal(c.first, 7); /* too long by itself, but at least one */
    assert_int_equal(c.n, 1);
    give_up_all(shmpool);
}

static void unknown_costs_are_taken_one_by_one_at_first(void **state)
{
    (void)state;
    dr_shmpool *shmpool = open_shmpool(1, 8, true);
    post_costs(shmpool, 0, 8, NULL, 1000000);
    assert_int_equal(claim(shmpool, 0).n, 1);
    done(shmpool, 0, 0, 1);
    shmpool->board->times = (struct dr__times){ .count = 1, .sum_ns = 300000 }; /* as if it had taken so long */
    assert_int_equal(claim(shmpool, 0).n, 3);
    give_up_all(shmpool);
}

/* It pays for what is loaded and copied at a worker's start: claims would be too small for long. */
static void a_workers_first_sample_is_no_measure(void **state)
{
    (void)state;
    dr_shmpool *shmpool = open_shmpool(2, 8, true);
    post_costs(shmpool, 0, 8, NULL, 4000000000);
    for (uint64_t seen = 0; seen < 2; seen++) {
        assert_int_equal(claim(shmpool, 0).n, 1);
        done(shmpool, 0, 0, 1);
        assert_int_equal(shmpool->board->times.count, seen);
    }
    assert_int_equal(claim(shmpool, 1).n, 6);
    done(shmpool, 1, 0, 6); /* each worker has a first one */
    assert_int_equal(shmpool->board->times.count, 1);
    dr_shmpool_reap(shmpool, 0, NULL, 0);
    attach(shmpool, 1); /* another process */
    post_costs(shmpool, 1, 2, NULL, 4000000000);
    const uint32_t n = claim(shmpool, 0).n;
    done(shmpool, 0, 0, n);
    assert_int_equal(shmpool->board->times.count, 1);
    give_up_all(shmpool);
}

static void a_run_of_all_slots_is_whole(void **state)
{
    (void)state;
    const float costs[] = { 1, 1, 1, 1 };
    for (int in_order = 0; in_order < 2; in_order++) {
        dr_shmpool *shmpool = open_shmpool(1, 8, in_order);
        post_costs(shmpool, 0, 4, costs, 1000);
        dr_shmpool_claim c = claim(shmpool, 0);
        assert_int_equal(c.n, 4);
        assert_int_equal(c.whole, in_order); /* out of order its samples may go to two batches */
        give_up_all(shmpool);
    }
}

/* --- lanes --- */

static const float mixed[] = { 10, 900, 10, 10, 800, 10, 700, 10 };

static void slow_slots_are_started_early_longest_first(void **state)
{
    (void)state;
    dr_shmpool *shmpool = open_shmpool(4, 8, true);
    attach(shmpool, 4);
    dr_shmpool_set_threshold(shmpool, 100);
    const float fast[] = { 10, 10, 10, 10, 10, 10, 10, 10 };
    post_costs(shmpool, 0, 8, fast, 10);
    post_costs(shmpool, 1, 8, mixed, 10);
    uint32_t slow[] = { 1, 4, 6 };
    for (int i = 0; i < 3; i++) { /* most of the work is slow, but one worker stays for the fast ones */
        dr_shmpool_claim c = claim(shmpool, i);
        assert_int_equal(c.tag, 1);
        assert_int_equal(c.first, slow[i]);
        assert_int_equal(c.n, 1);
    }
    assert_int_equal(claim(shmpool, 3).tag, 0);
    assert_int_equal(counter(shmpool, "slow_workers"), 3);
    give_up_all(shmpool);
}

/* The main process waits for the oldest batch: a longer sample of a later one does not overtake it. */
static void in_order_slow_slots_of_the_oldest_batch_come_first(void **state)
{
    (void)state;
    const float costs[][2] = { { 200, 300 }, { 800, 900 }, { 500, 10 } };
    const uint32_t in_turn[][2] = { { 0, 1 }, { 0, 0 }, { 1, 1 }, { 1, 0 }, { 2, 0 } };
    dr_shmpool *shmpool = open_shmpool(2, 8, true);
    attach(shmpool, 2);
    dr_shmpool_set_threshold(shmpool, 100);
    for (uint64_t tag = 0; tag < 3; tag++)
        post_costs(shmpool, tag, 2, costs[tag], 10);
    for (int i = 0; i < 5; i++) {
        dr_shmpool_claim c = claim(shmpool, 0);
        assert_int_equal(c.tag, in_turn[i][0]);
        assert_int_equal(c.first, in_turn[i][1]);
        done(shmpool, 0, 0, 1);
    }
    assert_int_equal(claim(shmpool, 1).tag, 2);
    give_up_all(shmpool);
}

static void a_worker_alone_makes_one_batch_after_the_other(void **state)
{
    (void)state;
    const float costs[] = { 10, 900, 10 };
    const uint32_t in_turn[] = { 0, 2, 1 };
    dr_shmpool *shmpool = open_shmpool(2, 8, true);
    attach(shmpool, 1);
    dr_shmpool_set_threshold(shmpool, 100);
    for (uint64_t tag = 0; tag < 3; tag++)
        post_costs(shmpool, tag, 3, costs, 10);
    for (uint32_t i = 0; i < 9; i++) {
        dr_shmpool_claim c = claim(shmpool, 0);
        assert_int_equal(c.tag, i / 3);
        assert_int_equal(c.first, in_turn[i % 3]);
        done(shmpool, 0, 0, 1);
    }
    give_up_all(shmpool);
}

static void take(dr_shmpool *shmpool)
{
    dr_shmpool_result r = next(shmpool);
    release(shmpool, &r);
}

/* The pass is not at its beginning any more. */
static void take_some(dr_shmpool *shmpool)
{
    for (uint64_t tag = 90; tag < 94; tag++) {
        post(shmpool, tag, 1);
        claim(shmpool, 0);
        done(shmpool, 0, 0, 1);
        take(shmpool);
    }
}

static void out_of_order_the_longest_of_all_comes_first(void **state)
{
    (void)state;
    const float costs[][2] = { { 200, 300 }, { 800, 10 } };
    dr_shmpool *shmpool = open_shmpool(2, 8, false);
    attach(shmpool, 2);
    dr_shmpool_set_threshold(shmpool, 100);
    take_some(shmpool);
    for (uint64_t tag = 0; tag < 2; tag++)
        post_costs(shmpool, tag, 2, costs[tag], 10);
    assert_int_equal(claim(shmpool, 0).tag, 1);
    assert_int_equal(claim(shmpool, 1).first, 1);
    give_up_all(shmpool);
}

/* A slot of that cost is claimed and done by a worker. */
static void expect_cost(dr_shmpool *shmpool, const float costs[][2], float cost)
{
    dr_shmpool_claim c = claim(shmpool, 0);
    assert_true(costs[c.tag][c.first] == cost);
    done(shmpool, 0, 0, c.n);
}

static void out_of_order_a_pass_begins_with_the_shortest(void **state)
{
    (void)state;
    dr_error err;
    const float costs[][2] = { { 200, 10 }, { 300, 20 }, { 400, 30 }, { 500, 40 }, { 600, 50 },
                               { 700, 60 }, { 800, 70 }, { 900, 0 },  { 99, 80 } };
    dr_shmpool *shmpool = open_shmpool(2, DR_COUNT(costs), false);
    attach(shmpool, 2);
    dr_shmpool_set_threshold(shmpool, 100);
    for (int pass = 0; pass < 2; pass++) { /* the second with the same workers */
        for (uint64_t tag = 0; tag < DR_COUNT(costs); tag++)
            post_costs(shmpool, tag, 2, costs[tag], 10);
        for (int i = 0; i < 4; i++) {
            expect_cost(shmpool, costs, (float)(10 + 20 * i));
            expect_cost(shmpool, costs, (float)(20 + 20 * i));
            if (i < 3)
                take(shmpool);
        }
        expect_cost(shmpool, costs, 900); /* there is a batch to take: the longest */
        expect_cost(shmpool, costs, 800);
        take(shmpool);
        take(shmpool);
        expect_cost(shmpool, costs, 700); /* these were the fourth and the fifth */
        assert_ok(dr_shmpool_clear(shmpool, 0, &err));
    }
    end_shmpool(shmpool);
}

static void short_slots_are_claimed_in_runs_from_the_beginning(void **state)
{
    (void)state;
    const float costs[] = { 90, 50, 30, 10 };
    dr_shmpool *shmpool = open_shmpool(2, 8, false);
    attach(shmpool, 2);
    dr_shmpool_set_threshold(shmpool, 100);
    post_costs(shmpool, 0, 4, costs, 200);
    dr_shmpool_claim c = claim(shmpool, 0);
    assert_int_equal(c.first, 0);
    assert_int_equal(c.n, 4);
    give_up_all(shmpool);
}

/* And not with the longest, as if there were no short ones to begin with. */
static void out_of_order_a_pass_begins_with_runs_around_the_shortest(void **state)
{
    (void)state;
    const float costs[][4] = { { 900, 90, 300, 80 }, { 90, 150, 5, 20 } };
    dr_shmpool *shmpool = open_shmpool(2, 8, false);
    attach(shmpool, 2);
    dr_shmpool_set_threshold(shmpool, 500);
    for (uint64_t tag = 0; tag < DR_COUNT(costs); tag++)
        post_costs(shmpool, tag, 4, costs[tag], 200);
    dr_shmpool_claim c = claim(shmpool, 0);
    assert_int_equal(c.tag, 1);
    assert_int_equal(c.first, 1); /* 150 + 5 + 20 */
    assert_int_equal(c.n, 3);
    c = claim(shmpool, 1);
    assert_int_equal(c.tag, 0);
    assert_int_equal(c.first, 3); /* 80, as 300 does not fit */
    assert_int_equal(c.n, 1);
    give_up_all(shmpool);
}

static void slow_slots_are_claimed_one_at_a_time_from_the_beginning(void **state)
{
    (void)state;
    const float costs[] = { 20, 10, 15, 3 };
    dr_shmpool *shmpool = open_shmpool(2, 8, false);
    attach(shmpool, 2);
    dr_shmpool_set_threshold(shmpool, 5);
    post_costs(shmpool, 0, 3, costs, 200);
    dr_shmpool_claim c = claim(shmpool, 0);
    assert_int_equal(c.first, 1);
    assert_int_equal(c.n, 1);
    post_costs(shmpool, 1, 4, costs, 200);
    c = claim(shmpool, 1);
    assert_int_equal(c.tag, 1);
    assert_int_equal(c.first, 3); /* the only fast one: its neighbours are slow */
    assert_int_equal(c.n, 1);
    give_up_all(shmpool);
}

/* Else its post would hold back all others in the end, with workers idle. */
static void out_of_order_a_slot_that_is_late_goes_before_longer_ones(void **state)
{
    (void)state;
    dr_error err;
    dr_shmpool_options o;
    dr_shmpool *shmpool;
    dr_shmpool_defaults(&o);
    o.max_workers = 2;
    o.max_batches = 16;
    o.address_space = 1 << 20;
    o.in_order = false;
    o.reorder_window = 8;
    assert_ok(dr_shmpool_open(&o, &shmpool, &err));
    attach(shmpool, 2);
    dr_shmpool_set_threshold(shmpool, 100);
    take_some(shmpool);
    const float shorter = 200, longer = 900;
    post_costs(shmpool, 0, 1, &shorter, 10);
    for (uint64_t tag = 1; tag < 12; tag++)
        post_costs(shmpool, tag, 1, &longer, 10);
    const uint64_t in_turn[] = { 1, 2, 3, 4, 5, 0, 6, 7, 8, 9, 10, 11 };
    for (int i = 0; i < 12; i++) {
        assert_int_equal(claim(shmpool, 0).tag, in_turn[i]);
        done(shmpool, 0, 0, 1);
    }
    give_up_all(shmpool);
}

static void workers_at_slow_slots_are_limited_to_their_part(void **state)
{
    (void)state;
    dr_shmpool *shmpool = open_shmpool(4, 8, true);
    attach(shmpool, 4);
    dr_shmpool_set_threshold(shmpool, 100000000000); /* long enough that no worker is late here */
    const float costs[] = { 90e9f, 90e9f, 90e9f, 90e9f, 90e9f, 90e9f, 90e9f, 90e9f, 110e9f, 120e9f };
    post_costs(shmpool, 0, 10, costs, 10);
    assert_int_equal(claim(shmpool, 0).first, 9); /* 230 s of 950 s: one of four */
    assert_int_equal(claim(shmpool, 1).first, 0);
    assert_int_equal(claim(shmpool, 2).first, 1);
    done(shmpool, 0, 0, 1);
    assert_int_equal(claim(shmpool, 0).first, 8);
    give_up_all(shmpool);
}

static void idle_workers_help_with_slow_slots(void **state)
{
    (void)state;
    dr_shmpool *shmpool = open_shmpool(2, 8, true);
    attach(shmpool, 2);
    dr_shmpool_set_threshold(shmpool, 100);
    const float costs[] = { 200, 300 };
    post_costs(shmpool, 0, 2, costs, 10);
    assert_int_equal(claim(shmpool, 0).first, 1);
    assert_int_equal(claim(shmpool, 1).first, 0);
    give_up_all(shmpool);
}

static void without_lanes_or_others_order_is_kept(void **state)
{
    (void)state;
    dr_error err;
    dr_shmpool_options o;
    dr_shmpool *shmpool;
    for (int lanes = 0; lanes < 2; lanes++) {
        dr_shmpool_defaults(&o);
        o.max_workers = 2;
        o.address_space = 1 << 20;
        o.lanes = lanes;
        assert_ok(dr_shmpool_open(&o, &shmpool, &err));
        attach(shmpool, lanes ? 1 : 2); /* one worker alone has no lanes */
        dr_shmpool_set_threshold(shmpool, 100);
        const float costs[] = { 10, 900 };
        post_costs(shmpool, 0, 2, costs, 10);
        assert_int_equal(claim(shmpool, 0).first, 0);
        give_up_all(shmpool);
    }
}

/* --- windows and displacement --- */

static void the_window_holds_back_what_is_later(void **state)
{
    (void)state;
    for (int in_order = 0; in_order < 2; in_order++) {
        dr_shmpool *shmpool = open_shmpool(2, 8, in_order);
        dr_shmpool_set_window(shmpool, 2, 0);
        for (uint64_t tag = 0; tag < 4; tag++)
            post(shmpool, tag, 2);
        for (int i = 0; i < 4; i++) {
            claim(shmpool, 0);
            done(shmpool, 0, 0, 1);
        }
        assert_nothing(shmpool, 0); /* two are ready */
        dr_shmpool_result r = next(shmpool);
        release(shmpool, &r);
        assert_int_equal(claim(shmpool, 0).tag, 2);
        assert_int_equal(claim(shmpool, 1).tag, 2);
        give_up_all(shmpool);
    }
}

static void slow_slots_do_not_begin_batches_outside_the_window(void **state)
{
    (void)state;
    const float costs[][2] = { { 10, 10 }, { 10, 900 } };
    dr_shmpool *shmpool = open_shmpool(3, 8, true);
    attach(shmpool, 3);
    dr_shmpool_set_threshold(shmpool, 100);
    dr_shmpool_set_window(shmpool, 1, 0);
    for (uint64_t tag = 0; tag < 2; tag++)
        post_costs(shmpool, tag, 2, costs[tag], 10);
    assert_int_equal(claim(shmpool, 0).tag, 0);
    assert_int_equal(claim(shmpool, 1).tag, 0);
    assert_nothing(shmpool, 2);
    done(shmpool, 0, 0, 1);
    done(shmpool, 1, 0, 1);
    assert_nothing(shmpool, 2);
    dr_shmpool_result r = next(shmpool);
    release(shmpool, &r);
    assert_int_equal(claim(shmpool, 2).first, 1);
    give_up_all(shmpool);
}

static void one_batch_always_goes_on(void **state)
{
    (void)state;
    for (int in_order = 0; in_order < 2; in_order++) {
        dr_shmpool *shmpool = open_shmpool(2, 8, in_order);
        dr_shmpool_set_window(shmpool, 0, 1); /* what was posted takes more than that */
        for (uint64_t tag = 0; tag < 3; tag++)
            post(shmpool, tag, 2);
        for (uint64_t tag = 0; tag < 3; tag++) {
            assert_int_equal(claim(shmpool, 0).tag, tag);
            assert_int_equal(claim(shmpool, 1).tag, tag);
            assert_false(done(shmpool, 0, 0, 1));
            assert_nothing(shmpool, 0);
            assert_true(done(shmpool, 1, 0, 1));
            assert_nothing(shmpool, 0); /* until the main process took it */
            dr_shmpool_result r = next(shmpool);
            release(shmpool, &r);
        }
        end_shmpool(shmpool);
    }
}

static void a_place_that_was_taken_is_always_filled(void **state)
{
    (void)state;
    dr_error err;
    uint32_t slot;
    dr_shmpool_block slab;
    dr_shmpool *shmpool = open_shmpool(2, 8, false);
    attach(shmpool, 2);
    dr_shmpool_set_window(shmpool, 1, 0);
    post(shmpool, 0, 2);
    post(shmpool, 1, 2);
    claim(shmpool, 0); /* slot 0 goes on for long */
    claim(shmpool, 1);
    assert_ok(dr_shmpool_place(shmpool, 1, 0, 0, &slot, &slab, &err));
    assert_int_equal(slot, 0);
    dr_shmpool_reap(shmpool, 1, NULL, 0); /* has a place, but is not done */
    dr_shmpool_claim c = claim(shmpool, 1);
    assert_int_equal(c.tag, 0);
    assert_int_equal(c.first, 1);
    assert_ok(dr_shmpool_place(shmpool, 1, 0, 0, &slot, &slab, &err));
    assert_int_equal(slot, 0);
    assert_false(done(shmpool, 1, 0, 1));
    assert_true(done(shmpool, 0, 0, 1));
    dr_shmpool_result r = next(shmpool);
    assert_int_equal(r.samples[0].slot, 1);
    assert_int_equal(r.samples[0].attempts, 2);
    release(shmpool, &r);
    give_up_all(shmpool);
}

static void displacement_is_bounded(void **state)
{
    (void)state;
    enum { AHEAD = 32 };
    dr_shmpool *shmpool = open_shmpool(2, 4, false); /* far fewer than may be ahead */
    for (uint64_t tag = 0; tag < 3; tag++)
        post(shmpool, tag, 1);
    assert_int_equal(claim(shmpool, 0).tag, 0);
    for (uint64_t tag = 1; tag <= AHEAD; tag++) {
        post(shmpool, tag + 2, 1);
        assert_int_equal(claim(shmpool, 1).tag, tag);
        done(shmpool, 1, 0, 1);
        dr_shmpool_result r = next(shmpool);
        release(shmpool, &r);
    }
    assert_nothing(shmpool, 1);
    done(shmpool, 0, 0, 1);
    assert_int_equal(claim(shmpool, 1).tag, AHEAD + 1);
    give_up_all(shmpool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cheap_samples_are_claimed_in_runs),
        cmocka_unit_test(unknown_costs_are_taken_one_by_one_at_first),
        cmocka_unit_test(a_workers_first_sample_is_no_measure),
        cmocka_unit_test(a_run_of_all_slots_is_whole),
        cmocka_unit_test(slow_slots_are_started_early_longest_first),
        cmocka_unit_test(in_order_slow_slots_of_the_oldest_batch_come_first),
        cmocka_unit_test(a_worker_alone_makes_one_batch_after_the_other),
        cmocka_unit_test(out_of_order_the_longest_of_all_comes_first),
        cmocka_unit_test(out_of_order_a_pass_begins_with_the_shortest),
        cmocka_unit_test(out_of_order_a_pass_begins_with_runs_around_the_shortest),
        cmocka_unit_test(slow_slots_are_claimed_one_at_a_time_from_the_beginning),
        cmocka_unit_test(short_slots_are_claimed_in_runs_from_the_beginning),
        cmocka_unit_test(out_of_order_a_slot_that_is_late_goes_before_longer_ones),
        cmocka_unit_test(workers_at_slow_slots_are_limited_to_their_part),
        cmocka_unit_test(idle_workers_help_with_slow_slots),
        cmocka_unit_test(without_lanes_or_others_order_is_kept),
        cmocka_unit_test(the_window_holds_back_what_is_later),
        cmocka_unit_test(slow_slots_do_not_begin_batches_outside_the_window),
        cmocka_unit_test(one_batch_always_goes_on),
        cmocka_unit_test(a_place_that_was_taken_is_always_filled),
        cmocka_unit_test(displacement_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
