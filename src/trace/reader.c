/* reader.c: reads a trace, record by record, up to the last complete one. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "trace/wire.h"

enum { FIRST_ROOM = 64 * 1024 };

struct dr_trace_reader {
    int fd;
    char *path;
    uint64_t offset; /* in the file, of data[at] */
    uint8_t *data;
    size_t room, at, end;
    char *text;
    size_t text_room;
    uint64_t start_ns;
    bool has_meta; /* META was read */
    dr__tables tables;
    /* the contents of the last record */
    dr_snapshot snapshot;
    dr_decision decision;
    dr_span span;
    double flow[DR_N_FLOWS];
};

/* Makes room for n bytes from `at` on. */
static dr_status make_room(dr_trace_reader *r, size_t n, dr_error *err)
{
    memmove(r->data, r->data + r->at, r->end - r->at);
    r->end -= r->at;
    r->at = 0;
    if (n <= r->room)
        return DR_OK;
    uint8_t *data = dr__realloc(r->data, n, 1);
    if (!data)
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory for a record of %zu bytes", r->path, n);
    r->data = data;
    r->room = n;
    return DR_OK;
}

/* Reads until there are n bytes from `at` on; DR_END: the file ends before that. */
static dr_status fill_to(dr_trace_reader *r, size_t n, dr_error *err)
{
    if (r->end - r->at >= n)
        return DR_OK;
    DR_TRY(make_room(r, n, err));
    while (r->end - r->at < n) {
        const ssize_t got = read(r->fd, r->data + r->end, r->room - r->end);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return dr__fail_errno(err, DR_ERR_IO, "%s: cannot read", r->path);
        if (got == 0)
            return DR_END;
        r->end += (size_t)got;
    }
    return DR_OK;
}

static void advance(dr_trace_reader *r, size_t n)
{
    r->at += n;
    r->offset += n;
}

static dr_status damaged(const dr_trace_reader *r, const char *what, dr_error *err)
{
    return dr__fail(err, DR_ERR_FORMAT, "%s: damaged: byte %llu: %s", r->path, (unsigned long long)r->offset, what);
}

/* Reads the frame and the payload of the next record. */
static dr_status next_payload(dr_trace_reader *r, int *kind, dr_cursor *out, dr_error *err)
{
    size_t length;
    DR_TRY(fill_to(r, DR__FRAME, err));
    if (!dr__frame_read(r->data + r->at, kind, &length))
        return damaged(r, "no record begins here", err);
    DR_TRY(fill_to(r, DR__FRAME + length, err));
    const uint8_t *payload = r->data + r->at + DR__FRAME;
    if (!dr__frame_holds(r->data + r->at, payload, length))
        return damaged(r, "the record's checksum does not fit", err);
    *out = dr__cursor(payload, length, "record");
    return DR_OK;
}

/* Copies the rest of the payload as a zero-terminated text. */
static dr_status read_text(dr_trace_reader *r, dr_cursor *c, const char **out, dr_error *err)
{
    const size_t n = dr__cursor_left(c);
    if (memchr(c->at, 0, n))
        return dr__fail(err, DR_ERR_FORMAT, "a zero in a text");
    if (n + 1 > r->text_room) {
        char *text = dr__realloc(r->text, n + 1, 1);
        if (!text)
            return dr__fail(err, DR_ERR_NOMEM, "out of memory");
        r->text = text;
        r->text_room = n + 1;
    }
    memcpy(r->text, c->at, n);
    r->text[n] = '\0';
    *out = r->text;
    return DR_OK;
}

static dr_status read_meta(dr_trace_reader *r, dr_cursor *c, dr_trace_record *out, dr_error *err)
{
    DR_TRY(dr__meta_tables((const char *)c->at, dr__cursor_left(c), &r->tables, err));
    r->has_meta = true;
    out->time_ns = r->start_ns;
    return read_text(r, c, &out->text, err);
}

/* Decodes a record; DR_AGAIN: its kind is not known to this version. */
static dr_status read_record(dr_trace_reader *r, int kind, dr_cursor *c, dr_trace_record *out, dr_error *err)
{
    *out = (dr_trace_record){ .kind = (dr_trace_kind)kind };
    if (!r->has_meta && kind != DR_TRACE_META)
        return dr__fail(err, DR_ERR_FORMAT, "a record before the description of the run");
    switch (kind) {
    case DR_TRACE_META:
        return read_meta(r, c, out, err);
    case DR_TRACE_SNAPSHOT:
        DR_TRY(dr__unpack_snapshot(c, r->start_ns, &r->tables, &r->snapshot, err));
        out->snapshot = &r->snapshot;
        out->time_ns = r->snapshot.time_ns;
        return DR_OK;
    case DR_TRACE_FLOW:
        DR_TRY(dr__unpack_flow(c, r->start_ns, &r->tables, &out->time_ns, r->flow, err));
        out->flow = r->flow;
        out->n_flow = DR_N_FLOWS;
        return DR_OK;
    case DR_TRACE_DECISION:
        DR_TRY(dr__unpack_decision(c, r->start_ns, &r->tables, &r->decision, err));
        out->decision = &r->decision;
        out->time_ns = r->decision.time_ns;
        return DR_OK;
    case DR_TRACE_SPAN:
        DR_TRY(dr__unpack_span(c, r->start_ns, &r->tables, &r->span, err));
        out->span = &r->span;
        out->time_ns = r->span.end_ns;
        return DR_OK;
    case DR_TRACE_TEXT:
        DR_TRY(dr__unpack_time(c, r->start_ns, &out->time_ns, err));
        return read_text(r, c, &out->text, err);
    default:
        return DR_AGAIN;
    }
}

dr_status dr_trace_next(dr_trace_reader *r, dr_trace_record *out, dr_error *err)
{
    dr_status status = r ? DR_AGAIN : DR_END;
    while (status == DR_AGAIN) {
        int kind;
        dr_cursor c = { 0 };
        dr_error why;
        DR_TRY(next_payload(r, &kind, &c, err));
        const size_t length = dr__cursor_left(&c);
        status = read_record(r, kind, &c, out, &why);
        if (status == DR_ERR_FORMAT)
            return damaged(r, why.text, err);
        if (status < 0)
            return dr__fail(err, status, "%s: %s", r->path, why.text);
        advance(r, DR__FRAME + length);
    }
    return status;
}

static dr_status begin(dr_trace_reader *r, const char *path, dr_error *err)
{
    dr_error why;
    r->path = dr__strdup(path);
    r->data = dr__alloc(FIRST_ROOM);
    r->room = FIRST_ROOM;
    if (!r->path || !r->data)
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", path);
    r->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (r->fd < 0)
        return dr__fail_errno(err, errno == ENOENT ? DR_ERR_NOT_FOUND : DR_ERR_IO, "%s: cannot read", path);
    dr_status status = fill_to(r, DR__TRACE_HEADER, err);
    if (status == DR_END)
        return dr__fail(err, DR_ERR_FORMAT, "%s: not a trace: it ends at byte %zu", path, r->end);
    DR_TRY(status);
    if (dr__header_read(r->data, &r->start_ns, &why) != DR_OK)
        return dr__fail(err, DR_ERR_FORMAT, "%s: %s", path, why.text);
    advance(r, DR__TRACE_HEADER);
    return DR_OK;
}

dr_status dr_trace_open_reader(const char *path, dr_trace_reader **out, dr_error *err)
{
    *out = NULL;
    dr_trace_reader *r = dr__alloc_zero(1, sizeof *r);
    if (!r)
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", path);
    r->fd = -1;
    dr_status status = begin(r, path, err);
    if (status != DR_OK)
        dr_trace_close_reader(&r);
    *out = r;
    return status;
}

void dr_trace_close_reader(dr_trace_reader **reader)
{
    if (!reader || !*reader)
        return;
    dr_trace_reader *r = *reader;
    *reader = NULL;
    if (r->fd >= 0)
        close(r->fd);
    dr__free(r->text);
    dr__free(r->data);
    dr__free(r->path);
    dr__free(r);
}
