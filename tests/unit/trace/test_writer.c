/* The writer: many threads, limits, full disks, forks, names by the environment. */
#include "unit/trace/some_records.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "trace/event.h"

static dr_error err;
static const dr_trace_options all_spans = { .size = sizeof all_spans, .spans_per_s = (double)HUGE_VAL };

static dr_trace *open_trace(const char *path, const dr_trace_options *o)
{
    dr_trace *t;
    assert_ok(dr_trace_open(path, NULL, o, &t, &err));
    assert_non_null(t);
    return t;
}

typedef void on_record(void *user, const dr_trace_record *rec);

static void read_all(const char *path, on_record *take, void *user)
{
    dr_trace_reader *r;
    dr_trace_record rec;
    dr_status status;
    assert_ok(dr_trace_open_reader(path, &r, &err));
    while ((status = dr_trace_next(r, &rec, &err)) == DR_OK)
        take(user, &rec);
    if (status != DR_END)
        fail_msg("%s", err.text);
    dr_trace_close_reader(&r);
}

static void wait_until_broken(dr_trace *t, dr_status want)
{
    for (int i = 0; i < 20000 && dr_trace_status(t, &err) == DR_OK; i++)
        usleep(1000);
    assert_int_equal(dr_trace_status(t, &err), want);
}

static void options_and_paths(void **state)
{
    (void)state;
    dr_trace *t;
    dr_trace_options o;
    dr_trace_defaults(&o);
    assert_true(o.max_bytes == 1000000000 && o.spans_per_s == 2000);
    assert_fails(dr_trace_open("/nowhere/at/all", NULL, &o, &t, &err), DR_ERR_IO,
                 "trace: cannot write /nowhere/at/all: No such file");
    assert_null(t);
    o.spans_per_s = -1;
    assert_fails(dr_trace_open("/tmp", NULL, &o, &t, &err), DR_ERR_ARG, "spans_per_s must be a number from 0, got -1");
    o.size = 3;
    assert_fails(dr_trace_open("/tmp", NULL, &o, &t, &err), DR_ERR_ARG, "got 3:");
    dr_trace_close(&t);
    dr_trace_close(NULL);
    assert_int_equal(dr_trace_status(NULL, &err), DR_OK);
    dr_trace_text(NULL, 0, "{}");
    dr_trace_span(NULL, &(dr_span){ 0 });
    dr__trace_event(NULL, "none", "\"a\":%d", 1);
    dr__trace_set(NULL, "none", 1);
}

/* --- many threads --- */

enum { THREADS = 4, EACH = 3000 };

typedef struct seen {
    uint64_t last[THREADS]; /* batch + 1: each thread's spans come in its order */
    uint64_t texts, spans, lost, left_out;
} seen;

static void *write_spans(void *arg)
{
    dr_trace *t = arg;
    static _Atomic int32_t next;
    const int32_t me = next++ % THREADS;
    for (uint64_t i = 0; i < EACH; i++) {
        dr_span s = { .kind = DR_SPAN_WORK, .thread = me, .batch = i, .begin_ns = dr__now_ns() };
        s.end_ns = s.begin_ns + 1000;
        snprintf(s.key, sizeof s.key, "sample %d of %d", (int)i, me);
        dr_trace_span(t, &s);
        if (i % 100 == 0)
            dr__trace_event(t, "tick", "\"n\":%d", (int)i);
    }
    return NULL;
}

static uint64_t member(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at ? strtoull(at + strlen(name) + 2, NULL, 10) : 0;
}

static void see(void *user, const dr_trace_record *rec)
{
    seen *s = user;
    if (rec->kind == DR_TRACE_SPAN) {
        char key[64];
        assert_int_equal(rec->span->batch, s->last[rec->span->thread]++);
        snprintf(key, sizeof key, "sample %d of %d", (int)rec->span->batch, rec->span->thread);
        assert_string_equal(rec->span->key, key);
        s->spans++;
    } else if (rec->kind == DR_TRACE_TEXT) {
        s->texts += strstr(rec->text, "tick") != NULL;
        s->lost = DR_MAX(s->lost, member(rec->text, "lost"));
        s->left_out = DR_MAX(s->left_out, member(rec->text, "left_out"));
    }
}

static void many_threads(void **state)
{
    (void)state;
    char path[64];
    pthread_t threads[THREADS];
    make_path(path);
    dr_trace *t = open_trace(path, &all_spans);
    assert_string_equal(dr_trace_path(t), path);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_spans, t), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(dr_trace_status(t, &err), DR_OK);
    dr_trace_close(&t);
    seen s = { 0 };
    read_all(path, see, &s);
    assert_int_equal(s.spans, THREADS * EACH);
    assert_int_equal(s.texts, THREADS * EACH / 100);
    assert_true(s.lost == 0 && s.left_out == 0);
    remove_file(path);
}

static void see_counts(void *user, const dr_trace_record *rec)
{
    seen *s = user;
    s->spans += rec->kind == DR_TRACE_SPAN;
    if (rec->kind == DR_TRACE_TEXT) {
        s->texts += strstr(rec->text, "\"fill\"") != NULL;
        s->lost = DR_MAX(s->lost, member(rec->text, "\"lost"));
        s->left_out = DR_MAX(s->left_out, member(rec->text, "\"left_out"));
    }
}

/* With few spans a second the rest is counted, and the counts come out even. */
static void left_out_spans_are_counted(void **state)
{
    (void)state;
    char path[64];
    make_path(path);
    dr_trace *t = open_trace(path, &(dr_trace_options){ .size = sizeof(dr_trace_options), .spans_per_s = 100 });
    const dr_span s = { .kind = DR_SPAN_WORK, .begin_ns = 5, .end_ns = 1005 };
    for (int i = 0; i < 5000; i++)
        dr_trace_span(t, &s);
    dr_trace_close(&t);
    seen n = { 0 };
    read_all(path, see_counts, &n);
    assert_int_equal(n.spans + n.left_out, 5000);
    assert_true(n.spans >= 10 && n.left_out > 0);
    remove_file(path);
}

/* Faster than any disk: what finds no room is counted, and what is there is whole. */
static void lost_records_are_counted(void **state)
{
    (void)state;
    char path[64], *text = malloc(60001);
    enum { TEXTS = 400 }; /* 24 MB */
    make_path(path);
    dr_trace *t = open_trace(path, NULL);
    memset(text, ' ', 60000);
    memcpy(text, "{\"event\":\"fill\"", 15);
    memcpy(text + 59999, "}", 2);
    for (int i = 0; i < TEXTS; i++)
        dr_trace_text(t, dr__now_ns(), text);
    dr_trace_close(&t);
    seen n = { 0 };
    read_all(path, see_counts, &n);
    assert_int_equal(n.texts + n.lost, TEXTS);
    assert_true(n.texts >= 30);
    free(text);
    remove_file(path);
}

static void a_text_too_long_is_lost(void **state)
{
    (void)state;
    char path[64], *text = malloc(70001);
    make_path(path);
    dr_trace *t = open_trace(path, NULL);
    memset(text, ' ', 70000);
    text[70000] = '\0';
    dr_trace_text(t, 1, text);
    dr_trace_close(&t);
    seen n = { 0 };
    read_all(path, see_counts, &n);
    assert_int_equal(n.lost, 1);
    free(text);
    remove_file(path);
}

/* --- ends --- */

static void see_end(void *user, const dr_trace_record *rec)
{
    if (rec->kind == DR_TRACE_TEXT)
        snprintf(user, 128, "%s", rec->text);
}

static void the_limit_is_kept(void **state)
{
    (void)state;
    char path[64], end[128] = "";
    make_path(path);
    dr_trace_options o = all_spans;
    o.max_bytes = 50000;
    dr_trace *t = open_trace(path, &o);
    const dr_span s = { .kind = DR_SPAN_WORK, .begin_ns = 5, .end_ns = 1005, .key = "some sample" };
    for (int i = 0; i < 20000; i++)
        dr_trace_span(t, &s);
    wait_until_broken(t, DR_END);
    dr_trace_text(t, 1, "{\"event\":\"late\"}");
    dr_trace_close(&t);
    read_all(path, see_end, end);
    assert_string_equal(end, "{\"event\":\"end\",\"reason\":\"limit\",\"max_bytes\":50000}");
    assert_in_range(file_size(path), 49000, 50000);
    remove_file(path);
}

static void a_full_disk_is_told(void **state)
{
    (void)state;
    if (access("/dev/full", W_OK) != 0)
        skip();
    dr_trace *t = open_trace("/dev/full", NULL);
    dr_trace_text(t, 1, "{\"event\":\"one\"}");
    wait_until_broken(t, DR_ERR_IO);
    assert_non_null(strstr(err.text, "trace: writing /dev/full failed: No space left on device"));
    dr_trace_text(t, 1, "{\"event\":\"two\"}");
    dr_trace_close(&t);
}

static void see_texts(void *user, const dr_trace_record *rec)
{
    if (rec->kind == DR_TRACE_TEXT)
        strncat(user, rec->text, 255 - strlen(user));
}

/* A program may have a locale with a decimal comma, of which JSON knows nothing. */
static void numbers_have_a_point_in_every_locale(void **state)
{
    (void)state;
    static const char *const names[] = { "C", "de_DE.UTF-8", "fr_FR.UTF-8", "pt_BR.UTF-8", "ru_RU.UTF-8" };
    for (size_t i = 0; i < DR_COUNT(names); i++) {
        char path[64], texts[256] = "";
        if (!setlocale(LC_NUMERIC, names[i]))
            continue; /* only "C" is everywhere */
        make_path(path);
        dr_trace *t = open_trace(path, NULL);
        dr__trace_set(t, "cpu_ceiling", 1.5);
        dr__trace_set(t, "workers", 3);
        dr_trace_close(&t);
        setlocale(LC_NUMERIC, "C");
        read_all(path, see_texts, texts);
        assert_non_null(strstr(texts, "{\"event\":\"set\",\"knob\":\"cpu_ceiling\",\"value\":1.5}"));
        assert_non_null(strstr(texts, "{\"event\":\"set\",\"knob\":\"workers\",\"value\":3}"));
        remove_file(path);
    }
}

/* A child has nothing to say in its parent's trace, not even when it ends. */
static void forks(void **state)
{
    (void)state;
    char path[64], texts[256] = "";
    make_path(path);
    dr_trace *t = open_trace(path, NULL);
    dr_trace_text(t, 1, "{\"event\":\"before\"}");
    const pid_t pid = fork();
    if (pid == 0) {
        dr_trace_text(t, 1, "{\"event\":\"child\"}");
        dr_trace_span(t, &(dr_span){ .end_ns = 1 });
        dr_trace_close(&t);
        _exit(t == NULL ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    dr_trace_text(t, 1, "{\"event\":\"after\"}");
    dr_trace_close(&t);
    read_all(path, see_texts, texts);
    assert_string_equal(texts, "{\"event\":\"before\"}{\"event\":\"after\"}{\"event\":\"end\",\"reason\":\"closed\"}");
    remove_file(path);
}

static void a_killed_process_leaves_what_was_written(void **state)
{
    (void)state;
    char path[64], texts[256] = "";
    make_path(path);
    const pid_t pid = fork();
    if (pid == 0) {
        dr_trace *t = NULL;
        dr_trace_open(path, NULL, NULL, &t, &err);
        dr_trace_text(t, 1, "{\"event\":\"alive\"}");
        pause();
    }
    const size_t empty = 100; /* the header and META are more */
    size_t size = 0, last = 0;
    for (int i = 0; i < 20000 && (size <= empty || !strstr(texts, "alive")); i++) {
        usleep(1000);
        size = file_size(path);
        if (size > empty && size != last)
            texts[0] = '\0', read_all(path, see_texts, texts), last = size;
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    texts[0] = '\0';
    read_all(path, see_texts, texts);
    assert_string_equal(texts, "{\"event\":\"alive\"}");
    remove_file(path);
}

static void names_by_the_environment(void **state)
{
    (void)state;
    char folder[] = "/tmp/drapps-test-XXXXXX", value[128], want[160];
    dr_trace *t;
    assert_non_null(mkdtemp(folder));
    unsetenv("DRAPPS_TRACE");
    assert_ok(dr_trace_open(NULL, NULL, NULL, &t, &err));
    assert_null(t);
    snprintf(value, sizeof value, "%s/run.v1-%%p.drtrace", folder);
    setenv("DRAPPS_TRACE", value, 1);
    for (int i = 1; i <= 3; i++) {
        t = open_trace(NULL, NULL);
        snprintf(want, sizeof want, i > 1 ? "%s/run.v1-%d-%d.drtrace" : "%s/run.v1-%d.drtrace", folder, (int)getpid(),
                 i);
        assert_string_equal(dr_trace_path(t), want);
        dr_trace_close(&t);
        assert_true(file_size(want) > 0);
        remove_file(want);
    }
    snprintf(value, sizeof value, "%s/none", folder);
    setenv("DRAPPS_TRACE", value, 1);
    t = open_trace(NULL, NULL);
    snprintf(want, sizeof want, "%s/none-4", folder);
    assert_string_equal(dr_trace_path(t), want);
    dr_trace_close(&t);
    remove_file(want);
    unsetenv("DRAPPS_TRACE");
    assert_int_equal(rmdir(folder), 0);
}

/* After it is open nothing is allocated: all fails from there on, and nothing is missing. */
static void no_memory_is_taken_for_records(void **state)
{
    (void)state;
    char path[64];
    make_path(path);
    dr_trace *t = open_trace(path, &all_spans);
    dr__alloc_fail_at(1, true);
    dr_rng rng = random_of(9);
    for (int i = 0; i < 1000; i++) {
        const dr_span s = random_span(&rng, 1000000000u + (uint64_t)i);
        dr_trace_span(t, &s);
    }
    assert_int_equal(dr__alloc_fail_at(0, false), 0);
    dr_trace_close(&t);
    seen n = { 0 };
    read_all(path, see_counts, &n);
    assert_int_equal(n.spans, 1000);
    for (long i = 1; i < 8; i++) {
        dr__alloc_fail_at(i, true);
        const dr_status status = dr_trace_open(path, NULL, NULL, &t, &err);
        dr__alloc_fail_at(0, false);
        assert_true(status == DR_OK || (status == DR_ERR_NOMEM && !t));
        assert_true(i > 1 || status == DR_ERR_NOMEM);
        dr_trace_close(&t);
    }
    remove_file(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_and_paths),
        cmocka_unit_test(many_threads),
        cmocka_unit_test(left_out_spans_are_counted),
        cmocka_unit_test(lost_records_are_counted),
        cmocka_unit_test(a_text_too_long_is_lost),
        cmocka_unit_test(the_limit_is_kept),
        cmocka_unit_test(a_full_disk_is_told),
        cmocka_unit_test(numbers_have_a_point_in_every_locale),
        cmocka_unit_test(forks),
        cmocka_unit_test(a_killed_process_leaves_what_was_written),
        cmocka_unit_test(names_by_the_environment),
        cmocka_unit_test(no_memory_is_taken_for_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
