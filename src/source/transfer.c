/* transfer.c: the caller's side of a request. */
#include "source/transfer.h"

#include <string.h>

#include "source/http_header.h"

bool dr__transfer_header(const dr__transfer_reply *reply, const char *name, char *text, size_t size)
{
    return dr__http_extra(reply->headers, name, text, size);
}

static _Thread_local const atomic_bool *watched;

const atomic_bool *dr__transfer_watch(const atomic_bool *cancel)
{
    const atomic_bool *before = watched;
    watched = cancel;
    return before;
}

static _Thread_local struct {
    bool (*interrupted)(void *user);
    void *user;
} asked;

void dr__transfer_ask(bool (*interrupted)(void *user), void *user)
{
    asked.interrupted = interrupted;
    asked.user = user;
}

#ifdef DR_HAVE_CURL

#include <stdio.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/grow.h"
#include "source/transfer_parts.h"

static const uint64_t LOOK_NS = 50000000; /* how often a watched flag is looked at */

/* What messages call a request: never its credentials, nor what follows the '?', which may be a signature. */
static void name_of(const dr__transfer_request *q, char *text, size_t size)
{
    const char *slashes = strstr(q->url, "://"), *host = slashes ? slashes + 3 : q->url;
    const size_t authority = strcspn(host, "/?#");
    const char *at = memchr(host, '@', authority);
    if (q->name)
        snprintf(text, size, "%s", q->name);
    else
        snprintf(text, size, "%.*s%.*s", (int)(host - q->url), q->url, (int)strcspn(at ? at + 1 : host, "?#"),
                 at ? at + 1 : host);
}

static bool is_cancelled(void)
{
    return (watched && atomic_load(watched)) || (asked.interrupted && asked.interrupted(asked.user));
}

/* lock, released meanwhile */
static void wait_for_job(dr__job *j)
{
    const bool looks = (watched || asked.interrupted) && !j->cancelled;
    const bool woken = dr__cond_wait(&j->changed, dr__transfer_mutex(), looks ? dr__now_ns() + LOOK_NS : UINT64_MAX);
    if (woken || !looks || j->status != DR_AGAIN)
        return;
    dr__transfer_unlock();
    const bool cancelled = is_cancelled();
    dr__transfer_lock();
    if (cancelled) {
        j->cancelled = true;
        dr__transfer_wake();
    }
}

static dr_status begin(dr__job *j, const dr__transfer_request *q, dr__transfer_reply *reply, dr_error *err)
{
    memset(reply, 0, sizeof *reply);
    reply->total = UINT64_MAX;
    j->request = q;
    j->reply = reply;
    j->status = DR_AGAIN;
    j->total = UINT64_MAX;
    name_of(q, j->name, sizeof j->name);
    if (q->offset > INT64_MAX || q->size > INT64_MAX - q->offset)
        return dr__fail(err, DR_ERR_ARG, "%s: read beyond what an object can hold", j->name);
    if (strncmp(q->url, "http://", 7) && strncmp(q->url, "https://", 8))
        return dr__fail(err, DR_ERR_ARG, "%s: a URL must begin with http:// or https://", j->name);
    dr__cond_init(&j->changed);
    const dr_status status = dr__transfer_submit(j, err);
    if (status != DR_OK)
        dr__cond_destroy(&j->changed);
    return status;
}

static dr_status finish(dr__job *j, dr_error *err)
{
    dr__cond_destroy(&j->changed);
    dr__free(j->waiting);
    if (j->status != DR_OK && err)
        *err = j->err;
    return j->status;
}

dr_status dr__transfer_run(const dr__transfer_request *q, dr__source_target *target, dr__transfer_reply *reply,
                           dr_error *err)
{
    dr__job j = { .target = target };
    dr__transfer_reply own;
    DR_TRY(begin(&j, q, reply ? reply : &own, err));
    dr__transfer_lock();
    while (j.status == DR_AGAIN)
        wait_for_job(&j);
    dr__transfer_unlock();
    return finish(&j, err);
}

/* --- streams --- */

bool dr__stream_put(dr__job *j, const uint8_t *data, size_t n, bool *no_memory)
{
    dr__transfer_lock();
    bool fits = !j->n_waiting || j->n_waiting + n <= DR__STREAM_ROOM;
    uint8_t *grown = fits ? dr__grow(j->waiting, &j->waiting_cap, j->n_waiting + n, 1) : NULL;
    *no_memory = fits && !grown;
    if (grown) {
        j->waiting = grown;
        memcpy(grown + j->n_waiting, data, n);
        j->n_waiting += n;
        dr__cond_signal(&j->changed);
    }
    dr__transfer_unlock();
    return grown;
}

/* Two blocks take turns: one is filled by the thread while the sink has the other. */
typedef struct stream {
    uint8_t *block;
    size_t n, cap;
} stream;

/* Waits for bytes; false: there are no more. */
static bool next_bytes(dr__job *j, stream *s)
{
    dr__transfer_lock();
    while (!j->n_waiting && j->status == DR_AGAIN)
        wait_for_job(j);
    uint8_t *block = s->block;
    const size_t cap = s->cap;
    s->block = j->waiting;
    s->n = j->n_waiting;
    s->cap = j->waiting_cap;
    j->waiting = block;
    j->waiting_cap = cap;
    j->n_waiting = 0;
    if (j->status == DR_AGAIN)
        dr__transfer_wake(); /* it may have been paused */
    dr__transfer_unlock();
    return s->n > 0;
}

static void abandon(dr__job *j)
{
    dr__transfer_lock();
    j->cancelled = true;
    dr__transfer_wake();
    while (j->status == DR_AGAIN)
        dr__cond_wait(&j->changed, dr__transfer_mutex(), UINT64_MAX);
    dr__transfer_unlock();
}

dr_status dr__transfer_stream(const dr__transfer_request *q, dr__transfer_sink *sink, dr__transfer_reply *reply,
                              dr_error *err)
{
    dr__job j = { .streams = true };
    dr__transfer_reply own;
    stream s = { 0 };
    DR_TRY(begin(&j, q, reply ? reply : &own, err));
    dr_status taken = DR_OK;
    while (taken == DR_OK && next_bytes(&j, &s))
        taken = sink->take(sink, s.block, s.n, err);
    if (taken != DR_OK)
        abandon(&j);
    dr__free(s.block);
    const dr_status status = finish(&j, taken == DR_OK ? err : NULL);
    return taken == DR_END ? DR_OK : taken == DR_OK ? status : taken;
}

dr_status dr__transfer_available(dr_error *err)
{
    return dr__curl(err) ? DR_OK : DR_ERR_UNSUPPORTED;
}

#else /* no libcurl when it was built */

static dr_status missing(const char *name, dr_error *err)
{
    return dr__fail(
        err, DR_ERR_UNSUPPORTED,
        "%s%sthis build cannot read remote data: install libcurl4-openssl-dev (Debian, Ubuntu), libcurl-devel "
        "(Fedora) or curl (Homebrew) and build drapps again",
        name ? name : "", name ? ": " : "");
}

dr_status dr__transfer_run(const dr__transfer_request *q, dr__source_target *target, dr__transfer_reply *reply,
                           dr_error *err)
{
    (void)target;
    if (reply)
        memset(reply, 0, sizeof *reply);
    return missing(q->name, err);
}

dr_status dr__transfer_stream(const dr__transfer_request *q, dr__transfer_sink *sink, dr__transfer_reply *reply,
                              dr_error *err)
{
    (void)sink;
    return dr__transfer_run(q, NULL, reply, err);
}

void dr__transfer_set_limits(const dr__transfer_limits *limits)
{
    (void)limits;
}

void dr__transfer_get_stats(dr__transfer_stats *stats)
{
    memset(stats, 0, sizeof *stats);
}

dr_status dr__transfer_available(dr_error *err)
{
    return missing(NULL, err);
}

#endif
