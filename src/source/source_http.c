/* source_http.c: files of web servers: http://, https://.
 *
 * A directory is a URL whose listing the server makes (http_listing.h), or one with a manifest: index.txt or
 * manifest.jsonl, a list of the files below it, for servers and stores that list nothing.  What a URL has behind a '?'
 * goes to every request below it.  Credentials are "USER:PASSWORD", or else a bearer token. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "source/http_listing.h"
#include "source/url.h"
#include "source/web_object.h"

enum { MAX_LISTING = 1 << 30 };

static const char *const manifests[] = { "index.txt", "manifest.jsonl" };

struct dir {
    dr__source_dir head;
    char *url; /* without a slash at its end */
    dr__web_access *access;
    dr__web_memory memory;
    pthread_mutex_t lock;
    bool looked;             /* for a manifest; lock */
    dr__name_tree *manifest; /* NULL: none; never changes once it is there */
};

static dr_status no_memory(const char *name, dr_error *err)
{
    return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", name);
}

/* --- access --- */

static dr_status access_new(const char *name, const dr__source_options *options, dr__web_access **out, dr_error *err)
{
    dr__web_access *a = dr__alloc_zero(1, sizeof *a);
    if (!a)
        return no_memory(name, err);
    a->timeout_ns = options->timeout_ns;
    const char *credentials = options->credentials, *colon = credentials ? strchr(credentials, ':') : NULL;
    if (colon) {
        a->user = dr__strdup(credentials);
        a->password = dr__strdup(colon + 1);
        if (a->user)
            a->user[colon - credentials] = 0;
    } else if (credentials)
        a->token = dr__strdup(credentials);
    if (credentials && (colon ? !a->user || !a->password : !a->token)) {
        dr__web_access_free(a);
        return no_memory(name, err);
    }
    *out = a;
    return DR_OK;
}

/* --- URLs --- */

/* The URL of what is at `path` below `base`; the query of the base stays at the end. */
static char *url_below(const char *base, const char *path, bool slash_at_end)
{
    const size_t n = strcspn(base, "?#");
    dr__text url = { 0 };
    size_t begin = n;
    while (begin && base[begin - 1] == '/')
        begin--;
    dr__url_clean(&url, base, begin);
    if (*path) {
        dr__text_say(&url, "/");
        dr__url_encode(&url, path, strlen(path), false);
    }
    if (slash_at_end)
        dr__text_say(&url, "/");
    if (base[n] == '?')
        dr__url_clean(&url, base + n, strcspn(base + n, "#"));
    if (url.failed) {
        dr__free(url.text);
        return NULL;
    }
    return url.text;
}

/* The URL of an object, as the user gave it. */
static char *url_of(const char *name)
{
    dr__text url = { 0 };
    dr__url_clean(&url, name, strcspn(name, "#"));
    if (url.failed)
        dr__free(url.text);
    return url.failed ? NULL : url.text;
}

static bool has_scheme(const char *path)
{
    return !strncmp(path, "http://", 7) || !strncmp(path, "https://", 8);
}

/* Credentials are for the server that they were given for. */
static bool same_server(const char *a, const char *b)
{
    dr__url_parts x, y;
    return dr__url_split(a, &x) && dr__url_split(b, &y) && x.scheme_len == y.scheme_len && x.host_len == y.host_len &&
           !strncasecmp(x.scheme, y.scheme, x.scheme_len) && !strncasecmp(x.host, y.host, x.host_len);
}

/* How an object is reached: below a directory, or by a whole name, whose directory may be another, or none. */
struct place {
    char *url;
    dr__web_access *access, *own;
};

static dr_status find_place(struct dir *d, const char *path, struct place *out, dr_error *err)
{
    *out = (struct place){ 0 };
    const bool whole = !d || has_scheme(path);
    out->url = whole ? url_of(path) : url_below(d->url, path, false);
    if (!out->url)
        return no_memory(path, err);
    if (d && (!whole || same_server(d->url, path))) {
        out->access = d->access;
        return DR_OK;
    }
    dr__source_options options = *dr__source_assumed();
    if (d)
        options = (dr__source_options){ .timeout_ns = d->access->timeout_ns };
    const dr_status status = access_new(path, &options, &out->own, err);
    out->access = out->own;
    if (status != DR_OK)
        dr__free(out->url);
    return status;
}

static void leave_place(struct place *p)
{
    dr__free(p->url);
    dr__web_access_free(p->own);
}

static dr_status check_url(const char *name, dr_error *err)
{
    dr__url_parts parts;
    if (dr__url_split(name, &parts))
        return DR_OK;
    return dr__fail(err, DR_ERR_ARG, "%s: a URL must be http://HOST[:PORT]/PATH or https://HOST[:PORT]/PATH", name);
}

/* --- one object --- */

static dr_status open_object(const char *name, const dr__source_options *options, dr__source **out, dr_error *err)
{
    dr__web_access *access;
    DR_TRY(check_url(name, err));
    DR_TRY(access_new(name, options, &access, err));
    char *url = url_of(name);
    const dr_status status = url ? dr__web_source_new(access, url, NULL, out, err) : no_memory(name, err);
    if (status != DR_OK) {
        dr__free(url);
        dr__web_access_free(access);
    }
    return status;
}

/* --- a directory --- */

static void close_dir(dr__source_dir *dir)
{
    struct dir *d = (struct dir *)dir;
    dr__free(d->url);
    dr__web_access_free(d->access);
    dr__web_memory_free(&d->memory);
    pthread_mutex_destroy(&d->lock);
    if (d->manifest)
        dr__name_tree_free(d->manifest);
    dr__free(d->manifest);
}

static dr_status open_dir(const char *name, const dr__source_options *options, dr__source_dir **out, dr_error *err)
{
    DR_TRY(check_url(name, err));
    DR_TRY(dr__transfer_available(err));
    struct dir *d = dr__alloc_zero(1, sizeof *d);
    if (!d)
        return no_memory(name, err);
    dr__web_memory_init(&d->memory);
    pthread_mutex_init(&d->lock, NULL);
    dr_status status = access_new(name, options, &d->access, err);
    d->url = status == DR_OK ? url_below(name, "", false) : NULL;
    if (status == DR_OK && !d->url)
        status = no_memory(name, err);
    if (status != DR_OK) {
        close_dir(&d->head);
        dr__free(d);
        return status;
    }
    *out = &d->head;
    return DR_OK;
}

/* *version: 0, or what the object must have; then what it has. */
static dr_status read_object(struct dir *d, const char *path, uint64_t *version, uint64_t offset, uint64_t size,
                             dr__source_target *target, size_t *got, dr_error *err)
{
    struct place place;
    dr__transfer_reply *reply = dr__alloc(sizeof *reply);
    if (!reply)
        return no_memory(path, err);
    dr_status status = find_place(d, path, &place, err);
    if (status == DR_OK) {
        status = dr__web_read(place.access, place.url, NULL, "", offset, size, target, reply, err);
        const dr__source_facts facts = dr__web_facts(reply);
        if (status == DR_OK && *version && facts.version != *version)
            status = dr__fail(err, DR_ERR_STATE, "%s: was changed while the data set is open", place.url);
        if (status == DR_OK && d && facts.version)
            dr__web_memory_put(&d->memory, path, &facts);
        *version = facts.version;
        leave_place(&place);
    }
    *got = (size_t)reply->got;
    dr__free(reply);
    return status;
}

static dr_status get(dr__source_dir *dir, const char *path, dr__source_target *target, size_t *size, dr_error *err)
{
    uint64_t any = 0;
    return read_object((struct dir *)dir, path, &any, 0, 0, target, size, err);
}

static dr_status get_versioned(dr__source_dir *dir, const char *path, dr__source_target *target, size_t *size,
                               uint64_t *version, dr_error *err)
{
    *version = 0;
    return read_object((struct dir *)dir, path, version, 0, 0, target, size, err);
}

/* A range of no bytes is not one of HTTP, where it would mean the whole. */
static dr_status get_range(dr__source_dir *dir, const char *path, uint64_t version, uint64_t offset, size_t size,
                           dr__source_target *target, size_t *got, dr_error *err)
{
    dr_status status = DR_OK;
    *got = 0;
    if (!size)
        return target->reserve(target, 1, 0, &status, err) ? DR_OK : status;
    return read_object((struct dir *)dir, path, &version, offset, size, target, got, err);
}

/* --- facts --- */

static bool ends_with_slash(const char *url)
{
    const size_t n = strcspn(url, "?#");
    return n && url[n - 1] == '/';
}

/* A server that knows a directory leads from its name to the name with a slash. */
static bool leads_to_directory(const char *url, const dr__transfer_reply *reply)
{
    return ends_with_slash(url) || (reply->location[0] && ends_with_slash(reply->location));
}

static bool has_manifest(const dr__web_access *access, const char *url, dr__transfer_reply *reply)
{
    for (size_t i = 0; i < DR_COUNT(manifests); i++) {
        char *file = url_below(url, manifests[i], false);
        const bool found = file && dr__web_head(access, file, NULL, reply, NULL) == DR_OK;
        dr__free(file);
        if (found)
            return true;
    }
    return false;
}

/* Servers refuse to list a folder with the status of what nobody may read. */
static void add_hint(dr_error *err)
{
    const size_t n = err ? strlen(err->text) : 0;
    if (err)
        snprintf(err->text + n, sizeof err->text - n, "; there is no list of the files as index.txt either");
}

/* The facts of a URL.  name: it is one that a user gave, and may be a folder with a manifest. */
static dr_status facts_of(const struct place *p, bool name, dr__source_facts *facts, dr_error *err)
{
    dr__transfer_reply *reply = dr__alloc(sizeof *reply);
    if (!reply)
        return no_memory(p->url, err);
    dr_status status = dr__web_head(p->access, p->url, NULL, reply, err);
    *facts = dr__web_facts(reply);
    const bool directory = leads_to_directory(p->url, reply);
    if (directory)
        *facts = (dr__source_facts){ .kind = DR__SOURCE_DIR };
    const int http = reply->http;
    if (status != DR_OK && name && (http == 403 || http == 404)) {
        if (has_manifest(p->access, p->url, reply)) {
            *facts = (dr__source_facts){ .kind = DR__SOURCE_DIR };
            status = DR_OK;
        } else if (http == 403 && ends_with_slash(reply->location[0] ? reply->location : p->url)) {
            add_hint(err);
        }
    }
    dr__free(reply);
    return status;
}

static dr_status stat_path(dr__source_dir *dir, const char *path, dr__source_facts *facts, dr_error *err)
{
    struct dir *d = (struct dir *)dir;
    struct place place;
    if (d && dr__web_memory_get(&d->memory, path, facts))
        return DR_OK;
    DR_TRY(find_place(d, path, &place, err));
    const dr_status status = facts_of(&place, !d, facts, err);
    leave_place(&place);
    if (status == DR_OK && d && facts->version)
        dr__web_memory_put(&d->memory, path, facts);
    return status;
}

/* --- listing --- */

/* lock: reads the manifest, if there is one. */
static dr_status read_manifest(struct dir *d, dr__transfer_reply *reply, dr_error *err)
{
    dr_status status = DR_ERR_NOT_FOUND;
    for (size_t i = 0; i < DR_COUNT(manifests) && status == DR_ERR_NOT_FOUND; i++) {
        char *url = url_below(d->url, manifests[i], false), *text = NULL;
        size_t size;
        dr__name_tree *tree = dr__alloc_zero(1, sizeof *tree);
        status = url && tree ? dr__web_text(d->access, url, NULL, MAX_LISTING, &text, &size, reply, err)
                             : no_memory(d->head.name, err);
        if (status == DR_OK)
            status = dr__http_manifest(text, size, url, tree, err);
        if (status == DR_OK)
            d->manifest = tree;
        else if (tree) {
            dr__name_tree_free(tree);
            dr__free(tree);
        }
        dr__free(text);
        dr__free(url);
    }
    return status;
}

static dr_status find_manifest(struct dir *d, dr__transfer_reply *reply, dr_error *err)
{
    dr_status status = DR_OK;
    pthread_mutex_lock(&d->lock);
    if (!d->looked) {
        status = read_manifest(d, reply, err);
        d->looked = status == DR_OK || status == DR_ERR_NOT_FOUND;
    }
    pthread_mutex_unlock(&d->lock);
    return d->manifest ? DR_OK : status == DR_OK ? DR_ERR_NOT_FOUND : status;
}

static bool begins_with(const char *text, const char *what)
{
    return !strncasecmp(text, what, strlen(what));
}

/* False: the answer is no listing. */
static bool take_listing(struct dir *d, const char *url, const char *text, size_t size, const dr__transfer_reply *reply,
                         dr__source_lister *lister, dr_status *status, dr_error *err)
{
    dr__url_parts parts;
    dr__text base = { 0 };
    size_t n = 0;
    if (begins_with(reply->content_type, "application/json")) {
        *status = dr__http_listing_json(text, size, lister, &n, err);
        return *status != DR_ERR_FORMAT;
    }
    if (!begins_with(reply->content_type, "text/html") ||
        !dr__url_split(reply->location[0] ? reply->location : url, &parts))
        return false;
    dr__text_add(&base, parts.path, parts.path_len);
    *status =
        base.failed ? no_memory(d->head.name, err) : dr__http_listing_html(text, size, base.text, lister, &n, err);
    dr__free(base.text);
    return true;
}

static dr_status list_url(struct dir *d, const char *url, dr__source_lister *lister, dr__transfer_reply *reply,
                          bool *listed, dr_error *err)
{
    const dr__source_facts facts = { .kind = DR__SOURCE_DIR };
    char *text;
    size_t size;
    DR_TRY(dr__web_text(d->access, url, NULL, MAX_LISTING, &text, &size, reply, err));
    dr_status status = DR_OK;
    *listed = begins_with(reply->content_type, "text/html") || begins_with(reply->content_type, "application/json");
    if (*listed && (!lister->begin || lister->begin(lister, &facts)))
        *listed = take_listing(d, url, text, size, reply, lister, &status, err);
    dr__free(text);
    return status;
}

static dr_status list_with(struct dir *d, const char *path, const char *url, dr__source_lister *lister,
                           dr__transfer_reply *reply, dr_error *err)
{
    dr_error why = { 0 };
    bool listed = false;
    dr_status status = d->manifest ? DR_ERR_NOT_FOUND : list_url(d, url, lister, reply, &listed, &why);
    if (status == DR_OK && listed)
        return DR_OK;
    const int http = reply->http;
    const bool refused = status == DR_OK || status == DR_ERR_NOT_FOUND || http == 403 || http == 401;
    if (refused && find_manifest(d, reply, err) == DR_OK)
        return dr__name_tree_list(d->manifest, path, lister, err);
    if (status == DR_OK)
        return dr__fail(
            err, DR_ERR_UNSUPPORTED,
            "%s: the server lists no files there: switch its listings on (nginx: autoindex on), or put a list of "
            "the files there as index.txt",
            url);
    if (err)
        *err = why;
    if (status == DR_ERR_IO && http == 403)
        add_hint(err);
    return status;
}

static dr_status list(dr__source_dir *dir, const char *path, dr__source_lister *lister, dr_error *err)
{
    struct dir *d = (struct dir *)dir;
    char *url = url_below(d->url, path, true);
    dr__transfer_reply *reply = dr__alloc_zero(1, sizeof *reply);
    const dr_status status = url && reply ? list_with(d, path, url, lister, reply, err) : no_memory(dir->name, err);
    dr__free(url);
    dr__free(reply);
    return status;
}

#define HTTP_SOURCE(NAME)                                                                                              \
    {                                                                                                                  \
        .scheme = NAME, .summary = "files of web servers", .remote = true, .open = open_object,                        \
        .size = dr__web_source_size, .read_at = dr__web_source_read_at, .close = dr__web_source_close,                 \
        .open_dir = open_dir, .get = get, .get_versioned = get_versioned, .get_range = get_range, .stat = stat_path,   \
        .list = list, .close_dir = close_dir,                                                                          \
    }

const dr_source_def dr__source_http = HTTP_SOURCE("http");
const dr_source_def dr__source_https = HTTP_SOURCE("https");
