/* transfer_attempt.c: one sending of a request.
 *
 * The answer's header is judged when the body begins, or at the end where there is none: an answer that does not begin
 * where the job's bytes end is skipped up to there, or refused.  From then on the job has a winner, and whatever else
 * was sent for it is lost. */
#include "source/transfer_parts.h"

#ifdef DR_HAVE_CURL

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"

enum {
    CONNECT_MS = 10000,
    BUFFER_BYTES = 256 * 1024,
    FIRST_ROOM = 64 * 1024,
    MAX_SKIP = 8 << 20, /* what is read and discarded where a server ignores ranges */
    MAX_REDIRECTS = 5,
    MAX_SOCKETS = 1024,
};

/* --- sockets: a child must not keep the parent's open --- */

/* All that libcurl opened.  It closes those on which it never connected by itself, without a call: their numbers may
 * be those of other files by now, which the inode tells apart.  Used with t.libcurl locked, as every fork does. */
static struct {
    int fd; /* + 1; 0: free */
    ino_t inode;
} sockets[MAX_SOCKETS];

static ino_t inode_of(int fd)
{
    struct stat facts;
    return fstat(fd, &facts) == 0 && S_ISSOCK(facts.st_mode) ? facts.st_ino : 0;
}

static void forget_socket(int fd)
{
    for (size_t i = 0; i < MAX_SOCKETS; i++)
        if (sockets[i].fd == fd + 1)
            sockets[i].fd = 0;
}

curl_socket_t dr__transfer_open_socket(void *user, curlsocktype purpose, struct curl_sockaddr *a)
{
    (void)user, (void)purpose;
    const int fd = socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
    if (fd < 0)
        return CURL_SOCKET_BAD;
    forget_socket(fd);
    for (size_t i = 0; i < MAX_SOCKETS; i++)
        if (!sockets[i].fd) {
            sockets[i].fd = fd + 1;
            sockets[i].inode = inode_of(fd);
            break;
        }
    return fd;
}

int dr__transfer_close_socket(void *user, curl_socket_t fd)
{
    (void)user;
    forget_socket((int)fd);
    return close((int)fd);
}

void dr__transfer_close_sockets_in_child(void)
{
    for (size_t i = 0; i < MAX_SOCKETS; i++) {
        const int fd = sockets[i].fd - 1;
        if (fd >= 0 && sockets[i].inode && inode_of(fd) == sockets[i].inode)
            close(fd);
        sockets[i].fd = 0;
    }
}

/* --- the answer --- */

static bool is_success(const dr__attempt *a)
{
    return a->facts.status >= 200 && a->facts.status < 300;
}

static bool refuse(dr__attempt *a, dr_status status, const char *text)
{
    a->refused = dr__fail(&a->job->err, status, "%s: %s", a->job->name, text);
    return false;
}

/* The object is another one than that of the bytes which are there: they are given up. */
static bool start_over(dr__attempt *a)
{
    dr__job *j = a->job;
    if (j->streams)
        return refuse(a, DR_ERR_IO, "changed on the server while it was read");
    j->got = 0;
    snprintf(j->failure, sizeof j->failure, "the object changed while it was read");
    a->refused = DR_AGAIN;
    return false;
}

static bool has_strong_tag(const char *etag)
{
    return etag[0] == '"';
}

static bool same_object(const dr__job *j, const dr__http_facts *f, uint64_t total)
{
    if (j->etag[0] && strcmp(j->etag, f->etag) != 0)
        return false;
    return j->total == UINT64_MAX || total == UINT64_MAX || j->total == total;
}

/* Some servers send a range with the status of a whole object: its Content-Range tells. */
static void recognise_part(dr__attempt *a)
{
    dr__http_facts *f = &a->facts;
    if (f->status == 200 && a->asked_range && f->has_range &&
        (f->length == UINT64_MAX || f->length == f->last - f->first + 1))
        f->status = 206;
}

/* Where the body begins, and how much of it is wanted. */
static bool place_body(dr__attempt *a, uint64_t *total)
{
    const dr__transfer_request *q = a->job->request;
    const dr__http_facts *f = &a->facts;
    const uint64_t at = q->offset + a->from, wanted = q->size ? q->size - a->from : UINT64_MAX;
    a->left = wanted;
    if (f->status == 206) {
        if (!a->asked_range || !f->has_range || f->first != at)
            return refuse(a, DR_ERR_IO, "the server answered with another range than it was asked for");
        *total = f->range_total;
        a->left = DR_MIN(wanted, f->last - f->first + 1);
        return true;
    }
    *total = f->length;
    if (a->asked_range && at > MAX_SKIP)
        return refuse(a, DR_ERR_UNSUPPORTED, "the server cannot read ranges, which shards and large objects need");
    a->skip = a->asked_range ? at : 0;
    if (f->length != UINT64_MAX)
        a->left = DR_MIN(wanted, f->length > a->skip ? f->length - a->skip : 0);
    return true;
}

/* Memory for the body, as far as its size is known. */
static bool make_room(dr__attempt *a, size_t need)
{
    dr__job *j = a->job;
    dr_status status = DR_ERR_NOMEM;
    need = DR_MAX(need, 1); /* an empty object has memory, too */
    if (!j->target || need <= j->cap)
        return true;
    size_t room = j->cap > SIZE_MAX / 2 ? need : DR_MAX(DR_MAX(need, 2 * j->cap), FIRST_ROOM);
    if (a->facts.length != UINT64_MAX || a->facts.status == 206)
        room = need;
    j->memory = j->target->reserve(j->target, room, (size_t)j->got, &status, &j->err);
    if (!j->memory) {
        a->refused = status;
        j->err.status = status;
        dr__error_prefix(&j->err, "%s", j->name);
        return false;
    }
    j->cap = room;
    return true;
}

/* Decides about an answer of success; false: it is not used. */
static bool accept_answer(dr__attempt *a)
{
    dr__job *j = a->job;
    const dr__transfer_request *q = j->request;
    uint64_t total = UINT64_MAX;
    if (j->winner && j->winner != a) {
        a->lost = true;
        return false;
    }
    recognise_part(a);
    if (!place_body(a, &total))
        return false;
    if (q->version && a->facts.etag[0] && strcmp(q->version, a->facts.etag) != 0)
        return refuse(a, DR_ERR_STATE, "was changed while the data set is open");
    if (a->from && !same_object(j, &a->facts, total))
        return start_over(a);
    if (a->left != UINT64_MAX && (a->left > SIZE_MAX - a->from || !make_room(a, (size_t)(a->from + a->left))))
        return a->refused ? false : refuse(a, DR_ERR_LIMIT, "too large for memory");
    memcpy(j->etag, a->facts.etag, sizeof j->etag);
    j->total = total;
    j->winner = a;
    a->accepted = true;
    return true;
}

static void add_said(dr__attempt *a, const char *data, size_t n)
{
    const size_t used = strlen(a->said), more = DR_MIN(n, sizeof a->said - 1 - used);
    memcpy(a->said + used, data, more);
    a->said[used + more] = 0;
    for (char *c = a->said + used; *c; c++)
        if ((unsigned char)*c < ' ' && *c != '\n')
            *c = ' ';
}

/* Takes bytes that are wanted; returns false where the attempt ends. */
static bool take_bytes(dr__attempt *a, const uint8_t *data, size_t n, bool *full)
{
    dr__job *j = a->job;
    if (j->streams) {
        bool no_memory = false;
        if (!dr__stream_put(j, data, n, &no_memory)) {
            *full = !no_memory;
            return *full || refuse(a, DR_ERR_NOMEM, "out of memory");
        }
    } else if (j->target) {
        if (n > SIZE_MAX - j->got || !make_room(a, (size_t)j->got + n))
            return a->refused ? false : refuse(a, DR_ERR_LIMIT, "too large for memory");
        memcpy(j->memory + j->got, data, n);
    }
    j->got += n;
    a->left -= a->left == UINT64_MAX ? 0 : n;
    return true;
}

/* libcurl: bytes of the body have come.  Another number than they are ends the attempt. */
static size_t on_body(char *data, size_t one, size_t n, void *user)
{
    dr__attempt *a = user;
    (void)one;
    a->last_ns = dr__now_ns();
    if (!is_success(a)) {
        add_said(a, data, n);
        return n;
    }
    if (!a->accepted && !accept_answer(a))
        return 0;
    const size_t skipped = (size_t)DR_MIN(a->skip, n), use = (size_t)DR_MIN(n - skipped, a->left);
    bool full = false;
    if (use && !take_bytes(a, (uint8_t *)data + skipped, use, &full))
        return 0;
    if (full) {
        a->paused_at_ns = a->last_ns;
        return CURL_WRITEFUNC_PAUSE;
    }
    a->skip -= skipped;
    a->complete = a->left == 0 && skipped + use < n;
    return a->complete ? 0 : n;
}

static size_t on_header(char *line, size_t one, size_t n, void *user)
{
    dr__attempt *a = user;
    (void)one;
    a->last_ns = dr__now_ns();
    if (!a->first_ns)
        a->first_ns = a->last_ns;
    dr__http_facts_line(&a->facts, line, n, (int64_t)time(NULL));
    return n;
}

/* --- the request --- */

static const char *method_of(const dr__transfer_request *q)
{
    return q->method ? q->method : q->body ? "POST" : "GET";
}

static bool add_header(const dr__curl_calls *curl, dr__attempt *a, const char *line)
{
    struct curl_slist *list = curl->slist_append(a->headers, line);
    if (list)
        a->headers = list;
    return list;
}

/* A resumed body must be of the same object: the server is asked to say so, and accept_answer looks, too. */
static bool set_headers(const dr__curl_calls *curl, dr__attempt *a)
{
    const dr__transfer_request *q = a->job->request;
    const char *version = q->version && has_strong_tag(q->version)  ? q->version
                          : a->from && has_strong_tag(a->job->etag) ? a->job->etag
                                                                    : NULL;
    char line[300];
    bool good = !q->body || add_header(curl, a, "Expect:"); /* older libraries sign it, though it is not sent */
    for (const char *const *h = q->headers; good && h && *h; h++)
        good = add_header(curl, a, *h);
    if (good && version) {
        snprintf(line, sizeof line, "If-Match: %s", version);
        good = add_header(curl, a, line);
    }
    curl->easy_setopt(a->easy, CURLOPT_HTTPHEADER, a->headers);
    return good;
}

static void set_range(const dr__curl_calls *curl, dr__attempt *a)
{
    const dr__transfer_request *q = a->job->request;
    const uint64_t first = q->offset + a->from;
    char text[64];
    a->asked_range = q->size || first;
    if (!a->asked_range)
        return;
    if (q->size)
        snprintf(text, sizeof text, "%" PRIu64 "-%" PRIu64, first, q->offset + q->size - 1);
    else
        snprintf(text, sizeof text, "%" PRIu64 "-", first);
    curl->easy_setopt(a->easy, CURLOPT_RANGE, text);
}

static void set_method(const dr__curl_calls *curl, dr__attempt *a)
{
    const dr__transfer_request *q = a->job->request;
    const char *method = method_of(q);
    if (q->body) {
        curl->easy_setopt(a->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body_size);
        curl->easy_setopt(a->easy, CURLOPT_POSTFIELDS, (const char *)q->body);
    }
    if (!strcmp(method, "HEAD"))
        curl->easy_setopt(a->easy, CURLOPT_NOBODY, 1L);
    else if (strcmp(method, q->body ? "POST" : "GET") != 0)
        curl->easy_setopt(a->easy, CURLOPT_CUSTOMREQUEST, method);
}

static void set_credentials(const dr__curl_calls *curl, dr__attempt *a)
{
    const dr__transfer_request *q = a->job->request;
    if (q->user)
        curl->easy_setopt(a->easy, CURLOPT_USERNAME, q->user);
    if (q->password)
        curl->easy_setopt(a->easy, CURLOPT_PASSWORD, q->password);
    if (q->sigv4)
        curl->easy_setopt(a->easy, CURLOPT_AWS_SIGV4, q->sigv4);
    else if (q->token) {
        curl->easy_setopt(a->easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
        curl->easy_setopt(a->easy, CURLOPT_XOAUTH2_BEARER, q->token);
    } else if (q->user)
        curl->easy_setopt(a->easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
}

static void set_tls(const dr__curl_calls *curl, dr__attempt *a)
{
    const char *file = a->job->request->ca_file;
    file = file ? file : getenv("CURL_CA_BUNDLE");
    file = file && *file ? file : getenv("SSL_CERT_FILE");
    if (file && *file)
        curl->easy_setopt(a->easy, CURLOPT_CAINFO, file);
}

static void set_options(const dr__curl_calls *curl, dr__attempt *a, bool hedge)
{
    const dr__transfer_request *q = a->job->request;
    const bool tls = !strncasecmp(q->url, "https:", 6);
    CURL *c = a->easy;
    curl->easy_setopt(c, CURLOPT_PRIVATE, a);
    curl->easy_setopt(c, CURLOPT_URL, q->url);
    curl->easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl->easy_setopt(c, CURLOPT_ERRORBUFFER, a->failure);
    curl->easy_setopt(c, CURLOPT_USERAGENT, "drapps/" DR_VERSION);
    curl->easy_setopt(c, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    curl->easy_setopt(c, CURLOPT_REDIR_PROTOCOLS,
                      tls ? (long)CURLPROTO_HTTPS : (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    curl->easy_setopt(c, CURLOPT_FOLLOWLOCATION, q->direct ? 0L : 1L);
    curl->easy_setopt(c, CURLOPT_MAXREDIRS, (long)MAX_REDIRECTS);
    curl->easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    curl->easy_setopt(c, CURLOPT_BUFFERSIZE, (long)BUFFER_BYTES);
    curl->easy_setopt(c, CURLOPT_TCP_KEEPALIVE, 1L);
    curl->easy_setopt(c, CURLOPT_PIPEWAIT, tls && !hedge ? 1L : 0L);
    curl->easy_setopt(c, CURLOPT_FRESH_CONNECT, hedge || a->job->fresh ? 1L : 0L);
    curl->easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
    curl->easy_setopt(c, CURLOPT_WRITEDATA, a);
    curl->easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
    curl->easy_setopt(c, CURLOPT_HEADERDATA, a);
    curl->easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, dr__transfer_open_socket);
    curl->easy_setopt(c, CURLOPT_CLOSESOCKETFUNCTION, dr__transfer_close_socket);
}

dr__attempt *dr__attempt_new(const dr__curl_calls *curl, dr__job *j, bool hedge)
{
    dr__attempt *a = dr__alloc_zero(1, sizeof *a);
    if (!a)
        return NULL;
    a->job = j;
    a->easy = curl->easy_init();
    a->began_ns = a->last_ns = dr__now_ns();
    a->from = j->got;
    a->left = UINT64_MAX;
    dr__http_facts_clear(&a->facts);
    if (a->easy) {
        set_options(curl, a, hedge);
        set_method(curl, a);
        set_range(curl, a);
        set_credentials(curl, a);
        set_tls(curl, a);
    }
    if (!a->easy || !set_headers(curl, a))
        dr__attempt_free(curl, a), a = NULL;
    return a;
}

void dr__attempt_free(const dr__curl_calls *curl, dr__attempt *a)
{
    if (a->easy)
        curl->easy_cleanup(a->easy);
    curl->slist_free_all(a->headers);
    dr__free(a);
}

/* --- the end --- */

static void fill_reply(const dr__curl_calls *curl, const dr__attempt *a)
{
    const dr__job *j = a->job;
    dr__transfer_reply *r = j->reply;
    const dr__http_facts *f = &a->facts;
    char *url = NULL;
    long redirects = 0;
    r->http = f->status;
    r->got = j->got;
    r->total = f->status == 206 || f->status == 416 ? f->range_total : f->length;
    r->mtime_ns = f->mtime_s * 1000000000;
    memcpy(r->etag, f->etag, sizeof r->etag);
    memcpy(r->content_type, f->content_type, sizeof r->content_type);
    memcpy(r->headers, f->extra, sizeof r->headers);
    memcpy(r->said, a->said, sizeof r->said);
    memcpy(r->location, f->location, sizeof r->location);
    if (curl->easy_getinfo(a->easy, CURLINFO_REDIRECT_COUNT, &redirects) == CURLE_OK && redirects > 0 &&
        curl->easy_getinfo(a->easy, CURLINFO_EFFECTIVE_URL, &url) == CURLE_OK && url)
        snprintf(r->location, sizeof r->location, "%s", strlen(url) < sizeof r->location ? url : "");
}

static const char *meaning_of(int http)
{
    static const struct {
        int http;
        const char *text;
    } meanings[] = {
        { 400, "bad request" },
        { 401, "not authorised: credentials are missing, wrong or expired" },
        { 403, "access denied" },
        { 404, "not found" },
        { 405, "the server does not allow this method" },
        { 407, "the proxy wants a login" },
        { 408, "the server gave up waiting" },
        { 409, "conflict" },
        { 410, "gone" },
        { 412, "it has another version now" },
        { 416, "the server has no such range" },
        { 429, "too many requests" },
        { 500, "the server failed" },
        { 502, "the server behind a proxy failed" },
        { 503, "the server is overloaded or down" },
        { 504, "the server behind a proxy did not answer" },
    };
    for (size_t i = 0; i < DR_COUNT(meanings); i++)
        if (meanings[i].http == http)
            return meanings[i].text;
    return http < 400 ? "redirected" : http < 500 ? "refused" : "the server failed";
}

static dr__verdict judge_http(dr__attempt *a, uint64_t *retry_after_ns)
{
    dr__job *j = a->job;
    const int http = a->facts.status;
    const bool idempotent = j->request->idempotent || !j->request->body;
    snprintf(j->failure, sizeof j->failure, "HTTP %d: %s", http, meaning_of(http));
    if (http == 416 && a->asked_range &&
        (a->facts.range_total == UINT64_MAX || a->facts.range_total <= j->request->offset + a->from)) {
        j->total = a->facts.range_total;
        return DR__VERDICT_DONE; /* the object ends before it */
    }
    if (http == 412 && a->from && !j->request->version)
        return start_over(a), a->refused == DR_AGAIN ? DR__VERDICT_RETRY : DR__VERDICT_FAILED;
    if (dr__retry_http(http, j->tries) && (idempotent || dr__retry_http_refused(http))) {
        *retry_after_ns = a->facts.retry_ns;
        return DR__VERDICT_RETRY;
    }
    const dr_status status = http == 404 || http == 410 ? DR_ERR_NOT_FOUND : http == 412 ? DR_ERR_STATE : DR_ERR_IO;
    if (http >= 300 && http < 400 && a->facts.location[0])
        dr__fail(&j->err, status, "%s: %s to %.300s", j->name, j->failure, a->facts.location);
    else
        dr__fail(&j->err, status, "%s: %s", j->name,
                 http == 412 ? "was changed while the data set is open" : j->failure);
    return DR__VERDICT_FAILED;
}

/* The end of an answer of success: all of it, or a range that the server cut short. */
static dr__verdict judge_complete(dr__attempt *a)
{
    dr__job *j = a->job;
    if (!a->accepted && !accept_answer(a)) /* it has no body */
        return a->refused == DR_AGAIN || !a->refused ? DR__VERDICT_RETRY : DR__VERDICT_FAILED;
    const uint64_t end = j->request->offset + j->got, total = a->facts.range_total;
    if (a->left == UINT64_MAX && !j->request->size && !make_room(a, (size_t)j->got))
        return DR__VERDICT_FAILED;
    const bool more = a->facts.status == 206 && (!j->request->size || j->got < j->request->size) && end < total;
    if (more && total != UINT64_MAX && j->got > a->from)
        return DR__VERDICT_CONTINUE;
    return DR__VERDICT_DONE;
}

/* Errors that another try does not change. */
static bool is_final(CURLcode code)
{
    static const CURLcode finals[] = {
        CURLE_UNSUPPORTED_PROTOCOL,     CURLE_URL_MALFORMAT,      CURLE_NOT_BUILT_IN,
        CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM,    CURLE_SSL_CIPHER,
        CURLE_SSL_CACERT_BADFILE,       CURLE_SSL_ISSUER_ERROR,   CURLE_SSL_PINNEDPUBKEYNOTMATCH,
        CURLE_SSL_INVALIDCERTSTATUS,    CURLE_TOO_MANY_REDIRECTS, CURLE_BAD_FUNCTION_ARGUMENT,
        CURLE_UNKNOWN_OPTION,           CURLE_LOGIN_DENIED,       CURLE_OUT_OF_MEMORY
    };
    for (size_t i = 0; i < DR_COUNT(finals); i++)
        if (code == finals[i])
            return true;
    return false;
}

static bool never_sent(CURLcode code)
{
    return code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY || code == CURLE_COULDNT_CONNECT ||
           code == CURLE_SSL_CONNECT_ERROR;
}

static void say_failure(const dr__curl_calls *curl, dr__attempt *a, CURLcode code)
{
    dr__job *j = a->job;
    const char *text = a->failure[0] ? a->failure : curl->easy_strerror(code);
    const char *kind =
        code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE || code == CURLE_SSL_CONNECT_ERROR
            ? "TLS: "
            : "";
    snprintf(j->failure, sizeof j->failure, "%s%.300s", kind, text);
}

static dr__verdict judge_error(const dr__curl_calls *curl, dr__attempt *a, CURLcode code)
{
    dr__job *j = a->job;
    const bool idempotent = j->request->idempotent || !j->request->body;
    const bool begun = j->streams && j->got;
    const bool resumable = !strcmp(method_of(j->request), "GET") && (has_strong_tag(j->etag) || !begun);
    say_failure(curl, a, code);
    bool retry = !is_final(code) && (idempotent || never_sent(code)) && (!begun || resumable);
    if (retry && !j->host->answered && never_sent(code) && j->tries >= DR__RETRY_STRANGERS)
        retry = false;
    if (retry) {
        if (j->got && (!resumable || !has_strong_tag(j->etag)))
            j->got = 0;
        j->fresh = true;
        return DR__VERDICT_RETRY;
    }
    const dr_status status = code == CURLE_OUT_OF_MEMORY                                         ? DR_ERR_NOMEM
                             : code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL ? DR_ERR_ARG
                                                                                                 : DR_ERR_IO;
    dr__fail(&j->err, status, "%s: %s", j->name, j->failure);
    return DR__VERDICT_FAILED;
}

dr__verdict dr__attempt_ended(const dr__curl_calls *curl, dr__attempt *a, CURLcode code, uint64_t *retry_after_ns)
{
    dr__job *j = a->job;
    dr__verdict verdict;
    if (a->facts.status)
        j->host->answered = true;
    if (a->lost)
        return DR__VERDICT_RETRY;
    if (a->refused)
        verdict = a->refused == DR_AGAIN ? DR__VERDICT_RETRY : DR__VERDICT_FAILED;
    else if (a->complete)
        verdict = DR__VERDICT_DONE;
    else if (code != CURLE_OK)
        verdict = judge_error(curl, a, code);
    else
        verdict = is_success(a) ? judge_complete(a) : judge_http(a, retry_after_ns);
    fill_reply(curl, a);
    if (verdict == DR__VERDICT_DONE && j->reply->total == UINT64_MAX && !j->request->size && is_success(a))
        j->reply->total = j->request->offset + j->got; /* its size was not announced */
    return verdict;
}

#endif
