/* Jobs of a server: every entry answered once, no tenant held up by another, bounded memory, and ends at any time. */
#include "unit/loader/toy.h"

#include <time.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "serve/sample_jobs.h"

static dr_error err;

enum { N_SAMPLES = 6 };

#define CROP                                                                                                           \
    "{\"version\":1,\"nodes\":[{\"op\":\"decode\"},{\"op\":\"random_resized_crop\",\"params\":{\"size\":[16,16]}}]}"

static char folder[64];
static dr__catalogue *catalogue;
static dr__jobs *jobs;

/* The consumer of a job. */
typedef struct consumer {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool ready;
    int n_ready, n_wait;
    dr__job *job;
} consumer;

static void on_wait(void *user)
{
    consumer *c = user;
    pthread_mutex_lock(&c->lock);
    c->ready = false;
    c->n_wait++;
    pthread_mutex_unlock(&c->lock);
}

static void on_ready(void *user)
{
    consumer *c = user;
    pthread_mutex_lock(&c->lock);
    c->ready = true;
    c->n_ready++;
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->lock);
}

static void sleep_until_ready(consumer *c)
{
    pthread_mutex_lock(&c->lock);
    while (!c->ready)
        pthread_cond_wait(&c->wake, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

static void begin_jobs(double cpus, int n_readers)
{
    const dr__jobs_options o = { .cpus = cpus,
                                 .n_readers = n_readers,
                                 .memory = 64 << 20,
                                 .most_pixels = 1000000,
                                 .most_seconds = 100,
                                 .most_sample_s = 100,
                                 .most_jobs = 3 };
    assert_ok(dr__jobs_new(&o, &jobs, &err));
}

static int begin(void **state)
{
    (void)state;
    dr_dataset *set = jpeg_set(folder, N_SAMPLES);
    dr_dataset_unref(&set);
    return dr__catalogue_open(folder, NULL, NULL, &catalogue, &err);
}

static int end(void **state)
{
    (void)state;
    dr__jobs_free(&jobs);
    dr__catalogue_unref(&catalogue);
    remove_folder(folder);
    return 0;
}

static dr__remote_request request_of(size_t n, uint16_t prefix)
{
    dr__remote_request r = { .n_entries = n, .entries = dr__alloc_zero(n, sizeof(dr__remote_entry)) };
    r.graph = dr__strdup(CROP);
    r.outputs = dr__strdup("image");
    for (size_t i = 0; i < n; i++)
        r.entries[i] = (dr__remote_entry){ .id = i % N_SAMPLES, .prefix = prefix, .codec = DR__REMOTE_NO_CODEC };
    return r;
}

static dr_status begin_job(consumer *c, const char *tenant, size_t n, uint16_t prefix, bool when_all)
{
    const dr__job_calls calls = { .wait = on_wait, .ready = on_ready, .user = c };
    *c = (consumer){ PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER };
    dr__remote_request r = request_of(n, prefix);
    const dr_status status =
        dr__job_begin(jobs, tenant, catalogue, &catalogue->sets[0], &r, when_all, &calls, &c->job, &err);
    dr__remote_request_free(&r); /* empty where it was taken */
    return status;
}

/* Takes all that a job makes; room: how much at a time. */
static dr__text take_all(consumer *c, size_t room)
{
    dr__text all = { 0 };
    char *buf = malloc(room);
    for (size_t n;;) {
        const dr__take got = dr__job_take(c->job, buf, room, &n);
        if (got == DR__TAKE_WAIT) {
            sleep_until_ready(c);
            continue;
        }
        if (got != DR__TAKE_BYTES) {
            assert_int_equal(got, DR__TAKE_END);
            break;
        }
        assert_in_range(n, 1, room);
        dr__text_add(&all, buf, n);
    }
    free(buf);
    return all;
}

/* Every entry has one frame; returns how many had their ops run. */
static size_t check_frames(const dr__text *all, size_t n)
{
    uint8_t *seen = calloc(n, 1);
    size_t at = 0, made = 0;
    while (at < all->n) {
        dr__remote_head head;
        assert_ok(dr__remote_parse_head(all->text + at, UINT64_MAX, &head, &err));
        assert_ok(dr__remote_check(&head, all->text + at + DR__REMOTE_HEAD, &err));
        assert_int_equal(head.kind, DR__REMOTE_SAMPLE);
        assert_int_equal(head.id, head.entry % N_SAMPLES);
        assert_int_equal(seen[head.entry]++, 0);
        made += head.prefix > 0;
        at += DR__REMOTE_HEAD + head.size;
    }
    assert_int_equal(at, all->n);
    assert_null(memchr(seen, 0, n));
    free(seen);
    return made;
}

static dr__jobs_stats stats(void)
{
    dr__jobs_stats s;
    dr__jobs_get_stats(jobs, &s);
    return s;
}

static void every_entry_is_answered_once(void **state)
{
    (void)state;
    begin_jobs(2, 2);
    for (uint16_t prefix = 0; prefix <= 2; prefix++)
        for (size_t room = 7; room < 100000; room *= 13) {
            consumer c;
            assert_ok(begin_job(&c, "a", 100, prefix, false));
            dr__text all = take_all(&c, room);
            const size_t made = check_frames(&all, 100);
            assert_true(prefix || !made);
            dr__job_end(&c.job);
            dr__free(all.text);
        }
    const dr__jobs_stats s = stats();
    assert_int_equal(s.jobs + s.entries + s.waiting_bytes + s.failed + s.refused, 0);
    assert_int_equal(s.stored + s.offloaded + s.shed, 3 * 4 * 100);
    assert_true(s.offloaded > 0 && s.cpu_ns > 0);
}

static void nothing_runs_without_cpus(void **state)
{
    (void)state;
    consumer c;
    begin_jobs(0, 1);
    assert_ok(begin_job(&c, "a", 50, 2, false));
    dr__text all = take_all(&c, 4096);
    assert_int_equal(check_frames(&all, 50), 0);
    dr__free(all.text);
    dr__job_end(&c.job);
    assert_int_equal(stats().shed, 50);
}

static void ops_that_cannot_run_are_sent_as_stored(void **state)
{
    (void)state;
    consumer c;
    begin_jobs(1, 1);
    assert_ok(begin_job(&c, "a", 30, 9, false)); /* the graph has 2 nodes */
    dr__text all = take_all(&c, 4096);
    assert_int_equal(check_frames(&all, 30), 0);
    dr__free(all.text);
    dr__job_end(&c.job);
    const dr__jobs_stats s = stats();
    assert_int_equal(s.refused + s.shed, 30);
    assert_true(s.refused > 0);
}

/* Another tenant's long job, begun before, is not done first. */
static void no_tenant_waits_for_another(void **state)
{
    (void)state;
    consumer greedy, modest;
    begin_jobs(0, 1);
    assert_ok(begin_job(&greedy, "greedy", 60000, 0, false));
    assert_ok(begin_job(&modest, "modest", 20, 0, false));
    dr__text all = take_all(&modest, 65536);
    assert_int_equal(check_frames(&all, 20), 0);
    assert_true(stats().entries > 0); /* of the greedy one */
    dr__free(all.text);
    dr__job_end(&modest.job);
    dr__job_end(&greedy.job);
}

/* The greedy job above has more than the limit, too: it stops there until something is taken. */
static void what_waits_is_bounded(void **state)
{
    (void)state;
    consumer c;
    begin_jobs(0, 2);
    assert_ok(begin_job(&c, "a", 60000, 0, false));
    while (stats().waiting_bytes < 4 << 20)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL); /* a chance to make too much */
    assert_in_range(stats().waiting_bytes, 4 << 20, 5 << 20);
    dr__text all = take_all(&c, 1 << 20);
    assert_int_equal(check_frames(&all, 60000), 0);
    dr__free(all.text);
    dr__job_end(&c.job);
    assert_int_equal(stats().waiting_bytes, 0);
}

/* Without CPU time, ops wait while the tenant's connections have enough to send, and no longer. */
static void ops_wait_while_connections_are_busy(void **state)
{
    (void)state;
    consumer reads, ops;
    begin_jobs(1e-4, 2);
    assert_ok(begin_job(&reads, "a", 200, 0, false));
    while (stats().entries)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    assert_true(stats().waiting_bytes > 64 << 10);
    assert_ok(begin_job(&ops, "a", 20, 2, false));
    nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL); /* a chance to send them as they are stored */
    assert_int_equal(stats().shed, 0);
    assert_true(stats().entries > 0);
    dr__text all = take_all(&reads, 65536);
    check_frames(&all, 200);
    dr__free(all.text);
    all = take_all(&ops, 65536);
    assert_int_equal(check_frames(&all, 20) + stats().shed, 20);
    assert_true(stats().shed > 0);
    dr__free(all.text);
    dr__job_end(&reads.job);
    dr__job_end(&ops.job);
}

static void jobs_end_at_any_time(void **state)
{
    (void)state;
    begin_jobs(1, 2);
    for (int i = 0; i < 200; i++) {
        consumer c;
        char buf[100];
        size_t n;
        assert_ok(begin_job(&c, i % 2 ? "a" : "b", 40, (uint16_t)(i % 3), i % 5 == 0));
        if (i % 4 && i % 5)
            dr__job_take(c.job, buf, sizeof buf, &n);
        if (i % 7 == 0)
            nanosleep(&(struct timespec){ .tv_nsec = 300000 }, NULL);
        dr__job_end(&c.job);
        assert_null(c.job);
    }
    consumer c;
    assert_ok(begin_job(&c, "a", 40, 0, false)); /* what was being made is done by the time that this is */
    dr__text all = take_all(&c, 65536);
    check_frames(&all, 40);
    dr__free(all.text);
    dr__job_end(&c.job);
    while (stats().jobs)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    assert_int_equal(stats().entries + stats().waiting_bytes, 0);
}

static void a_whole_job_is_told_once(void **state)
{
    (void)state;
    consumer c;
    size_t n;
    unsigned prefix;
    begin_jobs(1, 1);
    assert_ok(begin_job(&c, "a", 1, 2, true));
    sleep_until_ready(&c);
    char *frame = dr__job_take_all(c.job, &n, &prefix);
    assert_int_equal(prefix, 2);
    dr__text all = { frame, n, n, false };
    assert_int_equal(check_frames(&all, 1), 1);
    assert_int_equal(c.n_ready, 1);
    dr__free(frame);
    dr__job_end(&c.job);
}

static void a_tenant_has_so_many_jobs(void **state)
{
    (void)state;
    consumer c[3], more;
    begin_jobs(0, 1);
    for (int i = 0; i < 3; i++)
        assert_ok(begin_job(&c[i], "a", 30000, 0, false));
    assert_fails(begin_job(&more, "a", 1, 0, false), DR_ERR_LIMIT, "3 requests for samples at a time");
    assert_ok(begin_job(&more, "b", 1, 0, false));
    dr__job_end(&more.job);
    for (int i = 0; i < 3; i++)
        dr__job_end(&c[i].job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_entry_is_answered_once, begin, end),
        cmocka_unit_test_setup_teardown(nothing_runs_without_cpus, begin, end),
        cmocka_unit_test_setup_teardown(ops_that_cannot_run_are_sent_as_stored, begin, end),
        cmocka_unit_test_setup_teardown(no_tenant_waits_for_another, begin, end),
        cmocka_unit_test_setup_teardown(what_waits_is_bounded, begin, end),
        cmocka_unit_test_setup_teardown(ops_wait_while_connections_are_busy, begin, end),
        cmocka_unit_test_setup_teardown(jobs_end_at_any_time, begin, end),
        cmocka_unit_test_setup_teardown(a_whole_job_is_told_once, begin, end),
        cmocka_unit_test_setup_teardown(a_tenant_has_so_many_jobs, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
