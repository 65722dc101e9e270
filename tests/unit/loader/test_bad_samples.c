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

/* How often `part` stands in what the batches say of bad samples. */
static uint64_t told(const tape *t, const char *part)
{
    uint64_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        for (const char *at = t->batches[i].bad; (at = strstr(at, part)); at++)
            n++;
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
    o.on_bad = DR_BAD_SKIP;
    o.in_order = in_order;
    tape got = epoch_of(set, g, &o);
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
    if (n) { /* each is told by a batch, unless none came after it */
        uint64_t said = told(&got, "\"action\":\"skipped\""), last = 0;
        for (uint64_t i = t->n; i-- > 0 && is_bad(t, i);)
            last++;
        assert_true(said <= count_bad(t) && said + last >= count_bad(t));
    }
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
        o.on_bad = DR_BAD_SKIP;
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
    o.on_bad = DR_BAD_REPLACE;
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
            o.on_bad = DR_BAD_SKIP;
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
            o.on_bad = DR_BAD_REPLACE;
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
            o.on_bad = DR_BAD_SKIP;
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
            assert_int_equal(told(&t, "another shape than planned"), 50);
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
                o.on_bad = DR_BAD_SKIP;
                truncated_is_left_out(set, g, &o);
                o.on_bad = DR_BAD_REPLACE;
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
            o.on_bad = DR_BAD_SKIP;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(raise_names_the_sample),    cmocka_unit_test(skip_leaves_batches_shorter),
        cmocka_unit_test(a_whole_bad_batch_is_told), cmocka_unit_test(replace_fills_the_place),
        cmocka_unit_test(limits_end_the_epoch),      cmocka_unit_test(bad_after_its_slot),
        cmocka_unit_test(truncated_while_streaming), cmocka_unit_test(skipped_and_resumed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
