/* http_header.h: what the headers of an HTTP answer say about an object. */
#ifndef DR_SOURCE_HTTP_HEADER_H
#define DR_SOURCE_HTTP_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct dr__http_facts {
    int status;           /* of the answer; 0: not known yet */
    bool has_range;       /* a Content-Range with first and last byte */
    uint64_t first, last; /* of it */
    uint64_t range_total; /* of it; UINT64_MAX: not known */
    uint64_t length;      /* Content-Length; UINT64_MAX: not known */
    uint64_t retry_ns;    /* Retry-After; 0: none */
    int64_t mtime_s;      /* Last-Modified; 0: none */
    char etag[256];       /* with quotes, and W/ where it is weak; "": none, or too long */
    char content_type[128];
    char location[512];
    char extra[2048]; /* headers that begin with "x-": "name: value\n", names in lower case */
} dr__http_facts;

void dr__http_facts_clear(dr__http_facts *facts);

/* Takes a line of the answer's header, with or without its line end.  A status line clears what was there: the answer
 * before it was a redirect or a 100.  now_s: the time since 1970, for a Retry-After that is a date. */
void dr__http_facts_line(dr__http_facts *facts, const char *line, size_t size, int64_t now_s);

/* A date as HTTP has it ("Sun, 06 Nov 1994 08:49:37 GMT"), as seconds since 1970. */
bool dr__http_date(const char *text, size_t size, int64_t *out);

/* The value of header `name` (lower case) in a text as `extra` above. */
bool dr__http_extra(const char *extra, const char *name, char *text, size_t size);

#endif
