/* The model of a plant by itself: what it says of machines that can be worked out by hand. */
#include "unit/cm.h"

#include <math.h>

#include "sched/plant_model.h"

static dr_weights weights_of(const char *text)
{
    dr_weights w;
    dr_error err;
    assert_ok(dr_weights_parse(text, &w, &err));
    return w;
}

/* 8 CPUs; a consumer that takes what 6.4 of them make, and uses nearly one CPU, on so many threads at a time. */
static dr__plant_model server(double block, double threads)
{
    return (dr__plant_model){ .cpu = 0.002,
                              .block = block,
                              .consumer = 0.96 / 3200,
                              .threads = threads,
                              .demand = 3200,
                              .foreign = 0.005,
                              .machine_cpus = 8,
                              .quota_cpus = 8,
                              .cpus = 8,
                              .batch_samples = 320,
                              .levels = { -1, -1, -1 } };
}

static double best(const dr__plant_model *m, const char *weights)
{
    const dr_weights w = weights_of(weights);
    double best = 1;
    for (double n = 2; n <= 64; n++)
        if (dr__plant_reward(m, &w, n, 1.15) > dr__plant_reward(m, &w, best, 1.15))
            best = n;
    return best;
}

/* Twelve workers, of which half are blocked, and 8 CPUs: there is room for a consumer's thread. */
static void blocked_workers_hold_nobody_up(void **state)
{
    (void)state;
    dr__plant_model m = server(0.002, 1);
    m.consumer = 0.5 / 3200;
    assert_true(dr__plant_demand(&m, 12) > 0.999 * m.demand);
    m.block = 0;
    assert_true(dr__plant_demand(&m, 12) < 0.95 * m.demand);
}

/* The same CPU seconds on more threads are less time in which the consumer can be held up. */
static void threads_of_the_consumer_share_its_work(void **state)
{
    (void)state;
    dr__plant_model one = server(0, 1), four = server(0, 4);
    assert_true(dr__plant_demand(&four, 12) > 1.05 * dr__plant_demand(&one, 12));
    four.threads = 0; /* not told: as one */
    assert_true(dr__plant_demand(&four, 12) == dr__plant_demand(&one, 12));
}

/* A capacity that is short of what the consumer would take looks short, though it is slowed down meanwhile. */
static void what_is_short_is_short_of_the_free_demand(void **state)
{
    (void)state;
    for (double threads = 1; threads <= 8; threads *= 2) {
        const dr__plant_model m = server(0.002, threads);
        assert_true(dr__plant_capacity(&m, best(&m, "step")) > m.demand);
    }
}

/* Where energy or CPU time counts, what is short is short of what the consumer takes beside the workers. */
static void frugal_weights_buy_no_more(void **state)
{
    (void)state;
    const dr__plant_model m = server(0.002, 8);
    const dr_weights lavish = weights_of("step,host=0.19"), frugal = weights_of("step,host=0.21");
    assert_true(dr__plant_reward(&m, &frugal, 14, 1.15) > dr__plant_reward(&m, &lavish, 14, 1.15));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocked_workers_hold_nobody_up),
        cmocka_unit_test(threads_of_the_consumer_share_its_work),
        cmocka_unit_test(what_is_short_is_short_of_the_free_demand),
        cmocka_unit_test(frugal_weights_buy_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
