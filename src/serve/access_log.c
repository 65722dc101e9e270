/* access_log.c: collects lines and writes them. */
#include "serve/access_log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/compiler.h"

enum { ROOM = 64 << 10, MOST_LINE = 4 * DR__LOG_URL + 512 };

static int open_file(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0640);
}

dr_status dr__access_log_open(dr__access_log *log, const char *path, dr_error *err)
{
    *log = (dr__access_log){ .fd = -1 };
    pthread_mutex_init(&log->lock, NULL);
    if (!path)
        return DR_OK;
    log->path = dr__strdup(path);
    log->lines = dr__alloc(ROOM);
    if (!log->path || !log->lines)
        return dr__fail(err, DR_ERR_NOMEM, "serve: out of memory");
    log->fd = strcmp(path, "-") ? open_file(path) : STDERR_FILENO;
    return log->fd >= 0 ? DR_OK : dr__fail_errno(err, DR_ERR_IO, "%s: cannot write the access log", path);
}

/* lock: what cannot be written is lost. */
static void write_lines(dr__access_log *log)
{
    size_t done = 0;
    while (done < log->n) {
        const ssize_t n = write(log->fd, log->lines + done, log->n - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    log->n = 0;
}

dr_status dr__access_log_reopen(dr__access_log *log, dr_error *err)
{
    if (!log->path || log->fd == STDERR_FILENO)
        return DR_OK;
    const int fd = open_file(log->path);
    if (fd < 0)
        return dr__fail_errno(err, DR_ERR_IO, "%s: cannot write the access log", log->path);
    pthread_mutex_lock(&log->lock);
    write_lines(log);
    const int before = log->fd;
    log->fd = fd;
    pthread_mutex_unlock(&log->lock);
    close(before);
    return DR_OK;
}

/* What a request wrote must not look like another line, or move a terminal's cursor. */
static void escape(const char *text, size_t most, char *out)
{
    size_t n = 0;
    for (const char *c = text; *c && n < most; c++, n++) {
        const unsigned char b = (unsigned char)*c;
        if (b > ' ' && b < 127 && b != '"' && b != '\\')
            *out++ = *c;
        else
            out += sprintf(out, "\\x%02x", b);
    }
    *out = 0;
}

void dr__access_log_add(dr__access_log *log, const dr__log_entry *e)
{
    char line[MOST_LINE], url[4 * DR__LOG_URL + 1], when[32], method[4 * 16 + 1];
    struct timespec now;
    struct tm utc;
    if (!log->path)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &utc);
    escape(e->url, DR__LOG_URL, url);
    escape(e->method, 16, method);
    const int n = snprintf(line, sizeof line, "%s.%03ldZ %s %s \"%s %s\" %u %" PRIu64 " %" PRIu64 ".%03" PRIu64 "\n",
                           when, now.tv_nsec / 1000000, e->address, *e->client ? e->client : "-", method, url,
                           e->status, e->bytes, e->ns / 1000000000, e->ns / 1000000 % 1000);
    pthread_mutex_lock(&log->lock);
    if (log->n + (size_t)n > ROOM)
        write_lines(log);
    memcpy(log->lines + log->n, line, (size_t)n);
    log->n += (size_t)n;
    pthread_mutex_unlock(&log->lock);
}

void dr__access_log_flush(dr__access_log *log)
{
    if (!log->path)
        return;
    pthread_mutex_lock(&log->lock);
    write_lines(log);
    pthread_mutex_unlock(&log->lock);
}

void dr__access_log_close(dr__access_log *log)
{
    if (log->path && log->fd >= 0 && log->lines)
        dr__access_log_flush(log);
    if (log->fd >= 0 && log->fd != STDERR_FILENO)
        close(log->fd);
    dr__free(log->path);
    dr__free(log->lines);
    pthread_mutex_destroy(&log->lock);
}
