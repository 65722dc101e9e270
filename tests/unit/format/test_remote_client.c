/* Requests for samples: of many threads at once, and to servers that answer late, wrongly, in part or not at all. */
#include "unit/cm.h"

#include <stdatomic.h>
#include <unistd.h>

#include "unit/source/http_server.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/thread.h"
#include "data/desc.h"
#include "format/remote_client.h"
#include "format/remote_request.h"

enum { N_THREADS = 24, PER_THREAD = 20 };

static dr_error err;

enum manner { GOOD, BREAKS, DAMAGES, WRONG_ID, FAILS, LARGE, SILENT, REFUSES, OTHER_RANGES, WHOLE, OLDER };

enum { STAMP = 77 };

static struct {
    http_server server;
    atomic_int manner, times, status, delay_us;
    atomic_uint_fast64_t set;
    dr__remote_client *client;
} s;

/* --- the server --- */

static void add_sample(dr__text *out, const dr__remote_entry *entry, size_t i)
{
    char text[64];
    snprintf(text, sizeof text, "sample %llu.%u after %u", (unsigned long long)entry->id, entry->occurrence,
             entry->prefix);
    dr_desc desc = dr__desc_bytes((int64_t)strlen(text));
    const dr_view view = dr__view_dense(&desc, text);
    const dr__remote_head head = { .id = entry->id, .prefix = entry->prefix, .entry = (uint16_t)i, .cpu_us = 7 };
    assert_int_equal(dr__remote_put_sample(out, &head, &view, 1, NULL, NULL), DR_OK);
}

static dr__remote_request *current; /* of the handler's thread; only one request is handled at a time where it counts */
static pthread_mutex_t handling = PTHREAD_MUTEX_INITIALIZER;

/* Byte number i of the stored sample is i % 251. */
static void add_ranges(dr__text *out, const dr__remote_entry *entry, const dr__remote_head *head, enum manner manner)
{
    dr__remote_range ranges[16];
    uint8_t bytes[4096];
    size_t n = 0;
    assert_true(entry->stamp == STAMP && entry->n_ranges <= DR_COUNT(ranges));
    for (uint32_t i = 0; i < entry->n_ranges; i++) {
        ranges[i] = current->ranges[entry->first_range + i];
        ranges[i].offset += manner == OTHER_RANGES;
        for (uint64_t k = 0; k < ranges[i].size; k++)
            bytes[n++] = (uint8_t)((ranges[i].offset + k) % 251);
    }
    assert_int_equal(dr__remote_put_segments(out, head, ranges, (int)entry->n_ranges, bytes, n, NULL), DR_OK);
}

static bool has_stamps(const dr__remote_request *r)
{
    for (size_t i = 0; i < r->n_entries; i++)
        if (r->entries[i].stamp)
            return true;
    return false;
}

static void add_frame(dr__text *out, const dr__remote_entry *entry, size_t i, enum manner manner)
{
    dr__remote_entry told = *entry;
    const size_t at = out->n;
    const dr__remote_head head = { .id = entry->id, .entry = (uint16_t)i };
    const dr_error why = { DR_ERR_NOT_FOUND, "a.jpg: no such file" };
    if (entry->by_ranges && manner != WHOLE && manner != FAILS) {
        add_ranges(out, entry, &head, manner);
        return;
    }
    if (manner == FAILS) {
        assert_int_equal(dr__remote_put_error(out, &head, &why, NULL), DR_OK);
        return;
    }
    told.id += manner == WRONG_ID;
    add_sample(out, &told, i);
    if (manner == DAMAGES)
        out->text[out->n - 1] ^= 1;
    if (manner == LARGE)
        memset(out->text + at + 24 + 4, 0x7f, 1); /* of its size */
}

static const char *status_text(int status)
{
    static const struct {
        int status;
        const char *text;
    } known[] = { { 400, "400 Bad Request" }, { 401, "401 Unauthorized" },       { 403, "403 Forbidden" },
                  { 404, "404 Not Found" },   { 405, "405 Method Not Allowed" }, { 409, "409 Conflict" },
                  { 413, "413 Too Large" },   { 501, "501 Not Implemented" } };
    for (size_t i = 0; i < DR_COUNT(known); i++)
        if (known[i].status == status)
            return known[i].text;
    return "500 Internal Server Error";
}

static bool handle(int fd, const http_request *request, void *user)
{
    dr__remote_request r;
    dr__text out = { 0 };
    (void)user;
    const bool bad = atomic_load(&s.manner) != GOOD && atomic_fetch_sub(&s.times, 1) > 0;
    const enum manner manner = bad ? (enum manner)atomic_load(&s.manner) : GOOD;
    if (manner == SILENT) {
        for (int i = 0; i < 300 && atomic_load(&s.manner) == SILENT && !atomic_load(&s.server.stopping); i++)
            usleep(10000);
        return false;
    }
    if (manner == REFUSES) {
        http_answer(fd, status_text(atomic_load(&s.status)), "", "no", 2);
        return true;
    }
    usleep((useconds_t)atomic_load(&s.delay_us));
    if (dr__remote_request_parse(request->body, strlen(request->body), 64, &r, NULL) != DR_OK) {
        http_answer(fd, "400 Bad Request", "", "no", 2);
        return true;
    }
    atomic_store(&s.set, r.set);
    if (atomic_load(&s.manner) == OLDER && has_stamps(&r)) {
        dr__remote_request_free(&r);
        http_answer(fd, "400 Bad Request", "", "no", 2);
        return true;
    }
    pthread_mutex_lock(&handling);
    current = &r;
    for (size_t i = r.n_entries; i-- > 0;) /* in another order than asked for */
        add_frame(&out, &r.entries[i], i, manner);
    pthread_mutex_unlock(&handling);
    if (manner == BREAKS) {
        dprintf(fd, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", out.n);
        assert_true(write(fd, out.text, out.n - 9) > 0);
    } else {
        http_answer(fd, "200 OK", "Content-Type: " DR__REMOTE_TYPE "\r\n", out.text, out.n);
    }
    dr__free(out.text);
    dr__remote_request_free(&r);
    return manner != BREAKS;
}

static dr__remote_client *opened(unsigned port, double timeout_s)
{
    char name[64];
    dr__remote_client *c;
    const dr__source_options o = { .timeout_ns = (uint64_t)(timeout_s * 1e9) };
    snprintf(name, sizeof name, "drapps://127.0.0.1:%u/photos", port);
    assert_ok(dr__remote_client_open(name, &o, &c, &err));
    return c;
}

static int start(void **state)
{
    (void)state;
    unsetenv("DRAPPS_TOKEN");
    if (dr__transfer_available(&err) != DR_OK)
        return 0;
    http_server_start(&s.server, handle, NULL);
    s.client = opened(s.server.port, 30);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    if (!s.client)
        return 0;
    dr__remote_client_close(&s.client);
    http_server_stop(&s.server);
    return 0;
}

static void behave(enum manner manner, int times)
{
    if (!s.client)
        skip(); /* without libcurl */
    atomic_store(&s.times, times);
    atomic_store(&s.manner, (int)manner);
    atomic_store(&s.delay_us, 0);
}

/* --- wishes --- */

static const dr__remote_work WORK = { .seed = 3, .epoch = 1, .ops = 9, .graph = "{\"nodes\":[],\"version\":1}" };

static dr_status fetch(dr__remote_client *c, uint64_t id, int prefix, dr_error *why)
{
    char want[64];
    dr__record record;
    dr__remote_answer answer;
    const dr__remote_wish wish = { .id = id, .occurrence = 2, .prefix = prefix, .work = prefix ? &WORK : NULL };
    dr__record_init(&record);
    record.max_bytes = 1 << 20;
    const dr_status status = dr__remote_client_sample(c, &wish, &record, &answer, why);
    snprintf(want, sizeof want, "sample %llu.2 after %d", (unsigned long long)id, prefix);
    if (status == DR_OK &&
        (record.n_fields != 1 || record.fields[0].desc.dims[0] != (int64_t)strlen(want) ||
         memcmp(record.fields[0].data, want, strlen(want)) || answer.prefix != prefix || answer.cpu_ns != 7000))
        fail_msg("sample %d: \"%.30s\"", (int)id, (const char *)record.fields[0].data);
    dr__record_free(&record);
    return status;
}

static void *fetch_many(void *user)
{
    const uint64_t first = (uint64_t)(uintptr_t)user * PER_THREAD;
    dr_error why = { 0 };
    for (uint64_t i = 0; i < PER_THREAD; i++)
        if (fetch(s.client, first + i, (int)(i % 3), &why) != DR_OK)
            return strdup(why.text);
    return NULL;
}

static void run_threads(void)
{
    pthread_t threads[N_THREADS];
    for (uintptr_t i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, fetch_many, (void *)i), 0);
    for (int i = 0; i < N_THREADS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        if (failed)
            fail_msg("thread %d: %s", i, (char *)failed);
    }
}

static void many_threads_share_requests(void **state)
{
    (void)state;
    dr__remote_counts before, after;
    behave(GOOD, 0);
    atomic_store(&s.delay_us, 2000);
    dr__remote_client_counts(s.client, &before);
    run_threads();
    dr__remote_client_counts(s.client, &after);
    assert_int_equal(after.samples - before.samples, N_THREADS * PER_THREAD);
    assert_true(after.requests - before.requests < N_THREADS * PER_THREAD / 2);
    assert_true(after.bytes > before.bytes && after.busy_ns > before.busy_ns);
}

static void the_set_is_named(void **state)
{
    (void)state;
    behave(GOOD, 0);
    dr__remote_client_expect(s.client, 0xfeedf00ddeadbeefull);
    assert_ok(fetch(s.client, 1, 0, &err));
    assert_true(atomic_load(&s.set) == 0xfeedf00ddeadbeefull);
    dr__remote_client_expect(s.client, 0);
}

static void answers_that_break_off_are_asked_for_again(void **state)
{
    (void)state;
    behave(BREAKS, 12);
    run_threads();
}

static void damaged_frames_are_asked_for_again(void **state)
{
    (void)state;
    behave(DAMAGES, 2);
    assert_ok(fetch(s.client, 5, 1, &err));
    behave(DAMAGES, 100);
    assert_fails(fetch(s.client, 5, 1, &err), DR_ERR_FORMAT, "checksum");
}

static void what_was_not_asked_is_no_answer(void **state)
{
    (void)state;
    behave(WRONG_ID, 100);
    assert_int_not_equal(fetch(s.client, 5, 1, &err), DR_OK);
    assert_non_null(strstr(err.text, "not asked"));
}

static void errors_of_samples_are_theirs(void **state)
{
    (void)state;
    behave(FAILS, 100);
    assert_fails(fetch(s.client, 5, 1, &err), DR_ERR_NOT_FOUND, "a.jpg: no such file");
}

static void samples_that_are_too_large(void **state)
{
    (void)state;
    behave(LARGE, 1);
    assert_fails(fetch(s.client, 5, 1, &err), DR_ERR_LIMIT, "memory limit");
}

static void refusals(void **state)
{
    (void)state;
    static const struct {
        int http;
        dr_status status;
        const char *text;
    } rows[] = {
        { 400, DR_ERR_UNSUPPORTED, "refuses a request" },
        { 401, DR_ERR_STATE, "refuses access to set \"photos\"" },
        { 403, DR_ERR_STATE, "refuses access to set \"photos\"" },
        { 404, DR_ERR_UNSUPPORTED, "no set \"photos\"" },
        { 405, DR_ERR_UNSUPPORTED, "refuses a request" },
        { 409, DR_ERR_STATE, "other data under the name" },
        { 413, DR_ERR_UNSUPPORTED, "refuses a request" },
        { 501, DR_ERR_UNSUPPORTED, "does not know such requests" },
    };
    for (size_t i = 0; i < DR_COUNT(rows); i++) {
        behave(REFUSES, 100);
        atomic_store(&s.status, rows[i].http);
        assert_fails(fetch(s.client, 5, 1, &err), rows[i].status, rows[i].text);
        assert_non_null(strstr(err.text, "drapps://127.0.0.1"));
    }
}

static void nobody_answers(void **state)
{
    (void)state;
    behave(GOOD, 0);
    http_server gone;
    http_server_start(&gone, handle, NULL);
    http_server_stop(&gone);
    dr__remote_client *c = opened(gone.port, 0.5);
    assert_fails(fetch(c, 5, 1, &err), DR_ERR_STATE, "drapps://127.0.0.1");
    dr__remote_client_close(&c);
}

/* --- ranges --- */

static dr_status fetch_ranges(uint64_t id, dr__remote_answer *answer, dr_error *why)
{
    const dr__byte_ranges wanted = { .n = 3, .at = { { 5, 10 }, { 300, 1 }, { 1000, 700 } } };
    const dr__remote_wish wish = { .id = id, .ranges = &wanted, .stamp = STAMP };
    dr__record record;
    dr__record_init(&record);
    record.max_bytes = 1 << 20;
    const dr_status status = dr__remote_client_sample(s.client, &wish, &record, answer, why);
    if (status == DR_OK && record.part.n != wanted.n)
        fail_msg("sample %d: %d pieces", (int)id, record.part.n);
    for (int i = 0; status == DR_OK && i < wanted.n; i++) {
        const dr__byte_piece *piece = &record.part.pieces[i];
        if (piece->offset != wanted.at[i].offset || piece->size != wanted.at[i].size)
            fail_msg("sample %d: piece %d is another one", (int)id, i);
        for (size_t k = 0; k < piece->size; k++)
            if (piece->data[k] != (piece->offset + k) % 251)
                fail_msg("sample %d: byte %d of piece %d", (int)id, (int)k, i);
    }
    dr__record_free(&record);
    return status;
}

static void ranges_are_the_pieces_of_a_part(void **state)
{
    (void)state;
    dr__remote_answer answer;
    behave(GOOD, 0);
    assert_ok(fetch_ranges(4, &answer, &err));
    assert_true(answer.bytes == DR__REMOTE_HEAD + 8 + 3 * 16 + 711);
    behave(DAMAGES, 2); /* of samples alone: ranges pass */
    assert_ok(fetch_ranges(4, &answer, &err));
    behave(OTHER_RANGES, 100);
    assert_fails(fetch_ranges(4, &answer, &err), DR_ERR_FORMAT, "other ranges than were asked for");
    behave(WHOLE, 100);
    assert_fails(fetch_ranges(4, &answer, &err), DR_ERR_FORMAT, "not asked");
    behave(FAILS, 100);
    assert_fails(fetch_ranges(4, &answer, &err), DR_ERR_NOT_FOUND, "a.jpg: no such file");
    assert_true(answer.told && !answer.refused);
    behave(REFUSES, 100);
    atomic_store(&s.status, 400);
    assert_fails(fetch_ranges(4, &answer, &err), DR_ERR_UNSUPPORTED, "refuses a request");
    assert_true(answer.refused && !answer.told);
}

static void *fetch_mixed(void *user)
{
    const uint64_t first = (uint64_t)(uintptr_t)user * PER_THREAD;
    for (uint64_t i = 0; i < PER_THREAD; i++) {
        dr__remote_answer answer;
        dr_error why = { 0 };
        const bool old = atomic_load(&s.manner) == OLDER;
        if (i % 2 && (fetch_ranges(first + i, &answer, &why) != (old ? DR_ERR_UNSUPPORTED : DR_OK) ||
                      answer.refused != old || answer.told))
            return strdup("ranges");
        if (i % 2 == 0 && fetch(s.client, first + i, (int)(i % 3), &why) != DR_OK)
            return strdup(why.text);
    }
    return NULL;
}

/* An older server refuses requests that have such ranges: samples of the same request are asked for again. */
static void older_servers_refuse_ranges_alone(void **state)
{
    (void)state;
    for (int old = 0; old < 2; old++) {
        pthread_t threads[N_THREADS];
        behave(old ? OLDER : GOOD, 0);
        for (uintptr_t i = 0; i < N_THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, fetch_mixed, (void *)i), 0);
        for (int i = 0; i < N_THREADS; i++) {
            void *failed;
            pthread_join(threads[i], &failed);
            if (failed)
                fail_msg("thread %d: %s", i, (char *)failed);
        }
    }
}

/* --- cancelling --- */

static atomic_bool cancel;

static void *fetch_cancelled(void *user)
{
    (void)user;
    dr_error why = { 0 };
    dr__transfer_watch(&cancel);
    return (void *)(intptr_t)fetch(s.client, 100, 1, &why);
}

static void *fetch_other(void *user)
{
    (void)user;
    dr_error why = { 0 };
    return (void *)(intptr_t)fetch(s.client, 101, 1, &why);
}

/* Those that a cancelled thread has sent with its own are sent again by others. */
static void cancelled_threads_leave_the_others(void **state)
{
    (void)state;
    pthread_t threads[8];
    void *status;
    behave(SILENT, 1000);
    atomic_store(&cancel, false);
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, i < 5 ? fetch_cancelled : fetch_other, NULL), 0);
    usleep(300000);
    atomic_store(&cancel, true);
    for (int i = 0; i < 5; i++) {
        pthread_join(threads[i], &status);
        assert_int_equal((int)(intptr_t)status, DR_ERR_CANCELLED);
    }
    atomic_store(&s.manner, GOOD);
    for (int i = 5; i < 8; i++) {
        pthread_join(threads[i], &status);
        assert_int_equal((int)(intptr_t)status, DR_OK);
    }
}

static void names(void **state)
{
    (void)state;
    static const char *const bad[] = { "drapps://",           "drapps://host",     "drapps://host/",
                                       "drapps://u@host/set", "drapps://host/a?b", "drapps://host/a#b",
                                       "http://host/set",     "drapps:///set",     "drapps+http://host/set" };
    static const char *const good[] = { "drapps://host/set", "drapps+https://host:1/a b/c/", "drapps://[::1]/set",
                                        "drapps://[::1]:77/set" };
    dr__remote_client *c;
    behave(GOOD, 0);
    for (size_t i = 0; i < DR_COUNT(bad); i++)
        assert_fails(dr__remote_client_open(bad[i], NULL, &c, &err), DR_ERR_ARG, "must be drapps://host");
    for (size_t i = 0; i < DR_COUNT(good); i++) {
        assert_ok(dr__remote_client_open(good[i], NULL, &c, &err));
        assert_string_equal(dr__remote_client_name(c), good[i]);
        dr__remote_client_close(&c);
    }
    dr_status status = DR_ERR_NOMEM;
    for (long n = 1; status == DR_ERR_NOMEM; n++) {
        dr__alloc_fail_at(n, false);
        status = dr__remote_client_open(good[1], NULL, &c, &err);
        dr__alloc_fail_at(0, false);
    }
    assert_int_equal(status, DR_OK);
    dr__remote_client_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_threads_share_requests),
        cmocka_unit_test(the_set_is_named),
        cmocka_unit_test(answers_that_break_off_are_asked_for_again),
        cmocka_unit_test(damaged_frames_are_asked_for_again),
        cmocka_unit_test(what_was_not_asked_is_no_answer),
        cmocka_unit_test(errors_of_samples_are_theirs),
        cmocka_unit_test(samples_that_are_too_large),
        cmocka_unit_test(refusals),
        cmocka_unit_test(nobody_answers),
        cmocka_unit_test(ranges_are_the_pieces_of_a_part),
        cmocka_unit_test(older_servers_refuse_ranges_alone),
        cmocka_unit_test(cancelled_threads_leave_the_others),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
