/* The ceiling of CPU time, held by a loader whose workers burn CPU. */
#include "unit/loader/toy.h"

#include <unistd.h>

#include "base/clock.h"
#include "loader/loader_internal.h"

enum { MS = 1000000 };

static dr_error err;

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
        cmocka_unit_test(workers_keep_to_it),
        cmocka_unit_test(others_do_not_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
