/* access_log.h: a line for each request, in a file.
 *
 *     2026-03-01T12:00:00.123Z 10.0.0.7 alice "GET /v1/sets/imagenet/index" 200 5242880 0.013
 *
 * Time, address, client ("-": none), request, status, bytes of the answer, seconds.  Lines are collected and written by
 * dr__access_log_flush, or when many have come together.
 */
#ifndef DR_SERVE_ACCESS_LOG_H
#define DR_SERVE_ACCESS_LOG_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { DR__LOG_URL = 512 };

typedef struct dr__access_log {
    pthread_mutex_t lock;
    char *path; /* NULL: no log; "-": standard error */
    int fd;
    char *lines;
    size_t n;
} dr__access_log;

typedef struct dr__log_entry {
    const char *address, *client, *method, *url; /* the URL is cut to DR__LOG_URL; odd characters become \xHH */
    unsigned status;
    uint64_t bytes, ns;
} dr__log_entry;

dr_status dr__access_log_open(dr__access_log *log, const char *path, dr_error *err);

/* Opens the file again, after it was renamed. */
dr_status dr__access_log_reopen(dr__access_log *log, dr_error *err);
void dr__access_log_add(dr__access_log *log, const dr__log_entry *entry);
void dr__access_log_flush(dr__access_log *log);
void dr__access_log_close(dr__access_log *log);

#endif
