/* Fetchers: they read ahead of the workers, within bounds, and what comes out is what came out without them. */
#include "unit/loader/toy.h"

#include <unistd.h>

#include <jansson.h>

#include "kernel/cpu.h"
#include "loader/loader_internal.h"
#include "unit/loader/gate.h"

enum { N = 60 };

static dr_error err;
static gate read_gate = OPEN_GATE;
static gate kernel_gate = OPEN_GATE;
static const char crops[] = "{\"op\":\"random_crop\",\"params\":{\"size\":[5,4]}},{\"op\":\"grayscale\"}";

static void set_knob(dr_loader *l, const char *knob, double value)
{
    assert_ok(dr_loader_set(l, knob, value, &err));
}

static void wait_at_read(uint64_t id)
{
    (void)id;
    pass_gate(&read_gate);
}

/* As many reads at a time as there are readers; who works, here the caller, begins none meanwhile. */
static void they_read_at_the_same_time(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = N, .on_read = wait_at_read });
    dr_graph *g = graph_of(NULL);
    dr_loader_options o = options_of(5, 0);
    dr_loader *l = open_loader(set, g, &o);
    dr_batch *b = NULL;
    set_gate(&read_gate, false);
    set_knob(l, "readers", 5);
    assert_ok(dr_loader_start(l, 0, &err));
    wait_inside(&read_gate, 5);
    assert_int_equal(dr_loader_next(l, 20, &b, &err), DR_AGAIN);
    assert_int_equal(inside(&read_gate), 5);
    set_knob(l, "readers", 1); /* waits for nobody */
    set_gate(&read_gate, true);
    tape t = { 0 };
    finish_epoch(&t, &l, N);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static dr__kernels kernels;
static void (*plain_rgb_to_l)(uint8_t *dst, const uint8_t *src, size_t n);

static void gated_rgb_to_l(uint8_t *dst, const uint8_t *src, size_t n)
{
    pass_gate(&kernel_gate);
    plain_rgb_to_l(dst, src, n);
}

static dr__read_ahead fetch_of(dr_loader *l)
{
    dr__pool_lock();
    const dr__read_ahead f = l->exec.read_ahead;
    dr__pool_unlock();
    return f;
}

/* The worker is held at a sample: some more are read, and then no more; nothing is read twice. */
static void they_stop_when_enough_is_there(void **state)
{
    (void)state;
    enum { WORKERS = 2, READERS = 3, PER_WORKER = 4 };
    dr_dataset *set = toy_set(&(toy){ .n = N });
    dr_graph *g = graph_of(crops);
    dr_loader_options o = options_of(10, WORKERS);
    o.prefetch = 6;
    o.outputs = "image";
    dr_loader *l = open_loader(set, g, &o);
    dr__kernels_fill(&kernels, DR__CPU_C);
    plain_rgb_to_l = kernels.rgb_to_l;
    kernels.rgb_to_l = gated_rgb_to_l;
    l->exec.program->kernels = &kernels;
    const uint64_t before = toy_reads();
    set_gate(&kernel_gate, false);
    set_knob(l, "readers", READERS);
    assert_ok(dr_loader_start(l, 0, &err));
    wait_inside(&kernel_gate, WORKERS);
    for (int i = 0; fetch_of(l).n < PER_WORKER * WORKERS && i < PATIENCE_MS; i++)
        usleep(1000);
    for (int i = 0; fetch_of(l).active && i < PATIENCE_MS; i++)
        usleep(1000);
    const dr__read_ahead f = fetch_of(l);
    assert_int_equal(f.active, 0);
    assert_in_range(f.n, PER_WORKER * WORKERS, PER_WORKER * WORKERS + READERS - 1);
    uint64_t last = 0;
    for (const dr__parked *p = f.head; p; last = p->job.local, p = p->next)
        assert_true(p == f.head || p->job.local > last);
    assert_int_equal(toy_reads() - before, (uint64_t)f.n + WORKERS);
    set_gate(&kernel_gate, true);
    tape t = { 0 };
    tape_read(&t, l, -1);
    assert_each_once(&t, N);
    assert_int_equal(toy_reads() - before, N);
    tape_free(&t);
    dr_loader_close(&l);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void push_all(dr_loader *l)
{
    uint64_t ids[N];
    assert_ok(dr_loader_start(l, 0, &err));
    for (uint64_t at = 0, n; at < N; at += n) {
        n = DR_MIN(at % 7 + 1, N - at);
        for (uint64_t i = 0; i < n; i++)
            ids[i] = N - 1 - at - i;
        assert_ok(dr_loader_push(l, ids, n, &err));
    }
    assert_ok(dr_loader_push_end(l, &err));
}

static tape run(dr_dataset *set, const dr_loader_options *o, int readers, bool all_slow)
{
    tape t = { 0 };
    dr_graph *g = graph_of(crops);
    dr_loader *l = open_loader(set, g, o);
    set_knob(l, "readers", readers);
    if (all_slow)
        atomic_store(&l->exec.lanes.predict.slow_units, 0);
    if (o->pushed_order)
        push_all(l);
    tape_read(&t, l, -1);
    dr_loader_close(&l);
    dr_graph_free(&g);
    return t;
}

/* Which positions were left out or replaced, by name, in the order in which they were told of. */
static size_t count_bad(const tape *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++) {
        json_t *rows = json_loads(t->batches[i].bad, 0, NULL);
        n += json_array_size(rows);
        json_decref(rows);
    }
    return n;
}

static uint64_t samples_of(const tape *t)
{
    uint64_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        n += t->batches[i].n;
    return n;
}

static void the_bytes_are_the_same(void **state)
{
    (void)state;
    static const int readers[] = { 1, 4, 64 };
    dr_dataset *set = toy_set(&(toy){ .n = N, .bad_every = 9, .bad_at = 4, .slow_every = 7, .slow_us = 200 });
    for (int way = 0; way < 48; way++) {
        dr_loader_options o = options_of(5, way % 2 ? way % 3 : 3);
        o.in_order = way / 2 % 2;
        o.pushed_order = way / 4 % 2;
        o.keep_batches = o.pushed_order && way / 8 % 2;
        o.shuffle = !o.pushed_order;
        o.on_bad_sample = way / 16 % 2 ? DR_BAD_SKIP : DR_BAD_REPLACE;
        tape want = run(set, &o, 0, false), got = run(set, &o, readers[way % 3], way / 32);
        assert_int_equal(samples_of(&want), samples_of(&got));
        assert_int_equal(count_bad(&want), count_bad(&got));
        if (o.in_order)
            assert_same_tape(&want, &got, "with readers");
        if (o.on_bad_sample == DR_BAD_REPLACE)
            assert_each_once(&got, N);
        tape_free(&want);
        tape_free(&got);
    }
    dr_dataset_unref(&set);
}

/* A worker reads what a reader could not, and the slow lane has to take these bytes, not what lay there before. */
static void what_was_fetched_in_vain_may_be_slow(void **state)
{
    (void)state;
    dr_dataset *plain = toy_set(&(toy){ .n = N }), *set = toy_set(&(toy){ .n = N, .fails_readers = true });
    for (int way = 0; way < 8; way++) {
        dr_loader_options o = options_of(5, 2 + way % 3);
        tape want = run(plain, &o, 0, false), got = run(set, &o, 1 + way, true);
        assert_same_tape(&want, &got, "with readers that cannot read");
        tape_free(&want);
        tape_free(&got);
    }
    dr_dataset_unref(&plain);
    dr_dataset_unref(&set);
}

static void errors_are_the_same(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = N, .bad_every = 50, .bad_at = 23 });
    dr_graph *g = graph_of(crops);
    for (int in_order = 0; in_order < 2; in_order++) {
        dr_loader_options o = options_of(5, 2);
        o.in_order = in_order;
        dr_loader *l = open_loader(set, g, &o);
        set_knob(l, "readers", 3);
        dr_status status = DR_OK;
        for (dr_batch *b = NULL; status == DR_OK; dr_batch_unref(&b))
            status = dr_loader_next(l, -1, &b, &err);
        assert_int_equal(status, DR_ERR_FORMAT);
        assert_non_null(strstr(err.text, "sample-23"));
        dr_loader_close(&l);
    }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* Out of order, an epoch that is gone on with: samples that were delivered before are passed over by readers, too. */
static void they_pass_over_what_was_delivered(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = N, .slow_every = 5, .slow_us = 500 });
    dr_graph *g = graph_of(crops);
    dr_loader_options o = options_of(4, 2);
    o.in_order = false;
    o.prefetch = 4;
    for (int taken = 0; taken < 12; taken += 3) {
        tape t = { 0 };
        char *text = NULL;
        dr_loader *l = open_loader(set, g, &o);
        set_knob(l, "readers", 2);
        tape_read(&t, l, taken);
        assert_ok(dr_loader_state(l, &text, &err));
        dr_loader_close(&l);
        l = open_loader(set, g, &o);
        set_knob(l, "readers", 3);
        assert_ok(dr_loader_restore(l, text, &err));
        tape_read(&t, l, -1);
        assert_each_once(&t, N);
        dr_text_free(&text);
        dr_loader_close(&l);
        tape_free(&t);
    }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* Where there is no room, workers read. */
static void they_keep_to_the_budget(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = N });
    dr_graph *g = graph_of(NULL);
    for (uint64_t limit = 2000; limit <= 2000000; limit *= 10) {
        dr_loader_options o = options_of(4, 2);
        o.memory_limit = limit;
        dr_loader *l = open_loader(set, g, &o);
        l->exec.budget.bench_bytes = 1 << 20;
        set_knob(l, "readers", 8);
        tape t = { 0 };
        for (int i = 0; i < N / 4; i++) {
            tape_read(&t, l, 1);
            dr__pool_lock();
            const size_t bytes = l->exec.lanes.bytes;
            dr__pool_unlock();
            assert_true(bytes <= limit / 2 / 4);
        }
        finish_epoch(&t, &l, N);
    }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* A large record that a worker leaves behind does not take their room: it would do so until the epoch ends. */
static void large_spare_memory_is_let_go(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = N });
    dr_graph *g = graph_of(NULL);
    dr_loader_options o = options_of(4, 2);
    o.memory_limit = 2 * 8 * 80000;
    dr_loader *l = open_loader(set, g, &o);
    dr__workbench *bench = dr__workbench_new();
    assert_ok(
        dr__record_reset(&bench->record, 100000, &err)); /* more than a reader's, less than all that is set aside */
    dr__pool_lock();
    dr__parked *p = dr__lane_get_entry(&l->exec.lanes);
    dr__pool_unlock();
    dr__lane_unpark(&l->exec, p, bench);
    dr__pool_lock();
    assert_true(l->exec.lanes.bytes <= 80000);
    dr__pool_unlock();
    dr__workbench_free(&bench);
    dr_loader_close(&l);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* After a sample that is too large to be set aside, others are fetched again. */
static void one_large_sample_is_forgotten(void **state)
{
    (void)state;
    dr_dataset *set =
        toy_set(&(toy){ .n = 1000, .large_from = 5, .large_to = 6, .large = 40, .slow_every = 1, .slow_us = 20 });
    dr_graph *g = graph_of("{\"op\":\"center_crop\",\"params\":{\"size\":[8,6]}}");
    dr_loader_options o = options_of(4, 1);
    o.outputs = "image";
    o.memory_limit = 2 * 8 * 60000; /* the large one has 230400 bytes, the others some thousands */
    o.lanes = false;
    dr_loader *l = open_loader(set, g, &o);
    l->exec.budget.bench_bytes = 1 << 20;
    set_knob(l, "readers", 2);
    dr__pool_lock();
    l->exec.read_ahead.largest = 230400; /* as if a reader had met it */
    dr__pool_unlock();
    for (uint64_t epoch = 0; epoch < 100 && fetch_of(l).largest >= 230400; epoch++) {
        tape t = { 0 };
        assert_ok(dr_loader_start(l, epoch, &err));
        tape_read(&t, l, -1);
        assert_each_once(&t, 1000);
        tape_free(&t);
    }
    assert_true(fetch_of(l).largest < 230400);
    dr_loader_close(&l);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* Given up in the middle, cancelled, closed, with readers at work; nothing hangs, and the next epoch is whole. */
static void epochs_given_up(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = N, .slow_every = 2, .slow_us = 300 });
    dr_graph *g = graph_of(NULL);
    for (int round = 0; round < 12; round++) {
        dr_loader_options o = options_of(5, round % 4);
        o.in_order = round % 2;
        dr_loader *l = open_loader(set, g, &o);
        set_knob(l, "readers", 1 + round % 5);
        for (uint64_t epoch = 0; epoch < 4; epoch++) {
            tape t = { 0 };
            assert_ok(dr_loader_start(l, epoch, &err));
            tape_read(&t, l, round % 5);
            if (epoch == 1)
                dr_loader_cancel(l);
            tape_free(&t);
        }
        if (round % 3) {
            tape t = { 0 };
            assert_ok(dr_loader_start(l, 9, &err));
            tape_read(&t, l, -1);
            assert_each_once(&t, N);
            tape_free(&t);
        }
        dr_loader_close(&l);
    }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* What is in the cache is found there by readers: no sample is read from its file. */
static void found_in_the_cache(void **state)
{
    (void)state;
    enum { IMAGES = 12 };
    char folder[64], root[] = "/tmp/drapps-fetch-XXXXXX", command[128];
    assert_non_null(mkdtemp(root));
    dr_dataset *set = jpeg_set(folder, IMAGES);
    dr_graph *g = graph_of("{\"op\":\"decode\"},{\"op\":\"resize\",\"params\":{\"size\":[24,20]}},"
                           "{\"op\":\"random_horizontal_flip\"}");
    dr_loader_options o = options_of(4, 2);
    o.outputs = "image";
    o.seek_index = "off";
    tape want = epoch_of(set, g, &o);
    o.cache = root;
    dr_loader *l = open_loader(set, g, &o);
    set_knob(l, "readers", 3);
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        tape got = { 0 };
        assert_ok(dr_loader_start(l, 0, &err));
        tape_read(&got, l, -1);
        assert_same_tape(&want, &got, "cache and readers");
        tape_free(&got);
    }
    char *text = NULL;
    assert_ok(dr_loader_stats(l, &text, &err));
    json_t *stats = json_loads(text, 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(stats, "cache_written")), IMAGES);
    assert_int_equal(json_integer_value(json_object_get(stats, "cache_hits")), IMAGES);
    json_decref(stats);
    dr_text_free(&text);
    dr_loader_close(&l);
    tape_free(&want);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
    remove_folder(folder);
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_read_at_the_same_time),
        cmocka_unit_test(they_stop_when_enough_is_there),
        cmocka_unit_test(the_bytes_are_the_same),
        cmocka_unit_test(what_was_fetched_in_vain_may_be_slow),
        cmocka_unit_test(errors_are_the_same),
        cmocka_unit_test(they_pass_over_what_was_delivered),
        cmocka_unit_test(they_keep_to_the_budget),
        cmocka_unit_test(large_spare_memory_is_let_go),
        cmocka_unit_test(one_large_sample_is_forgotten),
        cmocka_unit_test(epochs_given_up),
        cmocka_unit_test(found_in_the_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
