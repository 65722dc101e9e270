/* http_server.c: a thread accepts, and each connection has one of its own. */
#include "unit/source/http_server.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

struct connection {
    http_server *server;
    int fd;
};

bool http_header(const http_request *r, const char *name, char *text, size_t size)
{
    const size_t n = strlen(name);
    for (const char *line = strstr(r->head, "\r\n"); line && line[2]; line = strstr(line + 2, "\r\n")) {
        const char *at = line + 2;
        if (strncasecmp(at, name, n) || at[n] != ':')
            continue;
        at += n + 1;
        at += strspn(at, " ");
        snprintf(text, size, "%.*s", (int)strcspn(at, "\r"), at);
        return true;
    }
    return false;
}

/* Reads a request; false: the client closed, or the server stops. */
static bool read_request(struct connection *c, http_request *r)
{
    size_t n = 0, want = 0;
    char *end = NULL, text[64];
    while (!end || n < want) {
        struct pollfd p = { .fd = c->fd, .events = POLLIN };
        while (!poll(&p, 1, 20))
            if (atomic_load(&c->server->stopping))
                return false;
        const ssize_t got = n < sizeof r->head - 1 ? read(c->fd, r->head + n, sizeof r->head - 1 - n) : 0;
        if (got <= 0)
            return false;
        n += (size_t)got;
        r->head[n] = 0;
        if (!end && (end = strstr(r->head, "\r\n\r\n"))) {
            want = (size_t)(end + 4 - r->head);
            if (http_header(r, "Content-Length", text, sizeof text))
                want += (size_t)atoi(text);
        }
    }
    snprintf(r->body, sizeof r->body, "%.*s", (int)(r->head + n - (end + 4)), end + 4);
    end[4] = 0;
    if (sscanf(r->head, "%15s %255s", r->method, r->path) != 2)
        return false;
    r->first = r->last = -1;
    if (http_header(r, "Range", text, sizeof text))
        sscanf(text, "bytes=%lld-%lld", &r->first, &r->last);
    r->number = atomic_fetch_add(&c->server->n_requests, 1);
    return true;
}

static void *serve(void *arg)
{
    struct connection *c = arg;
    http_request *r = calloc(1, sizeof *r);
    while (r && read_request(c, r) && c->server->handler(c->fd, r, c->server->user))
        ;
    close(c->fd);
    free(r);
    atomic_fetch_sub(&c->server->n_open, 1);
    free(c);
    return NULL;
}

static void *accept_all(void *arg)
{
    http_server *s = arg;
    while (!atomic_load(&s->stopping)) {
        struct pollfd p = { .fd = s->listener, .events = POLLIN };
        if (poll(&p, 1, 20) <= 0)
            continue;
        struct connection *c = calloc(1, sizeof *c);
        pthread_t thread;
        *c = (struct connection){ .server = s, .fd = accept(s->listener, NULL, NULL) };
        setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
        atomic_fetch_add(&s->n_connections, 1);
        atomic_fetch_add(&s->n_open, 1);
        if (pthread_create(&thread, NULL, serve, c))
            abort();
        pthread_detach(thread);
    }
    return NULL;
}

void http_server_start(http_server *s, http_handler *handler, void *user)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;
    memset(s, 0, sizeof *s);
    s->handler = handler;
    s->user = user;
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s->listener < 0 || bind(s->listener, (struct sockaddr *)&address, sizeof address) || listen(s->listener, 64) ||
        getsockname(s->listener, (struct sockaddr *)&address, &size))
        abort();
    s->port = ntohs(address.sin_port);
    snprintf(s->url, sizeof s->url, "http://127.0.0.1:%u", s->port);
    if (pthread_create(&s->thread, NULL, accept_all, s))
        abort();
}

void http_server_stop(http_server *s)
{
    atomic_store(&s->stopping, true);
    pthread_join(s->thread, NULL);
    while (atomic_load(&s->n_open))
        usleep(1000);
    close(s->listener);
}

static void send_all(int fd, const void *data, size_t n)
{
    const char *at = data;
    while (n) {
        const ssize_t sent = send(fd, at, n, MSG_NOSIGNAL);
        if (sent <= 0)
            return;
        at += sent;
        n -= (size_t)sent;
    }
}

void http_answer(int fd, const char *status, const char *headers, const void *body, size_t n)
{
    char head[1024];
    const int len = snprintf(head, sizeof head, "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n\r\n", status, headers, n);
    send_all(fd, head, (size_t)len);
    send_all(fd, body, n);
}

size_t http_answer_object(int fd, const http_request *r, const char *etag, const uint8_t *data, size_t n,
                          size_t left_off)
{
    char head[512], match[128];
    size_t first = r->first > 0 ? (size_t)r->first : 0,
           end = r->last >= 0 && (size_t)r->last < n ? (size_t)r->last + 1 : n;
    if (etag && http_header(r, "If-Match", match, sizeof match) && strcmp(match, etag)) {
        http_answer(fd, "412 Precondition Failed", "", "", 0);
        return 0;
    }
    if (r->first >= (long long)n) {
        http_answer(fd, "416 Range Not Satisfiable", "", "", 0);
        return 0;
    }
    int len = snprintf(head, sizeof head, "HTTP/1.1 %s\r\nContent-Length: %zu\r\nX-Test: yes\r\n",
                       r->first >= 0 ? "206 Partial Content" : "200 OK", end - first);
    if (etag)
        len += snprintf(head + len, sizeof head - (size_t)len, "ETag: %s\r\n", etag);
    if (r->first >= 0)
        len +=
            snprintf(head + len, sizeof head - (size_t)len, "Content-Range: bytes %zu-%zu/%zu\r\n", first, end - 1, n);
    len += snprintf(head + len, sizeof head - (size_t)len, "\r\n");
    send_all(fd, head, (size_t)len);
    const size_t send_n = end - first > left_off ? end - first - left_off : 0;
    if (strcmp(r->method, "HEAD"))
        send_all(fd, data + first, send_n);
    return send_n;
}
