/* http_server.c: starts, reloads and stops a server; its connections and its housekeeper. */
#include "serve/http_server.h"

#include <drapps/serve.h>

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"

enum { MB = 1 << 20, DEFAULT_CONNECTIONS = 1024 };

void dr_serve_defaults(dr_serve_options *o)
{
    dr__limits limits;
    dr__limits_read("", &limits);
    *o = (dr_serve_options){
        .size = sizeof *o,
        .address = "127.0.0.1:9470",
        .cpus = limits.cpus / 2,
        .max_request = MB,
        .max_samples = 4096,
        .max_pixels = 100000000,
        .max_seconds = 30,
        .max_sample_seconds = 5,
        .memory = 512ull * MB,
        .io_threads = limits.cpus > 2 ? (int)limits.cpus : 2,
        .connections = DEFAULT_CONNECTIONS,
        .connections_per_client = DEFAULT_CONNECTIONS / 4,
        .idle_seconds = 60,
    };
}

#ifdef DR_HAVE_MICROHTTPD
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "source/file.h"

enum {
    BACKLOG = 1024,
    CONNECTION_BYTES = 64 << 10, /* headers, and a block of frames */
    MOST_PEM = 1 << 20,
    MOST_THREADS = 128,
    MOST_JOBS = 64, /* requests for samples of one client at a time */
    SPARE_CONNECTIONS = 64,
    READERS = 4,
    FAR_READERS = 32, /* they mostly wait */
    FAR_OPS_THREADS = 8,
    FETCHERS = 16, /* threads for plain reads of files behind a URL */
};

#define TICK_NS 1000000000ull
#define TLS_VERSIONS "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

static void log_text(const dr_serve *s, const char *text)
{
    if (s->o.log)
        s->o.log(s->o.log_user, text);
}

/* --- connections --- */

static void put_address(const struct MHD_Connection *connection, char *text, size_t size)
{
    const union MHD_ConnectionInfo *info =
        dr__http.MHD_get_connection_info((struct MHD_Connection *)connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *a = info ? info->client_addr : NULL;
    snprintf(text, size, "?");
    if (a && a->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)a)->sin_addr, text, (socklen_t)size);
    else if (a && a->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr, text, (socklen_t)size);
}

/* lock: a connection whose socket is shut down is closed by its thread, which needs the lock for that: so the
 * descriptor cannot have been reused. */
static void cut_off(dr__conn *c)
{
    shutdown(c->fd, SHUT_RDWR);
}

/* lock: beyond the limit the connection goes that has been idle for longest; without one, the new one. */
static void make_room(dr_serve *s, dr__conn *latest)
{
    dr__conn *oldest = NULL;
    for (dr__conn *c = s->conns; c; c = c->next)
        if (c != latest && atomic_load(&c->state) == DR__CONN_IDLE &&
            (!oldest || atomic_load(&c->since_ns) < atomic_load(&oldest->since_ns)))
            oldest = c;
    cut_off(oldest ? oldest : latest);
}

static void open_connection(dr_serve *s, struct MHD_Connection *connection, void **data)
{
    const union MHD_ConnectionInfo *info =
        dr__http.MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    dr__conn *c = dr__alloc_zero(1, sizeof *c);
    *data = c;
    if (!c || !info)
        return;
    c->fd = info->connect_fd;
    atomic_init(&c->since_ns, dr__now_ns());
    put_address(connection, c->address, sizeof c->address);
    pthread_mutex_lock(&s->lock);
    c->next = s->conns;
    c->at = &s->conns;
    if (s->conns)
        s->conns->at = &c->next;
    s->conns = c;
    if (++s->n_conns > s->o.connections)
        make_room(s, c);
    pthread_mutex_unlock(&s->lock);
}

static void close_connection(dr_serve *s, void **data)
{
    dr__conn *c = *data;
    *data = NULL;
    if (!c)
        return;
    pthread_mutex_lock(&s->lock);
    if (c->at) {
        *c->at = c->next;
        if (c->next)
            c->next->at = c->at;
        s->n_conns--;
    }
    pthread_mutex_unlock(&s->lock);
    dr__free(c);
}

static void on_connection(void *user, struct MHD_Connection *connection, void **data,
                          enum MHD_ConnectionNotificationCode code)
{
    (code == MHD_CONNECTION_NOTIFY_STARTED) ? open_connection(user, connection, data) : close_connection(user, data);
}

/* --- the housekeeper --- */

/* lock: whoever sends a request byte by byte is never idle for the library.  While a request is answered, its bytes
 * flow, or the library's own timeout ends it. */
static void cut_off_slow(dr_serve *s, uint64_t now_ns)
{
    const uint64_t most_ns = (uint64_t)s->o.idle_seconds * 1000000000u;
    for (dr__conn *c = s->conns; c; c = c->next) {
        const uint64_t since_ns = atomic_load(&c->since_ns);
        if (atomic_load(&c->state) != DR__CONN_IS_ANSWERED && now_ns > since_ns && now_ns - since_ns > most_ns)
            cut_off(c);
    }
}

static void *keep_house(void *arg)
{
    dr_serve *s = arg;
    pthread_mutex_lock(&s->lock);
    while (!atomic_load(&s->stopping)) {
        dr__cond_wait(&s->quiet, &s->lock, dr__now_ns() + TICK_NS);
        cut_off_slow(s, dr__now_ns());
        pthread_mutex_unlock(&s->lock);
        dr__access_log_flush(&s->log);
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* --- starting --- */

static dr_status copy_text(const char *text, char **out, dr_error *err)
{
    *out = text ? dr__strdup(text) : NULL;
    return !text || *out ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "serve: out of memory");
}

static dr_status check(const dr_serve_options *o, dr_error *err)
{
    if (!(o->cpus >= 0) || o->cpus > MOST_THREADS)
        return dr__fail(err, DR_ERR_ARG, "cpus must be 0 to %d, got %g", MOST_THREADS, o->cpus);
    if (o->io_threads < 1 || o->io_threads > MOST_THREADS || o->read_threads < 0 || o->read_threads > MOST_THREADS)
        return dr__fail(err, DR_ERR_ARG, "io_threads must be 1 to %d and read_threads 0 to %d, got %d and %d",
                        MOST_THREADS, MOST_THREADS, o->io_threads, o->read_threads);
    if (o->connections < 1 || o->connections > 1000000 || o->connections_per_client < 1 || o->idle_seconds < 1)
        return dr__fail(err, DR_ERR_ARG,
                        "connections must be 1 to 1000000, connections_per_client and idle_seconds at least 1, got %d, "
                        "%d and %d",
                        o->connections, o->connections_per_client, o->idle_seconds);
    if (!o->max_request || !o->max_samples || !(o->max_seconds >= 0) || o->max_seconds > 1e6 ||
        !(o->max_sample_seconds > 0))
        return dr__fail(err, DR_ERR_ARG,
                        "max_request and max_samples must be at least 1, max_seconds 0 to 1000000, max_sample_seconds "
                        "above 0");
    if (!o->cert != !o->key)
        return dr__fail(err, DR_ERR_ARG, "TLS needs both a certificate and its key");
    return DR_OK;
}

static dr_status read_pem(const char *path, char **out, dr_error *err)
{
    struct stat st;
    size_t got = 0;
    int fd;
    *out = NULL;
    if (!path)
        return DR_OK;
    DR_TRY(dr__file_open(AT_FDCWD, NULL, path, &fd, &st, err));
    char *text = st.st_size <= MOST_PEM ? dr__alloc_zero((size_t)st.st_size + 1, 1) : NULL;
    const bool good = text && dr__file_pread(fd, text, (size_t)st.st_size, 0, &got) == 0;
    close(fd);
    if (good) {
        *out = text;
        return DR_OK;
    }
    dr__free(text);
    return dr__fail(err, DR_ERR_IO, "%s: cannot be read, or is larger than %d bytes", path, MOST_PEM);
}

static dr_status read_rights(const char *path, dr__rights **out, dr_error *err)
{
    *out = NULL;
    if (!path)
        return DR_OK;
    dr__rights *r = dr__alloc_zero(1, sizeof *r);
    if (!r)
        return dr__fail(err, DR_ERR_NOMEM, "serve: out of memory");
    atomic_init(&r->refs, 1);
    const dr_status status = dr__tokens_read(path, &r->tokens, err);
    if (status != DR_OK)
        dr__free(r);
    else
        *out = r;
    return status;
}

/* The server's threads block all signals: they are for the program's own threads.
 *
 * poll, not epoll: with that libmicrohttpd 0.9.75 misses the end of a connection that arrives with a request, and keeps
 * it until it is idle for long.  Each thread polls its part of the connections. */
static dr_status start_daemon(dr_serve *s, dr_error *err)
{
    sigset_t all, before;
    const bool tls = s->cert;
    const unsigned threads = (unsigned)s->o.io_threads;
    const unsigned flags =
        MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_ITC | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_TURBO | (tls ? MHD_USE_TLS : 0);
    struct MHD_OptionItem tls_options[] = {
        { MHD_OPTION_HTTPS_MEM_CERT, 0, s->cert },
        { MHD_OPTION_HTTPS_MEM_KEY, 0, s->key },
        { MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)TLS_VERSIONS },
        { MHD_OPTION_END, 0, NULL },
    };
    if (!tls)
        tls_options[0] = tls_options[3];
    if (tls && dr__http.MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
        return dr__fail(err, DR_ERR_UNSUPPORTED, "serve: this libmicrohttpd was built without TLS");
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    /* Each thread has its part of the limit, and some get more connections than others: the limit proper is
     * open_connection's. */
    s->daemon = dr__http.MHD_start_daemon(
        flags, 0, NULL, NULL, dr__http_handle, s, MHD_OPTION_LISTEN_SOCKET, s->fd, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)(s->o.connections + SPARE_CONNECTIONS) * threads, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
        (unsigned)s->o.connections_per_client, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)s->o.idle_seconds,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
        MHD_OPTION_NOTIFY_COMPLETED, dr__http_completed, s, MHD_OPTION_UNESCAPE_CALLBACK, dr__http_unescape, NULL,
        MHD_OPTION_ARRAY, tls_options, threads > 1 ? MHD_OPTION_THREAD_POOL_SIZE : MHD_OPTION_END, threads,
        MHD_OPTION_END);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return s->daemon ? DR_OK
                     : dr__fail(err, DR_ERR_IO, "serve: the HTTP server did not start%s",
                                tls ? "; is the key that of the certificate?" : "");
}

static dr_status begin(dr_serve *s, const dr_serve_options *o, dr_error *err)
{
    const bool far = dr__source_is_remote(s->root);
    const dr__jobs_options jobs = { .cpus = o->cpus,
                                    .n_readers = o->read_threads ? o->read_threads
                                                 : far           ? FAR_READERS
                                                                 : READERS,
                                    .ops_threads_per_cpu = far ? FAR_OPS_THREADS : 1,
                                    .cancel = &s->breaking_off,
                                    .memory = o->memory,
                                    .most_pixels = o->max_pixels,
                                    .most_seconds = o->max_seconds,
                                    .most_sample_s = o->max_sample_seconds,
                                    .most_jobs = MOST_JOBS };
    DR_TRY(dr__address_parse_for(o->address, "serve", &s->address, err));
    DR_TRY(read_pem(o->cert, &s->cert, err));
    DR_TRY(read_pem(o->key, &s->key, err));
    DR_TRY(read_rights(s->tokens_path, &s->rights, err));
    DR_TRY(dr__access_log_open(&s->log, o->access_log, err));
    DR_TRY(dr__catalogue_open(s->root, o->log, o->log_user, &s->catalogue, err));
    DR_TRY(dr__jobs_new(&jobs, &s->jobs, err));
    if (far)
        DR_TRY(dr__fetchers_new(FETCHERS, &s->breaking_off, &s->fetchers, err));
    DR_TRY(dr__listen_for(&s->address, "serve", BACKLOG, &s->fd, err));
    s->loopback = dr__address_is_loopback(&s->address) && !s->rights;
    if (!dr__address_is_loopback(&s->address) && !s->rights)
        log_text(s, "no tokens: whoever reaches the address may read all sets");
    if (!dr__address_is_loopback(&s->address) && s->rights && !s->cert)
        log_text(s, "tokens without TLS: whoever listens on the network can read and use them");
    s->has_housekeeper = dr__thread_start(&s->housekeeper, "dr-serve-house", keep_house, s);
    if (!s->has_housekeeper)
        return dr__fail(err, DR_ERR_NOMEM, "serve: no thread");
    return start_daemon(s, err);
}

static void end(dr_serve *s)
{
    pthread_mutex_lock(&s->lock);
    atomic_store(&s->stopping, true);
    dr__cond_broadcast(&s->quiet);
    pthread_mutex_unlock(&s->lock);
    if (s->has_housekeeper)
        pthread_join(s->housekeeper, NULL);
    if (s->daemon)
        dr__http.MHD_stop_daemon(s->daemon);
    if (s->fd >= 0)
        close(s->fd);
    dr__jobs_free(&s->jobs);
    dr__fetchers_free(&s->fetchers);
    dr__access_log_close(&s->log);
    dr__catalogue_unref(&s->catalogue);
    dr__rights_unref(&s->rights);
    dr__free(s->root);
    dr__free(s->tokens_path);
    dr__free(s->cert);
    dr__free(s->key);
    dr__cond_destroy(&s->quiet);
    pthread_mutex_destroy(&s->lock);
    dr__free(s);
}

dr_status dr_serve_start(const char *root, const dr_serve_options *options, dr_serve **out, dr_error *err)
{
    dr_serve_options o;
    dr_serve_defaults(&o);
    *out = NULL;
    if (options) { /* a caller built with an older header has a shorter struct */
        memcpy(&o, options, DR_MIN(options->size, sizeof o));
        o.size = sizeof o;
    }
    if (!root || !*root)
        return dr__fail(err, DR_ERR_ARG, "dr_serve_start: needs a folder");
    DR_TRY(dr__http_load("serve", err));
    DR_TRY(check(&o, err));
    dr_serve *s = dr__alloc_zero(1, sizeof *s);
    if (!s)
        return dr__fail(err, DR_ERR_NOMEM, "serve: out of memory");
    s->o = o;
    s->fd = -1;
    s->log.fd = -1;
    s->generation = dr__fork_generation();
    pthread_mutex_init(&s->lock, NULL);
    dr__cond_init(&s->quiet);
    dr_status status = copy_text(root, &s->root, err);
    if (status == DR_OK)
        status = copy_text(o.tokens, &s->tokens_path, err);
    if (status == DR_OK)
        status = begin(s, &o, err);
    if (status != DR_OK) {
        end(s);
        return status;
    }
    *out = s;
    return DR_OK;
}

int dr_serve_port(const dr_serve *s)
{
    return dr__address_port(&s->address);
}

size_t dr_serve_sets(dr_serve *s)
{
    pthread_mutex_lock(&s->lock);
    const size_t n = s->catalogue->n_sets;
    pthread_mutex_unlock(&s->lock);
    return n;
}

dr_status dr_serve_reload(dr_serve *s, dr_error *err)
{
    dr__catalogue *catalogue = NULL;
    dr__rights *rights = NULL;
    DR_TRY(read_rights(s->tokens_path, &rights, err));
    dr_status status = dr__catalogue_open(s->root, s->o.log, s->o.log_user, &catalogue, err);
    if (status == DR_OK)
        status = dr__access_log_reopen(&s->log, err);
    if (status == DR_OK) {
        pthread_mutex_lock(&s->lock);
        dr__catalogue *old = s->catalogue;
        dr__rights *before = s->rights;
        s->catalogue = catalogue;
        s->rights = rights;
        catalogue = old;
        rights = before;
        pthread_mutex_unlock(&s->lock);
    }
    dr__catalogue_unref(&catalogue);
    dr__rights_unref(&rights);
    return status;
}

/* lock: connections that sleep while their samples are made are woken up, and find that it is over. */
static void break_off(dr_serve *s)
{
    atomic_store(&s->breaking_off, true);
    for (dr__call *c = s->calls; c; c = c->next)
        dr__http.MHD_resume_connection(c->connection);
    for (dr__conn *c = s->conns; c; c = c->next)
        cut_off(c);
}

void dr_serve_stop(dr_serve **server, double seconds)
{
    dr_serve *s = server ? *server : NULL;
    if (!s)
        return;
    *server = NULL;
    if (s->generation != dr__fork_generation())
        return; /* the parent's; its memory is a copy */
    const uint64_t until_ns = dr__now_ns() + (uint64_t)(DR_MAX(seconds, 0) * 1e9);
    const int fd = dr__http.MHD_quiesce_daemon(s->daemon);
    if (fd >= 0) {
        close(fd);
        s->fd = -1;
    }
    pthread_mutex_lock(&s->lock);
    atomic_store(&s->stopping, true);
    dr__cond_broadcast(&s->quiet);
    while (s->n_calls && dr__cond_wait(&s->quiet, &s->lock, until_ns))
        ;
    while (s->n_calls) {
        break_off(s);
        dr__cond_wait(&s->quiet, &s->lock, dr__now_ns() + TICK_NS / 20);
    }
    pthread_mutex_unlock(&s->lock);
    end(s);
}

#else

dr_status dr_serve_start(const char *root, const dr_serve_options *options, dr_serve **out, dr_error *err)
{
    (void)root, (void)options;
    *out = NULL;
    return dr__fail(err, DR_ERR_UNSUPPORTED,
                    "serve: this build has no HTTP server; install libmicrohttpd-dev (Debian, Ubuntu), "
                    "libmicrohttpd-devel (Fedora) or libmicrohttpd (Homebrew) and build drapps again");
}

int dr_serve_port(const dr_serve *server)
{
    (void)server;
    return 0;
}

size_t dr_serve_sets(dr_serve *server)
{
    (void)server;
    return 0;
}

dr_status dr_serve_reload(dr_serve *server, dr_error *err)
{
    (void)server;
    return dr__fail(err, DR_ERR_UNSUPPORTED, "serve: this build has no HTTP server");
}

void dr_serve_stop(dr_serve **server, double seconds)
{
    (void)server, (void)seconds;
}

#endif
