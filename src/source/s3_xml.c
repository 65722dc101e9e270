/* s3_xml.c: a scanner for the XML of S3, which is flat and has no attributes that matter.
 *
 * It goes from tag to tag.  The text before an end tag is the value of that element, if no other tag is between. */
#include "source/s3_xml.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"

/* A tag, and the text since the one before it. */
struct tag {
    const char *name, *text;
    size_t name_len, text_len;
    bool ends;
};

/* Moves *at behind the next tag.  False: there is none. */
static bool next_tag(const char **at, const char *end, struct tag *t)
{
    const char *open = memchr(*at, '<', (size_t)(end - *at));
    const char *close = open ? memchr(open, '>', (size_t)(end - open)) : NULL;
    if (!close)
        return false;
    t->text = *at;
    t->text_len = (size_t)(open - *at);
    t->ends = open[1] == '/';
    t->name = open + 1 + t->ends;
    t->name_len = 0;
    while (t->name + t->name_len < close && !strchr(" \t\r\n/", t->name[t->name_len]))
        t->name_len++;
    *at = close + 1;
    return true;
}

static bool is(const struct tag *t, const char *name)
{
    return strlen(name) == t->name_len && !memcmp(t->name, name, t->name_len);
}

static void add_utf8(dr__text *out, unsigned long c)
{
    char b[4];
    size_t n = 0;
    if (c < 0x80)
        b[n++] = (char)c;
    else if (c < 0x800) {
        b[n++] = (char)(0xC0 | c >> 6);
    } else if (c < 0x10000) {
        b[n++] = (char)(0xE0 | c >> 12);
        b[n++] = (char)(0x80 | (c >> 6 & 0x3F));
    } else {
        b[n++] = (char)(0xF0 | c >> 18);
        b[n++] = (char)(0x80 | (c >> 12 & 0x3F));
        b[n++] = (char)(0x80 | (c >> 6 & 0x3F));
    }
    if (c >= 0x80)
        b[n++] = (char)(0x80 | (c & 0x3F));
    dr__text_add(out, b, n);
}

/* A reference ("&amp;", "&#34;", "&#x22;") at text; returns its length, 0 where it is none. */
static size_t add_reference(dr__text *out, const char *text, size_t n)
{
    static const struct {
        const char *name;
        char c;
    } known[] = { { "&amp;", '&' }, { "&lt;", '<' }, { "&gt;", '>' }, { "&quot;", '"' }, { "&apos;", '\'' } };
    const char *end = memchr(text, ';', DR_MIN(n, 12));
    if (!end)
        return 0;
    const size_t len = (size_t)(end - text) + 1;
    for (size_t i = 0; i < DR_COUNT(known); i++)
        if (strlen(known[i].name) == len && !memcmp(text, known[i].name, len)) {
            dr__text_add(out, &known[i].c, 1);
            return len;
        }
    if (len < 4 || text[1] != '#')
        return 0;
    char digits[16], *stop;
    const bool hex = text[2] == 'x';
    memcpy(digits, text + 2 + hex, len - 3 - hex);
    digits[len - 3 - hex] = 0;
    const unsigned long c = strtoul(digits, &stop, hex ? 16 : 10);
    if (*stop || stop == digits || c == 0 || c > 0x10FFFF)
        return 0;
    add_utf8(out, c);
    return len;
}

static void decode(dr__text *out, const char *text, size_t n)
{
    out->n = 0;
    dr__text_add(out, "", 0);
    for (size_t i = 0; i < n;) {
        const size_t used = text[i] == '&' ? add_reference(out, text + i, n - i) : 0;
        if (!used)
            dr__text_add(out, text + i, 1);
        i += used ? used : 1;
    }
}

struct scan {
    dr__s3_page *page;
    dr__text key, etag, other;
    uint64_t size;
    bool in_contents, in_prefixes, opened, closed;
};

static uint64_t size_of(const char *text)
{
    char *stop;
    const unsigned long long v = strtoull(text, &stop, 10);
    return *text >= '0' && *text <= '9' && !*stop ? v : UINT64_MAX;
}

static dr_status entry(struct scan *s, bool is_prefix, dr_error *err)
{
    if (!s->key.n)
        return DR_OK;
    if (strlen(s->key.text) != s->key.n)
        return dr__fail(err, DR_ERR_FORMAT, "a key has a zero byte");
    const dr__s3_entry e = {
        .key = s->key.text, .etag = s->etag.n ? s->etag.text : "", .size = s->size, .is_prefix = is_prefix
    };
    return s->page->take(s->page->user, &e, err);
}

static void begin_element(struct scan *s, const struct tag *t)
{
    s->opened |= is(t, "ListBucketResult");
    if (is(t, "Contents") || is(t, "CommonPrefixes")) {
        s->in_contents = is(t, "Contents");
        s->in_prefixes = !s->in_contents;
        s->key.n = s->etag.n = 0;
        s->size = UINT64_MAX;
    }
}

static dr_status end_element(struct scan *s, const struct tag *t, dr_error *err)
{
    if (is(t, "ListBucketResult"))
        s->closed = true;
    else if ((s->in_contents && is(t, "Key")) || (s->in_prefixes && is(t, "Prefix")))
        decode(&s->key, t->text, t->text_len);
    else if (s->in_contents && is(t, "ETag"))
        decode(&s->etag, t->text, t->text_len);
    else if (s->in_contents && is(t, "Size")) {
        decode(&s->other, t->text, t->text_len);
        s->size = s->other.failed ? UINT64_MAX : size_of(s->other.text);
    } else if (is(t, "NextContinuationToken"))
        decode(&s->page->next, t->text, t->text_len);
    else if (is(t, "IsTruncated"))
        s->page->truncated = t->text_len == 4 && !memcmp(t->text, "true", 4);
    else if (is(t, "Contents") || is(t, "CommonPrefixes")) {
        const bool was_prefix = s->in_prefixes;
        s->in_contents = s->in_prefixes = false;
        return s->key.failed || s->etag.failed ? dr__fail(err, DR_ERR_NOMEM, "out of memory for a listing")
                                               : entry(s, was_prefix, err);
    }
    return DR_OK;
}

dr_status dr__s3_list_parse(const char *text, size_t size, dr__s3_page *page, dr_error *err)
{
    struct scan s = { .page = page };
    const char *at = text, *end = text + size;
    struct tag t;
    dr_status status = DR_OK;
    page->truncated = false;
    page->next.n = 0;
    while (status == DR_OK && next_tag(&at, end, &t)) {
        if (t.ends)
            status = end_element(&s, &t, err);
        else
            begin_element(&s, &t);
    }
    dr__free(s.key.text);
    dr__free(s.etag.text);
    dr__free(s.other.text);
    if (status == DR_OK && page->next.failed)
        return dr__fail(err, DR_ERR_NOMEM, "out of memory for a listing");
    if (status == DR_OK && (!s.opened || !s.closed))
        return dr__fail(err, DR_ERR_FORMAT, s.opened ? "the listing ends early" : "not a listing of S3");
    return status;
}

bool dr__s3_element(const char *text, size_t size, const char *name, char *out, size_t room)
{
    const char *at = text;
    struct tag t;
    bool begun = false;
    while (next_tag(&at, text + size, &t)) {
        if (begun && t.ends && is(&t, name)) {
            dr__text value = { 0 };
            decode(&value, t.text, t.text_len);
            const bool fits = !value.failed && value.n < room && strlen(value.text) == value.n;
            if (fits)
                memcpy(out, value.text, value.n + 1);
            dr__free(value.text);
            return fits;
        }
        begun = !t.ends && is(&t, name);
    }
    return false;
}
