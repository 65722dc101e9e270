/* A fork while a loader runs: the child is told, may let batches go and load for itself; the parent goes on. */
#include "unit/loader/toy.h"

#include <drapps/monitor.h>
#include <drapps/trace.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loader/monitor_share.h"

static dr_error err;

/* ThreadSanitizer and qemu-user cannot follow a child of several threads that starts its own: there the child works
 * itself. */
#if DR_TEST_TSAN || defined(DR_TEST_EMULATED)
#define CHILD_WORKERS 0
#else
#define CHILD_WORKERS 2
#endif

/* The child must not use cmocka: it says by its exit code which step failed. */
#define STEP(n, good)                                                                                                  \
    do {                                                                                                               \
        if (!(good))                                                                                                   \
            _exit(n);                                                                                                  \
    } while (0)

static void child_work(dr_loader *l, dr_batch *held, dr_dataset *set, dr_graph *g)
{
    dr_error e = { 0 };
    dr_batch *b = NULL;
    char *text = NULL;
    double v;
    STEP(1, dr_loader_next(l, -1, &b, &e) == DR_ERR_FORKED && strstr(e.text, "parent process"));
    STEP(2, dr_loader_start(l, 0, &e) == DR_ERR_FORKED && dr_loader_state(l, &text, &e) == DR_ERR_FORKED);
    STEP(3,
         dr_loader_set(l, "workers", 1, &e) == DR_ERR_FORKED && dr_loader_get(l, "workers", &v, &e) == DR_ERR_FORKED);
    STEP(4, dr_loader_stats(l, &text, &e) == DR_ERR_FORKED && dr_loader_restore(l, "{}", &e) == DR_ERR_FORKED);
    dr_loader_cancel(l);
    dr_batch_unref(&held);
    STEP(5, !held);
    dr_loader_options o;
    dr_loader *own = NULL;
    dr_loader_defaults(&o);
    o.batch_size = 4;
    o.workers = CHILD_WORKERS;
    STEP(6, dr_loader_open(set, g, &o, &own, &e) == DR_OK);
    uint64_t n = 0;
    for (dr_status status; (status = dr_loader_next(own, 10000, &b, &e)) != DR_END; dr_batch_unref(&b)) {
        STEP(7, status == DR_OK);
        n += dr_batch_samples(b);
    }
    STEP(8, n == 200);
    dr_loader_close(&own);
    dr_loader_close(&l);
    STEP(9, !l && !own);
    _exit(0);
}

static int run_child(dr_loader *l, dr_batch *held, dr_dataset *set, dr_graph *g)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(20); /* a child that hangs is killed by it */
        child_work(l, held, set, g);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status))
        fail_msg("the child was killed by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

static void child_and_parent(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 200, .slow_every = 5, .slow_us = 100 });
    dr_graph *g = graph_of("{\"op\":\"random_horizontal_flip\"}");
    dr_loader_options o = options_of(4, 3);
    tape want = epoch_of(set, g, &o), got = { 0 };
    dr_loader *l = open_loader(set, g, &o);
    for (int i = 0; i < 12; i++) {
        dr_batch *b = NULL;
        assert_ok(dr_loader_next(l, -1, &b, &err));
        assert_int_equal(run_child(l, b, set, g), 0);
        tape_add(&got, b); /* the child let go of its copy, not of ours */
        dr_batch_unref(&b);
    }
    tape_read(&got, l, -1);
    assert_same_tape(&want, &got, "with children");
    dr_loader_close(&l);
    tape_free(&want);
    tape_free(&got);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* A child that gives back the parent's share of the monitor keeps its own. */
static void child_shares(dr_monitor *parents)
{
    dr_monitor *first = NULL, *second = NULL;
    dr_error e = { 0 };
    STEP(1, dr__monitor_share_ref(&first, &e) == DR_OK && first != parents);
    dr_monitor *held = dr_monitor_ref(first);
    dr__monitor_share_unref(&parents);
    STEP(2, dr__monitor_share_ref(&second, &e) == DR_OK && second == held);
    dr__monitor_share_unref(&first);
    STEP(3, dr__monitor_share_ref(&first, &e) == DR_OK && first == held);
    _exit(0);
}

static void the_shared_monitor_is_counted_anew(void **state)
{
    (void)state;
    dr_monitor *m = NULL;
    if (CHILD_WORKERS == 0)
        skip();
    assert_ok(dr__monitor_share_ref(&m, &err));
    pid_t pid = fork();
    if (pid == 0) {
        alarm(20);
        child_shares(m);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    dr__monitor_share_unref(&m);
}

/* The trace of the parent is the parent's: a child that exits adds nothing to it. */
static void a_child_leaves_the_trace_alone(void **state)
{
    (void)state;
    char path[] = "/tmp/drapps-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    dr_dataset *set = toy_set(&(toy){ .n = 20 });
    dr_graph *g = graph_of(NULL);
    dr_loader_options o = options_of(4, 0);
    o.trace = path;
    dr_loader *l = open_loader(set, g, &o);
    tape t = { 0 };
    tape_read(&t, l, 2);
    pid_t pid = fork();
    if (pid == 0)
        exit(0); /* not _exit: flushes what is buffered */
    int status;
    waitpid(pid, &status, 0);
    tape_read(&t, l, -1);
    dr_loader_close(&l);
    int seen[20] = { 0 };
    dr_trace_reader *r;
    dr_trace_record rec;
    dr_status at;
    assert_ok(dr_trace_open_reader(path, &r, &err));
    while ((at = dr_trace_next(r, &rec, &err)) == DR_OK)
        if (rec.kind == DR_TRACE_SPAN && rec.span->kind == DR_SPAN_WORK)
            seen[rec.span->position]++;
    assert_int_equal(at, DR_END);
    dr_trace_close_reader(&r);
    unlink(path);
    for (int i = 0; i < 20; i++)
        assert_int_equal(seen[i], 1);
    tape_free(&t);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(child_and_parent),
        cmocka_unit_test(the_shared_monitor_is_counted_anew),
        cmocka_unit_test(a_child_leaves_the_trace_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
