/* Slow samples: who may run them, and that the others go on meanwhile.
 *
 * A large image counts as slow by its predicted cost.  Its slowness is a gate in a kernel that opens when the test says
 * so: while it is shut, whoever runs a large image stays there, and what the other workers do is decided by the lanes
 * alone. */
#include "unit/loader/toy.h"

#include <math.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "kernel/cpu.h"
#include "loader/loader_internal.h"
#include "unit/loader/gate.h"

enum { BATCH = 4, AHEAD = 8, LARGE_FROM = 64, LARGE_TO = 67, N = 200, LARGE_WIDTH = 48 };

static dr_error err;
static const char gray[] = "{\"op\":\"grayscale\"},{\"op\":\"center_crop\",\"params\":{\"size\":[8,6]}}";

static gate kernel_gate = OPEN_GATE;
static gate read_gate = OPEN_GATE;

static dr__kernels kernels;
static void (*plain_rgb_to_l)(uint8_t *dst, const uint8_t *src, size_t n);

static void gated_rgb_to_l(uint8_t *dst, const uint8_t *src, size_t n)
{
    if (n >= LARGE_WIDTH)
        pass_gate(&kernel_gate);
    plain_rgb_to_l(dst, src, n);
}

static dr_loader *open_gated(dr_dataset *set, const dr_loader_options *o)
{
    dr_graph *g = graph_of(gray);
    dr_loader *l = open_loader(set, g, o);
    dr__kernels_fill(&kernels, DR__CPU_C);
    plain_rgb_to_l = kernels.rgb_to_l;
    kernels.rgb_to_l = gated_rgb_to_l;
    l->exec.program->kernels = &kernels;
    l->exec.lanes.predict.floor_ns = 0; /* these samples take microseconds */
    dr_graph_free(&g);
    return l;
}

static dr_loader_options lane_options(int workers, bool in_order)
{
    dr_loader_options o = options_of(BATCH, workers);
    o.in_order = in_order;
    o.prefetch = AHEAD;
    o.outputs = "image";
    return o;
}

static toy large_toy(void)
{
    return (toy){ .n = N, .large_from = LARGE_FROM, .large_to = LARGE_TO, .large = 8 };
}

/* Reads n batches, none of which may need a gate to open. */
static void read_some(tape *t, dr_loader *l, int n)
{
    for (int i = 0; i < n; i++) {
        dr_batch *b = NULL;
        dr_status status = dr_loader_next(l, PATIENCE_MS, &b, &err);
        if (status == DR_AGAIN)
            fail_msg("only %d of %d batches came", i, n);
        assert_ok(status);
        tape_add(t, b);
        dr_batch_unref(&b);
    }
}

/* What the trace says of the samples' lanes. */
static void check_trace(const char *path)
{
    int slow = 0, fast = 0;
    dr_trace_reader *r;
    dr_trace_record rec;
    assert_ok(dr_trace_open_reader(path, &r, &err));
    while (dr_trace_next(r, &rec, &err) == DR_OK) {
        if (rec.kind != DR_TRACE_SPAN || rec.span->kind != DR_SPAN_WORK)
            continue;
        assert_int_equal(rec.span->slow, rec.span->id >= LARGE_FROM && rec.span->id < LARGE_TO);
        slow += rec.span->slow;
        fast += !rec.span->slow;
    }
    dr_trace_close_reader(&r);
    assert_int_equal(slow, LARGE_TO - LARGE_FROM);
    assert_int_equal(fast, N - slow);
}

/* Out of order: one worker is held up, the other fills batches to the end of the window, then helps. */
static void fast_ones_fill_batches(void **state)
{
    (void)state;
    const toy large = large_toy();
    dr_dataset *set = toy_set(&large);
    char path[] = "/tmp/drapps-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    dr_loader_options o = lane_options(2, false);
    o.trace = path;
    o.trace_spans = HUGE_VAL;
    dr_loader *l = open_gated(set, &o);
    tape t = { 0 };
    set_gate(&kernel_gate, false);
    const int can_be_done = LARGE_FROM + AHEAD * BATCH - (LARGE_TO - LARGE_FROM);
    read_some(&t, l, can_be_done / BATCH);
    for (size_t i = 0; i < t.n; i++)
        for (uint64_t k = 0; k < t.batches[i].n; k++)
            assert_false(t.batches[i].ids[k] >= LARGE_FROM && t.batches[i].ids[k] < LARGE_TO);
    wait_inside(&kernel_gate, 2); /* nothing else is to be done */
    assert_int_equal(stat_of(l, "slow_samples"), 3);
    assert_int_equal(stat_of(l, "slow_workers"), 2);
    assert_true(stat_of(l, "parked_bytes") > 0);
    set_gate(&kernel_gate, true);
    tape_read(&t, l, -1);
    assert_each_once(&t, N);
    assert_int_equal(stat_of(l, "slow_workers"), 0);
    assert_true(stat_of(l, "lane_threshold_ns") >= 0);
    tape_free(&t);
    dr_loader_close(&l);
    check_trace(path);
    remove(path);
    dr_dataset_unref(&set);
}

/* Without lanes the same samples take both workers. */
static void without_lanes_all_are_held_up(void **state)
{
    (void)state;
    const toy large = large_toy();
    dr_dataset *set = toy_set(&large);
    dr_loader_options o = lane_options(2, false);
    o.lanes = false;
    dr_loader *l = open_gated(set, &o);
    tape t = { 0 };
    set_gate(&kernel_gate, false);
    read_some(&t, l, LARGE_FROM / BATCH - AHEAD + 1); /* the window reaches the large ones */
    wait_inside(&kernel_gate, 2);
    assert_true(dr__claim_is_open(&l->exec)); /* there would be fast ones */
    set_gate(&kernel_gate, true);
    tape_read(&t, l, -1);
    assert_each_once(&t, N);
    assert_int_equal(stat_of(l, "slow_samples"), 0);
    tape_free(&t);
    dr_loader_close(&l);
    dr_dataset_unref(&set);
}

static bool is_ready(dr_loader *l, uint64_t batch)
{
    dr__pool_lock();
    const dr_batch *b = l->exec.ring[batch % DR__RING];
    bool ready = b && b->number == batch && b->ready;
    dr__pool_unlock();
    return ready;
}

/* In order: only the batch with the slow samples is late; those behind it get ready. */
static void only_their_batch_is_late(void **state)
{
    (void)state;
    const toy large = large_toy();
    dr_dataset *set = toy_set(&large);
    dr_loader_options o = lane_options(2, true);
    dr_loader *l = open_gated(set, &o);
    tape t = { 0 };
    set_gate(&kernel_gate, false);
    read_some(&t, l, LARGE_FROM / BATCH);
    for (uint64_t b = LARGE_FROM / BATCH + 1; b < LARGE_FROM / BATCH + AHEAD; b++)
        for (int i = 0; !is_ready(l, b); i++) {
            if (i > PATIENCE_MS)
                fail_msg("batch %llu is held up", (unsigned long long)b);
            usleep(1000);
        }
    assert_false(is_ready(l, LARGE_FROM / BATCH));
    wait_inside(&kernel_gate, 2);
    set_gate(&kernel_gate, true);
    tape_read(&t, l, -1);
    for (size_t i = 0; i < t.n; i++)
        assert_int_equal(t.batches[i].number, i);
    assert_each_once(&t, N);
    tape_free(&t);
    dr_loader_close(&l);
    dr_dataset_unref(&set);
}

/* Where slow samples are most of the work, all workers but one run them at once, and none is parked. */
static void the_share_grows_with_the_work(void **state)
{
    (void)state;
    const toy large = large_toy();
    dr_dataset *set = toy_set(&large);
    for (int most = 0; most < 2; most++) {
        dr_loader_options o = lane_options(4, false);
        dr_loader *l = open_gated(set, &o);
        tape t = { 0 };
        set_gate(&kernel_gate, false);
        if (most) { /* as if all the time went into them; a worker that the system holds up is not slow then */
            atomic_store(&l->exec.lanes.predict.slow_ns, (uint64_t)1 << 60);
            atomic_store(&l->exec.lanes.predict.ns, (uint64_t)1 << 60);
        }
        const int can_be_done = LARGE_FROM + AHEAD * BATCH - (LARGE_TO - LARGE_FROM);
        read_some(&t, l, can_be_done / BATCH);
        wait_inside(&kernel_gate, 3); /* there are no more than three */
        assert_int_equal(stat_of(l, "parked_bytes") > 0, !most);
        set_gate(&kernel_gate, true);
        finish_epoch(&t, &l, N);
    }
    dr_dataset_unref(&set);
}

/* --- shares --- */

enum { MANY = 400, SLOW_FROM = 64, SLOW_TO = 164, LOOK = 60, TIMES_AS_WIDE = 3 };
static atomic_int n_small, n_large, first_large;

/* Rows that were run since the first large image came, until enough small ones did. */
static void counting_rgb_to_l(uint8_t *dst, const uint8_t *src, size_t n)
{
    plain_rgb_to_l(dst, src, n);
    const bool large = n > 6;
    if (large)
        atomic_store(&first_large, 1);
    if (!atomic_load(&first_large) || atomic_load(&n_small) >= LOOK * 8)
        return;
    atomic_fetch_add(large ? &n_large : &n_small, 1);
}

/* How many slow samples are run for LOOK fast ones, while both are there. */
static int slow_among_fast(int workers, bool in_order, double share)
{
    const toy some = {
        .n = MANY, .large_from = SLOW_FROM, .large_to = SLOW_TO, .large = TIMES_AS_WIDE, .h = 8, .w = 6
    };
    dr_dataset *set = toy_set(&some);
    dr_loader_options o = lane_options(workers, in_order);
    o.prefetch = 64;
    dr_loader *l = open_gated(set, &o);
    kernels.rgb_to_l = counting_rgb_to_l;
    atomic_store(&n_small, 0);
    atomic_store(&n_large, 0);
    atomic_store(&first_large, 0);
    assert_ok(dr_loader_set(l, "lane_share", share, &err));
    tape t = { 0 };
    tape_read(&t, l, -1);
    assert_each_once(&t, MANY);
    assert_int_equal(stat_of(l, "slow_samples"), SLOW_TO - SLOW_FROM);
    tape_free(&t);
    dr_loader_close(&l);
    dr_dataset_unref(&set);
    return atomic_load(&n_large) / (8 * TIMES_AS_WIDE);
}

/* Shares of the work, whatever the times: those of one kind, swapped, change what each is given. */
static void a_share_can_be_set(void **state)
{
    (void)state;
    for (int in_order = 0; in_order < 2; in_order++) {
        const int few = slow_among_fast(1, in_order, 0.2), many = slow_among_fast(1, in_order, 0.8);
        print_message("%d slow samples for %d fast ones at 0.2, %d at 0.8\n", few, LOOK, many);
        assert_true(many >= 2 * few && few >= 1);
        assert_true(slow_among_fast(3, in_order, 0.05) >= 0); /* all are run in the end, whoever runs them */
    }
}

/* --- samples that are slow unforeseen --- */

enum { STUCK = 40, LOOKS = 50 };
static dr_loader *watched;

static bool stuck_is_overdue(void)
{
    const uint64_t slow_ns = dr__predict_slow_ns(&watched->exec.lanes.predict), now = dr__now_ns();
    dr__pool_lock();
    int n = slow_ns < now ? dr__pool_busy_since(&watched->exec, now - slow_ns) : 0;
    dr__pool_unlock();
    return n > 0;
}

/* STUCK waits at its gate; LOOKS comes to the other worker, and goes on once STUCK is seen to take long. */
static void hold_up(uint64_t id)
{
    if (id == STUCK)
        pass_gate(&read_gate);
    for (int i = 0; id == LOOKS && i < PATIENCE_MS && !(inside(&read_gate) && stuck_is_overdue()); i++)
        usleep(1000);
}

static void what_takes_long_counts_as_slow(void **state)
{
    (void)state;
    toy large = large_toy();
    large.on_read = hold_up;
    dr_dataset *set = toy_set(&large);
    dr_loader_options o = lane_options(2, false);
    dr_loader *l = watched = open_gated(set, &o);
    tape t = { 0 };
    set_gate(&kernel_gate, false);
    set_gate(&read_gate, false);
    const int can_be_done = STUCK + AHEAD * BATCH - 1 - (LARGE_TO - LARGE_FROM);
    read_some(&t, l, can_be_done / BATCH); /* one less, had the second worker run a large one */
    wait_inside(&kernel_gate, 1);
    set_gate(&read_gate, true);
    set_gate(&kernel_gate, true);
    finish_epoch(&t, &l, N);
    dr_dataset_unref(&set);
}

/* --- cancelling, and memory --- */

static void given_up_with_parked_samples(void **state)
{
    (void)state;
    const toy large = large_toy();
    dr_dataset *set = toy_set(&large);
    for (int in_order = 0; in_order < 2; in_order++) {
        dr_loader_options o = lane_options(2, in_order);
        dr_loader *l = open_gated(set, &o);
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            tape t = { 0 };
            assert_ok(dr_loader_start(l, epoch, &err));
            set_gate(&kernel_gate, false); /* the window does not reach the large ones yet */
            read_some(&t, l, LARGE_FROM / BATCH);
            wait_inside(&kernel_gate, 2);
            set_gate(&kernel_gate, true);
            tape_free(&t);
        }
        tape t = { 0 };
        assert_ok(dr_loader_start(l, 9, &err));
        tape_read(&t, l, -1);
        assert_each_once(&t, N);
        assert_int_equal(stat_of(l, "slow_workers"), 0);
        tape_free(&t);
        dr_loader_close(&l);
    }
    dr_dataset_unref(&set);
}

/* A caller that is to run a parked sample itself, and has no memory for it: the sample is not lost. */
static void no_memory_for_a_parked_sample(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 4 });
    dr_graph *g = graph_of(NULL);
    dr_loader_options o = options_of(1, 0);
    o.pushed_order = true;
    dr_loader *l = open_loader(set, g, &o);
    dr__workbench *bench = dr__workbench_new();
    dr_batch *b = NULL;
    assert_ok(dr_loader_start(l, 0, &err));
    l->exec.knobs.workers = 2; /* no thread serves it */
    assert_true(dr__lane_park(&l->exec, bench, &(dr__job){ .slow = true }, true));
    l->exec.knobs.workers = 0;
    dr__alloc_fail_at(1, true);
    const dr_status status = dr_loader_next(l, 20000, &b, &err);
    dr__alloc_fail_at(0, false);
    assert_int_equal(status, DR_ERR_NOMEM);
    assert_int_equal(l->exec.lanes.running, 0);
    assert_non_null(l->exec.lanes.spare);
    dr__workbench_free(&bench);
    dr_loader_close(&l);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* Where the budget leaves no room for parked bytes, slow samples are run at once. */
static void parked_bytes_stay_within_the_budget(void **state)
{
    (void)state;
    const toy large = { .n = N, .large_from = LARGE_FROM, .large_to = LARGE_TO, .large = 8, .h = 8, .w = 6 };
    dr_dataset *set = toy_set(&large);
    dr_loader_options o = lane_options(2, true);
    o.memory_limit = 40000; /* a large image has 9216 bytes; a quarter of the batches' half is 5000 */
    dr_loader *l = open_gated(set, &o);
    l->exec.budget.bench_bytes = 1 << 20;
    tape t = { 0 };
    tape_read(&t, l, -1);
    assert_each_once(&t, N);
    assert_int_equal(stat_of(l, "slow_samples"), 3);
    assert_int_equal(stat_of(l, "parked_bytes"), 0);
    tape_free(&t);
    dr_loader_close(&l);
    dr_dataset_unref(&set);
}

/* Uniform samples: none is slow, whatever the noise of their times. */
static void equal_samples_have_one_lane(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 2000 });
    dr_graph *g = graph_of(gray);
    dr_loader_options o = lane_options(3, true);
    dr_loader *l = open_loader(set, g, &o);
    l->exec.lanes.predict.floor_ns = 0;
    tape t = { 0 };
    tape_read(&t, l, -1);
    assert_int_equal(stat_of(l, "slow_samples"), 0);
    tape_free(&t);
    dr_loader_close(&l);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_ones_fill_batches),         cmocka_unit_test(without_lanes_all_are_held_up),
        cmocka_unit_test(only_their_batch_is_late),       cmocka_unit_test(the_share_grows_with_the_work),
        cmocka_unit_test(what_takes_long_counts_as_slow), cmocka_unit_test(given_up_with_parked_samples),
        cmocka_unit_test(no_memory_for_a_parked_sample),  cmocka_unit_test(parked_bytes_stay_within_the_budget),
        cmocka_unit_test(equal_samples_have_one_lane),    cmocka_unit_test(a_share_can_be_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
