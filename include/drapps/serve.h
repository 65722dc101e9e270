/* serve.h: an HTTP server of data sets, for the machine that stores them.
 *
 * It offers the data sets below a folder to the machines that train: their indexes, their files (also byte ranges), and
 * samples of which it has already run the first ops, where that makes them smaller.  Clients choose for each sample
 * how many ops the server runs; draws are keyed by seed, epoch, sample and op, so the bytes are those that the client
 * would make.
 *
 *     GET  /v1/health                    "ok"
 *     GET  /v1/info                      versions, CPUs, codecs, as JSON
 *     GET  /v1/sets                      the sets that the client may read
 *     GET  /v1/sets/NAME                 size, fields, classes, fingerprint
 *     GET  /v1/sets/NAME/index           keys, labels, and where each sample is, as an index file
 *     GET  /v1/sets/NAME/files/PATH      a file or ranges of it; with X-Drapps-Ops the sample after its first ops
 *     POST /v1/sets/NAME/samples         samples after some of their ops, as a stream of frames
 *     GET  /metrics                      for Prometheus
 *
 * Ops have a CPU budget, which clients share fairly.  A sample for which there is no CPU time is sent as it is stored,
 * never refused: the client then runs all ops by itself.  docs/serve.md is the guide.
 */
#ifndef DRAPPS_SERVE_H
#define DRAPPS_SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drapps/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A running server. */
typedef struct dr_serve dr_serve;

/* How to serve.  Fill it with dr_serve_defaults, then change what differs.  Texts are borrowed for the call that takes
 * the struct. */
typedef struct dr_serve_options {
    size_t size;            /* sizeof(dr_serve_options), so that it can grow */
    const char *address;    /* "PORT", "ADDRESS:PORT" or "[ADDRESS]:PORT"; default "127.0.0.1:9470"; port 0: any free
                               one */
    double cpus;            /* CPU seconds a second for ops, of all clients; 0: none.  Default: half of the machine's */
    const char *tokens;     /* file with tokens and rights; NULL: everybody may read everything */
    const char *cert;       /* file with the certificate of the server and those above it, PEM; with `key`: TLS */
    const char *key;        /* file with its private key, PEM */
    const char *access_log; /* file that gets a line for each request; "-": standard error; NULL: none */
    uint64_t max_request;   /* bytes of a request's body; default 1 MiB */
    uint64_t max_samples;   /* of one request; default 4096 */
    uint64_t max_pixels;    /* of an image or volume that is decoded or made here; default 100 million */
    double max_seconds;     /* for the ops of one request: samples not begun by then are sent as stored; default 30 */
    double max_sample_seconds;  /* a sample whose ops are predicted to take more CPU time is sent as stored; default
                                   5 */
    uint64_t memory;            /* bytes that a thread may need for one sample; default 512 MiB */
    int io_threads;             /* threads that answer requests; default: one a CPU, at least 2 */
    int read_threads;           /* threads that read for requests of samples; default 4 */
    int connections;            /* most at a time; default 1024 */
    int connections_per_client; /* most of one address at a time; default 256 */
    int idle_seconds;           /* a connection that is silent for this long, or whose request is not complete by then,
                                   is closed; default 60 */
    void (*log)(void *user, const char *text); /* called by any thread with messages for the operator; NULL: none */
    void *log_user;                            /* first argument of `log` */
} dr_serve_options;

/**
 * Set all options to their defaults.
 *
 * @param options The options to fill, `size` included.
 */
DR_API void dr_serve_defaults(dr_serve_options *options);

/**
 * Start a server.
 *
 * Opens the data sets below a folder: each sub-folder that drapps reads as folders of classes or shards, and each list;
 * where there are none, the folder itself.  The server answers in threads of its own until dr_serve_stop.
 *
 * @param root    The folder.
 * @param options How to serve.  NULL: the defaults.
 * @param out     The server.  NULL after a failure.
 * @param err     The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_NOT_FOUND: no data set in the folder, or a file is missing; DR_ERR_IO: the address cannot be
 *         used; DR_ERR_FORMAT: the tokens are wrong; DR_ERR_UNSUPPORTED: no libmicrohttpd, or one without TLS;
 *         DR_ERR_ARG, DR_ERR_NOMEM.
 *
 * @note A child of fork has no server: its threads are the parent's.
 */
DR_API dr_status dr_serve_start(const char *root, const dr_serve_options *options, dr_serve **out, dr_error *err);

/**
 * Get the port that a server listens on.
 *
 * @param server A server.
 *
 * @return Its port.
 */
DR_API int dr_serve_port(const dr_serve *server);

/**
 * Get the number of data sets that a server offers.
 *
 * @param server A server.
 *
 * @return Their number.
 */
DR_API size_t dr_serve_sets(dr_serve *server);

/**
 * Read tokens and data sets again, and open the access log again.  Requests that have begun keep the old ones.
 * After a failure nothing has changed.
 *
 * @param server A server.
 * @param err    The reason of a failure.  May be NULL.
 *
 * @return DR_OK; as dr_serve_start.
 */
DR_API dr_status dr_serve_reload(dr_serve *server, dr_error *err);

/**
 * Stop a server: no new connections; requests that have begun may end within the time given, the rest is aborted.
 *
 * @param server  The server; set to NULL.  A pointer to NULL is allowed.
 * @param seconds The longest time to wait for them.
 */
DR_API void dr_serve_stop(dr_serve **server, double seconds);

#ifdef __cplusplus
}
#endif
#endif
