/* Stored beginnings of graphs: the same bytes with a cache and without, in each epoch and run; kept, found, refused,
 * and made again when the data changed.
 *
 * DRAPPS_TEST_SEED=n draws other graphs; DRAPPS_TEST_ROUNDS=n draws more. */
#include "unit/loader/toy.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "store/store_space.h"
#include "unit/loader/random_graph.h"
#include "unit/stopped_clock.h"

static dr_error err;
static char root[64];
static uint64_t x;         /* of the dice */
static unsigned used[256]; /* rows of the op table that stood in a graph */

static int setup(void **state)
{
    (void)state;
    strcpy(root, "/tmp/drapps-cache-XXXXXX");
    setenv("DRAPPS_SEEK_INDEX", "off", 1);
    setenv("DRAPPS_SHM", mkdtemp(root), 1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

static uint64_t setting(const char *name, uint64_t standard)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : standard;
}

static dr_loader_options cache_options(const char *folder)
{
    dr_loader_options o = options_of(4, 2);
    o.shuffle = true;
    o.seed = 5;
    o.cache = folder;
    return o;
}

static void assert_explains(dr_loader *l, const char *part)
{
    char *text;
    assert_ok(dr_loader_explain(l, &text, &err));
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in:\n%s", part, text);
    dr_text_free(&text);
}

static tape epochs(dr_loader *l, uint64_t n)
{
    tape t = { 0 };
    for (uint64_t epoch = 0; epoch < n; epoch++) {
        assert_ok(dr_loader_start(l, epoch, &err));
        tape_read(&t, l, -1);
    }
    return t;
}

/* --- the same bytes --- */

static tape run(dr_dataset *set, const random_graph *r, const char *cache, int workers, json_int_t *hits)
{
    dr_loader_options o = cache_options(cache);
    o.workers = workers;
    o.on_bad_sample = DR_BAD_SKIP;
    o.outputs = r->outputs;
    o.collate = r->collate;
    o.reference = !cache;
    dr_loader *l = open_loader(set, r->graph, &o);
    tape t = epochs(l, 2);
    *hits += stat_of(l, "cache_hits");
    dr_loader_close(&l);
    return t;
}

static void compare(dr_dataset *set, int n_ops, json_int_t *hits)
{
    random_graph r = random_graph_of(set, n_ops, &x, used);
    const char *text = "";
    char what[4096];
    tape want = run(set, &r, NULL, 0, hits);
    for (int i = 0; i < 2; i++) { /* the second run finds what the first one kept */
        tape got = run(set, &r, root, i * 3, hits);
        assert_ok(dr_graph_json(r.graph, &text, &err));
        snprintf(what, sizeof what, "run %d, %s: %s", i, r.outputs, text);
        assert_same_tape(&want, &got, what);
        tape_free(&got);
    }
    tape_free(&want);
    dr_graph_free(&r.graph);
}

/* At every edge of the graph where something can be kept, in memory, without and with a disk. */
static void compare_edges(dr_dataset *set, int n_ops, json_int_t *hits, int *n_edges)
{
    random_graph r = random_graph_of(set, n_ops, &x, used);
    const char *text = "";
    char at[16], what[4096];
    json_int_t none = 0;
    tape want = run(set, &r, NULL, 0, &none);
    for (int node = 0; node < n_ops + 1; node++) {
        dr_loader_options o = cache_options(node % 2 ? root : NULL);
        dr_loader *l = NULL;
        snprintf(at, sizeof at, "%d", node);
        o.cache_memory = 4 << 20;
        o.cache_at = at;
        o.on_bad_sample = DR_BAD_SKIP;
        o.outputs = r.outputs;
        o.collate = r.collate;
        const dr_status status = dr_loader_open(set, r.graph, &o, &l, &err);
        assert_true(status == DR_OK || status == DR_ERR_ARG);
        if (status != DR_OK) {
            assert_non_null(strstr(err.text, "cache_at"));
            continue;
        }
        tape got = epochs(l, 2);
        *hits += stat_of(l, "cache_memory_hits");
        dr_loader_close(&l);
        assert_ok(dr_graph_json(r.graph, &text, &err));
        snprintf(what, sizeof what, "at %s, %s: %s", at, r.outputs, text);
        assert_same_tape(&want, &got, what);
        tape_free(&got);
        ++*n_edges;
    }
    tape_free(&want);
    dr_graph_free(&r.graph);
}

static void every_edge_gives_the_same_bytes(void **state)
{
    (void)state;
    char folder[64];
    toy t = { .n = 11, .h = 33, .w = 41 };
    json_int_t hits = 0;
    int n_edges = 0;
    dr_dataset *jpegs = jpeg_set(folder, 9), *arrays = toy_set(&t);
    x = setting("DRAPPS_TEST_SEED", 1);
    for (uint64_t i = 0; i < setting("DRAPPS_TEST_ROUNDS", 30); i++) {
        compare_edges(jpegs, (int)(i % 6), &hits, &n_edges);
        compare_edges(arrays, 1 + (int)(i % 5), &hits, &n_edges);
    }
    assert_true(n_edges >= 25 && hits > 5 * n_edges);
    dr_dataset_unref(&jpegs);
    dr_dataset_unref(&arrays);
    remove_folder(folder);
}

static void random_graphs_give_the_same_bytes(void **state)
{
    (void)state;
    char folder[64];
    toy t = { .n = 11, .h = 33, .w = 41 };
    json_int_t hits = 0;
    dr_dataset *jpegs = jpeg_set(folder, 9), *arrays = toy_set(&t);
    x = setting("DRAPPS_TEST_SEED", 1);
    for (uint64_t i = 0; i < setting("DRAPPS_TEST_ROUNDS", 30); i++) {
        compare(jpegs, (int)(i % 6), &hits);
        compare(arrays, 1 + (int)(i % 5), &hits);
    }
    assert_true(hits > 1000); /* it was not without a cache by mistake */
    dr_dataset_unref(&jpegs);
    dr_dataset_unref(&arrays);
    remove_folder(folder);
}

/* --- what is kept --- */

#define RESIZED                                                                                                        \
    "{\"op\":\"decode\"},{\"op\":\"resize\",\"params\":{\"size\":[20,24]}},{\"op\":\"random_horizontal_flip\"},"       \
    "{\"op\":\"to_dtype\",\"params\":{\"scale\":true}}"

static void later_epochs_and_runs_start_after_the_kept_ops(void **state)
{
    (void)state;
    char folder[64];
    dr_dataset *set = jpeg_set(folder, 9);
    dr_graph *g = graph_of(RESIZED);
    dr_loader_options o = cache_options(root);
    dr_loader *l = open_loader(set, g, &o);
    tape t = epochs(l, 3);
    assert_int_equal(stat_of(l, "cache_misses"), 9);
    assert_int_equal(stat_of(l, "cache_hits"), 18);
    assert_int_equal(stat_of(l, "cache_written"), 9);
    assert_explains(l, "cache: keeps decode, resize -> image image uint8 HWC (20, 24, 3)");
    dr_loader_close(&l);
    json_int_t read = 0;
    l = open_loader(set, g, &o);
    tape again = epochs(l, 3);
    assert_same_tape(&t, &again, "the next run");
    assert_int_equal(stat_of(l, "cache_misses"), 0);
    assert_int_equal(stat_of(l, "cache_written"), 0);
    read = stat_of(l, "bytes_read");
    assert_int_equal(read, 0); /* no file was opened */
    dr_loader_close(&l);
    /* Another graph with the same beginning finds it too. */
    dr_graph *other = graph_of("{\"op\":\"decode\"},{\"op\":\"resize\",\"params\":{\"size\":[20,24]}},"
                               "{\"op\":\"random_crop\",\"params\":{\"size\":[10,10]}}");
    l = open_loader(set, other, &o);
    tape more = epochs(l, 1);
    assert_int_equal(stat_of(l, "cache_misses"), 0);
    dr_loader_close(&l);
    tape_free(&t);
    tape_free(&again);
    tape_free(&more);
    dr_graph_free(&g);
    dr_graph_free(&other);
    dr_dataset_unref(&set);
    remove_folder(folder);
}

static void graphs_that_begin_at_random_keep_nothing(void **state)
{
    (void)state;
    toy t = { .n = 5 };
    dr_dataset *set = toy_set(&t);
    dr_graph *g = graph_of("{\"op\":\"random_horizontal_flip\"},{\"op\":\"resize\",\"params\":{\"size\":[4,4]}}");
    dr_loader_options o = cache_options(root);
    dr_loader *l = open_loader(set, g, &o);
    tape got = epochs(l, 2);
    assert_int_equal(stat_of(l, "cache_hits") + stat_of(l, "cache_misses"), 0);
    assert_explains(l, "cache: keeps nothing (no op before the first random one is worth storing)");
    dr_loader_close(&l);
    o.reference = true;
    dr_graph *kept = graph_of("{\"op\":\"resize\",\"params\":{\"size\":[4,4]}}");
    l = open_loader(set, kept, &o);
    tape more = epochs(l, 2);
    assert_int_equal(stat_of(l, "cache_hits") + stat_of(l, "cache_misses"), 0);
    dr_loader_close(&l);
    tape_free(&got);
    tape_free(&more);
    dr_graph_free(&g);
    dr_graph_free(&kept);
    dr_dataset_unref(&set);
}

/* A decode at a fraction of the size depends on what follows; it is not kept apart from it. */
static void a_scaled_decode_stays_with_its_reader(void **state)
{
    (void)state;
    char folder[64];
    dr_dataset *set = jpeg_set_sized(folder, 6, 200, 160);
    static const char *const chains[] = {
        "{\"op\":\"decode\",\"params\":{\"fast_decode\":true}},{\"op\":\"random_resized_crop\",\"params\":{\"size\":["
        "16,16]}}",
        "{\"op\":\"decode\",\"params\":{\"fast_decode\":true}},{\"op\":\"resize\",\"params\":{\"size\":[16,16]}},"
        "{\"op\":\"random_horizontal_flip\"}",
    };
    for (int i = 0; i < 2; i++) {
        random_graph r = { graph_of(chains[i]), "image", "image=stack" };
        json_int_t hits = 0;
        dr_loader_options o = cache_options(NULL);
        o.outputs = "image";
        dr_loader *l = open_loader(set, r.graph, &o);
        tape want = epochs(l, 2), got = run(set, &r, root, 2, &hits);
        dr_loader_close(&l);
        assert_same_tape(&want, &got, chains[i]);
        assert_int_equal(hits, i ? 6 : 0);
        tape_free(&want);
        tape_free(&got);
        dr_graph_free(&r.graph);
    }
    dr_dataset_unref(&set);
    remove_folder(folder);
}

/* --- in memory --- */

/* Room for some of the samples: as many are found in each epoch, whatever its order is, and two loaders share them. */
static void memory_is_shared_and_keeps_its_limit(void **state)
{
    (void)state;
    enum { N = 100 };
    dr_dataset *set = toy_set(&(toy){ .n = N, .h = 80, .w = 80, .stamped = true });
    dr_graph *g =
        graph_of("{\"op\":\"center_crop\",\"params\":{\"size\":[79,79]}},{\"op\":\"random_horizontal_flip\"}");
    dr_loader_options o = cache_options(NULL);
    tape want = { 0 }, got = { 0 };
    dr_loader *plain = open_loader(set, g, &o);
    for (uint64_t epoch = 0; epoch < 4; epoch++) {
        assert_ok(dr_loader_start(plain, epoch, &err));
        tape_read(&want, plain, -1);
    }
    dr_loader_close(&plain);
    o.cache_memory = 1 << 20;
    o.workers = 1;
    dr_loader *l = open_loader(set, g, &o), *other = open_loader(set, g, &o);
    assert_ok(dr_loader_set(l, "codec", 0, &err)); /* so that the room is the same for all */
    for (uint64_t epoch = 0; epoch < 4; epoch++) {
        const json_int_t before = stat_of(l, "cache_hits"), room = stat_of(l, "cache_memory_records");
        assert_ok(dr_loader_start(l, epoch, &err));
        tape_read(&got, l, -1);
        if (epoch)
            assert_int_equal(stat_of(l, "cache_hits") - before, room);
    }
    assert_same_tape(&want, &got, "from memory");
    assert_true(stat_of(l, "cache_memory_records") > 40 && stat_of(l, "cache_memory_records") < 60);
    assert_true(stat_of(l, "cache_memory_bytes") <= 1 << 20);
    assert_true(stat_of(l, "cache_memory_refused") > 0 && stat_of(l, "cache_memory_evicted") > 0);
    assert_explains(l, "evicts what is needed again last; not compressed (as set for data of class 8-bit)");
    assert_ok(dr_loader_start(other, 4, &err));
    tape_free(&got);
    tape_read(&got, other, -1);
    assert_int_equal(stat_of(other, "cache_memory_hits"), stat_of(l, "cache_memory_records"));
    dr_loader_close(&other);
    dr_loader_close(&l);
    l = open_loader(set, g, &o); /* nobody had it any more */
    assert_int_equal(stat_of(l, "cache_memory_records"), 0);
    dr_loader_close(&l);
    o.cache_memory = 1000;
    l = NULL;
    assert_fails(dr_loader_open(set, g, &o, &l, &err), DR_ERR_ARG, "cache_memory must be 0 or at least");
    o.cache_memory = 0;
    o.cache_at = "0";
    assert_fails(dr_loader_open(set, g, &o, &l, &err), DR_ERR_ARG, "cache_at needs cache or cache_memory");
    tape_free(&want);
    tape_free(&got);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* An order that the caller pushes: each sample once in an epoch, in another order each time.  As many are found. */
static void pushed_orders_keep_what_they_have(void **state)
{
    (void)state;
    enum { N = 100 };
    dr_dataset *set = toy_set(&(toy){ .n = N, .h = 80, .w = 80, .stamped = true });
    dr_graph *g = graph_of("{\"op\":\"center_crop\",\"params\":{\"size\":[79,79]}}");
    dr_loader_options o = cache_options(NULL);
    o.shuffle = false;
    o.pushed_order = true;
    o.cache_memory = 1 << 20;
    o.workers = 1;
    dr_loader *l = open_loader(set, g, &o);
    assert_ok(dr_loader_set(l, "codec", 0, &err));
    x = 3;
    for (uint64_t epoch = 0; epoch < 6; epoch++) {
        uint64_t ids[N];
        const json_int_t before = stat_of(l, "cache_hits"), room = stat_of(l, "cache_memory_records");
        for (uint64_t i = 0; i < N; i++) {
            const uint64_t k = dice(&x, i + 1);
            ids[i] = ids[k];
            ids[k] = i;
        }
        assert_ok(dr_loader_start(l, epoch, &err));
        for (int i = 0; i < N; i += 4)
            assert_ok(dr_loader_push(l, ids + i, 4, &err));
        assert_ok(dr_loader_push_end(l, &err));
        tape t = { 0 };
        tape_read(&t, l, -1);
        tape_free(&t);
        if (epoch)
            assert_int_equal(stat_of(l, "cache_hits") - before, room);
    }
    assert_explains(l, "evicts what was not used for an epoch");
    dr_loader_close(&l);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void the_codec_is_a_knob(void **state)
{
    (void)state;
    char folder[64];
    double value;
    dr_dataset *set = jpeg_set(folder, 9);
    dr_graph *g = graph_of(RESIZED);
    dr_loader_options o = cache_options(root);
    dr_loader *l = open_loader(set, g, &o);
    assert_ok(dr_loader_get(l, "codec", &value, &err));
    assert_true(value == -1);
    assert_fails(dr_loader_set(l, "codec", 200, &err), DR_ERR_ARG, "codec must be one of -1 (chosen), 0 (none)");
    assert_fails(dr_loader_set(l, "codec", 0.5, &err), DR_ERR_ARG, "codec must be an int from -1 to 255, got 0.5");
    assert_ok(dr_loader_set(l, "codec", 0, &err));
    tape t = epochs(l, 1);
    assert_int_equal(stat_of(l, "cache_written_bytes"), stat_of(l, "cache_raw_bytes"));
    assert_explains(l, "not compressed (as set for data of class 8-bit)");
    tape_free(&t);
    dr_loader_close(&l);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
    remove_folder(folder);
}

/* --- changes and damage --- */

static void a_changed_file_is_made_again(void **state)
{
    (void)state;
    char folder[64], command[300];
    dr_dataset *set = jpeg_set_sized(folder, 6, 40, 30);
    dr_graph *g = graph_of(RESIZED);
    dr_loader_options o = cache_options(root);
    dr_loader *l = open_loader(set, g, &o);
    tape before = epochs(l, 1);
    dr_loader_close(&l);
    /* The largest file gets the smallest one's pixels, in as many bytes: only its time tells. */
    snprintf(
        command, sizeof command,
        "cd '%s'; set -- $(ls -S); l=$1; shift 5; n=$(stat -c %%s $l); (cat $1; head -c $n /dev/zero) | head -c $n "
        "> new; cat new > $l; rm new",
        folder);
    assert_int_equal(system(command), 0);
    l = open_loader(set, g, &o);
    tape after = epochs(l, 1);
    assert_int_equal(stat_of(l, "cache_misses"), 1);
    assert_int_equal(stat_of(l, "cache_hits"), 5);
    dr_loader_close(&l);
    o.cache = NULL;
    l = open_loader(set, g, &o);
    tape want = epochs(l, 1);
    assert_same_tape(&want, &after, "after the change");
    assert_true(before.batches[0].hash != after.batches[0].hash || before.batches[1].hash != after.batches[1].hash);
    dr_loader_close(&l);
    tape_free(&before);
    tape_free(&after);
    tape_free(&want);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
    remove_folder(folder);
}

/* A bad file is as bad with a cache as without. */
static void bad_samples_stay_bad(void **state)
{
    (void)state;
    char folder[64];
    dr_dataset *set = jpeg_set(folder, 6);
    dr_graph *g = graph_of(RESIZED);
    char path[128];
    snprintf(path, sizeof path, "%s", folder);
    truncate_jpeg(folder, 2);
    dr_loader_options o = cache_options(NULL);
    o.on_bad_sample = DR_BAD_SKIP;
    dr_loader *l = open_loader(set, g, &o);
    tape want = epochs(l, 2);
    dr_loader_close(&l);
    o.cache = root;
    l = open_loader(set, g, &o);
    tape got = epochs(l, 2);
    assert_same_tape(&want, &got, "a bad sample");
    for (size_t i = 0; i < want.n; i++)
        assert_string_equal(want.batches[i].bad, got.batches[i].bad);
    dr_loader_close(&l);
    tape_free(&want);
    tape_free(&got);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
    remove_folder(folder);
}

static void a_limit_and_a_bad_folder(void **state)
{
    (void)state;
    char folder[64];
    dr_dataset *set = jpeg_set(folder, 9);
    dr_graph *g = graph_of(RESIZED);
    dr_loader_options o = cache_options(root);
    o.cache_limit = 9000;
    dr_loader *l = open_loader(set, g, &o);
    tape t = epochs(l, 2);
    json_int_t kept = stat_of(l, "cache_written");
    assert_true(kept > 0 && kept < 9);
    assert_true(stat_of(l, "cache_disk_bytes") <= 9000);
    assert_explains(l, "stopped: cache_limit is reached");
    dr_loader_close(&l);
    o.cache = "/proc/none/cache";
    l = NULL;
    assert_fails(dr_loader_open(set, g, &o, &l, &err), DR_ERR_IO, "cannot make the folder");
    setenv("XDG_CACHE_HOME", "/proc/none", 1);
    o.cache = "auto"; /* nobody asked for that place: it works without */
    l = open_loader(set, g, &o);
    tape more = epochs(l, 2);
    assert_same_tape(&t, &more, "without a place");
    dr_loader_close(&l);
    tape_free(&t);
    tape_free(&more);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
    remove_folder(folder);
}

/* --- auto --- */

static uint64_t cost_ns;

static void cost_time(uint64_t id)
{
    (void)id;
    move_clock(cost_ns);
}

/* Reading takes what the clock is moved by, all else no time, and 30 kB of a disk 60 us: so keeping pays from 120 us
 * on. Either way the bytes are the same, and what is kept agrees with what is said. */
static void auto_does_as_it_says(void **state)
{
    (void)state;
    static const struct {
        uint64_t cost_ns;
        bool pays;
        const char *why;
    } rows[] = {
        { 1000000, true, "pays: a sample takes 1000 us without, 60 us with it (reading 60, unpacking 0, the rest 0)" },
        { 130000, true, "pays: a sample takes 130 us without, 60 us" },
        { 110000, false, "does not pay: a sample takes 110 us without, 60 us" },
        { 0, false, "does not pay: a sample takes 0 us without, 60 us" },
    };
    dr_dataset *set = toy_set(&(toy){ .n = 40, .h = 110, .w = 110, .stamped = true, .on_read = cost_time });
    dr_graph *g = graph_of("{\"op\":\"center_crop\",\"params\":{\"size\":[100,100]}},"
                           "{\"op\":\"random_crop\",\"params\":{\"size\":[8,8]}}");
    for (size_t i = 0; i < DR_COUNT(rows); i++) {
        char home[96], said[200];
        snprintf(home, sizeof home, "%s/%zu", root, i);
        setenv("XDG_CACHE_HOME", home, 1);
        cost_ns = rows[i].cost_ns;
        dr_loader_options o = cache_options(NULL);
        o.workers = 1; /* the clock is moved for one sample at a time */
        tape want = epoch_of(set, g, &o);
        o.cache = "auto";
        stop_clock();
        dr_loader *l = open_loader(set, g, &o);
        tape got = { 0 };
        tape_read(&got, l, -1);
        start_clock();
        assert_same_tape(&want, &got, rows[i].why);
        json_t *stats = loader_stats(l);
        const char *why = json_string_value(json_object_get(stats, "cache_why"));
        if (strncmp(why, rows[i].why, strlen(rows[i].why)))
            fail_msg("\"%s\", wanted \"%s\"", why, rows[i].why);
        snprintf(said, sizeof said, "%s(%s", rows[i].pays ? "in the user's cache folder " : "cache: keeps nothing ",
                 why);
        assert_explains(l, said);
        json_decref(stats);
        dr_loader_close(&l);
        l = open_loader(set, g, &o);
        assert_int_equal(stat_of(l, "cache_records") > 0, rows[i].pays);
        dr_loader_close(&l);
        tape_free(&want);
        tape_free(&got);
    }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* --- slow samples --- */

/* Few large images among many small ones: what is made of them to be kept goes to the slow lane. */
static void what_is_made_slowly_has_its_lane(void **state)
{
    (void)state;
    enum { SMALL = 200, LARGE = 6 };
    char small_folder[64], large_folder[64];
    dr_dataset *sets[] = { jpeg_set_sized(small_folder, SMALL, 40, 30), jpeg_set_sized(large_folder, LARGE, 900, 700) };
    dr_dataset *both = NULL;
    assert_ok(dr_dataset_mix(sets, (double[]){ SMALL, LARGE }, 2, 0, &both, &err));
    dr_graph *g = graph_of(RESIZED);
    dr_loader_options o = cache_options(NULL);
    o.reference = true;
    tape want = epoch_of(both, g, &o);
    o = cache_options(root);
    dr_loader *l = open_loader(both, g, &o);
    tape got = epochs(l, 1);
    assert_same_tape(&want, &got, "the first epoch");
    assert_true(stat_of(l, "slow_samples") > 0);
    assert_int_equal(stat_of(l, "cache_written"), SMALL + LARGE);
    tape_free(&got);
    got = epochs(l, 1);
    assert_same_tape(&want, &got, "the same again");
    assert_int_equal(stat_of(l, "cache_hits"), SMALL + LARGE);
    dr_loader_close(&l);
    tape_free(&want);
    tape_free(&got);
    dr_graph_free(&g);
    dr_dataset_unref(&both);
    dr_dataset_unref(&sets[0]);
    dr_dataset_unref(&sets[1]);
    remove_folder(small_folder);
    remove_folder(large_folder);
}

/* --- killed --- */

/* Killed when something was kept, or a little later. */
static void a_killed_run_leaves_what_the_next_can_use(void **state)
{
    (void)state;
    char folder[64];
    dr_dataset *set = jpeg_set_sized(folder, 60, 300, 200);
    dr_graph *g = graph_of(RESIZED);
    dr_loader_options o = cache_options(NULL);
    tape want = epoch_of(set, g, &o);
    o.cache = root;
    for (unsigned round = 0; round < 5; round++) {
        uint64_t before = dr__space_used(root);
        pid_t child = fork();
        if (child == 0) {
            tape t = epoch_of(set, g, &o);
            _exit(t.n == want.n ? 0 : 1);
        }
        siginfo_t end = { 0 };
        while (dr__space_used(root) <= before && !waitid(P_PID, (id_t)child, &end, WEXITED | WNOHANG | WNOWAIT) &&
               !end.si_pid)
            usleep(500);
        usleep(4000 * round);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    dr_loader *l = open_loader(set, g, &o);
    tape got = epochs(l, 1);
    assert_same_tape(&want, &got, "after kills");
    assert_int_equal(stat_of(l, "cache_damaged"), 0);
    assert_int_equal(stat_of(l, "cache_hits") + stat_of(l, "cache_misses"), 60);
    dr_loader_close(&l);
    tape_free(&want);
    tape_free(&got);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
    remove_folder(folder);
}

#define with_folder(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_folder(random_graphs_give_the_same_bytes),
        with_folder(every_edge_gives_the_same_bytes),
        with_folder(memory_is_shared_and_keeps_its_limit),
        with_folder(pushed_orders_keep_what_they_have),
        with_folder(the_codec_is_a_knob),
        with_folder(later_epochs_and_runs_start_after_the_kept_ops),
        with_folder(graphs_that_begin_at_random_keep_nothing),
        with_folder(a_scaled_decode_stays_with_its_reader),
        with_folder(a_changed_file_is_made_again),
        with_folder(bad_samples_stay_bad),
        with_folder(a_limit_and_a_bad_folder),
        with_folder(auto_does_as_it_says),
        with_folder(what_is_made_slowly_has_its_lane),
        with_folder(a_killed_run_leaves_what_the_next_can_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
