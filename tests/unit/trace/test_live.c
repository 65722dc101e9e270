/* Live files: what is written is read, by processes of every kind; what the dead leave is removed. */
#include "unit/cm.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <drapps/drapps.h>

#include "base/alloc.h"
#include "trace/live_layout.h"
#include "trace/live_place.h"

static dr_error err;
static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/test-live-XXXXXX");
    assert_non_null(mkdtemp(folder));
    setenv("DRAPPS_LIVE", folder, 1);
    return 0;
}

/* Counts the files, and removes them if asked. */
static int n_files(bool remove)
{
    int n = 0;
    DIR *list = opendir(folder);
    assert_non_null(list);
    for (const struct dirent *e; (e = readdir(list));)
        if (e->d_name[0] != '.') {
            n++;
            if (remove)
                unlinkat(dirfd(list), e->d_name, 0);
        }
    closedir(list);
    return n;
}

static int drop_folder(void **state)
{
    (void)state;
    n_files(true);
    rmdir(folder);
    return 0;
}

static json_t *read_live(int pid)
{
    char *text = NULL;
    assert_ok(dr_live_read(pid, &text, &err));
    json_t *list = json_loads(text, 0, NULL);
    assert_non_null(list);
    dr_text_free(&text);
    return list;
}

static double of(json_t *o, const char *part, const char *name)
{
    json_t *value = json_object_get(json_object_get(o, part), name);
    assert_non_null(value);
    return json_number_value(value);
}

static void put(dr_live *live, double x)
{
    dr_snapshot s = { .time_ns = 5, .number = 1, .present = 5, .modelled = 4, .n_cpus = 3 };
    double flow[DR_N_FLOWS], knobs[DR_N_KNOBS];
    for (int i = 0; i < DR_N_SENSORS; i++)
        s.value[i] = x, s.level[i] = x / 1e9;
    for (int i = 0; i < 3; i++)
        s.cpu[i] = 0.25f * (float)i;
    for (int i = 0; i < DR_N_FLOWS; i++)
        flow[i] = x;
    for (int i = 0; i < DR_N_KNOBS; i++)
        knobs[i] = x;
    dr_live_put(live, &s, flow, DR_N_FLOWS, knobs, DR_N_KNOBS);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    dr_live *live = dr_live_open("a/data/set", "analytic");
    assert_non_null(live);
    put(live, 3.5);
    json_t *list = read_live((int)getpid()), *o = json_array_get(list, 0);
    assert_int_equal(json_array_size(list), 1);
    assert_int_equal(json_integer_value(json_object_get(o, "pid")), getpid());
    assert_string_equal(json_string_value(json_object_get(o, "name")), "a/data/set");
    assert_string_equal(json_string_value(json_object_get(o, "policy")), "analytic");
    assert_non_null(strstr(json_string_value(json_object_get(o, "command")), "live"));
    assert_int_equal(json_object_size(json_object_get(o, "sensors")), 2); /* present: bits 0 and 2 */
    assert_true(of(o, "sensors", "cpu_total") == 3.5 && of(o, "sensors", "cpu_own") == 3.5);
    assert_true(of(o, "levels", "cpu_own") == 3.5 / 1e9);
    assert_string_equal(json_string_value(json_array_get(json_object_get(o, "modelled"), 0)), "cpu_own");
    assert_int_equal(json_array_size(json_object_get(o, "cpu")), 3);
    assert_true(json_number_value(json_array_get(json_object_get(o, "cpu"), 2)) == 0.5);
    assert_int_equal(json_object_size(json_object_get(o, "flow")), DR_N_FLOWS);
    assert_true(of(o, "flow", "samples") == 3.5 && of(o, "flow", "consumers") == 3.5);
    assert_true(of(o, "knobs", "workers") == 3.5 && of(o, "knobs", "priority") == 3.5);
    assert_true(json_integer_value(json_object_get(o, "time_ns")) >=
                json_integer_value(json_object_get(o, "started_ns")));
    json_decref(list);
    dr_live_close(&live);
    assert_null(live);
    assert_int_equal(n_files(false), 0);
}

/* Bins have ends before anything was counted, the last has none. */
static void spreads_have_bins(void **state)
{
    (void)state;
    dr_live *live = dr_live_open("x", "fixed");
    for (uint64_t n = 0; n < 3; n++) {
        dr_spread spreads[DR_N_SPREADS] = { { 0 } };
        dr_spread *latencies = &spreads[DR_SPREAD_LATENCY];
        *latencies = (dr_spread){ .sum = 2.5 * (double)n, .n = { [1] = n, [DR_SPREAD_BINS - 1] = 2 * n } };
        if (n)
            dr_live_spreads(live, spreads, DR_N_SPREADS);
        json_t *list = read_live(0), *found = json_object_get(json_array_get(list, 0), "spreads");
        json_t *latency = json_object_get(found, "latency"), *bins = json_object_get(latency, "bins");
        json_t *second = json_array_get(bins, 1), *last = json_array_get(bins, DR_SPREAD_BINS - 1);
        assert_int_equal(json_object_size(found), DR_N_SPREADS);
        assert_int_equal(json_array_size(bins), DR_SPREAD_BINS);
        assert_float_equal(json_number_value(json_array_get(second, 0)), 0.001048576, 1e-15);
        assert_int_equal(json_integer_value(json_array_get(second, 1)), n);
        assert_true(json_is_null(json_array_get(last, 0)));
        assert_int_equal(json_integer_value(json_array_get(last, 1)), 2 * n);
        assert_true(json_number_value(json_object_get(latency, "sum")) == 2.5 * (double)n);
        json_decref(list);
    }
    dr_live_close(&live);
}

static void a_knob_that_is_missing(void **state)
{
    (void)state;
    dr_live *live = dr_live_open("x", "fixed");
    const double knobs[2] = { NAN, 2 };
    dr_live_put(live, NULL, NULL, 0, knobs, 2);
    json_t *list = read_live(0), *found = json_object_get(json_array_get(list, 0), "knobs");
    assert_null(json_object_get(found, "workers"));
    assert_true(json_number_value(json_object_get(found, "readers")) == 2);
    json_decref(list);
    dr_live_close(&live);
}

static void the_last_decisions(void **state)
{
    (void)state;
    dr_live *live = dr_live_open("x", "rules");
    for (int i = 1; i <= 20; i++) {
        dr_decision d = { .time_ns = (uint64_t)i * 1000,
                          .number = (uint64_t)i,
                          .bound = DR_BOUND_CPU,
                          .reward = -0.25 * i,
                          .changed = 1u << DR_KNOB_PREFETCH,
                          .guarded = i == 20 };
        d.before[DR_KNOB_PREFETCH] = i;
        d.after[DR_KNOB_PREFETCH] = i + 1;
        snprintf(d.reason, sizeof d.reason, "reason \"%d\" \xc3\xa4", i);
        dr_live_decision(live, &d);
    }
    json_t *list = read_live(0), *o = json_array_get(list, 0), *all = json_object_get(o, "decisions");
    assert_int_equal(json_array_size(all), 16);
    for (int i = 0; i < 16; i++) {
        json_t *d = json_array_get(all, (size_t)i),
               *change = json_object_get(json_object_get(d, "changes"), "prefetch");
        char want[64];
        snprintf(want, sizeof want, "reason \"%d\" \xc3\xa4", i + 5);
        assert_int_equal(json_integer_value(json_object_get(d, "number")), i + 5);
        assert_string_equal(json_string_value(json_object_get(d, "reason")), want);
        assert_string_equal(json_string_value(json_object_get(d, "bound")), "cpu");
        assert_true(json_number_value(json_object_get(d, "reward")) == -0.25 * (i + 5));
        assert_int_equal(json_is_true(json_object_get(d, "guarded")), i == 15);
        assert_int_equal(json_object_size(json_object_get(d, "changes")), 1);
        assert_true(json_number_value(json_array_get(change, 1)) == i + 6);
    }
    assert_int_equal(json_integer_value(json_object_get(json_object_get(o, "bounds"), "cpu")), 20);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(o, "bounds"), "memory")), 0);
    assert_true(of(o, "turns", "prefetch") == 20 && of(o, "turns", "workers") == 0);
    json_decref(list);
    dr_live_close(&live);
}

/* Those that turned nothing count, and the last of them is there; the list is for the others. */
static void decisions_that_turned_nothing(void **state)
{
    (void)state;
    dr_live *live = dr_live_open("x", "rules");
    json_t *list = read_live(0);
    assert_true(json_is_null(json_object_get(json_array_get(list, 0), "last")));
    json_decref(list);
    for (int i = 1; i <= 40; i++) {
        dr_decision d = { .number = (uint64_t)i, .bound = DR_BOUND_CONSUMER, .changed = i == 2, .guarded = i == 4 };
        dr_live_decision(live, &d);
    }
    list = read_live(0);
    json_t *o = json_array_get(list, 0), *all = json_object_get(o, "decisions");
    assert_int_equal(json_array_size(all), 2);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(all, 1), "number")), 4);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(o, "last"), "number")), 40);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(o, "bounds"), "consumer")), 40);
    json_decref(list);
    dr_live_close(&live);
}

static void names_that_are_no_text(void **state)
{
    (void)state;
    char name[1000];
    memset(name, 'x', sizeof name - 1);
    name[999] = 0;
    name[0] = '\xff';
    dr_live *live = dr_live_open(name, NULL);
    json_t *list = read_live(0);
    const char *found = json_string_value(json_object_get(json_array_get(list, 0), "name"));
    assert_non_null(found);
    assert_int_equal(found[0], '?');
    assert_true(strlen(found) > 100 && strlen(found) < 256);
    json_decref(list);
    dr_live_close(&live);
}

static void off_and_nowhere(void **state)
{
    (void)state;
    setenv("DRAPPS_LIVE", "off", 1);
    assert_null(dr_live_open("x", "y"));
    put(NULL, 1);
    dr_live_decision(NULL, NULL);
    dr_live_spreads(NULL, NULL, 0);
    dr_live_close(NULL);
    json_t *list = read_live(0);
    assert_int_equal(json_array_size(list), 0);
    json_decref(list);
    setenv("DRAPPS_LIVE", "/proc/nowhere/at/all", 1);
    assert_null(dr_live_open("x", "y"));
    char *text = NULL;
    assert_fails(dr_live_read(-1, &text, &err), DR_ERR_ARG, "got -1");
}

/* A folder that others may write to, one that is a link, one that is a file: none is used. */
static void folders_that_are_not_safe(void **state)
{
    (void)state;
    char path[100];
    snprintf(path, sizeof path, "%s/open", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(chmod(path, 0777), 0);
    setenv("DRAPPS_LIVE", path, 1);
    assert_null(dr_live_open("x", "y"));
    assert_int_equal(chmod(path, 0700), 0);
    dr_live *live = dr_live_open("x", "y");
    assert_non_null(live);
    dr_live_close(&live);
    char link[100];
    snprintf(link, sizeof link, "%s/link", folder);
    assert_int_equal(symlink(path, link), 0);
    setenv("DRAPPS_LIVE", link, 1);
    assert_null(dr_live_open("x", "y"));
    unlink(link);
    rmdir(path);
    int fd = open(link, O_CREAT | O_WRONLY, 0600);
    close(fd);
    assert_null(dr_live_open("x", "y"));
}

static void a_new_folder_is_private(void **state)
{
    (void)state;
    struct stat s;
    char path[100];
    snprintf(path, sizeof path, "%s/new", folder);
    setenv("DRAPPS_LIVE", path, 1);
    dr_live *live = dr_live_open("x", "y");
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(s.st_mode & 0777, 0700);
    dr_live_close(&live);
    rmdir(path);
}

/* Another process that opens a live file and ends in some way; returns its pid. */
static pid_t other(void (*life)(int ready))
{
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(ready[0]);
        life(ready[1]);
        _exit(0);
    }
    close(ready[1]);
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static void lives_on(int ready)
{
    dr_live *live = dr_live_open("other", "rules");
    put(live, 1);
    if (write(ready, "x", 1) == 1)
        for (;;)
            pause();
}

static void a_killed_process(void **state)
{
    (void)state;
    pid_t pid = other(lives_on);
    json_t *list = read_live(pid);
    assert_int_equal(json_array_size(list), 1);
    json_decref(list);
    list = read_live((int)getpid());
    assert_int_equal(json_array_size(list), 0);
    json_decref(list);
    assert_int_equal(n_files(false), 1);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_int_equal(n_files(false), 1);
    list = read_live(0);
    assert_int_equal(json_array_size(list), 0);
    json_decref(list);
    assert_int_equal(n_files(false), 0);
}

static void a_new_writer_removes_it_too(void **state)
{
    (void)state;
    pid_t pid = other(lives_on);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    dr_live *live = dr_live_open("x", "y");
    assert_int_equal(n_files(false), 1);
    dr_live_close(&live);
    assert_int_equal(n_files(false), 0);
}

static pid_t *grandchild; /* in shared memory */

/* Its child keeps the descriptor and with it the lock. */
static void leaves_a_child(int ready)
{
    dr_live *live = dr_live_open("other", "rules");
    pid_t child = fork();
    if (child == 0) {
        close(ready);
        for (;;)
            pause();
    }
    *grandchild = child;
    if (live && write(ready, "x", 1) == 1)
        for (;;)
            pause();
}

static void a_killed_process_with_a_child(void **state)
{
    (void)state;
    grandchild = mmap(NULL, sizeof *grandchild, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid = other(leaves_a_child);
    json_t *list = read_live(0);
    assert_int_equal(json_array_size(list), 1);
    json_decref(list);
    kill(pid, SIGKILL);
    siginfo_t info;
    waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT); /* dead, not buried */
    list = read_live(0);
    assert_int_equal(json_array_size(list), 0);
    json_decref(list);
    assert_int_equal(n_files(false), 0);
    waitpid(pid, NULL, 0);
    assert_true(*grandchild > 0);
    kill(*grandchild, SIGKILL);
    munmap(grandchild, sizeof *grandchild);
}

static void a_child_neither_writes_nor_removes(void **state)
{
    (void)state;
    dr_live *live = dr_live_open("x", "y");
    put(live, 7);
    pid_t pid = fork();
    if (pid == 0) {
        put(live, 8);
        dr_decision d = { .number = 1 };
        dr_live_decision(live, &d);
        dr_live_close(&live);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    json_t *list = read_live(0), *o = json_array_get(list, 0);
    assert_int_equal(json_array_size(list), 1);
    assert_true(of(o, "flow", "samples") == 7);
    assert_int_equal(json_array_size(json_object_get(o, "decisions")), 0);
    json_decref(list);
    put(live, 9); /* and the lock is still ours */
    list = read_live(0);
    assert_true(of(json_array_get(list, 0), "flow", "samples") == 9);
    json_decref(list);
    dr_live_close(&live);
}

/* --- other versions --- */

static int write_file(const char *name, const void *bytes, size_t n)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), (ssize_t)n);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    return fd;
}

/* Two sensors, one flow, two knobs, one bound, one spread, none of which this version knows. */
static char *foreign_file(dr__live_head *head)
{
    static const char names[] = "hue\0mood\0drift\0dial\0lever\0luck\0gait";
    dr__live_map map;
    *head = (dr__live_head){ .pid = (int32_t)getpid(), .pid_space = dr__live_pid_namespace(), .started_ns = 4 };
    dr__live_head_init(head);
    head->start_ticks = dr__live_start_ticks(head->pid);
    strcpy(head->version, "9.9");
    head->n[DR__LIVE_SENSORS] = 2, head->n[DR__LIVE_FLOWS] = 1, head->n[DR__LIVE_KNOBS] = 2;
    head->n[DR__LIVE_BOUNDS] = 1, head->n[DR__LIVE_SPREADS] = 1, head->n_bins = 3;
    head->n_cpus = 2, head->n_kept = 1, head->reason_bytes = 16;
    head->names_bytes = 40;
    head->state_at = head->names_at + 40;
    dr__live_map_of(head, &map);
    head->bytes = head->state_at + (uint32_t)map.words * 8;
    char *file = calloc(1, head->bytes);
    uint64_t *words = (uint64_t *)(file + head->state_at);
    memcpy(file + head->names_at, names, sizeof names);
    words[DR__LIVE_PRESENT] = 2, words[DR__LIVE_DECIDED] = 3;
    double x = 1.5;
    memcpy(&words[map.values + 1], &x, 8);
    memcpy(&words[map.flow], &x, 8);
    words[map.turns + 1] = 6;
    memcpy(&words[map.spreads + DR__LIVE_BINS + 2], &x, 8);
    words[map.spreads + DR__LIVE_BINS + 3] = 8;
    words[map.decisions + DR__LIVE_CHANGED] = 2;
    memcpy(&words[map.decisions + DR__LIVE_BEFORE + 3], &x, 8);
    memcpy(&words[map.decisions + DR__LIVE_BEFORE + 4], "because so it is", 16); /* without an end */
    memcpy(file, head, sizeof *head);
    return file;
}

static void tables_of_another_version(void **state)
{
    (void)state;
    dr__live_head head;
    char *file = foreign_file(&head);
    int fd = write_file("9.live", file, head.bytes);
    json_t *list = read_live(0), *o = json_array_get(list, 0);
    assert_int_equal(json_array_size(list), 1);
    assert_string_equal(json_string_value(json_object_get(o, "version")), "9.9");
    assert_int_equal(json_object_size(json_object_get(o, "sensors")), 1);
    assert_true(of(o, "sensors", "mood") == 1.5 && of(o, "flow", "drift") == 1.5);
    assert_true(of(o, "turns", "dial") == 0 && of(o, "turns", "lever") == 6);
    json_t *bins = json_object_get(json_object_get(json_object_get(o, "spreads"), "gait"), "bins");
    assert_int_equal(json_array_size(bins), 3);
    assert_true(json_number_value(json_array_get(json_array_get(bins, 1), 0)) == 1.5);
    assert_int_equal(json_integer_value(json_array_get(json_array_get(bins, 1), 1)), 8);
    json_t *d = json_array_get(json_object_get(o, "decisions"), 0);
    assert_string_equal(json_string_value(json_object_get(d, "reason")), "because so it is");
    assert_string_equal(json_string_value(json_object_get(d, "bound")), "luck");
    assert_true(json_number_value(json_array_get(json_object_get(json_object_get(d, "changes"), "lever"), 1)) == 1.5);
    json_decref(list);
    close(fd);
    free(file);
}

static void another_format_is_said(void **state)
{
    (void)state;
    dr__live_head head = { .pid = (int32_t)getpid(), .format = 7, .pid_space = dr__live_pid_namespace() };
    head.start_ticks = dr__live_start_ticks(head.pid);
    memcpy(head.magic, DR__LIVE_MAGIC, sizeof head.magic);
    int fd = write_file("8.live", &head, DR__LIVE_COMMON);
    json_t *list = read_live(0);
    const char *text = json_string_value(json_object_get(json_array_get(list, 0), "unreadable"));
    assert_non_null(text);
    assert_non_null(strstr(text, "format 7"));
    json_decref(list);
    close(fd);
}

/* Two containers that share the folder may each have a process of that number. */
static void a_process_of_another_namespace(void **state)
{
    (void)state;
    dr__live_head head = { .pid = (int32_t)getpid(), .format = 7, .pid_space = dr__live_pid_namespace() + 1 };
    memcpy(head.magic, DR__LIVE_MAGIC, sizeof head.magic);
    int fd = write_file("9.live", &head, DR__LIVE_COMMON);
    json_t *own = read_live((int)getpid()), *all = read_live(0);
    assert_int_equal(json_array_size(own), 0);
    assert_int_equal(json_array_size(all), 1);
    json_decref(own);
    json_decref(all);
    close(fd);
}

/* Every byte of head and names set to something else, and every length: no crash, and JSON comes out. */
static void damaged_files(void **state)
{
    (void)state;
    dr__live_head head;
    char *file = foreign_file(&head);
    const unsigned char wrong[] = { 0, 1, 0x7f, 0xff };
    for (size_t i = 8; i < head.state_at; i++) {
        if (i >= offsetof(dr__live_head, version) && i < offsetof(dr__live_head, n) && i % 16)
            continue; /* texts: some will do */
        for (size_t k = 0; k < sizeof wrong; k++) {
            char before = file[i];
            file[i] = (char)wrong[k];
            int fd = write_file("7.live", file, head.bytes);
            json_decref(read_live(0));
            close(fd);
            file[i] = before;
        }
    }
    for (size_t n = 0; n < head.bytes; n += 7) {
        int fd = write_file("7.live", file, n);
        json_decref(read_live(0));
        close(fd);
    }
    free(file);
}

/* --- many at once --- */

static atomic_bool stop;

static void *keep_putting(void *arg)
{
    for (double x = 1; !atomic_load(&stop); x++)
        put(arg, x);
    return NULL;
}

/* Every value that a put writes is the same: a picture with two is torn. */
static void no_picture_is_torn(void **state)
{
    (void)state;
    dr_live *live = dr_live_open("x", "y");
    pthread_t thread;
    put(live, 1);
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&thread, NULL, keep_putting, live), 0);
    int seen = 0;
    for (int i = 0; i < 300; i++) {
        json_t *list = read_live((int)getpid()), *o = json_array_get(list, 0), *value;
        const char *name;
        if (o) { /* a writer without a pause may keep a reader from ever getting a whole picture */
            double first = of(o, "flow", "samples");
            seen++;
            json_object_foreach(json_object_get(o, "flow"), name, value) assert_true(json_number_value(value) == first);
            json_object_foreach(json_object_get(o, "knobs"), name, value)
                assert_true(json_number_value(value) == first);
            assert_true(of(o, "sensors", "cpu_own") == first);
        }
        json_decref(list);
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    assert_true(seen > 0);
    dr_live_close(&live);
}

static void *open_and_close(void *arg)
{
    for (int i = 0; i < 40; i++) {
        dr_live *live = dr_live_open("x", "y");
        if (!live)
            atomic_store((atomic_bool *)arg, true);
        put(live, 1);
        dr_live_close(&live);
    }
    return NULL;
}

/* Each opening sweeps the folder while others are about to lock their files. */
static void opened_by_many_at_once(void **state)
{
    (void)state;
    pthread_t threads[4];
    atomic_bool failed = false;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, &failed), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_false(atomic_load(&failed));
    assert_int_equal(n_files(false), 0);
}

static void memory_that_is_short(void **state)
{
    (void)state;
    dr__alloc_fail_at(1, false);
    assert_null(dr_live_open("x", "y"));
    dr_live *live = dr_live_open("x", "y");
    for (long n = 1; n < 4; n++) {
        char *text = NULL;
        dr__alloc_fail_at(n, true);
        dr_status status = dr_live_read(0, &text, &err);
        dr__alloc_fail_at(0, false);
        assert_int_equal(status, DR_ERR_NOMEM);
        assert_null(text);
    }
    dr_live_close(&live);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, drop_folder)
    const struct CMUnitTest tests[] = {
        TEST(what_is_written_is_read),
        TEST(a_knob_that_is_missing),
        TEST(spreads_have_bins),
        TEST(the_last_decisions),
        TEST(decisions_that_turned_nothing),
        TEST(names_that_are_no_text),
        TEST(off_and_nowhere),
        TEST(folders_that_are_not_safe),
        TEST(a_new_folder_is_private),
        TEST(a_killed_process),
        TEST(a_new_writer_removes_it_too),
        TEST(a_killed_process_with_a_child),
        TEST(a_child_neither_writes_nor_removes),
        TEST(tables_of_another_version),
        TEST(another_format_is_said),
        TEST(a_process_of_another_namespace),
        TEST(damaged_files),
        TEST(no_picture_is_torn),
        TEST(opened_by_many_at_once),
        TEST(memory_that_is_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
