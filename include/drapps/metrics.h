/* metrics.h: metrics of the pipelines of this process, for Prometheus and other readers of OpenMetrics.
 *
 *     dr_metrics *m;
 *     if (dr_metrics_start("9464", &m, &err) == DR_OK)
 *         printf("http://127.0.0.1:%d/metrics\n", dr_metrics_port(m));
 *
 * A small HTTP server in a thread of its own.  It is off by default and listens on 127.0.0.1 unless another address is
 * given.  It reads the live files of this process (live.h), so pipelines are not slowed down, and serves nothing that
 * is not in these files.  docs/watch.md lists the metrics.  All calls may be made from any thread.
 */
#ifndef DRAPPS_METRICS_H
#define DRAPPS_METRICS_H

#include <drapps/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dr_metrics dr_metrics;

/**
 * Start a server.
 *
 * @param address A port ("9464": on 127.0.0.1), "address:port" or "[address]:port" with a numeric address or
 *                "localhost"; port 0: any free port.  "0.0.0.0:9464" and "[::]:9464" are open to the network, without a
 *                password or encryption.
 * @param out     The server, which the caller stops by dr_metrics_stop.  NULL after a failure.
 * @param err     The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG where address has another form; DR_ERR_IO where the system refuses it (the port is taken);
 *         DR_ERR_UNSUPPORTED without libmicrohttpd; DR_ERR_LIMIT where 8 servers run already; DR_ERR_NOMEM.
 */
DR_API dr_status dr_metrics_start(const char *address, dr_metrics **out, dr_error *err);

/**
 * Get the port of a server.
 *
 * @param metrics The server.
 *
 * @return The port that it listens on.
 */
DR_API int dr_metrics_port(const dr_metrics *metrics);

/**
 * Stop a server and close its connections.  In the child of a fork, where the server does not run, only free it.
 *
 * @param metrics The server; set to NULL.  NULL and a pointer to NULL are allowed.
 */
DR_API void dr_metrics_stop(dr_metrics **metrics);

/**
 * Start the server that the environment variable DRAPPS_METRICS asks for, once in a process.  Loaders call this.
 *
 * DRAPPS_METRICS is an address as for dr_metrics_start.  Where LOCAL_RANK is set (torchrun does), it is added to a port
 * that is not 0.
 *
 * @param err The reason of a failure.  May be NULL.
 *
 * @return DR_OK, also where the variable is not set; else as dr_metrics_start.  Later calls return the result of the
 *         first one.
 */
DR_API dr_status dr_metrics_from_environment(dr_error *err);

/**
 * Make the text that the server answers with.
 *
 * @param text Receives OpenMetrics 1.0 text, which the caller frees by dr_text_free (graph.h).
 * @param err  The reason of a failure.  May be NULL.
 *
 * @return DR_OK or DR_ERR_NOMEM.
 */
DR_API dr_status dr_metrics_text(char **text, dr_error *err);

#ifdef __cplusplus
}
#endif
#endif
