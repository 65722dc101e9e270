/* Several consumers, cancelling, closing and starting anew at any moment. */
#include "unit/loader/toy.h"

#include <pthread.h>
#include <unistd.h>

#include "loader/loader_internal.h"
#include "unit/loader/gate.h"

static dr_error err;

typedef struct consumer {
    pthread_t thread;
    dr_loader *loader;
    int timeout_ms;
    dr_status status; /* of the last call */
    tape t;
} consumer;

static void *consume(void *arg)
{
    consumer *c = arg;
    for (;;) {
        dr_batch *b = NULL;
        dr_error e = { 0 };
        c->status = dr_loader_next(c->loader, c->timeout_ms, &b, &e);
        if (c->status == DR_AGAIN)
            continue;
        if (c->status != DR_OK)
            return NULL;
        tape_add(&c->t, b);
        dr_batch_unref(&b);
    }
}

static void start_consumers(consumer *c, int n, dr_loader *l, int timeout_ms)
{
    for (int i = 0; i < n; i++) {
        c[i] = (consumer){ .loader = l, .timeout_ms = timeout_ms };
        assert_int_equal(pthread_create(&c[i].thread, NULL, consume, &c[i]), 0);
    }
}

/* Joins them; all batches in *all. */
static void gather(consumer *c, int n, dr_status want, tape *all)
{
    for (int i = 0; i < n; i++) {
        pthread_join(c[i].thread, NULL);
        if (c[i].status != want)
            fail_msg("consumer %d ended with %s", i, dr_status_name(c[i].status));
        all->batches = realloc(all->batches, (all->n + c[i].t.n + 1) * sizeof *all->batches);
        if (c[i].t.n)
            memcpy(all->batches + all->n, c[i].t.batches, c[i].t.n * sizeof *all->batches);
        all->n += c[i].t.n;
        free(c[i].t.batches);
    }
}

static void each_batch_goes_to_one(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 200, .slow_every = 9, .slow_us = 300 });
    dr_graph *g = graph_of(NULL);
    for (int workers = 0; workers <= 3; workers++)
        for (int in_order = 0; in_order < 2; in_order++) {
            dr_loader_options o = options_of(3, workers);
            o.in_order = in_order;
            dr_loader *l = open_loader(set, g, &o);
            consumer c[4];
            tape all = { 0 };
            start_consumers(c, 4, l, workers == 2 ? 0 : -1); /* the first calls of all four begin the epoch */
            gather(c, 4, DR_END, &all);
            assert_each_once(&all, 200);
            tape_free(&all);
            dr_loader_close(&l);
        }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void cancel_wakes_all(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 1000, .slow_every = 1, .slow_us = 2000 });
    dr_graph *g = graph_of(NULL);
    for (int workers = 0; workers <= 2; workers++) {
        dr_loader_options o = options_of(500, workers);
        dr_loader *l = open_loader(set, g, &o);
        consumer c[3];
        tape none = { 0 };
        start_consumers(c, 3, l, -1);
        usleep(5000);
        dr_loader_cancel(l);
        gather(c, 3, DR_ERR_CANCELLED, &none);
        assert_int_equal(none.n, 0);
        tape_free(&none);
        dr_batch *b = NULL;
        assert_fails(dr_loader_next(l, -1, &b, &err), DR_ERR_CANCELLED, "cancelled");
        assert_ok(dr_loader_start(l, 1, &err)); /* and it can be started again */
        dr_loader_cancel(l);
        dr_loader_close(&l);
    }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* So many are in dr_loader_next: who came later would find a loader that is gone. */
static void until_inside(dr_loader *l, int n)
{
    int inside = 0;
    while (inside < n) {
        usleep(1000);
        pthread_mutex_lock(&l->lock);
        inside = l->callers;
        pthread_mutex_unlock(&l->lock);
    }
}

static gate reads = OPEN_GATE;

static void wait_at_read(uint64_t id)
{
    (void)id;
    pass_gate(&reads);
}

static void *close_loader(void *arg)
{
    dr_loader_close(arg);
    return NULL;
}

static bool runs(dr_loader *l, uint64_t *claimed)
{
    dr__pool_lock();
    const bool runs = l->exec.run.running;
    *claimed = l->exec.progress.claimed;
    dr__pool_unlock();
    return runs;
}

/* Far more may be made ahead: none of that is begun once a loader is being closed. */
static void closing_waits_only_for_samples_in_flight(void **state)
{
    (void)state;
    enum { N = 400, WORKERS = 2, BATCH = 10 };
    dr_dataset *set = toy_set(&(toy){ .n = N, .on_read = wait_at_read });
    dr_graph *g = graph_of(NULL);
    for (int in_order = 0; in_order < 2; in_order++) {
        dr_loader_options o = options_of(BATCH, WORKERS);
        o.in_order = in_order;
        o.prefetch = N / BATCH;
        const uint64_t before = toy_reads();
        uint64_t claimed = 0;
        pthread_t thread;
        set_gate(&reads, false);
        dr_loader *l = open_loader(set, g, &o), *same = l;
        assert_ok(dr_loader_start(l, 0, &err));
        wait_inside(&reads, WORKERS);
        assert_int_equal(pthread_create(&thread, NULL, close_loader, &l), 0);
        while (runs(same, &claimed)) /* it waits for the two at the gate, so it is there */
            usleep(100);
        set_gate(&reads, true);
        pthread_join(thread, NULL);
        assert_in_range(claimed, WORKERS, WORKERS * BATCH);
        assert_in_range(toy_reads() - before, WORKERS, claimed);
    }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void closing_wakes_consumers(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 1000, .slow_every = 1, .slow_us = 1000 });
    dr_graph *g = graph_of(NULL);
    for (int workers = 0; workers <= 2; workers++) {
        dr_loader_options o = options_of(500, workers);
        dr_loader *l = open_loader(set, g, &o), *same = l;
        consumer c[3];
        tape none = { 0 };
        start_consumers(c, 3, same, -1);
        until_inside(same, 3);
        dr_loader_close(&l);
        assert_null(l);
        gather(c, 3, DR_ERR_CANCELLED, &none);
        tape_free(&none);
    }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void close_while_busy(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 500, .slow_every = 3, .slow_us = 400 });
    dr_graph *g = graph_of(NULL);
    for (int i = 0; i < 40; i++) {
        dr_loader_options o = options_of(4, i % 5);
        o.in_order = i % 2;
        dr_loader *l = open_loader(set, g, &o);
        tape t = { 0 };
        tape_read(&t, l, i % 7);
        dr_loader_close(&l);
        tape_free(&t);
    }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void start_in_mid_epoch(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 90 });
    dr_graph *g = graph_of(NULL);
    for (int workers = 0; workers <= 3; workers++)
        for (int in_order = 0; in_order < 2; in_order++) {
            dr_loader_options o = options_of(8, workers);
            o.shuffle = true;
            dr_loader *l = open_loader(set, g, &o);
            tape want = { 0 }, got = { 0 }, some = { 0 };
            assert_ok(dr_loader_start(l, 3, &err));
            tape_read(&want, l, -1);
            dr_loader_close(&l);
            o.in_order = in_order;
            l = open_loader(set, g, &o);
            for (int i = 0; i < 5; i++) {
                assert_ok(dr_loader_start(l, (uint64_t)i, &err));
                tape_read(&some, l, i);
            }
            assert_ok(dr_loader_start(l, 3, &err));
            tape_read(&got, l, -1);
            assert_each_once(&got, 90);
            if (in_order)
                assert_same_tape(&want, &got, "started anew");
            tape_free(&want);
            tape_free(&got);
            tape_free(&some);
            dr_loader_close(&l);
        }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* With workers = 0 the caller works, but not longer than it said: a front end looks for Ctrl-C in between. */
static void the_caller_keeps_its_time(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 40, .slow_every = 1, .slow_us = 2000 });
    dr_graph *g = graph_of(NULL);
    dr_loader_options o = options_of(40, 0);
    dr_loader *l = open_loader(set, g, &o);
    dr_batch *b = NULL;
    int again = 0;
    dr_status status;
    while ((status = dr_loader_next(l, 0, &b, &err)) == DR_AGAIN)
        again++;
    assert_ok(status);
    assert_true(again > 0);
    assert_int_equal(dr_batch_samples(b), 40);
    dr_batch_unref(&b);
    dr_loader_close(&l);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_batch_goes_to_one),
        cmocka_unit_test(cancel_wakes_all),
        cmocka_unit_test(closing_waits_only_for_samples_in_flight),
        cmocka_unit_test(closing_wakes_consumers),
        cmocka_unit_test(close_while_busy),
        cmocka_unit_test(start_in_mid_epoch),
        cmocka_unit_test(the_caller_keeps_its_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
