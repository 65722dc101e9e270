/* http_samples.c: requests for samples become jobs, whose frames are the answer. */
#include "serve/http_server.h"

#ifdef DR_HAVE_MICROHTTPD
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { BLOCK = 64 << 10 };

static unsigned status_of(dr_status status)
{
    return status == DR_ERR_LIMIT   ? DR__HTTP_TOO_LARGE
           : status == DR_ERR_NOMEM ? MHD_HTTP_SERVICE_UNAVAILABLE
                                    : MHD_HTTP_BAD_REQUEST;
}

/* --- POST --- */

/* Both under the lock of the jobs, so that a connection is never woken up before it sleeps. */
static void sleep_connection(void *user)
{
    dr__http.MHD_suspend_connection(((dr__call *)user)->connection);
}

static void wake_connection(void *user)
{
    dr__http.MHD_resume_connection(((dr__call *)user)->connection);
}

static ssize_t read_frames(void *user, uint64_t pos, char *buf, size_t max)
{
    dr__call *call = user;
    size_t n;
    (void)pos;
    if (atomic_load(&call->server->breaking_off))
        return MHD_CONTENT_READER_END_WITH_ERROR;
    switch (dr__job_take(call->job, buf, max, &n)) {
    case DR__TAKE_BYTES:
        call->bytes += n;
        return (ssize_t)n;
    case DR__TAKE_WAIT:
        return 0;
    case DR__TAKE_END:
        return MHD_CONTENT_READER_END_OF_STREAM;
    case DR__TAKE_BROKEN:
        break;
    }
    return MHD_CONTENT_READER_END_WITH_ERROR;
}

static dr_status begin(dr__call *call, dr__remote_request *request, bool when_all, dr_error *err)
{
    const dr__job_calls calls = { .wait = when_all ? NULL : sleep_connection, .ready = wake_connection, .user = call };
    return dr__job_begin(call->server->jobs, call->tenant, call->catalogue, call->set, request, when_all, &calls,
                         &call->job, err);
}

enum MHD_Result dr__http_samples(dr__call *call)
{
    dr__remote_request request;
    dr_error err = { 0 };
    const dr_status parsed =
        dr__remote_request_parse(call->body, call->n_body, call->server->o.max_samples, &request, &err);
    dr__free(call->body);
    call->body = NULL;
    if (parsed != DR_OK)
        return dr__http_error(call, status_of(parsed), err.text);
    if (request.set && request.set != call->set->set->fingerprint) {
        dr__remote_request_free(&request);
        return dr__http_error(call, MHD_HTTP_CONFLICT, "the set has another fingerprint");
    }
    const dr_status begun = begin(call, &request, false, &err);
    if (begun != DR_OK) {
        dr__remote_request_free(&request);
        return dr__http_error(call, begun == DR_ERR_LIMIT ? MHD_HTTP_TOO_MANY_REQUESTS : MHD_HTTP_SERVICE_UNAVAILABLE,
                              err.text);
    }
    struct MHD_Response *r =
        dr__http.MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_frames, call, NULL);
    if (r)
        dr__http.MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, DR__REMOTE_TYPE);
    return dr__http_queue(call, MHD_HTTP_OK, r);
}

/* --- GET with X-Drapps-Ops --- */

/* The job is done: its one frame, as a whole, with a header that says how many ops ran. */
static enum MHD_Result answer_gateway(dr__call *call)
{
    char applied[16];
    unsigned prefix;
    size_t n;
    char *frame = dr__job_take_all(call->job, &n, &prefix);
    if (!frame)
        return dr__http_error(call, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory");
    struct MHD_Response *r = dr__http.MHD_create_response_from_buffer(n, frame, MHD_RESPMEM_MUST_COPY);
    dr__free(frame);
    if (!r)
        return MHD_NO;
    snprintf(applied, sizeof applied, "%u", prefix);
    dr__http.MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, DR__REMOTE_TYPE);
    dr__http.MHD_add_response_header(r, "X-Drapps-Applied", applied);
    dr__http.MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    call->bytes = n;
    return dr__http_queue(call, MHD_HTTP_OK, r);
}

/* The connection sleeps before the job begins, which may be done at once. */
enum MHD_Result dr__http_gateway(dr__call *call, bool *taken)
{
    dr__remote_request request;
    uint64_t id;
    *taken = true;
    if (call->gateway_waits)
        return call->job ? answer_gateway(call)
                         : dr__http_error(call, MHD_HTTP_TOO_MANY_REQUESTS, "too many requests for samples at a time");
    const char *ops = dr__http_header(call, "X-Drapps-Ops");
    *taken = ops && !strcmp(call->method, MHD_HTTP_METHOD_GET) &&
             dr__remote_request_parse_single(ops, strlen(ops), &request, NULL) == DR_OK;
    if (!*taken)
        return MHD_YES;
    *taken = dr__served_sample(call->set, call->path, &id);
    if (!*taken) {
        dr__remote_request_free(&request);
        return MHD_YES;
    }
    request.entries[0].id = id;
    call->gateway_waits = true;
    dr__http.MHD_suspend_connection(call->connection);
    if (begin(call, &request, true, NULL) != DR_OK) {
        dr__remote_request_free(&request);
        dr__http.MHD_resume_connection(call->connection);
    }
    return MHD_YES;
}
#else
typedef int dr__http_no_samples; /* an empty file is not C */
#endif
