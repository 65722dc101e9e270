/* Threads that wait for results or for work, and what ends their waits. */
#include "unit/crew/crew_helper.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "crew/shared.h"

struct taker {
    dr_crew *crew;
    int n_results;
};

static void *take_all(void *arg)
{
    struct taker *t = arg;
    dr_error err;
    dr_crew_result r;
    dr_status status;
    while ((status = dr_crew_next(t->crew, 5000, &r, &err)) == DR_OK) {
        t->n_results++;
        release(t->crew, &r);
    }
    assert_int_equal(status, DR_END);
    return NULL;
}

static void *work(void *arg)
{
    dr_crew *crew = arg;
    dr_error err;
    dr_crew_claim c;
    static atomic_int number;
    int worker = atomic_fetch_add(&number, 1) % 2;
    while (dr_crew_claim_next(crew, worker, 5000, &c, &err) == DR_OK && c.kind != DR_CREW_LEAVE) {
        if (c.kind == DR_CREW_WORK)
            done(crew, worker, 0, c.n);
        else
            assert_ok(dr_crew_finish(crew, worker, c.batch, 0, 0, false, &err));
    }
    return NULL;
}

static void any_number_of_threads_takes_results(void **state)
{
    (void)state;
    for (int in_order = 0; in_order < 2; in_order++) {
        dr_crew *crew = open_crew(2, 1000, in_order);
        pthread_t takers[3], workers[2];
        struct taker t[3] = { { crew, 0 }, { crew, 0 }, { crew, 0 } };
        for (uint64_t tag = 0; tag < 1000; tag++)
            post(crew, tag, 3);
        for (int i = 0; i < 2; i++)
            pthread_create(&workers[i], NULL, work, crew);
        for (int i = 0; i < 3; i++)
            pthread_create(&takers[i], NULL, take_all, &t[i]);
        for (int i = 0; i < 3; i++)
            pthread_join(takers[i], NULL);
        assert_int_equal(t[0].n_results + t[1].n_results + t[2].n_results, 1000);
        dr_crew_close(crew);
        for (int i = 0; i < 2; i++)
            pthread_join(workers[i], NULL);
        end_crew(crew);
    }
}

struct waker {
    dr_crew *crew;
    atomic_bool over;
};

/* Until the call returned: a wake that comes before the call does not end it. */
static void *keep_waking(void *arg)
{
    struct waker *w = arg;
    while (!atomic_load(&w->over)) {
        usleep(1000);
        dr_crew_wake(w->crew);
    }
    return NULL;
}

static void a_wait_can_be_ended(void **state)
{
    (void)state;
    dr_error err;
    dr_crew *crew = open_crew(1, 4, true);
    dr_crew_result r;
    pthread_t thread;
    struct waker waker = { .crew = crew };
    post(crew, 0, 1);
    pthread_create(&thread, NULL, keep_waking, &waker);
    assert_int_equal(dr_crew_next(crew, -1, &r, &err), DR_AGAIN);
    atomic_store(&waker.over, true);
    pthread_join(thread, NULL);
    uint64_t before = dr__now_ns();
    assert_int_equal(dr_crew_next(crew, 3, &r, &err), DR_AGAIN);
    assert_true(dr__now_ns() - before >= 3000000);
    assert_ok(dr_crew_clear(crew, 0, &err));
    end_crew(crew);
}

/* A thread sleeps on the word `ready`: what ends its wait must change it. */
static void the_last_batch_ends_the_wait_of_the_others(void **state)
{
    (void)state;
    dr_error err;
    dr_crew *crew = open_crew(1, 4, true);
    post(crew, 0, 1);
    claim(crew, 0);
    done(crew, 0, 0, 1);
    unsigned ready = atomic_load(&crew->board->ready);
    dr_crew_result r = next(crew);
    assert_int_not_equal(atomic_load(&crew->board->ready), ready);
    release(crew, &r);
    post(crew, 1, 1);
    ready = atomic_load(&crew->board->ready);
    assert_ok(dr_crew_clear(crew, 0, &err));
    assert_int_not_equal(atomic_load(&crew->board->ready), ready);
    end_crew(crew);
}

static void *close_it(void *arg)
{
    dr_crew_close(arg);
    return NULL;
}

/* A worker looks at `closed` and at the word that it sleeps on under one lock: nothing may change between. */
static void a_crew_is_closed_under_its_lock(void **state)
{
    (void)state;
    dr_crew *crew = open_crew(1, 4, true);
    pthread_t thread;
    dr__crew_lock(crew);
    unsigned wake = atomic_load(&crew->workers[0].wake);
    pthread_create(&thread, NULL, close_it, crew);
    usleep(20000);
    assert_false(atomic_load(&crew->board->closed));
    assert_int_equal(atomic_load(&crew->workers[0].wake), wake);
    dr__crew_unlock(crew);
    pthread_join(thread, NULL);
    assert_true(atomic_load(&crew->board->closed));
    assert_int_not_equal(atomic_load(&crew->workers[0].wake), wake);
    end_crew(crew);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_threads_takes_results),
        cmocka_unit_test(a_wait_can_be_ended),
        cmocka_unit_test(the_last_batch_ends_the_wait_of_the_others),
        cmocka_unit_test(a_crew_is_closed_under_its_lock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
