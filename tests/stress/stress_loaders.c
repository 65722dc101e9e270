/* Loaders that come and go: several at once share the pool, each with several consumers, and are read in part, turned,
 * cancelled, started anew, saved and closed, with stalls at awkward moments.  Meant for the sanitizers.
 *
 * Some loaders draw their own order, to others it is pushed; to some every sample is a slow one.
 *
 *   stress_loaders [CYCLES [SEED]]
 */
#include "unit/cm.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "loader/loader_internal.h"
#include "unit/loader/random_graph.h"
#include "unit/loader/toy.h"

enum { LOADERS = 3, CONSUMERS = 3, SAMPLES = 120 };

static long n_cycles = 200;
static uint64_t x = 1; /* of the dice; the main thread's */
static dr_error err;

typedef struct station {
    dr_loader *loader;
    atomic_int budget;          /* batches that its consumers may still take */
    atomic_uchar seen[SAMPLES]; /* times each position came */
    pthread_t threads[CONSUMERS];
    atomic_int failures;
} station;

static void *consume(void *arg)
{
    station *s = arg;
    while (atomic_fetch_sub(&s->budget, 1) > 0) {
        dr_batch *b = NULL;
        dr_error e = { 0 };
        dr_status status;
        while ((status = dr_loader_next(s->loader, 1, &b, &e)) == DR_AGAIN)
            ;
        if (status == DR_END || status == DR_ERR_CANCELLED)
            return NULL;
        if (status != DR_OK) {
            atomic_fetch_add(&s->failures, 1);
            return NULL;
        }
        for (uint64_t i = 0; i < dr_batch_samples(b); i++)
            atomic_fetch_add(&s->seen[dr_batch_positions(b)[i]], 1);
        dr_batch_field f; /* the memory is the holder's alone */
        if (dr_batch_field_at(b, 0, &f, &e) == DR_OK)
            memset(f.array.data, 7, (size_t)f.array.desc.dims[0]);
        dr_batch_unref(&b);
    }
    return NULL;
}

/* Every sample once, in batches of any size. */
static void push_all(dr_loader *l)
{
    uint64_t ids[SAMPLES];
    assert_ok(dr_loader_start(l, 0, &err));
    for (uint64_t at = 0, n; at < SAMPLES; at += n) {
        n = 1 + dice(&x, 12);
        n = DR_MIN(n, SAMPLES - at);
        for (uint64_t i = 0; i < n; i++)
            ids[i] = SAMPLES - 1 - at - i;
        assert_ok(dr_loader_push(l, ids, n, &err));
    }
    assert_ok(dr_loader_push_end(l, &err));
}

static void open_station(station *s, dr_dataset *set, dr_graph *g)
{
    dr_loader_options o = options_of(1 + dice(&x, 9), (int)dice(&x, 5));
    o.shuffle = true;
    o.in_order = dice(&x, 2);
    o.on_bad_sample = dice(&x, 2) ? DR_BAD_SKIP : DR_BAD_REPLACE;
    o.prefetch = 1 + (int)dice(&x, 4);
    o.shuffle = !(o.pushed_order = dice(&x, 3) == 0);
    o.keep_batches = o.pushed_order && dice(&x, 2);
    *s = (station){ .loader = open_loader(set, g, &o) };
    if (dice(&x, 2))
        atomic_store(&s->loader->exec.lanes.predict.slow_units, 0);
    if (o.pushed_order)
        push_all(s->loader);
    atomic_store(&s->budget, (int)dice(&x, 3) ? (int)dice(&x, 20) : 1000);
    for (int i = 0; i < CONSUMERS; i++)
        assert_int_equal(pthread_create(&s->threads[i], NULL, consume, s), 0);
}

/* Any knob to any value that does not take too long. */
static void turn_any(dr_loader *l, uint64_t *d)
{
    dr_error err = { 0 };
    static const struct {
        const char *name;
        double values[4];
    } knobs[] = {
        { "workers", { 0, 1, 2, 5 } },        { "readers", { 0, 1, 3, 6 } },
        { "prefetch", { 1, 2, 8, 64 } },      { "prefetch_bytes", { 0, 1, 500, 1e6 } },
        { "lane_share", { 0, 0.1, 0.5, 1 } }, { "lane_threshold", { 1, 2, 4, 100 } },
        { "cpu_ceiling", { 0, 0.3, 1, 4 } },  { "priority", { -1, 0, 1, 0 } },
    };
    const uint64_t k = dice(d, DR_COUNT(knobs));
    const double value = knobs[k].values[dice(d, 4)];
    double now = -7;
    assert_ok(dr_loader_set(l, knobs[k].name, value, &err));
    assert_ok(dr_loader_get(l, knobs[k].name, &now, &err));
    assert_true(now == value);
}

/* What a scheduler or an impatient user may do meanwhile. */
static void disturb(station *s)
{
    char *text = NULL;
    switch (dice(&x, 6)) {
    case 0:
    case 1:
        turn_any(s->loader, &x);
        break;
    case 2:
        if (!s->loader->exec.o.pushed_order)
            assert_ok(dr_loader_state(s->loader, &text, &err));
        break;
    case 3:
        assert_ok(dr_loader_stats(s->loader, &text, &err));
        break;
    case 4:
        assert_ok(dr_loader_explain(s->loader, &text, &err));
        break;
    default:
        if (dice(&x, 4) == 0)
            dr_loader_cancel(s->loader);
        break;
    }
    dr_text_free(&text);
}

static void close_station(station *s)
{
    if (dice(&x, 4) == 0)
        dr_loader_cancel(s->loader); /* else the consumers end by themselves */
    for (int i = 0; i < CONSUMERS; i++)
        pthread_join(s->threads[i], NULL);
    dr_loader_close(&s->loader);
    assert_int_equal(atomic_load(&s->failures), 0);
    for (int i = 0; i < SAMPLES; i++)
        assert_true(atomic_load(&s->seen[i]) <= 1);
}

static void come_and_go(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = SAMPLES, .bad_every = 17, .bad_at = 3, .slow_every = 13, .slow_us = 100 });
    dr_graph *g =
        graph_of("{\"op\":\"random_crop\",\"params\":{\"size\":[5,5]}},{\"op\":\"random_horizontal_flip\"},{\"op\":"
                 "\"to_dtype\"}");
    static station stations[LOADERS];
    for (long cycle = 0; cycle < n_cycles; cycle++) {
        for (int i = 0; i < LOADERS; i++)
            open_station(&stations[i], set, g);
        for (int i = 0; i < LOADERS * 2; i++)
            disturb(&stations[dice(&x, LOADERS)]);
        for (int i = 0; i < LOADERS; i++)
            close_station(&stations[i]);
    }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* One loader, epochs given up at once, again and again. */
static void start_again(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = SAMPLES });
    dr_graph *g = graph_of(NULL);
    for (int in_order = 0; in_order < 2; in_order++) {
        dr_loader_options o = options_of(4, 3);
        o.in_order = in_order;
        dr_loader *l = open_loader(set, g, &o);
        for (long i = 0; i < n_cycles; i++) {
            tape t = { 0 };
            assert_ok(dr_loader_start(l, (uint64_t)i, &err));
            tape_read(&t, l, (int64_t)dice(&x, 6));
            tape_free(&t);
        }
        tape t = { 0 };
        assert_ok(dr_loader_start(l, 7, &err));
        tape_read(&t, l, -1);
        assert_each_once(&t, SAMPLES);
        tape_free(&t);
        dr_loader_close(&l);
    }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* Another thread turns all knobs while epochs are read to their end, as a scheduler would. */
static atomic_bool turning;

static void *turn_on_and_on(void *loader)
{
    uint64_t d = 99;
    while (atomic_load(&turning)) {
        turn_any(loader, &d);
        usleep((unsigned)dice(&d, 300));
    }
    return NULL;
}

static void all_knobs_meanwhile(void **state)
{
    (void)state;
    dr_dataset *set =
        toy_set(&(toy){ .n = SAMPLES, .slow_every = 7, .slow_us = 200, .large_from = 30, .large_to = 50, .large = 6 });
    dr_graph *g = graph_of("{\"op\":\"random_crop\",\"params\":{\"size\":[5,5]}}");
    for (int way = 0; way < 2; way++) {
        dr_loader_options o = options_of(4, 0);
        o.shuffle = true;
        tape want = epoch_of(set, g, &o);
        o.in_order = way;
        dr_loader *l = open_loader(set, g, &o);
        l->exec.lanes.predict.floor_ns = 0;
        pthread_t thread;
        atomic_store(&turning, true);
        assert_int_equal(pthread_create(&thread, NULL, turn_on_and_on, l), 0);
        for (long i = 0; i < n_cycles / 8; i++) {
            tape got = { 0 };
            assert_ok(dr_loader_start(l, 0, &err));
            tape_read(&got, l, -1);
            assert_each_once(&got, SAMPLES);
            if (o.in_order)
                assert_same_tape(&want, &got, "knobs turned meanwhile");
            tape_free(&got);
        }
        atomic_store(&turning, false);
        pthread_join(thread, NULL);
        dr_loader_close(&l);
        tape_free(&want);
    }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

int main(int argc, char **argv)
{
    n_cycles = argc > 1 ? atol(argv[1]) : n_cycles;
    x = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    print_message("seed %llu\n", (unsigned long long)x);
    const struct CMUnitTest tests[] = { cmocka_unit_test(come_and_go), cmocka_unit_test(start_again),
                                        cmocka_unit_test(all_knobs_meanwhile) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
