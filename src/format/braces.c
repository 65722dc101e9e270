/* braces.c: brace expansion and file patterns. */
#include "format/braces.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

enum { MAX_TEXT = 4096, MAX_RESULTS = 1 << 20, MAX_DEPTH = 16 };

static dr_status expand(const char *text, int depth, dr__names *out, dr_error *err);

static dr_status add(const char *text, dr__names *out, dr_error *err)
{
    if (out->n == MAX_RESULTS)
        return dr__fail(err, DR_ERR_LIMIT, "%.200s: expands to more than %d names", text, MAX_RESULTS);
    return dr__names_add(out, text, strlen(text)) ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "out of memory for names");
}

/* The closing brace of the one at *open, or NULL; sets *commas to whether it holds commas of its own. */
static const char *closing(const char *open, bool *commas)
{
    int level = 0;
    *commas = false;
    for (const char *p = open; *p; p++) {
        level += *p == '{';
        *commas = *commas || (*p == ',' && level == 1);
        if (*p == '}' && !--level)
            return p;
    }
    return NULL;
}

/* The text with its brace replaced by `len` bytes of `part`, expanded further. */
static dr_status put(const char *text, const char *open, const char *part, size_t len, const char *close, int depth,
                     dr__names *out, dr_error *err)
{
    char next[MAX_TEXT];
    size_t before = (size_t)(open - text), after = strlen(close + 1);
    if (before + len + after >= sizeof next)
        return dr__fail(err, DR_ERR_LIMIT, "%.200s...: longer than %d bytes", text, MAX_TEXT);
    memcpy(next, text, before);
    memcpy(next + before, part, len);
    memcpy(next + before + len, close + 1, after + 1);
    return expand(next, depth + 1, out, err);
}

static dr_status list(const char *text, const char *open, const char *close, int depth, dr__names *out, dr_error *err)
{
    const char *start = open + 1;
    int level = 0;
    for (const char *p = start; p <= close; p++) {
        if (p == close || (*p == ',' && !level)) {
            DR_TRY(put(text, open, start, (size_t)(p - start), close, depth, out, err));
            start = p + 1;
        }
        level += (*p == '{') - (*p == '}');
    }
    return DR_OK;
}

struct range {
    long long from, to, step;
    int width; /* 0: not padded */
};

static int padded_width(const char *number, const char *end)
{
    const char *digits = number + (*number == '-');
    return digits[0] == '0' && end - digits > 1 ? (int)(end - number) : 0;
}

/* "000..099" or "0..10..2" between the braces. */
static bool parse_range(const char *p, const char *close, struct range *r)
{
    char *end;
    r->from = strtoll(p, &end, 10);
    if (end == p || strncmp(end, "..", 2))
        return false;
    int width = padded_width(p, end);
    p = end + 2;
    r->to = strtoll(p, &end, 10);
    if (end == p)
        return false;
    r->width = padded_width(p, end);
    r->width = width > r->width ? width : r->width;
    r->step = 1;
    if (!strncmp(end, "..", 2)) {
        p = end + 2;
        r->step = strtoll(p, &end, 10);
        if (end == p)
            return false;
    }
    r->step = r->step < 0 ? -r->step : r->step ? r->step : 1;
    const long long far = 1LL << 60;
    return end == close && r->from > -far && r->from < far && r->to > -far && r->to < far && r->step < far;
}

static dr_status numbers(const char *text, const char *open, const char *close, const struct range *r, int depth,
                         dr__names *out, dr_error *err)
{
    char number[64];
    long long span = r->from < r->to ? r->to - r->from : r->from - r->to;
    if (span / r->step >= MAX_RESULTS)
        return dr__fail(err, DR_ERR_LIMIT, "%.200s: expands to more than %d names", text, MAX_RESULTS);
    for (long long i = 0; i <= span / r->step; i++) {
        long long v = r->from < r->to ? r->from + i * r->step : r->from - i * r->step;
        int n = snprintf(number, sizeof number, "%0*lld", r->width < 40 ? r->width : 40, v);
        DR_TRY(put(text, open, number, (size_t)n, close, depth, out, err));
    }
    return DR_OK;
}

static dr_status expand(const char *text, int depth, dr__names *out, dr_error *err)
{
    bool commas;
    struct range r;
    if (depth > MAX_DEPTH)
        return dr__fail(err, DR_ERR_LIMIT, "%.200s: more than %d braces", text, MAX_DEPTH);
    for (const char *open = strchr(text, '{'); open; open = strchr(open + 1, '{')) {
        const char *close = closing(open, &commas);
        if (close && commas)
            return list(text, open, close, depth, out, err);
        if (close && parse_range(open + 1, close, &r))
            return numbers(text, open, close, &r, depth, out, err);
    }
    return add(text, out, err);
}

dr_status dr__braces(const char *text, dr__names *out, dr_error *err)
{
    return expand(text, 0, out, err);
}

static dr_status add_matches(const char *pattern, dr__names *out, dr_error *err)
{
    glob_t found = { 0 };
    int code = glob(pattern, GLOB_NOSORT, NULL, &found);
    if (code == GLOB_NOMATCH)
        return dr__fail(err, DR_ERR_NOT_FOUND, "%s: no file matches", pattern);
    if (code)
        return dr__fail(err, code == GLOB_NOSPACE ? DR_ERR_NOMEM : DR_ERR_IO, "%s: cannot look for files", pattern);
    const char **paths = (const char **)found.gl_pathv;
    dr_status status = dr__names_sort(paths, found.gl_pathc) ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "out of memory");
    for (size_t i = 0; i < found.gl_pathc && status == DR_OK; i++)
        status = add(paths[i], out, err);
    globfree(&found);
    return status;
}

dr_status dr__expand_paths(const char *text, dr__names *out, dr_error *err)
{
    dr__names patterns = { 0 };
    if (!access(text, F_OK))
        return add(text, out, err);
    dr_status status = dr__braces(text, &patterns, err);
    for (size_t i = 0; i < patterns.n && status == DR_OK; i++) {
        const char *p = dr__names_get(&patterns, i);
        bool plain = !strpbrk(p, "*?[") || !access(p, F_OK);
        status = plain ? add(p, out, err) : add_matches(p, out, err);
    }
    dr__names_free(&patterns);
    return status;
}
