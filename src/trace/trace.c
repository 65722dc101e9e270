/* trace.c: the writer of a trace.
 *
 * A caller encodes a record on its stack and appends it to the buffer `front` under a lock that is held for nothing
 * else.  Every 200 ms, or when `front` is half full, the writer's thread swaps `front` with the buffer `back` and
 * writes that to the file.  So no caller waits for the disk, and no record allocates memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "trace/event.h"
#include "trace/pick.h"
#include "trace/trace_path.h"
#include "trace/wire.h"

enum {
    HALF_BYTES = 2 << 20, /* of each buffer */
    FLUSH_NS = 200000000,
    NOTE_BYTES = 512,      /* reserved for the last record of a file that reaches its limit */
    MAX_NAMES_TRIED = 100, /* if the requested file is being written by another trace */
};

enum { WRITING, FULL, BROKEN };

struct dr_trace {
    unsigned generation;
    int fd; /* used by the thread alone, once it runs */
    char *path;
    uint64_t start_ns;
    uint64_t max_bytes;
    uint64_t written; /* used by the thread alone */
    pthread_t thread;
    atomic_int state; /* changed by the thread alone */
    int why;          /* errno; set before state becomes BROKEN */

    pthread_mutex_t lock;
    dr__cond wake;
    bool closing;               /* lock */
    uint8_t *front;             /* lock */
    size_t used;                /* lock */
    dr__picker samples;         /* lock; for READ and WORK spans, of which there are many */
    dr__picker batches;         /* lock; for other spans */
    uint64_t lost;              /* lock; records */
    uint64_t lost_reported;     /* lock */
    uint64_t left_out_reported; /* lock */

    uint8_t *back; /* used by the thread alone */
};

static bool is_open(const dr_trace *t)
{
    return t && t->generation == dr__fork_generation() && atomic_load(&t->state) == WRITING;
}

/* --- into memory --- */

/* lock: reserves room for a frame and its payload; NULL: the buffer is full, and the record is lost. */
static uint8_t *reserve(dr_trace *t, size_t length)
{
    if (t->used + DR__FRAME + length > HALF_BYTES) {
        t->lost++;
        return NULL;
    }
    uint8_t *at = t->front + t->used;
    t->used += DR__FRAME + length;
    if (t->used > HALF_BYTES / 2)
        dr__cond_signal(&t->wake);
    return at;
}

static void put(dr_trace *t, int kind, const uint8_t *payload, size_t length)
{
    uint8_t frame[DR__FRAME];
    dr__frame_write(kind, payload, length, frame);
    pthread_mutex_lock(&t->lock);
    uint8_t *at = reserve(t, length);
    if (at) {
        memcpy(at, frame, DR__FRAME);
        memcpy(at + DR__FRAME, payload, length);
    }
    pthread_mutex_unlock(&t->lock);
}

/* lock: encodes a text in the buffer itself, since it may be too long for the stack. */
static void put_text(dr_trace *t, uint64_t time_ns, const char *json)
{
    uint8_t time[DR__MAX_TIME];
    const size_t n = dr__pack_time(t->start_ns, time_ns, time), length = strlen(json);
    if (length > DR__MAX_TEXT) {
        t->lost++;
        return;
    }
    uint8_t *at = reserve(t, n + length);
    if (!at)
        return;
    memcpy(at + DR__FRAME, time, n);
    memcpy(at + DR__FRAME + n, json, length);
    dr__frame_write(DR_TRACE_TEXT, at + DR__FRAME, n + length, at);
}

void dr_trace_snapshot(dr_trace *t, const dr_snapshot *snapshot)
{
    uint8_t payload[DR__MAX_RECORD];
    if (is_open(t))
        put(t, DR_TRACE_SNAPSHOT, payload, dr__pack_snapshot(t->start_ns, snapshot, payload));
}

void dr_trace_flow(dr_trace *t, uint64_t time_ns, const double *flow, int n)
{
    uint8_t payload[DR__MAX_RECORD];
    if (is_open(t))
        put(t, DR_TRACE_FLOW, payload, dr__pack_flow(t->start_ns, time_ns, flow, n, payload));
}

void dr_trace_decision(dr_trace *t, const struct dr_decision *decision)
{
    uint8_t payload[DR__MAX_RECORD];
    if (is_open(t))
        put(t, DR_TRACE_DECISION, payload, dr__pack_decision(t->start_ns, decision, payload));
}

bool dr__trace_wants_span(dr_trace *t, int kind, uint64_t duration_ns, int n)
{
    if (!is_open(t) || kind < 0 || kind >= DR_N_SPANS)
        return false;
    dr__picker *p = kind == DR_SPAN_READ || kind == DR_SPAN_WORK ? &t->samples : &t->batches;
    if (p->per_s == HUGE_VAL) /* constant: needs no lock */
        return true;
    const uint64_t now = dr__now_ns();
    pthread_mutex_lock(&t->lock);
    const bool takes = dr__picker_wants(p, now, kind, duration_ns, n);
    pthread_mutex_unlock(&t->lock);
    return takes;
}

void dr__trace_put_span(dr_trace *t, const dr_span *span)
{
    uint8_t payload[DR__MAX_RECORD];
    if (is_open(t))
        put(t, DR_TRACE_SPAN, payload, dr__pack_span(t->start_ns, span, payload));
}

void dr_trace_span(dr_trace *t, const dr_span *span)
{
    if (dr__trace_wants_span(t, span->kind, span->end_ns - span->begin_ns, 1))
        dr__trace_put_span(t, span);
}

void dr_trace_text(dr_trace *t, uint64_t time_ns, const char *json)
{
    if (!is_open(t))
        return;
    pthread_mutex_lock(&t->lock);
    put_text(t, time_ns, json);
    pthread_mutex_unlock(&t->lock);
}

/* --- onto the disk, in the thread --- */

static bool write_all(dr_trace *t, const uint8_t *data, size_t size)
{
    while (size > 0) {
        const ssize_t n = write(t->fd, data, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            t->why = n < 0 ? errno : EIO;
            atomic_store(&t->state, BROKEN);
            return false;
        }
        data += n;
        size -= (size_t)n;
        t->written += (uint64_t)n;
    }
    return true;
}

/* The bytes of the complete records that fit into `room`. */
static size_t whole_records_within(const uint8_t *data, size_t size, uint64_t room)
{
    size_t at = 0, length;
    int kind;
    while (at < size && dr__frame_read(data + at, &kind, &length) && at + DR__FRAME + length <= room)
        at += DR__FRAME + length;
    return at;
}

static void write_records(dr_trace *t, const uint8_t *data, size_t size)
{
    const uint64_t left = t->max_bytes > t->written + NOTE_BYTES ? t->max_bytes - t->written - NOTE_BYTES : 0;
    const size_t fits = size <= left ? size : whole_records_within(data, size, left);
    if (!write_all(t, data, fits) || fits == size)
        return;
    uint8_t note[DR__FRAME + NOTE_BYTES];
    size_t n = dr__pack_time(t->start_ns, dr__now_ns(), note + DR__FRAME);
    n += (size_t)snprintf((char *)note + DR__FRAME + n, NOTE_BYTES - DR__FRAME - n,
                          "{\"event\":\"end\",\"reason\":\"limit\",\"max_bytes\":%llu}",
                          (unsigned long long)t->max_bytes);
    dr__frame_write(DR_TRACE_TEXT, note + DR__FRAME, n, note);
    if (write_all(t, note, DR__FRAME + n))
        atomic_store(&t->state, FULL);
}

/* lock: writes how many records were lost and left out since the start, if that has changed. */
static void report_missing(dr_trace *t)
{
    char text[128];
    const uint64_t left_out = t->samples.left_out + t->batches.left_out;
    if (t->lost == t->lost_reported && left_out == t->left_out_reported)
        return;
    snprintf(text, sizeof text, "{\"event\":\"missing\",\"lost\":%llu,\"left_out\":%llu}", (unsigned long long)t->lost,
             (unsigned long long)left_out);
    t->lost_reported = t->lost;
    t->left_out_reported = left_out;
    put_text(t, dr__now_ns(), text);
}

/* lock */
static size_t swap_halves(dr_trace *t)
{
    uint8_t *full = t->front;
    const size_t size = t->used;
    t->front = t->back;
    t->back = full;
    t->used = 0;
    return size;
}

static void *writer_main(void *arg)
{
    dr_trace *t = arg;
    pthread_mutex_lock(&t->lock);
    for (bool last = false; !last;) {
        const uint64_t until = dr__now_ns() + FLUSH_NS;
        while (!t->closing && t->used <= HALF_BYTES / 2 && dr__cond_wait(&t->wake, &t->lock, until))
            ;
        last = t->closing;
        size_t size = swap_halves(t);
        report_missing(t); /* the fresh buffer has room for it */
        if (last)
            put_text(t, dr__now_ns(), "{\"event\":\"end\",\"reason\":\"closed\"}");
        pthread_mutex_unlock(&t->lock);
        if (atomic_load(&t->state) == WRITING)
            write_records(t, t->back, size);
        pthread_mutex_lock(&t->lock);
    }
    const size_t rest = swap_halves(t);
    pthread_mutex_unlock(&t->lock);
    if (atomic_load(&t->state) == WRITING)
        write_records(t, t->back, rest);
    return NULL;
}

/* --- opening and closing --- */

void dr_trace_defaults(dr_trace_options *options)
{
    *options = (dr_trace_options){ .size = sizeof *options, .max_bytes = 1000000000, .spans_per_s = 2000 };
}

static dr_status check_options(const dr_trace_options *given, dr_trace_options *o, dr_error *err)
{
    dr_trace_defaults(o);
    if (!given)
        return DR_OK;
    if (given->size != sizeof *given)
        return dr__fail(err, DR_ERR_ARG, "dr_trace_options.size must be %zu, got %zu: call dr_trace_defaults first",
                        sizeof *given, given->size);
    if (!(given->spans_per_s >= 0))
        return dr__fail(err, DR_ERR_ARG, "trace: spans_per_s must be a number from 0, got %g", given->spans_per_s);
    if (given->max_bytes)
        o->max_bytes = given->max_bytes;
    if (given->spans_per_s > 0)
        o->spans_per_s = given->spans_per_s;
    return DR_OK;
}

static void trace_free(dr_trace *t)
{
    if (t->fd >= 0) {
        flock(t->fd, LOCK_UN); /* a forked child's copy of the descriptor would keep the lock */
        close(t->fd);
    }
    dr__pages_free(t->front, HALF_BYTES);
    dr__pages_free(t->back, HALF_BYTES);
    dr__cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->lock);
    dr__free(t->path);
    dr__free(t);
}

/* Opens the file, locks it against other writers, and empties it.  Special files, and file systems without locks, are
 * used without a lock.  *taken: another trace is being written there. */
static dr_status try_file(dr_trace *t, bool *taken, dr_error *err)
{
    struct stat s;
    *taken = false;
    t->fd = open(t->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (t->fd >= 0 && fstat(t->fd, &s) == 0) {
        if (!S_ISREG(s.st_mode))
            return DR_OK;
        *taken = flock(t->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
        if (!*taken && ftruncate(t->fd, 0) == 0)
            return DR_OK;
    }
    return dr__fail_errno(err, DR_ERR_IO, "trace: cannot write %s", t->path);
}

/* Opens t->path, or, if another trace is being written there, a name with this process's id. */
static dr_status open_file(dr_trace *t, dr_error *err)
{
    bool taken;
    dr_status status = try_file(t, &taken, err);
    char *wanted = taken ? t->path : NULL;
    for (int i = 1; taken && i <= MAX_NAMES_TRIED; i++) {
        close(t->fd);
        t->fd = -1;
        if (t->path != wanted)
            dr__free(t->path);
        t->path = dr__trace_path_of_process(wanted, i);
        if (!t->path) {
            status = dr__fail(err, DR_ERR_NOMEM, "trace: out of memory");
            break;
        }
        status = try_file(t, &taken, err);
    }
    dr__free(wanted);
    return status;
}

/* Writes header and META at once, so that an open trace can be read and a full disk is reported. */
static dr_status begin_file(dr_trace *t, const char *meta, const dr_trace_options *o, dr_error *err)
{
    uint8_t header[DR__TRACE_HEADER], frame[DR__FRAME];
    char *text;
    DR_TRY(dr__meta_make(meta, o, t->start_ns, &text, err));
    dr_status status = open_file(t, err);
    if (status == DR_OK) {
        dr__header_write(t->start_ns, header);
        dr__frame_write(DR_TRACE_META, text, strlen(text), frame);
        if (write_all(t, header, sizeof header) && write_all(t, frame, sizeof frame))
            write_all(t, (const uint8_t *)text, strlen(text));
    }
    dr__free(text);
    return status;
}

static dr_status begin(dr_trace *t, const char *meta, const dr_trace_options *o, dr_error *err)
{
    t->generation = dr__fork_generation();
    t->fd = -1;
    t->start_ns = dr__now_ns();
    t->max_bytes = o->max_bytes;
    atomic_init(&t->state, WRITING);
    pthread_mutex_init(&t->lock, NULL);
    dr__cond_init(&t->wake);
    dr__picker_init(&t->samples, o->spans_per_s, t->start_ns);
    dr__picker_init(&t->batches, o->spans_per_s, t->start_ns + 2);
    t->front = dr__pages_new(HALF_BYTES);
    t->back = dr__pages_new(HALF_BYTES);
    if (!t->path || !t->front || !t->back)
        return dr__fail(err, DR_ERR_NOMEM, "trace: out of memory");
    DR_TRY(begin_file(t, meta, o, err));
    if (!dr__thread_start(&t->thread, "drapps-trace", writer_main, t))
        return dr__fail(err, DR_ERR_LIMIT, "trace: cannot start its thread");
    return DR_OK;
}

dr_status dr_trace_open(const char *path, const char *meta, const dr_trace_options *options, dr_trace **out,
                        dr_error *err)
{
    dr_trace_options o;
    char *name;
    *out = NULL;
    DR_TRY(check_options(options, &o, err));
    if (!path && !dr__trace_path_is_set())
        return DR_OK;
    name = path ? dr__strdup(path) : dr__trace_path_next();
    dr_trace *t = dr__alloc_zero(1, sizeof *t);
    if (!t || !name) {
        dr__free(t);
        dr__free(name);
        return dr__fail(err, DR_ERR_NOMEM, "trace: out of memory");
    }
    t->path = name;
    dr_status status = begin(t, meta, &o, err);
    if (status == DR_OK)
        *out = t;
    else
        trace_free(t);
    return status;
}

void dr_trace_close(dr_trace **trace)
{
    if (!trace || !*trace)
        return;
    dr_trace *t = *trace;
    *trace = NULL;
    if (t->generation != dr__fork_generation())
        return; /* it is the parent's: its thread does not exist here, and its lock may be held */
    pthread_mutex_lock(&t->lock);
    t->closing = true;
    dr__cond_signal(&t->wake);
    pthread_mutex_unlock(&t->lock);
    pthread_join(t->thread, NULL);
    trace_free(t);
}

dr_status dr_trace_status(dr_trace *t, dr_error *err)
{
    switch (t ? atomic_load(&t->state) : WRITING) {
    case FULL:
        return DR_END;
    case BROKEN:
        errno = t->why;
        return dr__fail_errno(err, DR_ERR_IO, "trace: writing %s failed", t->path);
    default:
        return DR_OK;
    }
}

const char *dr_trace_path(const dr_trace *t)
{
    return t ? t->path : NULL;
}
