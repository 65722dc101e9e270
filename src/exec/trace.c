/* trace.c: events through a buffer under a lock of its own.
 *
 * The buffer is ours and not stdio's: a forked child that exits flushes every FILE, and would write what the parent
 * had not yet written a second time.
 */
#include "exec/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"

enum { ROOM = 64 * 1024, LONGEST = 1024 };

struct dr__trace {
    pthread_mutex_t lock;
    int fd;      /* lock; -1: a write failed, and the trace ended there */
    size_t used; /* lock */
    char text[ROOM];
};

dr_status dr__trace_open(const char *path, dr__trace **out, dr_error *err)
{
    dr__trace *t = *out = dr__alloc_zero(1, sizeof *t);
    if (!t)
        return dr__fail(err, DR_ERR_NOMEM, "trace: out of memory");
    t->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (t->fd < 0) {
        dr_status status = dr__fail_errno(err, DR_ERR_IO, "trace: cannot write %s", path);
        dr__free(t);
        *out = NULL;
        return status;
    }
    pthread_mutex_init(&t->lock, NULL);
    return DR_OK;
}

/* lock */
static void flush(dr__trace *t)
{
    size_t done = 0;
    while (t->fd >= 0 && done < t->used) {
        ssize_t n = write(t->fd, t->text + done, t->used - done);
        if (n < 0 && errno != EINTR) {
            close(t->fd);
            t->fd = -1;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    t->used = 0;
}

void dr__trace_close(dr__trace **trace)
{
    if (!trace || !*trace)
        return;
    dr__trace *t = *trace;
    *trace = NULL;
    flush(t);
    if (t->fd >= 0)
        close(t->fd);
    pthread_mutex_destroy(&t->lock);
    dr__free(t);
}

void dr__trace_event(dr__trace *trace, const char *event, const char *format, ...)
{
    if (!trace)
        return;
    char line[LONGEST];
    int n = snprintf(line, sizeof line, "{\"t\":%llu,\"event\":\"%s\",", (unsigned long long)dr__now_ns(), event);
    va_list args;
    va_start(args, format);
    n += vsnprintf(line + n, sizeof line - (size_t)n, format, args);
    va_end(args);
    if ((size_t)n + 3 > sizeof line)
        return; /* events have a fixed set of short members: half a line would only spoil the file */
    memcpy(line + n, "}\n", 2);
    pthread_mutex_lock(&trace->lock);
    if (trace->used + (size_t)n + 2 > ROOM)
        flush(trace);
    memcpy(trace->text + trace->used, line, (size_t)n + 2);
    trace->used += (size_t)n + 2;
    pthread_mutex_unlock(&trace->lock);
}
