/* test_packer.c: packing by the C interface: from the first call to the last, and with memory that runs out. */
#include "../format/tree.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <drapps/pack.h>

#include "base/alloc.h"
#include "format/dataset_internal.h"
#include "format/set_manifest.h"

enum { N = 12 };

static char folder[300], made[300];

static int setup(void **state)
{
    if (tree_make(state))
        return -1;
    snprintf(folder, sizeof folder, "%s/set", tree_root);
    snprintf(made, sizeof made, "%s/packed", tree_root);
    mkdir(folder, 0777);
    for (int i = 0; i < N; i++) {
        char path[400];
        snprintf(path, sizeof path, "%s/%c", folder, 'a' + i % 3);
        mkdir(path, 0777);
        snprintf(path, sizeof path, "%s/%c/%02d.jpg", folder, 'a' + i % 3, i);
        FILE *f = fopen(path, "wb");
        for (int k = 0; k < 100 * i; k++)
            fputc(i + k, f);
        fclose(f);
    }
    return 0;
}

static dr_dataset *open_set(const char *path)
{
    dr_dataset *set;
    dr_error err = { 0 };
    if (dr_dataset_open(path, NULL, &set, &err) != DR_OK)
        fail_msg("%s", err.text);
    return set;
}

static void same_samples(const dr_dataset *a, const dr_dataset *b)
{
    dr__record x, y;
    dr_error err = { 0 };
    dr__record_init(&x);
    dr__record_init(&y);
    assert_int_equal(a->n_samples, b->n_samples);
    for (uint64_t id = 0; id < a->n_samples; id++) {
        assert_int_equal(a->def->read(a, id, &x, &err), DR_OK);
        assert_int_equal(b->def->read(b, id, &y, &err), DR_OK);
        assert_int_equal(x.n_fields, y.n_fields);
        for (int f = 0; f < x.n_fields; f++) {
            const size_t size = x.fields[f].desc.n_dims ? (size_t)x.fields[f].desc.dims[0] : 8;
            assert_int_equal(x.fields[f].desc.dims[0], y.fields[f].desc.dims[0]);
            assert_memory_equal(x.fields[f].data, y.fields[f].data, size);
        }
    }
    dr__record_free(&x);
    dr__record_free(&y);
}

static void test_from_beginning_to_end(void **state)
{
    (void)state;
    dr_dataset *set = open_set(folder);
    dr_pack_options o;
    dr_pack *pack;
    dr_pack_stats stats;
    dr_error err = { 0 };
    dr_status status;
    dr_pack_defaults(&o);
    o.shard_samples = 5;
    o.check_images = false; /* they are none */
    o.workers = 3;
    assert_int_equal(dr_pack_open(set, made, &o, &pack, &err), DR_OK);
    dr_pack_get_stats(pack, &stats);
    assert_true(stats.samples == 0 && stats.samples_total == N && stats.estimated_bytes > 0);
    while ((status = dr_pack_run(pack, 0, &err)) == DR_AGAIN) {
    }
    assert_int_equal(status, DR_OK);
    assert_int_equal(dr_pack_run(pack, -1, &err), DR_OK);
    dr_pack_get_stats(pack, &stats);
    assert_true(stats.samples == N && stats.shards == 3);
    dr_pack_close(&pack);
    assert_null(pack);
    dr_dataset *packed = open_set(made);
    same_samples(set, packed);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(dr_dataset_check_shard(packed, i, &err), DR_OK);
    assert_int_equal(dr_dataset_check_shard(packed, 3, &err), DR_ERR_ARG);
    char text[64];
    assert_int_equal(dr_dataset_file(packed, 0, 0, text, sizeof text, &err), DR_OK);
    assert_string_equal(text, "a/00.jpg");
    assert_int_equal(dr_dataset_file(packed, 0, 1, text, sizeof text, &err), DR_ERR_NOT_FOUND);
    dr_dataset_unref(&packed);
    dr_dataset_unref(&set);
}

/* The lock of the folder stays free for those who save seek points there. */
static void test_one_packer_at_a_time(void **state)
{
    (void)state;
    dr_dataset *set = open_set(folder);
    dr_pack_options o;
    dr_pack *pack, *second;
    dr_error err = { 0 };
    char lock[400];
    snprintf(lock, sizeof lock, "%s/" DR__SET_LOCK, made);
    dr_pack_defaults(&o);
    assert_int_equal(dr_pack_open(set, made, &o, &pack, &err), DR_OK);
    assert_int_equal(dr_pack_open(set, made, &o, &second, &err), DR_ERR_STATE);
    assert_non_null(strstr(err.text, "another process is packing into it"));
    assert_int_equal(access(lock, F_OK), 0);
    int fd = open(made, O_RDONLY | O_DIRECTORY);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    close(fd);
    dr_pack_close(&pack);
    assert_int_equal(access(lock, F_OK), -1);
    assert_int_equal(dr_pack_open(set, made, &o, &second, &err), DR_OK);
    dr_pack_close(&second);
    dr_dataset_unref(&set);
}

static void test_closed_early(void **state)
{
    (void)state;
    dr_dataset *set = open_set(folder), *packed;
    dr_pack_options o;
    dr_pack *pack;
    dr_error err = { 0 };
    dr_pack_defaults(&o);
    o.shard_samples = 1;
    o.check_images = false;
    assert_int_equal(dr_pack_open(set, made, &o, &pack, &err), DR_OK);
    dr_pack_run(pack, 0, &err);
    dr_pack_close(&pack);
    assert_int_equal(dr_dataset_open(made, NULL, &packed, &err), DR_ERR_STATE);
    assert_int_equal(dr_pack_open(set, made, &o, &pack, &err), DR_OK);
    assert_int_equal(dr_pack_run(pack, -1, &err), DR_OK);
    dr_pack_close(&pack);
    packed = open_set(made);
    same_samples(set, packed);
    dr_dataset_unref(&packed);
    dr_dataset_unref(&set);
}

/* However memory runs out, it is an error, and trying again succeeds. */
static void test_memory_runs_out(void **state)
{
    (void)state;
    dr_dataset *set = open_set(folder), *packed;
    dr_pack_options o;
    dr_pack *pack;
    dr_error err = { 0 };
    dr_status status = DR_ERR_NOMEM;
    dr_pack_defaults(&o);
    o.shard_samples = 4;
    o.check_images = false;
    o.workers = 1;
    for (long n = 1; status != DR_OK; n += n < 200 ? 1 : 23) {
        dr__alloc_fail_at(n, false);
        status = dr_pack_open(set, made, &o, &pack, &err);
        if (status == DR_OK)
            status = dr_pack_run(pack, -1, &err);
        dr_pack_close(&pack);
        const bool passed = dr__alloc_fail_at(0, false) < n; /* it never came to that one */
        if (status != DR_OK && (passed || status != DR_ERR_NOMEM))
            fail_msg("allocation %ld: %s", n, err.text);
        if (status == DR_OK && !passed) { /* survived without: begin anew */
            packed = open_set(made);
            same_samples(set, packed);
            dr_dataset_unref(&packed);
            char command[700];
            snprintf(command, sizeof command, "rm -r '%s'", made);
            assert_int_equal(system(command), 0);
            status = DR_ERR_NOMEM;
        }
    }
    packed = open_set(made);
    same_samples(set, packed);
    dr_dataset_unref(&packed);
    dr_dataset_unref(&set);
}

static void write_sample(int i, char byte)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%c/%02d.jpg", folder, 'a' + i % 3, i);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    for (int k = 0; k < 100 * i; k++)
        fputc(byte, f);
    fclose(f);
    const struct timespec times[2] = { { .tv_sec = 1000000 + byte }, { .tv_sec = 1000000 + byte } };
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* Files that are no images are kept as they are, and named; a file that changes is noticed. */
static void test_bad_and_changed(void **state)
{
    (void)state;
    dr_dataset *set = open_set(folder);
    dr_pack_options o;
    dr_pack *pack;
    dr_pack_stats stats;
    dr_pack_changes changes = { 0 };
    dr_error err = { 0 };
    const char *key, *why;
    dr_pack_defaults(&o);
    write_sample(3, 'x');
    assert_int_equal(dr_pack_open(set, made, &o, &pack, &err), DR_OK);
    assert_int_equal(dr_pack_run(pack, -1, &err), DR_ERR_FORMAT);
    assert_non_null(strstr(err.text, "keep_bad"));
    dr_pack_close(&pack);
    o.keep_bad = true;
    assert_int_equal(dr_pack_open(set, made, &o, &pack, &err), DR_OK);
    assert_int_equal(dr_pack_run(pack, -1, &err), DR_OK);
    dr_pack_get_stats(pack, &stats);
    assert_int_equal(stats.bad, N);
    assert_int_equal(dr_pack_bad_sample(pack, 0, &key, &why), DR_OK);
    assert_string_equal(key, "a/00.jpg");
    assert_non_null(strstr(why, "empty"));
    assert_int_equal(dr_pack_bad_sample(pack, N, &key, &why), DR_END);
    dr_pack_close(&pack);
    dr_dataset *packed = open_set(made);
    same_samples(set, packed);
    assert_int_equal(dr_dataset_compare(packed, 0, set, 0, &changes, &err), DR_OK);
    assert_true(changes.samples == N && !changes.changed && !changes.touched);
    write_sample(3, 'y');
    assert_int_equal(dr_dataset_compare(packed, 0, set, 0, &changes, &err), DR_OK);
    assert_true(changes.samples == 2 * N && changes.changed == 1 && !changes.touched);
    assert_string_equal(changes.names, "a/03.jpg");
    assert_int_equal(dr_dataset_compare(packed, 0, set, 1, &changes, &err), DR_ERR_ARG);
    assert_int_equal(dr_dataset_compare(packed, 1, set, 0, &changes, &err), DR_ERR_ARG);
    assert_int_equal(dr_dataset_compare(set, 0, set, 0, &changes, &err), DR_ERR_ARG);
    assert_int_equal(dr_pack_open(set, made, &o, &pack, &err), DR_ERR_STATE);
    assert_non_null(strstr(err.text, "a/03.jpg"));
    dr_dataset_unref(&packed);
    dr_dataset_unref(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_from_beginning_to_end, setup, tree_remove),
        cmocka_unit_test_setup_teardown(test_one_packer_at_a_time, setup, tree_remove),
        cmocka_unit_test_setup_teardown(test_closed_early, setup, tree_remove),
        cmocka_unit_test_setup_teardown(test_bad_and_changed, setup, tree_remove),
        cmocka_unit_test_setup_teardown(test_memory_runs_out, setup, tree_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
