/* Threads that wait for results or for work, and what ends their waits. */
#include "unit/shmpool/shmpool_helper.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "shmpool/shared.h"

struct taker {
    dr_shmpool *shmpool;
    int n_results;
};

static void *take_all(void *arg)
{
    struct taker *t = arg;
    dr_error err;
    dr_shmpool_result r;
    dr_status status;
    while ((status = dr_shmpool_next(t->shmpool, 5000, &r, &err)) == DR_OK) {
        t->n_results++;
        release(t->shmpool, &r);
    }
    assert_int_equal(status, DR_END);
    return NULL;
}

static void *work(void *arg)
{
    dr_shmpool *shmpool = arg;
    dr_error err;
    dr_shmpool_claim c;
    static atomic_int number;
    int worker = atomic_fetch_add(&number, 1) % 2;
    while (dr_shmpool_claim_next(shmpool, worker, 5000, &c, &err) == DR_OK && c.kind != DR_SHMPOOL_LEAVE) {
        if (c.kind == DR_SHMPOOL_WORK)
            done(shmpool, worker, 0, c.n);
        else
            assert_ok(dr_shmpool_finish(shmpool, worker, c.batch, 0, 0, false, &err));
    }
    return NULL;
}

static void any_number_of_threads_takes_results(void **state)
{
    (void)state;
    for (int in_order = 0; in_order < 2; in_order++) {
        dr_shmpool *shmpool = open_shmpool(2, 1000, in_order);
        pthread_t takers[3], workers[2];
        struct taker t[3] = { { shmpool, 0 }, { shmpool, 0 }, { shmpool, 0 } };
        for (uint64_t tag = 0; tag < 1000; tag++)
            post(shmpool, tag, 3);
        for (int i = 0; i < 2; i++)
            pthread_create(&workers[i], NULL, work, shmpool);
        for (int i = 0; i < 3; i++)
            pthread_create(&takers[i], NULL, take_all, &t[i]);
        for (int i = 0; i < 3; i++)
            pthread_join(takers[i], NULL);
        assert_int_equal(t[0].n_results + t[1].n_results + t[2].n_results, 1000);
        dr_shmpool_close(shmpool);
        for (int i = 0; i < 2; i++)
            pthread_join(workers[i], NULL);
        end_shmpool(shmpool);
    }
}

struct waker {
    dr_shmpool *shmpool;
    atomic_bool over;
};

/* Until the call returned: a wake that comes before the call does not end it. */
static void *keep_waking(void *arg)
{
    struct waker *w = arg;
    while (!atomic_load(&w->over)) {
        usleep(1000);
        dr_shmpool_wake(w->shmpool);
    }
    return NULL;
}

static void a_wait_can_be_ended(void **state)
{
    (void)state;
    dr_error err;
    dr_shmpool *shmpool = open_shmpool(1, 4, true);
    dr_shmpool_result r;
    pthread_t thread;
    struct waker waker = { .shmpool = shmpool };
    post(shmpool, 0, 1);
    pthread_create(&thread, NULL, keep_waking, &waker);
    assert_int_equal(dr_shmpool_next(shmpool, -1, &r, &err), DR_AGAIN);
    atomic_store(&waker.over, true);
    pthread_join(thread, NULL);
    uint64_t before = dr__now_ns();
    assert_int_equal(dr_shmpool_next(shmpool, 3, &r, &err), DR_AGAIN);
    assert_true(dr__now_ns() - before >= 3000000);
    assert_ok(dr_shmpool_clear(shmpool, 0, &err));
    end_shmpool(shmpool);
}

/* A thread sleeps on the word `ready`: what ends its wait must change it. */
static void the_last_batch_ends_the_wait_of_the_others(void **state)
{
    (void)state;
    dr_error err;
    dr_shmpool *shmpool = open_shmpool(1, 4, true);
    post(shmpool, 0, 1);
    claim(shmpool, 0);
    done(shmpool, 0, 0, 1);
    unsigned ready = atomic_load(&shmpool->board->ready);
    dr_shmpool_result r = next(shmpool);
    assert_int_not_equal(atomic_load(&shmpool->board->ready), ready);
    release(shmpool, &r);
    post(shmpool, 1, 1);
    ready = atomic_load(&shmpool->board->ready);
    assert_ok(dr_shmpool_clear(shmpool, 0, &err));
    assert_int_not_equal(atomic_load(&shmpool->board->ready), ready);
    end_shmpool(shmpool);
}

static void *close_it(void *arg)
{
    dr_shmpool_close(arg);
    return NULL;
}

/* A worker looks at `closed` and at the word that it sleeps on under one lock: nothing may change between. */
static void a_shmpool_is_closed_under_its_lock(void **state)
{
    (void)state;
    dr_shmpool *shmpool = open_shmpool(1, 4, true);
    pthread_t thread;
    dr__shmpool_lock(shmpool);
    unsigned wake = atomic_load(&shmpool->workers[0].wake);
    pthread_create(&thread, NULL, close_it, shmpool);
    usleep(20000);
    assert_false(atomic_load(&shmpool->board->closed));
    assert_int_equal(atomic_load(&shmpool->workers[0].wake), wake);
    dr__shmpool_unlock(shmpool);
    pthread_join(thread, NULL);
    assert_true(atomic_load(&shmpool->board->closed));
    assert_int_not_equal(atomic_load(&shmpool->workers[0].wake), wake);
    end_shmpool(shmpool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_threads_takes_results),
        cmocka_unit_test(a_wait_can_be_ended),
        cmocka_unit_test(the_last_batch_ends_the_wait_of_the_others),
        cmocka_unit_test(a_shmpool_is_closed_under_its_lock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
