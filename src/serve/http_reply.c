/* http_reply.c: sends an answer. */
#include "serve/http_server.h"

#ifdef DR_HAVE_MICROHTTPD
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

const char *dr__http_header(const dr__call *call, const char *name)
{
    return dr__http.MHD_lookup_connection_value(call->connection, MHD_HEADER_KIND, name);
}

/* Takes the response. */
enum MHD_Result dr__http_queue(dr__call *call, unsigned status, struct MHD_Response *response)
{
    if (!response)
        return MHD_NO;
    if (atomic_load(&call->server->stopping))
        dr__http.MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    call->status = status;
    atomic_store(&call->conn->state, DR__CONN_IS_ANSWERED);
    const enum MHD_Result result = dr__http.MHD_queue_response(call->connection, status, response);
    dr__http.MHD_destroy_response(response);
    return result;
}

enum MHD_Result dr__http_reply(dr__call *call, unsigned status, const char *type, const void *data, size_t size,
                               enum MHD_ResponseMemoryMode mode)
{
    struct MHD_Response *r = dr__http.MHD_create_response_from_buffer(size, (void *)data, mode);
    if (!r)
        return MHD_NO;
    call->bytes = size;
    dr__http.MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    dr__http.MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        dr__http.MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW,
                                         call->route == DR__ROUTE_SAMPLES ? "POST" : "GET, HEAD");
    if (status == MHD_HTTP_UNAUTHORIZED)
        dr__http.MHD_add_response_header(r, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer realm=\"drapps\"");
    if (status == MHD_HTTP_TOO_MANY_REQUESTS)
        dr__http.MHD_add_response_header(r, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    return dr__http_queue(call, status, r);
}

enum MHD_Result dr__http_error(dr__call *call, unsigned status, const char *text)
{
    json_t *o = json_pack("{s:s}", "error", text);
    if (!o) /* the text is no UTF-8 */
        o = json_pack("{s:s}", "error", "the request is wrong");
    char *body = o ? json_dumps(o, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
    json_decref(o);
    if (!body)
        return MHD_NO;
    const enum MHD_Result result =
        dr__http_reply(call, status, "application/json", body, strlen(body), MHD_RESPMEM_MUST_COPY);
    free(body); /* jansson's */
    return result;
}
#else
typedef int dr__http_no_reply; /* an empty file is not C */
#endif
