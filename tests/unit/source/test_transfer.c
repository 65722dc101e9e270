/* test_transfer.c: requests, and what a server or network does to them. */
#include "unit/cm.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/source/http_server.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "source/transfer.h"

enum { SIZE = 300000 };

struct memory {
    dr__source_target target;
    uint8_t *data;
    size_t cap;
    int n_calls;
};

static uint8_t *reserve(dr__source_target *target, size_t size, size_t keep, dr_status *status, dr_error *err)
{
    struct memory *m = (struct memory *)target;
    (void)keep, (void)status, (void)err;
    m->data = realloc(m->data, size);
    m->cap = size;
    m->n_calls++;
    return m->data;
}

/* What the server has, and how it behaves. */
struct site {
    http_server server;
    uint8_t data[SIZE];
    _Atomic(const char *) etag;
    atomic_int bad;                  /* how many requests get the bad answer, from the first on */
    _Atomic(const char *) status;    /* of it; NULL: the connection is closed */
    _Atomic(const char *) headers;   /* of it */
    _Atomic(size_t) left_off;        /* of bad answers of bodies */
    atomic_int slow_number, slow_ms; /* this request is answered late */
    pthread_mutex_t lock;
    char seen[8192]; /* header of the last request; lock */
    char seen_body[256];
};

static bool saw(struct site *s, const char *text)
{
    pthread_mutex_lock(&s->lock);
    const bool found = strstr(s->seen, text);
    pthread_mutex_unlock(&s->lock);
    return found;
}

static bool answer(int fd, const http_request *r, void *user)
{
    struct site *s = user;
    pthread_mutex_lock(&s->lock);
    snprintf(s->seen, sizeof s->seen, "%s", r->head);
    snprintf(s->seen_body, sizeof s->seen_body, "%.200s", r->body);
    pthread_mutex_unlock(&s->lock);
    if (r->number == s->slow_number && s->slow_ms)
        usleep((useconds_t)s->slow_ms * 1000);
    if (!strcmp(r->path, "/none")) {
        http_answer(fd, "404 Not Found", "", "no such thing", 13);
        return true;
    }
    if (r->number < s->bad && s->left_off) {
        http_answer_object(fd, r, s->etag, s->data, SIZE, s->left_off);
        return false;
    }
    if (r->number < s->bad && s->status)
        http_answer(fd, s->status, s->headers ? s->headers : "", "sorry", 5);
    else if (r->number >= s->bad)
        http_answer_object(fd, r, s->etag, s->data, SIZE, 0);
    return r->number >= s->bad || s->status;
}

static struct site *site_new(void)
{
    struct site *s = calloc(1, sizeof *s);
    for (size_t i = 0; i < SIZE; i++)
        s->data[i] = (uint8_t)(i * 2654435761u >> 13);
    pthread_mutex_init(&s->lock, NULL);
    s->etag = "\"one\"";
    s->slow_number = -1;
    http_server_start(&s->server, answer, s);
    return s;
}

static void site_free(struct site *s)
{
    http_server_stop(&s->server);
    free(s);
}

static const char *url_of(const struct site *s, const char *path)
{
    static char text[128];
    snprintf(text, sizeof text, "%s%s", s->server.url, path);
    return text;
}

static dr_status get(const struct site *s, dr__transfer_request q, struct memory *m, dr__transfer_reply *reply,
                     dr_error *err)
{
    q.url = q.url ? q.url : url_of(s, "/x");
    m->target.reserve = reserve;
    return dr__transfer_run(&q, &m->target, reply, err);
}

static void objects_and_ranges_are_read(void **state)
{
    (void)state;
    struct site *s = site_new();
    struct memory m = { 0 };
    dr__transfer_reply reply;
    dr_error err;
    char text[16];
    assert_int_equal(get(s, (dr__transfer_request){ 0 }, &m, &reply, &err), DR_OK);
    assert_int_equal(reply.http, 200);
    assert_int_equal(reply.got, SIZE);
    assert_int_equal(reply.total, SIZE);
    assert_string_equal(reply.etag, "\"one\"");
    assert_memory_equal(m.data, s->data, SIZE);
    assert_int_equal(m.n_calls, 1);
    assert_true(dr__transfer_header(&reply, "x-test", text, sizeof text));
    assert_string_equal(text, "yes");
    assert_int_equal(get(s, (dr__transfer_request){ .offset = 1000, .size = 70000 }, &m, &reply, &err), DR_OK);
    assert_int_equal(reply.http, 206);
    assert_int_equal(reply.got, 70000);
    assert_int_equal(reply.total, SIZE);
    assert_memory_equal(m.data, s->data + 1000, 70000);
    assert_int_equal(get(s, (dr__transfer_request){ .offset = SIZE - 10, .size = 70000 }, &m, &reply, &err), DR_OK);
    assert_int_equal(reply.got, 10); /* it ends there */
    assert_int_equal(get(s, (dr__transfer_request){ .offset = SIZE, .size = 10 }, &m, &reply, &err), DR_OK);
    assert_int_equal(reply.got, 0);
    assert_int_equal(get(s, (dr__transfer_request){ .method = "HEAD" }, &m, &reply, &err), DR_OK);
    assert_int_equal(reply.total, SIZE);
    assert_int_equal(s->server.n_connections, 1); /* it was kept */
    free(m.data);
    site_free(s);
}

static void requests_say_what_was_asked(void **state)
{
    (void)state;
    struct site *s = site_new();
    struct memory m = { 0 };
    dr_error err;
    const char *const headers[] = { "X-Ops: all", NULL };
    assert_int_equal(get(s,
                         (dr__transfer_request){ .body = "hello", .body_size = 5, .headers = headers, .token = "abc" },
                         &m, NULL, &err),
                     DR_OK);
    assert_true(saw(s, "POST /x HTTP"));
    assert_true(saw(s, "\r\nX-Ops: all\r\n"));
    assert_true(saw(s, "\r\nAuthorization: Bearer abc\r\n"));
    assert_string_equal(s->seen_body, "hello");
    assert_int_equal(get(s, (dr__transfer_request){ .user = "me", .password = "pw" }, &m, NULL, &err), DR_OK);
    assert_true(saw(s, "\r\nAuthorization: Basic bWU6cHc=\r\n"));
    assert_int_equal(get(s, (dr__transfer_request){ .version = "\"one\"" }, &m, NULL, &err), DR_OK);
    assert_int_equal(get(s, (dr__transfer_request){ .version = "\"two\"" }, &m, NULL, &err), DR_ERR_STATE);
    assert_non_null(strstr(err.text, "/x: was changed"));
    free(m.data);
    site_free(s);
}

static void failures_name_the_object(void **state)
{
    (void)state;
    struct site *s = site_new();
    struct memory m = { 0 };
    dr__transfer_reply reply;
    dr_error err;
    assert_int_equal(get(s, (dr__transfer_request){ .url = url_of(s, "/none") }, &m, &reply, &err), DR_ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, "/none: HTTP 404: not found"));
    assert_string_equal(reply.said, "no such thing");
    s->bad = 100;
    s->status = "403 Forbidden";
    assert_int_equal(get(s, (dr__transfer_request){ .url = url_of(s, "/x?secret=1") }, &m, &reply, &err), DR_ERR_IO);
    assert_non_null(strstr(err.text, "/x: HTTP 403: access denied"));
    assert_null(strstr(err.text, "secret"));
    assert_int_equal(get(s, (dr__transfer_request){ .url = "ftp://x/y" }, &m, NULL, &err), DR_ERR_ARG);
    assert_int_equal(get(s, (dr__transfer_request){ .offset = UINT64_MAX }, &m, NULL, &err), DR_ERR_ARG);
    free(m.data);
    site_free(s);
    /* Nobody listens there now, and a server that never answered is given up. */
    assert_int_equal(get(s, (dr__transfer_request){ .url = "http://127.0.0.1:1/x" }, &m, &reply, &err), DR_ERR_IO);
    assert_non_null(strstr(err.text, "http://127.0.0.1:1/x: "));
    assert_int_equal(reply.tries, 4);
}

static void failures_are_tried_again(void **state)
{
    (void)state;
    static const char *const bad[] = { "503 Service Unavailable", "429 Too Many Requests", "500 Internal Server Error",
                                       NULL };
    for (int i = 0; i < 4; i++) {
        struct site *s = site_new();
        struct memory m = { 0 };
        dr__transfer_reply reply;
        dr_error err;
        s->bad = 2;
        s->status = bad[i];
        assert_int_equal(get(s, (dr__transfer_request){ 0 }, &m, &reply, &err), DR_OK);
        assert_int_equal(reply.tries, 3);
        assert_memory_equal(m.data, s->data, SIZE);
        free(m.data);
        site_free(s);
    }
}

static void what_was_begun_is_not_repeated(void **state)
{
    (void)state;
    struct site *s = site_new();
    struct memory m = { 0 };
    dr__transfer_reply reply;
    dr_error err;
    s->bad = 1;
    s->status = "500 Internal Server Error";
    assert_int_equal(get(s, (dr__transfer_request){ .body = "x", .body_size = 1 }, &m, &reply, &err), DR_ERR_IO);
    assert_int_equal(s->server.n_requests, 1);
    s->bad = 2;
    assert_int_equal(
        get(s, (dr__transfer_request){ .body = "x", .body_size = 1, .idempotent = true }, &m, &reply, &err), DR_OK);
    s->bad = 4;
    s->status = "503 Service Unavailable"; /* it did nothing */
    assert_int_equal(get(s, (dr__transfer_request){ .body = "x", .body_size = 1 }, &m, &reply, &err), DR_OK);
    free(m.data);
    site_free(s);
}

static void retry_after_is_respected(void **state)
{
    (void)state;
    struct site *s = site_new();
    struct memory m = { 0 };
    dr_error err;
    s->bad = 1;
    s->status = "503 Service Unavailable";
    s->headers = "Retry-After: 1\r\n";
    const uint64_t begin = dr__now_ns();
    assert_int_equal(get(s, (dr__transfer_request){ 0 }, &m, NULL, &err), DR_OK);
    assert_true(dr__now_ns() - begin >= 1000000000);
    free(m.data);
    site_free(s);
}

static void timeouts_end_tries(void **state)
{
    (void)state;
    struct site *s = site_new();
    struct memory m = { 0 };
    dr_error err;
    s->bad = 1000;
    s->status = "503 Service Unavailable";
    assert_int_equal(get(s, (dr__transfer_request){ .timeout_ns = 500000000 }, &m, NULL, &err), DR_ERR_IO);
    assert_non_null(strstr(err.text, "HTTP 503: the server is overloaded or down (given up after "));
    s->bad = 0;
    s->slow_number = s->server.n_requests;
    s->slow_ms = 700;
    dr__transfer_reply reply; /* the first try stands still */
    assert_int_equal(get(s, (dr__transfer_request){ .idle_ns = 200000000 }, &m, &reply, &err), DR_OK);
    assert_int_equal(reply.tries, 2);
    free(m.data);
    site_free(s);
}

static void broken_bodies_are_resumed(void **state)
{
    (void)state;
    struct site *s = site_new();
    struct memory m = { 0 };
    dr__transfer_reply reply;
    dr_error err;
    s->bad = 3;
    s->left_off = 60000; /* of each of the first answers */
    assert_int_equal(get(s, (dr__transfer_request){ .offset = 10 }, &m, &reply, &err), DR_OK);
    assert_int_equal(reply.got, SIZE - 10);
    assert_memory_equal(m.data, s->data + 10, SIZE - 10);
    assert_true(saw(s, "If-Match: \"one\""));
    assert_false(saw(s, "Range: bytes=10-")); /* it went on where it broke off */
    free(m.data);
    site_free(s);
}

/* Without an entity tag nobody knows whether the rest belongs to the beginning. */
static void bodies_without_version_start_over(void **state)
{
    (void)state;
    struct site *s = site_new();
    struct memory m = { 0 };
    dr__transfer_reply reply;
    dr_error err;
    s->bad = 2;
    s->left_off = 60000;
    s->etag = NULL;
    assert_int_equal(get(s, (dr__transfer_request){ 0 }, &m, &reply, &err), DR_OK);
    assert_memory_equal(m.data, s->data, SIZE);
    assert_false(saw(s, "Range:"));
    free(m.data);
    site_free(s);
}

static bool changes(int fd, const http_request *r, void *user)
{
    struct site *s = user;
    if (r->number == 0) {
        http_answer_object(fd, r, "\"one\"", s->data, SIZE, 60000);
        memset(s->data, 7, SIZE);
        return false;
    }
    http_answer_object(fd, r, "\"two\"", s->data, SIZE, 0);
    return true;
}

static void an_object_that_changes_is_read_anew(void **state)
{
    (void)state;
    struct site *s = site_new();
    struct memory m = { 0 };
    dr_error err;
    s->server.handler = changes;
    assert_int_equal(get(s, (dr__transfer_request){ 0 }, &m, NULL, &err), DR_OK);
    assert_memory_equal(m.data, s->data, SIZE); /* none of the old one */
    free(m.data);
    site_free(s);
}

static bool without_ranges(int fd, const http_request *r, void *user)
{
    struct site *s = user;
    (void)r;
    http_answer(fd, "200 OK", "", s->data, SIZE);
    return true;
}

static void servers_without_ranges_are_read(void **state)
{
    (void)state;
    struct site *s = site_new();
    struct memory m = { 0 };
    dr__transfer_reply reply;
    dr_error err;
    s->server.handler = without_ranges;
    assert_int_equal(get(s, (dr__transfer_request){ .offset = 100000, .size = 1000 }, &m, &reply, &err), DR_OK);
    assert_int_equal(reply.got, 1000);
    assert_int_equal(reply.total, SIZE);
    assert_memory_equal(m.data, s->data + 100000, 1000);
    assert_int_equal(get(s, (dr__transfer_request){ .offset = 100 << 20, .size = 1000 }, &m, &reply, &err),
                     DR_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "cannot read ranges"));
    free(m.data);
    site_free(s);
}

/* As rclone's S3 server does: 200, with a Content-Range. */
static bool whole_status(int fd, const http_request *r, void *user)
{
    struct site *s = user;
    char headers[100];
    const size_t first = (size_t)r->first, n = (size_t)(r->last - r->first + 1);
    snprintf(headers, sizeof headers, "Content-Range: bytes %zu-%zu/%d\r\nETag: \"one\"\r\n", first, first + n - 1,
             SIZE);
    http_answer(fd, "200 OK", headers, s->data + first, n);
    return true;
}

static void ranges_may_have_the_status_of_whole_objects(void **state)
{
    (void)state;
    struct site *s = site_new();
    struct memory m = { 0 };
    dr__transfer_reply reply;
    dr_error err;
    s->server.handler = whole_status;
    assert_int_equal(get(s, (dr__transfer_request){ .offset = 100000, .size = 1000 }, &m, &reply, &err), DR_OK);
    assert_int_equal(reply.got, 1000);
    assert_int_equal(reply.total, SIZE);
    assert_memory_equal(m.data, s->data + 100000, 1000);
    free(m.data);
    site_free(s);
}

static void stragglers_are_asked_for_again(void **state)
{
    (void)state;
    struct site *s = site_new();
    struct memory m = { 0 };
    dr__transfer_stats before, after;
    dr__transfer_reply reply;
    dr_error err;
    dr__transfer_get_stats(&before);
    for (int i = 0; i < 100; i++)
        assert_int_equal(get(s, (dr__transfer_request){ .size = 10 }, &m, &reply, &err), DR_OK);
    s->slow_number = s->server.n_requests;
    s->slow_ms = 2000;
    assert_int_equal(get(s, (dr__transfer_request){ .size = 10 }, &m, &reply, &err), DR_OK);
    assert_memory_equal(m.data, s->data, 10);
    assert_int_equal(reply.tries, 1);
    dr__transfer_get_stats(&after);
    assert_true(after.hedges > before.hedges);
    assert_true(after.hedge_won > before.hedge_won);
    free(m.data);
    site_free(s);
}

struct collector {
    dr__transfer_sink sink;
    uint8_t data[SIZE];
    size_t n, end_at;
    pthread_t thread;
};

static dr_status collect(dr__transfer_sink *sink, const uint8_t *data, size_t n, dr_error *err)
{
    struct collector *c = (struct collector *)sink;
    (void)err;
    assert_true(pthread_equal(c->thread, pthread_self()));
    assert_true(n <= SIZE - c->n);
    memcpy(c->data + c->n, data, n);
    c->n += n;
    return c->end_at && c->n >= c->end_at ? DR_END : DR_OK;
}

static void streams_hand_over_bytes(void **state)
{
    (void)state;
    struct site *s = site_new();
    struct collector *c = calloc(1, sizeof *c);
    dr__transfer_reply reply;
    dr_error err;
    const dr__transfer_request q = { .url = url_of(s, "/x") };
    *c = (struct collector){ .sink.take = collect, .thread = pthread_self() };
    s->bad = 2;
    s->left_off = 50000;
    assert_int_equal(dr__transfer_stream(&q, &c->sink, &reply, &err), DR_OK);
    assert_int_equal(c->n, SIZE);
    assert_memory_equal(c->data, s->data, SIZE);
    *c = (struct collector){ .sink.take = collect, .thread = pthread_self(), .end_at = 1 };
    assert_int_equal(dr__transfer_stream(&q, &c->sink, &reply, &err), DR_OK); /* ended by the sink */
    *c = (struct collector){ .sink.take = collect, .thread = pthread_self() };
    s->etag = NULL;
    s->bad = s->server.n_requests + 1; /* what the sink has had cannot be taken back */
    assert_int_equal(dr__transfer_stream(&q, &c->sink, &reply, &err), DR_ERR_IO);
    free(c);
    site_free(s);
}

static bool endless(int fd, const http_request *r, void *user)
{
    static char zeros[1 << 16];
    (void)r, (void)user;
    http_answer(fd, "200 OK", "Content-Type: x\r\n", zeros, sizeof zeros);
    return true;
}

/* Answers of more than the room for waiting bytes, to a consumer that is slow. */
struct slow {
    dr__transfer_sink sink;
    uint64_t n;
    size_t most;
};

static dr_status take_slowly(dr__transfer_sink *sink, const uint8_t *data, size_t n, dr_error *err)
{
    struct slow *s = (struct slow *)sink;
    (void)data, (void)err;
    s->n += n;
    s->most = n > s->most ? n : s->most;
    usleep(20000);
    return DR_OK;
}

static bool large(int fd, const http_request *r, void *user)
{
    (void)user;
    const size_t n = 20 << 20;
    uint8_t *data = calloc(1, n);
    http_answer_object(fd, r, "\"l\"", data, n, 0);
    free(data);
    return true;
}

static void slow_consumers_hold_back_the_server(void **state)
{
    (void)state;
    struct site *s = site_new();
    struct slow c = { .sink.take = take_slowly };
    dr__transfer_reply reply;
    dr_error err;
    s->server.handler = large;
    const dr__transfer_request q = { .url = url_of(s, "/l"), .idle_ns = 10000000 }; /* shorter than the pauses */
    assert_int_equal(dr__transfer_stream(&q, &c.sink, &reply, &err), DR_OK);
    assert_int_equal(c.n, 20 << 20);
    assert_true(c.most <= 2 << 20);
    site_free(s);
}

struct call {
    const struct site *site;
    pthread_t thread;
    int n;
    bool good;
};

static void *call_often(void *arg)
{
    struct call *c = arg;
    struct memory m = { 0 };
    c->good = true;
    for (int i = 0; i < c->n; i++) {
        const size_t offset = (size_t)(i * 977) % (SIZE - 5000);
        char url[128];
        snprintf(url, sizeof url, "%s/x", c->site->server.url);
        const dr__transfer_request q = { .url = url, .offset = offset, .size = 5000 };
        m.target.reserve = reserve;
        c->good = c->good && dr__transfer_run(&q, &m.target, NULL, NULL) == DR_OK &&
                  !memcmp(m.data, c->site->data + offset, 5000);
    }
    free(m.data);
    return NULL;
}

static void many_threads_share_connections(void **state)
{
    (void)state;
    struct site *s = site_new();
    struct call calls[24];
    dr__transfer_set_limits(&(dr__transfer_limits){ .requests = 8, .bytes = 20000 });
    for (size_t i = 0; i < 24; i++) {
        calls[i] = (struct call){ .site = s, .n = 30 };
        assert_int_equal(pthread_create(&calls[i].thread, NULL, call_often, &calls[i]), 0);
    }
    for (size_t i = 0; i < 24; i++) {
        pthread_join(calls[i].thread, NULL);
        assert_true(calls[i].good);
    }
    assert_in_range(s->server.n_connections, 1, 24 + 24 * 30 / 16);
    dr__transfer_set_limits(&(dr__transfer_limits){ .requests = 64, .bytes = 256 << 20 });
    site_free(s);
}

static void *set_later(void *flag)
{
    usleep(100000);
    atomic_store((atomic_bool *)flag, true);
    return NULL;
}

static void calls_are_cancelled(void **state)
{
    (void)state;
    struct site *s = site_new();
    struct memory m = { 0 };
    dr_error err;
    pthread_t thread;
    static atomic_bool flag;
    s->bad = 1000000;
    s->status = "503 Service Unavailable"; /* for ever */
    pthread_create(&thread, NULL, set_later, &flag);
    assert_null(dr__transfer_watch(&flag));
    assert_int_equal(get(s, (dr__transfer_request){ 0 }, &m, NULL, &err), DR_ERR_CANCELLED);
    assert_ptr_equal(dr__transfer_watch(NULL), &flag);
    pthread_join(thread, NULL);
    free(m.data);
    site_free(s);
}

static void children_have_a_thread_of_their_own(void **state)
{
    (void)state;
    if (DR_TEST_TSAN)
        skip(); /* it allows a child no threads */
    struct site *s = site_new();
    struct memory m = { 0 };
    assert_int_equal(get(s, (dr__transfer_request){ .size = 100 }, &m, NULL, NULL), DR_OK);
    const pid_t child = fork();
    if (!child) {
        const bool good = get(s, (dr__transfer_request){ .offset = 5, .size = 100 }, &m, NULL, NULL) == DR_OK &&
                          !memcmp(m.data, s->data + 5, 100);
        _exit(good ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(get(s, (dr__transfer_request){ .offset = 9, .size = 100 }, &m, NULL, NULL), DR_OK);
    assert_memory_equal(m.data, s->data + 9, 100);
    free(m.data);
    site_free(s);
}

/* libcurl closes sockets that never were connected by itself; their numbers go to other files. */
static void children_lose_no_file(void **state)
{
    (void)state;
    enum { FILES = 32, CALLERS = 8 };
    struct memory m = { 0 };
    dr_error err;
    char url[64];
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;
    int files[FILES], callers[CALLERS];
    const int deaf = socket(AF_INET, SOCK_STREAM, 0); /* accepts nobody, and lets few wait */
    assert_int_equal(bind(deaf, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(deaf, 0), 0);
    assert_int_equal(getsockname(deaf, (struct sockaddr *)&address, &size), 0);
    for (int i = 0; i < CALLERS; i++) {
        callers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        connect(callers[i], (struct sockaddr *)&address, size);
    }
    snprintf(url, sizeof url, "http://127.0.0.1:%d/x", ntohs(address.sin_port));
    assert_int_not_equal(get(NULL, (dr__transfer_request){ .url = url, .timeout_ns = 300000000 }, &m, NULL, &err),
                         DR_OK);
    for (int i = 0; i < FILES; i++)
        assert_true((files[i] = dup(STDERR_FILENO)) >= 0);
    const pid_t child = fork();
    if (!child) {
        int lost = 0;
        for (int i = 0; i < FILES; i++)
            lost += fcntl(files[i], F_GETFD) < 0;
        _exit(lost);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    for (int i = 0; i < FILES; i++)
        close(files[i]);
    for (int i = 0; i < CALLERS; i++)
        close(callers[i]);
    close(deaf);
    free(m.data);
}

static void failing_allocations_are_survived(void **state)
{
    (void)state;
    struct site *s = site_new();
    struct memory m = { 0 };
    dr_error err;
    s->server.handler = endless;
    bool done = false;
    for (long n = 1; n < 100 && !done; n++) {
        dr__alloc_fail_at(n, false);
        const dr_status status = get(s, (dr__transfer_request){ 0 }, &m, NULL, &err);
        done = dr__alloc_fail_at(0, false) < n;
        if (status != DR_OK && status != DR_ERR_NOMEM)
            fail_msg("%s", err.text);
    }
    assert_true(done);
    free(m.data);
    site_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_and_ranges_are_read),
        cmocka_unit_test(requests_say_what_was_asked),
        cmocka_unit_test(failures_name_the_object),
        cmocka_unit_test(failures_are_tried_again),
        cmocka_unit_test(what_was_begun_is_not_repeated),
        cmocka_unit_test(retry_after_is_respected),
        cmocka_unit_test(timeouts_end_tries),
        cmocka_unit_test(broken_bodies_are_resumed),
        cmocka_unit_test(bodies_without_version_start_over),
        cmocka_unit_test(an_object_that_changes_is_read_anew),
        cmocka_unit_test(servers_without_ranges_are_read),
        cmocka_unit_test(ranges_may_have_the_status_of_whole_objects),
        cmocka_unit_test(stragglers_are_asked_for_again),
        cmocka_unit_test(streams_hand_over_bytes),
        cmocka_unit_test(slow_consumers_hold_back_the_server),
        cmocka_unit_test(many_threads_share_connections),
        cmocka_unit_test(calls_are_cancelled),
        cmocka_unit_test(children_have_a_thread_of_their_own),
        cmocka_unit_test(children_lose_no_file),
        cmocka_unit_test(failing_allocations_are_survived),
    };
    if (dr__transfer_available(NULL) != DR_OK) {
        puts("skipped: no libcurl");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
