/* An order that the caller gives: batches of any size, in and out of order, gone on with, and every mistake named. */
#include "unit/loader/toy.h"

#include <pthread.h>
#include <unistd.h>

#include "loader/loader_internal.h"

static dr_error err;
static const char crops[] = "{\"op\":\"random_crop\",\"params\":{\"size\":[5,4]}},{\"op\":\"random_horizontal_flip\"}";

static dr_loader_options given_options(uint64_t batch_size, int workers)
{
    dr_loader_options o = options_of(batch_size, workers);
    o.pushed_order = true;
    o.seed = 3;
    return o;
}

static void push(dr_loader *l, const uint64_t *ids, uint64_t n)
{
    assert_ok(dr_loader_push(l, ids, n, &err));
}

/* Pushes 0 .. n - 1 in reverse, in batches of 1, 2, ... `most`, 1, 2, ...; how many batches that are. */
static size_t push_stairs(dr_loader *l, uint64_t n, uint64_t most)
{
    uint64_t ids[64], at = 0;
    size_t batches = 0;
    for (uint64_t size = 1; at < n; size = size % most + 1, batches++) {
        uint64_t k = 0;
        for (; k < size && at < n; k++)
            ids[k] = n - 1 - at++;
        push(l, ids, k);
    }
    return batches;
}

static void as_pushed(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 100 });
    dr_graph *g = graph_of(crops);
    tape first = { 0 };
    for (int workers = 0; workers <= 3; workers++) {
        dr_loader_options o = given_options(4, workers); /* smaller than what is pushed */
        dr_loader *l = open_loader(set, g, &o);
        tape t = { 0 };
        assert_ok(dr_loader_start(l, 9, &err));
        size_t n = push_stairs(l, 100, 7);
        assert_ok(dr_loader_push_end(l, &err));
        assert_int_equal(dr_loader_batches(l), n);
        tape_read(&t, l, -1);
        assert_int_equal(t.n, n);
        for (uint64_t b = 0, at = 0; b < n; b++)
            for (uint64_t k = 0; k < t.batches[b].n; k++, at++) {
                assert_int_equal(t.batches[b].ids[k], 99 - at);
                assert_int_equal(t.batches[b].positions[k], at);
                assert_int_equal(t.batches[b].number, b);
                assert_int_equal(t.batches[b].epoch, 9);
            }
        if (workers == 0)
            first = t;
        else
            assert_same_tape(&first, &t, "workers");
        if (workers > 0)
            tape_free(&t);
        dr_loader_close(&l);
    }
    tape_free(&first);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* The bytes are those of the same samples in the loader's own order. */
static void same_samples_as_own_order(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 24 });
    dr_graph *g = graph_of(crops);
    dr_loader_options o = options_of(8, 2);
    o.shuffle = true;
    o.seed = 3;
    tape want = epoch_of(set, g, &o), got = { 0 };
    o = given_options(8, 2);
    dr_loader *l = open_loader(set, g, &o);
    assert_ok(dr_loader_start(l, 0, &err));
    for (size_t i = 0; i < want.n; i++)
        push(l, want.batches[i].ids, want.batches[i].n);
    assert_ok(dr_loader_push_end(l, &err));
    tape_read(&got, l, -1);
    assert_same_tape(&want, &got, "given what it would have drawn");
    tape_free(&want);
    tape_free(&got);
    dr_loader_close(&l);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void out_of_order_fills_batches(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 90, .slow_every = 11, .slow_us = 500 });
    dr_graph *g = graph_of(NULL);
    for (int workers = 0; workers <= 4; workers += 2) {
        dr_loader_options o = given_options(8, workers);
        o.in_order = false;
        dr_loader *l = open_loader(set, g, &o);
        for (uint64_t epoch = 0; epoch < 2; epoch++) {
            tape t = { 0 };
            assert_ok(dr_loader_start(l, epoch, &err));
            push_stairs(l, 90, 5);
            assert_ok(dr_loader_push_end(l, &err));
            tape_read(&t, l, -1);
            assert_each_once(&t, 90);
            assert_int_equal(t.n, 12);
            uint64_t smaller = 0;
            for (size_t i = 0; i < t.n; i++) {
                smaller += t.batches[i].n < 8;
                for (uint64_t k = 0; k < t.batches[i].n; k++) /* a position names the same sample wherever it came */
                    assert_int_equal(t.batches[i].ids[k], 89 - t.batches[i].positions[k]);
            }
            assert_int_equal(smaller, 1);
            tape_free(&t);
        }
        dr_loader_close(&l);
    }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void kept_batches_stay_together(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 200, .slow_every = 23, .slow_us = 3000 });
    dr_graph *g = graph_of(NULL);
    for (int workers = 0; workers <= 4; workers += 2) {
        dr_loader_options o = given_options(4, workers);
        o.in_order = false;
        o.keep_batches = true;
        o.prefetch = 3;
        dr_loader *l = open_loader(set, g, &o);
        tape t = { 0 };
        assert_ok(dr_loader_start(l, 0, &err));
        size_t n = push_stairs(l, 200, 4);
        assert_ok(dr_loader_push_end(l, &err));
        tape_read(&t, l, -1);
        assert_int_equal(t.n, n);
        assert_each_once(&t, 200);
        for (size_t i = 0; i < n; i++) {
            const taped_batch *b = &t.batches[i];
            assert_true(labs((long)b->number - (long)i) < 3); /* displaced within the window */
            for (uint64_t k = 1; k < b->n; k++)
                assert_int_equal(b->positions[k], b->positions[0] + k);
        }
        tape_free(&t);
        dr_loader_close(&l);
    }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* What was drawn for each of n batches of one sample. */
static void read_draws(dr_loader *l, char **draws, int n)
{
    assert_ok(dr_loader_push_end(l, &err));
    for (int i = 0; i < n; i++) {
        dr_batch *b = NULL;
        assert_ok(dr_loader_next(l, -1, &b, &err));
        assert_ok(dr_batch_draws(b, 0, &draws[i], &err));
        dr_batch_unref(&b);
    }
}

/* A sample that comes again draws anew, the n-th time always the same. */
static void repeats_draw_anew(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 300, .h = 40, .w = 40 });
    dr_graph *g = graph_of(crops);
    dr_loader_options o = given_options(1, 2);
    o.keep_draws = true;
    dr_loader *l = open_loader(set, g, &o);
    char *draws[200];
    assert_ok(dr_loader_start(l, 0, &err));
    for (uint64_t i = 0; i < 200; i++) {
        const uint64_t id = i % 2 ? 7 : 299 - i % 5;
        push(l, &id, 1);
    }
    read_draws(l, draws, 200);
    dr_runner *r = NULL;
    assert_ok(dr_runner_open(set, g, NULL, NULL, false, &r, &err));
    for (uint32_t i = 0; i < 100; i++) {
        char *want = NULL;
        assert_ok(dr_runner_run(r, &(dr_sample_name){ 3, 0, 7, i }, &err));
        assert_ok(dr_runner_draws(r, &want, &err));
        assert_string_equal(draws[2 * i + 1], want);
        dr_text_free(&want);
    }
    for (int i = 0; i < 200; i++)
        dr_text_free(&draws[i]);
    dr_runner_free(&r);
    dr_loader_close(&l);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* An epoch that is made again in another order: each time of a sample draws what it drew. */
static void times_may_be_told(void **state)
{
    (void)state;
    enum { TIMES = 6 };
    dr_dataset *set = toy_set(&(toy){ .n = 3, .h = 40, .w = 40 });
    dr_graph *g = graph_of(crops);
    dr_loader_options o = given_options(1, 2);
    o.keep_draws = true;
    dr_loader *l = open_loader(set, g, &o);
    char *first[TIMES], *again[TIMES];
    const uint64_t id = 2;
    assert_ok(dr_loader_start(l, 0, &err));
    for (int i = 0; i < TIMES; i++)
        push(l, &id, 1);
    read_draws(l, first, TIMES);
    assert_ok(dr_loader_start(l, 0, &err));
    for (uint64_t i = TIMES; i-- > 0;)
        assert_ok(dr_loader_push_occurrences(l, &id, &i, 1, &err));
    assert_fails(dr_loader_push_occurrences(l, &id, (const uint64_t[]){ 1u << 31 }, 1, &err), DR_ERR_ARG,
                 "must be 0 to");
    read_draws(l, again, TIMES);
    assert_string_not_equal(first[0], first[1]);
    for (int i = 0; i < TIMES; i++) {
        assert_string_equal(again[i], first[TIMES - 1 - i]);
        dr_text_free(&again[i]);
    }
    for (int i = 0; i < TIMES; i++)
        dr_text_free(&first[i]);
    dr_loader_close(&l);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* Any part of an epoch: what was delivered is passed over, and the rest is as it would have been. */
static void goes_on(void **state)
{
    (void)state;
    static const uint64_t ids[6][4] = { { 1, 2, 3, 4 }, { 4, 3, 2, 1 },    { 9, 1, 9, 9 },
                                        { 0, 5, 6, 7 }, { 1, 10, 11, 12 }, { 9, 0, 0, 8 } };
    dr_dataset *set = toy_set(&(toy){ .n = 13 });
    dr_graph *g = graph_of(crops);
    dr_loader_options o = given_options(4, 2);
    dr_loader *l = open_loader(set, g, &o);
    tape whole = { 0 };
    for (int from = 0; from <= 6; from++) {
        tape t = { 0 };
        assert_ok(dr_loader_start(l, 5, &err));
        assert_ok(dr_loader_push_past(l, &ids[0][0], (uint64_t)from * 4, (uint64_t)from, &err));
        for (int b = from; b < 6; b++)
            push(l, ids[b], 4);
        assert_ok(dr_loader_push_end(l, &err));
        tape_read(&t, l, -1);
        assert_int_equal(t.n, 6 - from);
        if (from == 0) {
            whole = t;
            continue;
        }
        tape rest = { whole.batches + from, whole.n - (size_t)from };
        assert_same_tape(&rest, &t, "the rest of the epoch");
        tape_free(&t);
    }
    tape_free(&whole);
    dr_loader_close(&l);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 10 });
    dr_graph *g = graph_of(NULL);
    dr_loader_options o = given_options(4, 1);
    dr_loader *l = open_loader(set, g, &o);
    const uint64_t good[] = { 1, 2 }, bad[] = { 1, 10 };
    char *text = NULL;
    assert_fails(dr_loader_push(l, good, 2, &err), DR_ERR_STATE, "dr_loader_start must come before");
    assert_ok(dr_loader_start(l, 0, &err));
    assert_fails(dr_loader_push(l, bad, 2, &err), DR_ERR_ARG, "ids[1] of a pushed batch must be 0 to 9, got 10");
    assert_fails(dr_loader_push(l, good, 0, &err), DR_ERR_ARG, "a pushed batch must have 1 to 16777216 samples, got 0");
    assert_fails(dr_loader_state(l, &text, &err), DR_ERR_STATE, "the caller gives the order");
    assert_fails(dr_loader_restore(l, "{}", &err), DR_ERR_STATE, "the caller gives the order");
    push(l, good, 2);
    assert_ok(dr_loader_push_end(l, &err));
    assert_fails(dr_loader_push(l, good, 2, &err), DR_ERR_STATE, "end of this epoch");
    tape t = { 0 };
    tape_read(&t, l, -1); /* what failed has changed nothing */
    assert_int_equal(t.n, 1);
    assert_int_equal(t.batches[0].positions[0], 0);
    tape_free(&t);
    dr_loader_cancel(l);
    assert_fails(dr_loader_push(l, good, 2, &err), DR_ERR_CANCELLED, "cancelled");
    dr_loader_close(&l);
    o.shuffle = true;
    assert_fails(dr_loader_open(set, g, &o, &l, &err), DR_ERR_ARG, "pushed_order");
    o = options_of(4, 1);
    o.keep_batches = true;
    assert_fails(dr_loader_open(set, g, &o, &l, &err), DR_ERR_ARG, "keep_batches");
    o.keep_batches = false;
    l = open_loader(set, g, &o);
    assert_ok(dr_loader_start(l, 0, &err));
    assert_fails(dr_loader_push(l, good, 2, &err), DR_ERR_STATE, "pushed_order");
    dr_loader_close(&l);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void a_batch_beyond_the_budget_is_refused(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 2000, .h = 64, .w = 64 });
    dr_graph *g = graph_of(NULL);
    dr_loader_options o = given_options(1, 1);
    o.memory_limit = 1 << 20;
    o.outputs = "image";
    dr_loader *l = open_loader(set, g, &o);
    uint64_t ids[43] = { 0 };
    assert_ok(dr_loader_start(l, 0, &err));
    assert_fails(dr_loader_push(l, ids, 43, &err), DR_ERR_LIMIT, "a batch of 43 samples of 12288 bytes");
    push(l, ids, 42);
    assert_ok(dr_loader_push_end(l, &err));
    tape t = { 0 };
    tape_read(&t, l, -1);
    assert_int_equal(t.batches[0].n, 42);
    tape_free(&t);
    dr_loader_close(&l);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void bad_samples_follow_the_policy(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 40, .bad_every = 9, .bad_at = 4 }); /* 4, 13, 22, 31 */
    dr_graph *g = graph_of(NULL);
    for (int mode = 0; mode < 6; mode++) {
        dr_loader_options o = given_options(4, mode % 2 ? 2 : 0);
        o.in_order = mode < 2;
        o.keep_batches = mode >= 4;
        o.on_bad_sample = DR_BAD_SKIP;
        dr_loader *l = open_loader(set, g, &o);
        uint64_t n = 0;
        tape t = { 0 };
        assert_ok(dr_loader_start(l, 0, &err));
        push_stairs(l, 40, 4);
        assert_ok(dr_loader_push_end(l, &err));
        tape_read(&t, l, -1);
        for (size_t i = 0; i < t.n; i++)
            n += t.batches[i].n;
        assert_int_equal(n, 36);
        tape_free(&t);
        dr_loader_close(&l);
        o.on_bad_sample = DR_BAD_REPLACE;
        l = open_loader(set, g, &o);
        assert_ok(dr_loader_start(l, 0, &err));
        push_stairs(l, 40, 4);
        assert_ok(dr_loader_push_end(l, &err));
        finish_epoch(&t, &l, 40);
    }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* Who pushed a batch gets it back, even where all its samples are bad: at the start, in the middle, at the end. */
static void whole_bad_batches_come_back(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 40, .bad_every = 2, .bad_at = 1 });
    dr_graph *g = graph_of(NULL);
    static const uint64_t pushed[5][2] = { { 1, 3 }, { 0, 2 }, { 5, 7 }, { 4, 9 }, { 11, 13 } },
                          good[] = { 0, 2, 0, 1, 0 };
    for (int mode = 0; mode < 6; mode++) {
        dr_loader_options o = given_options(2, mode % 3);
        o.in_order = mode < 3;
        o.keep_batches = mode >= 3;
        o.on_bad_sample = DR_BAD_SKIP;
        o.outputs = "image,boxes,tokens,text";
        o.collate = "boxes=ragged,tokens=pad";
        dr_loader *l = open_loader(set, g, &o);
        tape t = { 0 };
        assert_ok(dr_loader_start(l, 0, &err));
        for (int i = 0; i < 5; i++)
            push(l, pushed[i], 2);
        assert_ok(dr_loader_push_end(l, &err));
        tape_read(&t, l, -1);
        assert_int_equal(t.n, 5);
        for (size_t i = 0; i < t.n; i++) {
            assert_int_equal(t.batches[i].n, good[t.batches[i].number]);
            assert_int_equal(strcmp(t.batches[i].bad, "[]") == 0, t.batches[i].n == 2);
        }
        tape_free(&t);
        dr_loader_close(&l);
    }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* Reads an epoch of which batches fail: each sample comes once, and a batch is an error if and only if it has a bad
 * sample (id % 13 == 6).  Where samples of several pushed batches mix, two bad ones may meet in one batch. */
static void expect_failures(dr_loader *l, uint64_t n_samples, int n_bad, bool mixed)
{
    uint8_t seen[64] = { 0 };
    int n_failed = 0;
    dr_batch *b = NULL;
    dr_status status;
    while ((status = dr_loader_next(l, 20000, &b, &err)) != DR_END) {
        if (status != DR_OK) {
            assert_fails(status, DR_ERR_FORMAT, "sample \"sample-");
            assert_string_equal(dr_batch_error(b)->text, err.text);
            assert_int_equal(dr_batch_error(b)->status, status);
            assert_int_equal(dr_batch_fields(b), 0);
            n_failed++;
        } else {
            assert_null(dr_batch_error(b));
        }
        int bad_here = 0;
        for (uint64_t i = 0; i < dr_batch_samples(b); i++) {
            assert_int_equal(dr_batch_ids(b)[i], n_samples - 1 - dr_batch_positions(b)[i]);
            seen[dr_batch_positions(b)[i]]++;
            bad_here += dr_batch_ids(b)[i] % 13 == 6;
        }
        assert_int_equal(bad_here > 0, status != DR_OK);
        dr_batch_unref(&b);
    }
    assert_in_range(n_failed, mixed ? 1 : n_bad, n_bad);
    for (uint64_t i = 0; i < n_samples; i++)
        assert_int_equal(seen[i], 1);
}

/* A sample that cannot be made costs the batch it is in, and nothing else. */
static void a_failed_batch_is_lost_alone(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 40, .bad_every = 13, .bad_at = 6 }); /* 6, 19, 32 */
    dr_graph *g = graph_of(NULL);
    for (int mode = 0; mode < 9; mode++) {
        dr_loader_options o = given_options(4, mode % 3);
        o.in_order = mode < 3;
        o.keep_batches = mode >= 6;
        dr_loader *l = open_loader(set, g, &o);
        for (uint64_t epoch = 0; epoch < 2; epoch++) {
            assert_ok(dr_loader_start(l, epoch, &err));
            for (uint64_t at = 0; at < 40; at += 4)
                push(l, (const uint64_t[]){ 39 - at, 38 - at, 37 - at, 36 - at }, 4);
            assert_ok(dr_loader_push_end(l, &err));
            expect_failures(l, 40, 3, mode >= 3 && mode < 6);
        }
        dr_loader_close(&l);
    }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* The next batch, which is there before long. */
static dr_batch *soon(dr_loader *l)
{
    dr_batch *b = NULL;
    assert_ok(dr_loader_next(l, 20000, &b, &err));
    return b;
}

/* Out of order, left-out samples leave the batch being filled short: the caller hears of it, so as to push more. */
static void left_out_samples_are_told_of(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 40, .bad_every = 10, .bad_at = 3 });
    dr_graph *g = graph_of(NULL);
    for (int workers = 0; workers < 3; workers++) {
        dr_loader_options o = given_options(4, workers);
        o.in_order = false;
        o.on_bad_sample = DR_BAD_SKIP;
        dr_loader *l = open_loader(set, g, &o);
        assert_ok(dr_loader_start(l, 0, &err));
        push(l, (const uint64_t[]){ 1, 2, 3, 4 }, 4);
        dr_batch *b = soon(l);
        assert_int_equal(dr_batch_samples(b), 0);
        assert_non_null(strstr(dr_batch_bad(b), "sample-3"));
        dr_batch_unref(&b);
        push(l, (const uint64_t[]){ 5 }, 1);
        b = soon(l);
        assert_int_equal(dr_batch_samples(b), 4);
        assert_string_equal(dr_batch_bad(b), "[]");
        dr_batch_unref(&b);
        push(l, (const uint64_t[]){ 13 }, 1);
        assert_ok(dr_loader_push_end(l, &err));
        b = soon(l); /* nothing comes after it that could tell */
        assert_int_equal(dr_batch_samples(b), 0);
        assert_non_null(strstr(dr_batch_bad(b), "sample-13"));
        dr_batch_unref(&b);
        assert_int_equal(dr_loader_next(l, 20000, &b, &err), DR_END);
        dr_loader_close(&l);
    }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static bool will_open_after(dr_loader *l, uint64_t finished)
{
    for (int i = 0; i < 20000; i++, usleep(1000)) {
        dr__pool_lock();
        const bool there = l->exec.progress.finished == finished, opens = dr__claim_will_open(&l->exec);
        dr__pool_unlock();
        if (there)
            return opens;
    }
    fail_msg("not worked off: %llu samples", (unsigned long long)finished);
    return false;
}

/* Room is about to be made only where there is a batch for a consumer to take. */
static void a_batch_being_filled_makes_no_room(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 40 });
    dr_graph *g = graph_of(NULL);
    dr_loader_options o = given_options(4, 2);
    o.in_order = false;
    dr_loader *l = open_loader(set, g, &o);
    assert_ok(dr_loader_start(l, 0, &err));
    push(l, (const uint64_t[]){ 1, 2, 3 }, 3);
    assert_false(will_open_after(l, 3));
    push(l, (const uint64_t[]){ 4 }, 1);
    assert_true(will_open_after(l, 4));
    dr_loader_close(&l);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* One large batch does not shorten the way ahead of all that come after it. */
static void large_batches_are_forgotten(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 40 });
    dr_graph *g = graph_of(NULL);
    dr_loader_options o = given_options(4, 0);
    dr_loader *l = open_loader(set, g, &o);
    uint64_t ids[40];
    for (uint64_t i = 0; i < 40; i++)
        ids[i] = i;
    assert_ok(dr_loader_start(l, 0, &err));
    push(l, ids, 40);
    push(l, ids, 4);
    assert_int_equal(l->exec.budget.batch_slots, 40);
    dr_batch *b = soon(l);
    dr_batch_unref(&b);
    assert_int_equal(l->exec.budget.batch_slots, 4);
    push(l, ids, 40);
    assert_ok(dr_loader_start(l, 1, &err)); /* given up */
    assert_int_equal(l->exec.budget.batch_slots, 4);
    dr_loader_close(&l);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void an_epoch_given_up_leaves_nothing(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 100 });
    dr_graph *g = graph_of(NULL);
    for (int mode = 0; mode < 3; mode++) {
        dr_loader_options o = given_options(4, 2);
        o.in_order = mode == 0;
        o.keep_batches = mode == 2;
        dr_loader *l = open_loader(set, g, &o);
        for (uint64_t epoch = 0; epoch < 20; epoch++) {
            tape t = { 0 };
            assert_ok(dr_loader_start(l, epoch, &err));
            push_stairs(l, 100, 4);
            tape_read(&t, l, (int64_t)(epoch % 5)); /* far more is pushed */
            tape_free(&t);
        }
        const uint64_t id = 42;
        dr_batch *b = NULL;
        assert_ok(dr_loader_start(l, 99, &err));
        assert_int_equal(dr_loader_next(l, 0, &b, &err), DR_AGAIN);
        push(l, &id, 1);
        assert_ok(dr_loader_push_end(l, &err));
        assert_ok(dr_loader_next(l, -1, &b, &err));
        assert_int_equal(dr_batch_ids(b)[0], 42);
        assert_int_equal(dr_batch_positions(b)[0], 0);
        dr_batch_unref(&b);
        assert_int_equal(dr_loader_next(l, -1, &b, &err), DR_END);
        dr_loader_close(&l);
    }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

typedef struct feeder {
    dr_loader *loader;
    uint64_t n;
} feeder;

static void *feed(void *arg)
{
    feeder *f = arg;
    for (uint64_t i = 0; i < f->n; i++)
        dr_loader_push(f->loader, &i, 1, NULL);
    dr_loader_push_end(f->loader, NULL);
    return NULL;
}

/* Consumers wait while another thread pushes. */
static void pushed_while_consumers_wait(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 300 });
    dr_graph *g = graph_of(NULL);
    for (int mode = 0; mode < 6; mode++) {
        dr_loader_options o = given_options(3, mode % 2 ? 2 : 0);
        o.in_order = mode < 2;
        o.keep_batches = mode >= 4;
        dr_loader *l = open_loader(set, g, &o);
        feeder f = { l, 300 };
        pthread_t thread;
        tape t = { 0 };
        assert_ok(dr_loader_start(l, 0, &err));
        assert_int_equal(pthread_create(&thread, NULL, feed, &f), 0);
        tape_read(&t, l, -1);
        pthread_join(thread, NULL);
        assert_each_once(&t, 300);
        tape_free(&t);
        dr_loader_close(&l);
    }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_pushed),
        cmocka_unit_test(same_samples_as_own_order),
        cmocka_unit_test(out_of_order_fills_batches),
        cmocka_unit_test(kept_batches_stay_together),
        cmocka_unit_test(repeats_draw_anew),
        cmocka_unit_test(times_may_be_told),
        cmocka_unit_test(goes_on),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(a_batch_beyond_the_budget_is_refused),
        cmocka_unit_test(whole_bad_batches_come_back),
        cmocka_unit_test(left_out_samples_are_told_of),
        cmocka_unit_test(a_failed_batch_is_lost_alone),
        cmocka_unit_test(a_batch_being_filled_makes_no_room),
        cmocka_unit_test(large_batches_are_forgotten),
        cmocka_unit_test(bad_samples_follow_the_policy),
        cmocka_unit_test(an_epoch_given_up_leaves_nothing),
        cmocka_unit_test(pushed_while_consumers_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
