/* braces.c: brace expansion and file patterns. */
#include "format/braces.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "source/source.h"

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

/* --- shell patterns --- */

enum { MAX_PATTERN = 4096 };

/* A directory whose entries are matched against one component of a pattern. */
struct matcher {
    dr__source_lister lister;
    const char *component; /* terminated */
    bool only_dirs;
    dr__names found;
};

static dr_status match_entry(dr__source_lister *lister, const dr__source_entry *entry, dr_error *err)
{
    struct matcher *m = (struct matcher *)lister;
    if ((m->only_dirs && !entry->is_dir) || fnmatch(m->component, entry->name, FNM_PERIOD))
        return DR_OK;
    return add(entry->name, &m->found, err);
}

static bool is_there(const char *path)
{
    dr__source_facts facts;
    return dr__source_stat(path, &facts, NULL) == DR_OK;
}

/* The length of the components at the start of a pattern that have no wildcard, slashes included. */
static size_t literal_length(const char *pattern)
{
    const size_t n = strcspn(pattern, "*?[");
    if (!pattern[n])
        return n;
    const char *slash = memrchr(pattern, '/', n);
    return slash ? (size_t)(slash - pattern) + 1 : 0;
}

/* Names in folder `path` that match the first component of a pattern. */
static dr_status match_component(const char *path, const char *pattern, size_t len, dr__names *out, dr_error *err)
{
    char *component = dr__alloc(len + 1);
    if (!component)
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", path);
    memcpy(component, pattern, len);
    component[len] = 0;
    struct matcher m = { .lister = { .take = match_entry }, .component = component, .only_dirs = pattern[len] };
    dr__source_dir *dir;
    dr_status status = dr__source_dir_open(*path ? path : ".", NULL, &dir, err);
    if (status == DR_OK)
        status = dr__source_dir_list(dir, "", &m.lister, err);
    dr__source_dir_close(&dir);
    dr__free(component);
    *out = m.found;
    /* a folder that cannot be listed has no matches, as in a shell */
    return status == DR_ERR_IO || status == DR_ERR_NOT_FOUND ? DR_OK : status;
}

/* Adds the paths that begin with `path`, which has `len` bytes, and go on as the pattern. */
static dr_status match(char path[MAX_PATTERN], size_t len, const char *pattern, dr__names *out, dr_error *err)
{
    const size_t literal = literal_length(pattern), n = strcspn(pattern + literal, "/");
    if (len + literal >= MAX_PATTERN)
        return DR_OK; /* no such file can be opened */
    memcpy(path + len, pattern, literal);
    path[len += literal] = 0;
    pattern += literal;
    if (!*pattern)
        return is_there(path) ? add(path, out, err) : DR_OK;
    dr__names found = { 0 };
    dr_status status = match_component(path, pattern, n, &found, err);
    for (size_t i = 0; i < found.n && status == DR_OK; i++) {
        const size_t name_len = dr__names_len(&found, i);
        if (len + name_len >= MAX_PATTERN)
            continue;
        memcpy(path + len, dr__names_get(&found, i), name_len + 1);
        status = pattern[n] ? match(path, len + name_len, pattern + n, out, err) : add(path, out, err);
    }
    dr__names_free(&found);
    return status;
}

static dr_status add_matches(const char *pattern, dr__names *out, dr_error *err)
{
    char path[MAX_PATTERN] = "";
    dr__names found = { 0 };
    dr_status status = match(path, 0, pattern, &found, err);
    if (status == DR_OK && !found.n)
        status = dr__fail(err, DR_ERR_NOT_FOUND, "%s: no file matches", pattern);
    const char **paths = status == DR_OK ? dr__realloc(NULL, found.n, sizeof *paths) : NULL;
    for (size_t i = 0; paths && i < found.n; i++)
        paths[i] = dr__names_get(&found, i);
    if (status == DR_OK && (!paths || !dr__names_sort(paths, found.n)))
        status = dr__fail(err, DR_ERR_NOMEM, "out of memory");
    for (size_t i = 0; status == DR_OK && i < found.n; i++)
        status = add(paths[i], out, err);
    dr__free(paths);
    dr__names_free(&found);
    return status;
}

dr_status dr__expand_paths(const char *text, dr__names *out, dr_error *err)
{
    dr__names patterns = { 0 };
    if (is_there(text))
        return add(text, out, err);
    dr_status status = dr__braces(text, &patterns, err);
    for (size_t i = 0; i < patterns.n && status == DR_OK; i++) {
        const char *p = dr__names_get(&patterns, i);
        bool plain = !strpbrk(p, "*?[") || is_there(p);
        status = plain ? add(p, out, err) : add_matches(p, out, err);
    }
    dr__names_free(&patterns);
    return status;
}
