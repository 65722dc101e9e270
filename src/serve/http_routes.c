/* http_routes.c: what is asked for, by whom, and whether they may; and the short answers. */
#include "serve/http_server.h"

#ifdef DR_HAVE_MICROHTTPD
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drapps/codec.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "op/op.h"

#define JSON "application/json"
#define INDEX_TYPE "application/x-drapps-index"
#define METRICS_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* --- the beginning and the end of a request --- */

static dr__conn *conn_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        dr__http.MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

static dr__call *new_call(dr_serve *s, struct MHD_Connection *connection, const char *url, const char *method)
{
    dr__conn *conn = conn_of(connection);
    dr__call *call = conn ? dr__alloc_zero(1, sizeof *call) : NULL;
    char *copy = call ? dr__strdup(url) : NULL;
    if (!copy) {
        dr__free(call);
        return NULL;
    }
    call->server = s;
    call->connection = connection;
    call->conn = conn;
    call->url = copy;
    call->start_ns = dr__now_ns();
    snprintf(call->method, sizeof call->method, "%s", method);
    pthread_mutex_lock(&s->lock);
    call->next = s->calls;
    call->at = &s->calls;
    if (s->calls)
        s->calls->at = &call->next;
    s->calls = call;
    s->n_calls++;
    call->catalogue = dr__catalogue_ref(s->catalogue);
    call->rights = s->rights;
    if (s->rights)
        atomic_fetch_add(&s->rights->refs, 1);
    pthread_mutex_unlock(&s->lock);
    return call;
}

static void count(dr__call *call, bool complete)
{
    dr_serve *s = call->server;
    const unsigned class = call->status / 100 < DR__STATUS_CLASSES ? call->status / 100 : 0;
    const bool sent = complete && strcmp(call->method, MHD_HTTP_METHOD_HEAD) != 0;
    const uint64_t bytes = sent || call->route == DR__ROUTE_SAMPLES ? call->bytes : 0;
    atomic_fetch_add(&s->requests[call->route][class], 1);
    atomic_fetch_add(&s->sent_bytes[call->route], bytes);
    const dr__log_entry entry = { .address = call->conn->address,
                                  .client = call->by_token ? call->tenant : "",
                                  .method = call->method,
                                  .url = call->url,
                                  .status = call->status,
                                  .bytes = bytes,
                                  .ns = dr__now_ns() - call->start_ns };
    dr__access_log_add(&s->log, &entry);
}

void dr__rights_unref(dr__rights **rights)
{
    dr__rights *r = *rights;
    *rights = NULL;
    if (!r || atomic_fetch_sub(&r->refs, 1) > 1)
        return;
    dr__tokens_free(&r->tokens);
    dr__free(r);
}

void dr__http_completed(void *user, struct MHD_Connection *connection, void **seen,
                        enum MHD_RequestTerminationCode code)
{
    dr_serve *s = user;
    dr__call *call = *seen;
    (void)connection;
    if (!call)
        return;
    *seen = NULL;
    dr__job_end(&call->job);
    dr__http_far_file_end(call);
    count(call, code == MHD_REQUEST_TERMINATED_COMPLETED_OK);
    atomic_store(&call->conn->since_ns, dr__now_ns());
    atomic_store(&call->conn->state, DR__CONN_IDLE);
    pthread_mutex_lock(&s->lock);
    *call->at = call->next;
    if (call->next)
        call->next->at = call->at;
    if (!--s->n_calls && atomic_load(&s->stopping))
        dr__cond_broadcast(&s->quiet);
    pthread_mutex_unlock(&s->lock);
    dr__rights_unref(&call->rights);
    dr__catalogue_unref(&call->catalogue);
    dr__free(call->body);
    dr__free(call->url);
    dr__free(call);
}

/* --- routes --- */

static void refuse(dr__call *call, unsigned status, const char *why)
{
    if (call->error)
        return;
    call->error = status;
    call->why = why;
}

/* "NAME", "NAME/index", "NAME/samples", "NAME/files/PATH": the set's name goes to `name`. */
static void route_in_set(dr__call *call, char *rest, const char **name)
{
    char *slash = strchr(rest, '/');
    *name = rest;
    call->route = DR__ROUTE_SET;
    if (!slash)
        return;
    *slash = 0;
    char *what = slash + 1;
    if (!strcmp(what, "index"))
        call->route = DR__ROUTE_INDEX;
    else if (!strcmp(what, "samples"))
        call->route = DR__ROUTE_SAMPLES;
    else if (!strncmp(what, "files/", 6)) {
        call->route = DR__ROUTE_FILE;
        call->path = call->url + (what + 6 - rest) + strlen("/v1/sets/");
    } else
        call->route = DR__ROUTE_NONE;
}

static dr__route simple_route(const char *url)
{
    return !strcmp(url, "/v1/health") ? DR__ROUTE_HEALTH
           : !strcmp(url, "/v1/info") ? DR__ROUTE_INFO
           : !strcmp(url, "/v1/sets") ? DR__ROUTE_SETS
           : !strcmp(url, "/metrics") ? DR__ROUTE_METRICS
                                      : DR__ROUTE_NONE;
}

/* Who asks.  Without a tokens file clients are told apart by their address. */
static const dr__token *authenticate(dr__call *call)
{
    const dr__token *token =
        call->rights ? dr__tokens_find(&call->rights->tokens, dr__http_header(call, MHD_HTTP_HEADER_AUTHORIZATION))
                     : NULL;
    snprintf(call->tenant, sizeof call->tenant, "%s", token ? token->name : call->conn->address);
    call->by_token = token != NULL;
    if (call->rights && !token && call->route != DR__ROUTE_HEALTH)
        refuse(call, MHD_HTTP_UNAUTHORIZED, "this server wants a token: Authorization: Bearer TOKEN");
    return token;
}

/* A set that a client may not read is not there for it. */
static void find_set(dr__call *call, const dr__token *token, const char *name)
{
    if (call->error)
        return;
    call->set = dr__catalogue_find(call->catalogue, name);
    if (token && !dr__token_allows(token, name))
        refuse(call, MHD_HTTP_FORBIDDEN, "the token has no right to this set");
    if (!call->set)
        refuse(call, MHD_HTTP_NOT_FOUND, "no such set");
}

static bool is_get(const dr__call *call)
{
    return !strcmp(call->method, MHD_HTTP_METHOD_GET) || !strcmp(call->method, MHD_HTTP_METHOD_HEAD);
}

static void check_body(dr__call *call)
{
    const char *length = dr__http_header(call, MHD_HTTP_HEADER_CONTENT_LENGTH);
    if (call->route == DR__ROUTE_SAMPLES && length && strtoull(length, NULL, 10) > call->server->o.max_request)
        refuse(call, DR__HTTP_TOO_LARGE, "the body of the request is too large");
}

static void find_route(dr__call *call)
{
    static const char sets[] = "/v1/sets/";
    const char *name = NULL;
    char *rest = NULL;
    call->route = simple_route(call->url);
    if (!strncmp(call->url, sets, sizeof sets - 1)) {
        rest = dr__strdup(call->url + sizeof sets - 1);
        if (!rest)
            refuse(call, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory");
        else
            route_in_set(call, rest, &name);
    }
    if (call->server->loopback && !dr__address_names_loopback(dr__http_header(call, MHD_HTTP_HEADER_HOST)))
        refuse(call, MHD_HTTP_MISDIRECTED_REQUEST, "only for this machine: ask for localhost");
    const dr__token *token = authenticate(call);
    if (call->route == DR__ROUTE_NONE)
        refuse(call, MHD_HTTP_NOT_FOUND, "there is no such thing; see /v1/sets");
    if (call->route == DR__ROUTE_METRICS && token && !dr__token_allows(token, "@metrics"))
        refuse(call, MHD_HTTP_FORBIDDEN, "the token has no right to the metrics");
    if (name)
        find_set(call, token, name);
    if (call->route == DR__ROUTE_SAMPLES ? strcmp(call->method, MHD_HTTP_METHOD_POST) != 0 : !is_get(call))
        refuse(call, MHD_HTTP_METHOD_NOT_ALLOWED, "another method is wanted: see Allow");
    check_body(call);
    dr__free(rest);
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* %XX becomes a byte, but for %00, which would end the text early, and what is no such triple: both stay. */
size_t dr__http_unescape(void *user, struct MHD_Connection *connection, char *text)
{
    char *to = text;
    (void)user, (void)connection;
    for (const char *from = text; *from; from++) {
        const int high = *from == '%' ? hex_digit(from[1]) : -1, low = high >= 0 ? hex_digit(from[2]) : -1;
        if (low >= 0 && (high || low)) {
            *to++ = (char)(high * 16 + low);
            from += 2;
        } else {
            *to++ = *from;
        }
    }
    *to = 0;
    return (size_t)(to - text);
}

/* --- short answers --- */

static enum MHD_Result answer_json(dr__call *call, json_t *o)
{
    char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
    json_decref(o);
    if (!text)
        return dr__http_error(call, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory");
    const enum MHD_Result result = dr__http_reply(call, MHD_HTTP_OK, JSON, text, strlen(text), MHD_RESPMEM_MUST_COPY);
    free(text); /* jansson's */
    return result;
}

static enum MHD_Result answer_info(dr__call *call)
{
    const dr_serve *s = call->server;
    char ops[20];
    json_t *codecs = json_array(), *stages = json_loads(dr_codec_stages_json(), 0, NULL), *stage;
    size_t i;
    json_array_foreach(stages, i, stage) json_array_append(codecs, json_object_get(stage, "name"));
    json_decref(stages);
    snprintf(ops, sizeof ops, "%016" PRIx64, dr__op_set());
    return answer_json(call,
                       json_pack("{s:i, s:s, s:f, s:s, s:I, s:I, s:o}", "protocol", DR__REMOTE_VERSION, "version",
                                 DR_VERSION, "cpus", s->o.cpus, "ops", ops, "max_samples", (json_int_t)s->o.max_samples,
                                 "max_request", (json_int_t)s->o.max_request, "codecs", codecs));
}

static json_t *set_json(const dr__served_set *set)
{
    json_t *o = json_loads(set->meta, 0, NULL);
    json_object_set_new(o, "bytes", json_integer((json_int_t)set->stored_bytes));
    return o;
}

static enum MHD_Result answer_sets(dr__call *call)
{
    json_t *sets = json_array();
    const dr__token *token =
        call->rights ? dr__tokens_find(&call->rights->tokens, dr__http_header(call, MHD_HTTP_HEADER_AUTHORIZATION))
                     : NULL;
    for (size_t i = 0; i < call->catalogue->n_sets; i++) {
        const dr__served_set *set = &call->catalogue->sets[i];
        if (call->rights && (!token || !dr__token_allows(token, set->name)))
            continue;
        json_array_append_new(sets, json_pack("{s:s, s:s, s:I, s:I}", "name", set->name, "format", set->set->format,
                                              "samples", (json_int_t)set->set->n_samples, "bytes",
                                              (json_int_t)set->stored_bytes));
    }
    return answer_json(call, json_pack("{s:o}", "sets", sets));
}

static void release_catalogue(void *user)
{
    dr__catalogue *c = user;
    dr__catalogue_unref(&c);
}

/* The index lives as long as its catalogue, of which the response has a reference. */
static enum MHD_Result answer_index(dr__call *call)
{
    const dr__section *index = &call->set->index;
    char tag[24];
    snprintf(tag, sizeof tag, "\"%016" PRIx64 "\"", call->set->index_tag);
    const char *known = dr__http_header(call, MHD_HTTP_HEADER_IF_NONE_MATCH);
    const bool same = known && strstr(known, tag);
    struct MHD_Response *r = dr__http.MHD_create_response_from_buffer_with_free_callback_cls(
        same ? 0 : index->size, index->data, release_catalogue, dr__catalogue_ref(call->catalogue));
    if (!r) {
        release_catalogue(call->catalogue);
        return MHD_NO;
    }
    dr__http.MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, INDEX_TYPE);
    dr__http.MHD_add_response_header(r, MHD_HTTP_HEADER_ETAG, tag);
    call->bytes = same ? 0 : index->size;
    return dr__http_queue(call, same ? MHD_HTTP_NOT_MODIFIED : MHD_HTTP_OK, r);
}

static enum MHD_Result answer_metrics(dr__call *call)
{
    char *text = dr__server_metrics(call->server);
    if (!text)
        return dr__http_error(call, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory");
    const enum MHD_Result result =
        dr__http_reply(call, MHD_HTTP_OK, METRICS_TYPE, text, strlen(text), MHD_RESPMEM_MUST_COPY);
    dr__free(text);
    return result;
}

/* Whether the client means another set than the one that has its name now. */
static bool means_another_set(dr__call *call)
{
    const char *told = dr__http_header(call, "X-Drapps-Set");
    return told && strtoull(told, NULL, 16) != call->set->set->fingerprint;
}

static enum MHD_Result answer_file(dr__call *call)
{
    bool taken;
    if (means_another_set(call))
        return dr__http_error(call, MHD_HTTP_CONFLICT, "the set has another fingerprint");
    const enum MHD_Result result = dr__http_gateway(call, &taken);
    return taken ? result : call->set->far ? dr__http_far_file(call) : dr__http_file(call);
}

static enum MHD_Result answer(dr__call *call)
{
    switch (call->route) {
    case DR__ROUTE_HEALTH:
        return dr__http_reply(call, MHD_HTTP_OK, "text/plain; charset=utf-8", "ok\n", 3, MHD_RESPMEM_PERSISTENT);
    case DR__ROUTE_INFO:
        return answer_info(call);
    case DR__ROUTE_SETS:
        return answer_sets(call);
    case DR__ROUTE_SET:
        return answer_json(call, set_json(call->set));
    case DR__ROUTE_INDEX:
        return answer_index(call);
    case DR__ROUTE_FILE:
        return answer_file(call);
    case DR__ROUTE_SAMPLES:
        return dr__http_samples(call);
    case DR__ROUTE_METRICS:
        return answer_metrics(call);
    case DR__ROUTE_NONE:
    case DR__N_ROUTES:
        break;
    }
    return dr__http_error(call, MHD_HTTP_NOT_FOUND, "there is no such thing; see /v1/sets");
}

/* --- a request, as it comes in --- */

static enum MHD_Result begin(dr_serve *s, struct MHD_Connection *connection, const char *url, const char *method,
                             void **seen)
{
    dr__call *call = new_call(s, connection, url, method);
    if (!call)
        return MHD_NO;
    *seen = call;
    atomic_store(&call->conn->since_ns, call->start_ns);
    atomic_store(&call->conn->state, DR__CONN_SENDS);
    find_route(call);
    /* A body that is not wanted is not read: the connection ends with the answer. */
    return call->error && !is_get(call) ? dr__http_error(call, call->error, call->why) : MHD_YES;
}

static enum MHD_Result take_body(dr__call *call, const char *data, size_t *n)
{
    if (call->route != DR__ROUTE_SAMPLES || call->error) { /* a GET with a body */
        *n = 0;
        return MHD_YES;
    }
    if (call->n_body + *n > call->server->o.max_request) {
        *n = 0;
        refuse(call, DR__HTTP_TOO_LARGE, "the body of the request is too large");
        return MHD_YES;
    }
    char *grown = dr__grow(call->body, &call->body_cap, call->n_body + *n, 1);
    if (!grown)
        return MHD_NO;
    call->body = grown;
    memcpy(call->body + call->n_body, data, *n);
    call->n_body += *n;
    *n = 0;
    return MHD_YES;
}

/* Called when the header of a request is complete, for each part of its body, when it is complete, and when a
 * connection wakes up. */
enum MHD_Result dr__http_handle(void *user, struct MHD_Connection *connection, const char *url, const char *method,
                                const char *version, const char *upload, size_t *n_upload, void **seen)
{
    dr__call *call = *seen;
    (void)version;
    if (!call)
        return begin(user, connection, url, method, seen);
    if (*n_upload)
        return take_body(call, upload, n_upload);
    return call->error ? dr__http_error(call, call->error, call->why) : answer(call);
}
#else
typedef int dr__http_no_routes; /* an empty file is not C */
#endif
