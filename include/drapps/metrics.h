/* metrics.h: what the pipelines of this process do, for Prometheus and whoever else reads OpenMetrics.
 *
 *     dr_metrics *m;
 *     if (dr_metrics_start("9464", &m, &err) == DR_OK)
 *         printf("http://127.0.0.1:%d/metrics\n", dr_metrics_port(m));
 *
 * A small HTTP server in a thread of its own, off unless it is asked for, and then reachable from this machine alone
 * unless another address is given.  It reads the live files of this process (live.h): pipelines are not slowed down by
 * it, and what is not shown there is not served.  All calls may be made from any thread.  docs/watch.md lists the
 * metrics.
 */
#ifndef DRAPPS_METRICS_H
#define DRAPPS_METRICS_H

#include <drapps/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dr_metrics dr_metrics;

/* address: a port ("9464": on 127.0.0.1), "address:port" or "[address]:port" with a numeric address or "localhost";
 * port 0 is any that is free.  "0.0.0.0:9464" and "[::]:9464" are open to the network: there is neither a password nor
 * encryption.  DR_ERR_ARG: not an address; DR_ERR_IO: the system refuses it, as when the port is taken;
 * DR_ERR_UNSUPPORTED: libmicrohttpd is not there; DR_ERR_LIMIT: 8 run already; DR_ERR_NOMEM. */
DR_API dr_status dr_metrics_start(const char *address, dr_metrics **out, dr_error *err);

/* The port that it listens on. */
DR_API int dr_metrics_port(const dr_metrics *metrics);

/* Ends it, and the connections that are open; in the child of a fork, where it never ran, it frees. */
DR_API void dr_metrics_stop(dr_metrics **metrics);

/* Starts what the environment asks for, once in a process: DRAPPS_METRICS is an address as above.  A process of a group
 * on one machine (LOCAL_RANK is set, as torchrun does) adds its rank to a port that is not 0.  DR_OK where the variable
 * is not set.  Each later call says what the first said.  Loaders call it. */
DR_API dr_status dr_metrics_from_environment(dr_error *err);

/* What the server answers: OpenMetrics 1.0 text (free with dr_text_free). */
DR_API dr_status dr_metrics_text(char **text, dr_error *err);

#ifdef __cplusplus
}
#endif
#endif
