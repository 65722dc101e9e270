/* trace.h: what happened in a run, in a compact file: snapshots, flow, decisions, sampled spans of work.
 *
 * A trace is written by one process, in the background: no call waits for the disk.  A disk that fills ends the trace,
 * not the training; what was written before stays readable, also after a kill.  Times are CLOCK_MONOTONIC, in ns.
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
    DR_TRACE_META = 1, /* text: JSON about the run: host, version, data set, graph, settings, clock; the tables'
                          names, so that a later version can read it */
    DR_TRACE_SNAPSHOT = 2,
    DR_TRACE_FLOW = 3,
    DR_TRACE_DECISION = 4,
    DR_TRACE_SPAN = 5,
    DR_TRACE_TEXT = 6, /* text: a JSON object {"event": ..., ...}: what is rare (start of an epoch, a bad sample, a
                          worker that died, a knob that was turned); docs/trace.md lists them */
} dr_trace_kind;

/* X(id, name, doc): kinds of spans. */
#define DR_SPAN_MAP(X)                                                                                                 \
    X(READ, "read", "a sample was read")                                                                               \
    X(WORK, "work", "a sample was decoded and augmented")                                                              \
    X(FINISH, "finish", "a batch was put together")                                                                    \
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
    int32_t thread; /* worker 1, 2, ...; reader -1, -2, ...; 0: a consumer, or not known.  FINISH, BATCH: who put
                       the batch together */
    uint64_t epoch, batch, position, id;
    uint64_t slot;   /* place in the batch; FINISH, BATCH, WAIT: samples of it */
    uint64_t bytes;  /* read, or of the batch */
    uint64_t cpu_ns; /* WORK: CPU time of the thread in it; 0: not known, as of worker processes */
    float cost;      /* predicted work units; 0: not known */
    bool slow;       /* slow lane */
    char key[64];    /* name of the sample, its end if it is longer; "": not known */
} dr_span;

/* --- writing --- */

typedef struct dr_trace_options {
    size_t size;        /* sizeof(dr_trace_options) */
    uint64_t max_bytes; /* the file ends there, with a note; 0: 1 GB */
    double spans_per_s; /* spans beyond so many are left out at random, but for the slowest, and counted; 0: 2000;
                           HUGE_VAL: all */
} dr_trace_options;

DR_API void dr_trace_defaults(dr_trace_options *options);

/* Begins the file anew; meta: a JSON object about the run, NULL: {}; options NULL: the defaults.  An unwritable path is
 * an error.  path NULL: that of the environment variable DRAPPS_TRACE, in which %p stands for the process id; the
 * second trace of a process goes to a file with -2 before its suffix, and so on, and a forked child adds its process id
 * likewise.  Without the variable *out is NULL, and DR_OK is returned.  Where another trace is being written to that
 * file, the process id is added too: dr_trace_path says the name.
 *
 * 4 MB of memory hold what is not yet written, a thread writes it five times a second.  What finds no room there is
 * lost, and the trace says how much was.  After a fork the trace is the parent's: the child's calls do nothing. */
DR_API dr_status dr_trace_open(const char *path, const char *meta, const dr_trace_options *options, dr_trace **out,
                               dr_error *err);

/* Writes what is left, frees.  No other thread may be in a call. */
DR_API void dr_trace_close(dr_trace **trace);

/* DR_OK: being written (or NULL).  DR_END: max_bytes were reached.  DR_ERR_IO: writing failed, err says why.  In both
 * cases what was written before can be read. */
DR_API dr_status dr_trace_status(dr_trace *trace, dr_error *err);

/* The file's name, as long as the trace is open; NULL for NULL. */
DR_API const char *dr_trace_path(const dr_trace *trace);

/* Any thread may write; NULL trace: nothing.  None of these waits for the disk.  A text longer than 64 KB counts as
 * lost. */
DR_API void dr_trace_snapshot(dr_trace *trace, const dr_snapshot *snapshot);
DR_API void dr_trace_flow(dr_trace *trace, uint64_t time_ns, const double *flow, int n);
DR_API void dr_trace_decision(dr_trace *trace, const struct dr_decision *decision);
DR_API void dr_trace_span(dr_trace *trace, const dr_span *span);
DR_API void dr_trace_text(dr_trace *trace, uint64_t time_ns, const char *json);

/* --- reading --- */

typedef struct dr_trace_reader dr_trace_reader;

typedef struct dr_trace_record {
    dr_trace_kind kind;
    uint64_t time_ns; /* META: the trace's begin; SPAN: the span's end */
    /* what the kind says is set; borrowed until the next call */
    const char *text;
    const dr_snapshot *snapshot; /* without the use of each CPU beyond what was written */
    const double *flow;
    int n_flow;
    const struct dr_decision *decision;
    const dr_span *span;
} dr_trace_record;

/* DR_ERR_FORMAT names the byte where a file that is no trace, or a damaged one, stops making sense. */
DR_API dr_status dr_trace_open_reader(const char *path, dr_trace_reader **out, dr_error *err);

/* DR_END behind the last whole record; a file that is still being written may have more at a later call.  NULL reader:
 * DR_END. */
DR_API dr_status dr_trace_next(dr_trace_reader *reader, dr_trace_record *out, dr_error *err);
DR_API void dr_trace_close_reader(dr_trace_reader **reader);

#ifdef __cplusplus
}
#endif
#endif
