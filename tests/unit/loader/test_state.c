/* Saving and restoring: exact at every batch, whatever else changed, and clear about what does not fit. */
#include "unit/loader/toy.h"

#include "base/alloc.h"

static dr_error err;

static const char *const crop =
    "{\"op\":\"random_crop\",\"params\":{\"size\":[5,5]}},{\"op\":\"random_horizontal_flip\"}";

/* Reads `most` batches, saves, closes; returns the state. */
static char *read_and_save(dr_dataset *set, dr_graph *g, const dr_loader_options *o, int64_t most, tape *t)
{
    char *text = NULL;
    dr_loader *l = open_loader(set, g, o);
    tape_read(t, l, most);
    assert_ok(dr_loader_state(l, &text, &err));
    dr_loader_close(&l);
    return text;
}

static void restore_and_read(dr_dataset *set, dr_graph *g, const dr_loader_options *o, const char *text, tape *t)
{
    dr_loader *l = open_loader(set, g, o);
    assert_ok(dr_loader_restore(l, text, &err));
    tape_read(t, l, -1);
    dr_loader_close(&l);
}

static void every_batch_of_an_epoch(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 50 });
    dr_graph *g = graph_of(crop);
    dr_loader_options o = options_of(7, 2);
    o.shuffle = true;
    o.seed = ((uint64_t)1 << 62) + 1; /* not a number that a double holds */
    tape want = epoch_of(set, g, &o);
    for (int64_t k = 0; k < 8; k++) {
        tape got = { 0 };
        char *text = read_and_save(set, g, &o, k, &got);
        assert_true(strlen(text) < 1024);
        dr_loader_options other = o;
        other.workers = (int)(k % 4);
        other.prefetch = 1 + (int)k;
        restore_and_read(set, g, &other, text, &got);
        assert_same_tape(&want, &got, "resumed");
        tape_free(&got);
        dr_text_free(&text);
    }
    tape_free(&want);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* A batch that the consumer got and could not use comes again, at every place of the epoch, the last one too. */
static void a_held_batch_does_not_count(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 20 });
    dr_graph *g = graph_of(crop);
    for (int way = 0; way < 8; way++) {
        dr_loader_options o = options_of(5, 2);
        o.shuffle = true;
        o.in_order = way < 4;
        tape got = { 0 };
        dr_batch *held = NULL;
        char *text = NULL, *plain = NULL;
        dr_loader *l = open_loader(set, g, &o);
        tape_read(&got, l, way % 4);
        assert_ok(dr_loader_next(l, -1, &held, &err));
        assert_ok(dr_loader_state(l, &plain, &err));
        assert_ok(dr_loader_state_without(l, held, &text, &err));
        restore_and_read(set, g, &o, text, &got);
        assert_each_once(&got, 20);
        dr_text_free(&text);
        assert_ok(dr_loader_state(l, &text, &err)); /* looking changed nothing */
        assert_string_equal(text, plain);
        dr_text_free(&text);
        assert_ok(dr_loader_start(l, 7, &err)); /* another epoch: it is none of its batches */
        assert_ok(dr_loader_state_without(l, held, &text, &err));
        assert_non_null(strstr(text, "\"epoch\":7"));
        dr_text_free(&text);
        dr_text_free(&plain);
        assert_ok(dr_loader_start(l, 0, &err)); /* nor one that this run of its epoch has given */
        assert_ok(dr_loader_state(l, &plain, &err));
        assert_ok(dr_loader_state_without(l, held, &text, &err));
        assert_string_equal(text, plain);
        dr_text_free(&text);
        dr_text_free(&plain);
        dr_batch_unref(&held);
        tape_free(&got);
        dr_loader_close(&l);
    }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* The end of an epoch is the start of the next, whether or not DR_END was seen. */
static void the_end_is_the_next_start(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 20 });
    dr_graph *g = graph_of(crop);
    for (int in_order = 0; in_order < 2; in_order++)
        for (int64_t most = 4; most <= 5; most++) {
            dr_loader_options o = options_of(5, 2);
            o.shuffle = true;
            tape first = { 0 }, want = { 0 }, got = { 0 };
            dr_loader *l = open_loader(set, g, &o);
            assert_ok(dr_loader_start(l, 1, &err));
            tape_read(&want, l, -1);
            dr_loader_close(&l);
            o.in_order = in_order;
            char *text = read_and_save(set, g, &o, most, &first);
            assert_true(strstr(text, "\"epoch\":1") != NULL);
            restore_and_read(set, g, &o, text, &got);
            assert_each_once(&got, 20);
            if (in_order)
                assert_same_tape(&want, &got, "the next epoch");
            dr_text_free(&text);
            tape_free(&first);
            tape_free(&want);
            tape_free(&got);
        }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* World 2, then 3: what is left of the epoch is dealt to the new ranks from the same position. */
static void another_world_goes_on(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 100 });
    dr_graph *g = graph_of(crop);
    tape all = { 0 };
    char *text = NULL;
    dr_loader_options o = options_of(5, 1);
    o.shuffle = true;
    o.world_size = 2;
    for (o.rank = 0; o.rank < 2; o.rank++) {
        dr_text_free(&text);
        text = read_and_save(set, g, &o, 4, &all);
    }
    o.world_size = 3;
    for (o.rank = 0; o.rank < 3; o.rank++)
        restore_and_read(set, g, &o, text, &all);
    assert_each_once(&all, 100);
    dr_text_free(&text);
    tape_free(&all);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void out_of_order_delivers_the_rest(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 120, .slow_every = 11, .slow_us = 2000 });
    dr_graph *g = graph_of(NULL);
    for (int64_t k = 0; k <= 30; k += 3) {
        tape all = { 0 };
        dr_loader_options o = options_of(4, 3);
        o.in_order = false;
        o.shuffle = true;
        char *text = read_and_save(set, g, &o, k, &all), *again = NULL;
        /* saved anew before anything was read, it says the same */
        dr_loader *l = open_loader(set, g, &o);
        assert_ok(dr_loader_restore(l, text, &err));
        assert_ok(dr_loader_state(l, &again, &err));
        if (k < 30)
            assert_string_equal(text, again);
        dr_loader_close(&l);
        /* two stops */
        o.workers = 1;
        l = open_loader(set, g, &o);
        assert_ok(dr_loader_restore(l, again, &err));
        size_t before = all.n;
        if (k < 30)
            tape_read(&all, l, 2);
        dr_text_free(&text);
        assert_ok(dr_loader_state(l, &text, &err));
        dr_loader_close(&l);
        assert_true(k == 30 || all.n == before + (k + 2 <= 30 ? 2 : 30 - (size_t)k));
        o.workers = 2;
        l = open_loader(set, g, &o);
        assert_ok(dr_loader_restore(l, text, &err));
        if (k < 28)
            tape_read(&all, l, -1);
        dr_loader_close(&l);
        assert_each_once(&all, 120);
        tape_free(&all);
        dr_text_free(&text);
        dr_text_free(&again);
    }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void differences_are_named(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 30 }), *other_set = toy_set(&(toy){ .n = 31 });
    dr_graph *g = graph_of(crop), *other_graph = graph_of(NULL);
    dr_loader_options o = options_of(4, 1), p = o;
    tape t = { 0 };
    char *text = read_and_save(set, g, &o, 3, &t);
    struct {
        dr_dataset *set;
        dr_graph *graph;
        const char *part;
    } cases[] = { { other_set, g, "data" },
                  { set, other_graph, "graph" },
                  { set, g, "seed = 0" },
                  { set, g, "shuffle" },
                  { set, g, "batch_size = 4, this loader has 5" },
                  { set, g, "in_order" } };
    for (int i = 0; i < 6; i++) {
        p = o;
        p.seed = i == 2;
        p.shuffle = i == 3;
        p.batch_size = i == 4 ? 5 : 4;
        p.in_order = i != 5;
        dr_loader *l = open_loader(cases[i].set, cases[i].graph, &p);
        assert_fails(dr_loader_restore(l, text, &err), DR_ERR_ARG, cases[i].part);
        tape whole = { 0 };
        tape_read(&whole, l, -1); /* it is as if nothing was asked */
        assert_each_once(&whole, dr_dataset_size(cases[i].set));
        tape_free(&whole);
        dr_loader_close(&l);
    }
    dr_text_free(&text);
    tape_free(&t);
    dr_graph_free(&g);
    dr_graph_free(&other_graph);
    dr_dataset_unref(&set);
    dr_dataset_unref(&other_set);
}

static void damaged_states_are_refused(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 30 });
    dr_graph *g = graph_of(NULL);
    dr_loader_options o = options_of(4, 1);
    o.in_order = false;
    tape t = { 0 };
    char *text = read_and_save(set, g, &o, 3, &t);
    dr_loader *l = open_loader(set, g, &o);
    assert_ok(dr_loader_restore(l, text, &err));
    assert_fails(dr_loader_restore(l, "{", &err), DR_ERR_FORMAT, "state");
    assert_fails(dr_loader_restore(l, "[]", &err), DR_ERR_FORMAT, "version");
    assert_fails(dr_loader_restore(l, "{}", &err), DR_ERR_FORMAT, "version");
    char wrong[1024], *done = strstr(text, "\"done\":[0,");
    assert_non_null(done);
    snprintf(wrong, sizeof wrong, "%.*s\"done\":[0,31%s", (int)(done - text), text, strchr(done, ']'));
    assert_fails(dr_loader_restore(l, wrong, &err), DR_ERR_FORMAT,
                 "done must be pairs of ints [first, n, ...], ascending and within 30 samples, got [0, 31]");
    tape_read(&t, l, -1); /* the good state still holds */
    assert_each_once(&t, 30);
    dr_loader_close(&l);
    /* out of order each rank knows its own only */
    o.world_size = 2;
    l = open_loader(set, g, &o);
    assert_fails(dr_loader_restore(l, text, &err), DR_ERR_ARG, "world = 1, this loader has 2");
    dr_loader_close(&l);
    dr_text_free(&text);
    tape_free(&t);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* Each field with each wrong value: named, and the state that was loaded before still holds. */
static void wrong_types_are_named(void **state)
{
    (void)state;
    static const char *const names[] = { "epoch", "position", "batch", "world", "rank", "done", "drapps_state" };
    static const char *const values[] = { "null", "true",    "\"24\"", "24.0",   "-1",        "1e300",
                                          "{}",   "[[0,1]]", "[0]",    "[24,0]", "[4,2,0,2]", "[0,1.0]" };
    dr_dataset *set = toy_set(&(toy){ .n = 30 });
    dr_graph *g = graph_of(NULL);
    dr_loader_options o = options_of(4, 1);
    o.in_order = false;
    tape t = { 0 };
    char *text = read_and_save(set, g, &o, 3, &t);
    dr_loader *l = open_loader(set, g, &o);
    assert_ok(dr_loader_restore(l, text, &err));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        for (size_t k = 0; k <= sizeof values / sizeof values[0]; k++) {
            json_t *json = json_loads(text, 0, NULL);
            if (k < sizeof values / sizeof values[0])
                json_object_set_new(json, names[i], json_loads(values[k], JSON_DECODE_ANY, NULL));
            else
                json_object_del(json, names[i]);
            char *wrong = json_dumps(json, 0);
            const dr_status status = dr_loader_restore(l, wrong, &err);
            assert_true(status == DR_ERR_FORMAT || status == DR_ERR_ARG);
            assert_non_null(strstr(err.text, names[i]));
            assert_int_equal(dr_loader_check_state(l, wrong, &err), status);
            free(wrong);
            json_decref(json);
        }
    assert_ok(dr_loader_check_state(l, text, &err));
    tape_read(&t, l, -1);
    assert_each_once(&t, 30);
    dr_loader_close(&l);
    dr_text_free(&text);
    tape_free(&t);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* Batch ops are drawn by the number of the batch: it goes on too. */
static void batch_ops_go_on(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 48 });
    dr_graph *g =
        graph_of("{\"op\":\"to_dtype\"},{\"op\":\"mixup\",\"params\":{\"num_classes\":48},\"fields\":[\"image\","
                 "\"label\"]}");
    dr_loader_options o = options_of(8, 2);
    o.shuffle = true;
    tape want = epoch_of(set, g, &o);
    for (int64_t k = 0; k < 6; k++) {
        tape got = { 0 };
        char *text = read_and_save(set, g, &o, k, &got);
        restore_and_read(set, g, &o, text, &got);
        assert_same_tape(&want, &got, "mixup resumed");
        tape_free(&got);
        dr_text_free(&text);
    }
    tape_free(&want);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_batch_of_an_epoch),     cmocka_unit_test(the_end_is_the_next_start),
        cmocka_unit_test(another_world_goes_on),       cmocka_unit_test(out_of_order_delivers_the_rest),
        cmocka_unit_test(differences_are_named),       cmocka_unit_test(damaged_states_are_refused),
        cmocka_unit_test(wrong_types_are_named),       cmocka_unit_test(batch_ops_go_on),
        cmocka_unit_test(a_held_batch_does_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
