/* http_server.h: a small HTTP server on the loopback address, whose answers a test decides, wrong ones included. */
#ifndef TESTS_HTTP_SERVER_H
#define TESTS_HTTP_SERVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct http_request {
    int number; /* of all requests, from 0 */
    char method[16], path[256];
    char head[8192]; /* all of the header, as it came */
    char body[8192];
    long long first, last; /* of a Range; -1: not given */
} http_request;

/* Answers a request; false: the connection is closed. */
typedef bool http_handler(int fd, const http_request *request, void *user);

typedef struct http_server {
    http_handler *handler;
    void *user;
    int listener;
    unsigned port;
    char url[64]; /* "http://127.0.0.1:PORT" */
    pthread_t thread;
    atomic_int n_requests, n_connections, n_open;
    atomic_bool stopping;
} http_server;

void http_server_start(http_server *server, http_handler *handler, void *user);
void http_server_stop(http_server *server); /* waits for its connections */

/* The value of a header of the request; false: it is not there. */
bool http_header(const http_request *request, const char *name, char *text, size_t size);

/* Writes an answer with Content-Length; headers: lines that end with \r\n. */
void http_answer(int fd, const char *status, const char *headers, const void *body, size_t size);

/* Answers as a good server does: the range of an object that was asked for.  announced - sent bytes are left off the
 * end. Returns how many bytes were sent. */
size_t http_answer_object(int fd, const http_request *request, const char *etag, const uint8_t *data, size_t size,
                          size_t left_off);

#endif
