/* http_file.c: files of a data set, whole or in part, by sendfile. */
#include "serve/http_server.h"

#ifdef DR_HAVE_MICROHTTPD
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "serve/beneath.h"
#include "serve/byte_range.h"
#include "source/file.h"

/* Smaller answers go out with their headers, in one call of the system. */
enum { SMALL = 16 << 10 };

static void describe(dr__http_part *p)
{
    const time_t seconds = (time_t)p->mtime_s;
    struct tm utc;
    snprintf(p->tag, sizeof p->tag, "\"%016" PRIx64 "\"", p->version);
    gmtime_r(&seconds, &utc);
    strftime(p->date, sizeof p->date, "%a, %d %b %Y %H:%M:%S GMT", &utc);
}

/* Whether a list of entity tags has this one; weak ones count only where `weak` is set. */
static bool has_tag(const char *list, const char *tag, bool weak)
{
    if (!strcmp(list, "*"))
        return true;
    for (const char *at = list; (at = strstr(at, tag)) != NULL; at++)
        if (weak || at - list < 2 || memcmp(at - 2, "W/", 2) != 0)
            return true;
    return false;
}

/* The status that conditions lead to; 0: none, the file is to be sent. */
static unsigned precondition(const dr__call *call, const dr__http_part *p)
{
    const char *match = dr__http_header(call, MHD_HTTP_HEADER_IF_MATCH);
    const char *none = dr__http_header(call, MHD_HTTP_HEADER_IF_NONE_MATCH);
    if (match && !has_tag(match, p->tag, false))
        return MHD_HTTP_PRECONDITION_FAILED;
    return none && has_tag(none, p->tag, true) ? MHD_HTTP_NOT_MODIFIED : 0;
}

/* Ranges are meant for the version that If-Range names; of another the whole file is the answer. */
static bool is_meant(const dr__call *call, const dr__http_part *p)
{
    const char *version = dr__http_header(call, MHD_HTTP_HEADER_IF_RANGE);
    return !version || !strcmp(version, p->tag) || !strcmp(version, p->date);
}

unsigned dr__http_choose_part(const dr__call *call, dr__http_part *p)
{
    describe(p);
    p->offset = 0;
    p->n = p->size;
    p->is_part = false;
    const unsigned instead = precondition(call, p);
    if (instead || !is_meant(call, p))
        return instead;
    switch (dr__range_parse(dr__http_header(call, MHD_HTTP_HEADER_RANGE), p->size, &p->offset, &p->n)) {
    case DR__RANGE_ALL:
        break;
    case DR__RANGE_PART:
        p->is_part = true;
        break;
    case DR__RANGE_UNSATISFIED:
        return MHD_HTTP_RANGE_NOT_SATISFIABLE;
    }
    return 0;
}

enum MHD_Result dr__http_send_part(dr__call *call, const dr__http_part *p, struct MHD_Response *r)
{
    char range[80];
    if (!r)
        return dr__http_error(call, MHD_HTTP_INTERNAL_SERVER_ERROR, "cannot read the file");
    dr__http.MHD_add_response_header(r, MHD_HTTP_HEADER_ETAG, p->tag);
    if (p->mtime_s)
        dr__http.MHD_add_response_header(r, MHD_HTTP_HEADER_LAST_MODIFIED, p->date);
    dr__http.MHD_add_response_header(r, MHD_HTTP_HEADER_ACCEPT_RANGES, "bytes");
    dr__http.MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, "application/octet-stream");
    if (p->is_part) {
        snprintf(range, sizeof range, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, p->offset, p->offset + p->n - 1,
                 p->size);
        dr__http.MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_RANGE, range);
    }
    return dr__http_queue(call, p->is_part ? MHD_HTTP_PARTIAL_CONTENT : MHD_HTTP_OK, r);
}

enum MHD_Result dr__http_send_no_part(dr__call *call, const dr__http_part *p, unsigned status)
{
    char range[64];
    struct MHD_Response *r = dr__http.MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT);
    if (!r)
        return MHD_NO;
    dr__http.MHD_add_response_header(r, MHD_HTTP_HEADER_ETAG, p->tag);
    snprintf(range, sizeof range, "bytes */%" PRIu64, p->size);
    if (status == MHD_HTTP_RANGE_NOT_SATISFIABLE)
        dr__http.MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_RANGE, range);
    return dr__http_queue(call, status, r);
}

/* Takes the descriptor. */
static struct MHD_Response *response_of(int fd, const dr__http_part *p)
{
    if (p->n > SMALL)
        return dr__http.MHD_create_response_from_fd_at_offset64(p->n, fd, p->offset);
    size_t got = 0;
    void *data = malloc(p->n ? p->n : 1); /* libmicrohttpd frees it */
    const bool good = data && dr__file_pread(fd, data, p->n, p->offset, &got) == 0 && got == p->n;
    close(fd);
    struct MHD_Response *r = good ? dr__http.MHD_create_response_from_buffer(p->n, data, MHD_RESPMEM_MUST_FREE) : NULL;
    if (!r)
        free(data);
    return r;
}

enum MHD_Result dr__http_file(dr__call *call)
{
    int fd;
    struct stat st;
    const dr_status status = dr__beneath_open(call->set->root_fd, call->path, &fd, &st, NULL);
    if (status != DR_OK)
        return status == DR_ERR_NOT_FOUND ? dr__http_error(call, MHD_HTTP_NOT_FOUND, "no such file in the set")
                                          : dr__http_error(call, MHD_HTTP_SERVICE_UNAVAILABLE, "cannot open the file");
    dr__http_part part = { .size = (uint64_t)st.st_size,
                           .version = dr__beneath_version(&st),
                           .mtime_s = (int64_t)st.st_mtim.tv_sec };
    const unsigned instead = dr__http_choose_part(call, &part);
    if (instead) {
        close(fd);
        return dr__http_send_no_part(call, &part, instead);
    }
    struct MHD_Response *r = response_of(fd, &part);
    call->bytes = r ? part.n : 0;
    return dr__http_send_part(call, &part, r);
}
#else
typedef int dr__http_no_file; /* an empty file is not C */
#endif
