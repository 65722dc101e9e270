/* Exactly once: every position of the epoch, in and out of order, over ranks, with every rule for the last batch. */
#include "unit/loader/toy.h"

static dr_error err;

static void in_order_is_the_order(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 103 });
    dr_graph *g = graph_of(NULL);
    for (int workers = 0; workers <= 3; workers++) {
        dr_loader_options o = options_of(10, workers);
        tape t = epoch_of(set, g, &o);
        assert_int_equal(t.n, 11);
        assert_int_equal(t.batches[10].n, 3);
        for (uint64_t p = 0; p < 103; p++) {
            assert_int_equal(t.batches[p / 10].positions[p % 10], p);
            assert_int_equal(t.batches[p / 10].ids[p % 10], p); /* not shuffled */
        }
        tape_free(&t);
    }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void out_of_order_is_exactly_once(void **state)
{
    (void)state;
    dr_graph *g = graph_of(NULL);
    for (int workers = 0; workers <= 4; workers += 2)
        for (uint64_t n = 1; n < 80; n += 13)
            for (uint64_t size = 1; size <= 16; size *= 4) {
                dr_dataset *set = toy_set(&(toy){ .n = n, .slow_every = 7, .slow_us = 300 });
                dr_loader_options o = options_of(size, workers);
                o.in_order = false;
                o.shuffle = true;
                tape t = epoch_of(set, g, &o);
                assert_each_once(&t, n);
                assert_int_equal(t.n, (n + size - 1) / size);
                tape_free(&t);
                dr_dataset_unref(&set);
            }
    dr_graph_free(&g);
}

/* The header's promise: a sample comes at most `prefetch` batches away from its place. */
static void displacement_is_bounded(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 600, .slow_every = 300, .slow_us = 60000 });
    dr_graph *g = graph_of(NULL);
    dr_loader_options o = options_of(4, 4);
    o.in_order = false;
    o.prefetch = 2;
    tape t = epoch_of(set, g, &o);
    assert_each_once(&t, 600);
    for (size_t i = 0; i < t.n; i++)
        for (uint64_t k = 0; k < t.batches[i].n; k++) {
            long away = labs((long)t.batches[i].number - (long)(t.batches[i].positions[k] / 4));
            if (away > 2)
                fail_msg("position %llu came in batch %zu, %ld away", (unsigned long long)t.batches[i].positions[k], i,
                         away);
        }
    tape_free(&t);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* All ranks together: what the rule says, each once, and equal steps where it promises them. */
static void check_ranks(uint64_t n, uint64_t world, uint64_t size, dr_last last)
{
    dr_dataset *set = toy_set(&(toy){ .n = n });
    dr_graph *g = graph_of(NULL);
    tape all = { 0 };
    uint64_t steps = 0, padded = 0, delivered = 0;
    for (uint64_t rank = 0; rank < world; rank++) {
        dr_loader_options o = options_of(size, 0);
        o.shuffle = true;
        o.world_size = world;
        o.rank = rank;
        o.last = last;
        dr_loader *l = open_loader(set, g, &o);
        size_t before = all.n;
        tape_read(&all, l, -1);
        assert_int_equal(all.n - before, dr_loader_batches(l));
        if (last != DR_LAST_PARTIAL && rank > 0)
            assert_int_equal(all.n - before, steps);
        steps = all.n - before;
        dr_loader_close(&l);
    }
    for (size_t i = 0; i < all.n; i++) {
        padded += all.batches[i].padded;
        delivered += all.batches[i].n;
        for (uint64_t k = 0; k < all.batches[i].n; k++) /* repeats stand at the end of a batch */
            assert_int_equal(all.batches[i].positions[k] >= n, k >= all.batches[i].n - all.batches[i].padded);
    }
    uint64_t per = world * size, whole = n / per * per;
    uint64_t want = last == DR_LAST_PARTIAL ? n : last == DR_LAST_DROP ? whole : (n + per - 1) / per * per;
    assert_int_equal(delivered, want);
    assert_int_equal(padded, want > n ? want - n : 0);
    assert_each_once(&all, want < n ? want : n);
    tape_free(&all);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void ranks_partition(void **state)
{
    (void)state;
    static const uint64_t ns[] = { 1, 2, 7, 24, 65 }, worlds[] = { 1, 2, 3, 8 }, sizes[] = { 1, 3, 8, 100 };
    for (int a = 0; a < 5; a++)
        for (int b = 0; b < 4; b++)
            for (int c = 0; c < 4; c++)
                for (int last = DR_LAST_PARTIAL; last <= DR_LAST_PAD; last++)
                    check_ranks(ns[a], worlds[b], sizes[c], (dr_last)last);
}

static void epochs_differ_and_repeat(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 64 });
    dr_graph *g = graph_of(NULL);
    dr_loader_options o = options_of(64, 2);
    o.shuffle = true;
    o.seed = 5;
    dr_loader *l = open_loader(set, g, &o);
    tape t = { 0 };
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        assert_ok(dr_loader_start(l, epoch, &err));
        tape_read(&t, l, -1);
    }
    assert_ok(dr_loader_start(l, 1, &err));
    tape_read(&t, l, -1);
    assert_int_equal(t.n, 4);
    assert_memory_not_equal(t.batches[0].ids, t.batches[1].ids, 64 * 8);
    assert_memory_not_equal(t.batches[1].ids, t.batches[2].ids, 64 * 8);
    assert_memory_equal(t.batches[1].ids, t.batches[3].ids, 64 * 8);
    assert_true(t.batches[1].hash == t.batches[3].hash);
    tape_free(&t);
    dr_loader_close(&l);
    o.seed = 6;
    tape other = epoch_of(set, g, &o), same = epoch_of(set, g, &o);
    assert_same_tape(&other, &same, "the same seed");
    tape_free(&other);
    tape_free(&same);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void the_end_stays_the_end(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 1 });
    dr_graph *g = graph_of(NULL);
    for (int in_order = 0; in_order < 2; in_order++)
        for (int workers = 0; workers < 3; workers++) {
            dr_loader_options o = options_of(50, workers);
            o.in_order = in_order;
            dr_loader *l = open_loader(set, g, &o);
            dr_batch *b = NULL;
            assert_ok(dr_loader_next(l, -1, &b, &err));
            assert_int_equal(dr_batch_samples(b), 1);
            dr_batch_unref(&b);
            for (int i = 0; i < 3; i++) {
                assert_int_equal(dr_loader_next(l, -1, &b, &err), DR_END);
                assert_null(b);
            }
            dr_loader_close(&l);
        }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void mixtures_fill_their_shares(void **state)
{
    (void)state;
    dr_dataset *parts[2] = { toy_set(&(toy){ .n = 10 }), toy_set(&(toy){ .n = 100 }) }, *mix = NULL;
    const double weights[2] = { 3, 1 };
    assert_ok(dr_dataset_mix(parts, weights, 2, 80, &mix, &err));
    dr_graph *g = graph_of(NULL);
    for (int in_order = 0; in_order < 2; in_order++) {
        dr_loader_options o = options_of(8, 3);
        o.shuffle = true;
        o.in_order = in_order;
        tape t = epoch_of(mix, g, &o);
        assert_each_once(&t, 80);
        int from_first = 0, times[10] = { 0 };
        for (size_t i = 0; i < t.n; i++)
            for (uint64_t k = 0; k < t.batches[i].n; k++)
                if (t.batches[i].ids[k] < 10) {
                    from_first++;
                    times[t.batches[i].ids[k]]++;
                }
        assert_int_equal(from_first, 60);
        for (int i = 0; i < 10; i++)
            assert_int_equal(times[i], 6);
        tape_free(&t);
    }
    dr_graph_free(&g);
    dr_dataset_unref(&mix);
    dr_dataset_unref(&parts[0]);
    dr_dataset_unref(&parts[1]);
}

static void absurd_worlds_are_refused(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 4 });
    dr_graph *g = graph_of(NULL);
    dr_loader *l = NULL;
    dr_loader_options o = options_of(1 << 24, 0);
    o.world_size = (uint64_t)1 << 40; /* world x batch_size is 2^64 */
    assert_fails(dr_loader_open(set, g, &o, &l, &err), DR_ERR_ARG, "world");
    o.world_size = 2;
    o.rank = 2;
    assert_fails(dr_loader_open(set, g, &o, &l, &err), DR_ERR_ARG, "rank must be below world_size = 2, got 2");
    o.rank = 0;
    o.last = (dr_last)9;
    assert_fails(dr_loader_open(set, g, &o, &l, &err), DR_ERR_ARG, "last");
    o.last = DR_LAST_DROP;
    o.on_bad_sample = (dr_on_bad)-1;
    assert_fails(dr_loader_open(set, g, &o, &l, &err), DR_ERR_ARG, "on_bad");
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_order_is_the_order),      cmocka_unit_test(out_of_order_is_exactly_once),
        cmocka_unit_test(displacement_is_bounded),    cmocka_unit_test(ranks_partition),
        cmocka_unit_test(epochs_differ_and_repeat),   cmocka_unit_test(the_end_stays_the_end),
        cmocka_unit_test(mixtures_fill_their_shares), cmocka_unit_test(absurd_worlds_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
