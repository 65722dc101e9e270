/* web_object.c: reading objects over HTTP, and their facts. */
#include "source/web_object.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/compiler.h"

void dr__web_access_free(dr__web_access *a)
{
    if (!a)
        return;
    char *owned[] = {
        a->token, a->user, a->password, a->sigv4, a->ca_file, a->headers[0], a->headers[1], a->headers[2]
    };
    for (size_t i = 0; i < DR_COUNT(owned); i++)
        dr__free(owned[i]);
    dr__free(a);
}

static dr__transfer_request request_of(const dr__web_access *a, const char *url, const char *name)
{
    return (dr__transfer_request){ .name = name,
                                   .url = url,
                                   .headers = (const char *const *)a->headers,
                                   .timeout_ns = a->timeout_ns,
                                   .sigv4 = a->sigv4,
                                   .user = a->user,
                                   .password = a->password,
                                   .token = a->token,
                                   .ca_file = a->ca_file,
                                   .direct = a->direct };
}

static dr_status run(const dr__web_access *a, const dr__transfer_request *q, dr__source_target *target,
                     dr__transfer_reply *reply, dr_error *err)
{
    const dr_status status = dr__transfer_run(q, target, reply, err);
    if (status == DR_OK || !a->explain || reply->http < 300)
        return status;
    return a->explain(reply, q->name, status, err);
}

dr_status dr__web_read(const dr__web_access *a, const char *url, const char *name, const char *etag, uint64_t offset,
                       uint64_t size, dr__source_target *target, dr__transfer_reply *reply, dr_error *err)
{
    dr__transfer_request q = request_of(a, url, name);
    q.version = *etag ? etag : NULL;
    q.offset = offset;
    q.size = size;
    return run(a, &q, target, reply, err);
}

/* Some servers know no HEAD, and a signature may be for GET alone: the first byte then tells as much. */
dr_status dr__web_head(const dr__web_access *a, const char *url, const char *name, dr__transfer_reply *reply,
                       dr_error *err)
{
    dr__transfer_request q = request_of(a, url, name);
    q.method = "HEAD";
    const dr_status status = run(a, &q, NULL, reply, err);
    const bool unknown = reply->http == 405 || reply->http == 501 || (reply->http == 403 && strchr(url, '?'));
    if (status == DR_OK || !unknown)
        return status;
    q.method = NULL;
    q.size = 1;
    return run(a, &q, NULL, reply, err);
}

/* --- texts --- */

struct text {
    dr__source_target target;
    char *data;
    size_t most;
};

static uint8_t *reserve_text(dr__source_target *target, size_t size, size_t keep, dr_status *status, dr_error *err)
{
    struct text *t = (struct text *)target;
    (void)keep;
    if (size > t->most) {
        *status = dr__fail(err, DR_ERR_LIMIT, "must have at most %zu bytes", t->most);
        return NULL;
    }
    char *data = dr__realloc(t->data, size + 1, 1);
    if (!data)
        *status = dr__fail(err, DR_ERR_NOMEM, "out of memory");
    t->data = data ? data : t->data;
    return (uint8_t *)data;
}

dr_status dr__web_text(const dr__web_access *a, const char *url, const char *name, size_t most, char **text,
                       size_t *size, dr__transfer_reply *reply, dr_error *err)
{
    struct text t = { .target.reserve = reserve_text, .most = most };
    const dr_status status = dr__web_read(a, url, name, "", 0, 0, &t.target, reply, err);
    if (status != DR_OK || !t.data) {
        dr__free(t.data);
        return status != DR_OK ? status : dr__fail(err, DR_ERR_IO, "%s: no answer", name ? name : url);
    }
    t.data[reply->got] = 0;
    *text = t.data;
    *size = (size_t)reply->got;
    return DR_OK;
}

/* --- facts --- */

uint64_t dr__web_version(const char *etag)
{
    const uint64_t version = *etag ? XXH3_64bits(etag, strlen(etag)) : 0;
    return version || !*etag ? version : 1;
}

dr__source_facts dr__web_facts(const dr__transfer_reply *r)
{
    dr__source_facts facts = { .kind = DR__SOURCE_FILE, .size = r->total, .mtime_ns = r->mtime_ns };
    facts.version = dr__web_version(r->etag);
    if (!facts.version && r->mtime_ns && r->total != UINT64_MAX) {
        const uint64_t known[] = { (uint64_t)r->mtime_ns, r->total };
        facts.version = XXH3_64bits(known, sizeof known) | 1;
    }
    return facts;
}

/* --- an open object --- */

struct web_source {
    dr__source head;
    dr__web_access *access;
    char *url, *name; /* name: for messages; NULL: the URL */
    char etag[256];
};

dr_status dr__web_source_new(dr__web_access *access, char *url, char *name, dr__source **out, dr_error *err)
{
    dr__transfer_reply *reply = dr__alloc(sizeof *reply);
    struct web_source *s = dr__alloc_zero(1, sizeof *s);
    dr_status status = reply && s ? dr__web_head(access, url, name, reply, err)
                                  : dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", name ? name : url);
    if (status == DR_OK && reply->total == UINT64_MAX)
        status = dr__fail(err, DR_ERR_UNSUPPORTED, "%s: the server does not say how large it is", name ? name : url);
    if (status != DR_OK) {
        dr__free(reply);
        dr__free(s);
        return status;
    }
    *s = (struct web_source){ .access = access, .url = url, .name = name, .head.facts = dr__web_facts(reply) };
    memcpy(s->etag, reply->etag, sizeof s->etag);
    dr__free(reply);
    *out = &s->head;
    return DR_OK;
}

/* It is an error for it to change, so it has the size it had. */
dr_status dr__web_source_size(dr__source *source, uint64_t *size, dr_error *err)
{
    (void)err;
    *size = source->facts.size;
    return DR_OK;
}

struct buffer {
    dr__source_target target;
    uint8_t *data;
    size_t size;
};

static uint8_t *reserve_buffer(dr__source_target *target, size_t size, size_t keep, dr_status *status, dr_error *err)
{
    const struct buffer *b = (struct buffer *)target;
    (void)keep;
    if (size <= b->size)
        return b->data;
    *status = dr__fail(err, DR_ERR_IO, "the server sent more than it was asked for");
    return NULL;
}

dr_status dr__web_source_read_at(dr__source *source, void *buf, size_t n, uint64_t offset, size_t *got, dr_error *err)
{
    struct web_source *s = (struct web_source *)source;
    struct buffer b = { .target.reserve = reserve_buffer, .data = buf, .size = n };
    *got = 0;
    if (offset > INT64_MAX || n > INT64_MAX - offset)
        return dr__fail(err, DR_ERR_ARG, "%s: read beyond what an object can hold", source->name);
    if (offset >= source->facts.size || !n)
        return DR_OK;
    dr__transfer_reply *reply = dr__alloc(sizeof *reply);
    if (!reply)
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", source->name);
    const dr_status status = dr__web_read(s->access, s->url, s->name, s->etag, offset, n, &b.target, reply, err);
    *got = (size_t)reply->got;
    dr__free(reply);
    return status;
}

void dr__web_source_close(dr__source *source)
{
    struct web_source *s = (struct web_source *)source;
    dr__web_access_free(s->access);
    dr__free(s->url);
    dr__free(s->name);
}

/* --- memory of facts --- */

struct dr__web_known {
    uint64_t hash; /* 0: a free slot */
    dr__source_facts facts;
};

void dr__web_memory_init(dr__web_memory *m)
{
    *m = (dr__web_memory){ 0 };
    pthread_mutex_init(&m->lock, NULL);
}

static struct dr__web_known *find(struct dr__web_known *slots, size_t n_slots, uint64_t hash)
{
    size_t i = (size_t)hash;
    while (slots[i & (n_slots - 1)].hash && slots[i & (n_slots - 1)].hash != hash)
        i++;
    return &slots[i & (n_slots - 1)];
}

static uint64_t hash_of(const char *path)
{
    const uint64_t hash = XXH3_64bits(path, strlen(path));
    return hash ? hash : 1;
}

/* lock */
static bool grow(dr__web_memory *m)
{
    const size_t n = m->n_slots ? 2 * m->n_slots : 256;
    struct dr__web_known *slots = dr__alloc_zero(n, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < m->n_slots; i++)
        if (m->slots[i].hash)
            *find(slots, n, m->slots[i].hash) = m->slots[i];
    dr__free(m->slots);
    m->slots = slots;
    m->n_slots = n;
    return true;
}

/* Without memory it is asked for again. */
void dr__web_memory_put(dr__web_memory *m, const char *path, const dr__source_facts *facts)
{
    const uint64_t hash = hash_of(path);
    pthread_mutex_lock(&m->lock);
    if (2 * (m->n + 1) <= m->n_slots || grow(m)) {
        struct dr__web_known *slot = find(m->slots, m->n_slots, hash);
        m->n += !slot->hash;
        *slot = (struct dr__web_known){ .hash = hash, .facts = *facts };
    }
    pthread_mutex_unlock(&m->lock);
}

bool dr__web_memory_get(dr__web_memory *m, const char *path, dr__source_facts *facts)
{
    const uint64_t hash = hash_of(path);
    pthread_mutex_lock(&m->lock);
    const struct dr__web_known *slot = m->n_slots ? find(m->slots, m->n_slots, hash) : NULL;
    const bool found = slot && slot->hash;
    if (found)
        *facts = slot->facts;
    pthread_mutex_unlock(&m->lock);
    return found;
}

void dr__web_memory_free(dr__web_memory *m)
{
    pthread_mutex_destroy(&m->lock);
    dr__free(m->slots);
}
