/* Images read in ranges: the same batches, with fewer bytes; whatever goes wrong with ranges costs a whole read. */
#include "unit/loader/toy.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "loader/loader_internal.h"

enum { N = 30, WIDTH = 300, HEIGHT = 400, EPOCHS = 4 };

static dr_error err;
static char folder[64];
static dr_dataset *set;
static dr_graph *crops;

static int setup(void **state)
{
    (void)state;
    set = jpeg_set_sized(folder, N, WIDTH, HEIGHT);
    crops = graph_of("{\"op\":\"decode\"},{\"op\":\"random_crop\",\"params\":{\"size\":[60,40]}}");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    dr_graph_free(&crops);
    dr_dataset_unref(&set);
    remove_folder(folder);
    return 0;
}

static dr_loader_options options(const char *ranges, int workers)
{
    dr_loader_options o = options_of(4, workers);
    o.shuffle = true;
    o.seek_index = "memory";
    o.ranges = ranges;
    o.outputs = "image,key";
    o.on_bad_sample = DR_BAD_SKIP;
    return o;
}

static tape epochs(dr_loader *l, uint64_t first, uint64_t end)
{
    tape t = { 0 };
    for (uint64_t epoch = first; epoch < end; epoch++) {
        assert_ok(dr_loader_start(l, epoch, &err));
        tape_read(&t, l, -1);
    }
    return t;
}

static tape epochs_without(dr_graph *g, uint64_t first, uint64_t end)
{
    dr_loader_options o = options("off", 2);
    dr_loader *l = open_loader(set, g, &o);
    tape t = epochs(l, first, end);
    assert_int_equal(stat_of(l, "range_samples"), 0);
    dr_loader_close(&l);
    return t;
}

static uint64_t stored_bytes(void)
{
    uint64_t sum = 0;
    for (int i = 0; i < N; i++) {
        char path[128];
        struct stat st;
        snprintf(path, sizeof path, "%s/%03d.jpg", folder, i);
        assert_int_equal(stat(path, &st), 0);
        sum += (uint64_t)st.st_size;
    }
    return sum;
}

/* With workers, with the caller alone, and with readers; in order and not.  From the second epoch on a fraction of the
 * bytes is read; the progressive images, of which there are some, stay whole. */
static void the_batches_are_the_same(void **state)
{
    (void)state;
    const uint64_t all = stored_bytes();
    tape want = epochs_without(crops, 0, EPOCHS);
    for (int i = 0; i < 3; i++) {
        dr_loader_options o = options("on", i == 1 ? 0 : 2);
        dr_loader *l = open_loader(set, crops, &o);
        if (i == 2)
            assert_ok(dr_loader_set(l, "readers", 3, &err));
        tape got = epochs(l, 0, EPOCHS);
        assert_same_tape(&want, &got, i == 2 ? "readers" : i ? "caller" : "workers");
        const uint64_t samples = (uint64_t)stat_of(l, "range_samples"), read = (uint64_t)stat_of(l, "bytes_read");
        assert_int_equal(samples, (EPOCHS - 1) * N * 2 / 3);
        assert_int_equal(stat_of(l, "range_noted"), N * 2 / 3);
        assert_int_equal(stat_of(l, "range_again"), 0);
        assert_in_range(stat_of(l, "range_bytes_read"), 1, stat_of(l, "range_bytes_stored") * 2 / 3);
        assert_int_equal(read, EPOCHS * all - (uint64_t)stat_of(l, "range_bytes_stored") +
                                   (uint64_t)stat_of(l, "range_bytes_read"));
        char *text;
        assert_ok(dr_loader_explain(l, &text, &err));
        assert_non_null(strstr(text, "ranges: "));
        dr_text_free(&text);
        dr_loader_close(&l);
        tape_free(&got);
    }
    tape_free(&want);
}

static void a_turned_image_is_read_in_ranges(void **state)
{
    (void)state;
    dr_graph *g = graph_of("{\"op\":\"decode\",\"params\":{\"exif_orientation\":true}},{\"op\":\"random_resized_crop\","
                           "\"params\":{\"size\":[32,32],\"scale\":[0.05,0.2]}},{\"op\":\"random_horizontal_flip\"}");
    tape want = epochs_without(g, 0, 3);
    dr_loader_options o = options("on", 2);
    dr_loader *l = open_loader(set, g, &o);
    tape got = epochs(l, 0, 3);
    assert_same_tape(&want, &got, "turned");
    assert_int_equal(stat_of(l, "range_samples"), 2 * N * 2 / 3);
    dr_loader_close(&l);
    tape_free(&got);
    tape_free(&want);
    dr_graph_free(&g);
}

static void copy_over(int from, int to)
{
    char command[400];
    snprintf(command, sizeof command, "cp '%s/%03d.jpg' '%s/new' && mv '%s/new' '%s/%03d.jpg'", folder, from, folder,
             folder, folder, to);
    assert_int_equal(system(command), 0);
}

/* Another file by the same name, a file that is cut off, one that is gone: as without ranges. */
static void changed_files_are_noticed(void **state)
{
    (void)state;
    char path[128];
    dr_loader_options o = options("on", 2);
    dr_loader *l = open_loader(set, crops, &o);
    tape before = epochs(l, 0, 2);
    const json_int_t noted = stat_of(l, "range_noted");
    for (int i = 0; i < 10; i++)
        copy_over(10 + i, i);
    truncate_jpeg(folder, 25);
    truncate_jpeg(folder, 26);
    snprintf(path, sizeof path, "%s/027.jpg", folder);
    assert_int_equal(unlink(path), 0);
    tape want = epochs_without(crops, 2, EPOCHS), got = epochs(l, 2, EPOCHS);
    assert_same_tape(&want, &got, "changed");
    assert_true(stat_of(l, "range_again") >= 6);
    assert_true(stat_of(l, "range_noted") > noted);
    assert_in_range(stat_of(l, "bad_samples"), 2, 6);
    dr_loader_close(&l);
    tape_free(&got);
    tape_free(&want);
    tape_free(&before);
}

/* Moves all points known of an image to where its data ends, and adds one, so that they take the place of the right
 * ones. */
static void spoil_points(dr__seek_store *store, const char *path)
{
    uint8_t data[1 << 16];
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const size_t size = fread(data, 1, sizeof data, f);
    const dr__seek_key key = dr__seek_key_of(data, size);
    fclose(f);
    dr__seek_points points = { 0 };
    if (dr__seek_store_find(store, &key, &points) && points.n < points.total) {
        assert_true(dr__seek_add(&points, &(dr__seek_point){ 0 }));
        for (uint32_t i = 0; i < points.n; i++)
            points.at[i].bit = (size - 2) * 8 - points.n + i;
        dr__seek_store_put(store, &key, &points);
    }
    dr__seek_free(&points);
}

/* Ranges that turn out to be of no use, because the points were wrong. */
static void unsound_ranges_are_read_whole(void **state)
{
    (void)state;
    dr_loader_options o = options("on", 2);
    dr_loader *l = open_loader(set, crops, &o);
    tape want = epochs_without(crops, 1, 3), first = epochs(l, 0, 1);
    for (int i = 0; i < N; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%03d.jpg", folder, i);
        spoil_points(l->exec.seek, path);
    }
    tape got = epochs(l, 1, 3);
    assert_same_tape(&want, &got, "unsound");
    assert_true(stat_of(l, "range_again") > 0);
    assert_int_equal(stat_of(l, "bad_samples"), 0);
    dr_loader_close(&l);
    tape_free(&first);
    tape_free(&got);
    tape_free(&want);
}

/* In the epoch in which ranges are read: the same batches, or the error. */
static void each_allocation_may_fail(void **state)
{
    (void)state;
    tape want = epochs_without(crops, 1, 2);
    int good = 0, failed = 0;
    for (long n = 1; n < 200 && good < 3; n++) {
        dr_loader_options o = options("on", 0);
        dr_loader *l = open_loader(set, crops, &o);
        tape first = epochs(l, 0, 1), got = { 0 };
        dr_batch *b = NULL;
        dr_error e = { 0 };
        dr__alloc_fail_at(n, false);
        dr_status status = dr_loader_start(l, 1, &e);
        while (status == DR_OK && (status = dr_loader_next(l, -1, &b, &e)) == DR_OK) {
            tape_add(&got, b);
            dr_batch_unref(&b);
        }
        const long calls = dr__alloc_fail_at(0, false);
        if (status == DR_END)
            assert_same_tape(&want, &got, "memory");
        else
            assert_int_equal(status, DR_ERR_NOMEM);
        failed += status != DR_END;
        good = status == DR_END && calls < n ? good + 1 : 0;
        dr_loader_close(&l);
        tape_free(&first);
        tape_free(&got);
    }
    assert_int_equal(good, 3);
    assert_true(failed > 3);
    tape_free(&want);
}

static void what_cannot_be_read_in_ranges_is_read_whole(void **state)
{
    (void)state;
    static const char *const graphs[] = {
        "{\"op\":\"decode\"},{\"op\":\"resize\",\"params\":{\"size\":[32,32]}}", /* all of the image */
        "{\"op\":\"decode\"},{\"op\":\"color_jitter\",\"params\":{\"brightness\":0.4}},{\"op\":\"random_crop\","
        "\"params\":{\"size\":[24,24]}}",
        "{\"op\":\"decode\",\"params\":{\"decoder\":\"libjpeg\"}},{\"op\":\"random_crop\",\"params\":{\"size\":[24,24]}"
        "}",
    };
    for (size_t i = 0; i < DR_COUNT(graphs); i++) {
        dr_graph *g = graph_of(graphs[i]);
        tape want = epochs_without(g, 0, 2);
        dr_loader_options o = options("on", 2);
        dr_loader *l = open_loader(set, g, &o);
        tape got = epochs(l, 0, 2);
        assert_same_tape(&want, &got, graphs[i]);
        assert_int_equal(stat_of(l, "bad_samples"), 0);
        if (i > 0)
            assert_int_equal(stat_of(l, "range_samples"), 0);
        dr_loader_close(&l);
        tape_free(&got);
        tape_free(&want);
        dr_graph_free(&g);
    }
}

static dr__range_times times(uint64_t n, double ns, double bytes)
{
    dr__range_times t = { 0 };
    for (uint64_t i = 0; i < n; i++)
        dr__range_times_add(&t, (uint64_t)ns, (uint64_t)bytes);
    assert_true(n == 0 || (t.ns > ns - 1 && t.ns < ns + 1));
    return t;
}

static void auto_chooses_by_times(void **state)
{
    (void)state;
    const double slow = 2 * DR__RANGES_SLOW_NS;
    dr__range_times none = times(0, 0, 0), few = times(DR__RANGES_TRIAL - 1, slow, 1000);
    dr__range_times some = times(100, 1000, 1000); /* fast, but for some that waited for a CPU */
    for (int i = 0; i < 10; i++)
        dr__range_times_add(&some, (uint64_t)(100 * slow), 1000);
    dr__range_times fast = times(100, 1000, 1000), whole = times(100, slow, 1000);
    dr__range_times better = times(100, slow / 2, 1000), worse = times(100, slow * 2, 1000);
    dr__range_times larger = times(100, slow * 2, 10000); /* takes longer, but less for a byte */
    for (uint64_t turn = 0; turn < 3 * DR__RANGES_AGAIN; turn++) {
        const bool other = turn % DR__RANGES_AGAIN == 0;
        assert_int_equal(dr__ranges_choose(&few, &none, turn), DR__READ_WHOLE);
        assert_int_equal(dr__ranges_choose(&fast, &better, turn), DR__READ_WHOLE);
        assert_int_equal(dr__ranges_choose(&some, &better, turn), DR__READ_WHOLE);
        assert_int_equal(dr__ranges_choose(&whole, &none, turn), other ? DR__READ_WHOLE_AND_NOTE : DR__READ_RANGES);
        assert_int_equal(dr__ranges_choose(&whole, &better, turn), other ? DR__READ_WHOLE_AND_NOTE : DR__READ_RANGES);
        assert_int_equal(dr__ranges_choose(&whole, &larger, turn), other ? DR__READ_WHOLE_AND_NOTE : DR__READ_RANGES);
        assert_int_equal(dr__ranges_choose(&whole, &worse, turn), other ? DR__READ_RANGES : DR__READ_WHOLE_AND_NOTE);
    }
}

/* Of files whose reading takes long "auto" reads ranges; of others it notes nothing. */
static void auto_reads_ranges_of_slow_files(void **state)
{
    (void)state;
    char slow[64];
    setenv("DRAPPS_READ_DELAY_US", "1000", 1);
    dr_dataset *slow_set = jpeg_set_sized(slow, N, WIDTH, HEIGHT);
    unsetenv("DRAPPS_READ_DELAY_US");
    dr_loader_options o = options("auto", 2);
    dr_loader *l = open_loader(slow_set, crops, &o);
    tape got = epochs(l, 0, 6), want;
    assert_true(stat_of(l, "range_noted") > 0);
    assert_true(stat_of(l, "range_samples") > 0);
    dr_loader_close(&l);
    o.ranges = "off";
    l = open_loader(slow_set, crops, &o);
    want = epochs(l, 0, 6);
    assert_same_tape(&want, &got, "auto");
    dr_loader_close(&l);
    tape_free(&got);
    tape_free(&want);
    dr_dataset_unref(&slow_set);
    remove_folder(slow);
}

static void modes_are_checked(void **state)
{
    (void)state;
    dr_loader_options o = options("always", 2);
    dr_loader *l = NULL;
    assert_fails(dr_loader_open(set, crops, &o, &l, &err), DR_ERR_ARG,
                 "ranges must be \"auto\", \"on\" or \"off\", got \"always\"");
}

#define with_data(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_data(the_batches_are_the_same),        with_data(a_turned_image_is_read_in_ranges),
        with_data(changed_files_are_noticed),       with_data(unsound_ranges_are_read_whole),
        with_data(each_allocation_may_fail),        with_data(what_cannot_be_read_in_ranges_is_read_whole),
        with_data(auto_reads_ranges_of_slow_files), with_data(modes_are_checked),
        cmocka_unit_test(auto_chooses_by_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
