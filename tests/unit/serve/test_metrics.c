/* The metrics: addresses, the page, the server, what forks and crowds do to it.  The format itself is checked from
 * Python by a parser that is not ours (test_metrics.py). */
#include "unit/cm.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <drapps/drapps.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "monitor/probe.h"
#include "serve/listen.h"

static dr_error err;
static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/test-metrics-XXXXXX");
    assert_non_null(mkdtemp(folder));
    setenv("DRAPPS_LIVE", folder, 1);
    return 0;
}

static int drop_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

/* --- addresses --- */

static void addresses(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int family, port;
        bool loopback;
    } right[] = {
        { "9464", AF_INET, 9464, true },
        { "127.0.0.1:0", AF_INET, 0, true },
        { "localhost:65535", AF_INET, 65535, true },
        { "[::1]:9464", AF_INET6, 9464, true },
        { "0.0.0.0:80", AF_INET, 80, false },
        { "[::]:80", AF_INET6, 80, false },
        { "10.1.2.3:5", AF_INET, 5, false },
        { "127.9.9.9:5", AF_INET, 5, true },
    };
    static const char *const wrong[] = {
        "",
        ":9464",
        "localhost",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:65536",
        "127.0.0.1:-1",
        "::1:9464",
        "[127.0.0.1]:1",
        "example.org:80",
        "9464x",
        "[::1]",
        "1.2.3:4",
        " 80",
        "99999999999999999999",
        "127.0.0.1:80:81",
        "[]:1",
        NULL,
    };
    dr__address a;
    for (size_t i = 0; i < DR_COUNT(right); i++) {
        assert_ok(dr__address_parse(right[i].text, &a, &err));
        assert_int_equal(a.any.sa_family, right[i].family);
        assert_int_equal(dr__address_port(&a), right[i].port);
        assert_int_equal(dr__address_is_loopback(&a), right[i].loopback);
    }
    for (size_t i = 0; i < DR_COUNT(wrong); i++)
        assert_fails(dr__address_parse(wrong[i], &a, &err), DR_ERR_ARG, "address must be PORT");
}

/* --- the page --- */

static dr_live *busy_loader(const char *name)
{
    dr_live *live = dr_live_open(name, "analytic");
    dr_snapshot s = { .present = (UINT64_C(1) << DR_N_SENSORS) - 1, .n_cpus = 2, .cpu = { 0.5f, 0.25f } };
    double flow[DR_N_FLOWS], knobs[DR_N_KNOBS];
    for (int i = 0; i < DR_N_SENSORS; i++)
        s.value[i] = 100 + i;
    for (int i = 0; i < DR_N_FLOWS; i++)
        flow[i] = 0.5 + i;
    for (int i = 0; i < DR_N_KNOBS; i++)
        knobs[i] = i;
    dr_live_put(live, &s, flow, DR_N_FLOWS, knobs, DR_N_KNOBS);
    dr_spread spreads[DR_N_SPREADS] = { { 0 } };
    spreads[DR_SPREAD_WAIT] = (dr_spread){ .sum = 40.5, .n = { 3, [2] = 4, [DR_SPREAD_BINS - 1] = 1 } };
    dr_live_spreads(live, spreads, DR_N_SPREADS);
    dr_decision d = { .number = 1, .bound = DR_BOUND_MEMORY, .reward = 0.75, .changed = 1u << DR_KNOB_PREFETCH };
    dr_live_decision(live, &d);
    return live;
}

static void has(const char *page, const char *part)
{
    if (!strstr(page, part))
        fail_msg("\"%s\" is not in the page:\n%s", part, page);
}

static void the_page(void **state)
{
    (void)state;
    char *page;
    dr_live *live = busy_loader("a \"b\"\\c\nd");
    assert_ok(dr_metrics_text(&page, &err));
    has(page, "# TYPE drapps_build info\n# HELP drapps_build the version of drapps\ndrapps_build_info{version=\"");
    has(page, "# TYPE drapps_samples counter\n# UNIT drapps_samples samples\n# HELP drapps_samples delivered");
    has(page, ",name=\"a \\\"b\\\"\\\\c\\nd\"} 0.5\n");
    has(page, "\ndrapps_wait_seconds_total{");
    has(page, "\ndrapps_read_bytes_total{");
    has(page, "\n# TYPE drapps_limit_bytes gauge\n# UNIT drapps_limit_bytes bytes\n");
    has(page, "\ndrapps_knob_workers{");
    has(page, "bound=\"memory\"} 1\n");
    has(page, "bound=\"cpu\"} 0\n");
    has(page, "knob=\"prefetch\"} 1\n");
    has(page, "knob=\"workers\"} 0\n");
    has(page, "# TYPE drapps_consumer_wait_seconds histogram\n# UNIT drapps_consumer_wait_seconds seconds\n");
    has(page, "le=\"0.000262144\"} 3\ndrapps_consumer_wait_seconds_bucket{");
    has(page, "le=\"0.001048576\"} 3\n");
    has(page, "le=\"0.004194304\"} 7\n");
    has(page, "le=\"17.179869184\"} 7\n");
    has(page, "le=\"+Inf\"} 8\ndrapps_consumer_wait_seconds_count{");
    has(page, "} 8\ndrapps_consumer_wait_seconds_sum{");
    has(page, "} 40.5\n# TYPE drapps_batch_latency_seconds histogram\n");
    has(page, "\ndrapps_reward{");
    has(page, "\ndrapps_sensor_cpu_total_cpus 100.0\n");
    has(page, "\n# UNIT drapps_sensor_disk_bandwidth_bytes_per_second bytes_per_second\n");
    has(page, "\ndrapps_cpu_use_ratio{cpu=\"1\"} 0.25\n");
    has(page, "policy=\"analytic\"} 1\n");
    assert_string_equal(page + strlen(page) - 6, "# EOF\n");
    dr_text_free(&page);
    dr_live_close(&live);
}

static void the_page_without_loaders(void **state)
{
    (void)state;
    char *page;
    assert_ok(dr_metrics_text(&page, &err));
    has(page, "drapps_build_info{version=");
    assert_null(strstr(page, "drapps_samples"));
    assert_string_equal(page + strlen(page) - 6, "# EOF\n");
    dr_text_free(&page);
}

/* No two families have one name, and each has its head once, before its samples. */
static void families_are_whole(void **state)
{
    (void)state;
    char *page, *families[256];
    size_t n = 0;
    uint64_t throttled;
    dr_live *one = busy_loader("one"), *two = busy_loader("two");
    assert_ok(dr_metrics_text(&page, &err));
    for (char *line = strtok(page, "\n"); line; line = strtok(NULL, "\n")) {
        if (!strncmp(line, "# TYPE ", 7)) {
            assert_true(n < DR_COUNT(families));
            families[n] = line + 7;
            families[n][strcspn(families[n], " ")] = 0;
            for (size_t i = 0; i < n; i++)
                assert_string_not_equal(families[i], families[n]);
            n++;
        } else if (line[0] != '#')
            assert_int_equal(strncmp(line, families[n - 1], strlen(families[n - 1])), 0);
    }
    const bool in_a_group = dr__throttled_ns("", &throttled);
    assert_int_equal(n, 2 + DR_N_FLOWS + DR_N_KNOBS + DR_N_SPREADS + 3 + DR_N_SENSORS + 1 + in_a_group);
    dr_text_free(&page);
    dr_live_close(&one);
    dr_live_close(&two);
}

static void memory_that_is_short(void **state)
{
    (void)state;
    dr_live *live = busy_loader("x");
    for (long n = 1;; n++) {
        char *page = NULL;
        dr__alloc_fail_at(n, true);
        dr_status status = dr_metrics_text(&page, &err);
        dr__alloc_fail_at(0, false);
        if (status == DR_OK) {
            has(page, "# EOF");
            dr_text_free(&page);
            break;
        }
        assert_int_equal(status, DR_ERR_NOMEM);
        assert_null(page);
    }
    dr_live_close(&live);
}

/* --- the server --- */

static int connect_to(int port)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    inet_pton(AF_INET, "127.0.0.1", &a.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&a, sizeof a) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Sends a request and reads until the server closes; the caller frees.  NULL: no connection. */
static char *ask(int port, const char *request)
{
    int fd = connect_to(port);
    if (fd < 0)
        return NULL;
    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), (ssize_t)strlen(request));
    size_t n = 0, room = 1 << 20;
    char *answer = malloc(room);
    for (ssize_t got; (got = recv(fd, answer + n, room - n - 1, 0)) > 0;)
        n += (size_t)got;
    answer[n] = 0;
    close(fd);
    return answer;
}

static void answers(int port, const char *request, const char *status, const char *part)
{
    char *answer = ask(port, request);
    assert_non_null(answer);
    if (strncmp(answer, status, strlen(status)) != 0 || !strstr(answer, part))
        fail_msg("%s\n-> %s", request, answer);
    free(answer);
}

#define END " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

#ifdef DR_HAVE_MICROHTTPD
static void requests(void **state)
{
    (void)state;
    dr_metrics *m;
    dr_live *live = busy_loader("set");
    assert_ok(dr_metrics_start("0", &m, &err));
    int port = dr_metrics_port(m);
    assert_true(port > 0);
    answers(port, "GET /metrics" END, "HTTP/1.1 200",
            "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n");
    answers(port, "GET /metrics" END, "HTTP/1.1 200", "name=\"set\"");
    answers(port, "GET /metrics?x=1" END, "HTTP/1.1 200", "# EOF\n");
    answers(port, "HEAD /metrics" END, "HTTP/1.1 200", "Content-Length: ");
    answers(port, "GET /" END, "HTTP/1.1 404", "only /metrics");
    answers(port, "GET /metrics/../x" END, "HTTP/1.1 404", "");
    answers(port, "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc",
            "HTTP/1.1 405", "Allow: GET, HEAD");
    answers(port, "DELETE /metrics" END, "HTTP/1.1 405", "");
    answers(port, "GET /metrics HTTP/1.0\r\n\r\n", "HTTP/1.", "# EOF\n");
    dr_metrics_stop(&m);
    assert_null(m);
    assert_null(ask(port, "GET /metrics" END));
    dr_live_close(&live);
}

/* A name that somebody lets lead to 127.0.0.1 opens nothing to his web pages. */
static void hosts(void **state)
{
    (void)state;
    static const char *const fine[] = { "localhost", "localhost:9464", "127.0.0.1:9464",
                                        "127.0.0.1", "[::1]:80",       "[::1]" };
    static const char *const foreign[] = {
        "example.org", "127.evil.example", "localhost.evil.example:80", "10.0.0.1:80", "::1", ""
    };
    char request[256];
    dr_metrics *m;
    assert_ok(dr_metrics_start("127.0.0.1:0", &m, &err));
    for (size_t i = 0; i < DR_COUNT(fine); i++) {
        snprintf(request, sizeof request, "GET /metrics HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", fine[i]);
        answers(dr_metrics_port(m), request, "HTTP/1.1 200", "# EOF");
    }
    for (size_t i = 0; i < DR_COUNT(foreign); i++) {
        snprintf(request, sizeof request, "GET /metrics HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", foreign[i]);
        answers(dr_metrics_port(m), request, "HTTP/1.1 421", "localhost");
    }
    dr_metrics_stop(&m);
    assert_ok(dr_metrics_start("0.0.0.0:0", &m, &err)); /* asked for: any name will do */
    answers(dr_metrics_port(m), "GET /metrics HTTP/1.1\r\nHost: node7\r\nConnection: close\r\n\r\n", "HTTP/1.1 200",
            "# EOF");
    dr_metrics_stop(&m);
}

static void ports_that_are_taken(void **state)
{
    (void)state;
    char text[32];
    dr_metrics *m, *second, *many[8];
    assert_ok(dr_metrics_start("0", &m, &err));
    snprintf(text, sizeof text, "%d", dr_metrics_port(m));
    assert_fails(dr_metrics_start(text, &second, &err), DR_ERR_IO, "cannot listen on 127.0.0.1, port ");
    assert_null(second);
    assert_fails(dr_metrics_start("192.0.2.1:0", &second, &err), DR_ERR_IO, "192.0.2.1");
    for (int i = 0; i < 7; i++)
        assert_ok(dr_metrics_start("0", &many[i], &err));
    assert_fails(dr_metrics_start("0", &second, &err), DR_ERR_LIMIT, "8 servers");
    for (int i = 0; i < 7; i++)
        dr_metrics_stop(&many[i]);
    dr_metrics_stop(&m);
    assert_ok(dr_metrics_start(text, &m, &err)); /* at once again */
    dr_metrics_stop(&m);
    dr_metrics_stop(&m);
    dr_metrics_stop(NULL);
}

static atomic_int whole;

static void *scrape(void *port)
{
    for (int i = 0; i < 10; i++) {
        char *answer = ask(*(int *)port, "GET /metrics" END);
        if (answer && !strncmp(answer, "HTTP/1.1 200", 12) && strstr(answer, "# EOF\n"))
            atomic_fetch_add(&whole, 1);
        free(answer);
    }
    return NULL;
}

/* Loaders write, come and go meanwhile. */
static void many_scrapes_at_once(void **state)
{
    (void)state;
    enum { N = 12 };
    dr_metrics *m;
    pthread_t threads[N];
    atomic_store(&whole, 0);
    assert_ok(dr_metrics_start("0", &m, &err));
    int port = dr_metrics_port(m);
    for (int i = 0; i < N; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, scrape, &port), 0);
    for (int i = 0; i < 50; i++) {
        dr_live *live = busy_loader("x");
        dr_live_close(&live);
    }
    for (int i = 0; i < N; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&whole), N * 10);
    dr_metrics_stop(&m);
}

/* More than are served at a time, so that some wait: none of those who only hold one open keeps the server from ending.
 */
static void idle_connections(void **state)
{
    (void)state;
    int fds[40];
    dr_metrics *m;
    assert_ok(dr_metrics_start("0", &m, &err));
    for (size_t i = 0; i < DR_COUNT(fds); i++)
        assert_true((fds[i] = connect_to(dr_metrics_port(m))) >= 0);
    dr_metrics_stop(&m);
    for (size_t i = 0; i < DR_COUNT(fds); i++)
        close(fds[i]);
}

/* More requests that are begun and never ended than are served at a time: another client is answered at once, because
 * the oldest connections were closed for new ones, and not because all had idled: the newest are still open. */
static void unfinished_requests(void **state)
{
    (void)state;
    enum { N = 200, STILL_OPEN = 16 };
    int fds[N];
    dr_metrics *m;
    char byte;
    assert_ok(dr_metrics_start("0", &m, &err));
    for (int i = 0; i < N; i++) {
        assert_true((fds[i] = connect_to(dr_metrics_port(m))) >= 0);
        assert_int_equal(send(fds[i], "GET", 3, MSG_NOSIGNAL), 3);
    }
    answers(dr_metrics_port(m), "GET /metrics" END, "HTTP/1.1 200", "# EOF");
    assert_int_equal(recv(fds[0], &byte, 1, 0), 0);
    for (int i = N - STILL_OPEN; i < N; i++)
        assert_int_equal(recv(fds[i], &byte, 1, MSG_DONTWAIT), -1);
    dr_metrics_stop(&m);
    for (int i = 0; i < N; i++)
        close(fds[i]);
}

/* A child that lives on does not keep the port. */
static void after_a_fork(void **state)
{
    (void)state;
    char text[32];
    int ready[2];
    dr_metrics *m;
    assert_int_equal(pipe(ready), 0);
    assert_ok(dr_metrics_start("0", &m, &err));
    snprintf(text, sizeof text, "%d", dr_metrics_port(m));
    pid_t pid = fork();
    if (pid == 0) {
        dr_metrics_stop(&m);
        if (write(ready[1], "x", 1) == 1)
            for (;;)
                pause();
        _exit(0);
    }
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    answers(dr_metrics_port(m), "GET /metrics" END, "HTTP/1.1 200", "# EOF");
    dr_metrics_stop(&m);
    assert_null(ask(atoi(text), "GET /metrics" END));
    assert_ok(dr_metrics_start(text, &m, &err));
    dr_metrics_stop(&m);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    close(ready[0]);
    close(ready[1]);
}

/* In a process of its own: it happens once. */
static void in_child(void (*body)(void))
{
    pid_t pid = fork();
    if (pid == 0) {
        body();
        _exit(0);
    }
    int status;
    waitpid(pid, &status, 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void not_asked_for(void)
{
    unsetenv("DRAPPS_METRICS");
    assert_ok(dr_metrics_from_environment(&err));
}

static void wrongly_asked_for(void)
{
    setenv("DRAPPS_METRICS", "nine", 1);
    for (int i = 0; i < 2; i++) {
        err.text[0] = 0;
        assert_fails(dr_metrics_from_environment(&err), DR_ERR_ARG, "got \"nine\"");
    }
}

/* The port above one that is free: so a rank adds to it. */
static void asked_for_by_rank(void)
{
    for (int i = 0; i < 20; i++) {
        char text[32];
        dr_metrics *a, *b;
        assert_ok(dr_metrics_start("0", &a, &err));
        int port = dr_metrics_port(a);
        dr_metrics_stop(&a);
        snprintf(text, sizeof text, "%d", port + 1);
        if (port == 65535 || dr_metrics_start(text, &b, &err) != DR_OK)
            continue;
        dr_metrics_stop(&b);
        snprintf(text, sizeof text, "%d", port);
        setenv("DRAPPS_METRICS", text, 1);
        setenv("LOCAL_RANK", "1", 1);
        for (int k = 0; k < 2; k++)
            assert_ok(dr_metrics_from_environment(&err));
        answers(port + 1, "GET /metrics" END, "HTTP/1.1 200", "# EOF");
        return;
    }
    fail_msg("no two free ports side by side");
}

static void by_the_environment(void **state)
{
    (void)state;
    in_child(not_asked_for);
    in_child(wrongly_asked_for);
    in_child(asked_for_by_rank);
}

#else

static void without_the_library(void **state)
{
    (void)state;
    dr_metrics *m;
    assert_fails(dr_metrics_start("0", &m, &err), DR_ERR_UNSUPPORTED, "libmicrohttpd-dev");
    assert_null(m);
    assert_fails(dr_metrics_start("x", &m, &err), DR_ERR_ARG, "x");
    (void)answers;
}

#endif

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, drop_folder)
    const struct CMUnitTest tests[] = {
        TEST(addresses),
        TEST(the_page),
        TEST(the_page_without_loaders),
        TEST(families_are_whole),
        TEST(memory_that_is_short),
#ifdef DR_HAVE_MICROHTTPD
        TEST(requests),
        TEST(hosts),
        TEST(ports_that_are_taken),
        TEST(many_scrapes_at_once),
        TEST(idle_connections),
        TEST(unfinished_requests),
        TEST(after_a_fork),
        TEST(by_the_environment),
#else
        TEST(without_the_library),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
