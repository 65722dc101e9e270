/* remote_client.h: a drapps server as the clients of one of its data sets see it.
 *
 * Threads that want samples are joined in requests: one of them sends a request for all that wait, hands each its frame
 * as it arrives, and the next one takes over.  So requests have as many samples as there are threads waiting, a few
 * requests are in flight at once, and no thread of its own is needed.
 *
 * A request is repeated until the timeout is over: lost connections and servers that are started anew cost time, but no
 * sample.  What fails then is no fault of a sample: DR_ERR_STATE, which ends an epoch whatever becomes of bad samples.
 */
#ifndef DR_FORMAT_REMOTE_CLIENT_H
#define DR_FORMAT_REMOTE_CLIENT_H

#include "format/remote_frame.h"
#include "source/transfer.h"

enum {
    DR__REMOTE_PORT = 9470,  /* where a name has none */
    DR__REMOTE_GROUP = 32,   /* most samples of one request */
    DR__REMOTE_REQUESTS = 4, /* most requests for samples in flight */
};

typedef struct dr__remote_client dr__remote_client;

/* Takes "drapps://host[:port]/set" or "drapps+https://..." apart; nothing is sent.
 *
 * @param options  credentials: a token; NULL: DRAPPS_TOKEN of the environment, else none.
 * @return DR_OK; DR_ERR_ARG: it is no such name; DR_ERR_UNSUPPORTED: no libcurl; DR_ERR_NOMEM. */
dr_status dr__remote_client_open(const char *name, const dr__source_options *options, dr__remote_client **out,
                                 dr_error *err);
void dr__remote_client_close(dr__remote_client **client);

/* The fingerprint that the set on the server must have from now on; 0: any. */
void dr__remote_client_expect(dr__remote_client *client, uint64_t fingerprint);

/* Reads something of the set, or of the server where `what` begins with a slash.
 *
 * @param what     "index", "files/a/b.jpg": not encoded.
 * @param etag     what is known already, answered by http 304 and DR_OK; NULL: nothing.
 * @param size     bytes from `offset` on; 0: all.
 * @return DR_OK; DR_ERR_NOT_FOUND: it is not there; DR_ERR_STATE: the server does not answer, refuses the token, or has
 *         another data set; DR_ERR_CANCELLED; DR_ERR_IO; DR_ERR_NOMEM. */
dr_status dr__remote_client_get(dr__remote_client *client, const char *what, const char *etag, uint64_t offset,
                                uint64_t size, dr__source_target *target, dr__transfer_reply *reply, dr_error *err);

/* What ops are applied to; the texts are borrowed and must stay what they are while the client is open. */
typedef struct dr__remote_work {
    uint64_t seed, epoch;
    uint64_t ops;        /* dr__op_set */
    const char *graph;   /* canonical JSON */
    const char *outputs; /* of the whole pipeline; NULL: the default */
} dr__remote_work;

typedef struct dr__remote_wish {
    uint64_t id;
    uint32_t occurrence;
    int prefix;                    /* how many ops; 0: the sample as it is stored */
    const dr__remote_work *work;   /* NULL with prefix 0 */
    const dr__byte_ranges *ranges; /* with prefix 0, of its image: not the sample, but these; NULL: the sample */
    uint64_t stamp;                /* with ranges: those of the sample that has this stamp */
    const char *codec;             /* of what ops make; borrowed, as the texts of its work; NULL: none */
} dr__remote_wish;

typedef struct dr__remote_answer {
    bool refused;     /* it failed because the server refuses such requests, whatever the sample */
    bool told;        /* it failed because the server says so of this sample */
    int prefix;       /* how many ops were applied: as asked, or fewer */
    uint64_t bytes;   /* that were sent for it */
    uint64_t cpu_ns;  /* of the server */
    uint64_t read_ns; /* that the client took to check and decompress it */
} dr__remote_answer;

/* Reads a sample into a record: its fields, or what crosses the cut behind answer->prefix ops; or ranges of it, which
 * become the pieces of the record's part, whose fields stay as they are.
 *
 * @return DR_OK; the status that the server has for the sample, with the text it has (ranges of a sample that has
 *         another stamp by now: DR_ERR_STATE, and answer->told); DR_ERR_UNSUPPORTED: the server
 *         refuses such requests; DR_ERR_LIMIT: too large; DR_ERR_FORMAT: what was sent is damaged, several times;
 *         DR_ERR_STATE, DR_ERR_CANCELLED, DR_ERR_NOMEM: as above. */
dr_status dr__remote_client_sample(dr__remote_client *client, const dr__remote_wish *wish, dr__record *record,
                                   dr__remote_answer *answer, dr_error *err);

/* What was done since the client was opened. */
typedef struct dr__remote_counts {
    uint64_t requests, samples;
    uint64_t bytes;   /* received */
    uint64_t busy_ns; /* while at least one request was in flight */
} dr__remote_counts;

void dr__remote_client_counts(dr__remote_client *client, dr__remote_counts *out);

/* "drapps://host:port/set" */
const char *dr__remote_client_name(const dr__remote_client *client);

#endif
