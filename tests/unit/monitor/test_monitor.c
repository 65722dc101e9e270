/* The monitor itself: its thread, history, callbacks, own use; on this machine, without times as pass marks. */
#include "unit/cm.h"

#include <jansson.h>
#include <math.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "monitor/pipeline_facts.h"
#include "monitor/sampler.h"

enum { PATIENCE_MS = 20000 };

static dr_error err;

static dr_monitor *open_monitor(int interval_ms, int history)
{
    dr_monitor_options o;
    dr_monitor *m;
    dr_monitor_defaults(&o);
    o.interval_ms = interval_ms;
    o.history = history;
    assert_ok(dr_monitor_open(&o, &m, &err));
    return m;
}

static void defaults_and_bounds(void **state)
{
    (void)state;
    dr_monitor_options o;
    dr_monitor *m;
    dr_monitor_defaults(&o);
    assert_int_equal(o.interval_ms, 100);
    o.interval_ms = 9;
    assert_fails(dr_monitor_open(&o, &m, &err), DR_ERR_ARG, "interval_ms must be 10 to 1000, got 9");
    assert_null(m);
    o.interval_ms = 1001;
    assert_fails(dr_monitor_open(&o, &m, &err), DR_ERR_ARG, "1001");
    o.interval_ms = 100;
    o.history = 0;
    assert_fails(dr_monitor_open(&o, &m, &err), DR_ERR_ARG, "history must be 1 to 100000, got 0");
    o.history = 1;
    o.root = NULL;
    assert_fails(dr_monitor_open(&o, &m, &err), DR_ERR_ARG, "root");
    o.size = 1;
    assert_fails(dr_monitor_open(&o, &m, &err), DR_ERR_ARG, "size");
    dr_monitor_unref(&m);
}

/* Who begins one does not wait for its first snapshot; who reads does. */
static void begun_meanwhile(void **state)
{
    (void)state;
    dr_monitor *m;
    dr_snapshot s;
    for (int i = 0; i < 20; i++) {
        assert_ok(dr__monitor_begin(NULL, &m, &err));
        assert_ok(dr_monitor_watch(m, getpid(), &err));
        if (i % 2) {
            assert_ok(dr_monitor_latest(m, &s));
            assert_true(s.number >= 1 && s.present >> DR_SENSOR_MEM_USED & 1);
        }
        if (i % 3 == 0)
            dr_monitor_close(m);
        dr_monitor_unref(&m); /* perhaps while the probes are being opened */
    }
}

static void table_as_json(void **state)
{
    (void)state;
    json_t *list = json_loads(dr_sensors_json(), 0, NULL);
    assert_int_equal(json_array_size(list), DR_N_SENSORS);
    for (int i = 0; i < DR_N_SENSORS; i++) {
        json_t *row = json_array_get(list, (size_t)i);
        assert_string_equal(json_string_value(json_object_get(row, "name")), dr_sensor_name(i));
        assert_true(*json_string_value(json_object_get(row, "doc")) &&
                    *json_string_value(json_object_get(row, "full")));
    }
    assert_null(dr_sensor_name(-1));
    assert_null(dr_sensor_name(DR_N_SENSORS));
    json_decref(list);
}

static void snapshots_follow_each_other(void **state)
{
    (void)state;
    dr_monitor *m = open_monitor(10, 4);
    dr_snapshot s, last[8];
    uint64_t before_ns = 0;
    assert_ok(dr_monitor_latest(m, &s));
    for (uint64_t n = 0; n < 10; n = s.number) {
        assert_ok(dr_monitor_wait(m, n, PATIENCE_MS, &s));
        assert_true(s.number > n && s.time_ns > before_ns);
        before_ns = s.time_ns;
    }
    dr_monitor_close(m);
    size_t n = dr_monitor_history(m, 0, last, 8);
    assert_int_equal(n, 4);
    for (size_t i = 1; i < n; i++)
        assert_int_equal(last[i].number, last[i - 1].number + 1);
    uint64_t newest = last[3].number;
    assert_int_equal(dr_monitor_history(m, 0, last, 2), 2);
    assert_int_equal(last[1].number, newest);
    assert_int_equal(dr_monitor_history(m, newest - 1, last, 8), 1);
    assert_int_equal(dr_monitor_history(m, newest, last, 8), 0);
    assert_int_equal(dr_monitor_history(m, 0, last, 0), 0);
    assert_int_equal(dr_monitor_wait(m, newest, PATIENCE_MS, &s), DR_END);
    dr_monitor_unref(&m);
    assert_null(m);
}

static void interval_can_change(void **state)
{
    (void)state;
    dr_monitor *m = open_monitor(1000, 100);
    dr_snapshot s;
    assert_int_equal(dr_monitor_wait(m, 1, 0, &s), DR_AGAIN);
    assert_ok(dr_monitor_set_interval(m, 10, &err));
    assert_int_equal(dr_monitor_interval(m), 10);
    assert_ok(dr_monitor_wait(m, 5, PATIENCE_MS, &s));
    assert_fails(dr_monitor_set_interval(m, 5, &err), DR_ERR_ARG, "5");
    dr_monitor_unref(&m);
}

/* --- callbacks --- */

struct listener {
    dr_monitor *monitor;
    atomic_int calls;
    int token;
    bool leave; /* at the first call */
};

static void listen(void *user, const dr_snapshot *s)
{
    struct listener *l = user;
    assert_true(s->number > 1);
    atomic_fetch_add(&l->calls, 1);
    if (l->leave)
        dr_monitor_unsubscribe(l->monitor, l->token);
}

static void wait_ticks(dr_monitor *m, uint64_t n)
{
    dr_snapshot s;
    assert_ok(dr_monitor_latest(m, &s));
    assert_ok(dr_monitor_wait(m, s.number + n, PATIENCE_MS, &s));
}

static void subscribers_are_called_until_they_leave(void **state)
{
    (void)state;
    dr_monitor *m = open_monitor(10, 10);
    struct listener stays = { m }, leaves = { m, .leave = true };
    dr_monitor_close(m); /* a closed one takes them, but calls nobody */
    assert_ok(dr_monitor_subscribe(m, listen, &stays, &stays.token, &err));
    dr_monitor_unref(&m);
    m = open_monitor(200, 10); /* time to note the token before the first call */
    stays.monitor = leaves.monitor = m;
    assert_ok(dr_monitor_subscribe(m, listen, &leaves, &leaves.token, &err));
    assert_ok(dr_monitor_subscribe(m, listen, &stays, &stays.token, &err));
    dr_monitor_set_interval(m, 10, NULL);
    wait_ticks(m, 5);
    dr_monitor_unsubscribe(m, stays.token);
    int calls = atomic_load(&stays.calls);
    assert_true(calls >= 4);
    assert_int_equal(atomic_load(&leaves.calls), 1);
    wait_ticks(m, 3);
    assert_int_equal(atomic_load(&stays.calls), calls);
    dr_monitor_unref(&m);
}

static void no_more_than_64_subscribers(void **state)
{
    (void)state;
    dr_monitor *m = open_monitor(1000, 1);
    struct listener l = { m };
    for (int i = 0; i < DR__MAX_HOOKS; i++)
        assert_ok(dr_monitor_subscribe(m, listen, &l, &l.token, &err));
    int token;
    assert_fails(dr_monitor_subscribe(m, listen, &l, &token, &err), DR_ERR_LIMIT, "64");
    dr_monitor_unsubscribe(m, l.token);
    assert_ok(dr_monitor_subscribe(m, listen, &l, &token, &err));
    dr_monitor_unref(&m);
}

static void fill_known(void *user, dr__pipeline_facts *f)
{
    assert_true(isnan(f->consumer_wait));
    for (int i = 0; i < DR__N_STAGES; i++) {
        f->queue_fill[i] = *(double *)user;
        f->service_ns[i] = 2e6 * (i + 1);
    }
    f->demand_ns = 20e6;
    f->batch_latency_ns = 5e7;
    f->consumer_wait = 0.125;
    f->in_flight_bytes = 3e6;
    f->in_flight_limit = 6e6;
}

static void fill_little(void *user, dr__pipeline_facts *f)
{
    f->queue_fill[DR__STAGE_BATCH] = *(double *)user;
    f->in_flight_bytes = 1e6;
    f->in_flight_limit = 2e6;
}

static void pipelines_tell_their_facts(void **state)
{
    (void)state;
    dr_monitor *m = open_monitor(10, 100);
    double high = 1, low = 0.5;
    int a, b;
    dr_snapshot s;
    assert_ok(dr__monitor_add_pipeline(m, fill_known, &high, &a, &err));
    assert_ok(dr__monitor_add_pipeline(m, fill_little, &low, &b, &err));
    wait_ticks(m, 2);
    assert_ok(dr_monitor_latest(m, &s));
    assert_true(s.level[DR_SENSOR_FILL_BATCH] == 0.75 && s.level[DR_SENSOR_FILL_SLOW] == 1);
    assert_true(fabs(s.level[DR_SENSOR_SERVICE_DECODE] - 0.2) < 1e-9);
    assert_true(fabs(s.value[DR_SENSOR_SERVICE_SLOW] - 0.01) < 1e-9);
    assert_true(s.level[DR_SENSOR_CONSUMER_WAIT] == 0.125);
    assert_true(s.value[DR_SENSOR_IN_FLIGHT] == 4e6 && s.level[DR_SENSOR_IN_FLIGHT] == 0.5);
    assert_false(dr__is_present(&s, DR_SENSOR_CACHE_HITS));
    dr__monitor_remove_pipeline(m, a);
    dr__monitor_remove_pipeline(m, b);
    wait_ticks(m, 2);
    assert_ok(dr_monitor_latest(m, &s));
    assert_false(dr__is_present(&s, DR_SENSOR_FILL_BATCH));
    dr_monitor_unref(&m);
}

/* --- this machine --- */

static _Thread_local volatile unsigned sink;

static void spin_ms(int ms)
{
    for (uint64_t end = dr__clock_ns(CLOCK_THREAD_CPUTIME_ID) + (uint64_t)ms * 1000000u;
         dr__clock_ns(CLOCK_THREAD_CPUTIME_ID) < end;)
        for (int i = 0; i < 1000; i++)
            sink += (unsigned)i;
}

/* CPU seconds that were own, over ticks of a handed-in clock. */
static double own_after(dr__sampler *s, void (*work)(int), int ms)
{
    static uint64_t now_ns = 1000000000u;
    dr_snapshot snapshot;
    dr__sampler_tick(s, now_ns += 1000000000u, &snapshot);
    if (work)
        work(ms);
    dr__sampler_tick(s, now_ns += 1000000000u, &snapshot);
    assert_true(dr__is_present(&snapshot, DR_SENSOR_CPU_OWN));
    return snapshot.value[DR_SENSOR_CPU_OWN];
}

static void own_work_is_own(void **state)
{
    (void)state;
    dr__sampler s;
    assert_ok(dr__sampler_open(&s, "", &err));
    double idle = own_after(&s, NULL, 0), busy = own_after(&s, spin_ms, 300);
    assert_true(busy >= 0.3 && idle < busy);
    dr__sampler_close(&s);
}

static pthread_barrier_t spun, seen;

static void *spin_and_stay(void *arg)
{
    (void)arg;
    spin_ms(50);
    pthread_barrier_wait(&spun);
    pthread_barrier_wait(&seen);
    return NULL;
}

/* Three threads that compute alike are three; one of drapps does not count. */
static void threads_that_compute_are_counted(void **state)
{
    (void)state;
    dr__sampler s;
    dr_snapshot snapshot;
    pthread_t threads[4];
    assert_ok(dr__sampler_open(&s, "", &err));
    dr__sampler_tick(&s, 1000000000u, &snapshot);
    pthread_barrier_init(&spun, NULL, 5);
    pthread_barrier_init(&seen, NULL, 5);
    for (int i = 0; i < 4; i++)
        assert_true(dr__thread_start(&threads[i], i ? "network" : "drapps-worker", spin_and_stay, NULL));
    pthread_barrier_wait(&spun);
    dr__sampler_tick(&s, 11000000000u, &snapshot);
    pthread_barrier_wait(&seen);
    assert_true(dr__is_present(&snapshot, DR_SENSOR_OWN_THREADS));
    if (fabs(snapshot.value[DR_SENSOR_OWN_THREADS] - 3) > 0.3)
        fail_msg("%g threads, 3 computed", snapshot.value[DR_SENSOR_OWN_THREADS]);
    dr__sampler_tick(&s, 111000000000u, &snapshot); /* nobody since */
    assert_false(dr__is_present(&snapshot, DR_SENSOR_OWN_THREADS));
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&spun);
    pthread_barrier_destroy(&seen);
    dr__sampler_close(&s);
}

/* A child works until the pipe closes or it has used 300 ms, then says so and waits. */
static pid_t start_worker(int *ready, int *hold)
{
    int to_us[2], to_it[2];
    assert_int_equal(pipe(to_us), 0);
    assert_int_equal(pipe(to_it), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char c;
        close(to_it[1]);
        if (read(to_it[0], &c, 1) == 1)
            spin_ms(300);
        if (write(to_us[1], "x", 1) == 1 && read(to_it[0], &c, 1) == 1)
            _exit(1);
        _exit(0);
    }
    close(to_it[0]);
    close(to_us[1]);
    *ready = to_us[0];
    *hold = to_it[1];
    return pid;
}

static int worker_ready, worker_hold;

static void let_worker_work(int ms)
{
    char c;
    (void)ms;
    assert_int_equal(write(worker_hold, "x", 1), 1);
    assert_int_equal(read(worker_ready, &c, 1), 1);
}

static void watched_processes_are_own(void **state)
{
    (void)state;
    dr__sampler s;
    pid_t pid = start_worker(&worker_ready, &worker_hold);
    assert_ok(dr__sampler_open(&s, "", &err));
    assert_int_equal(dr__own_cpu_watch(&s.host.own, pid), DR__WATCHED);
    assert_int_equal(dr__own_cpu_watch(&s.host.own, pid), DR__WATCHED);
    assert_int_equal(s.host.own.n_watched, 1);
    assert_true(own_after(&s, let_worker_work, 0) >= 0.3);
    close(worker_hold);
    waitpid(pid, NULL, 0);
    own_after(&s, NULL, 0);
    assert_int_equal(s.host.own.n_watched, 0); /* forgotten */
    assert_int_equal(dr__own_cpu_watch(&s.host.own, -1), DR__WATCH_GONE);
    dr__sampler_close(&s);
    close(worker_ready);
}

static void ticks_allocate_nothing(void **state)
{
    (void)state;
    dr_monitor *m = open_monitor(10, 50);
    dr_snapshot s;
    wait_ticks(m, 1);
    dr__alloc_fail_at(0, false);
    wait_ticks(m, 20);
    assert_ok(dr_monitor_latest(m, &s));
    assert_int_equal(dr__alloc_fail_at(0, false), 0);
    dr_monitor_unref(&m);
}

/* Ten seconds apart: probes that look seldom look each time. */
static void seldom_probes_allocate_nothing(void **state)
{
    (void)state;
    dr__sampler s;
    dr_snapshot snapshot;
    assert_ok(dr__sampler_open(&s, "", &err));
    dr__alloc_fail_at(0, false);
    for (uint64_t i = 1; i <= 5; i++)
        dr__sampler_tick(&s, i * 10000000000u, &snapshot);
    assert_int_equal(dr__alloc_fail_at(0, false), 0);
    dr__sampler_close(&s);
}

static void failing_allocations_are_survived(void **state)
{
    (void)state;
    dr_status status = DR_ERR_NOMEM;
    for (int n = 1; status != DR_OK && n < 100; n++) {
        dr_monitor *m;
        dr__alloc_fail_at(n, false);
        status = dr_monitor_open(NULL, &m, &err);
        dr__alloc_fail_at(0, false);
        assert_true(status == DR_OK || (status == DR_ERR_NOMEM && !m));
        dr_monitor_unref(&m);
    }
    assert_int_equal(status, DR_OK);
}

/* 10 ms, several threads at the same monitor: for the sanitizers. */
static void *read_much(void *arg)
{
    dr_snapshot s, some[4];
    struct listener l = { arg };
    for (int i = 0; i < 20; i++) {
        dr_monitor *m = dr_monitor_ref(arg);
        if (dr_monitor_subscribe(m, listen, &l, &l.token, NULL) == DR_OK) {
            dr_monitor_wait(m, (uint64_t)i, 100, &s);
            dr_monitor_history(m, 0, some, 4);
            dr_monitor_unsubscribe(m, l.token);
        }
        dr_monitor_unref(&m);
    }
    return NULL;
}

static void many_threads(void **state)
{
    (void)state;
    dr_monitor *m = open_monitor(10, 8);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_much, m), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    dr_monitor_unref(&m);
}

static void a_forked_child_is_told(void **state)
{
    (void)state;
    dr_monitor *m = open_monitor(10, 8);
    pid_t pid = fork();
    if (pid == 0) {
        dr_snapshot s;
        int token;
        bool told = dr_monitor_latest(m, &s) == DR_ERR_FORKED && dr_monitor_history(m, 0, &s, 1) == 0 &&
                    dr_monitor_subscribe(m, listen, NULL, &token, &err) == DR_ERR_FORKED;
        dr_monitor_unref(&m);
        _exit(told ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    dr_monitor_unref(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_and_bounds),
        cmocka_unit_test(begun_meanwhile),
        cmocka_unit_test(table_as_json),
        cmocka_unit_test(snapshots_follow_each_other),
        cmocka_unit_test(interval_can_change),
        cmocka_unit_test(subscribers_are_called_until_they_leave),
        cmocka_unit_test(no_more_than_64_subscribers),
        cmocka_unit_test(pipelines_tell_their_facts),
        cmocka_unit_test(own_work_is_own),
        cmocka_unit_test(threads_that_compute_are_counted),
        cmocka_unit_test(watched_processes_are_own),
        cmocka_unit_test(ticks_allocate_nothing),
        cmocka_unit_test(seldom_probes_allocate_nothing),
        cmocka_unit_test(failing_allocations_are_survived),
        cmocka_unit_test(many_threads),
        cmocka_unit_test(a_forked_child_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
