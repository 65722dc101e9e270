/* remote_client.c: requests for samples, of many threads together.
 *
 * A wish of a thread is `waiting` in the queue, or `sent` as one of a group, or `done`.  A group belongs to the thread
 * that sends it; its entries are NULL once they are done or given up.  The lock guards queue, groups and wishes; a
 * frame's bytes are received without it, into memory that no wish has yet.
 */
#include "format/remote_client.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/grow.h"
#include "base/thread.h"
#include "format/remote_request.h"

#define POLL_NS 100000000ull       /* a thread that waits for another looks whether it is cancelled */
#define PAUSE_NS 200000000         /* before a request is repeated of which nothing arrived */
#define TIMEOUT_NS 300000000000ull /* as of transfers */

enum { NAME = 2048, WHAT = 3 * 8192 + 64, DAMAGED_MOST = 3, MANY = 64 /* clients that are known for a fork */ };

typedef enum stage { WAITING, SENT, DONE } stage;

struct wish {
    struct wish *next; /* in the queue */
    const dr__remote_wish *asked;
    size_t most; /* bytes that a payload may have */
    stage at;
    struct wish **in; /* sent: its entry of the group */
    dr_status status;
    dr_error err;
    dr__remote_head head;
    uint8_t *payload; /* owned */
    dr__cond changed;
};

struct dr__remote_client {
    char *name, *set; /* for messages */
    char *url;        /* of the set, with a slash at its end */
    size_t root;      /* length of its "http://host:port" */
    char *token;      /* NULL: none */
    uint64_t timeout_ns;
    uint64_t fingerprint;

    pthread_mutex_t lock; /* all below */
    struct wish *first, *last;
    int requests;      /* for samples, in flight */
    unsigned busy;     /* requests of all kinds, in flight */
    uint64_t since_ns; /* when busy became 1 */
    dr__remote_counts counts;
    dr__remote_client *next; /* of all; the list's lock */
};

/* --- forks --- */

static struct {
    pthread_mutex_t lock;
    dr__remote_client *first;
    bool ready;
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void make_idle(dr__remote_client *c)
{
    pthread_mutex_init(&c->lock, NULL);
    c->first = c->last = NULL;
    c->requests = 0;
    c->busy = 0;
}

/* The threads that held locks or sent requests do not exist in the child. */
static void reset_in_child(void)
{
    pthread_mutex_init(&all.lock, NULL);
    for (dr__remote_client *c = all.first; c; c = c->next)
        make_idle(c);
}

static void enlist(dr__remote_client *c)
{
    pthread_mutex_lock(&all.lock);
    if (!all.ready)
        dr__fork_in_child(reset_in_child);
    all.ready = true;
    c->next = all.first;
    all.first = c;
    pthread_mutex_unlock(&all.lock);
}

static void delist(dr__remote_client *c)
{
    pthread_mutex_lock(&all.lock);
    for (dr__remote_client **at = &all.first; *at; at = &(*at)->next)
        if (*at == c) {
            *at = c->next;
            break;
        }
    pthread_mutex_unlock(&all.lock);
}

/* --- names --- */

static bool is_unreserved(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("-._~", c);
}

/* Adds a path; slashes stay where `keep` is true. */
static void add_encoded(dr__text *t, const char *path, bool keep)
{
    for (; *path; path++) {
        char hex[4];
        if (is_unreserved(*path) || (keep && *path == '/')) {
            dr__text_add(t, path, 1);
            continue;
        }
        snprintf(hex, sizeof hex, "%%%02X", (unsigned char)*path);
        dr__text_add(t, hex, 3);
    }
}

static dr_status bad_name(const char *name, dr_error *err)
{
    return dr__fail(err, DR_ERR_ARG, "%s: must be drapps://host[:port]/set or drapps+https://host[:port]/set", name);
}

/* The port of "host:port" or "[address]:port"; NULL: none. */
static const char *port_of(const char *host, size_t n)
{
    for (const char *p = host + n; p-- > host;)
        if (*p == ':' || *p == ']')
            return *p == ':' ? p : NULL;
    return NULL;
}

static dr_status take_apart(dr__remote_client *c, const char *name, dr_error *err)
{
    const bool tls = !strncmp(name, "drapps+https://", 15);
    if (!tls && strncmp(name, "drapps://", 9) != 0)
        return bad_name(name, err);
    const char *host = name + (tls ? 15 : 9);
    const size_t n_host = strcspn(host, "/");
    size_t n_set = host[n_host] ? strlen(host + n_host + 1) : 0;
    while (n_set && host[n_host + n_set] == '/')
        n_set--;
    if (!n_host || !n_set || strlen(name) >= NAME || memchr(host, '@', n_host) || strpbrk(host, "?#"))
        return bad_name(name, err);
    dr__text url = { 0 };
    char port[16] = "";
    if (!port_of(host, n_host))
        snprintf(port, sizeof port, ":%d", DR__REMOTE_PORT);
    dr__text_say(&url, tls ? "https://" : "http://");
    dr__text_add(&url, host, n_host);
    dr__text_say(&url, port);
    c->root = url.n;
    dr__text_say(&url, "/v1/sets/");
    c->set = dr__alloc_zero(n_set + 1, 1);
    c->name = dr__strdup(name);
    if (c->set) {
        memcpy(c->set, host + n_host + 1, n_set);
        add_encoded(&url, c->set, false);
    }
    dr__text_say(&url, "/");
    c->url = url.text;
    return c->set && c->name && !url.failed ? DR_OK : dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", name);
}

dr_status dr__remote_client_open(const char *name, const dr__source_options *options, dr__remote_client **out,
                                 dr_error *err)
{
    *out = NULL;
    DR_TRY(dr__transfer_available(err));
    dr__remote_client *c = dr__alloc_zero(1, sizeof *c);
    if (!c)
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", name);
    make_idle(c);
    c->timeout_ns = options && options->timeout_ns ? options->timeout_ns : TIMEOUT_NS;
    const char *token = options && options->credentials ? options->credentials : getenv("DRAPPS_TOKEN");
    dr_status status = take_apart(c, name, err);
    if (status == DR_OK && token && *token && !(c->token = dr__strdup(token)))
        status = dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", name);
    enlist(c);
    if (status != DR_OK)
        dr__remote_client_close(&c);
    *out = c;
    return status;
}

void dr__remote_client_close(dr__remote_client **client)
{
    dr__remote_client *c = *client;
    *client = NULL;
    if (!c)
        return;
    delist(c);
    pthread_mutex_destroy(&c->lock);
    dr__free(c->name);
    dr__free(c->set);
    dr__free(c->url);
    dr__free(c->token);
    dr__free(c);
}

void dr__remote_client_expect(dr__remote_client *c, uint64_t fingerprint)
{
    c->fingerprint = fingerprint;
}

const char *dr__remote_client_name(const dr__remote_client *c)
{
    return c->name;
}

/* --- what all requests share --- */

static void begin_request(dr__remote_client *c)
{
    pthread_mutex_lock(&c->lock);
    if (!c->busy++)
        c->since_ns = dr__now_ns();
    c->counts.requests++;
    pthread_mutex_unlock(&c->lock);
}

static void end_request(dr__remote_client *c, uint64_t bytes)
{
    pthread_mutex_lock(&c->lock);
    if (!--c->busy)
        c->counts.busy_ns += dr__now_ns() - c->since_ns;
    c->counts.bytes += bytes;
    pthread_mutex_unlock(&c->lock);
}

void dr__remote_client_counts(dr__remote_client *c, dr__remote_counts *out)
{
    pthread_mutex_lock(&c->lock);
    *out = c->counts;
    if (c->busy)
        out->busy_ns += dr__now_ns() - c->since_ns;
    pthread_mutex_unlock(&c->lock);
}

/* What a failed request means to the caller: err has what the transfer said. */
static dr_status explain(const dr__remote_client *c, const dr__transfer_reply *reply, dr_status status, dr_error *err)
{
    if (status == DR_ERR_NOMEM || status == DR_ERR_CANCELLED || status == DR_ERR_LIMIT || status == DR_ERR_ARG)
        return status;
    if (reply->http == 401 || reply->http == 403)
        return dr__fail(err, DR_ERR_STATE, "%s: the server refuses access to set \"%s\" (HTTP %d): %s", c->name, c->set,
                        reply->http,
                        c->token ? "the token is not valid, not valid any more, or not for this set"
                                 : "it wants a token: DRAPPS_TOKEN, or the credentials of the data set");
    if (reply->http == 409 || reply->http == 412)
        return dr__fail(err, DR_ERR_STATE,
                        "%s: the server has other data under the name \"%s\" than when it was opened", c->name, c->set);
    if (reply->http == 404 || reply->http == 410)
        return DR_ERR_NOT_FOUND;
    if (reply->http >= 400 && reply->http < 500 && reply->http != 408 && reply->http != 429)
        return dr__fail(err, DR_ERR_UNSUPPORTED, "%s: the server refuses a request (HTTP %d): %.300s", c->name,
                        reply->http, reply->said);
    if (reply->http == 501 || reply->http == 505)
        return dr__fail(err, DR_ERR_UNSUPPORTED, "%s: the server does not know such requests (HTTP %d)", c->name,
                        reply->http);
    if (err)
        err->status = DR_ERR_STATE;
    return DR_ERR_STATE;
}

dr_status dr__remote_client_get(dr__remote_client *c, const char *what, const char *etag, uint64_t offset,
                                uint64_t size, dr__source_target *target, dr__transfer_reply *reply, dr_error *err)
{
    char expect[48], known[300], message[NAME + 512];
    const char *headers[3] = { NULL };
    int n = 0;
    dr__text url = { 0 };
    dr__text_add(&url, c->url, *what == '/' ? c->root : strlen(c->url));
    add_encoded(&url, what, true);
    if (c->fingerprint) {
        snprintf(expect, sizeof expect, "X-Drapps-Set: %016" PRIx64, c->fingerprint);
        headers[n++] = expect;
    }
    if (etag && *etag && snprintf(known, sizeof known, "If-None-Match: %s", etag) < (int)sizeof known)
        headers[n++] = known;
    snprintf(message, sizeof message, "%s: %.400s", c->name, what);
    const dr__transfer_request request = { .name = message,
                                           .url = url.text,
                                           .headers = headers,
                                           .token = c->token,
                                           .offset = offset,
                                           .size = size,
                                           .timeout_ns = c->timeout_ns };
    *reply = (dr__transfer_reply){ 0 };
    if (url.failed) {
        dr__free(url.text);
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory", c->name);
    }
    begin_request(c);
    dr_status status = dr__transfer_run(&request, target, reply, err);
    end_request(c, reply->got);
    dr__free(url.text);
    if (status == DR_OK || (etag && reply->http == 304))
        return DR_OK;
    return explain(c, reply, status, err);
}

/* --- the answer to a request for samples --- */

struct group {
    dr__remote_client *client;
    struct wish *wishes[DR__REMOTE_GROUP]; /* in the order of the request; lock */
    dr__remote_wish asked[DR__REMOTE_GROUP];
    int n;
};

/* Frames as they arrive. */
struct stream {
    dr__transfer_sink head;
    struct group *group;
    uint8_t first[DR__REMOTE_HEAD];
    size_t have; /* bytes of the current frame */
    dr__remote_head frame;
    int entry;
    uint8_t *payload; /* NULL: it is passed over */
    uint64_t frames;
};

/* lock: the wish that an entry stands for is done. */
static void finish(struct group *g, int entry, dr_status status, const dr_error *err)
{
    struct wish *w = g->wishes[entry];
    g->wishes[entry] = NULL;
    w->in = NULL;
    w->status = status;
    if (err)
        w->err = *err;
    w->at = DONE;
    dr__cond_signal(&w->changed);
}

static int find_entry(const struct group *g, const dr__remote_head *head)
{
    return head->entry < g->n && g->asked[head->entry].id == head->id ? head->entry : -1;
}

/* Begins the frame whose head is complete. */
static dr_status begin_frame(struct stream *s, dr_error *err)
{
    const struct group *g = s->group;
    DR_TRY(dr__remote_parse_head(s->first, UINT64_MAX, &s->frame, err));
    s->entry = find_entry(g, &s->frame);
    if (s->entry < 0 || s->frame.prefix > g->asked[s->entry].prefix)
        return dr__fail(err, DR_ERR_FORMAT, "an answer to what was not asked");
    pthread_mutex_lock(&g->client->lock);
    const struct wish *w = g->wishes[s->entry];
    const size_t most = w ? w->most : 0;
    pthread_mutex_unlock(&g->client->lock);
    s->payload = s->frame.size <= most ? dr__alloc(s->frame.size + 1) : NULL;
    if (s->payload || !most)
        return DR_OK;
    dr_error why = { 0 };
    const dr_status status =
        s->frame.size > most
            ? dr__fail(&why, DR_ERR_LIMIT, "a sample of %" PRIu64 " bytes; the memory limit allows %zu", s->frame.size,
                       most)
            : dr__fail(&why, DR_ERR_NOMEM, "out of memory for a sample");
    pthread_mutex_lock(&g->client->lock);
    if (s->group->wishes[s->entry])
        finish(s->group, s->entry, status, &why);
    pthread_mutex_unlock(&g->client->lock);
    return DR_OK;
}

/* Hands the complete frame to its wish, which may have been given up. */
static void end_frame(struct stream *s)
{
    dr__remote_client *c = s->group->client;
    pthread_mutex_lock(&c->lock);
    struct wish *w = s->group->wishes[s->entry];
    if (w) {
        w->head = s->frame;
        w->payload = s->payload;
        s->payload = NULL;
        finish(s->group, s->entry, DR_OK, NULL);
    }
    c->counts.samples++;
    pthread_mutex_unlock(&c->lock);
    dr__free(s->payload);
    s->payload = NULL;
    s->have = 0;
    s->frames++;
}

static dr_status take_bytes(dr__transfer_sink *sink, const uint8_t *data, size_t size, dr_error *err)
{
    struct stream *s = (struct stream *)sink;
    while (size) {
        size_t n = size;
        if (s->have < DR__REMOTE_HEAD) {
            n = DR_MIN(n, DR__REMOTE_HEAD - s->have);
            memcpy(s->first + s->have, data, n);
        } else {
            const size_t at = s->have - DR__REMOTE_HEAD;
            n = (size_t)DR_MIN((uint64_t)n, s->frame.size - at);
            if (s->payload)
                memcpy(s->payload + at, data, n);
        }
        s->have += n;
        data += n;
        size -= n;
        if (s->have == DR__REMOTE_HEAD)
            DR_TRY(begin_frame(s, err));
        if (s->have >= DR__REMOTE_HEAD && s->have - DR__REMOTE_HEAD == s->frame.size)
            end_frame(s);
    }
    return DR_OK;
}

/* --- sending --- */

/* The number of a codec among those of a request; without room for it the sample is not compressed. */
static uint8_t number_of(dr__remote_request *r, const char *codec)
{
    for (int i = 0; i < r->n_codecs; i++)
        if (!strcmp(r->codecs[i], codec))
            return (uint8_t)i;
    if (r->n_codecs == DR__REMOTE_CODECS || strlen(codec) >= sizeof r->codecs[0])
        return DR__REMOTE_NO_CODEC;
    memcpy(r->codecs[r->n_codecs], codec, strlen(codec) + 1);
    return (uint8_t)r->n_codecs++;
}

/* Adds the ranges of a wish. */
static bool add_ranges(dr__remote_request *r, dr__remote_entry *entry, const dr__remote_wish *asked)
{
    const dr__byte_ranges *list = asked->ranges;
    dr__remote_range *grown = dr__grow(r->ranges, &r->ranges_cap, r->n_ranges + (size_t)list->n, sizeof *grown);
    if (!grown)
        return false;
    r->ranges = grown;
    entry->by_ranges = true;
    entry->stamp = asked->stamp;
    entry->first_range = (uint32_t)r->n_ranges;
    entry->n_ranges = (uint32_t)list->n;
    for (int i = 0; i < list->n; i++)
        r->ranges[r->n_ranges++] = (dr__remote_range){ list->at[i].offset, list->at[i].size };
    return true;
}

/* The body of a request for what is left of a group: entry i of the request is entry i of the group afterwards. */
static dr_status make_body(struct group *g, dr__text *out, dr_error *err)
{
    dr__remote_entry entries[DR__REMOTE_GROUP];
    dr__remote_request request = { .entries = entries, .set = g->client->fingerprint };
    int n = 0;
    bool enough = true;
    pthread_mutex_lock(&g->client->lock);
    for (int i = 0; i < g->n; i++) {
        struct wish *w = g->wishes[i];
        if (!w)
            continue;
        g->wishes[n] = w;
        w->in = &g->wishes[n];
        g->asked[n] = *w->asked;
        entries[n] = (dr__remote_entry){ .id = w->asked->id,
                                         .occurrence = w->asked->occurrence,
                                         .prefix = (uint16_t)w->asked->prefix,
                                         .codec = DR__REMOTE_NO_CODEC };
        if (w->asked->codec)
            entries[n].codec = number_of(&request, w->asked->codec);
        if (w->asked->ranges)
            enough = add_ranges(&request, &entries[n], w->asked) && enough;
        const dr__remote_work *work = w->asked->work;
        if (work) {
            request.seed = work->seed;
            request.epoch = work->epoch;
            request.ops = work->ops;
            request.graph = (char *)work->graph;
            request.outputs = (char *)work->outputs;
        }
        n++;
    }
    for (int i = n; i < g->n; i++)
        g->wishes[i] = NULL;
    g->n = n;
    request.n_entries = (size_t)n;
    pthread_mutex_unlock(&g->client->lock);
    if (enough)
        dr__remote_request_put(out, &request);
    dr__free(request.ranges);
    return out->failed || !enough ? dr__fail(err, DR_ERR_NOMEM, "%s: out of memory for a request", g->client->name)
                                  : DR_OK;
}

/* A server before ranges had stamps refuses a request with such ranges, and not only these.  They are done then, and
 * the rest of the group is asked for again.  False: there were none. */
static bool refuse_ranges(struct group *g, const dr_error *err)
{
    bool found = false;
    pthread_mutex_lock(&g->client->lock);
    for (int i = 0; i < g->n; i++) {
        if (!g->asked[i].ranges)
            continue;
        found = true;
        if (g->wishes[i])
            finish(g, i, DR_ERR_UNSUPPORTED, err);
    }
    pthread_mutex_unlock(&g->client->lock);
    return found;
}

/* Sends one request.  *frames: how many samples it brought; *final: no use in another try. */
static dr_status send_once(struct group *g, uint64_t timeout_ns, uint64_t *frames, bool *final, dr_error *err)
{
    static const char *const headers[] = { "Content-Type: application/json", NULL };
    dr__remote_client *c = g->client;
    dr__text body = { 0 }, url = { 0 };
    struct stream s = { .head = { take_bytes }, .group = g };
    dr__transfer_reply reply = { 0 };
    dr_status status = make_body(g, &body, err);
    *frames = 0;
    *final = true;
    dr__text_say(&url, c->url);
    dr__text_say(&url, "samples");
    if (status == DR_OK && url.failed)
        status = dr__fail(err, DR_ERR_NOMEM, "%s: out of memory for a request", c->name);
    if (status == DR_OK && g->n) {
        const dr__transfer_request request = { .name = c->name,
                                               .url = url.text,
                                               .headers = headers,
                                               .body = body.text,
                                               .body_size = body.n,
                                               .token = c->token,
                                               .timeout_ns = timeout_ns,
                                               .idempotent = true };
        begin_request(c);
        status = dr__transfer_stream(&request, &s.head, &reply, err);
        end_request(c, reply.got);
        *frames = s.frames;
        dr__free(s.payload);
        /* what breaks off in the middle is tried again, what is refused or wrong is not */
        *final =
            status != DR_OK && !(reply.http < 300 && status == DR_ERR_IO) && !(s.frames && status == DR_ERR_FORMAT);
        if (status == DR_ERR_FORMAT)
            dr__error_prefix(err, "%s", c->name);
        if (*final)
            status = explain(c, &reply, status, err);
        if (status == DR_ERR_NOT_FOUND)
            status =
                dr__fail(err, DR_ERR_UNSUPPORTED, "%s: the server has no set \"%s\", or sends no samples (HTTP %d)",
                         c->name, c->set, reply.http);
        if (status == DR_ERR_UNSUPPORTED && refuse_ranges(g, err))
            *final = false;
    }
    dr__free(body.text);
    dr__free(url.text);
    return status;
}

/* lock: how many wishes of a group are not done. */
static int count_left(const struct group *g)
{
    int n = 0;
    for (int i = 0; i < g->n; i++)
        n += g->wishes[i] != NULL;
    return n;
}

static void pause_before_retry(void)
{
    const struct timespec t = { 0, PAUSE_NS };
    nanosleep(&t, NULL);
}

static bool is_cancelled(void)
{
    const atomic_bool *flag = dr__transfer_watch(NULL);
    dr__transfer_watch(flag);
    return flag && atomic_load(flag);
}

/* Sends a group until each of its wishes is done. */
static void send_group(struct group *g)
{
    dr__remote_client *c = g->client;
    const uint64_t end = dr__now_ns() + c->timeout_ns;
    dr_error err = { 0 };
    dr_status status = DR_OK;
    for (int left = g->n; left;) {
        uint64_t frames = 0;
        bool final = true;
        const uint64_t now = dr__now_ns();
        status = now < end ? send_once(g, end - now, &frames, &final, &err) : DR_ERR_STATE;
        pthread_mutex_lock(&c->lock);
        left = count_left(g);
        pthread_mutex_unlock(&c->lock);
        if (!left || now >= end || (status != DR_OK && final) || is_cancelled())
            break;
        if (!frames)
            pause_before_retry();
    }
    if (status == DR_OK || status == DR_ERR_IO || !err.status)
        status = dr__fail(&err, DR_ERR_STATE, "%s: the server's answers lack samples that were asked for", c->name);
    const bool cancelled = is_cancelled();
    pthread_mutex_lock(&c->lock);
    for (int i = 0; i < g->n; i++) {
        struct wish *w = g->wishes[i];
        if (!w)
            continue;
        if (!cancelled) {
            finish(g, i, status, &err);
            continue;
        }
        g->wishes[i] = NULL; /* its thread asks again, or is cancelled, too */
        w->in = NULL;
        w->at = WAITING;
        w->next = c->first;
        c->first = w;
        c->last = c->last ? c->last : w;
        dr__cond_signal(&w->changed);
    }
    pthread_mutex_unlock(&c->lock);
}

/* --- the queue; lock --- */

static void enqueue(dr__remote_client *c, struct wish *w)
{
    w->next = NULL;
    if (c->last)
        c->last->next = w;
    else
        c->first = w;
    c->last = w;
}

static void dequeue(dr__remote_client *c, struct wish *w)
{
    struct wish *before = NULL;
    for (struct wish *at = c->first; at; before = at, at = at->next)
        if (at == w) {
            *(before ? &before->next : &c->first) = w->next;
            c->last = c->last == w ? before : c->last;
            return;
        }
}

static bool go_together(const dr__remote_work *a, const dr__remote_work *b)
{
    return !a || !b || (a->seed == b->seed && a->epoch == b->epoch && a->graph == b->graph && a->outputs == b->outputs);
}

/* Takes the oldest wishes that go together. */
static void form_group(dr__remote_client *c, struct group *g)
{
    const dr__remote_work *work = NULL;
    g->client = c;
    g->n = 0;
    for (struct wish *w = c->first, *next; w && g->n < DR__REMOTE_GROUP; w = next) {
        next = w->next;
        if (!go_together(work, w->asked->work))
            continue;
        work = work ? work : w->asked->work;
        dequeue(c, w);
        w->at = SENT;
        g->wishes[g->n] = w;
        w->in = &g->wishes[g->n++];
    }
}

/* Someone else sends what is left in the queue. */
static void pass_on(dr__remote_client *c)
{
    if (c->first && c->requests < DR__REMOTE_REQUESTS)
        dr__cond_signal(&c->first->changed);
}

/* Waits until a wish is done, and sends requests where that is not done by others. */
static void fulfil(dr__remote_client *c, struct wish *w)
{
    pthread_mutex_lock(&c->lock);
    enqueue(c, w);
    while (w->at != DONE) {
        if (is_cancelled()) {
            if (w->at == WAITING)
                dequeue(c, w);
            else
                *w->in = NULL;
            w->status = dr__fail(&w->err, DR_ERR_CANCELLED, "%s: cancelled", c->name);
            break;
        }
        if (w->at == SENT || c->requests >= DR__REMOTE_REQUESTS) {
            dr__cond_wait(&w->changed, &c->lock, dr__now_ns() + POLL_NS);
            continue;
        }
        struct group g;
        form_group(c, &g);
        c->requests++;
        pass_on(c);
        pthread_mutex_unlock(&c->lock);
        send_group(&g);
        pthread_mutex_lock(&c->lock);
        c->requests--;
    }
    pass_on(c);
    pthread_mutex_unlock(&c->lock);
}

/* The pieces of an answer with ranges, which have to be those that were asked for. */
static dr_status read_pieces(const dr__remote_client *c, const struct wish *w, dr__record *record, dr_error *err)
{
    const dr__byte_ranges *wanted = w->asked->ranges;
    dr__remote_range *ranges = dr__alloc_zero(DR__REMOTE_RANGES, sizeof *ranges);
    const uint8_t *bytes;
    int n;
    dr_status status = ranges ? dr__remote_read_segments(&w->head, w->payload, ranges, &n, &bytes, err) : DR_ERR_NOMEM;
    bool right = status == DR_OK && n == wanted->n;
    for (int i = 0; right && i < n; i++)
        right = ranges[i].offset == wanted->at[i].offset && ranges[i].size == wanted->at[i].size;
    dr__free(ranges);
    if (status == DR_OK && !right)
        return dr__fail(err, DR_ERR_FORMAT, "%s: an answer with other ranges than were asked for", c->name);
    uint8_t *to = status == DR_OK ? dr__record_take_ranges(record, wanted) : NULL;
    if (to)
        memcpy(to, bytes, (size_t)dr__byte_ranges_total(wanted));
    else if (status == DR_OK || status == DR_ERR_NOMEM)
        return dr__fail(err, DR_ERR_NOMEM, "%s: out of memory for ranges of a sample", c->name);
    return status;
}

/* What the frame of a wish says. */
static dr_status read_frame(const dr__remote_client *c, const struct wish *w, dr__record *record,
                            dr__remote_answer *answer, dr_error *err)
{
    dr_error why;
    DR_TRY(dr__remote_check(&w->head, w->payload, err));
    answer->prefix = w->head.prefix;
    answer->bytes = DR__REMOTE_HEAD + w->head.size;
    answer->cpu_ns = (uint64_t)w->head.cpu_us * 1000;
    answer->segments = w->head.kind == DR__REMOTE_SEGMENTS;
    const bool whole = w->head.kind == DR__REMOTE_SAMPLE && w->head.prefix == 0;
    if ((answer->segments && !w->asked->ranges) || (whole && w->asked->ranges && !w->asked->prefix))
        return dr__fail(err, DR_ERR_FORMAT, "%s: an answer to what was not asked", c->name);
    switch (w->head.kind) {
    case DR__REMOTE_SEGMENTS:
        return read_pieces(c, w, record, err);
    case DR__REMOTE_SAMPLE:
        return dr__remote_read_sample(&w->head, w->payload, record, err);
    case DR__REMOTE_ERROR:
        DR_TRY(dr__remote_read_error(&w->head, w->payload, &why, err));
        answer->told = true;
        return dr__fail(err, why.status < 0 ? why.status : DR_ERR_IO, "%s", why.text);
    default:
        return dr__fail(err, DR_ERR_FORMAT, "%s: an answer to what was not asked", c->name);
    }
}

dr_status dr__remote_client_sample(dr__remote_client *c, const dr__remote_wish *asked, dr__record *record,
                                   dr__remote_answer *answer, dr_error *err)
{
    dr_status status = DR_ERR_FORMAT;
    *answer = (dr__remote_answer){ 0 };
    for (int i = 0; i < DAMAGED_MOST && status == DR_ERR_FORMAT; i++) {
        /* beside its fields a payload has their descriptions */
        struct wish w = { .asked = asked,
                          .most = (record->max_bytes ? record->max_bytes : (size_t)1 << 32) + (1 << 20) };
        dr__cond_init(&w.changed);
        fulfil(c, &w);
        status = w.status;
        answer->refused = status == DR_ERR_UNSUPPORTED;
        if (status != DR_OK)
            dr__fail(err, status, "%s", w.err.text);
        const bool is_error = status == DR_OK && w.head.kind == DR__REMOTE_ERROR;
        const uint64_t start = dr__now_ns();
        if (status == DR_OK)
            status = read_frame(c, &w, record, answer, err);
        answer->read_ns = dr__now_ns() - start;
        dr__cond_destroy(&w.changed);
        dr__free(w.payload);
        if (is_error) /* of the sample: asking again makes no difference */
            break;
    }
    return status;
}
