/* Threads that come and go while samples are in flight, and whom they serve. */
#include "unit/loader/toy.h"

#include <dirent.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "exec/exec.h"
#include "unit/loader/gate.h"

enum { N = 400 };

static dr_error err;
static gate read_gate = OPEN_GATE;

static void set_knob(dr_loader *l, const char *knob, double value)
{
    assert_ok(dr_loader_set(l, knob, value, &err));
}

static void wait_at_read(uint64_t id)
{
    (void)id;
    pass_gate(&read_gate);
}

static int threads_now(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/task");
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

/* A thread that was joined may be seen for a moment. */
static int settled_threads(void)
{
    int n = threads_now();
    for (int i = 0; i < 20; i++, usleep(1000))
        n = DR_MIN(n, threads_now());
    return n;
}

static void wait_threads(int n)
{
    for (int i = 0; threads_now() != n; i++) {
        if (i > PATIENCE_MS)
            fail_msg("%d threads, wanted %d", threads_now(), n);
        usleep(1000);
    }
}

/* Every worker is held at a sample: a change returns all the same, and has its effect. */
static void nobody_is_waited_for(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = N, .on_read = wait_at_read });
    dr_graph *g = graph_of(NULL);
    dr_loader_options o = options_of(10, 1);
    tape first = epoch_of(set, g, &o); /* a sanitizer has a thread of its own from now on */
    tape_free(&first);
    const int before = settled_threads();
    o.prefetch = 8;
    dr_loader *l = open_loader(set, g, &o);
    set_gate(&read_gate, false);
    assert_ok(dr_loader_start(l, 0, &err));
    wait_inside(&read_gate, 1);
    const uint64_t asked = dr__now_ns();
    set_knob(l, "workers", 4);
    assert_int_equal(threads_now(), before + 4); /* they are there when the call returns */
    wait_inside(&read_gate, 4);
    assert_true(dr__now_ns() - asked < 2000000000u); /* aim: 100 ms; twenty times that, for a busy machine */
    set_knob(l, "workers", 1);
    set_knob(l, "workers", 3); /* those that have not left yet stay */
    assert_int_equal(threads_now(), before + 4);
    set_knob(l, "workers", 6);
    wait_inside(&read_gate, 6);
    assert_int_equal(threads_now(), before + 6);
    set_knob(l, "workers", 0);
    set_gate(&read_gate, true);
    wait_threads(before); /* they end by themselves */
    set_knob(l, "workers", 1);
    tape t = { 0 };
    finish_epoch(&t, &l, N);
    wait_threads(before);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* One to four to one in the middle of an epoch, in each kind of order: nothing is lost or repeated. */
static void one_four_one(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = N, .slow_every = 5, .slow_us = 300 });
    dr_graph *g = graph_of(NULL);
    for (int in_order = 0; in_order < 2; in_order++) {
        dr_loader_options o = options_of(8, 1);
        o.shuffle = true;
        o.in_order = in_order;
        tape t = { 0 };
        dr_loader *l = open_loader(set, g, &o);
        tape_read(&t, l, 10);
        set_knob(l, "workers", 4);
        tape_read(&t, l, 20);
        set_knob(l, "workers", 1);
        tape_read(&t, l, -1);
        assert_int_equal(t.n, N / 8);
        assert_each_once(&t, N);
        tape_free(&t);
        dr_loader_close(&l);
    }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* Each thread tells which sample it is at, workers and readers; nobody is at one when all is done. */
static void what_they_are_at(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = N, .on_read = wait_at_read });
    dr_graph *g = graph_of(NULL);
    for (int readers = 0; readers < 2; readers++) {
        dr_loader_options o = options_of(10, 2);
        dr_loader *l = open_loader(set, g, &o);
        set_knob(l, "readers", readers);
        set_gate(&read_gate, false);
        assert_ok(dr_loader_start(l, 0, &err));
        wait_inside(&read_gate, 2 + readers);
        char *text = NULL;
        assert_ok(dr_loader_running(l, &text, &err));
        json_t *rows = json_loads(text, 0, NULL);
        dr_text_free(&text);
        assert_int_equal(json_array_size(rows), 2 + readers);
        for (size_t i = 0; i < json_array_size(rows); i++) {
            const json_t *row = json_array_get(rows, i);
            char key[32];
            snprintf(key, sizeof key, "sample-%d", (int)json_integer_value(json_object_get(row, "id")));
            assert_string_equal(json_string_value(json_object_get(row, "key")), key);
            assert_true(json_integer_value(json_object_get(row, "id")) < 3);
            assert_true(json_integer_value(json_object_get(row, "worker")) != 0);
            assert_true(json_number_value(json_object_get(row, "seconds")) >= 0);
        }
        json_decref(rows);
        set_gate(&read_gate, true);
        tape t = { 0 };
        tape_read(&t, l, -1);
        assert_each_once(&t, N);
        tape_free(&t);
        for (int i = 0; i < PATIENCE_MS; i++, usleep(1000)) { /* who made the last one may still be leaving it */
            assert_ok(dr_loader_running(l, &text, &err));
            const bool none = !strcmp(text, "[]");
            dr_text_free(&text);
            if (none)
                break;
            assert_true(i + 1 < PATIENCE_MS);
        }
        dr_loader_close(&l);
    }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* --- priorities --- */

enum { READS = 100 };
static atomic_int counted[2], n_counted, nice_seen[2];

static void count(int loader)
{
    pass_gate(&read_gate);
    atomic_store(&nice_seen[loader], getpriority(PRIO_PROCESS, 0));
    if (atomic_fetch_add(&n_counted, 1) < READS)
        atomic_fetch_add(&counted[loader], 1);
}

static void count_first(uint64_t id)
{
    (void)id;
    count(0);
}

static void count_second(uint64_t id)
{
    (void)id;
    count(1);
}

/* Two loaders that both have work, with one thread for both: how many of the first reads each got. */
static void serve_two(int first, int second)
{
    enum { SAMPLES = 120, SIDE = 150 }; /* so large that each is a claim of its own */
    dr_dataset *sets[] = { toy_set(&(toy){ .n = SAMPLES, .h = SIDE, .w = SIDE, .on_read = count_first }),
                           toy_set(&(toy){ .n = SAMPLES, .h = SIDE, .w = SIDE, .on_read = count_second }) };
    dr_graph *g = graph_of(NULL);
    dr_loader_options o = options_of(10, 1);
    o.prefetch = 64;
    dr_loader *l[2];
    set_gate(&read_gate, false);
    atomic_store(&n_counted, 0);
    for (int i = 0; i < 2; i++) {
        atomic_store(&counted[i], 0);
        l[i] = open_loader(sets[i], g, &o);
        set_knob(l[i], "priority", i ? second : first);
        assert_ok(dr_loader_start(l[i], 0, &err));
    }
    wait_inside(&read_gate, (first < 0) == (second < 0) ? 1 : 2);
    set_gate(&read_gate, true);
    for (int i = 0; i < 2; i++) {
        tape t = { 0 };
        tape_read(&t, l[i], -1);
        assert_each_once(&t, SAMPLES);
        tape_free(&t);
    }
    for (int i = 0; i < 2; i++) {
        dr_loader_close(&l[i]);
        dr_dataset_unref(&sets[i]);
    }
    dr_graph_free(&g);
}

/* Whose priority is higher is served four times as often. */
static void first_is_served_first(void **state)
{
    (void)state;
    serve_two(1, 0);
    assert_in_range(atomic_load(&counted[0]), 79, 84); /* until the second is started, all are the first's */
    serve_two(0, 1);
    assert_in_range(atomic_load(&counted[0]), 19, 21);
    serve_two(0, 0);
    assert_in_range(atomic_load(&counted[0]), 49, 51);
}

/* Threads of a loader that is to come last stand back; those of the others do not, also after it has changed. */
static void last_stands_back(void **state)
{
    (void)state;
    const int own = getpriority(PRIO_PROCESS, 0);
    serve_two(-1, 0);
    assert_int_equal(atomic_load(&nice_seen[0]), 19);
    assert_int_equal(atomic_load(&nice_seen[1]), own);
    serve_two(1, -1);
    assert_int_equal(atomic_load(&nice_seen[0]), own);
    assert_int_equal(atomic_load(&nice_seen[1]), 19);
}

/* There is no way back for a thread that stands back without privilege: the loader gets others. */
static void priority_changes_in_an_epoch(void **state)
{
    (void)state;
    static const int turns[] = { -1, 0, -1, 1, 0, -1, -1, 1 };
    const int own = getpriority(PRIO_PROCESS, 0);
    dr_dataset *set = toy_set(&(toy){ .n = N, .on_read = count_first, .slow_every = 3, .slow_us = 200 });
    dr_graph *g = graph_of(NULL);
    for (int readers = 0; readers < 3; readers += 2) {
        dr_loader_options o = options_of(10, 2);
        dr_loader *l = open_loader(set, g, &o);
        tape t = { 0 };
        set_knob(l, "readers", readers);
        for (int i = 0; i < 8; i++) {
            tape_read(&t, l, 4);
            set_knob(l, "priority", turns[i]);
        }
        set_knob(l, "priority", 0);
        tape_read(&t, l, 4); /* two are in flight, those after them are begun by others */
        assert_int_equal(atomic_load(&nice_seen[0]), own);
        finish_epoch(&t, &l, N);
    }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_is_waited_for),         cmocka_unit_test(one_four_one),
        cmocka_unit_test(first_is_served_first),        cmocka_unit_test(last_stands_back),
        cmocka_unit_test(priority_changes_in_an_epoch), cmocka_unit_test(what_they_are_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
