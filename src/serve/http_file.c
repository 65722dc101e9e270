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
enum { SMALL = 16 << 10, TAG = 24, DATE = 40 };

typedef struct file {
    int fd;
    struct stat st;
    char tag[TAG], date[DATE];
    uint64_t offset, n;
    bool is_part;
} file;

static void describe(file *f)
{
    struct tm utc;
    snprintf(f->tag, sizeof f->tag, "\"%016" PRIx64 "\"", dr__beneath_version(&f->st));
    gmtime_r(&f->st.st_mtim.tv_sec, &utc);
    strftime(f->date, sizeof f->date, "%a, %d %b %Y %H:%M:%S GMT", &utc);
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
static unsigned precondition(const dr__call *call, const file *f)
{
    const char *match = dr__http_header(call, MHD_HTTP_HEADER_IF_MATCH);
    const char *none = dr__http_header(call, MHD_HTTP_HEADER_IF_NONE_MATCH);
    if (match && !has_tag(match, f->tag, false))
        return MHD_HTTP_PRECONDITION_FAILED;
    return none && has_tag(none, f->tag, true) ? MHD_HTTP_NOT_MODIFIED : 0;
}

/* Ranges are meant for the version that If-Range names; of another the whole file is the answer. */
static bool is_meant(const dr__call *call, const file *f)
{
    const char *version = dr__http_header(call, MHD_HTTP_HEADER_IF_RANGE);
    return !version || !strcmp(version, f->tag) || !strcmp(version, f->date);
}

static void add_headers(struct MHD_Response *r, const file *f)
{
    char range[80];
    dr__http.MHD_add_response_header(r, MHD_HTTP_HEADER_ETAG, f->tag);
    dr__http.MHD_add_response_header(r, MHD_HTTP_HEADER_LAST_MODIFIED, f->date);
    dr__http.MHD_add_response_header(r, MHD_HTTP_HEADER_ACCEPT_RANGES, "bytes");
    dr__http.MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, "application/octet-stream");
    if (!f->is_part)
        return;
    snprintf(range, sizeof range, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, f->offset, f->offset + f->n - 1,
             (uint64_t)f->st.st_size);
    dr__http.MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_RANGE, range);
}

/* Takes the descriptor. */
static struct MHD_Response *response_of(file *f)
{
    if (f->n > SMALL)
        return dr__http.MHD_create_response_from_fd_at_offset64(f->n, f->fd, f->offset);
    size_t got = 0;
    void *data = malloc(f->n ? f->n : 1); /* libmicrohttpd frees it */
    const bool good = data && dr__file_pread(f->fd, data, f->n, f->offset, &got) == 0 && got == f->n;
    close(f->fd);
    struct MHD_Response *r = good ? dr__http.MHD_create_response_from_buffer(f->n, data, MHD_RESPMEM_MUST_FREE) : NULL;
    if (!r)
        free(data);
    return r;
}

static enum MHD_Result send_file(dr__call *call, file *f)
{
    struct MHD_Response *r = response_of(f);
    if (!r)
        return dr__http_error(call, MHD_HTTP_INTERNAL_SERVER_ERROR, "cannot read the file");
    add_headers(r, f);
    call->bytes = f->n;
    return dr__http_queue(call, f->is_part ? MHD_HTTP_PARTIAL_CONTENT : MHD_HTTP_OK, r);
}

static enum MHD_Result send_nothing(dr__call *call, const file *f, unsigned status)
{
    char range[64];
    struct MHD_Response *r = dr__http.MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT);
    if (!r)
        return MHD_NO;
    dr__http.MHD_add_response_header(r, MHD_HTTP_HEADER_ETAG, f->tag);
    snprintf(range, sizeof range, "bytes */%" PRIu64, (uint64_t)f->st.st_size);
    if (status == MHD_HTTP_RANGE_NOT_SATISFIABLE)
        dr__http.MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_RANGE, range);
    return dr__http_queue(call, status, r);
}

enum MHD_Result dr__http_file(dr__call *call)
{
    file f;
    const dr_status status = dr__beneath_open(call->set->root_fd, call->path, &f.fd, &f.st, NULL);
    if (status != DR_OK)
        return status == DR_ERR_NOT_FOUND ? dr__http_error(call, MHD_HTTP_NOT_FOUND, "no such file in the set")
                                          : dr__http_error(call, MHD_HTTP_SERVICE_UNAVAILABLE, "cannot open the file");
    describe(&f);
    f.offset = 0;
    f.n = (uint64_t)f.st.st_size;
    f.is_part = false;
    unsigned instead = precondition(call, &f);
    if (!instead && is_meant(call, &f))
        switch (dr__range_parse(dr__http_header(call, MHD_HTTP_HEADER_RANGE), f.n, &f.offset, &f.n)) {
        case DR__RANGE_ALL:
            break;
        case DR__RANGE_PART:
            f.is_part = true;
            break;
        case DR__RANGE_UNSATISFIED:
            instead = MHD_HTTP_RANGE_NOT_SATISFIABLE;
        }
    if (!instead)
        return send_file(call, &f);
    close(f.fd);
    return send_nothing(call, &f, instead);
}
#else
typedef int dr__http_no_file; /* an empty file is not C */
#endif
