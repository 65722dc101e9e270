/* The CPU time of worker processes under a ceiling: by times that the test makes up, and by processes that burn CPU. */
#include "unit/crew/crew_helper.h"

#include <pthread.h>

#include "base/clock.h"
#include "crew/shared.h"

enum { MS = 1000000 };

static dr_error err;

static dr_crew *open_under(double cpus, int workers)
{
    dr_crew *crew = open_crew(workers, 16, true);
    assert_ok(dr_crew_set_ceiling(crew, cpus, &err));
    return crew;
}

/* From here on there is so much in the bucket; negative: so much was used too early. */
static void leave(dr_crew *crew, double left_ms)
{
    dr__crew_lock(crew);
    crew->board->ceiling.left_ns = left_ms * MS;
    crew->board->ceiling.filled_ns = dr__now_ns();
    dr__crew_unlock(crew);
}

static void assert_left(const dr_crew *crew, double left_ms)
{
    assert_float_equal(crew->board->ceiling.left_ns / MS, left_ms, 1e-3);
}

/* --- by made-up times --- */

static void claims_are_paid_for_before_the_next(void **state)
{
    (void)state;
    dr_crew *crew = open_under(0.25, 3);
    const uint64_t t = crew->board->ceiling.filled_ns;
    uint64_t until = 0;
    dr__meter_read(crew, 0, 500 * MS); /* what was before its first claim does not count */
    assert_true(dr__meter_begin(crew, 0, t + 4 * MS, &until));
    assert_left(crew, 1);
    dr__meter_read(crew, 0, 516 * MS);
    assert_left(crew, -15);
    assert_false(dr__meter_begin(crew, 0, t + 4 * MS, &until));
    assert_int_equal(until, t + 64 * MS); /* 15 ms of a quarter */
    dr__meter_read(crew, 1, 9 * MS);
    assert_false(dr__meter_begin(crew, 1, t + 4 * MS, &until));
    assert_int_equal(until, t + 72 * MS); /* behind the other, whose claim is expected to take 2 ms */
    assert_true(dr__meter_begin(crew, 1, t + 68 * MS, &until));
    assert_left(crew, -1);
    dr__meter_read(crew, 1, 12 * MS); /* 3 ms, 2 of which it took in advance */
    assert_left(crew, -2);
    end_crew(crew);
}

static void what_is_no_claim_of_work_is_paid_for_too(void **state)
{
    (void)state;
    dr_crew *crew = open_under(1, 1);
    leave(crew, 10);
    dr__meter_read(crew, 0, 100 * MS);
    dr__meter_read(crew, 0, 104 * MS); /* a batch that it finished */
    assert_left(crew, 6);
    assert_true(crew->board->ceiling.mean_ns == 0);
    dr__meter_read(crew, 0, 0); /* no ceiling for a while */
    dr__meter_read(crew, 0, 300 * MS);
    assert_left(crew, 6);
    end_crew(crew);
}

/* --- claims --- */

static void work_waits_while_nothing_is_left(void **state)
{
    (void)state;
    dr_crew *crew = open_under(0.5, 2);
    post(crew, 1, 2);
    leave(crew, -1e6);
    assert_nothing(crew, 0);
    assert_true(crew->workers[0].held && crew->workers[0].waits);
    leave(crew, 9);
    assert_int_equal(claim(crew, 0).kind, DR_CREW_WORK);
    done(crew, 0, 0, 1);
    leave(crew, -1e6);
    assert_nothing(crew, 1);
    assert_ok(dr_crew_set_ceiling(crew, 0, &err));
    assert_false(crew->workers[1].waits); /* it was woken */
    assert_int_equal(claim(crew, 1).kind, DR_CREW_WORK);
    assert_true(done(crew, 1, 0, 1));
    dr_crew_result r = next(crew);
    release(crew, &r);
    end_crew(crew);
}

static void nobody_waits_to_finish_or_to_leave(void **state)
{
    (void)state;
    bool ready;
    dr_crew_claim c;
    dr_crew *crew = open_under(0.5, 3);
    post(crew, 1, 1);
    post(crew, 2, 1);
    leave(crew, 9);
    assert_int_equal(claim(crew, 0).kind, DR_CREW_WORK);
    assert_ok(dr_crew_done(crew, 0, 0, 1, 0, false, &ready, &c, &err));
    assert_true(ready);
    leave(crew, -1e6);
    dr_crew_bury(crew, 0, NULL, 0); /* before it finished the batch */
    c = claim(crew, 1);
    assert_int_equal(c.kind, DR_CREW_FINISH);
    assert_ok(dr_crew_finish(crew, 1, c.batch, 0, 0, false, &err));
    assert_nothing(crew, 1); /* there is work */
    dr_crew_dismiss(crew, 1);
    assert_int_equal(claim(crew, 1).kind, DR_CREW_LEAVE);
    dr_crew_close(crew);
    assert_int_equal(claim(crew, 2).kind, DR_CREW_LEAVE);
    dr_crew_result r = next(crew);
    release(crew, &r);
    assert_ok(dr_crew_clear(crew, 0, &err));
    end_crew(crew);
}

static void a_dead_worker_keeps_no_reservation(void **state)
{
    (void)state;
    dr_crew *crew = open_under(1, 2);
    post(crew, 1, 2);
    leave(crew, 3);
    crew->board->ceiling.mean_ns = 5 * MS;
    crew->board->ceiling.filled_ns = UINT64_MAX; /* time adds nothing */
    claim(crew, 0);
    assert_left(crew, -2);
    assert_true(crew->workers[0].reserved_ns == 5 * MS);
    assert_nothing(crew, 1);
    dr_crew_bury(crew, 1, NULL, 0);
    assert_false(crew->workers[1].held);
    dr_crew_bury(crew, 0, NULL, 0);
    dr_crew_bury(crew, 0, NULL, 0);
    assert_left(crew, 3);
    assert_int_equal(claim(crew, 1).kind, DR_CREW_WORK);
    dr_crew_bury(crew, 1, NULL, 0);
    assert_ok(dr_crew_clear(crew, 0, &err));
    end_crew(crew);
}

static void a_ceiling_is_a_number(void **state)
{
    (void)state;
    dr_crew *crew = open_crew(1, 4, true);
    assert_fails(dr_crew_set_ceiling(crew, -1, &err), DR_ERR_ARG, "a ceiling of -1 CPUs");
    assert_fails(dr_crew_set_ceiling(crew, 0.0 / 0.0, &err), DR_ERR_ARG, "nan CPUs");
    assert_fails(dr_crew_set_ceiling(crew, 1.0 / 0.0, &err), DR_ERR_ARG, "inf CPUs");
    end_crew(crew);
}

/* --- waiting --- */

static void *wait_for_claim(void *crew)
{
    static dr_crew_claim c;
    dr_error its;
    return dr_crew_claim_next(crew, 0, -1, &c, &its) == DR_OK ? &c : NULL;
}

static void a_wait_ends_when_there_is_time_again(void **state)
{
    (void)state;
    dr_crew *crew = open_under(1, 1);
    post(crew, 1, 1);
    leave(crew, -20);
    const uint64_t before = dr__now_ns();
    const dr_crew_claim *c = wait_for_claim(crew);
    assert_true(dr__now_ns() - before >= 19 * MS);
    assert_true(c && c->kind == DR_CREW_WORK);
    done(crew, 0, 0, 1);
    dr_crew_result r = next(crew);
    release(crew, &r);
    end_crew(crew);
}

static void a_wait_ends_with_the_crew(void **state)
{
    (void)state;
    pthread_t thread;
    void *claimed;
    dr_crew *crew = open_under(0.5, 1);
    post(crew, 1, 1);
    leave(crew, -1e6);
    pthread_create(&thread, NULL, wait_for_claim, crew);
    usleep(10000); /* it waits, most probably */
    dr_crew_close(crew);
    pthread_join(thread, &claimed);
    assert_true(claimed && ((dr_crew_claim *)claimed)->kind == DR_CREW_LEAVE);
    assert_ok(dr_crew_clear(crew, 0, &err));
    end_crew(crew);
}

/* --- processes that burn CPU --- */

enum { WORKERS = 3, N = 40, PIECE = 4 * MS };

static void burn(void)
{
    const uint64_t end = dr__process_cpu_ns() + PIECE;
    while (dr__process_cpu_ns() < end)
        ;
}

static void work(dr_crew *crew, int worker)
{
    dr_crew_claim c;
    alarm(60);
    if (dr_crew_enlist(crew, worker, getpid(), &err) != DR_OK)
        _exit(2);
    while (dr_crew_claim_next(crew, worker, -1, &c, &err) == DR_OK && c.kind == DR_CREW_WORK)
        for (uint32_t i = 0; i < c.n; i++) {
            burn();
            done(crew, worker, i, 1);
        }
    _exit(c.kind == DR_CREW_LEAVE ? 0 : 3);
}

/* The bound is one of arithmetic: whatever else the machine does, CPU time is given out at the rate of the ceiling, and
 * only the pieces under way are not paid for yet. */
static void processes_keep_to_it(void **state)
{
    (void)state;
    const double cpus = 0.25;
    dr_crew *crew = open_under(cpus, WORKERS);
    pid_t pids[WORKERS];
    uint8_t seen[N] = { 0 };
    for (uint64_t tag = 0; tag < N / 4; tag++)
        post(crew, tag, 4);
    const uint64_t begin = crew->board->ceiling.filled_ns;
    for (int i = 0; i < WORKERS; i++)
        if ((pids[i] = fork()) == 0)
            work(crew, i);
    for (dr_crew_result r; dr_crew_next(crew, 20000, &r, &err) == DR_OK; release(crew, &r))
        for (uint32_t i = 0; i < r.n_samples; i++)
            assert_int_equal(seen[r.samples[i].tag * 4 + r.samples[i].slot]++, 0);
    const double wall = (double)(dr__now_ns() - begin), paid = (double)(N - WORKERS) * PIECE;
    for (int i = 0; i < N; i++)
        assert_int_equal(seen[i], 1);
    if (paid > cpus * (wall + 20 * MS))
        fail_msg("%g ms of CPU time in %g ms", paid / MS, wall / MS);
    dr_crew_close(crew);
    for (int i = 0; i < WORKERS; i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
        assert_true(crew->workers[i].reserved_ns == 0);
        dr_crew_bury(crew, i, NULL, 0);
    }
    end_crew(crew);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(claims_are_paid_for_before_the_next),
        cmocka_unit_test(what_is_no_claim_of_work_is_paid_for_too),
        cmocka_unit_test(work_waits_while_nothing_is_left),
        cmocka_unit_test(nobody_waits_to_finish_or_to_leave),
        cmocka_unit_test(a_dead_worker_keeps_no_reservation),
        cmocka_unit_test(a_ceiling_is_a_number),
        cmocka_unit_test(a_wait_ends_when_there_is_time_again),
        cmocka_unit_test(a_wait_ends_with_the_crew),
        cmocka_unit_test(processes_keep_to_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
