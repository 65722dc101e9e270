/* source_s3.c: objects of S3 and of stores that speak its protocol: s3://BUCKET/KEY.
 *
 * Requests are signed by libcurl (AWS Signature Version 4).  Queries are made in the canonical form, as older libraries
 * sign them as they are.  A directory is a prefix; what lies below it is listed level by level, and the listing's
 * entity tags are remembered, so that no request is needed to know an object's version. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "source/aws_config.h"
#include "source/s3_xml.h"
#include "source/url.h"
#include "source/web_object.h"

enum { MAX_PAGE = 64 << 20, MAX_BUCKET = 255 };

#define EMPTY_HASH "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

/* A bucket and how it is reached. */
struct bucket {
    char name[MAX_BUCKET + 1];
    char *url; /* without a slash at its end */
    dr__web_access *access;
};

struct dir {
    dr__source_dir head;
    struct bucket bucket;
    char *prefix; /* "", or with a slash at its end */
    char *credentials;
    dr__web_memory memory;
};

static dr_status no_memory(const char *name, dr_error *err)
{
    return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", name);
}

/* --- errors --- */

/* Puts the code of an error into words that say what to do. */
static dr_status explain(const dr__transfer_reply *r, const char *name, dr_status status, dr_error *err)
{
    static const struct {
        const char *code, *text;
    } codes[] = {
        { "NoSuchKey", "no such object" },
        { "NoSuchBucket", "no such bucket" },
        { "AccessDenied", "access denied: the credentials do not allow it" },
        { "InvalidAccessKeyId", "the access key is not known to the server" },
        { "SignatureDoesNotMatch", "the secret key is wrong" },
        { "ExpiredToken", "the session token has expired: get a new one" },
        { "InvalidToken", "the session token is not valid" },
        { "TokenRefreshRequired", "the session token has expired: get a new one" },
        { "RequestTimeTooSkewed", "this machine's clock differs too much from the server's" },
        { "InvalidObjectState", "the object is archived: restore it first" },
    };
    char code[64] = "", region[64] = "", message[300] = "";
    if (r->http == 412) /* the object has changed: that is said already */
        return status;
    dr__s3_element(r->said, strlen(r->said), "Code", code, sizeof code);
    dr__s3_element(r->said, strlen(r->said), "Message", message, sizeof message);
    if (!dr__transfer_header(r, "x-amz-bucket-region", region, sizeof region) || r->http != 301)
        dr__s3_element(r->said, strlen(r->said), "Region", region, sizeof region);
    if (r->http == 301 || !strcmp(code, "PermanentRedirect") || !strcmp(code, "AuthorizationHeaderMalformed") ||
        !strcmp(code, "IllegalLocationConstraintException"))
        return dr__fail(err, status, "%s: the bucket is in another region%s%s: set AWS_REGION (HTTP %d%s%s)", name,
                        *region ? ": " : "", region, r->http, *code ? " " : "", code);
    for (size_t i = 0; i < DR_COUNT(codes); i++)
        if (!strcmp(codes[i].code, code))
            return dr__fail(err, status, "%s: %s (HTTP %d %s)", name, codes[i].text, r->http, code);
    if (*code)
        return dr__fail(err, status, "%s: HTTP %d %s: %s", name, r->http, code, message);
    return status;
}

/* --- names --- */

/* Takes "s3://BUCKET/KEY" apart. */
static dr_status split(const char *name, char bucket[MAX_BUCKET + 1], const char **key, dr_error *err)
{
    const char *begin = name + strlen("s3://");
    const size_t n = strcspn(begin, "/");
    bool good = n && n <= MAX_BUCKET;
    for (size_t i = 0; good && i < n; i++)
        good = (begin[i] >= 'a' && begin[i] <= 'z') || (begin[i] >= 'A' && begin[i] <= 'Z') ||
               (begin[i] >= '0' && begin[i] <= '9') || strchr("-._", begin[i]);
    if (!good)
        return dr__fail(err, DR_ERR_ARG, "%s: must be s3://BUCKET/KEY with a bucket of letters, digits and -._", name);
    memcpy(bucket, begin, n);
    bucket[n] = 0;
    *key = begin[n] ? begin + n + 1 : "";
    return DR_OK;
}

static bool is_dns_name(const char *bucket)
{
    for (const char *c = bucket; *c; c++)
        if (*c == '.' || *c == '_' || (*c >= 'A' && *c <= 'Z'))
            return false; /* dots would not fit the certificate */
    return true;
}

static bool bucket_url(const char *bucket, const dr__aws_config *c, dr__text *url)
{
    const bool in_host = !c->path_style && is_dns_name(bucket) && (!c->endpoint || c->virtual_host);
    if (c->endpoint) {
        const char *host = strstr(c->endpoint, "://") + 3;
        size_t n = strlen(host);
        while (n && host[n - 1] == '/')
            n--;
        dr__text_add(url, c->endpoint, (size_t)(host - c->endpoint));
        if (in_host) {
            dr__text_say(url, bucket);
            dr__text_say(url, ".");
        }
        dr__text_add(url, host, n);
    } else {
        dr__text_say(url, "https://");
        if (in_host) {
            dr__text_say(url, bucket);
            dr__text_say(url, ".");
        }
        dr__text_say(url, "s3.");
        dr__text_say(url, c->region);
        dr__text_say(url, !strncmp(c->region, "cn-", 3) ? ".amazonaws.com.cn" : ".amazonaws.com");
    }
    if (!in_host) {
        dr__text_say(url, "/");
        dr__text_say(url, bucket);
    }
    return !url->failed;
}

static char *header(const char *name, const char *value)
{
    dr__text line = { 0 };
    dr__text_say(&line, name);
    dr__text_say(&line, value);
    return line.text;
}

/* Takes what the configuration owns and is needed. */
static bool set_access(dr__web_access *a, dr__aws_config *c)
{
    a->direct = true;
    a->explain = explain;
    a->ca_file = c->ca_file;
    c->ca_file = NULL;
    if (!c->key)
        return true;
    a->user = c->key;
    a->password = c->secret;
    c->key = c->secret = NULL;
    a->sigv4 = header("aws:amz:", c->region);
    if (a->sigv4) {
        dr__text text = { .text = a->sigv4, .n = strlen(a->sigv4), .cap = strlen(a->sigv4) + 1 };
        dr__text_say(&text, ":s3");
        a->sigv4 = text.text;
        if (text.failed)
            return false;
    }
    a->headers[0] = header("x-amz-content-sha256: ", EMPTY_HASH); /* no request has a body */
    a->headers[1] = c->session ? header("x-amz-security-token: ", c->session) : NULL;
    return a->sigv4 && a->headers[0] && (!c->session || a->headers[1]);
}

static void bucket_free(struct bucket *b)
{
    dr__free(b->url);
    dr__web_access_free(b->access);
    b->url = NULL;
    b->access = NULL;
}

static dr_status bucket_open(const char *name, const char *bucket, const dr__source_options *options,
                             struct bucket *out, dr_error *err)
{
    dr__aws_config config;
    dr__text url = { 0 };
    *out = (struct bucket){ 0 };
    DR_TRY(dr__transfer_available(err));
    DR_TRY(dr__aws_config_find(options->credentials, name, &config, err));
    snprintf(out->name, sizeof out->name, "%s", bucket);
    out->access = dr__alloc_zero(1, sizeof *out->access);
    const bool good = out->access && set_access(out->access, &config) && bucket_url(bucket, &config, &url);
    out->url = url.text;
    if (out->access)
        out->access->timeout_ns = options->timeout_ns;
    dr__aws_config_free(&config);
    if (good)
        return DR_OK;
    bucket_free(out);
    return no_memory(name, err);
}

static char *object_url(const struct bucket *b, const char *prefix, const char *key)
{
    dr__text url = { 0 };
    dr__text_say(&url, b->url);
    dr__text_say(&url, "/");
    dr__url_encode(&url, prefix, strlen(prefix), false);
    dr__url_encode(&url, key, strlen(key), false);
    if (url.failed)
        dr__free(url.text);
    return url.failed ? NULL : url.text;
}

static char *object_name(const struct bucket *b, const char *prefix, const char *key)
{
    const char *parts[] = { "s3://", b->name, "/", prefix, key };
    dr__text name = { 0 };
    for (size_t i = 0; i < DR_COUNT(parts); i++)
        dr__text_say(&name, parts[i]);
    if (name.failed)
        dr__free(name.text);
    return name.failed ? NULL : name.text;
}

/* --- where something is --- */

struct place {
    const struct bucket *bucket;
    struct bucket own; /* where the directory has another bucket, or there is none */
    const char *prefix, *key;
    char *url, *name;
};

static void leave_place(struct place *p)
{
    bucket_free(&p->own);
    dr__free(p->url);
    dr__free(p->name);
}

static dr_status find_place(struct dir *d, const char *path, struct place *p, dr_error *err)
{
    char bucket[MAX_BUCKET + 1];
    *p = (struct place){ .bucket = d ? &d->bucket : NULL, .prefix = d ? d->prefix : "", .key = path };
    if (!strncmp(path, "s3://", 5)) {
        const dr__source_options same = { .timeout_ns = d ? d->bucket.access->timeout_ns : 0,
                                          .credentials = d ? d->credentials : NULL };
        DR_TRY(split(path, bucket, &p->key, err));
        p->prefix = "";
        if (!d || strcmp(bucket, d->bucket.name)) {
            DR_TRY(bucket_open(path, bucket, d ? &same : dr__source_assumed(), &p->own, err));
            p->bucket = &p->own;
        }
    }
    p->url = object_url(p->bucket, p->prefix, p->key);
    p->name = object_name(p->bucket, p->prefix, p->key);
    if (p->url && p->name)
        return DR_OK;
    leave_place(p);
    return no_memory(path, err);
}

/* --- one object --- */

static dr_status open_object(const char *name, const dr__source_options *options, dr__source **out, dr_error *err)
{
    char bucket[MAX_BUCKET + 1];
    const char *key;
    struct bucket b;
    DR_TRY(split(name, bucket, &key, err));
    if (!*key)
        return dr__fail(err, DR_ERR_ARG, "%s: is a bucket, not an object", name);
    DR_TRY(bucket_open(name, bucket, options, &b, err));
    char *url = object_url(&b, "", key), *shown = dr__strdup(name);
    const dr_status status = url && shown ? dr__web_source_new(b.access, url, shown, out, err) : no_memory(name, err);
    if (status == DR_OK)
        b.access = NULL;
    else {
        dr__free(url);
        dr__free(shown);
    }
    bucket_free(&b);
    return status;
}

/* --- a directory --- */

static void close_dir(dr__source_dir *dir)
{
    struct dir *d = (struct dir *)dir;
    bucket_free(&d->bucket);
    dr__free(d->prefix);
    dr__free(d->credentials);
    dr__web_memory_free(&d->memory);
}

/* A prefix with one slash at its end, unless it is empty. */
static char *prefix_of(const char *key)
{
    size_t n = strlen(key);
    dr__text text = { 0 };
    while (n && key[n - 1] == '/')
        n--;
    dr__text_add(&text, key, n);
    if (n)
        dr__text_say(&text, "/");
    if (text.failed)
        dr__free(text.text);
    return text.failed ? NULL : text.text;
}

static dr_status open_dir(const char *name, const dr__source_options *options, dr__source_dir **out, dr_error *err)
{
    char bucket[MAX_BUCKET + 1];
    const char *key;
    DR_TRY(split(name, bucket, &key, err));
    struct dir *d = dr__alloc_zero(1, sizeof *d);
    if (!d)
        return no_memory(name, err);
    dr__web_memory_init(&d->memory);
    dr_status status = bucket_open(name, bucket, options, &d->bucket, err);
    if (status == DR_OK) {
        d->prefix = prefix_of(key);
        d->credentials = options->credentials ? dr__strdup(options->credentials) : NULL;
        if (!d->prefix || (options->credentials && !d->credentials))
            status = no_memory(name, err);
    }
    if (status != DR_OK) {
        close_dir(&d->head);
        dr__free(d);
        return status;
    }
    *out = &d->head;
    return DR_OK;
}

static dr_status read_object(struct dir *d, const char *path, uint64_t version, uint64_t offset, uint64_t size,
                             dr__source_target *target, size_t *got, dr_error *err)
{
    struct place p;
    dr__transfer_reply *reply = dr__alloc_zero(1, sizeof *reply);
    if (!reply)
        return no_memory(path, err);
    dr_status status = find_place(d, path, &p, err);
    if (status == DR_OK) {
        status = dr__web_read(p.bucket->access, p.url, p.name, "", offset, size, target, reply, err);
        const dr__source_facts facts = dr__web_facts(reply);
        if (status == DR_OK && version && facts.version != version)
            status = dr__fail(err, DR_ERR_STATE, "%s: was changed while the data set is open", p.name);
        if (status == DR_OK && d && facts.version)
            dr__web_memory_put(&d->memory, path, &facts);
        leave_place(&p);
    }
    *got = (size_t)reply->got;
    dr__free(reply);
    return status;
}

static dr_status get(dr__source_dir *dir, const char *path, dr__source_target *target, size_t *size, dr_error *err)
{
    return read_object((struct dir *)dir, path, 0, 0, 0, target, size, err);
}

static dr_status get_range(dr__source_dir *dir, const char *path, uint64_t version, uint64_t offset, size_t size,
                           dr__source_target *target, size_t *got, dr_error *err)
{
    dr_status status = DR_OK;
    *got = 0;
    if (!size)
        return target->reserve(target, 1, 0, &status, err) ? DR_OK : status;
    return read_object((struct dir *)dir, path, version, offset, size, target, got, err);
}

/* --- listing --- */

struct level {
    dr__s3_page page;
    struct dir *dir; /* NULL: nothing is remembered */
    const char *prefix, *path;
    dr__source_lister *lister;
    dr__text name;
    size_t n;
};

static dr_status take_entry(void *user, const dr__s3_entry *e, dr_error *err)
{
    struct level *l = user;
    const size_t skip = strlen(l->prefix), n = strlen(e->key);
    if (n <= skip || memcmp(e->key, l->prefix, skip))
        return DR_OK; /* the prefix itself, which some tools make an object of */
    l->n++;
    const char *rest = e->key + skip;
    const size_t len = n - skip - (e->is_prefix && e->key[n - 1] == '/');
    if (!len || memchr(rest, '/', len) || (len == 1 && rest[0] == '.') || (len == 2 && !memcmp(rest, "..", 2)))
        return DR_OK; /* "a//b", and what would lead elsewhere as a path */
    if (l->dir && !e->is_prefix && *e->etag) {
        const dr__source_facts facts = { .kind = DR__SOURCE_FILE,
                                         .size = e->size,
                                         .version = dr__web_version(e->etag) };
        l->name.n = 0;
        dr__text_say(&l->name, l->path);
        dr__text_say(&l->name, *l->path ? "/" : "");
        dr__text_add(&l->name, rest, len);
        if (!l->name.failed)
            dr__web_memory_put(&l->dir->memory, l->name.text, &facts);
    }
    l->name.n = 0;
    dr__text_add(&l->name, rest, len);
    if (l->name.failed)
        return no_memory(l->prefix, err);
    const dr__source_entry entry = { .name = l->name.text, .is_dir = e->is_prefix };
    return l->lister ? l->lister->take(l->lister, &entry, err) : DR_END;
}

/* The parameters stand in the order of their names, as they are signed. */
static char *page_url(const struct bucket *b, const char *token, const char *prefix, bool one)
{
    dr__text url = { 0 };
    dr__text_say(&url, b->url);
    dr__text_say(&url, "/?");
    if (token) {
        dr__text_say(&url, "continuation-token=");
        dr__url_encode(&url, token, strlen(token), true);
        dr__text_say(&url, "&");
    }
    dr__text_say(&url, "delimiter=%2F&list-type=2");
    if (one)
        dr__text_say(&url, "&max-keys=2"); /* the prefix may be an object itself */
    if (*prefix) {
        dr__text_say(&url, "&prefix=");
        dr__url_encode(&url, prefix, strlen(prefix), true);
    }
    if (url.failed)
        dr__free(url.text);
    return url.failed ? NULL : url.text;
}

/* Lists one level below l->prefix, page by page; without a lister, looks whether there is anything. */
static dr_status list_level(const struct bucket *b, struct level *l, dr_error *err)
{
    dr__transfer_reply *reply = dr__alloc_zero(1, sizeof *reply);
    char *name = object_name(b, l->prefix, "");
    dr_status status = reply && name ? DR_OK : no_memory(l->prefix, err);
    l->page = (dr__s3_page){ .take = take_entry, .user = l };
    do {
        char *url =
            status == DR_OK ? page_url(b, l->page.truncated ? l->page.next.text : NULL, l->prefix, !l->lister) : NULL;
        char *text = NULL;
        size_t size;
        if (status == DR_OK)
            status =
                url ? dr__web_text(b->access, url, name, MAX_PAGE, &text, &size, reply, err) : no_memory(name, err);
        if (status == DR_OK) {
            status = dr__s3_list_parse(text, size, &l->page, err);
            if (status == DR_ERR_FORMAT)
                dr__error_prefix(err, "%s", name);
        }
        dr__free(text);
        dr__free(url);
    } while (status == DR_OK && l->page.truncated && l->page.next.n);
    dr__free(l->page.next.text);
    dr__free(l->name.text);
    dr__free(reply);
    dr__free(name);
    return status == DR_END ? DR_OK : status;
}

static dr_status list(dr__source_dir *dir, const char *path, dr__source_lister *lister, dr_error *err)
{
    struct dir *d = (struct dir *)dir;
    const dr__source_facts facts = { .kind = DR__SOURCE_DIR };
    dr__text prefix = { 0 };
    if (lister->begin && !lister->begin(lister, &facts))
        return DR_OK;
    dr__text_say(&prefix, d->prefix);
    dr__text_say(&prefix, path);
    dr__text_say(&prefix, *path ? "/" : "");
    struct level l = { .dir = d, .prefix = prefix.text, .path = path, .lister = lister };
    dr_status status = prefix.failed ? no_memory(dir->name, err) : list_level(&d->bucket, &l, err);
    if (status == DR_OK && !l.n)
        status = dr__fail(err, DR_ERR_NOT_FOUND, "s3://%s/%s: nothing is there", d->bucket.name, prefix.text);
    dr__free(prefix.text);
    return status;
}

/* --- facts --- */

static dr_status facts_of_prefix(const struct place *p, dr__source_facts *facts, dr_error *err)
{
    dr__text key = { 0 };
    dr__text_say(&key, p->prefix);
    dr__text_say(&key, p->key);
    char *prefix = key.failed ? NULL : prefix_of(key.text);
    struct level l = { .prefix = prefix, .path = "" };
    dr_status status = prefix ? list_level(p->bucket, &l, err) : no_memory(p->name, err);
    *facts = (dr__source_facts){ .kind = DR__SOURCE_DIR };
    if (status == DR_OK && !l.n)
        status = dr__fail(err, DR_ERR_NOT_FOUND, "%s: no such object, and no object below it", p->name);
    dr__free(prefix);
    dr__free(key.text);
    return status;
}

static dr_status facts_of(const struct place *p, dr__source_facts *facts, dr_error *err)
{
    const size_t n = strlen(p->key);
    if (!n || p->key[n - 1] == '/')
        return facts_of_prefix(p, facts, err);
    dr__transfer_reply *reply = dr__alloc_zero(1, sizeof *reply);
    if (!reply)
        return no_memory(p->name, err);
    dr_status status = dr__web_head(p->bucket->access, p->url, p->name, reply, err);
    *facts = dr__web_facts(reply);
    dr__free(reply);
    return status == DR_ERR_NOT_FOUND ? facts_of_prefix(p, facts, err) : status;
}

static dr_status stat_path(dr__source_dir *dir, const char *path, dr__source_facts *facts, dr_error *err)
{
    struct dir *d = (struct dir *)dir;
    struct place p;
    if (d && dr__web_memory_get(&d->memory, path, facts))
        return DR_OK;
    DR_TRY(find_place(d, path, &p, err));
    const dr_status status = facts_of(&p, facts, err);
    leave_place(&p);
    if (status == DR_OK && d && facts->version)
        dr__web_memory_put(&d->memory, path, facts);
    return status;
}

const dr_source_def dr__source_s3 = {
    .scheme = "s3",
    .summary = "objects of S3 and of stores that speak its protocol",
    .remote = true,
    .open = open_object,
    .size = dr__web_source_size,
    .read_at = dr__web_source_read_at,
    .close = dr__web_source_close,
    .open_dir = open_dir,
    .get = get,
    .get_range = get_range,
    .stat = stat_path,
    .list = list,
    .close_dir = close_dir,
};
