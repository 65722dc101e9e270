/* trace.h: a compact file that records a run: snapshots, flow, decisions, sampled spans of work.
 *
 * A trace is written by one process, in the background: no call waits for the disk.  A full disk ends the trace, not
 * the run; what was written before stays readable, also after the process was killed.  Times are CLOCK_MONOTONIC, in
 * ns.
 *
 *     dr_trace_reader *r;
 *     dr_trace_record rec;
 *     for (dr_trace_open_reader("run.drtrace", &r, &err); dr_trace_next(r, &rec, &err) == DR_OK;)
 *         if (rec.kind == DR_TRACE_DECISION)
 *             puts(rec.decision->reason);
 *     dr_trace_close_reader(&r);
 */
#ifndef DRAPPS_TRACE_H
#define DRAPPS_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drapps/monitor.h>
#include <drapps/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dr_decision; /* sched.h */

typedef struct dr_trace dr_trace;

typedef enum dr_trace_kind {
    DR_TRACE_META = 1, /* text: a JSON object about the run: host, version, data set, graph, settings, clock, and the
                          names of sensors, knobs and so on, so that other versions can read the trace */
    DR_TRACE_SNAPSHOT = 2,
    DR_TRACE_FLOW = 3,
    DR_TRACE_DECISION = 4,
    DR_TRACE_SPAN = 5,
    DR_TRACE_TEXT = 6, /* text: a JSON object {"event": ..., ...}: a rare event (start of an epoch, a bad sample, a
                          worker that died, a knob that was set); docs/trace.md lists them */
} dr_trace_kind;

/* X(id, name, doc): kinds of spans. */
#define DR_SPAN_MAP(X)                                                                                                 \
    X(READ, "read", "a sample was read")                                                                               \
    X(WORK, "work", "a sample was decoded and augmented")                                                              \
    X(FINISH, "finish", "a batch was finished")                                                                        \
    X(BATCH, "batch", "from a batch's first sample begun to the batch ready")                                          \
    X(WAIT, "wait", "a consumer waited for a batch")                                                                   \
    X(STEP, "step", "a consumer had a batch and did not ask for the next")

typedef enum dr_span_kind {
#define DR_SPAN_ENUM(id, name, doc) DR_SPAN_##id,
    DR_SPAN_MAP(DR_SPAN_ENUM)
#undef DR_SPAN_ENUM
        DR_N_SPANS
} dr_span_kind;

typedef struct dr_span {
    uint64_t begin_ns, end_ns;
    int32_t kind;   /* dr_span_kind */
    int32_t thread; /* worker 1, 2, ...; reader -1, -2, ...; 0: a consumer, or not known.  FINISH, BATCH: the thread
                       that finished the batch */
    uint64_t epoch, batch, position, id;
    uint64_t slot;   /* READ, WORK: slot in the batch; FINISH, BATCH, WAIT: samples of the batch */
    uint64_t bytes;  /* READ, WORK: bytes read; FINISH, BATCH, WAIT: bytes of the batch */
    uint64_t cpu_ns; /* WORK: CPU time of the thread in the span; 0: not known, as of worker processes */
    float cost;      /* predicted work units; 0: not known */
    bool slow;       /* slow lane */
    char key[64];    /* name of the sample, or the end of a longer one; "": not known */
} dr_span;

/* --- writing --- */

typedef struct dr_trace_options {
    size_t size;        /* sizeof(dr_trace_options) */
    uint64_t max_bytes; /* limit of the file; the last record says that it was reached.  0: 1 GB */
    double spans_per_s; /* more spans than this are left out at random, except the slowest, and counted.  0: 2000;
                           HUGE_VAL: all are written */
} dr_trace_options;

/**
 * Fill in the defaults.
 *
 * @param options Overwritten, its `size` included.
 */
DR_API void dr_trace_defaults(dr_trace_options *options);

/**
 * Start a trace.
 *
 * Records are kept in 4 MB of memory, which a thread writes to the file five times a second.  Records that find no room
 * there are lost, and the trace counts them.
 *
 * @param path    The file, which is overwritten.  Where another trace is being written to it, the process id is put
 *                before its suffix (dr_trace_path).  NULL: the path in the environment variable DRAPPS_TRACE, with the
 *                process id for %p; further traces of a process get -2, -3, ... before the suffix, and those of a
 *                forked child also its process id.
 * @param meta    A JSON object about the run; NULL: {}.
 * @param options The settings; NULL: the defaults.
 * @param out     The trace, which the caller closes by dr_trace_close.  NULL after a failure, and where path is NULL
 *                and DRAPPS_TRACE is not set.
 * @param err     The reason of a failure.  May be NULL.
 *
 * @return DR_OK, also without DRAPPS_TRACE; DR_ERR_ARG where an option is out of range or meta is no JSON object;
 *         DR_ERR_IO where the file cannot be written; DR_ERR_LIMIT where meta is too long or no thread can be started;
 *         DR_ERR_NOMEM.
 *
 * @note May be called from any thread.  In the child of a fork, calls on a trace of the parent do nothing.
 */
DR_API dr_status dr_trace_open(const char *path, const char *meta, const dr_trace_options *options, dr_trace **out,
                               dr_error *err);

/**
 * Write the rest of a trace and close it.
 *
 * @param trace The trace, which no other thread may be using; set to NULL.  A pointer to NULL is allowed.
 */
DR_API void dr_trace_close(dr_trace **trace);

/**
 * Ask whether a trace is still being written.
 *
 * @param trace The trace, or NULL.
 * @param err   The reason of a failure.  May be NULL.
 *
 * @return DR_OK: it is, or trace is NULL; DR_END: max_bytes was reached; DR_ERR_IO: writing failed.  Records written
 *         before can be read in all cases.
 */
DR_API dr_status dr_trace_status(dr_trace *trace, dr_error *err);

/**
 * Get the name of the file.
 *
 * @param trace The trace, or NULL.
 *
 * @return The name, valid while the trace is open; NULL without a trace.
 */
DR_API const char *dr_trace_path(const dr_trace *trace);

/* The next five calls write one record each.  They may be called from any thread, do not wait for the disk, and do
 * nothing where trace is NULL. */

/**
 * Write a snapshot.
 *
 * @param trace    The trace, or NULL.
 * @param snapshot The snapshot, borrowed for the call.
 */
DR_API void dr_trace_snapshot(dr_trace *trace, const dr_snapshot *snapshot);

/**
 * Write a flow.
 *
 * @param trace   The trace, or NULL.
 * @param time_ns When it was read.
 * @param flow    The values (DR_FLOW_MAP), borrowed for the call.
 * @param n       Their number.
 */
DR_API void dr_trace_flow(dr_trace *trace, uint64_t time_ns, const double *flow, int n);

/**
 * Write a decision.
 *
 * @param trace    The trace, or NULL.
 * @param decision The decision, borrowed for the call.
 */
DR_API void dr_trace_decision(dr_trace *trace, const struct dr_decision *decision);

/**
 * Write a span, or leave it out (spans_per_s).
 *
 * @param trace The trace, or NULL.
 * @param span  The span, borrowed for the call.
 */
DR_API void dr_trace_span(dr_trace *trace, const dr_span *span);

/**
 * Write an event.
 *
 * @param trace   The trace, or NULL.
 * @param time_ns When it happened.
 * @param json    A JSON object with the member "event".  A text of more than 64 KB is lost.
 */
DR_API void dr_trace_text(dr_trace *trace, uint64_t time_ns, const char *json);

/* --- reading --- */

typedef struct dr_trace_reader dr_trace_reader;

typedef struct dr_trace_record {
    dr_trace_kind kind;
    uint64_t time_ns; /* META: the start of the trace; SPAN: the end of the span */
    /* the members of the record's kind are set; borrowed until the next call */
    const char *text;
    const dr_snapshot *snapshot;
    const double *flow;
    int n_flow;
    const struct dr_decision *decision;
    const dr_span *span;
} dr_trace_record;

/**
 * Open a trace for reading.
 *
 * @param path The file.
 * @param out  The reader, which the caller closes by dr_trace_close_reader.  NULL after a failure.
 * @param err  The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_FORMAT where the file is not a trace; DR_ERR_NOT_FOUND; DR_ERR_IO; DR_ERR_NOMEM.
 *
 * @note A reader may be used by one thread at a time.
 */
DR_API dr_status dr_trace_open_reader(const char *path, dr_trace_reader **out, dr_error *err);

/**
 * Read the next record.
 *
 * @param reader The reader, or NULL.
 * @param out    Receives the record, whose pointers are valid until the next call.
 * @param err    The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_END after the last complete record (a file that is being written may have more at a later call), or
 *         where reader is NULL; DR_ERR_FORMAT where the file is damaged: the error names the byte; DR_ERR_IO;
 *         DR_ERR_NOMEM.
 */
DR_API dr_status dr_trace_next(dr_trace_reader *reader, dr_trace_record *out, dr_error *err);

/**
 * Close a reader.
 *
 * @param reader The reader; set to NULL.  A pointer to NULL is allowed.
 */
DR_API void dr_trace_close_reader(dr_trace_reader **reader);

#ifdef __cplusplus
}
#endif
#endif
