/* http_far_file.c: files of a set behind a URL, whole or in part.
 *
 * Facts of the file, and then its bytes, a block at a time, are fetched by other threads (fetchers.h), while the
 * connection sleeps.  A server that breaks off wakes up all connections and cuts them off: one whose fetch is not over
 * sleeps again, or ends, and what is being fetched then outlives it. */
#include "serve/http_server.h"

#ifdef DR_HAVE_MICROHTTPD
#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "format/remote_index.h"

enum { BLOCK = 1 << 20, SEND = 64 << 10 };

struct dr__far_file {
    dr__fetch task;
    dr_serve *server;
    dr__call *call;           /* NULL: it has ended; the server's lock */
    dr__catalogue *catalogue; /* keeps the set */
    dr__source_dir *dir;
    char *path;
    atomic_bool busy; /* a thread has it: what follows is not to be touched */
    dr__source_facts facts;
    dr_status status;
    dr__http_part part;
    uint64_t at; /* of the part: where the next block begins */
    dr__source_target target;
    uint8_t *block;
    size_t n, taken;
};

static void sleep_until(dr__call *call, void (*run)(dr__fetch *task))
{
    call->far->task.run = run;
    atomic_store(&call->far->busy, true);
    dr__http.MHD_suspend_connection(call->connection);
    dr__fetchers_add(call->server->fetchers, &call->far->task);
}

/* Whether the connection was woken up too early. */
static bool sleeps_on(dr__call *call)
{
    const bool busy = atomic_load(&call->far->busy);
    if (busy)
        dr__http.MHD_suspend_connection(call->connection);
    return busy;
}

static void free_file(struct dr__far_file *f)
{
    dr__catalogue_unref(&f->catalogue);
    dr__free(f->path);
    dr__free(f->block);
    dr__free(f);
}

/* Under the lock, without which no call ends: the connection may be awake already. */
static void wake(struct dr__far_file *f)
{
    dr_serve *s = f->server;
    pthread_mutex_lock(&s->lock);
    const bool ended = !f->call;
    atomic_store(&f->busy, false);
    if (!ended)
        dr__http.MHD_resume_connection(f->call->connection);
    pthread_mutex_unlock(&s->lock);
    if (ended)
        free_file(f);
}

static void fetch_facts(dr__fetch *task)
{
    struct dr__far_file *f = (struct dr__far_file *)task;
    f->status = dr__source_dir_stat(f->dir, f->path, &f->facts, NULL);
    if (f->status == DR_OK && f->facts.kind != DR__SOURCE_FILE)
        f->status = DR_ERR_NOT_FOUND;
    wake(f);
}

static uint8_t *reserve(dr__source_target *target, size_t size, size_t keep, dr_status *status, dr_error *err)
{
    struct dr__far_file *f = (struct dr__far_file *)((char *)target - offsetof(struct dr__far_file, target));
    (void)keep;
    if (size <= BLOCK)
        return f->block;
    *status = dr__fail(err, DR_ERR_IO, "more bytes came than were asked for");
    return NULL;
}

static void fetch_block(dr__fetch *task)
{
    struct dr__far_file *f = (struct dr__far_file *)task;
    const size_t want = (size_t)DR_MIN(f->part.n - f->at, BLOCK);
    f->n = f->taken = 0;
    f->status = dr__source_dir_get_range(f->dir, f->path, f->facts.version, f->part.offset + f->at, want, &f->target,
                                         &f->n, NULL);
    if (f->status == DR_OK && f->n != want)
        f->status = DR_ERR_IO;
    f->at += f->n;
    wake(f);
}

static ssize_t read_block(void *user, uint64_t pos, char *buf, size_t max)
{
    dr__call *call = user;
    struct dr__far_file *f = call->far;
    (void)pos;
    if (sleeps_on(call))
        return 0;
    if (f->status != DR_OK || atomic_load(&call->server->breaking_off))
        return MHD_CONTENT_READER_END_WITH_ERROR;
    const size_t n = DR_MIN(max, f->n - f->taken);
    if (!n) {
        sleep_until(call, fetch_block);
        return 0;
    }
    memcpy(buf, f->block + f->taken, n);
    f->taken += n;
    call->bytes += n;
    return (ssize_t)n;
}

static enum MHD_Result refuse(dr__call *call, dr_status status)
{
    return status == DR_ERR_NOT_FOUND
               ? dr__http_error(call, MHD_HTTP_NOT_FOUND, "no such file in the set")
               : dr__http_error(call, MHD_HTTP_BAD_GATEWAY, "the store behind the server does not give the file");
}

static enum MHD_Result answer(dr__call *call)
{
    struct dr__far_file *f = call->far;
    if (f->status != DR_OK)
        return refuse(call, f->status);
    f->part = (dr__http_part){ .size = f->facts.size,
                               .version = f->facts.version,
                               .mtime_s = f->facts.mtime_ns / 1000000000 };
    const unsigned instead = dr__http_choose_part(call, &f->part);
    if (instead)
        return dr__http_send_no_part(call, &f->part, instead);
    if (f->part.n && !f->block && strcmp(call->method, MHD_HTTP_METHOD_HEAD) != 0) { /* while the status can be told */
        f->block = dr__alloc((size_t)DR_MIN(f->part.n, BLOCK));
        if (!f->block)
            return dr__http_error(call, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory");
        sleep_until(call, fetch_block);
        return MHD_YES;
    }
    return dr__http_send_part(call, &f->part,
                              dr__http.MHD_create_response_from_callback(f->part.n, SEND, read_block, call, NULL));
}

static struct dr__far_file *new_file(dr__call *call)
{
    struct dr__far_file *f = dr__alloc_zero(1, sizeof *f);
    char *path = f ? dr__strdup(call->path) : NULL;
    if (!path) {
        dr__free(f);
        return NULL;
    }
    *f = (struct dr__far_file){ .server = call->server,
                                .call = call,
                                .catalogue = dr__catalogue_ref(call->catalogue),
                                .dir = call->set->far,
                                .path = path,
                                .target.reserve = reserve };
    return f;
}

enum MHD_Result dr__http_far_file(dr__call *call)
{
    if (call->far)
        return sleeps_on(call) ? MHD_YES : answer(call);
    if (!dr__remote_path_is_plain(call->path))
        return refuse(call, DR_ERR_NOT_FOUND);
    call->far = new_file(call);
    if (!call->far)
        return dr__http_error(call, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory");
    sleep_until(call, fetch_facts);
    return MHD_YES;
}

void dr__http_far_file_end(dr__call *call)
{
    struct dr__far_file *f = call->far;
    dr_serve *s = call->server;
    if (!f)
        return;
    call->far = NULL;
    pthread_mutex_lock(&s->lock);
    const bool busy = atomic_load(&f->busy);
    f->call = NULL;
    pthread_mutex_unlock(&s->lock);
    if (!busy)
        free_file(f);
}
#else
typedef int dr__http_no_far_file; /* an empty file is not C */
#endif
