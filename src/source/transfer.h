/* transfer.h: requests over HTTP, for sources and for clients of servers.
 *
 * A call blocks until its request is done.  One thread of the process carries out the requests of all calls, over
 * connections that it keeps; so many calls at once share connections, and the limits of dr__transfer_limits.  The
 * thread is started by the first call, and in the child of a fork by the child's first call.
 *
 * What goes wrong on the way is tried again, at growing intervals with jitter, until the timeout of the request is
 * over: lost connections, answers 408, 425, 429, 500, 502, 503 and 504 (a Retry-After is respected), and bodies that
 * end early, which are resumed where they broke off if the server says that the object is still the same.  A server
 * that was never reached before is given up after a few tries: its name is probably wrong.  A request that is not
 * idempotent is tried again only where the server cannot have begun it.
 *
 * Where an answer takes much longer to begin than those before it, the request is sent a second time, and the answer
 * that begins first is used; so one slow connection or server out of many holds up nobody.  At most one request in
 * sixteen is sent twice.
 *
 * libcurl is loaded when it is first needed.  Without it, every call is DR_ERR_UNSUPPORTED and says what to install.
 */
#ifndef DR_SOURCE_TRANSFER_H
#define DR_SOURCE_TRANSFER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "source/source.h"

/* A request.  Zeros are the defaults.  All texts are borrowed for the call. */
typedef struct dr__transfer_request {
    const char *name;           /* what messages call the object; NULL: the URL */
    const char *method;         /* NULL: GET, or POST where there is a body */
    const char *url;            /* http:// or https://, percent-encoded */
    const char *const *headers; /* "Name: value", NULL-ended; NULL: none */
    const void *body;           /* NULL: none */
    size_t body_size;
    uint64_t offset;      /* where to begin in the object */
    uint64_t size;        /* how many bytes of it; 0: to its end.  Fewer arrive only where it ends */
    uint64_t timeout_ns;  /* the longest time the call waits, tries included; 0: 5 minutes */
    uint64_t idle_ns;     /* the longest time without a byte before it is tried again; 0: 20 seconds */
    const char *sigv4;    /* for signatures of AWS: "aws:amz:REGION:SERVICE"; user and password are the keys */
    const char *user;     /* NULL: none */
    const char *password; /* NULL: none */
    const char *token;    /* "Authorization: Bearer TOKEN"; NULL: none.  Not sent to where it is redirected */
    const char *ca_file;  /* certificates to trust; NULL: of CURL_CA_BUNDLE or SSL_CERT_FILE, else the system's */
    const char *version;  /* the entity tag that the object must have, else DR_ERR_STATE; NULL: any */
    bool idempotent;      /* may be carried out twice.  GET and HEAD always are */
    bool no_hedge;        /* never send it twice at once */
    bool direct;          /* do not follow redirects: the answer 3xx is an error with its status and location */
} dr__transfer_request;

enum { DR__TRANSFER_HEADERS = 2048, DR__TRANSFER_SAID = 2048 };

/* What was answered.  Filled as far as it is known after failures, too. */
typedef struct dr__transfer_reply {
    int http;         /* the status; 0: no answer */
    uint64_t got;     /* bytes of the body that were delivered */
    uint64_t total;   /* bytes of the whole object; UINT64_MAX: not known */
    int64_t mtime_ns; /* of its last modification, since 1970; 0: not known */
    char etag[256];   /* with its quotes; "": none, or longer than that */
    char content_type[128];
    char location[512];                 /* where redirects led to, or where an answer 3xx points to; "": nowhere */
    char headers[DR__TRANSFER_HEADERS]; /* those that begin with "x-", as "name: value\n" in lower-case names */
    char said[DR__TRANSFER_SAID];       /* the beginning of the body of an answer of status 300 or more */
    unsigned tries;                     /* how often it was sent, hedges left out */
} dr__transfer_reply;

/* The value of a header of the reply that begins with "x-"; `name` in lower case.  False: it is not there, or does not
 * fit into `size`. */
bool dr__transfer_header(const dr__transfer_reply *reply, const char *name, char *text, size_t size);

/* A consumer of a body as it arrives.  Callers put their own struct around it. */
typedef struct dr__transfer_sink {
    /* Takes the next bytes; is called in the thread of the caller.  DR_END ends the transfer without an error, any
     * other status than DR_OK with it. */
    dr_status (*take)(struct dr__transfer_sink *sink, const uint8_t *data, size_t size, dr_error *err);
} dr__transfer_sink;

/* Sends a request and reads the answer's body into memory of the target (NULL: it has none, or it is discarded).
 * `reserve` of the target is called by another thread, while the caller waits.  reply may be NULL.
 *
 * DR_ERR_NOT_FOUND for 404 and 410; DR_ERR_STATE for an object that has another version than asked for;
 * DR_ERR_CANCELLED where dr__transfer_watch or dr__transfer_ask says so; DR_ERR_UNSUPPORTED where there is no libcurl,
 * or the server has no ranges; DR_ERR_ARG for a bad URL; else DR_ERR_IO.  Messages name the object, the host, and what
 * was tried. */
dr_status dr__transfer_run(const dr__transfer_request *request, dr__source_target *target, dr__transfer_reply *reply,
                           dr_error *err);

/* The same, with the body handed to a sink while it arrives.  At most some 2 MB of it wait for the sink.  A body that
 * breaks off is resumed if the request is a GET and the server says that the object is the same; else the call fails,
 * once the sink has had a byte. */
dr_status dr__transfer_stream(const dr__transfer_request *request, dr__transfer_sink *sink, dr__transfer_reply *reply,
                              dr_error *err);

/* While *cancel is true, calls in this thread end soon with DR_ERR_CANCELLED.  NULL: none, as at first.  Returns what
 * was set before. */
const atomic_bool *dr__transfer_watch(const atomic_bool *cancel);

/* While calls in this thread wait, they ask `interrupted` some 20 times a second whether to give up with
 * DR_ERR_CANCELLED.  NULL: nobody, as at first. */
void dr__transfer_ask(bool (*interrupted)(void *user), void *user);

/* How much may be in flight in the process. */
typedef struct dr__transfer_limits {
    unsigned requests; /* default 64 */
    uint64_t bytes;    /* of bodies; a larger one goes alone.  Default 256 MB */
} dr__transfer_limits;

void dr__transfer_set_limits(const dr__transfer_limits *limits);

/* What was done since the process began, or since it was forked. */
typedef struct dr__transfer_stats {
    uint64_t requests;  /* sent, retries and hedges included */
    uint64_t bytes;     /* of bodies received */
    uint64_t retries;   /* sent again after a failure */
    uint64_t hedges;    /* sent twice */
    uint64_t hedge_won; /* hedges that answered first */
    uint64_t resumed;   /* bodies continued after they broke off */
    uint64_t failed;    /* calls that failed */
    uint64_t connects;  /* connections made */
    unsigned in_flight; /* now */
    unsigned waiting;   /* calls that wait for their next try now */
    uint64_t wait_ns;   /* the longest time that one of these has waited */
    char trouble[256];  /* what the last failed try said, while calls wait; else "" */
} dr__transfer_stats;

void dr__transfer_get_stats(dr__transfer_stats *stats);

/* Is libcurl there?  Else err says why not. */
dr_status dr__transfer_available(dr_error *err);

#endif
