/* The CPU budget, on a clock of the test: rates, shares, pauses and debts. */
#include "unit/cm.h"

#include <math.h>

#include "serve/cpu_budget.h"

#define MS 1000000ull

enum { N = 3 };

static dr__cpu_budget budget;
static dr__account accounts[N];
static uint64_t now_ns;

static void begin(double cpus)
{
    now_ns = 5000 * MS;
    memset(accounts, 0, sizeof accounts);
    dr__budget_init(&budget, cpus, now_ns);
    for (int i = 0; i < N; i++)
        dr__budget_join(&budget, &accounts[i]);
}

/* Each millisecond, each tenant that wants to and may begins work of cost_ms. */
static void run(uint64_t ms, const bool wants[N], const double cost_ms[N])
{
    for (uint64_t t = 0; t < ms; t++) {
        now_ns += MS;
        dr__budget_refill(&budget, now_ns);
        for (int i = 0; i < N; i++)
            for (int k = 0; k < 20 && wants[i] && dr__budget_may(&budget, &accounts[i]); k++)
                dr__budget_charge(&budget, &accounts[i], (uint64_t)(cost_ms[i] * (double)MS));
    }
}

static double used_s(int i)
{
    return (double)accounts[i].used_ns * 1e-9;
}

static void near(double have, double want, double by)
{
    if (!(fabs(have - want) <= by))
        fail_msg("%g, expected %g", have, want);
}

static void one_tenant_gets_all_and_no_more(void **state)
{
    (void)state;
    const bool wants[N] = { true };
    const double cost[N] = { 3 };
    begin(1.5);
    dr__budget_set_active(&budget, &accounts[0], true);
    run(10000, wants, cost);
    near(used_s(0), 15 + 2 * 1.5 * DR__BUDGET_DEPTH_S, 1.5 * 2 * DR__BUDGET_DEPTH_S);
}

/* A tenant that would take all gets its share, and one that needs less than its share gets all that it needs. */
static void a_greedy_tenant_takes_nothing_from_others(void **state)
{
    (void)state;
    bool wants[N] = { true };
    const double cost[N] = { 50, 2, 0 };
    begin(1);
    for (int i = 0; i < 2; i++)
        dr__budget_set_active(&budget, &accounts[i], true);
    double refused = 0;
    for (int t = 0; t < 10000; t++) { /* 2 ms of work in 5: 0.4 of a CPU; its share is 0.5 */
        run(1, wants, cost);
        if (t % 5 == 0) {
            if (dr__budget_may(&budget, &accounts[1]))
                dr__budget_charge(&budget, &accounts[1], 2 * MS);
            else
                refused++;
        }
    }
    assert_true(refused == 0);
    near(used_s(1), 4, 1e-9);
    near(used_s(0), 6, 0.6);
}

static void equal_tenants_get_equal_shares(void **state)
{
    (void)state;
    const bool wants[N] = { true, true, true };
    const double cost[N] = { 1, 7, 40 };
    begin(0.9);
    for (int i = 0; i < N; i++)
        dr__budget_set_active(&budget, &accounts[i], true);
    run(20000, wants, cost);
    for (int i = 0; i < N; i++)
        near(used_s(i), 6, 0.35);
}

static void pauses_save_no_more_than_the_depth(void **state)
{
    (void)state;
    const bool wants[N] = { true }, none[N] = { false };
    const double cost[N] = { 1 };
    begin(1);
    dr__budget_set_active(&budget, &accounts[0], true);
    run(1000, wants, cost);
    const double before = used_s(0);
    run(60000, none, cost);
    run(100, wants, cost);
    near(used_s(0) - before, 0.1 + 2 * DR__BUDGET_DEPTH_S, 0.02);
}

static void debts_are_paid(void **state)
{
    (void)state;
    begin(0.5);
    dr__budget_set_active(&budget, &accounts[0], true);
    assert_true(dr__budget_may(&budget, &accounts[0])); /* from the reserve */
    dr__budget_charge(&budget, &accounts[0], 2000 * MS);
    assert_false(dr__budget_may(&budget, &accounts[0]));
    now_ns += 3700 * MS;
    dr__budget_refill(&budget, now_ns);
    assert_false(dr__budget_may(&budget, &accounts[0]));
    now_ns += 400 * MS;
    dr__budget_refill(&budget, now_ns);
    assert_true(dr__budget_may(&budget, &accounts[0]));
}

static void nothing_is_nothing(void **state)
{
    (void)state;
    begin(0);
    dr__budget_set_active(&budget, &accounts[0], true);
    now_ns += 1000000 * MS;
    dr__budget_refill(&budget, now_ns);
    assert_false(dr__budget_may(&budget, &accounts[0]));
    dr__budget_refill(&budget, 1); /* a clock does not go back, but this would do no harm */
    for (int i = 0; i < N; i++)
        dr__budget_leave(&budget, &accounts[i]);
    assert_null(budget.accounts);
    assert_int_equal(budget.n_active, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_tenant_gets_all_and_no_more),
        cmocka_unit_test(a_greedy_tenant_takes_nothing_from_others),
        cmocka_unit_test(equal_tenants_get_equal_shares),
        cmocka_unit_test(pauses_save_no_more_than_the_depth),
        cmocka_unit_test(debts_are_paid),
        cmocka_unit_test(nothing_is_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
