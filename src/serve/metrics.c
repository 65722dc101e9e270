/* metrics.c: the HTTP server of the metrics, by libmicrohttpd.
 *
 * One thread answers all requests; making a page takes some hundred microseconds.  Idle connections are closed.  A
 * client that sends its request byte by byte is never idle, so a new connection beyond MAX_OPEN closes the oldest one:
 * slow clients cannot lock others out.  After a fork the child closes the listening socket, so that the port is free
 * once the parent has ended.
 */
#include <drapps/metrics.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/thread.h"
#include "serve/http_library.h"
#include "serve/listen.h"

#ifdef DR_HAVE_MICROHTTPD
/* MAX_CONNECTIONS leaves room for evicted connections that the library has not closed yet. */
enum {
    MAX_SERVERS = 8,
    MAX_OPEN = 32,
    MAX_CONNECTIONS = 2 * MAX_OPEN,
    IDLE_SECONDS = 10,
    CONNECTION_BYTES = 16 * 1024
};

#define CONTENT_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

struct dr_metrics {
    struct MHD_Daemon *daemon;
    dr__address address;
    unsigned generation;
    int slot; /* index in `sockets` */
    /* Open connections, oldest first; used by the server's thread alone. */
    struct open {
        struct MHD_Connection *connection;
        int fd;
    } open[MAX_OPEN];
    int n_open;
};

/* --- sockets and forks --- */

/* The listening sockets + 1; 0: a free slot. */
static atomic_int sockets[MAX_SERVERS];
static pthread_once_t sockets_once = PTHREAD_ONCE_INIT;

static void close_in_child(void)
{
    for (int i = 0; i < MAX_SERVERS; i++) {
        int socket = atomic_exchange(&sockets[i], 0);
        if (socket > 0)
            close(socket - 1);
    }
}

static void watch_forks(void)
{
    dr__fork_in_child(close_in_child);
}

static bool claim_slot(dr_metrics *m, int fd)
{
    pthread_once(&sockets_once, watch_forks);
    for (m->slot = 0; m->slot < MAX_SERVERS; m->slot++) {
        int free_slot = 0;
        if (atomic_compare_exchange_strong(&sockets[m->slot], &free_slot, fd + 1))
            return true;
    }
    return false;
}

/* --- requests --- */

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned code, const char *type, const char *text)
{
    struct MHD_Response *r =
        dr__http.MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_MUST_COPY);
    if (!r)
        return MHD_NO;
    dr__http.MHD_add_response_header(r, "Content-Type", type);
    dr__http.MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    if (code == MHD_HTTP_METHOD_NOT_ALLOWED)
        dr__http.MHD_add_response_header(r, "Allow", "GET, HEAD");
    enum MHD_Result result = dr__http.MHD_queue_response(connection, code, r);
    dr__http.MHD_destroy_response(r);
    return result;
}

static enum MHD_Result answer_error(struct MHD_Connection *connection, unsigned code, const char *text)
{
    return answer(connection, code, "text/plain; charset=utf-8", text);
}

static enum MHD_Result answer_page(struct MHD_Connection *connection)
{
    dr_error err = { 0 };
    char *text = NULL;
    if (dr_metrics_text(&text, &err) != DR_OK)
        return answer_error(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, err.text);
    enum MHD_Result result = answer(connection, MHD_HTTP_OK, CONTENT_TYPE, text);
    dr__free(text);
    return result;
}

/* Called when the header of a request is complete, and again when its body is.  Other methods than GET and HEAD are
 * answered at the first call. */
static enum MHD_Result handle(void *user, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *upload, size_t *n_upload, void **seen)
{
    const dr_metrics *m = user;
    (void)version, (void)upload;
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return answer_error(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
    if (!*seen) {
        *seen = (void *)m;
        return MHD_YES;
    }
    *n_upload = 0;
    if (dr__address_is_loopback(&m->address) &&
        !dr__address_names_loopback(dr__http.MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host")))
        return answer_error(connection, MHD_HTTP_MISDIRECTED_REQUEST, "only for this machine: ask for localhost\n");
    if (strcmp(url, "/metrics") != 0)
        return answer_error(connection, MHD_HTTP_NOT_FOUND, "there is only /metrics\n");
    return answer_page(connection);
}

/* --- connections --- */

static void remove_connection(dr_metrics *m, const struct MHD_Connection *connection)
{
    int i = 0;
    while (i < m->n_open && m->open[i].connection != connection)
        i++;
    if (i == m->n_open)
        return;
    m->n_open--;
    memmove(&m->open[i], &m->open[i + 1], (size_t)(m->n_open - i) * sizeof m->open[0]);
}

/* The library closes a connection whose socket is shut down when it polls it next.  That is in the same thread, so the
 * descriptor cannot have been reused. */
static void on_connection(void *user, struct MHD_Connection *connection, void **data,
                          enum MHD_ConnectionNotificationCode code)
{
    dr_metrics *m = user;
    (void)data;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        remove_connection(m, connection);
        return;
    }
    const union MHD_ConnectionInfo *info =
        dr__http.MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (!info)
        return;
    if (m->n_open == MAX_OPEN) {
        shutdown(m->open[0].fd, SHUT_RDWR);
        remove_connection(m, m->open[0].connection);
    }
    m->open[m->n_open++] = (struct open){ connection, info->connect_fd };
}

/* --- servers --- */

/* The server's thread blocks all signals: they are for the program's own threads. */
static struct MHD_Daemon *start_daemon(dr_metrics *m, int fd)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    struct MHD_Daemon *daemon = dr__http.MHD_start_daemon(
        MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ITC, 0, NULL, NULL, handle, m, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)MAX_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_NOTIFY_CONNECTION, on_connection, m,
        MHD_OPTION_END);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return daemon;
}

static dr_status run(dr_metrics *m, dr_error *err)
{
    int fd;
    DR_TRY(dr__listen(&m->address, &fd, err));
    if (!claim_slot(m, fd)) {
        close(fd);
        return dr__fail(err, DR_ERR_LIMIT, "metrics: %d servers run already", MAX_SERVERS);
    }
    m->daemon = start_daemon(m, fd);
    if (m->daemon)
        return DR_OK;
    atomic_store(&sockets[m->slot], 0);
    close(fd);
    return dr__fail(err, DR_ERR_IO, "metrics: the server did not start");
}

static dr_status start(const dr__address *address, dr_metrics **out, dr_error *err)
{
    DR_TRY(dr__http_load("metrics", err));
    dr_metrics *m = dr__alloc_zero(1, sizeof *m);
    if (!m)
        return dr__fail(err, DR_ERR_NOMEM, "metrics: out of memory");
    m->generation = dr__fork_generation();
    m->address = *address;
    dr_status status = run(m, err);
    if (status == DR_OK)
        *out = m;
    else
        dr__free(m);
    return status;
}

/* The slot is cleared first: once the socket is closed, its number may be another file's when a thread forks. */
void dr_metrics_stop(dr_metrics **metrics)
{
    dr_metrics *m = metrics ? *metrics : NULL;
    if (!m)
        return;
    *metrics = NULL;
    if (m->generation == dr__fork_generation()) {
        atomic_store(&sockets[m->slot], 0);
        dr__http.MHD_stop_daemon(m->daemon);
    }
    dr__free(m);
}

int dr_metrics_port(const dr_metrics *m)
{
    return dr__address_port(&m->address);
}

#else

static dr_status start(const dr__address *address, dr_metrics **out, dr_error *err)
{
    (void)address, (void)out;
    return dr__fail(err, DR_ERR_UNSUPPORTED,
                    "metrics: this build has no HTTP server; install libmicrohttpd-dev (Debian, Ubuntu), "
                    "libmicrohttpd-devel (Fedora) or libmicrohttpd (Homebrew) and build drapps again");
}

void dr_metrics_stop(dr_metrics **metrics)
{
    (void)metrics;
}

int dr_metrics_port(const dr_metrics *m)
{
    (void)m;
    return 0;
}

#endif

dr_status dr_metrics_start(const char *text, dr_metrics **out, dr_error *err)
{
    dr__address address;
    *out = NULL;
    DR_TRY(dr__address_parse(text, &address, err));
    return start(&address, out, err);
}

/* --- by the environment --- */

static pthread_once_t environment_once = PTHREAD_ONCE_INIT;
static dr_metrics *environment_server; /* runs until the process ends */
static dr_status first_status;
static dr_error first_error;

static void start_from_environment(void)
{
    const char *text = getenv("DRAPPS_METRICS"), *rank = getenv("LOCAL_RANK");
    dr__address address;
    if (!text || !*text)
        return;
    first_status = dr__address_parse(text, &address, &first_error);
    if (first_status != DR_OK)
        return;
    const int port = dr__address_port(&address), step = rank ? atoi(rank) : 0;
    if (port && step > 0 && port + step <= 65535)
        dr__address_set_port(&address, port + step);
    first_status = start(&address, &environment_server, &first_error);
}

dr_status dr_metrics_from_environment(dr_error *err)
{
    pthread_once(&environment_once, start_from_environment);
    if (first_status != DR_OK && err)
        *err = first_error;
    return first_status;
}
