/* Several consumers drain one loader: who came first is served first, so that none goes without. */
#include "unit/loader/toy.h"

#include <pthread.h>
#include <unistd.h>

#include "loader/loader_internal.h"

enum { CONSUMERS = 8, ROUNDS = 25 };

static dr_error err;

typedef struct consumer {
    pthread_t thread;
    dr_loader *loader;
    uint64_t got[ROUNDS + 1];
    int n;
    dr_status status; /* of the last call */
} consumer;

static void *consume(void *arg)
{
    consumer *c = arg;
    for (;;) {
        dr_batch *b = NULL;
        c->status = dr_loader_next(c->loader, -1, &b, NULL);
        if (c->status != DR_OK || c->n > ROUNDS)
            return NULL;
        c->got[c->n++] = dr_batch_ids(b)[0];
        dr_batch_unref(&b);
    }
}

static int waiting(dr_loader *l)
{
    dr__pool_lock();
    int n = l->exec.consumers.waiting;
    dr__pool_unlock();
    return n;
}

static void wait_until_waiting(dr_loader *l, int n)
{
    while (waiting(l) != n)
        usleep(100);
}

static void wait_until_delivered(dr_loader *l, uint64_t n)
{
    for (uint64_t seen = 0; seen < n; usleep(20)) {
        dr__pool_lock();
        seen = l->exec.progress.delivered;
        dr__pool_unlock();
    }
}

/* Nothing is pushed before all wait again, so the line is known: each gets every eighth batch. */
static void first_come_first_served(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = CONSUMERS * ROUNDS });
    dr_graph *g = graph_of(NULL);
    for (int workers = 0; workers <= 2; workers += 2) {
        dr_loader_options o = options_of(1, workers);
        o.pushed_order = true;
        dr_loader *l = open_loader(set, g, &o);
        consumer c[CONSUMERS] = { 0 };
        assert_ok(dr_loader_start(l, 0, &err));
        for (int i = 0; i < CONSUMERS; i++) {
            c[i].loader = l;
            assert_int_equal(pthread_create(&c[i].thread, NULL, consume, &c[i]), 0);
            wait_until_waiting(l, i + 1);
        }
        for (uint64_t id = 0; id < CONSUMERS * ROUNDS; id++) {
            assert_ok(dr_loader_push(l, &id, 1, &err));
            wait_until_delivered(l, id + 1);
            wait_until_waiting(l, CONSUMERS);
        }
        assert_ok(dr_loader_push_end(l, &err));
        for (int i = 0; i < CONSUMERS; i++) {
            pthread_join(c[i].thread, NULL);
            assert_int_equal(c[i].status, DR_END);
            assert_int_equal(c[i].n, ROUNDS);
            for (uint64_t k = 0; k < ROUNDS; k++)
                assert_int_equal(c[i].got[k], k * CONSUMERS + (uint64_t)i);
        }
        dr_loader_close(&l);
    }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* --- equal shares --- */

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
static uint64_t may_read; /* samples below this id */

static void wait_to_read(uint64_t id)
{
    pthread_mutex_lock(&gate);
    while (id >= may_read)
        pthread_cond_wait(&opened, &gate);
    pthread_mutex_unlock(&gate);
}

static void open_gate(uint64_t below)
{
    pthread_mutex_lock(&gate);
    may_read = below;
    pthread_cond_broadcast(&opened);
    pthread_mutex_unlock(&gate);
}

/* All wait; then as many batches are let through as there are consumers, and whoever has one comes back for more.  A
 * free-for-all would let some have two before others have one.  (In order and out of it: who makes batches and when
 * they are ready differs, not who is served.) */
static void equal_steps_get_equal_shares(void **state)
{
    (void)state;
    enum { BATCH = 2 };
    dr_dataset *set = toy_set(&(toy){ .n = CONSUMERS * ROUNDS * BATCH, .on_read = wait_to_read });
    dr_graph *g = graph_of(NULL);
    for (int in_order = 0; in_order < 2; in_order++) {
        dr_loader_options o = options_of(BATCH, 2);
        o.in_order = in_order;
        o.prefetch = CONSUMERS;
        open_gate(0);
        dr_loader *l = open_loader(set, g, &o);
        consumer c[CONSUMERS] = { 0 };
        assert_ok(dr_loader_start(l, 0, &err));
        for (int i = 0; i < CONSUMERS; i++) {
            c[i].loader = l;
            assert_int_equal(pthread_create(&c[i].thread, NULL, consume, &c[i]), 0);
        }
        for (int round = 0; round < ROUNDS; round++) {
            wait_until_waiting(l, CONSUMERS);
            for (int i = 0; i < CONSUMERS; i++)
                assert_int_equal(c[i].n, round);
            open_gate((uint64_t)(round + 1) * CONSUMERS * BATCH);
            wait_until_delivered(l, (uint64_t)(round + 1) * CONSUMERS);
        }
        for (int i = 0; i < CONSUMERS; i++) {
            pthread_join(c[i].thread, NULL);
            assert_int_equal(c[i].status, DR_END);
            assert_int_equal(c[i].n, ROUNDS);
        }
        dr_loader_close(&l);
    }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_come_first_served),
        cmocka_unit_test(equal_steps_get_equal_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
