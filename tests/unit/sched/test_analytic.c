/* The default policy over plants whose best setting is known: searched, or by hand. */
#include "unit/sched/fluid.h"

#include "unit/cm.h"

#include <math.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "sched/costs.h"

static dr_error err;

typedef struct result {
    double rate, wait; /* of the last seconds */
    double ready;      /* mean batches */
    double last_change, workers, prefetch;
    int bound;
    char reason[DR_MAX_REASON];
} result;

static void note(void *user, fluid *f, const dr_decision *d)
{
    result *r = user;
    if (d->changed)
        r->last_change = f->time;
    r->bound = d->bound;
    memcpy(r->reason, d->reason, sizeof r->reason);
}

/* Runs for `settle` seconds and then measures for `measure`. */
static result run_on(fluid *f, dr__control *control, double settle, double measure)
{
    result r = { 0 };
    double begin = f->time;
    fluid_run(f, control, settle, note, &r);
    double samples = f->flow[DR_FLOW_SAMPLES], wait = f->flow[DR_FLOW_WAIT];
    int n = 0;
    for (double end = f->time + measure; f->time < end - 1e-9; n++) {
        fluid_run(f, control, 0.1, note, &r);
        r.ready += f->ready / f->batch_samples;
    }
    r.ready /= n;
    r.rate = (f->flow[DR_FLOW_SAMPLES] - samples) / measure;
    r.wait = (f->flow[DR_FLOW_WAIT] - wait) / measure;
    r.last_change = DR_MAX(r.last_change - begin, 0);
    r.workers = f->knob[DR_KNOB_WORKERS];
    r.prefetch = f->knob[DR_KNOB_PREFETCH];
    return r;
}

static dr__control begin_control(const fluid *f, const char *policy, const char *weights)
{
    dr__control control;
    dr__terms_of_use use = fluid_use(f);
    assert_ok(dr_weights_parse(weights, &use.weights, &err));
    dr__policy_choice choice = fluid_policy(policy);
    assert_ok(dr__control_init(&control, &choice, &use, 1000, &err));
    return control;
}

static result run(fluid f, const char *policy, double settle, double measure)
{
    dr__control control = begin_control(&f, policy, "step");
    result r = run_on(&f, &control, settle, measure);
    dr__control_free(&control);
    return r;
}

/* The best rate of all fixed numbers of workers, as far as a pipeline may crowd the CPUs. */
static double best_static(fluid f, double *workers)
{
    double best = 0, cpus = f.quota > 0 ? DR_MIN(f.quota, f.n_cpus) : f.n_cpus;
    double most = DR_MIN(2 * ceil(cpus) * (1 + (f.read + f.block) / f.cpu), 64);
    f.knob[DR_KNOB_PREFETCH] = 8;
    for (double n = 1; n <= most; n = ceil(n * 1.2)) {
        f.knob[DR_KNOB_WORKERS] = n;
        double rate = run(f, "fixed", 5, 20).rate;
        if (rate > best * 1.001) {
            best = rate;
            *workers = n;
        }
    }
    return best;
}

/* --- steady worlds --- */

static fluid random_world(uint64_t seed)
{
    fluid f = fluid_ordinary(seed);
    f.n_cpus = floor(1 + 16 * fluid_random(&f));
    f.cpu = 0.001 * pow(20, fluid_random(&f));
    f.read = fluid_random(&f) < 0.6 ? 0 : f.cpu * 4 * fluid_random(&f);
    f.step = 0.002 * pow(200, fluid_random(&f));
    f.step_cpu = fluid_random(&f) < 0.6 ? 0 : f.step * fluid_random(&f);
    f.foreign = fluid_random(&f) < 0.5 ? 0 : f.n_cpus * fluid_random(&f);
    f.quota = fluid_random(&f) < 0.7 ? 0 : f.n_cpus * (0.2 + 0.8 * fluid_random(&f));
    f.knob[DR_KNOB_WORKERS] = floor(1 + 16 * fluid_random(&f));
    return f;
}

static void near_the_best_static_setting(void **state)
{
    (void)state;
    enum { N = 40 };
    double sum = 0;
    for (uint64_t seed = 0; seed < N; seed++) {
        fluid f = random_world(seed);
        double workers = 0, best = best_static(f, &workers), part = run(f, "analytic", 15, 20).rate / best;
        if (part < 0.85)
            fail_msg("seed %d: %.2f of the %g/s that %g workers make", (int)seed, part, best, workers);
        sum += DR_MIN(part, 1);
    }
    if (sum / N < 0.97)
        fail_msg("%.3f of the best on average", sum / N);
}

static void one_of_two_cpus_burned(void **state)
{
    (void)state;
    double workers;
    fluid f = fluid_ordinary(1);
    f.step = 0.001; /* takes all that it gets */
    dr__control control = begin_control(&f, "analytic", "step");
    result r = run_on(&f, &control, 5, 10);
    assert_true(r.workers == 2 && r.bound == DR_BOUND_CPU);
    f.foreign = 1;
    r = run_on(&f, &control, 3, 10);
    assert_true(r.last_change < 3 && r.bound == DR_BOUND_OTHERS);
    assert_true(r.rate > 0.95 * best_static(f, &workers));
    f.foreign = 0;
    r = run_on(&f, &control, 3, 10);
    assert_true(r.last_change < 3 && r.workers == 2);
    dr__control_free(&control);
}

static void quota_of_half_a_cpu_on_a_large_machine(void **state)
{
    (void)state;
    fluid f = fluid_ordinary(2);
    f.n_cpus = 128;
    f.quota = 0.5;
    f.knob[DR_KNOB_WORKERS] = 64;
    f.step = 0.001;
    result r = run(f, "analytic", 15, 10);
    assert_true(r.workers == 1 && r.bound == DR_BOUND_QUOTA);
    assert_true(fabs(r.rate - 250) < 15);
}

static void cpu_limit_of_the_user(void **state)
{
    (void)state;
    fluid f = fluid_ordinary(3);
    f.n_cpus = 16;
    f.step = 0.001;
    f.knob[DR_KNOB_WORKERS] = 16;
    dr__control control = begin_control(&f, "analytic", "step");
    control.use.cpu_limit = 2.5;
    result r = run_on(&f, &control, 10, 10);
    assert_true(f.knob[DR_KNOB_CPU_CEILING] == 2.5);
    assert_true(r.workers >= 3 && r.workers <= 6 && fabs(r.rate - 1250) < 60);
    dr__control_free(&control);
}

/* Reading blocks: threads that read, as many as there are reads in flight. */
static void slow_storage(void **state)
{
    (void)state;
    fluid f = fluid_ordinary(4);
    f.read = 0.02;
    dr__control control = begin_control(&f, "analytic", "step");
    result r = run_on(&f, &control, 6, 10);
    assert_true(r.wait < 0.01 && fabs(r.rate - 640) < 20);
    assert_true(f.knob[DR_KNOB_READERS] >= 13 && f.knob[DR_KNOB_READERS] <= 21 && r.workers == 2);
    f.read = 0;
    r = run_on(&f, &control, 10, 10);
    assert_true(f.knob[DR_KNOB_READERS] == 0 && r.wait < 0.01);
    dr__control_free(&control);
}

/* --- changing worlds --- */

static void consumer_four_times_faster_and_slower(void **state)
{
    (void)state;
    fluid f = fluid_ordinary(5);
    f.n_cpus = 4;
    f.step = 0.1; /* 320 samples a second: one worker is enough */
    dr__control control = begin_control(&f, "analytic", "step");
    result r = run_on(&f, &control, 8, 10);
    assert_true(r.workers == 1 && r.wait < 0.01 && r.bound == DR_BOUND_CONSUMER);
    f.step = 0.025; /* 1280 a second */
    r = run_on(&f, &control, 3, 10);
    assert_true(r.workers >= 3 && r.workers <= 4 && r.wait < 0.02 && r.last_change < 3);
    f.step = 0.1;
    r = run_on(&f, &control, 5, 10);
    assert_true(r.workers == 1 && r.wait < 0.01); /* given back */
    dr__control_free(&control);
}

/* Each 12 s, samples take ten times as long for 2 s: the share of the last minute that the consumer waited. */
static double waits_for_dear_samples(bool granted, const char *weights, double *prefetch)
{
    fluid f = fluid_ordinary(11);
    dr__control control = begin_control(&f, "analytic", weights);
    control.use.memory_granted = granted;
    double wait = 0;
    for (int i = 0; i < 10; i++) {
        if (i == 5)
            wait = f.flow[DR_FLOW_WAIT];
        f.cpu = 0.002;
        fluid_run(&f, &control, 10, NULL, NULL);
        f.cpu = 0.02;
        fluid_run(&f, &control, 2, NULL, NULL);
    }
    *prefetch = f.knob[DR_KNOB_PREFETCH];
    dr__control_free(&control);
    return (f.flow[DR_FLOW_WAIT] - wait) / 60;
}

/* Memory that the user grants is filled, where waiting is what counts. */
static void granted_memory_is_filled(void **state)
{
    (void)state;
    double deep, shallow, with = waits_for_dear_samples(true, "step", &deep);
    double without = waits_for_dear_samples(false, "step", &shallow);
    if (with > 0.002 || without < 0.02)
        fail_msg("waits %.4f of its time with %g batches, %.4f with %g", with, deep, without, shallow);
    assert_true(deep == 64 && shallow < 32);
    waits_for_dear_samples(true, "draadp", &shallow);
    assert_true(shallow < 32); /* batches that lie long are what latency counts against */
}

/* Seven tenths of the memory, and no more where the machine's is short. */
static void granted_memory_has_a_limit(void **state)
{
    (void)state;
    fluid f = fluid_ordinary(12);
    f.memory_limit = 40 * f.batch_bytes;
    dr__control control = begin_control(&f, "analytic", "step");
    control.use.memory_granted = true;
    result r = run_on(&f, &control, 10, 1);
    assert_true(r.prefetch == 28);
    assert_non_null(strstr(r.reason, "The memory granted holds 28 batches."));
    f.mem_level = 0.8;
    run_on(&f, &control, 2, 1);
    f.memory_limit = 80 * f.batch_bytes;
    r = run_on(&f, &control, 10, 1);
    if (r.prefetch != 28)
        fail_msg("%g batches: %s", r.prefetch, r.reason);
    dr__control_free(&control);
}

/* Batches are made in half a second: twice the consumer's speed is twice the batches in flight. */
static void prefetch_follows_demand(void **state)
{
    (void)state;
    fluid f = fluid_ordinary(6);
    f.n_cpus = 8;
    f.lag = 0.5;
    dr__control control = begin_control(&f, "analytic", "step");
    result before = run_on(&f, &control, 10, 10);
    f.step /= 2;
    result after = run_on(&f, &control, 3, 10);
    assert_true(after.last_change < 3 && after.wait < 0.02);
    assert_true(after.prefetch >= 1.8 * before.prefetch && after.prefetch <= 2.2 * before.prefetch);
    double need = 1 / f.step * (f.lag + f.batch_samples * f.cpu / after.workers); /* Little's law */
    assert_true(after.ready <= 1.5 * need);
    dr__control_free(&control);
}

/* A consumer that waits half of the time, though the workers seem to be fast enough. */
static dr__observation starved_consumer(void)
{
    dr__observation o = { .span = 1, .batches = 10, .machine_cpus = 2, .quota_cpus = 2, .cpus = 2, .rate = 320 };
    fluid f = fluid_ordinary(9);
    o.use = fluid_use(&f);
    o.wait = o.busy = 0.5, o.demand = 640, o.work_rate = 320, o.cpu_each = o.work_each = 0.001, o.stretch = 1;
    o.latency = 0.1, o.batch_samples = 32;
    o.knob[DR_KNOB_WORKERS] = o.knob[DR_KNOB_PREFETCH] = 2;
    return o;
}

static void decide_analytic(void *mind, const dr__observation *o, dr__proposal *proposal)
{
    const dr__policy_choice choice = fluid_policy("analytic");
    choice.def->decide(mind, choice.param, o, proposal);
}

/* Decides n times upon the same, and turns the prefetch; the most that it came to. */
static double decide_prefetch(void *mind, dr__observation *o, int n)
{
    double most = 0, *prefetch = &o->knob[DR_KNOB_PREFETCH];
    for (int i = 0; i < n; i++) {
        dr__proposal proposal = { .bound = DR_BOUND_UNKNOWN };
        memcpy(proposal.knob, o->knob, sizeof proposal.knob);
        decide_analytic(mind, o, &proposal);
        *prefetch = DR_MIN(proposal.knob[DR_KNOB_PREFETCH], o->use.most[DR_KNOB_PREFETCH]);
        most = DR_MAX(most, *prefetch);
    }
    return most;
}

/* It waits whatever is done: batches ahead are tried, and given back. */
static void batches_that_bring_nothing_are_given_back(void **state)
{
    (void)state;
    void *mind = dr__alloc_zero(1, dr__policy_find("analytic")->state_bytes);
    dr__observation o = starved_consumer();
    double most = decide_prefetch(mind, &o, 50);
    assert_true(most > 4 && most < 20 && o.knob[DR_KNOB_PREFETCH] < most);
    dr__free(mind);
}

/* They help, but never enough, for hours: all there may be are made, and once they lie unused they are given back. */
static void cover_does_not_grow_for_ever(void **state)
{
    (void)state;
    void *mind = dr__alloc_zero(1, dr__policy_find("analytic")->state_bytes);
    dr__observation o = starved_consumer();
    for (int i = 0; i < 10000; i++) {
        o.wait = 1 / o.knob[DR_KNOB_PREFETCH];
        decide_prefetch(mind, &o, 1);
    }
    assert_true(o.knob[DR_KNOB_PREFETCH] == o.use.most[DR_KNOB_PREFETCH]);
    o.wait = 0;
    o.least_ready = 2;
    decide_prefetch(mind, &o, 1200); /* what was too little is remembered for 960 */
    assert_true(o.knob[DR_KNOB_PREFETCH] < 10);
    dr__free(mind);
}

/* A consumer that needs 3 batches, and waits in `clump` decisions of every `every` whatever lies ready. */
static double most_for_chance(int every, int clump, double wait)
{
    void *mind = dr__alloc_zero(1, dr__policy_find("analytic")->state_bytes);
    dr__observation o = starved_consumer();
    double most = 0;
    o.busy = 0.3, o.demand = o.rate = 1600, o.latency = 0.04, o.cpu_each = o.work_each = 0.0005;
    for (int i = 0; i < 1000; i++) {
        o.wait = i % every < clump ? wait : 0;
        o.least_ready = o.wait > 0 ? 0 : 2;
        double depth = decide_prefetch(mind, &o, 1);
        most = DR_MAX(most, depth);
    }
    dr__free(mind);
    return most;
}

/* On a busy machine a consumer waits now and then, whatever lies ready: that is no reason for ever more. */
static void waits_by_chance_are_no_reason_for_ever_more(void **state)
{
    (void)state;
    for (int every = 1; every <= 40; every++)
        for (int clump = 1; clump <= 3; clump++)
            for (double wait = 0.02; wait < 0.2; wait += 0.04)
                if (most_for_chance(every, clump, wait) > 12) /* of 64 */
                    fail_msg("%g batches for waits of %g, %d of %d", most_for_chance(every, clump, wait), wait, clump,
                             every);
}

/* A consumer of batches of 4 samples, each of which is read in 0.15 s by one of as many readers as it takes. */
static dr__observation reading_consumer(double demand)
{
    dr__observation o = { .span = 1, .machine_cpus = 2, .quota_cpus = 2, .cpus = 2, .time_ns = 1000000000u };
    fluid f = fluid_ordinary(10);
    o.use = fluid_use(&f);
    o.rate = o.demand = o.work_rate = demand, o.batches = demand / 4, o.batch_samples = 4;
    o.cpu_each = o.work_each = 0.001, o.read_each = 0.15, o.latency = 0.16, o.stretch = 1, o.busy = 0.87;
    o.flow[DR_FLOW_WORK] = 0.001 * demand;
    o.knob[DR_KNOB_WORKERS] = 1, o.knob[DR_KNOB_READERS] = ceil(1.15 * demand * o.read_each);
    o.knob[DR_KNOB_PREFETCH] = 2;
    return o;
}

/* The same once a second. */
static double decide_each_second(void *mind, dr__observation *o, int n)
{
    for (int i = 0; i < n; i++) {
        o->time_ns += 1000000000u;
        decide_prefetch(mind, o, 1);
    }
    return o->knob[DR_KNOB_PREFETCH];
}

/* Batches wait for reads: twice the consumer's speed is twice the batches, at once, and these are not hoarded. */
static void reads_in_flight_follow_demand(void **state)
{
    (void)state;
    void *mind = dr__alloc_zero(1, dr__policy_find("analytic")->state_bytes);
    dr__observation o = reading_consumer(100); /* 4 batches in flight */
    assert_true(decide_each_second(mind, &o, 5) == 5);
    o = reading_consumer(200);
    o.knob[DR_KNOB_PREFETCH] = 5;
    o.knob[DR_KNOB_READERS] = 18; /* still those of the slow one */
    o.wait = 0.35, o.sudden = true;
    assert_true(decide_each_second(mind, &o, 1) == 10);
    o.wait = 0, o.sudden = false;
    assert_true(decide_each_second(mind, &o, 20) <= 1.5 * 8);
    o.knob[DR_KNOB_PREFETCH] = 12; /* however they came to be there */
    assert_true(decide_each_second(mind, &o, 1) == 10);
    dr__free(mind);
}

/* On a machine without a free CPU. */
static double readers_beside_others(double read)
{
    void *mind = dr__alloc_zero(1, dr__policy_find("analytic")->state_bytes);
    dr__observation o = reading_consumer(100);
    dr__proposal proposal = { .bound = DR_BOUND_UNKNOWN };
    o.knob[DR_KNOB_READERS] = 0;
    o.read_each = read, o.cpu_load = 1, o.foreign_cpus = 2;
    decide_analytic(mind, &o, &proposal);
    dr__free(mind);
    return proposal.knob[DR_KNOB_READERS];
}

/* A read of 5 ms may wait for a CPU, beside 1 ms of work; one of 150 ms does not. */
static void long_reads_are_no_wait_for_a_cpu(void **state)
{
    (void)state;
    assert_true(readers_beside_others(0.005) == 0);
    assert_true(readers_beside_others(0.15) >= 15);
}

/* 20 ms of CPU each: two CPUs can make 96 of the 200 that are asked for, if as many are read meanwhile. */
static void reads_are_in_flight_for_busy_workers_too(void **state)
{
    (void)state;
    void *mind = dr__alloc_zero(1, dr__policy_find("analytic")->state_bytes);
    dr__observation o = reading_consumer(200);
    o.cpu_each = o.work_each = 0.02, o.latency = 0.3;
    o.knob[DR_KNOB_WORKERS] = 2, o.flow[DR_FLOW_WORK] = 2;
    o.rate = o.work_rate = 90, o.wait = 0.5, o.cpu_load = 0.85;
    double depth = decide_each_second(mind, &o, 5);
    assert_true(depth >= 0.15 * 96 / 4 + 2 && depth <= 1.5 * 0.3 * 96 / 4);
    dr__free(mind);
}

/* Fetchers are what is missing: batches ahead would lie around once these are there. */
static void too_few_readers_are_no_reason_for_batches(void **state)
{
    (void)state;
    void *mind = dr__alloc_zero(1, dr__policy_find("analytic")->state_bytes);
    dr__observation o = reading_consumer(100);
    o.knob[DR_KNOB_READERS] = 4;
    o.wait = 0.7, o.work_rate = 27, o.busy = 0.7; /* the worker has little to do */
    assert_true(decide_each_second(mind, &o, 20) == 5);
    dr__free(mind);
}

/* Fetchers suffice, nearly always at a read, and still it waits: more batches, once those asked for have come. */
static void batches_that_vary_while_they_are_read(void **state)
{
    (void)state;
    void *mind = dr__alloc_zero(1, dr__policy_find("analytic")->state_bytes);
    dr__observation o = reading_consumer(100);
    assert_true(decide_each_second(mind, &o, 1) == 5);
    o.wait = 0.05;
    assert_true(decide_each_second(mind, &o, 1) == 5); /* a part of that second was before they came */
    assert_true(decide_each_second(mind, &o, 1) == 6); /* little by little */
    assert_true(decide_each_second(mind, &o, 2) == 7);
    dr__free(mind);
}

/* The consumer computes on the same two CPUs. */
static void consumer_on_the_same_cpus(void **state)
{
    (void)state;
    for (int i = 1; i <= 4; i++) {
        double workers;
        fluid f = fluid_ordinary((uint64_t)i);
        f.step = 0.005;
        f.step_cpu = 0.02 * i;
        f.knob[DR_KNOB_WORKERS] = 4;
        assert_true(run(f, "analytic", 10, 20).rate > 0.93 * best_static(f, &workers));
    }
}

/* Samples that wait as long as they compute, beside a network that trains on `threads` threads for `part` of the CPUs.
 */
static fluid blocked_beside_training(double cpus, double part, double threads, uint64_t seed)
{
    fluid f = fluid_ordinary(seed);
    f.n_cpus = cpus;
    f.block = f.cpu;
    f.batch_samples = 40 * cpus; /* in 0.1 s: eight tenths of the CPUs */
    f.step_cpu = 0.1 * part * cpus;
    f.step_threads = threads;
    f.step = 0.1 - f.step_cpu / threads;
    f.knob[DR_KNOB_WORKERS] = cpus;
    return f;
}

/* Workers that are blocked want no CPU, and hold nobody up. */
static void blocked_workers_do_not_crowd(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++)
        for (int large = 0; large < 2; large++) {
            fluid f = blocked_beside_training(large ? 32 : 8, large ? 0.05 : 0.12, large ? 16 : 4, seed);
            double workers = 0, best = best_static(f, &workers);
            result r = run(f, "analytic", 15, 20);
            if (r.rate < 0.93 * best)
                fail_msg("seed %d: %g workers make %.0f/s, %g make %.0f", (int)seed, r.workers, r.rate, workers, best);
        }
}

/* --- what is wanted --- */

static void weights_change_the_action(void **state)
{
    (void)state;
    fluid f = fluid_ordinary(7);
    f.n_cpus = 8;
    f.step = 0.005; /* 6400 a second: more than eight CPUs can make */
    dr__control control = begin_control(&f, "analytic", "draadp");
    double all = run_on(&f, &control, 10, 1).workers;
    assert_ok(dr_weights_parse("draadp,energy=3", &control.use.weights, &err)); /* while it runs */
    double frugal = run_on(&f, &control, 10, 1).workers;
    assert_true(all == 8 && frugal <= 2);
    assert_ok(dr_weights_parse("drapps", &control.use.weights, &err));
    assert_true(run_on(&f, &control, 10, 1).workers == 8);
    assert_ok(dr_weights_parse("drapps,throughput=0,idle=0", &control.use.weights, &err)); /* balance and latency */
    assert_true(run_on(&f, &control, 10, 1).workers < 8);
    dr__control_free(&control);
}

static void reasons_have_numbers(void **state)
{
    (void)state;
    fluid f = fluid_ordinary(8);
    f.noise = 0;
    dr__control control = begin_control(&f, "analytic", "step");
    result r = run_on(&f, &control, 3, 1);
    assert_string_equal(r.reason, "The consumer waits 0 % of its time and could take 640 samples/s. 2 workers can make "
                                  "1000/s: a sample takes 2.00 ms of CPU.");
    dr__control_free(&control);
}

/* Four workers at samples that take 0.5 ms of CPU and sleep 4 ms, beside programs that use three quarters of 2 CPUs. */
static dr__observation sleeping_beside_others(void)
{
    const double rate = 800;
    dr__observation o = {
        .span = 1,
        .batches = 25,
        .use = { .knobs = 1u << DR_KNOB_WORKERS | 1u << DR_KNOB_PREFETCH,
                 .most = { [DR_KNOB_WORKERS] = 16, [DR_KNOB_PREFETCH] = 64 },
                 .waits_in = "Slow.__call__ (train.py:12)" },
        .knob = { [DR_KNOB_WORKERS] = 4, [DR_KNOB_PREFETCH] = 4 },
        .present = 1ull << DR_SENSOR_CPU_FOREIGN | 1ull << DR_SENSOR_CPU_TOTAL | 1ull << DR_SENSOR_CPU_OWN,
        .sensor = { [DR_SENSOR_CPU_FOREIGN] = 1.5, [DR_SENSOR_CPU_OWN] = 0.45, [DR_SENSOR_CPU_TOTAL] = 1.95 },
        .flow = { [DR_FLOW_SAMPLES] = rate,
                  [DR_FLOW_BATCHES] = 25,
                  [DR_FLOW_WAIT] = 0.83,
                  [DR_FLOW_STEP] = 0.17,
                  [DR_FLOW_WORKED] = rate,
                  [DR_FLOW_CPU] = 0.0005 * rate,
                  [DR_FLOW_DELAY] = 0.0005 * rate,
                  [DR_FLOW_WORK] = 0.005 * rate,
                  [DR_FLOW_BATCH_SAMPLES] = 32 },
    };
    assert_ok(dr_weights_parse("step", &o.use.weights, &err));
    return o;
}

static dr__proposal proposal_for(dr__observation *o)
{
    uint64_t memory[64] = { 0 };
    dr__proposal w = { 0 };
    assert_true(dr__policy_analytic.state_bytes <= sizeof memory);
    dr__observation_derive(o, 2);
    memcpy(w.knob, o->knob, sizeof w.knob);
    decide_analytic(memory, o, &w);
    return w;
}

/* Where it is told for how long workers had no CPU, the rest of their time is their own code's. */
static void code_that_waits_is_called_that(void **state)
{
    (void)state;
    dr__observation o = sleeping_beside_others();
    o.use.tells_delay = true;
    dr__proposal w = proposal_for(&o);
    assert_int_equal(w.bound, DR_BOUND_BLOCKED);
    assert_non_null(strstr(w.reason, "its code waits for 3.95 ms in Slow.__call__ (train.py:12)."));
    assert_non_null(strstr(w.reason, "Other programs use 1.5 of 2 CPUs."));
    assert_true(w.knob[DR_KNOB_WORKERS] > 4);
}

/* Others never use more CPUs than there are, whatever workers do. */
static void others_use_no_more_than_the_machine(void **state)
{
    (void)state;
    for (int told = 0; told < 2; told++) {
        dr__costs c = { 0 };
        dr__observation o = sleeping_beside_others();
        o.use.tells_delay = told;
        o.sensor[DR_SENSOR_CPU_FOREIGN] = 17;
        dr__proposal w = proposal_for(&o);
        assert_null(strstr(w.reason, "use 17"));
        assert_non_null(strstr(w.reason, "Other programs use 2 of 2 CPUs."));
        dr__costs_learn(&c, &o);
        assert_true(!told || c.foreign <= 1.5 * o.machine_cpus); /* threads that want one may be some more */
    }
}

/* A sample that waits for 200 times what it computes: what the CPUs could make is no measure for workers. */
static void workers_for_samples_that_hardly_compute(void **state)
{
    (void)state;
    dr__observation o = sleeping_beside_others();
    o.use.tells_delay = true;
    o.knob[DR_KNOB_WORKERS] = 2;
    o.sensor[DR_SENSOR_CPU_FOREIGN] = 0;
    o.flow[DR_FLOW_SAMPLES] = o.flow[DR_FLOW_WORKED] = 200;
    o.flow[DR_FLOW_CPU] = 200 * 50e-6;
    o.flow[DR_FLOW_DELAY] = 0;
    o.flow[DR_FLOW_WORK] = 200 * 0.01;
    o.flow[DR_FLOW_WAIT] = 0.99;
    o.flow[DR_FLOW_STEP] = 0.01;
    o.batches = o.flow[DR_FLOW_BATCHES] = 6;
    assert_true(proposal_for(&o).knob[DR_KNOB_WORKERS] >= 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near_the_best_static_setting),
        cmocka_unit_test(one_of_two_cpus_burned),
        cmocka_unit_test(quota_of_half_a_cpu_on_a_large_machine),
        cmocka_unit_test(cpu_limit_of_the_user),
        cmocka_unit_test(slow_storage),
        cmocka_unit_test(consumer_four_times_faster_and_slower),
        cmocka_unit_test(granted_memory_is_filled),
        cmocka_unit_test(granted_memory_has_a_limit),
        cmocka_unit_test(prefetch_follows_demand),
        cmocka_unit_test(batches_that_bring_nothing_are_given_back),
        cmocka_unit_test(cover_does_not_grow_for_ever),
        cmocka_unit_test(waits_by_chance_are_no_reason_for_ever_more),
        cmocka_unit_test(reads_in_flight_follow_demand),
        cmocka_unit_test(long_reads_are_no_wait_for_a_cpu),
        cmocka_unit_test(reads_are_in_flight_for_busy_workers_too),
        cmocka_unit_test(too_few_readers_are_no_reason_for_batches),
        cmocka_unit_test(batches_that_vary_while_they_are_read),
        cmocka_unit_test(consumer_on_the_same_cpus),
        cmocka_unit_test(blocked_workers_do_not_crowd),
        cmocka_unit_test(weights_change_the_action),
        cmocka_unit_test(reasons_have_numbers),
        cmocka_unit_test(code_that_waits_is_called_that),
        cmocka_unit_test(others_use_no_more_than_the_machine),
        cmocka_unit_test(workers_for_samples_that_hardly_compute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
