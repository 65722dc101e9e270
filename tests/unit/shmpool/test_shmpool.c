/* Posts to results with workers that do as they should, all in one process. */
#include "unit/shmpool/shmpool_helper.h"

static void a_batch_comes_back_with_its_samples(void **state)
{
    (void)state;
    dr_error err;
    dr_shmpool *shmpool = open_shmpool(2, 4, true);
    dr_shmpool_post_options o = a_post(77, 3);
    o.request = "abc";
    o.request_bytes = 3;
    assert_ok(dr_shmpool_post(shmpool, &o, &err));
    for (uint32_t i = 0; i < 3; i++) {
        dr_shmpool_claim c = claim(shmpool, (int)i % 2);
        assert_int_equal(c.kind, DR_SHMPOOL_WORK);
        assert_int_equal(c.tag, 77);
        assert_int_equal(c.first, i);
        assert_int_equal(c.n, 1);
        assert_false(c.whole);
        assert_memory_equal(c.request, "abc", 3);
        dr_shmpool_block block;
        assert_ok(dr_shmpool_block_new(shmpool, (int)i % 2, 10, &block, &err));
        memset(dr_shmpool_block_data(shmpool, block), 'x', 10);
        bool finish;
        assert_ok(dr_shmpool_done(shmpool, (int)i % 2, 0, 1, block, i == 1, &finish, &c, &err));
        assert_int_equal(finish, i == 2);
        if (finish) {
            assert_int_equal(c.n_slots, 3);
            assert_int_equal(dr_shmpool_block_bytes(shmpool, c.samples[0].block), 10);
            dr_shmpool_block head;
            assert_ok(dr_shmpool_block_new(shmpool, 0, 5, &head, &err));
            assert_ok(dr_shmpool_finish(shmpool, 0, c.batch, head, 5, false, &err));
        }
    }
    dr_shmpool_result r = next(shmpool);
    assert_int_equal(r.tag, 77);
    assert_int_equal(r.n_samples, 3);
    assert_int_equal(r.head_bytes, 5);
    assert_int_equal(r.samples[0].block, 0); /* freed */
    assert_int_equal(r.samples[1].state, DR_SHMPOOL_BAD);
    assert_memory_equal(dr_shmpool_block_data(shmpool, r.samples[1].block), "xxxxxxxxxx", 10);
    release(shmpool, &r);
    assert_int_equal(dr_shmpool_next(shmpool, 0, &r, &err), DR_END);
    end_shmpool(shmpool);
}

static void batches_come_in_the_order_of_posting(void **state)
{
    (void)state;
    dr_error err;
    dr_shmpool *shmpool = open_shmpool(2, 4, true);
    dr_shmpool_result r;
    post(shmpool, 0, 1);
    post(shmpool, 1, 1);
    claim(shmpool, 0);
    claim(shmpool, 1);
    done(shmpool, 1, 0, 1);
    assert_int_equal(dr_shmpool_next(shmpool, 0, &r, &err), DR_AGAIN);
    done(shmpool, 0, 0, 1);
    for (uint64_t tag = 0; tag < 2; tag++) {
        r = next(shmpool);
        assert_int_equal(r.tag, tag);
        assert_int_equal(r.number, tag);
        release(shmpool, &r);
    }
    end_shmpool(shmpool);
}

static void out_of_order_what_is_ready_fills_batches(void **state)
{
    (void)state;
    dr_shmpool *shmpool = open_shmpool(2, 4, false);
    post(shmpool, 0, 2);
    post(shmpool, 1, 2);
    post(shmpool, 2, 1); /* the last is smaller */
    dr_shmpool_post_end(shmpool);
    claim(shmpool, 0); /* slot 0 of post 0 is slow */
    for (int i = 0; i < 4; i++) {
        claim(shmpool, 1);
        assert_int_equal(done(shmpool, 1, 0, 1), i % 2);
    }
    dr_shmpool_result a = next(shmpool), b = next(shmpool);
    assert_int_equal(a.samples[0].tag, 0);
    assert_int_equal(a.samples[0].slot, 1);
    assert_int_equal(a.samples[1].tag, 1);
    assert_int_equal(b.samples[0].tag, 1);
    assert_int_equal(b.samples[1].tag, 2);
    assert_true(done(shmpool, 0, 0, 1));
    dr_shmpool_result c = next(shmpool);
    assert_int_equal(c.n_samples, 1);
    assert_int_equal(c.samples[0].tag, 0);
    release(shmpool, &a);
    release(shmpool, &b);
    release(shmpool, &c);
    end_shmpool(shmpool);
}

static void epochs_do_not_mix(void **state)
{
    (void)state;
    dr_error err;
    dr_shmpool *shmpool = open_shmpool(2, 4, false);
    dr_shmpool_result r;
    post(shmpool, 0, 2);
    dr_shmpool_post_end(shmpool);
    post(shmpool, 1, 2);
    claim(shmpool, 0);
    claim(shmpool, 1);
    done(shmpool, 1, 0, 1);
    claim(shmpool, 1);
    assert_false(done(shmpool, 1, 0, 1));
    assert_int_equal(dr_shmpool_next(shmpool, 0, &r, &err), DR_AGAIN);
    claim(shmpool, 1);
    assert_true(done(shmpool, 1, 0, 1)); /* the batch of the next epoch */
    assert_true(done(shmpool, 0, 0, 1));
    for (uint64_t tag = 0; tag < 2; tag++) {
        r = next(shmpool);
        assert_int_equal(r.samples[0].tag, tag);
        assert_int_equal(r.samples[1].tag, tag);
        release(shmpool, &r);
    }
    end_shmpool(shmpool);
}

static void batches_that_keep_together_do(void **state)
{
    (void)state;
    dr_error err;
    dr_shmpool *shmpool = open_shmpool(2, 4, false);
    dr_shmpool_post_options o = a_post(5, 2);
    o.keep = true;
    assert_ok(dr_shmpool_post(shmpool, &o, &err));
    post(shmpool, 6, 1);
    claim(shmpool, 0);
    claim(shmpool, 1);
    done(shmpool, 1, 0, 1);
    claim(shmpool, 1);
    assert_true(done(shmpool, 1, 0, 1)); /* post 6 is a batch of its own */
    dr_shmpool_result r = next(shmpool);
    assert_int_equal(r.tag, 6);
    release(shmpool, &r);
    done(shmpool, 0, 0, 1);
    r = next(shmpool);
    assert_int_equal(r.tag, 5);
    assert_int_equal(r.samples[1].slot, 1);
    release(shmpool, &r);
    end_shmpool(shmpool);
}

static void a_slab_is_common_to_a_batch(void **state)
{
    (void)state;
    dr_error err;
    dr_shmpool *shmpool = open_shmpool(2, 4, true);
    uint32_t slot;
    dr_shmpool_block a, b, other;
    post(shmpool, 0, 3);
    claim(shmpool, 0);
    claim(shmpool, 1);
    assert_ok(dr_shmpool_place(shmpool, 0, 0, 300, &slot, &a, &err));
    assert_int_equal(slot, 0);
    assert_ok(dr_shmpool_place(shmpool, 1, 0, 300, &slot, &b, &err));
    assert_int_equal(slot, 1);
    assert_true(a && a == b);
    done(shmpool, 0, 0, 1);
    claim(shmpool, 0);
    assert_ok(dr_shmpool_place(shmpool, 0, 0, 400, &slot, &other, &err));
    assert_int_equal(other, 0);
    done(shmpool, 0, 0, 1);
    done(shmpool, 1, 0, 1);
    dr_shmpool_result r = next(shmpool);
    assert_int_equal(r.slab, a);
    assert_int_equal(dr_shmpool_block_bytes(shmpool, r.slab), 300);
    release(shmpool, &r);
    end_shmpool(shmpool);
}

/* place: the first sample asks for its row when it is made; else it is said to be done then. */
static void assert_opened_with_its_first_sample(bool place)
{
    const unsigned ms = 20;
    dr_error err;
    uint32_t slot;
    dr_shmpool_block slab;
    dr_shmpool *shmpool = open_shmpool(1, 4, true);
    post(shmpool, 0, 1);
    claim(shmpool, 0);
    dr_shmpool_begin(shmpool, 0, 0);
    usleep(1000 * ms);
    if (place)
        assert_ok(dr_shmpool_place(shmpool, 0, 0, 64, &slot, &slab, &err));
    done(shmpool, 0, 0, 1);
    dr_shmpool_result r = next(shmpool);
    assert_true(r.ready_ns - r.opened_ns >= ms * 1000000);
    release(shmpool, &r);
    end_shmpool(shmpool);
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
        dr_shmpool *shmpool = open_shmpool(2, 4, in_order);
        dr_shmpool_post_options o = a_post(3, 10);
        o.min_claim_ns = UINT32_MAX;
        assert_ok(dr_shmpool_post(shmpool, &o, &err));
        dr_shmpool_claim c = claim(shmpool, 1);
        assert_true(c.whole);
        assert_int_equal(c.n, 10);
        assert_ok(dr_shmpool_finish(shmpool, 1, c.batch, 0, 0, true, &err));
        dr_shmpool_result r = next(shmpool);
        assert_int_equal(r.worker, 1);
        assert_true(r.failed);
        release(shmpool, &r);
        end_shmpool(shmpool);
    }
}

static void posts_for_one_worker_wait_for_it(void **state)
{
    (void)state;
    dr_error err;
    dr_shmpool *shmpool = open_shmpool(2, 4, true);
    for (uint64_t tag = 0; tag < 3; tag++) {
        dr_shmpool_post_options o = a_post(tag, 1);
        o.worker = 1;
        assert_ok(dr_shmpool_post(shmpool, &o, &err));
    }
    assert_nothing(shmpool, 0);
    for (uint64_t tag = 0; tag < 3; tag++) {
        assert_int_equal(claim(shmpool, 1).tag, tag);
        done(shmpool, 1, 0, 1);
        dr_shmpool_result r = next(shmpool);
        release(shmpool, &r);
    }
    end_shmpool(shmpool);
}

static void no_more_is_posted_than_fits(void **state)
{
    (void)state;
    dr_error err;
    dr_shmpool *shmpool = open_shmpool(1, 2, true);
    dr_shmpool_post_options o = a_post(9, 1);
    post(shmpool, 0, 1);
    post(shmpool, 1, 1);
    assert_int_equal(dr_shmpool_post(shmpool, &o, &err), DR_AGAIN);
    claim(shmpool, 0);
    done(shmpool, 0, 0, 1);
    dr_shmpool_result r = next(shmpool);
    release(shmpool, &r);
    assert_ok(dr_shmpool_post(shmpool, &o, &err));
    assert_ok(dr_shmpool_clear(shmpool, 0, &err));
    end_shmpool(shmpool);
}

static void clearing_waits_for_those_who_are_at_it(void **state)
{
    (void)state;
    dr_error err;
    for (int in_order = 0; in_order < 2; in_order++) {
        dr_shmpool *shmpool = open_shmpool(2, 8, in_order);
        dr_shmpool_result r;
        uint32_t slot;
        dr_shmpool_block slab;
        for (uint64_t tag = 0; tag < 4; tag++)
            post(shmpool, tag, 2);
        claim(shmpool, 0);
        claim(shmpool, 1);
        assert_ok(dr_shmpool_place(shmpool, 1, 0, 100, &slot, &slab, &err));
        assert_int_equal(dr_shmpool_clear(shmpool, 0, &err), DR_AGAIN);
        assert_int_equal(dr_shmpool_next(shmpool, 0, &r, &err), DR_END);
        post(shmpool, 9, 1); /* what is new does not mix with what is given up */
        assert_non_null(dr_shmpool_block_data(shmpool, slab));
        assert_false(done(shmpool, 0, 0, 1));
        assert_false(done(shmpool, 1, 0, 1));
        assert_int_equal(claim(shmpool, 0).tag, 9);
        assert_true(done(shmpool, 0, 0, 1));
        r = next(shmpool);
        assert_int_equal(r.tag, 9);
        release(shmpool, &r);
        assert_ok(dr_shmpool_clear(shmpool, 0, &err));
        end_shmpool(shmpool);
    }
}

static void wrong_calls_say_so(void **state)
{
    (void)state;
    dr_error err;
    dr_shmpool *shmpool = open_shmpool(2, 4, true);
    dr_shmpool_claim c;
    bool finish;
    dr_shmpool_post_options o = a_post(0, 0);
    assert_fails(dr_shmpool_post(shmpool, &o, &err), DR_ERR_ARG, "n_slots must be 1 to 16777216, got 0");
    o = a_post(0, 1);
    o.worker = 2;
    assert_fails(dr_shmpool_post(shmpool, &o, &err), DR_ERR_ARG, "got 2");
    assert_fails(dr_shmpool_claim_next(shmpool, 2, 0, &c, &err), DR_ERR_ARG, "got 2");
    assert_fails(dr_shmpool_done(shmpool, 0, 0, 1, 0, false, &finish, &c, &err), DR_ERR_STATE, "no claim");
    assert_fails(dr_shmpool_finish(shmpool, 0, 0, 0, 0, false, &err), DR_ERR_STATE, "batch 0");
    post(shmpool, 0, 1);
    claim(shmpool, 0);
    assert_fails(dr_shmpool_claim_next(shmpool, 0, 0, &c, &err), DR_ERR_STATE, "before it is done");
    assert_fails(dr_shmpool_done(shmpool, 0, 0, 2, 0, false, &finish, &c, &err), DR_ERR_ARG, "claim of 1");
    assert_ok(dr_shmpool_attach(shmpool, 0, 10, &err));
    assert_fails(dr_shmpool_attach(shmpool, 0, 11, &err), DR_ERR_STATE, "process 10");
    done(shmpool, 0, 0, 1);
    assert_ok(dr_shmpool_clear(shmpool, 0, &err));
    end_shmpool(shmpool);
}

static void numbers_of_no_worker_or_slot_are_ignored(void **state)
{
    (void)state;
    dr_error err;
    dr_shmpool_worker_state at;
    dr_shmpool *shmpool = open_shmpool(2, 4, true);
    const int none[] = { -1, 2, 1 << 30 };
    post(shmpool, 0, 1);
    claim(shmpool, 0);
    for (int i = 0; i < 3; i++) {
        dr_shmpool_dismiss(shmpool, none[i]);
        dr_shmpool_give_up(shmpool, none[i]);
        dr_shmpool_begin(shmpool, none[i], 0);
        assert_int_equal(dr_shmpool_reap(shmpool, none[i], NULL, 0), 0);
    }
    dr_shmpool_begin(shmpool, 0, 1); /* the claim is one slot */
    assert_ok(dr_shmpool_worker_at(shmpool, 0, &at, &err));
    assert_int_equal(at.slot, 0);
    done(shmpool, 0, 0, 1);
    dr_shmpool_result r = next(shmpool);
    release(shmpool, &r);
    end_shmpool(shmpool);
}

static void a_slot_that_is_done_twice_counts_once(void **state)
{
    (void)state;
    dr_error err;
    dr_shmpool_claim c;
    dr_shmpool_worker_state at;
    bool finish;
    dr_shmpool_block block;
    const float costs[] = { 1, 1 };
    dr_shmpool *shmpool = open_shmpool(1, 4, true);
    dr_shmpool_post_options o = a_post(0, 2);
    o.cost_ns = costs;
    o.min_claim_ns = 100;
    assert_ok(dr_shmpool_post(shmpool, &o, &err));
    assert_int_equal(claim(shmpool, 0).n, 2);
    assert_ok(dr_shmpool_block_new(shmpool, 0, 10, &block, &err));
    for (int i = 0; i < 2; i++)
        assert_ok(dr_shmpool_done(shmpool, 0, 0, 1, block, true, &finish, &c, &err));
    assert_int_equal(dr_shmpool_block_bytes(shmpool, block), 10); /* the batch's, not to be freed */
    assert_true(done(shmpool, 0, 1, 1));
    assert_ok(dr_shmpool_worker_at(shmpool, 0, &at, &err));
    assert_int_equal(at.samples, 2);
    dr_shmpool_result r = next(shmpool);
    assert_int_equal(r.samples[0].block, block);
    release(shmpool, &r);
    end_shmpool(shmpool);
}

static void out_of_order_a_finisher_is_at_the_batch_it_was_given(void **state)
{
    (void)state;
    dr_error err;
    dr_shmpool_claim c;
    dr_shmpool_worker_state at;
    bool finish;
    dr_shmpool *shmpool = open_shmpool(2, 4, false);
    post(shmpool, 5, 1);
    post(shmpool, 6, 1);
    claim(shmpool, 0);
    claim(shmpool, 1);
    assert_ok(dr_shmpool_done(shmpool, 1, 0, 1, 0, false, &finish, &c, &err));
    assert_true(finish);
    assert_int_equal(c.tag, 6);
    assert_ok(dr_shmpool_worker_at(shmpool, 1, &at, &err));
    assert_int_equal(at.kind, DR_SHMPOOL_FINISH);
    assert_int_equal(at.tag, 6); /* the sample of post 6 fills the batch that post 5 opened */
    assert_ok(dr_shmpool_finish(shmpool, 1, c.batch, 0, 0, false, &err));
    done(shmpool, 0, 0, 1);
    for (int i = 0; i < 2; i++) {
        dr_shmpool_result r = next(shmpool);
        release(shmpool, &r);
    }
    end_shmpool(shmpool);
}

static void dismissed_workers_leave(void **state)
{
    (void)state;
    dr_error err;
    dr_shmpool *shmpool = open_shmpool(2, 4, true);
    post(shmpool, 0, 1);
    dr_shmpool_dismiss(shmpool, 0);
    assert_int_equal(claim(shmpool, 0).kind, DR_SHMPOOL_LEAVE);
    assert_int_equal(claim(shmpool, 1).kind, DR_SHMPOOL_WORK);
    dr_shmpool_reap(shmpool, 0, NULL, 0);
    assert_ok(dr_shmpool_attach(shmpool, 0, 5, &err)); /* there again */
    assert_nothing(shmpool, 0);
    done(shmpool, 1, 0, 1);
    assert_ok(dr_shmpool_clear(shmpool, 0, &err));
    dr_shmpool_close(shmpool);
    assert_int_equal(claim(shmpool, 1).kind, DR_SHMPOOL_LEAVE);
    dr_shmpool_post_options o = a_post(1, 1);
    assert_fails(dr_shmpool_post(shmpool, &o, &err), DR_ERR_CANCELLED, "closed");
    end_shmpool(shmpool);
}

/* Who starts workers may think better of it before they are there. */
static void workers_may_be_dismissed_before_they_come(void **state)
{
    (void)state;
    dr_error err;
    dr_shmpool *shmpool = open_shmpool(2, 4, true);
    dr_shmpool_dismiss(shmpool, 0);
    assert_ok(dr_shmpool_attach(shmpool, 0, 5, &err));
    assert_int_equal(claim(shmpool, 0).kind, DR_SHMPOOL_LEAVE);
    end_shmpool(shmpool);
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
