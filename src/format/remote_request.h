/* remote_request.h: the body of POST /v1/sets/NAME/samples, by which a client asks a drapps server for samples.
 *
 *   {"seed": 0, "epoch": 3, "ops": "00c3...", "outputs": "image,label",
 *    "graph": {"version": 1, "nodes": [...]},
 *    "samples": [[17, 0, 2, "lz4"], [4, 0, 0, null], [5, 0, 0, null, [[0, 600], [9000, 400]], "0123456789abcdef"]]}
 *
 *   seed, epoch  what draws are keyed by.  Whole numbers, or texts of digits where they are above 2^63 - 1
 *   ops          16 hexadecimal digits: dr__op_set of the client; where the server has others, no op runs there
 *                Optional
 *   set          16 hexadecimal digits: the fingerprint of the set that ids mean samples of; where the server's has
 *                another one, it answers 409.  Optional
 *   outputs      the fields that the whole pipeline delivers: they decide what crosses a cut.  Optional: all
 *   graph        in canonical form.  Optional where no entry has a prefix
 *   samples      for each: its id, its occurrence in the epoch, how many nodes the server runs, and the codec of the
 *                result (null: none); ranges of the stored sample instead of ops, if there is a fifth value; with a
 *                sixth one, 16 hexadecimal digits, only of the sample that has this stamp in the index
 *
 * The parser is strict: unknown keys, wrong types and values out of range are errors.  Bytes of a request are not
 * trusted; limits are the caller's.
 */
#ifndef DR_FORMAT_REMOTE_REQUEST_H
#define DR_FORMAT_REMOTE_REQUEST_H

#include "format/remote_frame.h"

enum { DR__REMOTE_CODECS = 8, DR__REMOTE_NO_CODEC = 255 };

typedef struct dr__remote_entry {
    uint64_t id;
    uint32_t occurrence;
    uint16_t prefix;
    uint8_t codec; /* number in `codecs`, or DR__REMOTE_NO_CODEC */
    bool by_ranges;
    uint32_t first_range, n_ranges;
    uint64_t stamp; /* of ranges; 0: whatever is there */
} dr__remote_entry;

typedef struct dr__remote_request {
    uint64_t seed, epoch;
    uint64_t ops;  /* 0: not said */
    uint64_t set;  /* 0: not said */
    char *graph;   /* as JSON; NULL: none */
    char *outputs; /* NULL: all */
    dr__remote_entry *entries;
    size_t n_entries;
    dr__remote_range *ranges;
    size_t n_ranges, ranges_cap;
    char codecs[DR__REMOTE_CODECS][DR_CODEC_SPEC_TEXT];
    int n_codecs;
} dr__remote_request;

/* Parses a body.
 *
 * @param most_entries  how many samples one request may have.
 * @param out           the caller frees it; a failure leaves it empty.
 * @return DR_OK; DR_ERR_FORMAT: not such a body; DR_ERR_LIMIT: too many samples, ranges or codecs; DR_ERR_NOMEM. */
dr_status dr__remote_request_parse(const void *data, size_t size, size_t most_entries, dr__remote_request *out,
                                   dr_error *err);
void dr__remote_request_free(dr__remote_request *request);

/* Adds the body of a request to a text; out->failed: out of memory. */
void dr__remote_request_put(dr__text *out, const dr__remote_request *request);

/* Parses a list of fields, as in X-Drapps-Ops of the gateway form: the same object without "samples", with "prefix"
 * (a whole number), "occurrence" (optional) and "codec" (optional).  The request has one entry, with id 0. */
dr_status dr__remote_request_parse_single(const void *data, size_t size, dr__remote_request *out, dr_error *err);

#endif
