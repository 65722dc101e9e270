/* The policy that plans: as analytic where nothing changes, ahead of it where weights change on a schedule. */
#include "unit/sched/fluid.h"

#include "unit/cm.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "sched/plan.h"

static dr_error err;

static dr_weights weights_of(const char *text)
{
    dr_weights w;
    assert_ok(dr_weights_parse(text, &w, &err));
    return w;
}

typedef struct score {
    double sum, since;
    char reason[DR_MAX_REASON]; /* the last with a plan in it */
} score;

static void note(void *user, fluid *f, const dr_decision *d)
{
    score *s = user;
    s->sum += d->reward * (f->time - s->since);
    s->since = f->time;
    if (strstr(d->reason, "until then") || strstr(d->reason, "Planned"))
        memcpy(s->reason, d->reason, sizeof s->reason);
}

/* Runs while the weights change between two every `half` seconds, and the policy may know of it. */
static score run(fluid f, const char *policy, const char *cheap, const char *dear, double half, int halves, bool known)
{
    const dr_weights w[2] = { weights_of(cheap), weights_of(dear) };
    dr__terms_of_use use = fluid_use(&f);
    dr__policy_choice choice = fluid_policy(policy);
    dr__control control;
    assert_ok(dr__control_init(&control, &choice, &use, 1000, &err));
    score s = { .sum = 0 };
    double settled = 0;
    for (int i = 0; i < halves + 2; i++) {
        if (i == 2) {
            s.sum = 0;
            settled = f.time;
        }
        for (double left = half; left > 1e-9; left -= 0.1) {
            control.use.weights = w[i % 2];
            control.use.next_weights = w[(i + 1) % 2];
            control.use.next_weights_in = known ? left : 0;
            fluid_run(&f, &control, 0.1, note, &s);
        }
    }
    dr__control_free(&control);
    s.sum /= f.time - settled;
    return s;
}

/* 8 CPUs, of which the consumer needs five; 64 batches last for six seconds. */
static fluid plant(uint64_t seed)
{
    fluid f = fluid_ordinary(seed);
    f.n_cpus = 8;
    f.batch_samples = 256;
    f.step = f.batch_samples * f.cpu / 5;
    f.knob[DR_KNOB_WORKERS] = 6;
    f.memory_limit = 200 * f.batch_bytes;
    return f;
}

/* A price of energy that goes up and down: batches are made while it is low. */
static void ahead_of_analytic_where_prices_change(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        const fluid f = plant(seed);
        const double analytic = run(f, "analytic", "step", "step,energy=2", 12, 10, true).sum;
        const score mpc = run(f, "mpc", "step", "step,energy=2", 12, 10, true);
        const double blind = run(f, "mpc", "step", "step,energy=2", 12, 10, false).sum;
        printf("analytic %.4f, mpc %.4f, mpc without the schedule %.4f\n", analytic, mpc.sum, blind);
        if (mpc.sum < analytic + 0.02 || mpc.sum < blind + 0.01)
            fail_msg("analytic %.4f, mpc %.4f, mpc without the schedule %.4f", analytic, mpc.sum, blind);
        assert_non_null(strstr(mpc.reason, "the weight of energy goes from"));
    }
}

/* Where nothing is to be planned, the numbers are analytic's. */
static void as_analytic_where_nothing_changes(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        fluid f = fluid_ordinary(seed);
        f.n_cpus = floor(1 + 16 * fluid_random(&f));
        f.cpu = 0.001 * pow(20, fluid_random(&f));
        f.step = 0.002 * pow(200, fluid_random(&f));
        f.foreign = fluid_random(&f) < 0.5 ? 0 : f.n_cpus * fluid_random(&f);
        const double analytic = run(f, "analytic", "step", "step", 10, 3, false).sum;
        const double mpc = run(f, "mpc", "step", "step", 10, 3, false).sum;
        if (mpc < analytic - 0.02)
            fail_msg("seed %d: %.4f, analytic %.4f", (int)seed, mpc, analytic);
    }
}

/* --- the model of a part --- */

static dr__plant_model model(void)
{
    return (dr__plant_model){ .cpu = 0.002,
                              .demand = 2000,
                              .machine_cpus = 8,
                              .quota_cpus = 8,
                              .cpus = 8,
                              .batch_samples = 32,
                              .has_power = true,
                              .levels = { -1, -1, -1 } };
}

static double value_of(double workers, double seconds, double room, double *fill, const char *weights)
{
    const dr__plant_model m = model();
    const dr_weights w = weights_of(weights);
    const dr__plan_part part = { seconds, &w, workers, room };
    return dr__plan_part_value(&m, &part, 1.15, fill);
}

/* 500/s for each worker, 2000/s for the consumer. */
static void parts_fill_and_drain(void **state)
{
    (void)state;
    double fill = 0;
    value_of(6, 2, 5000, &fill, "step");
    assert_true(fabs(fill - 2000) < 1e-6);
    value_of(6, 10, 5000, &fill, "step");
    assert_true(fabs(fill - 5000) < 1e-6); /* full */
    value_of(2, 3, 5000, &fill, "step");
    assert_true(fabs(fill - 2000) < 1e-6);
    value_of(2, 9, 5000, &fill, "step");
    assert_true(fabs(fill) < 1e-6); /* empty */
    fill = 4000;
    value_of(2, 1, 100, &fill, "step");
    assert_true(fabs(fill - 3000) < 1e-6); /* what lies ready stays, and is drained */
}

/* A consumer that lives on what lies ready is worth as much as one that is fed, and costs less. */
static void what_lies_ready_feeds_the_consumer(void **state)
{
    (void)state;
    double full = 9000, empty = 0, fed = 0;
    const double living = value_of(1, 3, 9000, &full, "throughput=1,idle=1,host=1,change=0");
    const double starving = value_of(1, 3, 9000, &empty, "throughput=1,idle=1,host=1,change=0");
    const double working = value_of(5, 3, 0, &fed, "throughput=1,idle=1,host=1,change=0");
    assert_true(living > working && working > starving);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ahead_of_analytic_where_prices_change),
        cmocka_unit_test(as_analytic_where_nothing_changes),
        cmocka_unit_test(parts_fill_and_drain),
        cmocka_unit_test(what_lies_ready_feeds_the_consumer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
