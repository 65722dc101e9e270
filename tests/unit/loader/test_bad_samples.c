/* Samples that cannot be read: raise, skip, replace; always named, never shifting the others. */
#include "unit/loader/toy.h"

static dr_error err;

static bool is_bad(const toy *o, uint64_t id)
{
    return o->bad_every && id % o->bad_every == o->bad_at;
}

static uint64_t count_bad(const toy *o)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < o->n; i++)
        n += is_bad(o, i);
    return n;
}

static const char skipped[] = "\"action\":\"skipped\"";

static uint64_t count_text(const char *text, const char *part)
{
    uint64_t n = 0;
    for (const char *at = text; (at = strstr(at, part)); at++)
        n++;
    return n;
}

/* How often `part` stands in what the batches say of bad samples. */
static uint64_t told(const tape *t, const char *part)
{
    uint64_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        n += count_text(t->batches[i].bad, part);
    return n;
}

static void raise_names_the_sample(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 40, .bad_every = 40, .bad_at = 13 });
    dr_graph *g = graph_of(NULL);
    for (int workers = 0; workers < 4; workers++)
        for (int in_order = 0; in_order < 2; in_order++) {
            dr_loader_options o = options_of(5, workers);
            o.in_order = in_order;
            dr_loader *l = open_loader(set, g, &o);
            dr_batch *b = NULL;
            dr_status status;
            int n = 0;
            while ((status = dr_loader_next(l, -1, &b, &err)) == DR_OK) {
                n++;
                dr_batch_unref(&b);
            }
            assert_fails(status, DR_ERR_FORMAT,
                         "toy: sample \"sample-13\" (position 13 of epoch 0): toy: made to fail");
            if (in_order)
                assert_int_equal(n, 2);
            assert_fails(dr_loader_next(l, -1, &b, &err), DR_ERR_FORMAT, "sample-13");
            char *text = NULL; /* the state stays at the failed batch */
            assert_ok(dr_loader_state(l, &text, &err));
            if (in_order)
                assert_non_null(strstr(text, "\"position\":10,"));
            assert_ok(dr_loader_restore(l, text, &err));
            while ((status = dr_loader_next(l, -1, &b, &err)) == DR_OK)
                dr_batch_unref(&b);
            assert_fails(status, DR_ERR_FORMAT, "sample-13");
            dr_text_free(&text);
            dr_loader_close(&l);
        }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void check_skip(const toy *t, bool in_order, int workers)
{
    dr_dataset *set = toy_set(t);
    dr_graph *g = graph_of(NULL);
    dr_loader_options o = options_of(6, workers);
    o.on_bad_sample = DR_BAD_SKIP;
    o.in_order = in_order;
    dr_loader *l = open_loader(set, g, &o);
    tape got = { 0 };
    char *untold = NULL;
    tape_read(&got, l, -1);
    assert_ok(dr_loader_unreported_bad(l, &untold, &err));
    uint64_t n = 0;
    for (size_t i = 0; i < got.n; i++) {
        assert_true(got.batches[i].n > 0);
        for (uint64_t k = 0; k < got.batches[i].n; k++, n++) {
            assert_false(is_bad(t, got.batches[i].ids[k]));
            if (in_order) /* positions never shift */
                assert_int_equal(got.batches[i].positions[k] / 6, got.batches[i].number);
        }
    }
    assert_int_equal(n, t->n - count_bad(t));
    assert_int_equal(told(&got, skipped) + count_text(untold, skipped), count_bad(t));
    dr_text_free(&untold);
    dr_loader_close(&l);
    tape_free(&got);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void skip_leaves_batches_shorter(void **state)
{
    (void)state;
    static const toy sets[] = {
        { .n = 50, .bad_every = 7, .bad_at = 3 },   /* some */
        { .n = 50, .bad_every = 50, .bad_at = 0 },  /* the first */
        { .n = 50, .bad_every = 50, .bad_at = 49 }, /* the last */
        { .n = 48, .bad_every = 2, .bad_at = 1 },   /* every other one */
        { .n = 30, .bad_every = 1, .bad_at = 0 },   /* all */
        { .n = 1, .bad_every = 1, .bad_at = 0 },
    };
    for (int i = 0; i < 6; i++)
        for (int workers = 0; workers < 4; workers++)
            for (int in_order = 0; in_order < 2; in_order++)
                check_skip(&sets[i], in_order, workers);
}

/* A batch of bad samples alone is not delivered, but what happened to them is told by the next. */
static void a_whole_bad_batch_is_told(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 24, .bad_every = 24, .bad_at = 7 });
    dr_graph *g = graph_of(NULL);
    for (int workers = 0; workers < 3; workers++) {
        dr_loader_options o = options_of(1, workers); /* the bad sample is a batch of its own */
        o.on_bad_sample = DR_BAD_SKIP;
        o.outputs = "label,boxes,tokens";
        o.collate = "boxes=ragged,tokens=pad";
        tape got = epoch_of(set, g, &o);
        assert_int_equal(got.n, 23);
        assert_int_equal(got.batches[7].number, 8);
        assert_non_null(strstr(got.batches[7].bad, "sample-7"));
        assert_string_equal(got.batches[8].bad, "[]");
        tape_free(&got);
    }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void replace_fills_the_place(void **state)
{
    (void)state;
    const toy t = { .n = 60, .bad_every = 5, .bad_at = 2 };
    dr_dataset *set = toy_set(&t);
    dr_graph *g = graph_of("{\"op\":\"random_horizontal_flip\"}");
    dr_loader_options o = options_of(8, 0);
    o.on_bad_sample = DR_BAD_REPLACE;
    o.shuffle = true;
    tape want = epoch_of(set, g, &o);
    assert_each_once(&want, 60); /* every position, with some sample */
    for (size_t i = 0; i < want.n; i++)
        for (uint64_t k = 0; k < want.batches[i].n; k++)
            assert_false(is_bad(&t, want.batches[i].ids[k]));
    assert_true(told(&want, "\"action\":\"replaced\"") >= 12);
    for (int workers = 1; workers < 5; workers++) {
        o.workers = workers;
        o.in_order = true;
        tape got = epoch_of(set, g, &o);
        assert_same_tape(&want, &got, "replaced");
        tape_free(&got);
        o.in_order = false;
        got = epoch_of(set, g, &o);
        assert_each_once(&got, 60);
        tape_free(&got);
    }
    tape_free(&want);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void limits_end_the_epoch(void **state)
{
    (void)state;
    dr_dataset *some = toy_set(&(toy){ .n = 60, .bad_every = 5, .bad_at = 2 });
    dr_dataset *all = toy_set(&(toy){ .n = 60, .bad_every = 1 });
    dr_graph *g = graph_of(NULL);
    for (int in_order = 0; in_order < 2; in_order++)
        for (int workers = 0; workers < 3; workers++) {
            dr_loader_options o = options_of(4, workers);
            o.in_order = in_order;
            o.on_bad_sample = DR_BAD_SKIP;
            o.max_bad = 3;
            dr_loader *l = open_loader(some, g, &o);
            dr_batch *b = NULL;
            dr_status status;
            while ((status = dr_loader_next(l, -1, &b, &err)) == DR_OK)
                dr_batch_unref(&b);
            assert_fails(status, DR_ERR_BAD_SAMPLES,
                         "more than max_bad = 3 bad samples; the last: toy: sample \"sample-");
            dr_loader_close(&l);
            o.max_bad = 12; /* exactly what there is */
            tape t = epoch_of(some, g, &o);
            tape_free(&t);
            o.max_bad = 1000;
            o.on_bad_sample = DR_BAD_REPLACE;
            l = open_loader(all, g, &o);
            assert_fails(dr_loader_next(l, -1, &b, &err), DR_ERR_BAD_SAMPLES, "16 replacements in a row were bad");
            dr_loader_close(&l);
        }
    dr_graph_free(&g);
    dr_dataset_unref(&some);
    dr_dataset_unref(&all);
}

/* A sample that turns out bad after it has its slot: out of order the window must not narrow by it. */
static void bad_after_its_slot(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 100, .odd_every = 2 });
    dr_graph *g = graph_of(NULL);
    for (int in_order = 0; in_order < 2; in_order++)
        for (int workers = 0; workers < 3; workers++) {
            dr_loader_options o = options_of(4, workers);
            o.in_order = in_order;
            o.on_bad_sample = DR_BAD_SKIP;
            o.outputs = "label,odd";
            o.prefetch = 2;
            dr_loader *l = open_loader(set, g, &o);
            tape t = { 0 };
            for (;;) {
                dr_batch *b = NULL;
                dr_status status = dr_loader_next(l, 5000, &b, &err);
                if (status == DR_END)
                    break;
                assert_ok(status);
                tape_add(&t, b);
                dr_batch_unref(&b);
            }
            uint64_t n = 0;
            for (size_t i = 0; i < t.n; i++)
                for (uint64_t k = 0; k < t.batches[i].n; k++, n++)
                    assert_true(t.batches[i].ids[k] % 2 == 1);
            assert_int_equal(n, 50);
            assert_int_equal(told(&t, "the shape that was planned"), 50);
            tape_free(&t);
            dr_loader_close(&l);
        }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* A JPEG that ends early is noticed while its rows already go into the batch; also out of order, where they do not. */
static const char *const streamed = "{\"op\":\"decode\"},{\"op\":\"resize\",\"params\":{\"size\":[20,24]}}";

static void truncated_raises(dr_dataset *set, dr_graph *g, const dr_loader_options *o)
{
    dr_loader *l = open_loader(set, g, o);
    dr_batch *b = NULL;
    dr_status status;
    int n = 0;
    for (; (status = dr_loader_next(l, -1, &b, &err)) == DR_OK; n++)
        dr_batch_unref(&b);
    assert_fails(status, DR_ERR_FORMAT, "007.jpg");
    assert_fails(status, DR_ERR_FORMAT, "decode: truncated JPEG");
    if (o->in_order)
        assert_int_equal(n, 1);
    dr_loader_close(&l);
}

static void truncated_is_left_out(dr_dataset *set, dr_graph *g, const dr_loader_options *o)
{
    tape t = epoch_of(set, g, o);
    uint64_t n = 0;
    for (size_t i = 0; i < t.n; i++)
        for (uint64_t k = 0; k < t.batches[i].n; k++, n++)
            assert_int_not_equal(t.batches[i].ids[k], 7);
    assert_int_equal(n, 17);
    assert_int_equal(told(&t, "decode: truncated JPEG"), 1);
    tape_free(&t);
}

/* The others are what reference mode makes of them. */
static void truncated_is_replaced(dr_dataset *set, dr_graph *g, const dr_loader_options *o)
{
    dr_loader_options plain = *o;
    plain.reference = true;
    tape want = epoch_of(set, g, &plain), got = epoch_of(set, g, o);
    assert_each_once(&got, 18);
    assert_int_equal(told(&got, "decode: truncated JPEG"), told(&want, "decode: truncated JPEG"));
    if (o->in_order)
        assert_same_tape(&want, &got, "replaced while streaming");
    tape_free(&want);
    tape_free(&got);
}

static void truncated_while_streaming(void **state)
{
    (void)state;
    char folder[64];
    dr_dataset *set = jpeg_set(folder, 18);
    dr_graph *g = graph_of(streamed);
    truncate_jpeg(folder, 7);
    for (int workers = 0; workers < 3; workers++)
        for (int in_order = 0; in_order < 2; in_order++)
            for (int list = 0; list < 2; list++) {
                dr_loader_options o = options_of(6, workers);
                o.in_order = in_order;
                o.outputs = "image";
                o.collate = list ? "image=list" : NULL;
                truncated_raises(set, g, &o);
                o.on_bad_sample = DR_BAD_SKIP;
                truncated_is_left_out(set, g, &o);
                o.on_bad_sample = DR_BAD_REPLACE;
                truncated_is_replaced(set, g, &o);
            }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
    remove_folder(folder);
}

/* What was left out is not tried again after a restore. */
static void skipped_and_resumed(void **state)
{
    (void)state;
    const toy t = { .n = 60, .bad_every = 7, .bad_at = 1 };
    dr_dataset *set = toy_set(&t);
    dr_graph *g = graph_of(NULL);
    for (int in_order = 0; in_order < 2; in_order++)
        for (int64_t k = 0; k < 8; k++) {
            dr_loader_options o = options_of(6, 2);
            o.in_order = in_order;
            o.on_bad_sample = DR_BAD_SKIP;
            dr_loader *l = open_loader(set, g, &o);
            tape got = { 0 };
            char *text = NULL;
            tape_read(&got, l, k);
            assert_ok(dr_loader_state(l, &text, &err));
            dr_loader_close(&l);
            l = open_loader(set, g, &o);
            assert_ok(dr_loader_restore(l, text, &err));
            tape_read(&got, l, -1);
            uint8_t seen[60] = { 0 };
            for (size_t i = 0; i < got.n; i++)
                for (uint64_t s = 0; s < got.batches[i].n; s++)
                    seen[got.batches[i].positions[s]]++;
            for (uint64_t i = 0; i < 60; i++)
                assert_int_equal(seen[i], !is_bad(&t, i));
            tape_free(&got);
            dr_text_free(&text);
            dr_loader_close(&l);
        }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* --- equal_batches: no batch is lost --- */

/* seen: how often each good sample came in its own place.  A replacement has the position of a bad sample, and comes
 * alone. */
static void count_places(const tape *t, const toy *set, uint8_t *seen)
{
    for (size_t i = 0; i < t->n; i++) {
        const taped_batch *b = &t->batches[i];
        assert_true(b->n > 0);
        for (uint64_t k = 0; k < b->n; k++) {
            assert_false(is_bad(set, b->ids[k]));
            if (b->ids[k] == b->positions[k])
                seen[b->ids[k]]++;
            else
                assert_true(b->n == 1 && is_bad(set, b->positions[k]));
        }
    }
}

static void assert_good_once(const toy *set, const uint8_t *seen)
{
    for (uint64_t i = 0; i < set->n; i++)
        assert_int_equal(seen[i], !is_bad(set, i));
}

static const toy with_bad[] = {
    { .n = 48, .bad_every = 7, .bad_at = 3 },   /* some */
    { .n = 48, .bad_every = 2, .bad_at = 1 },   /* of two ranks, all of one and none of the other */
    { .n = 48, .bad_every = 3, .bad_at = 0 },   /* of three ranks */
    { .n = 48, .bad_every = 48, .bad_at = 47 }, /* the last */
    { .n = 6, .bad_every = 2, .bad_at = 0 },    /* one batch a rank */
};
enum { N_WITH_BAD = sizeof with_bad / sizeof *with_bad };

static dr_loader_options ranked(uint64_t rank, uint64_t world, bool in_order, int workers)
{
    dr_loader_options o = options_of(2, workers);
    o.on_bad_sample = DR_BAD_SKIP;
    o.in_order = in_order;
    o.rank = rank;
    o.world_size = world;
    o.equal_batches = world == 1; /* else by itself */
    return o;
}

static void ranks_get_equally_many_batches(void **state)
{
    (void)state;
    dr_graph *g = graph_of(NULL);
    for (int s = 0; s < N_WITH_BAD; s++) {
        dr_dataset *set = toy_set(&with_bad[s]);
        for (uint64_t world = 1; world <= 3; world++)
            for (int workers = 0; workers < 3; workers++)
                for (int in_order = 0; in_order < 2; in_order++) {
                    uint8_t seen[48] = { 0 };
                    for (uint64_t rank = 0; rank < world; rank++) {
                        dr_loader_options o = ranked(rank, world, in_order, workers);
                        tape t = epoch_of(set, g, &o);
                        assert_int_equal(t.n, (with_bad[s].n + 2 * world - 1) / (2 * world));
                        count_places(&t, &with_bad[s], seen);
                        tape_free(&t);
                    }
                    assert_good_once(&with_bad[s], seen);
                }
        dr_dataset_unref(&set);
    }
    dr_graph_free(&g);
}

/* Out of order what was left out counts as delivered with its batch, not before. */
static void equally_many_after_a_restore(void **state)
{
    (void)state;
    const toy *t = &with_bad[1];
    dr_dataset *set = toy_set(t);
    dr_graph *g = graph_of(NULL);
    for (int in_order = 0; in_order < 2; in_order++)
        for (int64_t k = 0; k <= 12; k++) {
            uint8_t seen[48] = { 0 };
            for (uint64_t rank = 0; rank < 2; rank++) {
                dr_loader_options o = ranked(rank, 2, in_order, 2);
                dr_loader *l = open_loader(set, g, &o);
                tape got = { 0 };
                char *text = NULL;
                tape_read(&got, l, k);
                assert_ok(dr_loader_state(l, &text, &err));
                dr_loader_close(&l);
                if (k < 12) {
                    l = open_loader(set, g, &o);
                    assert_ok(dr_loader_restore(l, text, &err));
                    tape_read(&got, l, -1);
                    dr_loader_close(&l);
                }
                assert_int_equal(got.n, 12);
                count_places(&got, t, seen);
                tape_free(&got);
                dr_text_free(&text);
            }
            assert_good_once(t, seen);
        }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* A batch that an interrupted consumer holds comes again, with all that was left out in it. */
static void a_held_batch_is_told_again(void **state)
{
    (void)state;
    const toy *t = &with_bad[0];
    dr_dataset *set = toy_set(t);
    dr_graph *g = graph_of(NULL);
    dr_loader_options o = options_of(8, 2);
    o.on_bad_sample = DR_BAD_SKIP;
    o.equal_batches = true;
    o.in_order = false;
    dr_loader *l = open_loader(set, g, &o);
    dr_batch *held = NULL;
    char *text = NULL;
    assert_ok(dr_loader_next(l, -1, &held, &err));
    assert_ok(dr_loader_state_without(l, held, &text, &err));
    dr_batch_unref(&held);
    dr_loader_close(&l);
    l = open_loader(set, g, &o);
    assert_ok(dr_loader_restore(l, text, &err));
    tape got = { 0 };
    uint8_t seen[48] = { 0 };
    tape_read(&got, l, -1);
    assert_int_equal(got.n, 6);
    assert_int_equal(told(&got, "\"action\":\"skipped\""), count_bad(t));
    count_places(&got, t, seen);
    assert_good_once(t, seen);
    tape_free(&got);
    dr_text_free(&text);
    dr_loader_close(&l);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void push_all(dr_loader *l, uint64_t n, uint64_t size)
{
    uint64_t ids[48];
    for (uint64_t at = 0; at < n; at += size) {
        for (uint64_t k = 0; k < size; k++)
            ids[k] = at + k;
        assert_ok(dr_loader_push(l, ids, size, &err));
    }
    assert_ok(dr_loader_push_end(l, &err));
}

static void pushed_batches_all_have_samples(void **state)
{
    (void)state;
    const toy t = { .n = 48, .bad_every = 2, .bad_at = 1 };
    dr_dataset *set = toy_set(&t);
    dr_graph *g = graph_of("{\"op\":\"random_horizontal_flip\"}");
    for (int way = 0; way < 3; way++) { /* in order, batches overtake each other, samples go where there is room */
        for (int workers = 0; workers < 3; workers++) {
            dr_loader_options o = ranked(0, 1, way == 0, workers);
            o.batch_size = 1;
            o.pushed_order = true;
            o.keep_batches = way == 1;
            dr_loader *l = open_loader(set, g, &o);
            for (uint64_t epoch = 0; epoch < 2; epoch++) {
                uint8_t seen[48] = { 0 };
                tape got = { 0 };
                assert_ok(dr_loader_start(l, epoch, &err));
                push_all(l, t.n, 1);
                tape_read(&got, l, -1);
                assert_int_equal(got.n, t.n);
                count_places(&got, &t, seen);
                assert_good_once(&t, seen);
                assert_int_equal(told(&got, "\"action\":\"skipped\""), 24);
                tape_free(&got);
            }
            dr_loader_close(&l);
        }
    }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* The choice hangs on the seed: neither on the number of workers nor on the run. */
static void replacements_are_the_same_in_every_run(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&with_bad[1]);
    dr_graph *g = graph_of("{\"op\":\"random_horizontal_flip\"}");
    dr_loader_options o = ranked(1, 2, true, 0);
    o.shuffle = true;
    tape want = epoch_of(set, g, &o);
    for (o.workers = 1; o.workers < 4; o.workers++) {
        tape got = epoch_of(set, g, &o);
        assert_same_tape(&want, &got, "replacements");
        tape_free(&got);
    }
    tape_free(&want);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void a_set_that_is_all_bad_ends_with_an_error(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 40, .bad_every = 1 });
    dr_graph *g = graph_of(NULL);
    for (int in_order = 0; in_order < 2; in_order++)
        for (int workers = 0; workers < 3; workers++)
            for (uint64_t most = 3; most <= 1000; most += 997) {
                dr_loader_options o = ranked(0, 2, in_order, workers);
                o.max_bad = most;
                dr_loader *l = open_loader(set, g, &o);
                dr_batch *b = NULL;
                assert_fails(dr_loader_next(l, -1, &b, &err), DR_ERR_BAD_SAMPLES,
                             most == 3 ? "more than max_bad = 3 bad samples" : "16 replacements in a row were bad");
                dr_loader_close(&l);
            }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* --- which samples take the place of others --- */

/* Out of order a batch without samples tells of what was left out; nothing is where others take the places. */
static void no_pushed_batch_is_empty_with_replacements(void **state)
{
    (void)state;
    const uint64_t ids[] = { 0, 1, 2 };
    dr_dataset *set = toy_set(&(toy){ .n = 40, .bad_every = 2, .bad_at = 1 });
    dr_graph *g = graph_of(NULL);
    dr_loader_options o = options_of(3, 0);
    o.on_bad_sample = DR_BAD_REPLACE;
    o.in_order = false;
    o.pushed_order = true;
    dr_loader *l = open_loader(set, g, &o);
    dr_batch *b = NULL;
    assert_ok(dr_loader_start(l, 0, &err));
    assert_ok(dr_loader_push(l, ids, 2, &err));
    assert_int_equal(dr_loader_next(l, 20, &b, &err), DR_AGAIN);
    assert_null(b);
    assert_ok(dr_loader_push(l, ids + 2, 1, &err));
    assert_ok(dr_loader_push_end(l, &err));
    assert_ok(dr_loader_next(l, -1, &b, &err));
    assert_int_equal(dr_batch_samples(b), 3);
    assert_non_null(strstr(dr_batch_bad(b), "\"key\":\"sample-1\""));
    dr_batch_unref(&b);
    assert_int_equal(dr_loader_next(l, -1, &b, &err), DR_END);
    dr_loader_close(&l);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void only_given_ones_stand_in(void **state)
{
    (void)state;
    const toy t = { .n = 40, .bad_every = 2, .bad_at = 1 };
    const uint64_t some[] = { 4, 1, 6 }, odd[] = { 40 };
    dr_dataset *set = toy_set(&t);
    dr_graph *g = graph_of(NULL);
    for (dr_on_bad policy = DR_BAD_SKIP; policy <= DR_BAD_REPLACE; policy++) {
        dr_loader_options o = ranked(0, 1, true, 2);
        o.on_bad_sample = policy;
        o.batch_size = 1;
        dr_loader *l = open_loader(set, g, &o);
        assert_fails(dr_loader_set_replacements(l, odd, 1, &err), DR_ERR_ARG,
                     "replacements must be ids from 0 to 39, got 40");
        assert_fails(dr_loader_set_replacements(l, some, 0, &err), DR_ERR_ARG,
                     "replacements must be at least 1 id, got 0");
        assert_ok(dr_loader_set_replacements(l, some, 3, &err));
        assert_fails(dr_loader_set_replacements(l, some, 3, &err), DR_ERR_STATE, "once, before the first epoch");
        tape got = { 0 };
        tape_read(&got, l, -1);
        assert_int_equal(got.n, 40);
        for (size_t i = 0; i < got.n; i++)
            if (got.batches[i].ids[0] != got.batches[i].positions[0])
                assert_true(got.batches[i].ids[0] == 4 || got.batches[i].ids[0] == 6);
        tape_free(&got);
        dr_loader_close(&l);
    }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* Those after the last batch are told when the epoch is over, and once. */
static void the_last_ones_are_told_at_the_end(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 24, .bad_every = 24, .bad_at = 23 });
    dr_graph *g = graph_of(NULL);
    for (int in_order = 0; in_order < 2; in_order++) {
        dr_loader_options o = options_of(1, 1);
        o.on_bad_sample = DR_BAD_SKIP;
        o.in_order = in_order;
        dr_loader *l = open_loader(set, g, &o);
        tape got = { 0 };
        char *text = NULL;
        tape_read(&got, l, -1);
        assert_int_equal(got.n, 23);
        assert_ok(dr_loader_unreported_bad(l, &text, &err));
        const bool at_end = strstr(text, "\"key\":\"sample-23\"");
        assert_int_equal(told(&got, "sample-23") > 0, !at_end); /* out of order, a batch that waits may tell of it */
        assert_true(at_end || !in_order);
        dr_text_free(&text);
        assert_ok(dr_loader_unreported_bad(l, &text, &err));
        assert_string_equal(text, "[]");
        dr_text_free(&text);
        tape_free(&got);
        dr_loader_close(&l);
    }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(raise_names_the_sample),
        cmocka_unit_test(skip_leaves_batches_shorter),
        cmocka_unit_test(a_whole_bad_batch_is_told),
        cmocka_unit_test(replace_fills_the_place),
        cmocka_unit_test(limits_end_the_epoch),
        cmocka_unit_test(bad_after_its_slot),
        cmocka_unit_test(truncated_while_streaming),
        cmocka_unit_test(skipped_and_resumed),
        cmocka_unit_test(ranks_get_equally_many_batches),
        cmocka_unit_test(equally_many_after_a_restore),
        cmocka_unit_test(a_held_batch_is_told_again),
        cmocka_unit_test(pushed_batches_all_have_samples),
        cmocka_unit_test(replacements_are_the_same_in_every_run),
        cmocka_unit_test(a_set_that_is_all_bad_ends_with_an_error),
        cmocka_unit_test(no_pushed_batch_is_empty_with_replacements),
        cmocka_unit_test(only_given_ones_stand_in),
        cmocka_unit_test(the_last_ones_are_told_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
