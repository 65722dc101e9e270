/* test_flow.c: what a shmpool says it did. */
#include "shmpool_helper.h"

#include <drapps/shmpool_controller.h>

#include "shmpool/shared.h"

static void assert_flow(dr_shmpool *shmpool, int which, double expected)
{
    double flow[DR_N_FLOWS] = { 0 };
    dr_shmpool_flow(shmpool, flow);
    assert_float_equal(flow[which], expected, 1e-9);
}

static double flow_of(dr_shmpool *shmpool, int which)
{
    double flow[DR_N_FLOWS] = { 0 };
    dr_shmpool_flow(shmpool, flow);
    return flow[which];
}

static void counts_follow_the_batches(void **state)
{
    (void)state;
    dr_error err;
    dr_shmpool *shmpool = open_shmpool(2, 4, true);
    assert_ok(dr_shmpool_attach(shmpool, 0, getpid(), &err));
    post(shmpool, 1, 2);
    post(shmpool, 2, 2);
    assert_flow(shmpool, DR_FLOW_OPEN, 0);
    dr_shmpool_claim c = claim(shmpool, 0);
    assert_flow(shmpool, DR_FLOW_OPEN, 1);
    assert_flow(shmpool, DR_FLOW_ACTIVE, 1);
    for (uint32_t left = 2; left > 0; left -= c.n, c = left ? claim(shmpool, 0) : c)
        done(shmpool, 0, 0, c.n);
    assert_flow(shmpool, DR_FLOW_READY, 1);
    assert_flow(shmpool, DR_FLOW_WORKED, 2);
    assert_flow(shmpool, DR_FLOW_SAMPLES, 0);
    assert_flow(shmpool, DR_FLOW_ACTIVE, 0);
    dr_shmpool_result r = next(shmpool);
    release(shmpool, &r);
    assert_flow(shmpool, DR_FLOW_SAMPLES, 2);
    assert_flow(shmpool, DR_FLOW_BATCHES, 1);
    assert_flow(shmpool, DR_FLOW_READY, 0);
    assert_flow(shmpool, DR_FLOW_BATCH_SAMPLES, 2);
    assert_true(flow_of(shmpool, DR_FLOW_WORK) > 0);
    dr_shmpool_unref(&shmpool);
}

static void waiting_and_stepping_are_told_apart(void **state)
{
    (void)state;
    dr_error err;
    dr_shmpool_result r;
    dr_shmpool *shmpool = open_shmpool(1, 4, true);
    post(shmpool, 1, 1);
    assert_int_equal(dr_shmpool_next(shmpool, 20, &r, &err), DR_AGAIN); /* nobody works */
    const double wait = flow_of(shmpool, DR_FLOW_WAIT);
    assert_true(wait >= 0.019);
    usleep(20000);
    assert_true(flow_of(shmpool, DR_FLOW_STEP) >= 0.019);
    assert_flow(shmpool, DR_FLOW_WAIT, wait);
    dr_shmpool_unref(&shmpool);
}

static uint64_t n_of(dr_shmpool *shmpool, int which)
{
    uint64_t n = 0;
    dr_spread spreads[DR_N_SPREADS] = { { 0 } };
    dr__shmpool_spreads(shmpool, spreads);
    for (int i = 0; i < DR_SPREAD_BINS; i++)
        n += spreads[which].n[i];
    return n;
}

/* One worker, and a batch of one sample that was posted. */
static dr_shmpool *open_asked(void)
{
    dr_error err;
    dr_shmpool *shmpool = open_shmpool(1, 4, true);
    assert_ok(dr_shmpool_attach(shmpool, 0, getpid(), &err));
    post(shmpool, 1, 1);
    return shmpool;
}

/* A wait goes on over calls in which nothing came, and ends with its batch. */
static void waits_and_latencies_are_spread(void **state)
{
    (void)state;
    dr_error err;
    dr_shmpool_result r;
    dr_spread spreads[DR_N_SPREADS] = { { 0 } };
    dr_shmpool *shmpool = open_asked();
    for (int i = 0; i < 3; i++)
        assert_int_equal(dr_shmpool_next(shmpool, 10, &r, &err), DR_AGAIN);
    assert_int_equal(n_of(shmpool, DR_SPREAD_WAIT), 0);
    claim(shmpool, 0);
    done(shmpool, 0, 0, 1);
    r = next(shmpool);
    release(shmpool, &r);
    assert_int_equal(dr_shmpool_next(shmpool, 0, &r, &err), DR_END);
    assert_int_equal(n_of(shmpool, DR_SPREAD_WAIT), 1);
    assert_int_equal(n_of(shmpool, DR_SPREAD_LATENCY), 1);
    dr__shmpool_spreads(shmpool, spreads);
    assert_true(spreads[DR_SPREAD_WAIT].sum >= 0.029 && spreads[DR_SPREAD_WAIT].n[0] == 0);
    assert_flow(shmpool, DR_FLOW_LATENCY, spreads[DR_SPREAD_LATENCY].sum);
    dr_shmpool_unref(&shmpool);
}

/* What was waited for in vain is no part of the first wait after it. */
static void a_wait_ends_when_the_shmpool_is_cleared(void **state)
{
    (void)state;
    dr_error err;
    dr_shmpool_result r;
    dr_spread spreads[DR_N_SPREADS] = { { 0 } };
    dr_shmpool *shmpool = open_asked();
    assert_int_equal(dr_shmpool_next(shmpool, 20, &r, &err), DR_AGAIN);
    const double in_vain = flow_of(shmpool, DR_FLOW_WAIT);
    assert_ok(dr_shmpool_clear(shmpool, 0, &err));
    post(shmpool, 2, 1);
    claim(shmpool, 0);
    done(shmpool, 0, 0, 1);
    r = next(shmpool);
    release(shmpool, &r);
    dr__shmpool_spreads(shmpool, spreads);
    assert_flow(shmpool, DR_FLOW_WAIT, in_vain + spreads[DR_SPREAD_WAIT].sum);
    dr_shmpool_unref(&shmpool);
}

static void deaths_are_those_of_workers_that_were_not_told_to_leave(void **state)
{
    (void)state;
    dr_error err;
    dr_shmpool *shmpool = open_shmpool(2, 4, true);
    for (int worker = 0; worker < 2; worker++)
        assert_ok(dr_shmpool_attach(shmpool, worker, getpid(), &err));
    dr_shmpool_dismiss(shmpool, 0);
    dr_shmpool_reap(shmpool, 0, NULL, 0);
    assert_flow(shmpool, DR_FLOW_DEATHS, 0);
    dr_shmpool_reap(shmpool, 1, NULL, 0);
    assert_flow(shmpool, DR_FLOW_DEATHS, 1);
    dr_shmpool_unref(&shmpool);
}

static void places_are_kept_by_how_long_they_waited(void **state)
{
    (void)state;
    char name[2 * DR_SHMPOOL_WHERE_BYTES];
    dr_shmpool_blocked_time places[DR_SHMPOOL_MAX_WAITS];
    dr_shmpool *shmpool = open_shmpool(1, 4, true);
    assert_int_equal(dr_shmpool_waits(shmpool, places), 0);
    dr_shmpool_waited(shmpool, "f", 5);
    dr_shmpool_waited(shmpool, "g", 7);
    dr_shmpool_waited(shmpool, "f", 5);
    assert_int_equal(dr_shmpool_waits(shmpool, places), 2);
    assert_string_equal(places[0].where, "f");
    assert_true(places[0].ns == 10 && places[1].ns == 7);
    dr_shmpool_waited(shmpool, "much", 1000000);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "little %d", i);
        dr_shmpool_waited(shmpool, name, 1);
    }
    assert_int_equal(dr_shmpool_waits(shmpool, places), DR_SHMPOOL_MAX_WAITS);
    assert_string_equal(places[0].where, "much");
    memset(name, 'a', DR_SHMPOOL_WHERE_BYTES - 2);
    strcpy(name + DR_SHMPOOL_WHERE_BYTES - 2, "\xc3\xa9"); /* a character that has one byte too many */
    dr_shmpool_waited(shmpool, name, 2000000);
    dr_shmpool_waits(shmpool, places);
    assert_int_equal(strlen(places[0].where), DR_SHMPOOL_WHERE_BYTES - 2);
    dr_shmpool_unref(&shmpool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_follow_the_batches),
        cmocka_unit_test(waiting_and_stepping_are_told_apart),
        cmocka_unit_test(waits_and_latencies_are_spread),
        cmocka_unit_test(a_wait_ends_when_the_shmpool_is_cleared),
        cmocka_unit_test(places_are_kept_by_how_long_they_waited),
        cmocka_unit_test(deaths_are_those_of_workers_that_were_not_told_to_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
