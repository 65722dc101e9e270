/* The twin against laws that hold for every queueing system, and closed forms where there are some. */
#include "unit/cm.h"

#include <math.h>

#include <drapps/sim.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "sim/twin.h"

static dr_error err;

static dr_sim *open_sim(const char *machine, const char *workload, const char *scenario, const char *set, uint64_t seed)
{
    dr_sim_options o;
    dr_sim *s;
    dr_sim_defaults(&o);
    o.machine = machine;
    o.workload = workload;
    o.scenario = scenario;
    o.set = set;
    o.seed = seed;
    assert_ok(dr_sim_open(&o, &s, &err));
    return s;
}

/* A machine without anything that disturbs closed forms; `set` comes on top. */
static dr_sim *open_ideal(const char *set)
{
    char all[600];
    snprintf(all, sizeof all,
             "cpus=8,cpu_speed=1,crowd=0,switch_cost=0,memory_bw=1e14,page_cache=1e13,memory=1e14,read_latency=1e-7,"
             "read_bw=1e13,"
             "read_depth=1e6,cached_read=1e-7,cpu=0.004,cpu_cv=0,step_each=1e-7,accel_speed=1,train_cpu=0,step_cv=0,"
             "lag=1e-6,jitter=0,noise=0,batch=32,prefetch=32,workers=4,%s",
             set);
    return open_sim(NULL, NULL, "plain", all, 1);
}

static double rate_over(dr_sim *s, double seconds)
{
    dr_sim_advance(s, 2);
    const double before = s->flow[DR_FLOW_SAMPLES];
    dr_sim_advance(s, seconds);
    return (s->flow[DR_FLOW_SAMPLES] - before) / seconds;
}

static void assert_near(double got, double want, double by)
{
    if (!(fabs(got - want) <= by * fabs(want)))
        fail_msg("got %g, want %g within %g %%", got, want, 100 * by);
}

/* --- closed forms --- */

static void test_closed_forms(void **state)
{
    (void)state;
    static const struct {
        const char *what, *set;
        double want, by;
    } rows[] = {
        { "workers", "workers=4", 4 / 0.004, 0.01 },
        { "CPUs", "workers=16", 8 / 0.004, 0.01 },
        { "the consumer", "workers=8,step_each=1e-3", 1000, 0.01 },
        { "tenants share the CPUs", "workers=8,tenants=8", 4 / 0.004, 0.01 },
        { "tenants do not where there are idle CPUs", "workers=4,tenants=4", 4 / 0.004, 0.01 },
        { "blocked workers", "workers=4,blocked=0.012", 4 / 0.016, 0.02 },
        { "many blocked workers fill the CPUs", "workers=64,blocked=0.004", 8 / 0.004, 0.02 },
        { "a quota", "workers=8,quota=2", 2 / 0.004, 0.02 },
        { "a link", "workers=16,link_bw=1e7,sample_bytes=1e5,rtt=1e-4", 100, 0.02 },
        { "round trips", "workers=2,link_bw=1e13,rtt=0.1", 2 / 0.104, 0.02 },
        { "readers", "workers=4,readers=4,read_latency=0.02,cached_read=0.02", 4 / 0.02, 0.02 },
        { "workers that read, too", "workers=8,readers=4,read_latency=0.02,cached_read=0.02", 4 / 0.02 + 7.2 / 0.024,
          0.02 },
        { "workers behind readers", "workers=2,readers=32,read_latency=0.004,cached_read=0.004", 2 / 0.004, 0.02 },
        { "a disk's requests", "workers=64,read_latency=0.01,read_depth=2,samples=1e9", 200, 0.02 },
        { "a disk's bandwidth", "workers=64,read_bw=1e7,sample_bytes=1e5,samples=1e9", 100, 0.02 },
        { "slow samples", "workers=8,slow_share=0.05,slow_factor=20,prefetch=64", 8 / 0.004, 0.05 },
        { "work of a window of 1 and then the step", "workers=1,prefetch=1,step_each=4e-3", 1 / 0.004, 0.02 },
    };
    for (size_t i = 0; i < DR_COUNT(rows); i++) {
        dr_sim *s = open_ideal(rows[i].set);
        const double got = rate_over(s, 40);
        if (!(fabs(got - rows[i].want) <= rows[i].by * rows[i].want))
            fail_msg("%s (%s): %g samples/s, want %g", rows[i].what, rows[i].set, got, rows[i].want);
        dr_sim_close(&s);
    }
}

/* One worker and a consumer with random times, a window of k batches of one sample: a closed network of two stations
 * and k + 1 customers.  With exponential times it makes (k + 1) / (k + 2) of what each station alone would; ours are
 * lognormal with the same deviation. */
static void test_two_stations(void **state)
{
    (void)state;
    for (int k = 1; k <= 8; k *= 2) {
        char set[200];
        snprintf(set, sizeof set, "workers=1,batch=1,prefetch=%d,cpu=0.05,cpu_cv=1,step_each=0.05,step_cv=1", k);
        dr_sim *s = open_ideal(set);
        assert_near(rate_over(s, 4000), 20 * (k + 1.0) / (k + 2.0), 0.07);
        dr_sim_close(&s);
    }
}

/* A ceiling holds the workers to its CPUs. */
static void test_ceiling(void **state)
{
    (void)state;
    dr_sim *s = open_ideal("workers=8");
    const dr_plant plant = dr_sim_plant(s);
    assert_ok(plant.set(plant.user, DR_KNOB_CPU_CEILING, 1.5, &err));
    assert_near(rate_over(s, 20), 1.5 / 0.004, 0.01);
    dr_sim_close(&s);
}

/* --- laws --- */

static void test_utilisation_law(void **state)
{
    (void)state;
    dr_sim *s = open_ideal("workers=3,cpu_cv=0.8,batch=64");
    dr_sim_advance(s, 200);
    assert_near(s->flow[DR_FLOW_CPU] / s->flow[DR_FLOW_WORKED], 0.004, 0.02);
    assert_near(s->all.cpus / s->time, s->flow[DR_FLOW_WORKED] * 0.004 / s->time, 0.02);
    dr_sim_close(&s);
}

/* Batches in the making = their rate x their latency; threads at a sample = rate x time of a sample. */
static void test_littles_law(void **state)
{
    (void)state;
    dr_sim *s = open_ideal("workers=6,cpu_cv=0.5,step_each=5e-4,step_cv=0.5,blocked=0.002,prefetch=6,lag=0.002");
    double made = 0, active = 0;
    uint64_t n = 0;
    for (; s->time < 200; n++) {
        double flow[DR_N_FLOWS];
        dr_sim_advance(s, 0.01);
        dr__sim_flow(s, flow);
        made += flow[DR_FLOW_OPEN] - flow[DR_FLOW_READY];
        active += flow[DR_FLOW_ACTIVE];
    }
    assert_near(made / (double)n, s->flow[DR_FLOW_LATENCY] / s->time, 0.05);
    assert_near(active / (double)n, (s->flow[DR_FLOW_WORK] + s->flow[DR_FLOW_READ]) / s->time, 0.05);
    dr_sim_close(&s);
}

static void check_laws(const dr_sim *s, const double *before)
{
    double flow[DR_N_FLOWS];
    dr__sim_flow(s, flow);
    for (int i = 0; i < DR_N_FLOWS; i++) {
        assert_true(isfinite(flow[i]) && (flow[i] >= 0 || i == DR_FLOW_CODEC));
        assert_true(i > DR_FLOW_DEATHS || flow[i] >= before[i]);
    }
    const double in_flight = flow[DR_FLOW_WORKED] - flow[DR_FLOW_SAMPLES];
    assert_true(flow[DR_FLOW_SAMPLES] == flow[DR_FLOW_BATCHES] * s->batch);
    assert_true(in_flight > -1e-3 && in_flight <= DR__SIM_RING * s->batch);
    assert_true(fabs(flow[DR_FLOW_WAIT] + flow[DR_FLOW_STEP] - s->time) < 1e-6 * (1 + s->time));
    if (s->all.cpus > s->f.cpus * s->time * 1.01 + 1e-6)
        fail_msg("%s: %g CPUs are used of %g", s->scenario->name, s->all.cpus / s->time, s->f.cpus);
    assert_true(flow[DR_FLOW_READY] <= flow[DR_FLOW_OPEN]);
    assert_true(s->costs.hits >= 0 && s->costs.hits <= 1 && s->costs.page_hits >= 0 && s->costs.page_hits <= 1);
    dr_snapshot shot;
    dr_sim_snapshot(s, &shot);
    for (int i = 0; i < DR_N_SENSORS; i++)
        assert_true(isfinite(shot.value[i]) && shot.level[i] >= 0 && shot.level[i] <= 1);
}

/* Random knobs on random instances of everything there is. */
static void test_laws_everywhere(void **state)
{
    (void)state;
    dr__sim_rng rng;
    dr__sim_seed(&rng, 20261119);
    for (const dr__sim_scenario *c = dr__sim_scenarios; c->name; c++)
        for (const dr__sim_preset *m = dr__sim_machines; m->name; m++) {
            const uint64_t seed = (uint64_t)(1e9 * dr__sim_unit(&rng));
            const char *workload = dr__sim_workloads[(int)(4 * dr__sim_unit(&rng))].name;
            dr_sim *s = open_sim(m->name, workload, c->name, dr__sim_unit(&rng) < 0.5 ? "missing=0.3" : NULL, seed);
            const dr_plant plant = dr_sim_plant(s);
            for (int second = 0; second < 12; second++) {
                double before[DR_N_FLOWS];
                dr__sim_flow(s, before);
                for (int k = 0; k < DR_N_KNOBS; k++)
                    if (plant.knobs >> k & 1 && dr__sim_unit(&rng) < 0.3) {
                        const double most = DR_MIN(plant.most[k], k == DR_KNOB_PREFETCH_BYTES ? 1e10 : 1e3);
                        const double x = dr__sim_between(&rng, plant.least[k], most);
                        assert_ok(plant.set(plant.user, k, dr_knob_is_whole(k) ? floor(x) : x, &err));
                    }
                dr_sim_advance(s, 1);
                check_laws(s, before);
            }
            dr_sim_close(&s);
        }
}

/* --- what the seeds' systems need --- */

/* Workers beyond the CPUs slow the trainer that shares these. */
static void test_trainer_shares_cpus(void **state)
{
    (void)state;
    dr_sim *few = open_ideal("workers=4,step_each=2e-3,train_cpu=0.5,train_threads=2,prefetch=64");
    dr_sim *many = open_ideal("workers=4,step_each=2e-3,train_cpu=0.5,train_threads=2,prefetch=64,tenants=12");
    assert_near(rate_over(few, 20), 1 / 2e-3, 0.02);
    assert_true(rate_over(many, 20) < 0.8 / 2e-3);
    dr_sim_close(&few);
    dr_sim_close(&many);
}

static void test_cache_warms_up(void **state)
{
    (void)state;
    dr_sim *s = open_ideal("workers=8,samples=4000,cache=1e12,prefix=0.9,prefix_bytes=1e5");
    dr_sim_advance(s, 1);
    assert_true(s->costs.hits == 0);
    const double cold = s->flow[DR_FLOW_SAMPLES];
    dr_sim_advance(s, 9);
    assert_true(s->costs.hits > 0.99);
    const double before = s->flow[DR_FLOW_SAMPLES];
    dr_sim_advance(s, 1);
    assert_true(s->flow[DR_FLOW_SAMPLES] - before > 3 * cold);
    dr_sim_close(&s);
}

/* Another codec counts for what is put into the cache from then on. */
static void test_codec_lags(void **state)
{
    (void)state;
    dr_sim *s = open_ideal("workers=8,samples=20000,cache=1e12,prefix_bytes=1e5,warm=1");
    const dr_plant plant = dr_sim_plant(s);
    dr_sim_advance(s, 1);
    const double before = s->kept_ratio;
    assert_ok(plant.set(plant.user, DR_KNOB_CODEC, 3, &err));
    dr_sim_advance(s, 0.5);
    const double soon = s->kept_ratio;
    dr_sim_advance(s, 60);
    assert_true(soon > 0.9 * before && s->kept_ratio < 0.75);
    dr_sim_close(&s);
}

static void test_offload(void **state)
{
    (void)state;
    dr_sim *s = open_ideal("workers=8,link_bw=1e12,remote_cpus=64,prefix=0.75,prefix_bytes=1e5,prefetch=64");
    const dr_plant plant = dr_sim_plant(s);
    assert_near(rate_over(s, 5), 8 / 0.004, 0.02);
    assert_ok(plant.set(plant.user, DR_KNOB_OFFLOAD, 1, &err));
    assert_ok(plant.set(plant.user, DR_KNOB_WORKERS, 60, &err));
    dr_sim_advance(s, 5);
    assert_near(rate_over(s, 5), 8 / 0.001, 0.05);
    dr_sim_close(&s);
}

/* Lanes keep slow samples from taking all workers: less waits behind them in a short window. */
static void test_lanes(void **state)
{
    (void)state;
    dr_sim *s = open_ideal("workers=8,slow_share=0.01,slow_factor=100,prefetch=3,step_each=5.5e-4");
    dr_sim *without = open_ideal("workers=8,slow_share=0.01,slow_factor=100,prefetch=3,step_each=5.5e-4");
    const dr_plant plant = dr_sim_plant(without);
    assert_ok(plant.set(plant.user, DR_KNOB_LANE_THRESHOLD, 1000, &err));
    const double with = rate_over(s, 100), other = rate_over(without, 100);
    assert_true(with > 0 && other > 0 && with != other);
    dr_sim_close(&s);
    dr_sim_close(&without);
}

static void test_delays(void **state)
{
    (void)state;
    dr_sim *s = open_ideal("action_delay=0.5,sensor_delay=0.3,workers=1");
    const dr_plant plant = dr_sim_plant(s);
    dr_snapshot shot;
    dr_sim_advance(s, 1);
    assert_ok(plant.set(plant.user, DR_KNOB_WORKERS, 8, &err));
    assert_true(plant.get(plant.user, DR_KNOB_WORKERS) == 8 && s->knob[DR_KNOB_WORKERS] == 1);
    dr_sim_advance(s, 0.4);
    assert_true(s->knob[DR_KNOB_WORKERS] == 1);
    dr_sim_advance(s, 0.2);
    assert_true(s->knob[DR_KNOB_WORKERS] == 8);
    dr_sim_advance(s, 0.1); /* 100 ms with 8 workers: sensors show them 300 ms later */
    dr_sim_snapshot(s, &shot);
    assert_true(shot.value[DR_SENSOR_CPU_OWN] < 2);
    dr_sim_advance(s, 0.4);
    dr_sim_snapshot(s, &shot);
    assert_true(shot.value[DR_SENSOR_CPU_OWN] > 6);
    dr_sim_close(&s);
}

/* --- seeds and memory --- */

static dr_sim_result run(const char *scenario, const char *policy, uint64_t seed)
{
    dr_sim_result r;
    dr_sim *s = open_sim("any", NULL, scenario, NULL, seed);
    assert_ok(dr_sim_run(s, policy, 30, NULL, NULL, &err));
    dr_sim_look(s, &r);
    dr_sim_close(&s);
    return r;
}

static void test_same_seed_same_run(void **state)
{
    (void)state;
    for (const dr__sim_scenario *c = dr__sim_scenarios; c->name; c++) {
        const dr_sim_result a = run(c->name, "analytic", 7), b = run(c->name, "analytic", 7);
        assert_memory_equal(&a, &b, sizeof a);
        assert_true(a.ticks == 3000);
    }
    const dr_sim_result a = run("bursts", "fixed", 7), b = run("bursts", "fixed", 8);
    assert_true(a.samples != b.samples);
}

static void test_reset_begins_anew(void **state)
{
    (void)state;
    dr_sim_result first, again;
    dr_sim *s = open_sim("any", NULL, "bursts", NULL, 3);
    assert_ok(dr_sim_run(s, "stages", 20, NULL, NULL, &err));
    dr_sim_look(s, &first);
    dr_sim_reset(s, 4);
    dr_sim_advance(s, 5);
    dr_sim_reset(s, 3);
    assert_ok(dr_sim_run(s, "stages", 20, NULL, NULL, &err));
    dr_sim_look(s, &again);
    assert_memory_equal(&first, &again, sizeof first);
    dr_sim_close(&s);
}

/* What others do does not depend on what a policy does: runs of two policies can be compared in pairs. */
static void test_disturbances_are_paired(void **state)
{
    (void)state;
    dr_sim *a = open_sim("any", NULL, "steps", NULL, 5), *b = open_sim("any", NULL, "steps", "workers=1,readers=9", 5);
    for (int i = 0; i < 600; i++) {
        dr_sim_advance(a, 0.1);
        dr_sim_advance(b, 0.1);
        assert_memory_equal(a->signal, b->signal, sizeof a->signal);
    }
    dr_sim_close(&a);
    dr_sim_close(&b);
}

static void test_no_allocation(void **state)
{
    (void)state;
    dr_sim *s = open_sim("any", "detection", "codec", NULL, 1);
    dr__alloc_fail_at(0, false);
    dr_sim_advance(s, 20);
    dr_sim_reset(s, 2);
    dr_sim_advance(s, 20);
    assert_true(dr__alloc_fail_at(0, false) == 0);
    dr_sim_close(&s);
}

static void test_memory_is_short(void **state)
{
    (void)state;
    dr_sim_options o;
    dr_sim_defaults(&o);
    o.set = "cpus=3";
    for (int n = 1; n <= 2; n++) {
        dr_sim *s;
        dr__alloc_fail_at(n, true);
        const dr_status status = dr_sim_open(&o, &s, &err);
        dr__alloc_fail_at(0, false);
        assert_int_equal(status, DR_ERR_NOMEM);
        assert_null(s);
    }
}

/* --- arguments --- */

static void test_wrong_arguments(void **state)
{
    (void)state;
    static const struct {
        const char *machine, *scenario, *set, *part;
    } rows[] = {
        { "vax", NULL, NULL, "machine must be one of laptop, a100x8" },
        { NULL, "war", NULL, "scenario must be one of stationary" },
        { NULL, NULL, "cpu", "cpu needs a value" },
        { NULL, NULL, "cpu=", "cpu must be a number from 1e-07 to 10000, got \"\"" },
        { NULL, NULL, "cpus=0", "cpus must be a number from 1 to 512, got \"0\"" },
        { NULL, NULL, "cpus=2x", "got \"2x\"" },
        { NULL, NULL, "cpus=nan", "got \"nan\"" },
        { NULL, NULL, "cpus=2,,", "no field \"\"" },
        { NULL, NULL, "moons=2", "no field \"moons\"" },
    };
    for (size_t i = 0; i < DR_COUNT(rows); i++) {
        dr_sim_options o;
        dr_sim *s;
        dr_sim_defaults(&o);
        o.machine = rows[i].machine;
        o.scenario = rows[i].scenario;
        o.set = rows[i].set;
        assert_fails(dr_sim_open(&o, &s, &err), DR_ERR_ARG, rows[i].part);
        assert_null(s);
    }
    dr_sim *s = open_ideal("workers=2");
    double value;
    assert_fails(dr_sim_run(s, "genius", 1, NULL, NULL, &err), DR_ERR_ARG, "genius");
    assert_fails(dr_sim_field(s, "moons", &value, &err), DR_ERR_ARG, "moons");
    assert_ok(dr_sim_field(s, "workers", &value, &err));
    assert_true(value == 2);
    const dr_plant plant = dr_sim_plant(s);
    assert_fails(plant.set(plant.user, DR_KNOB_OFFLOAD, 1, &err), DR_ERR_ARG, "no knob");
    assert_fails(plant.set(plant.user, DR_KNOB_WORKERS, 1000, &err), DR_ERR_ARG, "workers must be");
    assert_fails(plant.set(plant.user, DR_KNOB_WORKERS, 1.5, &err), DR_ERR_ARG, "an int from 0 to 256, got 1.5");
    dr_sim_close(&s);
}

/* Every row of every table can be opened, and draws name fields that there are. */
static void test_rows_are_sound(void **state)
{
    (void)state;
    for (const dr__sim_preset *m = dr__sim_machines; m->name; m++)
        for (const dr__sim_preset *w = dr__sim_workloads; w->name; w++)
            for (const dr__sim_preset *t = dr__sim_models; t->name; t++) {
                dr_sim_options o;
                dr_sim *s;
                dr_sim_defaults(&o);
                o.machine = m->name;
                o.workload = w->name;
                o.model = t->name;
                assert_ok(dr_sim_open(&o, &s, &err));
                dr_sim_advance(s, 0.1);
                dr_sim_close(&s);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed_forms),
        cmocka_unit_test(test_two_stations),
        cmocka_unit_test(test_ceiling),
        cmocka_unit_test(test_utilisation_law),
        cmocka_unit_test(test_littles_law),
        cmocka_unit_test(test_laws_everywhere),
        cmocka_unit_test(test_trainer_shares_cpus),
        cmocka_unit_test(test_cache_warms_up),
        cmocka_unit_test(test_codec_lags),
        cmocka_unit_test(test_offload),
        cmocka_unit_test(test_lanes),
        cmocka_unit_test(test_delays),
        cmocka_unit_test(test_same_seed_same_run),
        cmocka_unit_test(test_reset_begins_anew),
        cmocka_unit_test(test_disturbances_are_paired),
        cmocka_unit_test(test_no_allocation),
        cmocka_unit_test(test_memory_is_short),
        cmocka_unit_test(test_wrong_arguments),
        cmocka_unit_test(test_rows_are_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
