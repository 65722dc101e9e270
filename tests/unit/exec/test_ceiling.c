/* The ceiling of CPU time: by a clock that the test turns, and by a loader whose workers burn CPU. */
#include "unit/loader/toy.h"

#include <unistd.h>

#include "base/clock.h"
#include "exec/ceiling.h"
#include "loader/loader.h"

enum { MS = 1000000 };

static dr_error err;

/* Threads that burn CPU in pieces of `piece_ns` whenever they may, on as many CPUs, for `span_ns`: the CPU time used;
 * *most: in any window of 100 ms. */
static uint64_t burn(dr__ceiling *c, int threads, uint64_t piece_ns, uint64_t span_ns, uint64_t *most)
{
    static uint64_t used_at[20000]; /* each millisecond */
    uint64_t ends[64] = { 0 }, used = 0;
    double taken[64];
    for (uint64_t now = 1; now <= span_ns; now += MS / 10) {
        for (int i = 0; i < threads; i++) {
            if (ends[i] && ends[i] <= now) {
                dr__ceiling_settle(c, taken[i], piece_ns);
                used += piece_ns;
                ends[i] = 0;
            }
            if (!ends[i] && dr__ceiling_opens(c, now) <= now) {
                taken[i] = dr__ceiling_take(c);
                ends[i] = now + piece_ns;
            }
        }
        used_at[now / MS] = used;
    }
    *most = 0;
    for (uint64_t ms = 100; ms < span_ns / MS; ms++)
        *most = DR_MAX(*most, used_at[ms] - used_at[ms - 100]);
    return used;
}

/* What is used is what is allowed, whoever uses it and however large the pieces are; steadily, but for a piece of each
 * thread. */
static void cpu_time_follows_the_ceiling(void **state)
{
    (void)state;
    static const double cpus[] = { 0.1, 0.5, 1.0, 2.5 };
    static const uint64_t pieces[] = { MS / 2, 3 * MS, 40 * MS };
    for (size_t i = 0; i < DR_COUNT(cpus); i++)
        for (size_t k = 0; k < DR_COUNT(pieces); k++)
            for (int threads = 3; threads <= 8; threads += 5) {
                dr__ceiling c = { 0 };
                uint64_t most;
                dr__ceiling_set(&c, cpus[i], 1);
                const double span = 10000.0 * MS, used = (double)burn(&c, threads, pieces[k], 10000ull * MS, &most);
                const double slack = 0.02 * span * cpus[i] + (double)threads * (double)pieces[k];
                if (used > span * cpus[i] + slack || used < span * cpus[i] - slack)
                    fail_msg("%g CPUs: %g used by %d threads in pieces of %g ms", cpus[i], used / span, threads,
                             (double)pieces[k] / MS);
                assert_true((double)most <= 120.0 * MS * cpus[i] + slack);
            }
}

static void nothing_is_saved_up(void **state)
{
    (void)state;
    dr__ceiling c = { 0 };
    dr__ceiling_set(&c, 0.5, 1);
    assert_int_equal(dr__ceiling_opens(&c, 60000ull * MS), 60000ull * MS); /* idle for a minute */
    assert_true(c.left_ns <= 0.5 * 20 * MS);
    dr__ceiling_settle(&c, 0, 50 * MS); /* 40 ms too much: 80 ms at half a CPU */
    assert_int_equal(dr__ceiling_opens(&c, 60000ull * MS), 60080ull * MS);
    dr__ceiling_set(&c, 4, 60000ull * MS); /* what was used too early is still owed */
    assert_int_equal(dr__ceiling_opens(&c, 60000ull * MS), 60010ull * MS);
    dr__ceiling_set(&c, 0, 60000ull * MS);
    dr__ceiling_set(&c, 1, 60005ull * MS); /* but not for a time without a ceiling */
    assert_int_equal(dr__ceiling_opens(&c, 60006ull * MS), 60006ull * MS);
}

static uint64_t busy_ns = 3 * MS;
static atomic_uint_fast64_t longest_ns;

static void keep_busy(uint64_t id)
{
    (void)id;
    const uint64_t start = dr__thread_cpu_ns();
    uint64_t now = start;
    while (now - start < busy_ns)
        now = dr__thread_cpu_ns();
    if (now - start > atomic_load(&longest_ns))
        atomic_store(&longest_ns, now - start);
}

/* The bound is one of arithmetic: whatever else the machine does, CPU time is given out at the rate of the ceiling. */
static void workers_keep_to_it(void **state)
{
    (void)state;
    enum { WORKERS = 3, N = 60 };
    dr_dataset *set = toy_set(&(toy){ .n = N, .on_read = keep_busy });
    dr_graph *g = graph_of(NULL);
    dr_loader_options o = options_of(5, WORKERS);
    dr_loader *l = open_loader(set, g, &o);
    assert_ok(dr_loader_set(l, "cpu_ceiling", 0.5, &err));
    tape t = { 0 };
    const uint64_t start = dr__now_ns();
    tape_read(&t, l, -1);
    const double wall = (double)(dr__now_ns() - start), used = (double)N * (double)busy_ns;
    assert_each_once(&t, N);
    const double early = 0.5 * 20 * MS + (WORKERS + 1) * 4.0 * (double)atomic_load(&longest_ns);
    if (used > 0.5 * wall + early)
        fail_msg("%g ms of CPU time in %g ms", used / MS, wall / MS);
    while (atomic_load(&l->exec.stats.cpu_ns) < N * busy_ns) /* the last claim is booked after its batch is taken */
        usleep(1000);
    tape_free(&t);
    dr_loader_close(&l);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* A loader without CPU time left keeps neither the other nor its own consumer from working. */
static void others_do_not_wait(void **state)
{
    (void)state;
    busy_ns = MS / 4;
    dr_dataset *set = toy_set(&(toy){ .n = 40, .on_read = keep_busy });
    dr_graph *g = graph_of(NULL);
    dr_loader_options o = options_of(5, 2);
    dr_loader *a = open_loader(set, g, &o), *b = open_loader(set, g, &o);
    assert_ok(dr_loader_set(a, "cpu_ceiling", 1e-6, &err));
    tape one = { 0 }, two = { 0 };
    dr_batch *batch = NULL;
    dr_status status = dr_loader_next(a, 30, &batch, &err); /* its first samples are on credit */
    if (status == DR_OK) {
        tape_add(&one, batch);
        dr_batch_unref(&batch);
    } else {
        assert_int_equal(status, DR_AGAIN);
    }
    tape_read(&two, b, -1);
    assert_each_once(&two, 40);
    assert_true(atomic_load(&a->exec.stats.samples) < 40);
    assert_ok(dr_loader_set(a, "workers", 0, &err)); /* the caller may use its own CPU time */
    tape_read(&one, a, 3);
    assert_ok(dr_loader_set(a, "workers", 2, &err));
    assert_ok(dr_loader_set(a, "cpu_ceiling", 0, &err));
    tape_read(&one, a, -1);
    assert_same_tape(&one, &two, "with and without a ceiling");
    tape_free(&one);
    tape_free(&two);
    dr_loader_close(&a);
    dr_loader_close(&b);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpu_time_follows_the_ceiling),
        cmocka_unit_test(nothing_is_saved_up),
        cmocka_unit_test(workers_keep_to_it),
        cmocka_unit_test(others_do_not_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
