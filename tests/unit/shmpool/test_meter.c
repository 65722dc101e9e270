/* The CPU time of worker processes under a ceiling: by times that the test makes up, and by processes that burn CPU. */
#include "unit/shmpool/shmpool_helper.h"

#include <pthread.h>

#include "base/clock.h"
#include "shmpool/shared.h"

enum { MS = 1000000 };

static dr_error err;

static dr_shmpool *open_under(double cpus, int workers)
{
    dr_shmpool *shmpool = open_shmpool(workers, 16, true);
    assert_ok(dr_shmpool_set_ceiling(shmpool, cpus, &err));
    return shmpool;
}

/* From here on there is so much in the bucket; negative: so much was used too early. */
static void leave(dr_shmpool *shmpool, double left_ms)
{
    dr__shmpool_lock(shmpool);
    shmpool->board->ceiling.left_ns = left_ms * MS;
    shmpool->board->ceiling.filled_ns = dr__now_ns();
    dr__shmpool_unlock(shmpool);
}

static void assert_left(const dr_shmpool *shmpool, double left_ms)
{
    assert_float_equal(shmpool->board->ceiling.left_ns / MS, left_ms, 1e-3);
}

/* --- by made-up times --- */

static void claims_are_paid_for_before_the_next(void **state)
{
    (void)state;
    dr_shmpool *shmpool = open_under(0.25, 3);
    const uint64_t t = shmpool->board->ceiling.filled_ns;
    uint64_t until = 0;
    dr__meter_read(shmpool, 0, 500 * MS); /* what was before its first claim does not count */
    assert_true(dr__meter_begin(shmpool, 0, t + 4 * MS, &until));
    assert_left(shmpool, 1);
    dr__meter_read(shmpool, 0, 516 * MS);
    assert_left(shmpool, -15);
    assert_false(dr__meter_begin(shmpool, 0, t + 4 * MS, &until));
    assert_int_equal(until, t + 64 * MS); /* 15 ms of a quarter */
    dr__meter_read(shmpool, 1, 9 * MS);
    assert_false(dr__meter_begin(shmpool, 1, t + 4 * MS, &until));
    assert_int_equal(until, t + 72 * MS); /* behind the other, whose claim is expected to take 2 ms */
    assert_true(dr__meter_begin(shmpool, 1, t + 68 * MS, &until));
    assert_left(shmpool, -1);
    dr__meter_read(shmpool, 1, 12 * MS); /* 3 ms, 2 of which it took in advance */
    assert_left(shmpool, -2);
    end_shmpool(shmpool);
}

static void what_is_no_claim_of_work_is_paid_for_too(void **state)
{
    (void)state;
    dr_shmpool *shmpool = open_under(1, 1);
    leave(shmpool, 10);
    dr__meter_read(shmpool, 0, 100 * MS);
    dr__meter_read(shmpool, 0, 104 * MS); /* a batch that it finished */
    assert_left(shmpool, 6);
    assert_true(shmpool->board->ceiling.mean_ns == 0);
    dr__meter_read(shmpool, 0, 0); /* no ceiling for a while */
    dr__meter_read(shmpool, 0, 300 * MS);
    assert_left(shmpool, 6);
    end_shmpool(shmpool);
}

/* --- claims --- */

static void work_waits_while_nothing_is_left(void **state)
{
    (void)state;
    dr_shmpool *shmpool = open_under(0.5, 2);
    post(shmpool, 1, 2);
    leave(shmpool, -1e6);
    assert_nothing(shmpool, 0);
    assert_true(shmpool->workers[0].held && shmpool->workers[0].waits);
    leave(shmpool, 9);
    assert_int_equal(claim(shmpool, 0).kind, DR_SHMPOOL_WORK);
    done(shmpool, 0, 0, 1);
    leave(shmpool, -1e6);
    assert_nothing(shmpool, 1);
    assert_ok(dr_shmpool_set_ceiling(shmpool, 0, &err));
    assert_false(shmpool->workers[1].waits); /* it was woken */
    assert_int_equal(claim(shmpool, 1).kind, DR_SHMPOOL_WORK);
    assert_true(done(shmpool, 1, 0, 1));
    dr_shmpool_result r = next(shmpool);
    release(shmpool, &r);
    end_shmpool(shmpool);
}

static void nobody_waits_to_finish_or_to_leave(void **state)
{
    (void)state;
    bool ready;
    dr_shmpool_claim c;
    dr_shmpool *shmpool = open_under(0.5, 3);
    post(shmpool, 1, 1);
    post(shmpool, 2, 1);
    leave(shmpool, 9);
    assert_int_equal(claim(shmpool, 0).kind, DR_SHMPOOL_WORK);
    assert_ok(dr_shmpool_done(shmpool, 0, 0, 1, 0, false, &ready, &c, &err));
    assert_true(ready);
    leave(shmpool, -1e6);
    dr_shmpool_reap(shmpool, 0, NULL, 0); /* before it finished the batch */
    c = claim(shmpool, 1);
    assert_int_equal(c.kind, DR_SHMPOOL_FINISH);
    assert_ok(dr_shmpool_finish(shmpool, 1, c.batch, 0, 0, false, &err));
    assert_nothing(shmpool, 1); /* there is work */
    dr_shmpool_dismiss(shmpool, 1);
    assert_int_equal(claim(shmpool, 1).kind, DR_SHMPOOL_LEAVE);
    dr_shmpool_close(shmpool);
    assert_int_equal(claim(shmpool, 2).kind, DR_SHMPOOL_LEAVE);
    dr_shmpool_result r = next(shmpool);
    release(shmpool, &r);
    assert_ok(dr_shmpool_clear(shmpool, 0, &err));
    end_shmpool(shmpool);
}

static void a_dead_worker_keeps_no_reservation(void **state)
{
    (void)state;
    dr_shmpool *shmpool = open_under(1, 2);
    post(shmpool, 1, 2);
    leave(shmpool, 3);
    shmpool->board->ceiling.mean_ns = 5 * MS;
    shmpool->board->ceiling.filled_ns = UINT64_MAX; /* time adds nothing */
    claim(shmpool, 0);
    assert_left(shmpool, -2);
    assert_true(shmpool->workers[0].reserved_ns == 5 * MS);
    assert_nothing(shmpool, 1);
    dr_shmpool_reap(shmpool, 1, NULL, 0);
    assert_false(shmpool->workers[1].held);
    dr_shmpool_reap(shmpool, 0, NULL, 0);
    dr_shmpool_reap(shmpool, 0, NULL, 0);
    assert_left(shmpool, 3);
    assert_int_equal(claim(shmpool, 1).kind, DR_SHMPOOL_WORK);
    dr_shmpool_reap(shmpool, 1, NULL, 0);
    assert_ok(dr_shmpool_clear(shmpool, 0, &err));
    end_shmpool(shmpool);
}

static void a_ceiling_is_a_number(void **state)
{
    (void)state;
    dr_shmpool *shmpool = open_shmpool(1, 4, true);
    assert_fails(dr_shmpool_set_ceiling(shmpool, -1, &err), DR_ERR_ARG,
                 "ceiling must be 0 (none) or a number of CPUs, got -1");
    assert_fails(dr_shmpool_set_ceiling(shmpool, 0.0 / 0.0, &err), DR_ERR_ARG, "nan");
    assert_fails(dr_shmpool_set_ceiling(shmpool, 1.0 / 0.0, &err), DR_ERR_ARG, "inf");
    end_shmpool(shmpool);
}

/* --- waiting --- */

static void *wait_for_claim(void *shmpool)
{
    static dr_shmpool_claim c;
    dr_error its;
    return dr_shmpool_claim_next(shmpool, 0, -1, &c, &its) == DR_OK ? &c : NULL;
}

static void a_wait_ends_when_there_is_time_again(void **state)
{
    (void)state;
    dr_shmpool *shmpool = open_under(1, 1);
    post(shmpool, 1, 1);
    leave(shmpool, -20);
    const uint64_t before = dr__now_ns();
    const dr_shmpool_claim *c = wait_for_claim(shmpool);
    assert_true(dr__now_ns() - before >= 19 * MS);
    assert_true(c && c->kind == DR_SHMPOOL_WORK);
    done(shmpool, 0, 0, 1);
    dr_shmpool_result r = next(shmpool);
    release(shmpool, &r);
    end_shmpool(shmpool);
}

static void a_wait_ends_with_the_shmpool(void **state)
{
    (void)state;
    pthread_t thread;
    void *claimed;
    dr_shmpool *shmpool = open_under(0.5, 1);
    post(shmpool, 1, 1);
    leave(shmpool, -1e6);
    pthread_create(&thread, NULL, wait_for_claim, shmpool);
    usleep(10000); /* it waits, most probably */
    dr_shmpool_close(shmpool);
    pthread_join(thread, &claimed);
    assert_true(claimed && ((dr_shmpool_claim *)claimed)->kind == DR_SHMPOOL_LEAVE);
    assert_ok(dr_shmpool_clear(shmpool, 0, &err));
    end_shmpool(shmpool);
}

/* --- processes that burn CPU --- */

enum { WORKERS = 3, N = 40, PIECE = 4 * MS };

static void burn(void)
{
    const uint64_t end = dr__process_cpu_ns() + PIECE;
    while (dr__process_cpu_ns() < end)
        ;
}

static void work(dr_shmpool *shmpool, int worker)
{
    dr_shmpool_claim c;
    alarm(60);
    if (dr_shmpool_attach(shmpool, worker, getpid(), &err) != DR_OK)
        _exit(2);
    while (dr_shmpool_claim_next(shmpool, worker, -1, &c, &err) == DR_OK && c.kind == DR_SHMPOOL_WORK)
        for (uint32_t i = 0; i < c.n; i++) {
            burn();
            done(shmpool, worker, i, 1);
        }
    _exit(c.kind == DR_SHMPOOL_LEAVE ? 0 : 3);
}

/* The bound is one of arithmetic: whatever else the machine does, CPU time is given out at the rate of the ceiling, and
 * only the pieces in flight are not paid for yet. */
static void processes_keep_to_it(void **state)
{
    (void)state;
    const double cpus = 0.25;
    dr_shmpool *shmpool = open_under(cpus, WORKERS);
    pid_t pids[WORKERS];
    uint8_t seen[N] = { 0 };
    for (uint64_t tag = 0; tag < N / 4; tag++)
        post(shmpool, tag, 4);
    const uint64_t begin = shmpool->board->ceiling.filled_ns;
    for (int i = 0; i < WORKERS; i++)
        if ((pids[i] = fork()) == 0)
            work(shmpool, i);
    for (dr_shmpool_result r; dr_shmpool_next(shmpool, 20000, &r, &err) == DR_OK; release(shmpool, &r))
        for (uint32_t i = 0; i < r.n_samples; i++)
            assert_int_equal(seen[r.samples[i].tag * 4 + r.samples[i].slot]++, 0);
    const double wall = (double)(dr__now_ns() - begin), paid = (double)(N - WORKERS) * PIECE;
    for (int i = 0; i < N; i++)
        assert_int_equal(seen[i], 1);
    if (paid > cpus * (wall + 20 * MS))
        fail_msg("%g ms of CPU time in %g ms", paid / MS, wall / MS);
    dr_shmpool_close(shmpool);
    for (int i = 0; i < WORKERS; i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
        assert_true(shmpool->workers[i].reserved_ns == 0);
        dr_shmpool_reap(shmpool, i, NULL, 0);
    }
    end_shmpool(shmpool);
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
        cmocka_unit_test(a_wait_ends_with_the_shmpool),
        cmocka_unit_test(processes_keep_to_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
