/* wire.h: the format of a trace.
 *
 *   file:     magic, 8 bytes  u32 version  u64 start (CLOCK_MONOTONIC, ns)  u32 xxh3 of these 20 bytes; then records
 *   record:   u8 kind  u24 length  u8 check of these four  u32 xxh3 of the payload  payload
 *   META:     JSON text; the first record.  Numbers of sensors, knobs, ... below are indices in its tables of names
 *   SNAPSHOT: time  number  present  modelled  for each present sensor: f32 value, u16 level; CPUs, a byte for each
 *   FLOW:     time  count  that many doubles
 *   DECISION: time  number  bound  changed  guarded; knobs, before and after of each; terms, term and weight of each;
 *             reward; length of the reason, its bytes
 *   SPAN:     time of its start  duration  kind * 2 + slow  thread  epoch  batch  slot  position  id  bytes  f32 cost
 *             length of the key, its bytes  CPU time (may be missing)
 *   TEXT:     time  JSON text
 *
 * All numbers are little-endian; those without a size are varints: 7 bits per byte, lowest first.  Times are signed
 * differences to the start (zigzag); threads are zigzag, too.  A double that is a whole number is the varint of its
 * zigzag times two; any other is the varint 1 and its eight bytes, so that no bits are lost.  A reader skips kinds that
 * it does not know, and bytes of a payload beyond those it knows.
 */
#ifndef DR_TRACE_WIRE_H
#define DR_TRACE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drapps/sched.h>
#include <drapps/trace.h>

#include "base/cursor.h"

enum {
    DR__TRACE_VERSION = 1,
    DR__TRACE_HEADER = 24,
    DR__FRAME = 9,                   /* bytes before a payload */
    DR__MAX_PAYLOAD = (1 << 24) - 1, /* limit of the u24 length */
    DR__MAX_TEXT = 64 * 1024,        /* of a TEXT */
    DR__MAX_NAMES = 64,              /* of a table */
    DR__MAX_RECORD = 2048,           /* a payload that is not text */
    DR__MAX_TIME = 10,
};

/* --- frames --- */

void dr__header_write(uint64_t start_ns, uint8_t out[DR__TRACE_HEADER]);
dr_status dr__header_read(const uint8_t in[DR__TRACE_HEADER], uint64_t *start_ns, dr_error *err);

void dr__frame_write(int kind, const void *payload, size_t length, uint8_t out[DR__FRAME]);

/* Reads kind and length; false: their check byte does not match. */
bool dr__frame_read(const uint8_t in[DR__FRAME], int *kind, size_t *length);

/* Whether the payload matches the frame's checksum. */
bool dr__frame_holds(const uint8_t in[DR__FRAME], const void *payload, size_t length);

/* --- payloads --- */

/* Encode a record; return its length, at most DR__MAX_RECORD. */
size_t dr__pack_snapshot(uint64_t start_ns, const dr_snapshot *s, uint8_t out[DR__MAX_RECORD]);
size_t dr__pack_flow(uint64_t start_ns, uint64_t time_ns, const double *flow, int n, uint8_t out[DR__MAX_RECORD]);
size_t dr__pack_decision(uint64_t start_ns, const dr_decision *d, uint8_t out[DR__MAX_RECORD]);
size_t dr__pack_span(uint64_t start_ns, const dr_span *s, uint8_t out[DR__MAX_RECORD]);
size_t dr__pack_time(uint64_t start_ns, uint64_t time_ns, uint8_t out[DR__MAX_TIME]); /* the start of a TEXT */

/* Maps the numbers of a file to those of this version; -1: unknown. */
typedef struct dr__numbers {
    int n;
    int16_t own[DR__MAX_NAMES];
} dr__numbers;

typedef struct dr__tables {
    dr__numbers sensors, flow, knobs, terms, bounds, spans;
} dr__tables;

/* Decode a record; fields that the file lacks are 0.  c: the payload. */
dr_status dr__unpack_snapshot(dr_cursor *c, uint64_t start_ns, const dr__tables *t, dr_snapshot *s, dr_error *err);
dr_status dr__unpack_flow(dr_cursor *c, uint64_t start_ns, const dr__tables *t, uint64_t *time_ns,
                          double flow[DR_N_FLOWS], dr_error *err);
dr_status dr__unpack_decision(dr_cursor *c, uint64_t start_ns, const dr__tables *t, dr_decision *d, dr_error *err);

/* As above; DR_AGAIN: the kind of the span is not known to this version. */
dr_status dr__unpack_span(dr_cursor *c, uint64_t start_ns, const dr__tables *t, dr_span *s, dr_error *err);

dr_status dr__unpack_time(dr_cursor *c, uint64_t start_ns, uint64_t *time_ns, dr_error *err);

/* --- META --- */

/* Adds the machine, the clock, the limits and the tables of names to the JSON object `meta`; free *out with dr__free.
 */
dr_status dr__meta_make(const char *meta, const dr_trace_options *o, uint64_t start_ns, char **out, dr_error *err);

/* Reads the tables of names of a META record. */
dr_status dr__meta_tables(const char *text, size_t length, dr__tables *out, dr_error *err);

#endif
