/* What a scheduler and a monitor see of a loader: counts, places, waiting; which queue is full when a stage is slow.
 *
 * Reads and ops stop at gates, so that "slow" does not depend on the machine. */
#include "unit/loader/toy.h"

#include <math.h>
#include <pthread.h>
#include <unistd.h>

#include "base/clock.h"
#include "exec/facts.h"
#include "kernel/cpu.h"
#include "loader/loader_internal.h"
#include "unit/loader/gate.h"
#include "unit/stopped_clock.h"

enum { N = 200, BATCH = 4, AHEAD = 8, WORKERS = 2 };

static dr_error err;

static gate reads = OPEN_GATE, ops = OPEN_GATE;

static void read_one(uint64_t id)
{
    (void)id;
    pass_gate(&reads);
}

static dr__kernels kernels;
static void (*plain_rgb_to_l)(uint8_t *dst, const uint8_t *src, size_t n);

static void gated_rgb_to_l(uint8_t *dst, const uint8_t *src, size_t n)
{
    pass_gate(&ops);
    plain_rgb_to_l(dst, src, n);
}

/* --- a loader --- */

typedef struct fixture {
    dr_dataset *set;
    dr_graph *graph;
    dr_loader *loader;
} fixture;

static fixture open_all(bool in_order)
{
    fixture f = { .set = toy_set(&(toy){ .n = N, .on_read = read_one }), .graph = graph_of("{\"op\":\"grayscale\"}") };
    dr_loader_options o = options_of(BATCH, WORKERS);
    o.prefetch = AHEAD;
    o.in_order = in_order;
    f.loader = open_loader(f.set, f.graph, &o);
    dr__kernels_fill(&kernels, DR__CPU_C);
    plain_rgb_to_l = kernels.rgb_to_l;
    kernels.rgb_to_l = gated_rgb_to_l;
    f.loader->exec.program->kernels = &kernels;
    return f;
}

static void close_all(fixture *f)
{
    dr_loader_close(&f->loader);
    dr_graph_free(&f->graph);
    dr_dataset_unref(&f->set);
}

static double flow_now(fixture *f, int which)
{
    double flow[DR_N_FLOWS] = { 0 };
    dr__exec_flow(&f->loader->exec, flow);
    return flow[which];
}

static void wait_for(fixture *f, int which, double least)
{
    for (int i = 0; flow_now(f, which) < least; i++) {
        if (i > PATIENCE_MS)
            fail_msg("flow %d is %g, wanted %g", which, flow_now(f, which), least);
        usleep(1000);
    }
}

static void take(fixture *f, int n)
{
    tape t = { 0 };
    tape_read(&t, f->loader, n);
    tape_free(&t);
}

/* --- tests --- */

static void sums_are_what_happened(void **state)
{
    (void)state;
    fixture f = open_all(true);
    for (int i = 0; i < DR_N_FLOWS; i++)
        if (i != DR_FLOW_BYTES_LIMIT && i != DR_FLOW_BATCH_BYTES && i != DR_FLOW_BATCH_SAMPLES)
            assert_true(flow_now(&f, i) == 0);
    take(&f, -1);
    double flow[DR_N_FLOWS] = { 0 };
    dr__exec_flow(&f.loader->exec, flow);
    assert_true(flow[DR_FLOW_SAMPLES] == N && flow[DR_FLOW_WORKED] == N);
    assert_true(flow[DR_FLOW_BATCHES] == N / BATCH);
    assert_true(flow[DR_FLOW_BATCH_SAMPLES] == BATCH);
    assert_true(flow[DR_FLOW_BATCH_BYTES] >= BATCH * 8 * 6);
    assert_true(flow[DR_FLOW_READ] > 0 && flow[DR_FLOW_WORK] > 0 && flow[DR_FLOW_LATENCY] > 0);
    assert_true(flow[DR_FLOW_OPEN] == 0 && flow[DR_FLOW_READY] == 0 && flow[DR_FLOW_BYTES] == 0);
    assert_true(dr__exec_idle_ns(&f.loader->exec) == UINT64_MAX);
    close_all(&f);
}

static void a_consumer_that_pauses_finds_all_ready(void **state)
{
    (void)state;
    fixture f = open_all(true);
    take(&f, 1);
    wait_for(&f, DR_FLOW_READY, AHEAD);
    assert_true(flow_now(&f, DR_FLOW_OPEN) == AHEAD);
    assert_true(flow_now(&f, DR_FLOW_BYTES) == AHEAD * flow_now(&f, DR_FLOW_BATCH_BYTES));
    assert_true(flow_now(&f, DR_FLOW_CONSUMERS) == 0);
    close_all(&f);
}

/* Waiting and stepping are the time of the clock, with what goes on now. */
static void waits_and_steps_are_all_the_time(void **state)
{
    (void)state;
    fixture f = open_all(true);
    const uint64_t start = dr__now_ns();
    take(&f, 1);
    const double waited = flow_now(&f, DR_FLOW_WAIT);
    usleep(50000);
    assert_true(flow_now(&f, DR_FLOW_STEP) >= 0.05);
    assert_true(dr__exec_idle_ns(&f.loader->exec) >= 50000000);
    assert_true(flow_now(&f, DR_FLOW_WAIT) == waited);
    take(&f, 1);
    const double wait = flow_now(&f, DR_FLOW_WAIT), sum = wait + flow_now(&f, DR_FLOW_STEP);
    const double most = (double)(dr__now_ns() - start) * 1e-9;
    assert_true(wait >= waited && sum <= most);
    take(&f, -1);
    const double step = flow_now(&f, DR_FLOW_STEP);
    usleep(2000);
    assert_true(flow_now(&f, DR_FLOW_STEP) == step); /* between epochs time does not count */
    close_all(&f);
}

static void *take_one(void *arg)
{
    take(arg, 1);
    return NULL;
}

/* Who asks before anything is pushed waits until it is there, and steps from then on.  The clock moves here alone, so
 * both are known to the nanosecond, whether workers make the batch or the consumer itself. */
static void waiting_is_what_passes_before_a_batch(void **state)
{
    (void)state;
    for (int workers = 0; workers <= WORKERS; workers += WORKERS) {
        fixture f = { .set = toy_set(&(toy){ .n = N }), .graph = graph_of(NULL) };
        dr_loader_options o = options_of(BATCH, workers);
        o.pushed_order = true;
        f.loader = open_loader(f.set, f.graph, &o);
        int64_t waited = 0, stepped = 0;
        stop_clock();
        assert_ok(dr_loader_start(f.loader, 0, &err));
        for (uint64_t i = 0; i < N / BATCH; i++) {
            const uint64_t ids[BATCH] = { i, i + 1, i + 2, i + 3 }, wait = 1 + i * 701, step = 1 + i * 307;
            pthread_t thread;
            assert_int_equal(pthread_create(&thread, NULL, take_one, &f), 0);
            wait_for(&f, DR_FLOW_CONSUMERS, 1);
            move_clock(wait);
            assert_ok(dr_loader_push(f.loader, ids, BATCH, &err));
            pthread_join(thread, NULL);
            move_clock(step);
            waited += (int64_t)wait, stepped += (int64_t)step;
            assert_int_equal(llround(flow_now(&f, DR_FLOW_WAIT) * 1e9), waited);
            assert_int_equal(llround(flow_now(&f, DR_FLOW_STEP) * 1e9), stepped);
            assert_int_equal(atomic_load(&f.loader->exec.stats.wait.sum_ns), waited);
        }
        start_clock();
        close_all(&f);
    }
}

static void facts_of(fixture *f, dr__facts *facts, dr__pipeline_facts *out)
{
    if (!facts->exec)
        dr__facts_init(facts, &f->loader->exec);
    dr__facts_fill(facts, out);
}

static double claimed(fixture *f)
{
    dr__pool_lock();
    const double n = (double)f->loader->exec.progress.claimed;
    dr__pool_unlock();
    return n;
}

/* Reading stands still: all that may be begun and is in no worker's hands is in its queue, those after it are empty,
 * and the consumer does nothing but wait. */
static void slow_reads_fill_their_queue(bool in_order)
{
    fixture f = open_all(in_order);
    dr__facts facts = { 0 };
    dr__pipeline_facts seen;
    pthread_t thread;
    set_gate(&reads, false);
    stop_clock();
    pthread_create(&thread, NULL, take_one, &f);
    wait_inside(&reads, WORKERS);
    assert_true(flow_now(&f, DR_FLOW_ACTIVE) == WORKERS);
    wait_for(&f, DR_FLOW_CONSUMERS, 1);
    facts_of(&f, &facts, &seen);
    move_clock(20000000);
    facts_of(&f, &facts, &seen);
    start_clock();
    const double held = claimed(&f), all = AHEAD * BATCH;
    assert_true(held >= WORKERS && held <= WORKERS * BATCH);
    assert_true(seen.queue_fill[DR__STAGE_FETCH] == (all - held) / all);
    assert_true(seen.queue_fill[DR__STAGE_BATCH] == 0 && seen.queue_fill[DR__STAGE_SLOW] == 0);
    assert_true(fabs(seen.consumer_wait - 1) < 1e-9);
    assert_true(isnan(seen.service_ns[DR__STAGE_AUGMENT]) && isnan(seen.cache_fill));
    assert_true(isnan(seen.queue_fill[DR__STAGE_DECODE]));
    set_gate(&reads, true);
    pthread_join(thread, NULL);
    close_all(&f);
}

static void slow_reads(void **state)
{
    (void)state;
    slow_reads_fill_their_queue(true);
    slow_reads_fill_their_queue(false);
}

/* Ops stand still: what was fetched waits before them, and behind them there is nothing. */
static void slow_ops(void **state)
{
    (void)state;
    fixture f = open_all(true);
    dr__facts facts = { 0 };
    dr__pipeline_facts seen;
    pthread_t thread;
    assert_ok(dr_loader_set(f.loader, "readers", 2, &err));
    set_gate(&ops, false);
    pthread_create(&thread, NULL, take_one, &f);
    wait_inside(&ops, WORKERS);
    wait_for(&f, DR_FLOW_FETCHED, DR__READ_AHEAD_PER_WORKER * WORKERS);
    facts_of(&f, &facts, &seen);
    assert_true(seen.queue_fill[DR__STAGE_DECODE] == 1);
    assert_true(seen.queue_fill[DR__STAGE_BATCH] == 0 && seen.queue_fill[DR__STAGE_SLOW] == 0);
    set_gate(&ops, true);
    pthread_join(thread, NULL);
    close_all(&f);
}

/* The consumer stands still: the last queue is full, the first is empty. */
static void slow_consumers(void **state)
{
    (void)state;
    for (int in_order = 0; in_order <= 1; in_order++) {
        fixture f = open_all(in_order);
        dr__facts facts = { 0 };
        dr__pipeline_facts seen;
        facts_of(&f, &facts, &seen);
        take(&f, 1);
        wait_for(&f, DR_FLOW_READY, AHEAD);
        facts_of(&f, &facts, &seen);
        usleep(5000);
        facts_of(&f, &facts, &seen);
        assert_true(seen.queue_fill[DR__STAGE_FETCH] == 0);
        assert_true(seen.queue_fill[DR__STAGE_BATCH] == 1);
        assert_true(seen.consumer_wait == 0);
        assert_true(seen.service_ns[DR__STAGE_FETCH] >= 0 && seen.service_ns[DR__STAGE_DECODE] > 0);
        assert_true(seen.batch_latency_ns > 0 && seen.demand_ns >= 0);
        assert_true(seen.in_flight_bytes > 0 && seen.in_flight_bytes <= seen.in_flight_limit);
        close_all(&f);
    }
}

/* A wait in several calls that each give up is one wait of the batch that comes at last. */
static void waits_in_slices_add_up(void **state)
{
    (void)state;
    fixture f = open_all(true);
    dr_batch *b = NULL;
    set_gate(&reads, false);
    for (int i = 0; i < 5; i++)
        assert_int_equal(dr_loader_next(f.loader, 4, &b, &err), DR_AGAIN);
    set_gate(&reads, true);
    assert_ok(dr_loader_next(f.loader, PATIENCE_MS, &b, &err));
    dr_batch_unref(&b);
    assert_true(atomic_load(&f.loader->exec.stats.wait.count) == 1);
    assert_true(atomic_load(&f.loader->exec.stats.wait.sum_ns) >= 20000000);
    close_all(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_what_happened),
        cmocka_unit_test(a_consumer_that_pauses_finds_all_ready),
        cmocka_unit_test(waits_and_steps_are_all_the_time),
        cmocka_unit_test(waiting_is_what_passes_before_a_batch),
        cmocka_unit_test(slow_reads),
        cmocka_unit_test(slow_ops),
        cmocka_unit_test(slow_consumers),
        cmocka_unit_test(waits_in_slices_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
