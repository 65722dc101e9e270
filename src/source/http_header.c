/* http_header.c: headers of an answer, one line at a time.  Nothing in them is trusted: what is malformed or too long
 * is as if it were not there. */
#include "source/http_header.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/compiler.h"

enum { MAX_RETRY_S = 86400 };

void dr__http_facts_clear(dr__http_facts *f)
{
    memset(f, 0, sizeof *f);
    f->range_total = f->length = UINT64_MAX;
}

/* Reads digits; false: there are none, or the number does not fit. */
static bool take_number(const char **at, const char *end, uint64_t *out)
{
    const char *p = *at;
    uint64_t v = 0;
    for (; p < end && *p >= '0' && *p <= '9'; p++) {
        const uint64_t digit = (uint64_t)(*p - '0');
        if (v > (UINT64_MAX - 1 - digit) / 10)
            return false;
        v = v * 10 + digit;
    }
    if (p == *at)
        return false;
    *at = p;
    *out = v;
    return true;
}

static bool whole_number(const char *text, size_t n, uint64_t *out)
{
    const char *at = text;
    return take_number(&at, text + n, out) && at == text + n;
}

/* Copies a value that fits; one that does not is left out, as half of it would mislead. */
static void copy(char *out, size_t cap, const char *text, size_t n)
{
    if (n >= cap)
        n = 0;
    memcpy(out, text, n);
    out[n] = 0;
}

/* "bytes 0-99/1234", "bytes 0-99/ *" or, of an answer 416, "bytes * /1234" (without the blanks). */
static void take_range(dr__http_facts *f, const char *text, size_t n)
{
    const char *at = text, *end = text + n;
    uint64_t first = 0, last = 0, total = UINT64_MAX;
    if (n < 7 || strncasecmp(text, "bytes ", 6))
        return;
    at += 6;
    const bool known = *at != '*';
    if (known && (!take_number(&at, end, &first) || at == end || *at++ != '-' || !take_number(&at, end, &last)))
        return;
    at += !known;
    if (at == end || *at++ != '/' || at == end)
        return;
    if (!(*at == '*' && at + 1 == end) && !whole_number(at, (size_t)(end - at), &total))
        return;
    if (known && (last < first || last >= total))
        return;
    f->has_range = known;
    f->first = first;
    f->last = last;
    f->range_total = total;
}

static void take_retry(dr__http_facts *f, const char *text, size_t n, int64_t now_s)
{
    uint64_t seconds;
    int64_t date;
    if (!whole_number(text, n, &seconds)) {
        if (!dr__http_date(text, n, &date))
            return;
        seconds = date > now_s ? (uint64_t)(date - now_s) : 0;
    }
    f->retry_ns = DR_MIN(seconds, MAX_RETRY_S) * UINT64_C(1000000000);
}

static void take_extra(dr__http_facts *f, const char *name, size_t name_len, const char *value, size_t n)
{
    const size_t used = strlen(f->extra);
    if (used + name_len + n + 4 > sizeof f->extra || memchr(value, 0, n))
        return;
    char *out = f->extra + used;
    for (size_t i = 0; i < name_len; i++)
        *out++ = (char)tolower((unsigned char)name[i]);
    *out++ = ':';
    *out++ = ' ';
    memcpy(out, value, n);
    out[n] = '\n';
    out[n + 1] = 0;
}

static bool is(const char *name, size_t n, const char *what)
{
    return strlen(what) == n && !strncasecmp(name, what, n);
}

static void take_field(dr__http_facts *f, const char *name, size_t name_len, const char *value, size_t n, int64_t now_s)
{
    uint64_t number;
    int64_t date;
    if (is(name, name_len, "etag"))
        copy(f->etag, sizeof f->etag, value, n);
    else if (is(name, name_len, "content-type"))
        copy(f->content_type, sizeof f->content_type, value, n);
    else if (is(name, name_len, "location"))
        copy(f->location, sizeof f->location, value, n);
    else if (is(name, name_len, "content-range"))
        take_range(f, value, n);
    else if (is(name, name_len, "content-length") && whole_number(value, n, &number))
        f->length = number;
    else if (is(name, name_len, "last-modified") && dr__http_date(value, n, &date))
        f->mtime_s = date;
    else if (is(name, name_len, "retry-after"))
        take_retry(f, value, n, now_s);
    else if (name_len > 2 && !strncasecmp(name, "x-", 2))
        take_extra(f, name, name_len, value, n);
}

/* "HTTP/1.1 206 Partial Content", "HTTP/2 206". */
static void take_status(dr__http_facts *f, const char *line, size_t n)
{
    const char *space = memchr(line, ' ', n), *end = line + n;
    uint64_t status;
    dr__http_facts_clear(f);
    if (!space)
        return;
    const char *at = space + 1;
    if (take_number(&at, end, &status) && status < 1000)
        f->status = (int)status;
}

void dr__http_facts_line(dr__http_facts *f, const char *line, size_t n, int64_t now_s)
{
    while (n && (line[n - 1] == '\n' || line[n - 1] == '\r' || line[n - 1] == ' ' || line[n - 1] == '\t'))
        n--;
    if (n > 5 && !strncasecmp(line, "HTTP/", 5)) {
        take_status(f, line, n);
        return;
    }
    const char *colon = n ? memchr(line, ':', n) : NULL;
    if (!colon)
        return;
    const char *value = colon + 1, *end = line + n;
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    take_field(f, line, (size_t)(colon - line), value, (size_t)(end - value), now_s);
}

static int month_of(const char *text)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    for (int i = 0; i < 12; i++)
        if (!memcmp(months + (ptrdiff_t)i * 3, text, 3))
            return i;
    return -1;
}

static bool two_digits(const char *text, int max, int *out)
{
    if (text[0] < '0' || text[0] > '9' || text[1] < '0' || text[1] > '9')
        return false;
    *out = (text[0] - '0') * 10 + text[1] - '0';
    return *out <= max;
}

/* Only the form that servers must send; a column of it is wrong if a character is. */
bool dr__http_date(const char *text, size_t n, int64_t *out)
{
    static const char form[] = "aaa, 00 aaa 0000 00:00:00 GMT";
    struct tm t = { 0 };
    int century, year;
    if (n != sizeof form - 1)
        return false;
    for (size_t i = 0; i < n; i++)
        if (form[i] != 'a' && form[i] != '0' && form[i] != text[i])
            return false;
    t.tm_mon = month_of(text + 8);
    if (t.tm_mon < 0 || !two_digits(text + 5, 31, &t.tm_mday) || !two_digits(text + 12, 99, &century) ||
        !two_digits(text + 14, 99, &year) || !two_digits(text + 17, 23, &t.tm_hour) ||
        !two_digits(text + 20, 59, &t.tm_min) || !two_digits(text + 23, 60, &t.tm_sec))
        return false;
    t.tm_year = century * 100 + year - 1900;
    *out = (int64_t)timegm(&t);
    return true;
}

bool dr__http_extra(const char *extra, const char *name, char *text, size_t size)
{
    const size_t n = strlen(name);
    for (const char *line = extra; *line;) {
        const char *end = strchr(line, '\n');
        const size_t len = end ? (size_t)(end - line) : strlen(line);
        if (len >= n + 2 && !memcmp(line, name, n) && line[n] == ':') {
            if (len - n - 2 >= size)
                return false;
            memcpy(text, line + n + 2, len - n - 2);
            text[len - n - 2] = 0;
            return true;
        }
        line += len + (end != NULL);
    }
    return false;
}
