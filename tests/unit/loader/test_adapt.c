/* Loaders with a controller: what it turns, what it leaves alone, and that no byte depends on it.
 *
 * Slowness is sleeping, so that it does not depend on the machine; tests that wait for a decision wait for many seconds
 * before they give up. */
#include "unit/loader/toy.h"

#include <dirent.h>
#include <jansson.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "loader/loader_knobs.h"
#include "unit/monitor/proc_tree.h"

enum { N = 1000000, BATCH = 8, PATIENCE_S = 60, SHORT_MS = 100 };

static dr_error err;

/* --- loaders --- */

typedef struct fixture {
    dr_dataset *set;
    dr_graph *graph;
    dr_loader *loader;
} fixture;

static dr_loader_options standard(void)
{
    dr_loader_options o;
    dr_loader_defaults(&o);
    o.batch_size = BATCH;
    o.outputs = "image,label";
    return o;
}

/* Every read takes read_us.  The controller decides ten times as often as usual. */
static fixture open_all(const dr_loader_options *o, uint64_t n, unsigned read_us)
{
    fixture f = { .set = toy_set(&(toy){ .n = n, .slow_every = 1, .slow_us = read_us }),
                  .graph = graph_of("{\"op\":\"random_horizontal_flip\"}") };
    f.loader = open_loader(f.set, f.graph, o);
    f.loader->adapt.period_ms = SHORT_MS;
    return f;
}

static void close_all(fixture *f)
{
    dr_loader_close(&f->loader);
    dr_graph_free(&f->graph);
    dr_dataset_unref(&f->set);
}

static void take(fixture *f, unsigned step_us)
{
    dr_batch *b = NULL;
    assert_ok(dr_loader_next(f->loader, -1, &b, &err));
    dr_batch_unref(&b);
    usleep(step_us);
}

static double knob(fixture *f, int which)
{
    return dr__knob_get(f->loader, which);
}

static uint64_t last_number(fixture *f)
{
    dr_decision d = { 0 };
    dr_loader_decisions(f->loader, 0, &d, 1);
    return d.number;
}

/* Takes batches until there were n more decisions. */
static void take_until(fixture *f, uint64_t n, unsigned step_us)
{
    const uint64_t end = last_number(f) + n, start = dr__now_ns();
    while (last_number(f) < end) {
        take(f, step_us);
        if (dr__now_ns() - start > PATIENCE_S * 1000000000ull)
            fail_msg("%llu decisions, wanted %llu", (unsigned long long)last_number(f), (unsigned long long)end);
    }
}

static json_t *stats_of(fixture *f)
{
    char *text = NULL;
    assert_ok(dr_loader_stats(f->loader, &text, &err));
    json_t *o = json_loads(text, 0, NULL);
    dr_text_free(&text);
    assert_non_null(o);
    return o;
}

/* --- decisions --- */

static void a_consumer_that_sleeps_gets_workers_back(void **state)
{
    (void)state;
    dr_loader_options o = standard();
    fixture f = open_all(&o, N, 100);
    assert_ok(dr__knob_set(f.loader, DR_KNOB_WORKERS, 4, &err));
    const uint64_t start = dr__now_ns();
    while (knob(&f, DR_KNOB_WORKERS) > 3 && dr__now_ns() - start < PATIENCE_S * 1000000000ull)
        take(&f, 10000);
    assert_true(knob(&f, DR_KNOB_WORKERS) < 4);
    dr_decision d[64];
    const size_t n = dr_loader_decisions(f.loader, 0, d, 64);
    bool told = false;
    for (size_t i = 0; i < n; i++)
        told |= d[i].changed & 1u << DR_KNOB_WORKERS && d[i].after[DR_KNOB_WORKERS] < d[i].before[DR_KNOB_WORKERS] &&
                strstr(d[i].reason, "workers");
    assert_true(told);
    close_all(&f);
}

static void slow_reads_get_more_threads(void **state)
{
    (void)state;
    dr_loader_options o = standard();
    fixture f = open_all(&o, N, 4000);
    assert_ok(dr__knob_set(f.loader, DR_KNOB_WORKERS, 1, &err));
    const uint64_t start = dr__now_ns();
    double threads = 1;
    while (threads < 3 && dr__now_ns() - start < PATIENCE_S * 1000000000ull) {
        take(&f, 0);
        threads = knob(&f, DR_KNOB_WORKERS) + knob(&f, DR_KNOB_READERS);
    }
    assert_true(threads >= 3);
    close_all(&f);
}

/* Pauses nest; while one is on nothing is decided but that batches are made meanwhile. */
static void pauses_are_told(void **state)
{
    (void)state;
    dr_loader_options o = standard();
    fixture f = open_all(&o, N, 100);
    dr_decision d = { 0 };
    take_until(&f, 2, 1000);
    assert_fails(dr_loader_resume(f.loader, &err), DR_ERR_STATE, "is not paused");
    assert_ok(dr_loader_pause(f.loader, &err));
    assert_ok(dr_loader_pause(f.loader, &err));
    assert_ok(dr_loader_resume(f.loader, &err));
    for (int i = 0; !strstr(d.reason, "The consumer pauses"); i++) {
        assert_true(i < PATIENCE_S * 100);
        usleep(10000);
        dr_loader_decisions(f.loader, 0, &d, 1);
    }
    assert_true(knob(&f, DR_KNOB_PREFETCH) == d.after[DR_KNOB_PREFETCH] && d.after[DR_KNOB_PREFETCH] > 2);
    usleep(5 * SHORT_MS * 1000);
    assert_int_equal(last_number(&f), d.number);
    assert_ok(dr_loader_resume(f.loader, &err));
    take_until(&f, 1, 1000);
    close_all(&f);
}

static void what_the_user_set_stays(void **state)
{
    (void)state;
    dr_loader_options o = standard();
    o.workers = 2, o.prefetch = 3;
    fixture f = open_all(&o, N, 4000);
    take_until(&f, 2, 0);
    assert_ok(dr_loader_set(f.loader, "readers", 1, &err));
    take_until(&f, 4, 0);
    assert_true(knob(&f, DR_KNOB_WORKERS) == 2 && knob(&f, DR_KNOB_PREFETCH) == 3 && knob(&f, DR_KNOB_READERS) == 1);
    assert_fails(dr_loader_set(f.loader, "readers", -1, &err), DR_ERR_ARG, "0 to 64");
    close_all(&f);
}

/* Of small batches there are many at first.  Out of order it stays so: they are the window of a slow sample. */
static void small_batches_become_fewer_in_order_alone(void **state)
{
    (void)state;
    for (int in_order = 0; in_order < 2; in_order++) {
        dr_loader_options o = standard();
        o.workers = 2, o.batch_size = 2, o.in_order = in_order;
        fixture f = open_all(&o, N, 100);
        assert_true(knob(&f, DR_KNOB_PREFETCH) == 12);
        const uint64_t start = dr__now_ns();
        take_until(&f, 3, 10000);
        while (in_order && knob(&f, DR_KNOB_PREFETCH) == 12 && dr__now_ns() - start < PATIENCE_S * 1000000000ull)
            take(&f, 10000);
        assert_true(in_order ? knob(&f, DR_KNOB_PREFETCH) < 12 : knob(&f, DR_KNOB_PREFETCH) >= 12);
        close_all(&f);
    }
}

static void fixed_turns_nothing(void **state)
{
    (void)state;
    dr_loader_options o = standard();
    o.policy = "fixed";
    fixture f = open_all(&o, N, 2000);
    double before[DR_N_KNOBS];
    for (int k = 0; k < DR_N_KNOBS; k++)
        before[k] = knob(&f, k);
    const uint64_t start = dr__now_ns();
    while (dr__now_ns() - start < 800000000)
        take(&f, 0);
    for (int k = 0; k < DR_N_KNOBS; k++)
        assert_true(knob(&f, k) == before[k]);
    close_all(&f);
}

static void between_epochs_nothing_is_decided(void **state)
{
    (void)state;
    dr_loader_options o = standard();
    fixture f = open_all(&o, 800, 2000);
    dr_batch *b = NULL;
    assert_ok(
        dr__knob_set(f.loader, DR_KNOB_WORKERS, 2, &err)); /* on any machine it takes long enough for a controller */
    while (dr_loader_next(f.loader, -1, &b, &err) == DR_OK)
        dr_batch_unref(&b);
    assert_true(last_number(&f) > 0);
    usleep(300000); /* a tick that was in flight */
    const uint64_t number = last_number(&f);
    usleep(500000);
    assert_int_equal(last_number(&f), number);
    assert_ok(dr_loader_start(f.loader, 1, &err));
    take_until(&f, 1, 0);
    close_all(&f);
}

/* --- bytes --- */

static void same_bytes(const char *policy, dr_monitor *monitor, const tape *want, uint64_t n)
{
    for (int in_order = 0; in_order <= 1; in_order++) {
        dr_loader_options o = standard();
        o.policy = policy, o.resource_monitor = monitor, o.shuffle = true, o.in_order = in_order;
        fixture f = open_all(&o, n, 600);
        assert_ok(dr__knob_set(f.loader, DR_KNOB_WORKERS, 2, &err)); /* on any machine it takes longer than a period */
        tape got = { 0 };
        tape_read(&got, f.loader, -1);
        if (in_order)
            assert_same_tape(want, &got, policy);
        assert_each_once(&got, n);
        json_t *stats = stats_of(&f);
        assert_string_equal(json_string_value(json_object_get(stats, "policy")), policy);
        assert_true(json_integer_value(json_object_get(stats, "decisions")) > 0);
        json_decref(stats);
        tape_free(&got);
        close_all(&f);
    }
}

static void every_policy_gives_the_same_bytes(void **state)
{
    (void)state;
    enum { SOME = 1000 };
    dr_monitor_options m;
    dr_monitor *monitor = NULL;
    dr_monitor_defaults(&m);
    m.interval_ms = 10;
    assert_ok(dr_monitor_open(&m, &monitor, &err));
    dr_loader_options o = standard();
    o.workers = 0, o.shuffle = true;
    fixture f = open_all(&o, SOME, 1);
    tape want = { 0 };
    tape_read(&want, f.loader, -1);
    close_all(&f);
    json_t *all = json_loads(dr_policies_json(), 0, NULL), *row;
    size_t i;
    json_array_foreach(all, i, row) same_bytes(json_string_value(json_object_get(row, "name")), monitor, &want, SOME);
    assert_true(i > 1);
    json_decref(all);
    tape_free(&want);
    dr_monitor_unref(&monitor);
}

/* --- settings --- */

static void refuse(const dr_loader_options *o, dr_status status, const char *text)
{
    dr_dataset *set = toy_set(&(toy){ .n = 4 });
    dr_graph *g = graph_of(NULL);
    dr_loader *l = NULL;
    assert_fails(dr_loader_open(set, g, o, &l, &err), status, text);
    assert_null(l);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void wrong_settings_are_named(void **state)
{
    (void)state;
    dr_loader_options o = standard();
    o.policy = "magic";
    refuse(&o, DR_ERR_ARG, "magic");
    refuse(&o, DR_ERR_ARG, "analytic");
    o = standard();
    o.weights = "speed=1";
    refuse(&o, DR_ERR_ARG, "speed");
    o = standard();
    o.cpu_limit = -1;
    refuse(&o, DR_ERR_ARG, "0.01 to 512, got -1");
    o.cpu_limit = 0.0 / 0.0;
    refuse(&o, DR_ERR_ARG, "cpu_limit");
    o.cpu_limit = 1e-9;
    refuse(&o, DR_ERR_ARG, "cpu_limit must be 0 (the limit of the container) or 0.01 to 512, got 1e-09");
    o.cpu_limit = 513;
    refuse(&o, DR_ERR_ARG, "0.01 to 512, got 513");
}

static void the_environment_goes_first(void **state)
{
    (void)state;
    dr_loader_options o = standard();
    setenv("DRAPPS_POLICY", "off", 1);
    fixture f = open_all(&o, 40, 1);
    json_t *stats = stats_of(&f);
    assert_string_equal(json_string_value(json_object_get(stats, "policy")), "fixed");
    assert_int_equal(json_object_size(json_object_get(stats, "knobs")), DR_N_KNOBS);
    json_decref(stats);
    close_all(&f);
    setenv("DRAPPS_POLICY", "magic", 1);
    refuse(&o, DR_ERR_ARG, "DRAPPS_POLICY");
    unsetenv("DRAPPS_POLICY");
}

static void weights_reach_the_decisions(void **state)
{
    (void)state;
    dr_loader_options o = standard();
    o.weights = "draadp,energy=0.25";
    fixture f = open_all(&o, N, 500);
    take_until(&f, 1, 0);
    dr_decision d;
    assert_int_equal(dr_loader_decisions(f.loader, 0, &d, 1), 1);
    assert_true(d.weight[DR_TERM_ENERGY] == 0.25 && d.weight[DR_TERM_IDLE] == 0);
    assert_true(dr_decision_reward(&d) == d.reward);
    close_all(&f);
}

/* A container with half a core on a machine with many, whatever this machine is. */
static void threads_are_chosen_from_the_quota(void **state)
{
    (void)state;
    static const char *const trees[] = { "synthetic-half-core-v1/a.txt", "synthetic-half-core-v2/a.txt" };
    for (int i = 0; i < 2; i++) {
        char root[64];
        size_t size;
        tree_new(root);
        char *text = tree_load(trees[i], &size);
        tree_write(root, text, size);
        free(text);
        dr_monitor_options m;
        dr_monitor *monitor = NULL;
        dr_monitor_defaults(&m);
        m.root = root;
        assert_ok(dr_monitor_open(&m, &monitor, &err));
        dr_loader_options o = standard();
        o.resource_monitor = monitor;
        fixture f = open_all(&o, N, 0);
        dr_monitor_unref(&monitor); /* the loader has its own reference */
        assert_true(knob(&f, DR_KNOB_WORKERS) == 1);
        take_until(&f, 1, 0);
        close_all(&f);
        tree_remove(root);
    }
}

static void a_limit_of_cpus_counts_from_the_beginning(void **state)
{
    (void)state;
    dr_loader_options o = standard();
    o.cpu_limit = 0.5;
    fixture f = open_all(&o, 40, 1);
    assert_true(knob(&f, DR_KNOB_WORKERS) == 1 && knob(&f, DR_KNOB_CPU_CEILING) == 0.5);
    close_all(&f);
    o.cpu_limit = 0.01;
    f = open_all(&o, 40, 1);
    assert_true(knob(&f, DR_KNOB_WORKERS) == 1 && knob(&f, DR_KNOB_CPU_CEILING) == 0.01);
    close_all(&f);
}

/* --- monitors and processes --- */

/* Threads of this process by that name. */
static int count_threads(const char *name)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/task");
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char path[300], text[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        n += file && fgets(text, sizeof text, file) && !strncmp(text, name, strlen(name));
        if (file)
            fclose(file);
    }
    if (dir)
        closedir(dir);
    return n;
}

static void loaders_share_a_monitor_and_leave_nothing(void **state)
{
    (void)state;
    dr_loader_options o = standard();
    fixture a = open_all(&o, N, 500), b = open_all(&o, N, 500);
    take(&a, 0);
    assert_int_equal(count_threads("dr-monitor"), 0); /* for a short run there is none */
    take_until(&a, 1, 0);
    take_until(&b, 1, 0);
    assert_int_equal(count_threads("dr-monitor"), 1);
    close_all(&a);
    assert_int_equal(count_threads("dr-monitor"), 1);
    take_until(&b, 1, 0);
    close_all(&b);
    assert_int_equal(count_threads("dr-"), 0);
    assert_int_equal(count_threads("drapps-"), 0);
}

static void a_given_monitor_sees_the_queues(void **state)
{
    (void)state;
    dr_monitor *monitor = NULL;
    dr_snapshot s = { 0 };
    assert_ok(dr_monitor_open(NULL, &monitor, &err));
    dr_loader_options o = standard();
    o.resource_monitor = monitor;
    fixture a = open_all(&o, N, 500), b = open_all(&o, N, 500);
    take(&a, 0);
    take(&b, 0);
    assert_ok(dr_monitor_latest(monitor, &s));
    assert_ok(dr_monitor_wait(monitor, s.number + 2, PATIENCE_S * 1000, &s));
    assert_true(s.present >> DR_SENSOR_FILL_BATCH & 1 && s.present >> DR_SENSOR_IN_FLIGHT & 1);
    close_all(&a);
    close_all(&b);
    assert_ok(dr_monitor_latest(monitor, &s));
    assert_ok(dr_monitor_wait(monitor, s.number + 2, PATIENCE_S * 1000, &s)); /* it is still the caller's */
    assert_false(s.present >> DR_SENSOR_FILL_BATCH & 1);
    dr_monitor_unref(&monitor);
}

#if DR_TEST_TSAN || defined(DR_TEST_EMULATED)
#define CHILD_STARTS_THREADS 0
#else
#define CHILD_STARTS_THREADS 1
#endif

/* The child must not use cmocka: its exit code says which step failed. */
static int child_work(fixture *f, dr_monitor *monitor)
{
    dr_decision d;
    dr_error e = { 0 };
    dr_batch *b = NULL;
    dr_loader *own = NULL;
    dr_loader_options o = standard();
    if (dr_loader_decisions(f->loader, 0, &d, 1) != 0 || dr_loader_next(f->loader, -1, &b, &e) != DR_ERR_FORKED)
        return 1;
    if (dr_loader_set(f->loader, "workers", 1, &e) != DR_ERR_FORKED)
        return 2;
    o.resource_monitor = monitor;
    if (dr_loader_open(f->set, f->graph, &o, &own, &e) != DR_ERR_FORKED)
        return 3;
    o.resource_monitor = NULL;
    o.workers = CHILD_STARTS_THREADS ? -1 : 0;
    if (dr_loader_open(f->set, f->graph, &o, &own, &e) != DR_OK)
        return 4;
    const uint64_t start = dr__now_ns();
    while (dr__now_ns() - start < 500000000) {
        if (dr_loader_next(own, 10000, &b, &e) != DR_OK)
            return 5;
        dr_batch_unref(&b);
    }
    if (CHILD_STARTS_THREADS && count_threads("dr-monitor") != 1)
        return 6;
    dr_loader_close(&own);
    dr_loader_close(&f->loader);
    return count_threads("dr-monitor") ? 7 : 0;
}

static void wait_until_idle(fixture *f)
{
    double flow[DR_N_FLOWS] = { 0 };
    do {
        usleep(10000);
        dr__exec_flow(&f->loader->exec, flow);
    } while (flow[DR_FLOW_ACTIVE] > 0 || flow[DR_FLOW_READY] < 1);
}

static void a_child_has_its_own(void **state)
{
    (void)state;
    dr_monitor *monitor = NULL;
    assert_ok(dr_monitor_open(NULL, &monitor, &err));
    dr_loader_options o = standard();
    fixture f = open_all(&o, N, 500);
    take_until(&f, 1, 0);
    wait_until_idle(&f); /* the allocators of sanitizers do not survive a fork while another thread is in them */
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(PATIENCE_S);
        _exit(child_work(&f, monitor));
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    take_until(&f, 1, 0);
    close_all(&f);
    dr_monitor_unref(&monitor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_consumer_that_sleeps_gets_workers_back),
        cmocka_unit_test(slow_reads_get_more_threads),
        cmocka_unit_test(pauses_are_told),
        cmocka_unit_test(what_the_user_set_stays),
        cmocka_unit_test(small_batches_become_fewer_in_order_alone),
        cmocka_unit_test(fixed_turns_nothing),
        cmocka_unit_test(between_epochs_nothing_is_decided),
        cmocka_unit_test(every_policy_gives_the_same_bytes),
        cmocka_unit_test(wrong_settings_are_named),
        cmocka_unit_test(the_environment_goes_first),
        cmocka_unit_test(weights_reach_the_decisions),
        cmocka_unit_test(threads_are_chosen_from_the_quota),
        cmocka_unit_test(a_limit_of_cpus_counts_from_the_beginning),
        cmocka_unit_test(loaders_share_a_monitor_and_leave_nothing),
        cmocka_unit_test(a_given_monitor_sees_the_queues),
        cmocka_unit_test(a_child_has_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
