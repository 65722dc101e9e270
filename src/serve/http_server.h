/* http_server.h: what the parts of the HTTP server share: the server, a connection, a request.
 *
 * Threads of libmicrohttpd answer requests (http_routes.c); they never wait for a disk longer than for a file, nor for
 * ops: requests for samples become jobs (sample_jobs.h), and their connections sleep until there is something to send.
 */
#ifndef DR_SERVE_HTTP_SERVER_H
#define DR_SERVE_HTTP_SERVER_H

#include "serve/http_library.h"

#ifdef DR_HAVE_MICROHTTPD
#include <stdatomic.h>

#include <drapps/serve.h>

#include "base/thread.h"
#include "serve/access_log.h"
#include "serve/fetchers.h"
#include "serve/listen.h"
#include "serve/sample_jobs.h"
#include "serve/tokens.h"

enum {
    DR__STATUS_CLASSES = 6,
    DR__TENANT = 128,
    DR__ADDRESS_TEXT = 64,
    DR__HTTP_TOO_LARGE = 413, /* its name differs between versions of the library */
};

/* X(id, name, method).  What can be asked for; the names are labels of metrics. */
#define DR__ROUTES(X)                                                                                                  \
    X(NONE, "none")                                                                                                    \
    X(HEALTH, "health")                                                                                                \
    X(INFO, "info")                                                                                                    \
    X(SETS, "sets")                                                                                                    \
    X(SET, "set")                                                                                                      \
    X(INDEX, "index")                                                                                                  \
    X(FILE, "file")                                                                                                    \
    X(SAMPLES, "samples")                                                                                              \
    X(METRICS, "metrics")

typedef enum dr__route {
#define DR__ROUTE_ENUM(id, name) DR__ROUTE_##id,
    DR__ROUTES(DR__ROUTE_ENUM)
#undef DR__ROUTE_ENUM
        DR__N_ROUTES
} dr__route;

/* Tokens of one reading of their file. */
typedef struct dr__rights {
    atomic_int refs;
    dr__tokens tokens;
} dr__rights;

/* An open connection. */
typedef struct dr__conn {
    struct dr__conn *next, **at;
    int fd;
    char address[DR__ADDRESS_TEXT];
    atomic_uint_fast64_t since_ns; /* when it was opened, or its last request ended, or the present one began */
    atomic_int state;              /* DR__CONN_* */
} dr__conn;

enum { DR__CONN_IDLE, DR__CONN_SENDS, DR__CONN_IS_ANSWERED };

/* A request. */
typedef struct dr__call {
    struct dr__call *next, **at; /* in the server's list */
    dr_serve *server;
    struct MHD_Connection *connection;
    dr__conn *conn;
    dr__route route;
    unsigned error; /* HTTP status that was decided on before the body came; 0: none */
    const char *why;
    char tenant[DR__TENANT]; /* name of the token, or the address */
    bool by_token;
    dr__rights *rights;
    dr__catalogue *catalogue;
    dr__served_set *set;
    const char *path; /* of a file, in url */
    char *url;
    char method[16];
    char *body;
    size_t n_body, body_cap;
    dr__job *job;
    dr__job_calls job_calls;
    bool gateway_waits;
    struct dr__far_file *far; /* http_far_file.c: a file of a set behind a URL */
    unsigned status;
    uint64_t bytes, start_ns;
} dr__call;

struct dr_serve {
    dr_serve_options o; /* its texts: see below */
    char *root, *tokens_path, *cert, *key;
    dr__address address;
    bool loopback;
    unsigned generation;
    int fd;
    struct MHD_Daemon *daemon;
    dr__jobs *jobs;
    dr__fetchers *fetchers; /* NULL: the root is a local folder */
    dr__access_log log;
    pthread_mutex_t lock; /* of the next group */
    dr__catalogue *catalogue;
    dr__rights *rights; /* NULL: there is no tokens file */
    dr__conn *conns;
    int n_conns;
    dr__call *calls;
    int n_calls;
    dr__cond quiet; /* the server stops: time for the housekeeper to go, or the last call ended */
    pthread_t housekeeper;
    bool has_housekeeper;
    atomic_bool stopping;     /* set under the lock */
    atomic_bool breaking_off; /* answers that are not complete end now */
    atomic_uint_fast64_t requests[DR__N_ROUTES][DR__STATUS_CLASSES];
    atomic_uint_fast64_t sent_bytes[DR__N_ROUTES];
};

/* http_routes.c: the answers. */
enum MHD_Result dr__http_handle(void *user, struct MHD_Connection *connection, const char *url, const char *method,
                                const char *version, const char *upload, size_t *n_upload, void **seen);
size_t dr__http_unescape(void *user, struct MHD_Connection *connection, char *text);
void dr__http_completed(void *user, struct MHD_Connection *connection, void **seen,
                        enum MHD_RequestTerminationCode code);

void dr__rights_unref(dr__rights **rights);

/* http_file.c: files with ranges. */
enum MHD_Result dr__http_file(dr__call *call);

/* What an answer says of a file, and the part of it that is wanted. */
typedef struct dr__http_part {
    uint64_t size, version;
    int64_t mtime_s; /* 0: not known */
    char tag[24], date[40];
    uint64_t offset, n;
    bool is_part;
} dr__http_part;

/* Fills the rest of a part by size, version and time, and the request's headers.  Returns the status of an answer
 * without the file (412, 304, 416), or 0. */
unsigned dr__http_choose_part(const dr__call *call, dr__http_part *part);
enum MHD_Result dr__http_send_part(dr__call *call, const dr__http_part *part, struct MHD_Response *response);
enum MHD_Result dr__http_send_no_part(dr__call *call, const dr__http_part *part, unsigned status);

/* http_far_file.c: the same of sets behind a URL. */
enum MHD_Result dr__http_far_file(dr__call *call);
void dr__http_far_file_end(dr__call *call);

/* http_samples.c: POST samples, and files with X-Drapps-Ops.  *taken: the header was understood. */
enum MHD_Result dr__http_samples(dr__call *call);
enum MHD_Result dr__http_gateway(dr__call *call, bool *taken);

/* http_reply.c */
enum MHD_Result dr__http_reply(dr__call *call, unsigned status, const char *type, const void *data, size_t size,
                               enum MHD_ResponseMemoryMode mode);
enum MHD_Result dr__http_queue(dr__call *call, unsigned status, struct MHD_Response *response);
enum MHD_Result dr__http_error(dr__call *call, unsigned status, const char *text);
const char *dr__http_header(const dr__call *call, const char *name);

/* server_metrics.c: the counts of a server as OpenMetrics; owned by the caller (dr__free).  NULL: out of memory. */
char *dr__server_metrics(dr_serve *server);

#endif
#endif
