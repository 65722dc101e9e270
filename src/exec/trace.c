/* trace.c: events through a buffered file under a lock of its own. */
#include "exec/trace.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/clock.h"

struct dr__trace {
    pthread_mutex_t lock;
    FILE *file; /* lock */
};

dr_status dr__trace_open(const char *path, dr__trace **out, dr_error *err)
{
    *out = dr__alloc_zero(1, sizeof **out);
    if (!*out)
        return dr__fail(err, DR_ERR_NOMEM, "trace: out of memory");
    (*out)->file = fopen(path, "we");
    if (!(*out)->file) {
        dr_status status = dr__fail_errno(err, DR_ERR_IO, "trace: cannot write %s", path);
        dr__free(*out);
        *out = NULL;
        return status;
    }
    pthread_mutex_init(&(*out)->lock, NULL);
    return DR_OK;
}

void dr__trace_close(dr__trace **trace)
{
    if (!trace || !*trace)
        return;
    fclose((*trace)->file);
    pthread_mutex_destroy(&(*trace)->lock);
    dr__free(*trace);
    *trace = NULL;
}

void dr__trace_event(dr__trace *trace, const char *event, const char *format, ...)
{
    if (!trace)
        return;
    va_list args;
    va_start(args, format);
    pthread_mutex_lock(&trace->lock);
    fprintf(trace->file, "{\"t\":%llu,\"event\":\"%s\",", (unsigned long long)dr__now_ns(), event);
    vfprintf(trace->file, format, args);
    fputs("}\n", trace->file);
    pthread_mutex_unlock(&trace->lock);
    va_end(args);
}
