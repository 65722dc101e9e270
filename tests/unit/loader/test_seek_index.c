/* Seek points in a loader: the same bytes in every mode and epoch; kept, found by the next run, shared, and left alone.
 */
#include "unit/loader/toy.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static dr_error err;
static char folder[64], root[64], cache[80];

enum { N = 30, WIDTH = 40, HEIGHT = 8000 }; /* many rows, so that a few files are worth an index; 20 of them baseline */

/* A class folder of JPEGs, opened with indexes allowed. */
static int setup(void **state)
{
    (void)state;
    char command[400];
    dr_dataset *flat = jpeg_set_sized(folder, N, WIDTH, HEIGHT);
    dr_dataset_unref(&flat);
    strcpy(root, "/tmp/drapps-seek-XXXXXX");
    assert_non_null(mkdtemp(root));
    snprintf(cache, sizeof cache, "%s/cache", root);
    snprintf(command, sizeof command, "mkdir %s %s/data; mv %s %s/data/class", cache, root, folder, root);
    assert_int_equal(system(command), 0);
    return setenv("XDG_CACHE_HOME", "/proc/none", 1);
}

static int teardown(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

static dr_dataset *open_set(const char *format)
{
    dr_read_options o;
    dr_dataset *set = NULL;
    char path[100];
    dr_read_defaults(&o);
    o.format = format;
    snprintf(path, sizeof path, "%s/data%s", root, strcmp(format, "flat") ? "" : "/class");
    assert_ok(dr_dataset_open(path, &o, &set, &err));
    return set;
}

static dr_graph *crop_graph(void)
{
    return graph_of("{\"op\":\"decode\"},{\"op\":\"random_crop\",\"params\":{\"size\":[24,24]}}");
}

static dr_loader_options seek_options(const char *mode)
{
    dr_loader_options o = options_of(4, 2);
    o.shuffle = true;
    o.seek_index = mode;
    o.outputs = "image";
    return o;
}

static bool file_there(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return access(path, F_OK) == 0;
}

/* Three epochs' batches, on one tape; the loader is left open. */
static tape three_epochs(dr_loader *l)
{
    tape t = { 0 };
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        assert_ok(dr_loader_start(l, epoch, &err));
        tape_read(&t, l, -1);
    }
    return t;
}

static void the_bytes_are_the_same_in_every_mode(void **state)
{
    (void)state;
    static const char *const modes[] = { "memory", "auto", "auto" }; /* the last one finds the file */
    dr_dataset *set = open_set("folder");
    dr_graph *g = crop_graph();
    dr_loader_options o = seek_options("off");
    o.reference = true;
    dr_loader *l = open_loader(set, g, &o);
    tape want = three_epochs(l);
    assert_int_equal(stat_of(l, "seek_found") + stat_of(l, "seek_missed"), 0);
    dr_loader_close(&l);
    for (int i = 0; i < 3; i++) {
        o = seek_options(modes[i]);
        l = open_loader(set, g, &o);
        tape got = three_epochs(l);
        assert_same_tape(&want, &got, modes[i]);
        assert_int_equal(stat_of(l, "seek_images"), N * 2 / 3);
        assert_int_equal(stat_of(l, "seek_missed"), i == 2 ? 0 : N * 2 / 3);
        assert_int_equal(stat_of(l, "seek_found") + stat_of(l, "seek_missed"), 3 * N * 2 / 3);
        dr_loader_close(&l);
        tape_free(&got);
        assert_int_equal(file_there("data/.drapps-seek"), i > 0);
    }
    tape_free(&want);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void loaders_of_the_same_data_share(void **state)
{
    (void)state;
    dr_dataset *a = open_set("folder"), *b = open_set("folder");
    dr_graph *g = crop_graph();
    dr_loader_options o = seek_options("auto");
    dr_loader *train = open_loader(a, g, &o), *check = open_loader(b, g, &o);
    o = seek_options("memory");
    dr_loader *apart = open_loader(b, g, &o);
    tape t = { 0 };
    tape_read(&t, train, -1);
    assert_int_equal(stat_of(check, "seek_images"), N * 2 / 3);
    assert_int_equal(stat_of(apart, "seek_images"), 0);
    dr_loader_close(&train);
    tape_read(&t, check, -1);
    assert_true(stat_of(check, "seek_found") >= N * 2 / 3);
    dr_loader_close(&check);
    dr_loader_close(&apart);
    assert_true(file_there("data/.drapps-seek"));
    tape_free(&t);
    dr_graph_free(&g);
    dr_dataset_unref(&a);
    dr_dataset_unref(&b);
}

/* A file in the folder itself would make the listing of it stale. */
static void a_flat_folder_is_left_as_it_is(void **state)
{
    (void)state;
    setenv("XDG_CACHE_HOME", cache, 1);
    dr_dataset *set = open_set("flat");
    dr_graph *g = crop_graph();
    dr_loader_options o = seek_options("auto");
    tape t = epoch_of(set, g, &o);
    assert_false(file_there("data/class/.drapps-seek"));
    assert_true(file_there("cache/drapps"));
    dr_loader *l = open_loader(set, g, &o);
    assert_int_equal(stat_of(l, "seek_images"), N * 2 / 3);
    assert_true(stat_of(l, "seek_file_bytes") > 0);
    dr_loader_close(&l);
    tape_free(&t);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void a_forked_child_writes_nothing(void **state)
{
    (void)state;
    dr_dataset *set = open_set("folder");
    dr_graph *g = crop_graph();
    dr_loader_options o = seek_options("auto");
    dr_loader *l = open_loader(set, g, &o);
    tape t = { 0 };
    tape_read(&t, l, 7); /* not to its end: nothing is saved yet */
    pid_t child = fork();
    if (child == 0) {
        dr_loader_close(&l);
        _exit(file_there("data/.drapps-seek"));
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    dr_loader_close(&l);
    assert_true(file_there("data/.drapps-seek"));
    tape_free(&t);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void modes_are_checked(void **state)
{
    (void)state;
    dr_dataset *set = open_set("folder");
    dr_graph *g = crop_graph();
    dr_loader_options o = seek_options("disk");
    dr_loader *l = NULL;
    assert_fails(dr_loader_open(set, g, &o, &l, &err), DR_ERR_ARG,
                 "seek_index must be \"auto\", \"memory\" or \"off\", got \"disk\"");
    o = seek_options("auto");
    setenv("DRAPPS_SEEK_INDEX", "on", 1);
    assert_fails(dr_loader_open(set, g, &o, &l, &err), DR_ERR_ARG, "got \"on\"");
    setenv("DRAPPS_SEEK_INDEX", "off", 1);
    tape t = epoch_of(set, g, &o);
    unsetenv("DRAPPS_SEEK_INDEX");
    assert_false(file_there("data/.drapps-seek"));
    tape_free(&t);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

#define with_data(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_data(the_bytes_are_the_same_in_every_mode),
        with_data(loaders_of_the_same_data_share),
        with_data(a_flat_folder_is_left_as_it_is),
        with_data(a_forked_child_writes_nothing),
        with_data(modes_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
