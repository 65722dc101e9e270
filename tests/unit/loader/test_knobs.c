/* Settings changed while an epoch runs: the same bytes, nothing lost, nothing stuck. */
#include "unit/loader/toy.h"

#include <pthread.h>
#include <unistd.h>

#include <drapps/sched.h>

#include "base/compiler.h"

static dr_error err;

static void set(dr_loader *l, const char *knob, double value)
{
    double now = -1;
    assert_ok(dr_loader_set(l, knob, value, &err));
    assert_ok(dr_loader_get(l, knob, &now, &err));
    assert_true(now == value);
}

static const char *const ops =
    "{\"op\":\"random_horizontal_flip\"},{\"op\":\"normalize\",\"params\":{\"mean\":[0.5,0.4,"
    "0.3],\"std\":[0.2,0.2,0.2]}}";

static dr_graph *ops_graph(void)
{
    char text[512];
    snprintf(text, sizeof text, "{\"op\":\"random_crop\",\"params\":{\"size\":[5,5]}},{\"op\":\"to_dtype\"},%s", ops);
    return graph_of(text);
}

/* Turns the knobs after every batch and compares with a run that leaves them alone. */
static void turn_and_compare(bool in_order, uint64_t slow_every)
{
    static const int workers[] = { 4, 1, 0, 3, 1, 2, 0, 8, 1, 0, 5 }, prefetch[] = { 1, 7, 2, 64, 1, 3 };
    static const int readers[] = { 0, 2, 64, 1, 0, 0, 5 };
    static const double bytes[] = { 0, 1, 1000, 1e15 }, shares[] = { 0, 0.2, 1 }, times[] = { 4, 1, 2.5, 1000, 1 };
    dr_dataset *data = toy_set(&(toy){ .n = 160, .slow_every = slow_every, .slow_us = 700 });
    dr_graph *g = ops_graph();
    dr_loader_options o = options_of(4, 0);
    o.shuffle = true;
    tape want = epoch_of(data, g, &o), got = { 0 };
    o.workers = 1;
    o.in_order = in_order;
    dr_loader *l = open_loader(data, g, &o);
    for (int i = 0; i < 40; i++) {
        tape_read(&got, l, 1);
        set(l, "workers", workers[i % 11]);
        set(l, "prefetch", prefetch[i % 6]);
        set(l, "readers", readers[i % 7]);
        set(l, "prefetch_bytes", bytes[i % 4]);
        set(l, "lane_share", shares[i % 3]);
        set(l, "lane_threshold", times[i % 5]);
        set(l, "cpu_ceiling", i % 3 * 0.75);
        set(l, "priority", i % 5 % 3 - 1);
    }
    tape_read(&got, l, -1);
    if (in_order)
        assert_same_tape(&want, &got, "knobs turned");
    assert_each_once(&got, 160);
    dr_loader_close(&l);
    tape_free(&want);
    tape_free(&got);
    dr_graph_free(&g);
    dr_dataset_unref(&data);
}

static void knobs_change_no_bytes(void **state)
{
    (void)state;
    turn_and_compare(true, 3);
    turn_and_compare(true, 1);
    turn_and_compare(false, 3);
    turn_and_compare(false, 0);
}

/* A worker that leaves while the others sleep must hand its place on, to another worker or to the caller. */
static void last_worker_hands_over(void **state)
{
    (void)state;
    dr_dataset *data = toy_set(&(toy){ .n = 60, .slow_every = 1, .slow_us = 3000 });
    dr_graph *g = graph_of(NULL);
    for (int to = 0; to <= 1; to++)
        for (int round = 0; round < 5; round++) {
            dr_loader_options o = options_of(20, 4);
            o.prefetch = 1;
            dr_loader *l = open_loader(data, g, &o);
            dr_batch *b = NULL;
            assert_int_equal(dr_loader_next(l, 2, &b, &err), DR_AGAIN); /* all four are at work */
            set(l, "workers", to);
            tape t = { 0 };
            dr_status status = dr_loader_next(l, 10000, &b, &err);
            if (status != DR_OK)
                fail_msg("stuck after workers = %d: %s", to, dr_status_name(status));
            tape_add(&t, b);
            dr_batch_unref(&b);
            finish_epoch(&t, &l, 60);
        }
    dr_graph_free(&g);
    dr_dataset_unref(&data);
}

static void *wait_for_one(void *arg)
{
    dr_batch *b = NULL;
    dr_error e = { 0 };
    dr_status status = dr_loader_next(arg, 10000, &b, &e);
    dr_batch_unref(&b);
    return (void *)(intptr_t)status;
}

/* The same while a consumer waits already: it must notice that it is to work itself, or no longer has to. */
static void a_waiting_consumer_notices(void **state)
{
    (void)state;
    static const int turns[][2] = { { 3, 0 }, { 0, 1 }, { 4, 1 }, { 0, 3 } };
    dr_dataset *data = toy_set(&(toy){ .n = 20, .slow_every = 1, .slow_us = 2000 });
    dr_graph *g = graph_of(NULL);
    for (int i = 0; i < 8; i++) {
        dr_loader_options o = options_of(20, turns[i % 4][0]);
        dr_loader *l = open_loader(data, g, &o);
        pthread_t thread;
        void *status;
        assert_int_equal(pthread_create(&thread, NULL, wait_for_one, l), 0);
        usleep(3000);
        set(l, "workers", turns[i % 4][1]);
        pthread_join(thread, &status);
        if ((intptr_t)status != DR_OK)
            fail_msg("workers %d to %d: %s", turns[i % 4][0], turns[i % 4][1],
                     dr_status_name((dr_status)(intptr_t)status));
        dr_loader_close(&l);
    }
    dr_graph_free(&g);
    dr_dataset_unref(&data);
}

/* More threads than one loader uses: they must not sleep through the work of the other. */
static void two_loaders_share(void **state)
{
    (void)state;
    dr_dataset *data = toy_set(&(toy){ .n = 40, .slow_every = 1, .slow_us = 500 });
    dr_graph *g = graph_of(NULL);
    dr_loader_options o = options_of(5, 1), p = options_of(5, 4);
    dr_loader *a = open_loader(data, g, &o), *b = open_loader(data, g, &p);
    tape one = { 0 }, two = { 0 };
    for (int i = 0; i < 8; i++) {
        tape_read(&one, a, 1);
        tape_read(&two, b, 1);
    }
    assert_same_tape(&one, &two, "two loaders at once");
    dr_loader_close(&b); /* its threads leave; a goes on with one */
    assert_ok(dr_loader_start(a, 0, &err));
    tape again = { 0 };
    tape_read(&again, a, -1);
    assert_same_tape(&one, &again, "after the other was closed");
    dr_loader_close(&a);
    tape_free(&one);
    tape_free(&two);
    tape_free(&again);
    dr_graph_free(&g);
    dr_dataset_unref(&data);
}

static void standard_settings(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double value;
    } rows[] = { { "workers", 3 },    { "readers", 0 },        { "prefetch", 18 },   { "prefetch_bytes", 0 },
                 { "lane_share", 0 }, { "lane_threshold", 4 }, { "cpu_ceiling", 0 }, { "priority", 0 },
                 { "codec", -1 },     { "offload", 1 } };
    dr_dataset *data = toy_set(&(toy){ .n = 4 });
    dr_graph *g = graph_of(NULL);
    dr_loader_options o = options_of(2, 3);
    dr_loader *l = open_loader(data, g, &o);
    assert_int_equal(DR_COUNT(rows), DR_N_KNOBS);
    for (size_t i = 0; i < DR_COUNT(rows); i++) {
        double v = -7;
        assert_ok(dr_loader_get(l, rows[i].name, &v, &err));
        assert_true(v == rows[i].value);
        set(l, rows[i].name, rows[i].value);
    }
    dr_loader_close(&l);
    dr_graph_free(&g);
    dr_dataset_unref(&data);
}

/* Two batches; of small ones of known size as many as are 12 samples for each worker, within 64 MB and the budget. */
static void standard_prefetch(void **state)
{
    (void)state;
    enum { MB = 1 << 20 };
    static const struct {
        int64_t side; /* of images, three bytes a pixel */
        uint64_t batch_size;
        int workers;
        uint64_t memory_limit;
        const char *outputs, *collate;
        double value;
    } rows[] = {
        { 8, 1, 1, 0, "image", NULL, 12 },
        { 8, 5, 2, 0, "image", NULL, 5 },
        { 8, 64, 4, 0, "image", NULL, 2 },
        { 8, 1, 8, 0, "image", NULL, 64 },              /* the most */
        { 8, 2, 0, 0, "image", NULL, 2 },               /* none is made ahead */
        { 1024, 4, 4, 0, "image", NULL, 5 },            /* of 12 MB */
        { 2048, 8, 4, 4096ull * MB, "image", NULL, 2 }, /* of 96 MB */
        { 1024, 4, 4, 88 * MB, "image", NULL, 3 },      /* half of it */
        { 8, 2, 2, 0, "image,label", NULL, 12 },
        { 8, 2, 2, 0, "image,tokens", "tokens=pad", 2 }, /* who knows how many */
    };
    dr_graph *g = graph_of(NULL);
    for (size_t i = 0; i < DR_COUNT(rows); i++) {
        dr_dataset *data = toy_set(&(toy){ .n = 4, .h = rows[i].side, .w = rows[i].side });
        dr_loader_options o = options_of(rows[i].batch_size, rows[i].workers);
        o.memory_limit = rows[i].memory_limit;
        o.outputs = rows[i].outputs;
        o.collate = rows[i].collate;
        dr_loader *l = open_loader(data, g, &o);
        double v = 0;
        assert_ok(dr_loader_get(l, "prefetch", &v, &err));
        if (v != rows[i].value)
            fail_msg("row %zu: prefetch is %g, not %g", i, v, rows[i].value);
        dr_loader_close(&l);
        dr_dataset_unref(&data);
    }
    dr_graph_free(&g);
}

static void wrong_settings_are_named(void **state)
{
    (void)state;
    dr_dataset *data = toy_set(&(toy){ .n = 4 });
    dr_graph *g = graph_of(NULL);
    dr_loader_options o = options_of(2, 0);
    dr_loader *l = open_loader(data, g, &o);
    double v;
    assert_fails(dr_loader_set(l, "workers", 257, &err), DR_ERR_ARG, "0 to 256");
    assert_fails(dr_loader_set(l, "workers", 1.5, &err), DR_ERR_ARG, "an int from");
    assert_fails(dr_loader_set(l, "readers", 65, &err), DR_ERR_ARG, "an int from 0 to 64");
    assert_fails(dr_loader_set(l, "priority", 0.5, &err), DR_ERR_ARG, "an int from -1 to 1");
    assert_fails(dr_loader_set(l, "lane_share", 1.5, &err), DR_ERR_ARG,
                 "lane_share must be a number from 0 to 1, got 1.5");
    assert_fails(dr_loader_set(l, "lane_threshold", 0.9, &err), DR_ERR_ARG, "a number from 1 to 1000");
    assert_fails(dr_loader_set(l, "cpu_ceiling", -1, &err), DR_ERR_ARG, "a number from 0 to 512");
    assert_fails(dr_loader_set(l, "prefetch_bytes", 2e15, &err), DR_ERR_ARG, "0 to 1e+15");
    assert_fails(dr_loader_set(l, "prefetch", 0, &err), DR_ERR_ARG, "1 to 64");
    assert_fails(dr_loader_set(l, "prefetch", 0.0 / 0.0, &err), DR_ERR_ARG, "prefetch");
    assert_fails(dr_loader_set(l, "speed", 1, &err), DR_ERR_NOT_FOUND, "speed");
    assert_fails(dr_loader_set(l, "speed", 1, &err), DR_ERR_NOT_FOUND, "workers, readers, prefetch");
    assert_fails(dr_loader_get(l, "speed", &v, &err), DR_ERR_NOT_FOUND, "speed");
    dr_loader_close(&l);
    dr_graph_free(&g);
    dr_dataset_unref(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knobs_change_no_bytes),      cmocka_unit_test(last_worker_hands_over),
        cmocka_unit_test(a_waiting_consumer_notices), cmocka_unit_test(two_loaders_share),
        cmocka_unit_test(standard_settings),          cmocka_unit_test(standard_prefetch),
        cmocka_unit_test(wrong_settings_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
