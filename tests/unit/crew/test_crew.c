/* Posts to results with workers that do as they should, all in one process. */
#include "unit/crew/crew_helper.h"

static void a_batch_comes_back_with_its_samples(void **state)
{
    (void)state;
    dr_error err;
    dr_crew *crew = open_crew(2, 4, true);
    dr_crew_post_options o = a_post(77, 3);
    o.request = "abc";
    o.request_bytes = 3;
    assert_ok(dr_crew_post(crew, &o, &err));
    for (uint32_t i = 0; i < 3; i++) {
        dr_crew_claim c = claim(crew, (int)i % 2);
        assert_int_equal(c.kind, DR_CREW_WORK);
        assert_int_equal(c.tag, 77);
        assert_int_equal(c.first, i);
        assert_int_equal(c.n, 1);
        assert_false(c.whole);
        assert_memory_equal(c.request, "abc", 3);
        dr_crew_block block;
        assert_ok(dr_crew_block_new(crew, (int)i % 2, 10, &block, &err));
        memset(dr_crew_block_data(crew, block), 'x', 10);
        bool finish;
        assert_ok(dr_crew_done(crew, (int)i % 2, 0, 1, block, i == 1, &finish, &c, &err));
        assert_int_equal(finish, i == 2);
        if (finish) {
            assert_int_equal(c.n_slots, 3);
            assert_int_equal(dr_crew_block_bytes(crew, c.samples[0].block), 10);
            dr_crew_block head;
            assert_ok(dr_crew_block_new(crew, 0, 5, &head, &err));
            assert_ok(dr_crew_finish(crew, 0, c.batch, head, 5, false, &err));
        }
    }
    dr_crew_result r = next(crew);
    assert_int_equal(r.tag, 77);
    assert_int_equal(r.n_samples, 3);
    assert_int_equal(r.head_bytes, 5);
    assert_int_equal(r.samples[0].block, 0); /* freed */
    assert_int_equal(r.samples[1].state, DR_CREW_BAD);
    assert_memory_equal(dr_crew_block_data(crew, r.samples[1].block), "xxxxxxxxxx", 10);
    release(crew, &r);
    assert_int_equal(dr_crew_next(crew, 0, &r, &err), DR_END);
    end_crew(crew);
}

static void batches_come_in_the_order_of_posting(void **state)
{
    (void)state;
    dr_error err;
    dr_crew *crew = open_crew(2, 4, true);
    dr_crew_result r;
    post(crew, 0, 1);
    post(crew, 1, 1);
    claim(crew, 0);
    claim(crew, 1);
    done(crew, 1, 0, 1);
    assert_int_equal(dr_crew_next(crew, 0, &r, &err), DR_AGAIN);
    done(crew, 0, 0, 1);
    for (uint64_t tag = 0; tag < 2; tag++) {
        r = next(crew);
        assert_int_equal(r.tag, tag);
        assert_int_equal(r.number, tag);
        release(crew, &r);
    }
    end_crew(crew);
}

static void out_of_order_what_is_ready_fills_batches(void **state)
{
    (void)state;
    dr_crew *crew = open_crew(2, 4, false);
    post(crew, 0, 2);
    post(crew, 1, 2);
    post(crew, 2, 1); /* the last is smaller */
    dr_crew_post_end(crew);
    claim(crew, 0); /* slot 0 of post 0 is slow */
    for (int i = 0; i < 4; i++) {
        claim(crew, 1);
        assert_int_equal(done(crew, 1, 0, 1), i % 2);
    }
    dr_crew_result a = next(crew), b = next(crew);
    assert_int_equal(a.samples[0].tag, 0);
    assert_int_equal(a.samples[0].slot, 1);
    assert_int_equal(a.samples[1].tag, 1);
    assert_int_equal(b.samples[0].tag, 1);
    assert_int_equal(b.samples[1].tag, 2);
    assert_true(done(crew, 0, 0, 1));
    dr_crew_result c = next(crew);
    assert_int_equal(c.n_samples, 1);
    assert_int_equal(c.samples[0].tag, 0);
    release(crew, &a);
    release(crew, &b);
    release(crew, &c);
    end_crew(crew);
}

static void epochs_do_not_mix(void **state)
{
    (void)state;
    dr_error err;
    dr_crew *crew = open_crew(2, 4, false);
    dr_crew_result r;
    post(crew, 0, 2);
    dr_crew_post_end(crew);
    post(crew, 1, 2);
    claim(crew, 0);
    claim(crew, 1);
    done(crew, 1, 0, 1);
    claim(crew, 1);
    assert_false(done(crew, 1, 0, 1));
    assert_int_equal(dr_crew_next(crew, 0, &r, &err), DR_AGAIN);
    claim(crew, 1);
    assert_true(done(crew, 1, 0, 1)); /* the batch of the next epoch */
    assert_true(done(crew, 0, 0, 1));
    for (uint64_t tag = 0; tag < 2; tag++) {
        r = next(crew);
        assert_int_equal(r.samples[0].tag, tag);
        assert_int_equal(r.samples[1].tag, tag);
        release(crew, &r);
    }
    end_crew(crew);
}

static void batches_that_keep_together_do(void **state)
{
    (void)state;
    dr_error err;
    dr_crew *crew = open_crew(2, 4, false);
    dr_crew_post_options o = a_post(5, 2);
    o.keep = true;
    assert_ok(dr_crew_post(crew, &o, &err));
    post(crew, 6, 1);
    claim(crew, 0);
    claim(crew, 1);
    done(crew, 1, 0, 1);
    claim(crew, 1);
    assert_true(done(crew, 1, 0, 1)); /* post 6 is a batch of its own */
    dr_crew_result r = next(crew);
    assert_int_equal(r.tag, 6);
    release(crew, &r);
    done(crew, 0, 0, 1);
    r = next(crew);
    assert_int_equal(r.tag, 5);
    assert_int_equal(r.samples[1].slot, 1);
    release(crew, &r);
    end_crew(crew);
}

static void a_slab_is_common_to_a_batch(void **state)
{
    (void)state;
    dr_error err;
    dr_crew *crew = open_crew(2, 4, true);
    uint32_t slot;
    dr_crew_block a, b, other;
    post(crew, 0, 3);
    claim(crew, 0);
    claim(crew, 1);
    assert_ok(dr_crew_place(crew, 0, 0, 300, &slot, &a, &err));
    assert_int_equal(slot, 0);
    assert_ok(dr_crew_place(crew, 1, 0, 300, &slot, &b, &err));
    assert_int_equal(slot, 1);
    assert_true(a && a == b);
    done(crew, 0, 0, 1);
    claim(crew, 0);
    assert_ok(dr_crew_place(crew, 0, 0, 400, &slot, &other, &err));
    assert_int_equal(other, 0);
    done(crew, 0, 0, 1);
    done(crew, 1, 0, 1);
    dr_crew_result r = next(crew);
    assert_int_equal(r.slab, a);
    assert_int_equal(dr_crew_block_bytes(crew, r.slab), 300);
    release(crew, &r);
    end_crew(crew);
}

/* place: the first sample asks for its row when it is made; else it is said to be done then. */
static void assert_opened_with_its_first_sample(bool place)
{
    const unsigned ms = 20;
    dr_error err;
    uint32_t slot;
    dr_crew_block slab;
    dr_crew *crew = open_crew(1, 4, true);
    post(crew, 0, 1);
    claim(crew, 0);
    dr_crew_begin(crew, 0, 0);
    usleep(1000 * ms);
    if (place)
        assert_ok(dr_crew_place(crew, 0, 0, 64, &slot, &slab, &err));
    done(crew, 0, 0, 1);
    dr_crew_result r = next(crew);
    assert_true(r.ready_ns - r.opened_ns >= ms * 1000000);
    release(crew, &r);
    end_crew(crew);
}

static void a_batch_is_opened_when_its_first_sample_is_begun(void **state)
{
    (void)state;
    assert_opened_with_its_first_sample(false);
    assert_opened_with_its_first_sample(true);
}

static void a_whole_claim_is_finished_at_once(void **state)
{
    (void)state;
    dr_error err;
    for (int in_order = 0; in_order < 2; in_order++) {
        dr_crew *crew = open_crew(2, 4, in_order);
        dr_crew_post_options o = a_post(3, 10);
        o.min_claim_ns = UINT32_MAX;
        assert_ok(dr_crew_post(crew, &o, &err));
        dr_crew_claim c = claim(crew, 1);
        assert_true(c.whole);
        assert_int_equal(c.n, 10);
        assert_ok(dr_crew_finish(crew, 1, c.batch, 0, 0, true, &err));
        dr_crew_result r = next(crew);
        assert_int_equal(r.worker, 1);
        assert_true(r.failed);
        release(crew, &r);
        end_crew(crew);
    }
}

static void posts_for_one_worker_wait_for_it(void **state)
{
    (void)state;
    dr_error err;
    dr_crew *crew = open_crew(2, 4, true);
    for (uint64_t tag = 0; tag < 3; tag++) {
        dr_crew_post_options o = a_post(tag, 1);
        o.worker = 1;
        assert_ok(dr_crew_post(crew, &o, &err));
    }
    assert_nothing(crew, 0);
    for (uint64_t tag = 0; tag < 3; tag++) {
        assert_int_equal(claim(crew, 1).tag, tag);
        done(crew, 1, 0, 1);
        dr_crew_result r = next(crew);
        release(crew, &r);
    }
    end_crew(crew);
}

static void no_more_is_posted_than_fits(void **state)
{
    (void)state;
    dr_error err;
    dr_crew *crew = open_crew(1, 2, true);
    dr_crew_post_options o = a_post(9, 1);
    post(crew, 0, 1);
    post(crew, 1, 1);
    assert_int_equal(dr_crew_post(crew, &o, &err), DR_AGAIN);
    claim(crew, 0);
    done(crew, 0, 0, 1);
    dr_crew_result r = next(crew);
    release(crew, &r);
    assert_ok(dr_crew_post(crew, &o, &err));
    assert_ok(dr_crew_clear(crew, 0, &err));
    end_crew(crew);
}

static void clearing_waits_for_those_who_are_at_it(void **state)
{
    (void)state;
    dr_error err;
    for (int in_order = 0; in_order < 2; in_order++) {
        dr_crew *crew = open_crew(2, 8, in_order);
        dr_crew_result r;
        uint32_t slot;
        dr_crew_block slab;
        for (uint64_t tag = 0; tag < 4; tag++)
            post(crew, tag, 2);
        claim(crew, 0);
        claim(crew, 1);
        assert_ok(dr_crew_place(crew, 1, 0, 100, &slot, &slab, &err));
        assert_int_equal(dr_crew_clear(crew, 0, &err), DR_AGAIN);
        assert_int_equal(dr_crew_next(crew, 0, &r, &err), DR_END);
        post(crew, 9, 1); /* what is new does not mix with what is given up */
        assert_non_null(dr_crew_block_data(crew, slab));
        assert_false(done(crew, 0, 0, 1));
        assert_false(done(crew, 1, 0, 1));
        assert_int_equal(claim(crew, 0).tag, 9);
        assert_true(done(crew, 0, 0, 1));
        r = next(crew);
        assert_int_equal(r.tag, 9);
        release(crew, &r);
        assert_ok(dr_crew_clear(crew, 0, &err));
        end_crew(crew);
    }
}

static void wrong_calls_say_so(void **state)
{
    (void)state;
    dr_error err;
    dr_crew *crew = open_crew(2, 4, true);
    dr_crew_claim c;
    bool finish;
    dr_crew_post_options o = a_post(0, 0);
    assert_fails(dr_crew_post(crew, &o, &err), DR_ERR_ARG, "0 slots");
    o = a_post(0, 1);
    o.worker = 2;
    assert_fails(dr_crew_post(crew, &o, &err), DR_ERR_ARG, "worker 2");
    assert_fails(dr_crew_claim_next(crew, 2, 0, &c, &err), DR_ERR_ARG, "worker 2");
    assert_fails(dr_crew_done(crew, 0, 0, 1, 0, false, &finish, &c, &err), DR_ERR_STATE, "no claim");
    assert_fails(dr_crew_finish(crew, 0, 0, 0, 0, false, &err), DR_ERR_STATE, "batch 0");
    post(crew, 0, 1);
    claim(crew, 0);
    assert_fails(dr_crew_claim_next(crew, 0, 0, &c, &err), DR_ERR_STATE, "before it is done");
    assert_fails(dr_crew_done(crew, 0, 0, 2, 0, false, &finish, &c, &err), DR_ERR_ARG, "claim of 1");
    assert_ok(dr_crew_enlist(crew, 0, 10, &err));
    assert_fails(dr_crew_enlist(crew, 0, 11, &err), DR_ERR_STATE, "process 10");
    done(crew, 0, 0, 1);
    assert_ok(dr_crew_clear(crew, 0, &err));
    end_crew(crew);
}

static void numbers_of_no_worker_or_slot_are_ignored(void **state)
{
    (void)state;
    dr_error err;
    dr_crew_at at;
    dr_crew *crew = open_crew(2, 4, true);
    const int none[] = { -1, 2, 1 << 30 };
    post(crew, 0, 1);
    claim(crew, 0);
    for (int i = 0; i < 3; i++) {
        dr_crew_dismiss(crew, none[i]);
        dr_crew_give_up(crew, none[i]);
        dr_crew_begin(crew, none[i], 0);
        assert_int_equal(dr_crew_bury(crew, none[i], NULL, 0), 0);
    }
    dr_crew_begin(crew, 0, 1); /* the claim is one slot */
    assert_ok(dr_crew_worker_at(crew, 0, &at, &err));
    assert_int_equal(at.slot, 0);
    done(crew, 0, 0, 1);
    dr_crew_result r = next(crew);
    release(crew, &r);
    end_crew(crew);
}

static void a_slot_that_is_done_twice_counts_once(void **state)
{
    (void)state;
    dr_error err;
    dr_crew_claim c;
    dr_crew_at at;
    bool finish;
    dr_crew_block block;
    const float costs[] = { 1, 1 };
    dr_crew *crew = open_crew(1, 4, true);
    dr_crew_post_options o = a_post(0, 2);
    o.cost_ns = costs;
    o.min_claim_ns = 100;
    assert_ok(dr_crew_post(crew, &o, &err));
    assert_int_equal(claim(crew, 0).n, 2);
    assert_ok(dr_crew_block_new(crew, 0, 10, &block, &err));
    for (int i = 0; i < 2; i++)
        assert_ok(dr_crew_done(crew, 0, 0, 1, block, true, &finish, &c, &err));
    assert_int_equal(dr_crew_block_bytes(crew, block), 10); /* the batch's, not to be freed */
    assert_true(done(crew, 0, 1, 1));
    assert_ok(dr_crew_worker_at(crew, 0, &at, &err));
    assert_int_equal(at.samples, 2);
    dr_crew_result r = next(crew);
    assert_int_equal(r.samples[0].block, block);
    release(crew, &r);
    end_crew(crew);
}

static void out_of_order_a_finisher_is_at_the_batch_it_was_given(void **state)
{
    (void)state;
    dr_error err;
    dr_crew_claim c;
    dr_crew_at at;
    bool finish;
    dr_crew *crew = open_crew(2, 4, false);
    post(crew, 5, 1);
    post(crew, 6, 1);
    claim(crew, 0);
    claim(crew, 1);
    assert_ok(dr_crew_done(crew, 1, 0, 1, 0, false, &finish, &c, &err));
    assert_true(finish);
    assert_int_equal(c.tag, 6);
    assert_ok(dr_crew_worker_at(crew, 1, &at, &err));
    assert_int_equal(at.kind, DR_CREW_FINISH);
    assert_int_equal(at.tag, 6); /* the sample of post 6 fills the batch that post 5 opened */
    assert_ok(dr_crew_finish(crew, 1, c.batch, 0, 0, false, &err));
    done(crew, 0, 0, 1);
    for (int i = 0; i < 2; i++) {
        dr_crew_result r = next(crew);
        release(crew, &r);
    }
    end_crew(crew);
}

static void dismissed_workers_leave(void **state)
{
    (void)state;
    dr_error err;
    dr_crew *crew = open_crew(2, 4, true);
    post(crew, 0, 1);
    dr_crew_dismiss(crew, 0);
    assert_int_equal(claim(crew, 0).kind, DR_CREW_LEAVE);
    assert_int_equal(claim(crew, 1).kind, DR_CREW_WORK);
    dr_crew_bury(crew, 0, NULL, 0);
    assert_ok(dr_crew_enlist(crew, 0, 5, &err)); /* there again */
    assert_nothing(crew, 0);
    done(crew, 1, 0, 1);
    assert_ok(dr_crew_clear(crew, 0, &err));
    dr_crew_close(crew);
    assert_int_equal(claim(crew, 1).kind, DR_CREW_LEAVE);
    dr_crew_post_options o = a_post(1, 1);
    assert_fails(dr_crew_post(crew, &o, &err), DR_ERR_CANCELLED, "closed");
    end_crew(crew);
}

/* Who starts workers may think better of it before they are there. */
static void workers_may_be_dismissed_before_they_come(void **state)
{
    (void)state;
    dr_error err;
    dr_crew *crew = open_crew(2, 4, true);
    dr_crew_dismiss(crew, 0);
    assert_ok(dr_crew_enlist(crew, 0, 5, &err));
    assert_int_equal(claim(crew, 0).kind, DR_CREW_LEAVE);
    end_crew(crew);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_comes_back_with_its_samples),
        cmocka_unit_test(batches_come_in_the_order_of_posting),
        cmocka_unit_test(out_of_order_what_is_ready_fills_batches),
        cmocka_unit_test(epochs_do_not_mix),
        cmocka_unit_test(batches_that_keep_together_do),
        cmocka_unit_test(a_slab_is_common_to_a_batch),
        cmocka_unit_test(a_batch_is_opened_when_its_first_sample_is_begun),
        cmocka_unit_test(a_whole_claim_is_finished_at_once),
        cmocka_unit_test(posts_for_one_worker_wait_for_it),
        cmocka_unit_test(no_more_is_posted_than_fits),
        cmocka_unit_test(clearing_waits_for_those_who_are_at_it),
        cmocka_unit_test(wrong_calls_say_so),
        cmocka_unit_test(numbers_of_no_worker_or_slot_are_ignored),
        cmocka_unit_test(a_slot_that_is_done_twice_counts_once),
        cmocka_unit_test(out_of_order_a_finisher_is_at_the_batch_it_was_given),
        cmocka_unit_test(dismissed_workers_leave),
        cmocka_unit_test(workers_may_be_dismissed_before_they_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
