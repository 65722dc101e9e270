/* wire.h: the bytes of a trace.
 *
 *   file:     magic, 8 bytes  u32 version  u64 start (CLOCK_MONOTONIC, ns)  u32 xxh3 of these 20 bytes; then records
 *   record:   u8 kind  u24 length  u8 check of these four  u32 xxh3 of the payload  payload
 *   META:     JSON text; the first record.  Numbers of sensors, knobs, ... below are places in its tables of names
 *   SNAPSHOT: time  number  present  modelled  for each present sensor: f32 value, u16 level; CPUs, a byte for each
 *   FLOW:     time  count  that many doubles
 *   DECISION: time  number  bound  changed  guarded; knobs, before and after of each; terms, term and weight of each;
 *             reward; length of the reason, its bytes
 *   SPAN:     time of the begin  duration  kind * 2 + slow  thread  epoch  batch  slot  position  id  bytes  f32 cost
 *             length of the key, its bytes  CPU time (may be missing)
 *   TEXT:     time  JSON text
 *
 * All numbers are little-endian; those without a size are varints: 7 bits a byte, the lowest first.  Times are
 * differences to the start, signed (zigzag), as are threads.  A double that is a whole number is the varint of its
 * zigzag times two; any other is the varint 1 and its eight bytes: nothing is lost.  A reader skips kinds that it does
 * not know, and bytes behind what it knows of a payload.
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
    DR__FRAME = 9,                   /* before a payload */
    DR__MAX_PAYLOAD = (1 << 24) - 1, /* what a length can say */
    DR__MAX_TEXT = 64 * 1024,        /* of a TEXT */
    DR__MAX_NAMES = 64,              /* of a table */
    DR__MAX_RECORD = 2048,           /* a payload that is not text */
    DR__MAX_TIME = 10,
};

/* --- frames --- */

void dr__header_write(uint64_t start_ns, uint8_t out[DR__TRACE_HEADER]);
dr_status dr__header_read(const uint8_t in[DR__TRACE_HEADER], uint64_t *start_ns, dr_error *err);

void dr__frame_write(int kind, const void *payload, size_t length, uint8_t out[DR__FRAME]);

/* false: the five bytes make no sense. */
bool dr__frame_read(const uint8_t in[DR__FRAME], int *kind, size_t *length);
bool dr__frame_holds(const uint8_t in[DR__FRAME], const void *payload, size_t length);

/* --- payloads --- */

/* Each returns the length of what it wrote, DR__MAX_RECORD at most. */
size_t dr__pack_snapshot(uint64_t start_ns, const dr_snapshot *s, uint8_t out[DR__MAX_RECORD]);
size_t dr__pack_flow(uint64_t start_ns, uint64_t time_ns, const double *flow, int n, uint8_t out[DR__MAX_RECORD]);
size_t dr__pack_decision(uint64_t start_ns, const dr_decision *d, uint8_t out[DR__MAX_RECORD]);
size_t dr__pack_span(uint64_t start_ns, const dr_span *s, uint8_t out[DR__MAX_RECORD]);
size_t dr__pack_time(uint64_t start_ns, uint64_t time_ns, uint8_t out[DR__MAX_TIME]); /* the begin of a TEXT */

/* What the numbers of a file mean here: the own number of each, or -1. */
typedef struct dr__numbers {
    int n;
    int16_t own[DR__MAX_NAMES];
} dr__numbers;

typedef struct dr__tables {
    dr__numbers sensors, flow, knobs, terms, bounds, spans;
} dr__tables;

/* Each fills what it was given, zeros where the file has nothing.  Cursor: the payload. */
dr_status dr__unpack_snapshot(dr_cursor *c, uint64_t start_ns, const dr__tables *t, dr_snapshot *s, dr_error *err);
dr_status dr__unpack_flow(dr_cursor *c, uint64_t start_ns, const dr__tables *t, uint64_t *time_ns,
                          double flow[DR_N_FLOWS], dr_error *err);
dr_status dr__unpack_decision(dr_cursor *c, uint64_t start_ns, const dr__tables *t, dr_decision *d, dr_error *err);
/* DR_AGAIN: of a kind that is not known here. */
dr_status dr__unpack_span(dr_cursor *c, uint64_t start_ns, const dr__tables *t, dr_span *s, dr_error *err);
dr_status dr__unpack_time(dr_cursor *c, uint64_t start_ns, uint64_t *time_ns, dr_error *err);

/* --- META --- */

/* The JSON object `meta` with what every trace says of itself; to be freed with dr__free. */
dr_status dr__meta_make(const char *meta, const dr_trace_options *o, uint64_t start_ns, char **out, dr_error *err);

dr_status dr__meta_tables(const char *text, size_t length, dr__tables *out, dr_error *err);

#endif
