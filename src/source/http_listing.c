/* http_listing.c: listings of folders.  Nothing in them is trusted: a name that is not a single component is left out,
 * and so cannot lead out of the folder. */
#include "source/http_listing.h"

#include <jansson.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "source/url.h"

static bool is_component(const char *name, size_t n)
{
    return n && !memchr(name, '/', n) && !memchr(name, 0, n) && !(n == 1 && name[0] == '.') &&
           !(n == 2 && name[0] == '.' && name[1] == '.');
}

/* --- HTML --- */

/* The references that servers make in links; in place, as the result is never longer. */
static size_t decode_references(char *text, size_t n)
{
    static const struct {
        const char *name;
        char c;
    } known[] = { { "&amp;", '&' },  { "&lt;", '<' },    { "&gt;", '>' },  { "&quot;", '"' },
                  { "&#39;", '\'' }, { "&#x27;", '\'' }, { "&#34;", '"' }, { "&apos;", '\'' } };
    size_t out = 0;
    for (size_t i = 0; i < n;) {
        size_t used = 0;
        for (size_t k = 0; text[i] == '&' && !used && k < DR_COUNT(known); k++) {
            const size_t len = strlen(known[k].name);
            if (len <= n - i && !memcmp(text + i, known[k].name, len)) {
                text[out++] = known[k].c;
                used = len;
            }
        }
        if (!used) {
            text[out++] = text[i];
            used = 1;
        }
        i += used;
    }
    return out;
}

/* A link's target, which is changed. */
static dr_status take_link(char *link, size_t n, const char *base, dr__source_lister *lister, size_t *count,
                           dr_error *err)
{
    const size_t base_len = strlen(base);
    n = decode_references(link, n);
    const char *end = memchr(link, '#', n);
    if (memchr(link, '?', n)) /* the columns' links that sort */
        return DR_OK;
    n = end ? (size_t)(end - link) : n;
    if (n > base_len && link[0] == '/' && !memcmp(link, base, base_len)) {
        link += base_len;
        n -= base_len;
    }
    if (n > 2 && link[0] == '.' && link[1] == '/') {
        link += 2;
        n -= 2;
    }
    if (memchr(link, ':', n)) /* "javascript:"; servers encode a name's colon */
        return DR_OK;
    const bool is_dir = n && link[n - 1] == '/';
    n -= is_dir;
    if (memchr(link, '/', n))
        return DR_OK;
    n = dr__url_decode(link, n);
    if (!is_component(link, n))
        return DR_OK;
    link[n] = 0;
    ++*count;
    return lister->take(lister, &(dr__source_entry){ .name = link, .is_dir = is_dir }, err);
}

/* The next link's target in *at..end: moves *at behind it.  NULL: there is none. */
static const char *next_link(const char **at, const char *end, size_t *n)
{
    for (const char *p = *at; (size_t)(end - p) > 5; p++) {
        if (*p != 'h' && *p != 'H')
            continue;
        if (strncasecmp(p, "href=", 5))
            continue;
        p += 5;
        const char quote = *p == '"' || *p == '\'' ? *p : 0;
        p += quote != 0;
        const char *stop = p;
        while (stop < end && (quote ? *stop != quote : *stop != '>' && *stop != ' '))
            stop++;
        *at = stop;
        if (stop == end)
            return NULL;
        *n = (size_t)(stop - p);
        return p;
    }
    *at = end;
    return NULL;
}

dr_status dr__http_listing_html(const char *text, size_t size, const char *base, dr__source_lister *lister, size_t *n,
                                dr_error *err)
{
    const char *at = text, *end = text + size, *link;
    char *copy = NULL;
    size_t len, cap = 0;
    dr_status status = DR_OK;
    *n = 0;
    while (status == DR_OK && (link = next_link(&at, end, &len))) {
        char *grown = dr__grow(copy, &cap, len + 1, 1);
        if (!grown) {
            status = dr__fail(err, DR_ERR_NOMEM, "out of memory for a listing");
            break;
        }
        copy = grown;
        memcpy(copy, link, len);
        copy[len] = 0;
        status = take_link(copy, len, base, lister, n, err);
    }
    dr__free(copy);
    return status == DR_END ? DR_OK : status;
}

/* --- JSON --- */

dr_status dr__http_listing_json(const char *text, size_t size, dr__source_lister *lister, size_t *n, dr_error *err)
{
    json_error_t problem;
    json_t *list = json_loadb(text, size, 0, &problem), *item;
    dr_status status = DR_OK;
    size_t i;
    *n = 0;
    if (!json_is_array(list)) {
        json_decref(list);
        return dr__fail(err, DR_ERR_FORMAT, "not a listing: %s", list ? "no array" : problem.text);
    }
    json_array_foreach(list, i, item)
    {
        const json_t *name = json_object_get(item, "name");
        const char *kind = json_string_value(json_object_get(item, "type"));
        if (status != DR_OK || !json_is_string(name) ||
            !is_component(json_string_value(name), json_string_length(name)))
            continue;
        const bool is_dir = kind && !strcmp(kind, "directory");
        ++*n;
        status = lister->take(lister, &(dr__source_entry){ .name = json_string_value(name), .is_dir = is_dir }, err);
    }
    json_decref(list);
    return status == DR_END ? DR_OK : status;
}

/* --- manifests --- */

static dr_status take_json_line(const char *line, size_t n, const char *name, size_t number, dr__name_tree *out,
                                dr_error *err)
{
    json_t *object = json_loadb(line, n, 0, NULL);
    const json_t *path = json_object_get(object, "path");
    const bool good = json_is_string(path) && dr__name_tree_add(out, json_string_value(path), json_string_length(path));
    json_decref(object);
    if (good || out->block.failed)
        return DR_OK;
    return dr__fail(err, DR_ERR_FORMAT, "%s: line %zu: must be a JSON object with a relative \"path\", got %.*s", name,
                    number, (int)DR_MIN(n, 100), line);
}

dr_status dr__http_manifest(const char *text, size_t size, const char *name, dr__name_tree *out, dr_error *err)
{
    const char *end = text + size;
    size_t number = 1;
    for (const char *line = text; line < end; number++) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t n = (size_t)((stop ? stop : end) - line);
        n -= n && line[n - 1] == '\r';
        if (n && line[0] == '{')
            DR_TRY(take_json_line(line, n, name, number, out, err));
        else if (n && !dr__name_tree_add(out, line, n) && !out->block.failed)
            return dr__fail(err, DR_ERR_FORMAT, "%s: line %zu: must be a path below the folder, got %.*s", name, number,
                            (int)DR_MIN(n, 100), line);
        line = stop ? stop + 1 : end;
    }
    if (out->block.failed)
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", name);
    dr__name_tree_finish(out);
    return DR_OK;
}
