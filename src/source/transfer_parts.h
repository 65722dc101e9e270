/* transfer_parts.h: what the files of transfer.h share.
 *
 * transfer.c            the caller's side: waits, and hands a stream's bytes to its sink; limits, figures
 * transfer_thread.c     the thread: when a request is sent, sent twice, tried again, given up
 * transfer_attempt.c    one sending of a request: libcurl's handle, its callbacks, what its end means
 *
 * A job belongs to the thread from its submission until it is done, but for the fields that name the lock.
 */
#ifndef DR_SOURCE_TRANSFER_PARTS_H
#define DR_SOURCE_TRANSFER_PARTS_H

#ifdef DR_HAVE_CURL

#include "base/thread.h"
#include "source/curl_library.h"
#include "source/http_header.h"
#include "source/retry.h"
#include "source/transfer.h"

enum { DR__STREAM_ROOM = 1 << 20 };

struct dr__attempt;

/* A server, by scheme, name and port; kept for the life of the process. */
typedef struct dr__transfer_host {
    struct dr__transfer_host *next;
    bool answered;          /* it was reached once */
    dr__answer_times times; /* of requests GET */
    char name[];
} dr__transfer_host;

typedef struct dr__job {
    struct dr__job *next, *prev; /* in the thread's list */
    const dr__transfer_request *request;
    dr__source_target *target; /* or sink, or neither */
    bool streams;
    dr__transfer_reply *reply;
    char name[512]; /* for messages */
    dr__transfer_host *host;
    uint64_t began_ns, paused_ns;
    uint64_t due_ns;  /* when the next try may begin; UINT64_MAX: one is in flight */
    uint64_t idle_ns; /* see dr__transfer_request */
    uint64_t held;    /* bytes of the limit that are held for it */
    unsigned tries;
    bool hedged;   /* this try was sent twice */
    bool fresh;    /* the next try wants a connection of its own */
    bool resuming; /* the next try continues a body */
    struct dr__attempt *attempts[2];
    struct dr__attempt *winner; /* whose body is used */
    uint64_t got;               /* bytes of the body that are in memory, or were handed to the stream */
    uint8_t *memory;            /* the target's */
    size_t cap;
    char etag[256]; /* of the body whose first `got` bytes are there */
    uint64_t total;
    char failure[400]; /* of the last try */
    dr_error err;
    /* the lock */
    dr_status status; /* DR_AGAIN: not done */
    bool cancelled;
    dr__cond changed;
    uint8_t *waiting; /* a stream's bytes that the sink has not had */
    size_t n_waiting, waiting_cap;
} dr__job;

typedef enum dr__verdict {
    DR__VERDICT_DONE,
    DR__VERDICT_RETRY,    /* after a pause */
    DR__VERDICT_CONTINUE, /* at once */
    DR__VERDICT_FAILED,   /* job.err has the reason */
} dr__verdict;

typedef struct dr__attempt {
    dr__job *job;
    CURL *easy;
    struct curl_slist *headers;
    dr__http_facts facts;
    char failure[CURL_ERROR_SIZE];
    char said[DR__TRANSFER_SAID];
    uint64_t began_ns, first_ns, last_ns; /* first: of the answer; 0: none yet */
    uint64_t paused_at_ns;                /* 0: it is not paused */
    uint64_t from;                        /* bytes of the body that were there when it was sent */
    uint64_t skip;                        /* bytes to discard: the server sent the object from its beginning */
    uint64_t left;                        /* bytes that are wanted; UINT64_MAX: all that come */
    bool asked_range;
    bool accepted;     /* its answer is being used */
    bool complete;     /* it has all bytes, and was ended before the server was */
    bool lost;         /* another attempt is used */
    dr_status refused; /* job.err has the reason why the answer cannot be used; DR_AGAIN: try again */
} dr__attempt;

/* Makes the handle of a try; NULL: out of memory. */
dr__attempt *dr__attempt_new(const dr__curl_calls *curl, dr__job *job, bool hedge);
void dr__attempt_free(const dr__curl_calls *curl, dr__attempt *attempt);

/* What the end of an attempt means for its job, which gets the text of a failure. */
dr__verdict dr__attempt_ended(const dr__curl_calls *curl, dr__attempt *attempt, CURLcode code,
                              uint64_t *retry_after_ns);

/* Hands bytes to a stream.  False: no room, to be tried again after the sink has taken some.  The thread calls it. */
bool dr__stream_put(dr__job *job, const uint8_t *data, size_t size, bool *no_memory);

/* Submits a job; the caller waits for its status.  DR_ERR_NOMEM, or DR_ERR_CANCELLED where the process ends. */
dr_status dr__transfer_submit(dr__job *job, dr_error *err);
void dr__transfer_lock(void);
void dr__transfer_unlock(void);
pthread_mutex_t *dr__transfer_mutex(void);
void dr__transfer_wake(void); /* the lock */

void dr__transfer_close_sockets_in_child(void);
curl_socket_t dr__transfer_open_socket(void *user, curlsocktype purpose, struct curl_sockaddr *address);
int dr__transfer_close_socket(void *user, curl_socket_t socket);

#endif
#endif
