/* A store in use: what was put is found, by the next process too; limits, full disks, forks, many threads. */
#include "unit/store/scratch.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "store/store_parts.h"

static dr_error err;

enum { N = 40 };

static dr_store_stats stats_of(dr_store *s)
{
    dr_store_stats stats;
    dr_store_get_stats(s, &stats);
    return stats;
}

/* Opened anew, the store has n records. */
static void assert_kept(uint64_t n)
{
    dr_store *s = store_open("a", 0);
    assert_int_equal(stats_of(s).records, n);
    dr_store_close(&s);
}

static void what_was_put_is_found(void **state)
{
    (void)state;
    dr_store *s = store_open("a", 0);
    for (unsigned i = 0; i < N; i++) {
        assert_false(store_has(s, i));
        assert_true(store_put(s, i));
        assert_true(store_has(s, i));
    }
    dr_store_stats st = stats_of(s);
    assert_int_equal(st.records, N);
    assert_int_equal(st.hits, N);
    assert_int_equal(st.misses, N);
    assert_int_equal(st.written, N);
    assert_string_equal(st.stopped, "");
    dr_store_close(&s);
    s = store_open("a", 0);
    for (unsigned i = 0; i < N; i++)
        assert_true(store_has(s, i));
    assert_false(store_has(s, N));
    dr_store_close(&s);
}

static void another_identity_is_another_store(void **state)
{
    (void)state;
    dr_store *a = store_open("a", 0);
    assert_true(store_put(a, 1));
    dr_store *b = store_open("b", 0);
    assert_false(store_has(b, 1));
    /* Not even when a file comes into the wrong folder. */
    char command[1024], path[512];
    data_path(path);
    snprintf(command, sizeof command, "for d in %s/*; do cp %s $d/data-copied.drst; done 2>/dev/null", scratch, path);
    assert_int_equal(system(command), 0);
    dr_store_close(&b);
    b = store_open("b", 0);
    assert_int_equal(stats_of(b).records, 0);
    dr_store_close(&a);
    dr_store_close(&b);
}

static void two_that_are_open_find_each_others(void **state)
{
    (void)state;
    dr_store *a = store_open("a", 0), *b = store_open("a", 0);
    for (unsigned i = 0; i < N; i++)
        assert_true(store_put(i % 2 ? a : b, i));
    dr_store *c = store_open("a", 0);
    for (unsigned i = 0; i < N; i++)
        assert_true(store_has(c, i));
    dr_store_close(&c);
    store_look_again(a);
    for (unsigned i = 0; i < N; i++)
        assert_true(store_has(a, i));
    dr_store_close(&a);
    dr_store_close(&b);
}

static void the_limit_ends_storing(void **state)
{
    (void)state;
    dr_store *s = store_open("a", 20000);
    unsigned n = 0;
    while (n < 1000 && store_put(s, n))
        n++;
    dr_store_stats st = stats_of(s);
    assert_true(n > 3 && n < 1000);
    assert_non_null(strstr(st.stopped, "cache_limit is reached"));
    assert_true(st.disk_bytes <= 20000);
    for (unsigned i = 0; i < n; i++)
        assert_true(store_has(s, i));
    /* It counts what lies in other stores of the folder. */
    dr_store *b = store_open("b", st.disk_bytes / 2);
    assert_false(store_put(b, 1));
    dr_store_close(&b);
    dr_store_close(&s);
}

static void a_full_disk_ends_storing(void **state)
{
    (void)state;
    struct rlimit before, small;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = 1000;
    dr_store *s = store_open("a", 0);
    setrlimit(RLIMIT_FSIZE, &small);
    unsigned n = 0;
    while (n < 100 && store_put(s, n))
        n++;
    setrlimit(RLIMIT_FSIZE, &before);
    assert_true(n > 0 && n < 100);
    assert_non_null(strstr(stats_of(s).stopped, "writing failed: File too large"));
    for (unsigned i = 0; i < n; i++)
        assert_true(store_has(s, i));
    assert_false(store_put(s, n)); /* it stays off */
    dr_store_close(&s);
    s = store_open("a", 0); /* and nothing half is left */
    assert_int_equal(stats_of(s).records, n);
    assert_true(store_put(s, n));
    dr_store_close(&s);
}

static void a_folder_that_is_deleted_in_use_costs_nothing_but_time(void **state)
{
    (void)state;
    char command[128];
    dr_store *s = store_open("a", 0);
    assert_true(store_put(s, 1));
    snprintf(command, sizeof command, "rm -rf '%s'/*", scratch);
    assert_int_equal(system(command), 0);
    assert_true(store_has(s, 1)); /* the open file is still there */
    assert_true(store_put(s, 2));
    assert_true(store_has(s, 2));
    dr_store *b = store_open("a", 0);
    assert_false(store_has(b, 1));
    assert_true(store_put(b, 1));
    dr_store_close(&b);
    dr_store_close(&s);
}

static void folders_that_cannot_be_are_refused(void **state)
{
    (void)state;
    dr_store *s = NULL;
    char path[128];
    assert_fails(dr_store_open("/proc/none/cache", "a", 0, &s, &err), DR_ERR_IO, "cannot make the folder /proc/none");
    snprintf(path, sizeof path, "%s/file", scratch);
    save_file(path, "x", 1);
    assert_int_not_equal(dr_store_open(path, "a", 0, &s, &err), DR_OK);
    assert_fails(dr_store_open("", "a", 0, &s, &err), DR_ERR_ARG, "needs a folder");
    assert_fails(dr_store_open(scratch, NULL, 0, &s, &err), DR_ERR_ARG, "needs an identity");
    assert_null(s);
}

static void store_folder(char path[512])
{
    dr_store *s = store_open("a", 0);
    assert_true(store_put(s, 1));
    dr_store_close(&s);
    data_path(path);
    *strrchr(path, '/') = 0;
}

static void a_store_that_every_user_may_write_to_is_refused(void **state)
{
    (void)state;
    dr_store *s = NULL;
    char path[512];
    store_folder(path);
    assert_int_equal(chmod(path, 0777), 0);
    assert_fails(dr_store_open(scratch, "a", 0, &s, &err), DR_ERR_ARG, "every user may write to ");
    assert_null(s);
    assert_int_equal(chmod(path, 0775), 0); /* a group is trusted */
    assert_int_equal(chmod(scratch, 0777), 0);
    assert_kept(1); /* a public folder, but our own store in it */
    assert_int_equal(chmod(scratch, 01777), 0);
    assert_kept(1);
}

/* Giving files away takes root, as in a container. */
static void a_strangers_store_in_a_public_folder_is_refused(void **state)
{
    (void)state;
    dr_store *s = NULL;
    char path[512];
    if (geteuid() != 0)
        skip();
    store_folder(path);
    assert_int_equal(chown(path, 65534, 65534), 0);
    assert_kept(1); /* the folder is ours: we have put it there */
    assert_int_equal(chmod(scratch, 01777), 0);
    assert_fails(dr_store_open(scratch, "a", 0, &s, &err), DR_ERR_ARG, "belongs to user 65534");
    assert_null(s);
}

static void the_child_of_a_fork_leaves_it_alone(void **state)
{
    (void)state;
    dr_store *s = store_open("a", 0);
    assert_true(store_put(s, 1));
    pid_t child = fork();
    if (child == 0) {
        bool touched = store_put(s, 2) || store_has(s, 1);
        dr_store_close(&s);
        _exit(touched);
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    assert_true(store_put(s, 3));
    assert_true(store_has(s, 1) && store_has(s, 3) && !store_has(s, 2));
    dr_store_close(&s);
}

/* A process that puts until it is killed; returns when its first sample is there. */
static pid_t start_writer(void)
{
    int ends[2];
    char byte = 1;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dr_store *s = store_open("a", 0);
        for (unsigned i = 0;; i++)
            if (store_put(s, i % 5000) && !i && write(ends[1], &byte, 1) != 1)
                _exit(1);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    return child;
}

/* Killed at any moment: what the next process finds is right (store_has compares), and storing goes on. */
static void a_killed_writer_leaves_only_whole_samples(void **state)
{
    (void)state;
    uint64_t most = 1;
    for (unsigned round = 0; round < 12; round++) {
        pid_t child = start_writer();
        usleep(700 * round);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        dr_store *s = store_open("a", 0);
        uint64_t n = stats_of(s).records;
        assert_true(n >= most);
        most = n;
        for (unsigned i = 0; i < 5000; i++)
            store_has(s, i);
        assert_int_equal(stats_of(s).damaged, 0);
        dr_store_close(&s);
    }
}

static void *put_many(void *arg)
{
    dr_store *s = arg;
    for (unsigned i = 0; i < 300; i++) {
        store_put(s, i % 100);
        store_has(s, (i * 7) % 100);
    }
    return NULL;
}

static void many_threads_use_one(void **state)
{
    (void)state;
    pthread_t threads[4];
    dr_store *s = store_open("a", 0);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, put_many, s);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < 100; i++)
        assert_true(store_has(s, i));
    assert_int_equal(stats_of(s).damaged, 0);
    dr_store_close(&s);
    assert_kept(100);
}

static void what_is_discarded_is_gone(void **state)
{
    (void)state;
    dr_store *s = store_open("a", 0);
    assert_true(store_put(s, 1));
    dr_store_discard(s, "it does not pay");
    assert_string_equal(stats_of(s).stopped, "it does not pay");
    assert_false(store_put(s, 2));
    dr_store_close(&s);
    assert_kept(0);
}

/* Each allocation fails once: the store does less, and nothing leaks or breaks. */
static void memory_that_runs_short_is_survived(void **state)
{
    (void)state;
    for (long n = 1; n < 60; n++) {
        dr_store *s = NULL;
        dr__alloc_fail_at(n, false);
        if (dr_store_open(scratch, "a", 0, &s, &err) == DR_OK)
            for (unsigned i = 0; i < 3; i++) {
                store_put(s, i);
                store_has(s, i);
            }
        dr__alloc_fail_at(0, false);
        if (s)
            dr_store_close(&s);
    }
}

/* Also while its file is made: none is left behind that nothing will be put into. */
static void memory_that_runs_short_leaves_no_empty_file(void **state)
{
    (void)state;
    bool stopped = false;
    for (long n = 1; n < 12; n++) {
        dr_store *s = store_open("a", 0);
        dr__alloc_fail_at(n, false);
        store_put(s, 0);
        dr__alloc_fail_at(0, false);
        store_put(s, 0);
        dr_store_stats st = stats_of(s);
        assert_int_equal(n_data_files(), st.written > 0);
        assert_int_equal(st.written > 0, !st.stopped[0]);
        stopped |= !strcmp(st.stopped, "out of memory");
        dr_store_close(&s);
        scratch_remove(NULL);
        scratch_make(NULL);
    }
    assert_true(stopped);
}

static void memory_that_runs_short_in_reading_costs_no_sample(void **state)
{
    (void)state;
    uint8_t memory[4096];
    dr_store *s = store_open("a", 0);
    for (unsigned i = 0; i < N; i++) {
        dr_stored found;
        dr_store_key key = key_of(s, i);
        assert_true(store_put(s, i));
        assert_true(dr_store_find(s, &key, &found));
        assert_true(found.bytes <= sizeof memory);
        dr__alloc_fail_at(1, false);
        bool good = dr_store_read(s, &found, memory);
        dr__alloc_fail_at(0, false);
        assert_int_equal(good, found.codec == DR__BYTES_NONE);
        assert_true(store_has(s, i));
    }
    assert_int_equal(stats_of(s).damaged, 0);
    dr_store_close(&s);
}

/* --- many files --- */

enum { FILES = 70 };

/* As many processes have each put one sample: 0 .. FILES - 1. */
static void make_files(void)
{
    for (unsigned i = 0; i < FILES; i++) {
        dr_store *s = store_open("a", 0);
        assert_true(store_put(s, i));
        dr_store_close(&s);
    }
    assert_true(n_data_files() >= FILES);
}

static size_t n_descriptors(void)
{
    size_t n = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}

static void many_files_need_few_descriptors(void **state)
{
    (void)state;
    dr_store *writer = store_open("a", 0);
    assert_true(store_put(writer, FILES));
    make_files();
    size_t before = n_descriptors();
    dr_store *s = store_open("a", 0);
    assert_int_equal(stats_of(s).records, FILES + 1);
    for (unsigned i = 0; i < 2 * (FILES + 1); i++) {
        assert_true(store_has(s, i % (FILES + 1)));
        assert_true(n_descriptors() <= before + 65); /* one is the folder's */
    }
    /* What is put into a file that is closed here is found. */
    assert_true(store_put(writer, FILES + 1));
    store_look_again(s);
    assert_true(store_has(s, FILES + 1));
    assert_true(store_put(s, FILES + 2));
    assert_true(store_has(s, FILES + 2));
    assert_int_equal(stats_of(s).damaged, 0);
    dr_store_close(&writer);
    dr_store_close(&s);
    assert_int_equal(n_descriptors(), before - 2);
}

/* For now, not for good. */
static void a_lack_of_descriptors_costs_no_sample(void **state)
{
    (void)state;
    struct rlimit before, none;
    make_files();
    dr_store *s = store_open("a", 0);
    s->most_open = FILES; /* so that none is closed for another */
    getrlimit(RLIMIT_NOFILE, &before);
    none = before;
    none.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &none);
    unsigned n = 0;
    for (unsigned i = 0; i < FILES; i++)
        n += store_has(s, i);
    setrlimit(RLIMIT_NOFILE, &before);
    assert_int_equal(n, 64);
    assert_int_equal(stats_of(s).damaged, 0);
    for (unsigned i = 0; i < FILES; i++)
        assert_true(store_has(s, i));
    dr_store_close(&s);
}

static void closed_files_that_are_deleted_are_made_again(void **state)
{
    (void)state;
    char command[128];
    make_files();
    dr_store *s = store_open("a", 0);
    snprintf(command, sizeof command, "rm '%s'/*/data-*", scratch);
    assert_int_equal(system(command), 0);
    unsigned n = 0;
    for (unsigned i = 0; i < FILES; i++)
        if (!store_has(s, i)) {
            n++;
            assert_true(store_put(s, i));
        }
    assert_true(n >= FILES - 64);
    for (unsigned i = 0; i < FILES; i++)
        if (!store_has(s, i))
            assert_true(store_put(s, i) && store_has(s, i));
    dr_store_close(&s);
}

static void threads_share_few_descriptors(void **state)
{
    (void)state;
    pthread_t threads[4];
    make_files();
    dr_store *s = store_open("a", 0);
    s->most_open = 2;
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, put_many, s);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < 100; i++)
        assert_true(store_has(s, i));
    assert_int_equal(stats_of(s).damaged, 0);
    dr_store_close(&s);
}

#define with_folder(test) cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_folder(what_was_put_is_found),
        with_folder(another_identity_is_another_store),
        with_folder(two_that_are_open_find_each_others),
        with_folder(the_limit_ends_storing),
        with_folder(a_full_disk_ends_storing),
        with_folder(a_folder_that_is_deleted_in_use_costs_nothing_but_time),
        with_folder(folders_that_cannot_be_are_refused),
        with_folder(a_store_that_every_user_may_write_to_is_refused),
        with_folder(a_strangers_store_in_a_public_folder_is_refused),
        with_folder(the_child_of_a_fork_leaves_it_alone),
        with_folder(a_killed_writer_leaves_only_whole_samples),
        with_folder(many_threads_use_one),
        with_folder(what_is_discarded_is_gone),
        with_folder(memory_that_runs_short_is_survived),
        with_folder(memory_that_runs_short_leaves_no_empty_file),
        with_folder(memory_that_runs_short_in_reading_costs_no_sample),
        with_folder(many_files_need_few_descriptors),
        with_folder(a_lack_of_descriptors_costs_no_sample),
        with_folder(closed_files_that_are_deleted_are_made_again),
        with_folder(threads_share_few_descriptors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
