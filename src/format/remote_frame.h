/* remote_frame.h: samples as a drapps server sends them: frames, one after the other.
 *
 * A frame is a head of 40 bytes and a payload.  All numbers are little-endian.
 *
 *   u32 magic "DRF1"
 *   u8  kind       0 sample, 1 segments, 2 error
 *   u8  flags      0
 *   u16 n_fields   of a sample; else 0
 *   u64 id         of the sample
 *   u16 prefix     how many ops of the graph have run: 0 is the sample as it is stored
 *   u16 entry      the low 16 bits of the position that the sample has in the request, which may name a sample twice
 *   u32 cpu_us     CPU time that the server spent on it
 *   u64 size       of the payload
 *   u64 xxh3       of the payload
 *
 * The payload of a sample is its fields, in their order:
 *
 *   u64 size       of what follows the description
 *   u8  dtype
 *   u8  n_dims
 *   u8  layout
 *   u8  form       the kind of the array (dr_kind); with 0x80, the elements follow as they are, dense, else as a frame
 *                  of drapps/codec.h
 *   u32 dims[n_dims]
 *   f64 spacing[3] of volumes alone
 *   the bytes
 *
 * With prefix 0 these are the fields of the data set, as its format reads them.  With prefix k they are what crosses
 * the cut behind k nodes: the outputs of dr__prefix_offload's head.
 *
 * Segments are u32 n, u32 0, n times (u64 offset, u64 size), and the bytes of all of them: ranges of the stored sample.
 * The payload of an error is i32 dr_status and UTF-8 text.
 *
 * Parsers take any bytes: they read nothing outside, and what they return was checked.
 */
#ifndef DR_FORMAT_REMOTE_FRAME_H
#define DR_FORMAT_REMOTE_FRAME_H

#include <drapps/codec.h>

#include "base/text.h"
#include "format/dataset_internal.h"

#define DR__REMOTE_MAGIC "DRF1"
#define DR__REMOTE_TYPE "application/x-drapps-frames"

enum {
    DR__REMOTE_HEAD = 40,
    DR__REMOTE_RANGES = 4096,   /* most ranges of one sample */
    DR__REMOTE_GAP = 32,        /* bytes between two ranges that cost no more than a range does: 16 in the frame, and
                                   about as many in the request */
    DR__REMOTE_VERSION = 1,     /* of the protocol: of frames, requests and indexes */
    DR__REMOTE_ERROR_TEXT = 900 /* bytes of an error's text; longer ones are cut */
};

typedef enum dr__remote_kind {
    DR__REMOTE_SAMPLE = 0,
    DR__REMOTE_SEGMENTS = 1,
    DR__REMOTE_ERROR = 2,
} dr__remote_kind;

typedef struct dr__remote_head {
    dr__remote_kind kind;
    uint16_t n_fields;
    uint64_t id;
    uint16_t prefix, entry;
    uint32_t cpu_us;
    uint64_t size; /* of the payload */
    uint64_t sum;  /* its xxh3 */
} dr__remote_head;

/* A range of a stored sample. */
typedef struct dr__remote_range {
    uint64_t offset, size;
} dr__remote_range;

/* --- writing --- */

/* Adds a frame with a sample at the end of a text.
 *
 * @param head   id, prefix, entry and cpu_us are taken from it.
 * @param codec  compresses each field that it takes, where that makes it smaller; NULL: none.  Lossless.
 * @return DR_OK; DR_ERR_LIMIT: an extent above 2^32 - 1, or too many fields; DR_ERR_NOMEM.  The text is then as it
 *         was. */
dr_status dr__remote_put_sample(dr__text *out, const dr__remote_head *head, const dr_view *fields, int n_fields,
                                const dr_codec *codec, dr_error *err);

/* Adds a frame with ranges of a stored sample.
 *
 * @param bytes  of all ranges, one after the other: as many as `size` says.  DR_ERR_ARG where the ranges have others.
 */
dr_status dr__remote_put_segments(dr__text *out, const dr__remote_head *head, const dr__remote_range *ranges,
                                  int n_ranges, const void *bytes, uint64_t size, dr_error *err);

/* Adds a frame that says why there is no sample. */
dr_status dr__remote_put_error(dr__text *out, const dr__remote_head *head, const dr_error *why, dr_error *err);

/* Sets the time in the frame that begins at `at`: of a frame that is made before its time is known. */
void dr__remote_set_cpu(dr__text *out, size_t at, uint32_t cpu_us);

/* --- parsing --- */

/* Parses a head.
 *
 * @param data  DR__REMOTE_HEAD bytes.
 * @param most  bytes that a payload may have.
 * @return DR_OK; DR_ERR_FORMAT: not a head; DR_ERR_LIMIT: the payload has more than `most` bytes. */
dr_status dr__remote_parse_head(const void *data, uint64_t most, dr__remote_head *out, dr_error *err);

/* Whether a payload of head->size bytes has the checksum of its head; else DR_ERR_FORMAT. */
dr_status dr__remote_check(const dr__remote_head *head, const void *payload, dr_error *err);

/* Decodes the fields of a sample into a record, within record->max_bytes.  The checksum is not looked at.
 *
 * @return DR_OK; DR_ERR_FORMAT: not what a head of this kind announces; DR_ERR_LIMIT: too large; DR_ERR_UNSUPPORTED:
 *         made by a codec that this build lacks; DR_ERR_NOMEM. */
dr_status dr__remote_read_sample(const dr__remote_head *head, const void *payload, dr__record *record, dr_error *err);

/* The ranges of a segments frame, at most DR__REMOTE_RANGES of them.
 *
 * @param ranges  receives them.
 * @param bytes   receives where the first range's bytes begin, borrowed from the payload; the others follow. */
dr_status dr__remote_read_segments(const dr__remote_head *head, const void *payload,
                                   dr__remote_range ranges[DR__REMOTE_RANGES], int *n_ranges, const uint8_t **bytes,
                                   dr_error *err);

/* The error that a frame of that kind carries, into *why.  DR_ERR_FORMAT: none that is known. */
dr_status dr__remote_read_error(const dr__remote_head *head, const void *payload, dr_error *why, dr_error *err);

#endif
