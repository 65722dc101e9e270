/* loader_internal.h: what the files of the front door share. */
#ifndef DR_LOADER_LOADER_INTERNAL_H
#define DR_LOADER_LOADER_INTERNAL_H

#include "exec/exec.h"
#include "loader/adapt.h"
#include "loader/seek_share.h"

struct dr_loader {
    dr__exec exec;
    char *graph_text;     /* canonical JSON */
    uint64_t graph_hash;  /* xxh3 of what was made of it (dr__graph_identity) */
    dr__seek_share *seek; /* NULL: none */

    pthread_mutex_t lock; /* starting and saving; outside the pool lock, never held while waiting for a batch */
    dr__cond left;        /* a caller has left dr_loader_next */
    int callers;          /* lock: threads in dr_loader_next */
    bool begun;           /* lock: an epoch was started */
    /* lock: where the next call of dr_loader_next begins, if not begun */
    uint64_t epoch, position, batch;
    uint8_t *done; /* out of order: delivered before; one byte a sample of this rank */

    dr__adapt adapt; /* who turns the knobs; see there */
};

/* An object of the parent process is not ours to use. */
dr_status dr__loader_check(const dr_loader *loader, dr_error *err);

/* Bytes that it may take, by its setting or as the machine allows. */
uint64_t dr__loader_memory(const dr_loader *loader, const dr__limits *limits);

/* Opens the trace that the options or the environment ask for. */
dr_status dr__loader_trace(dr_loader *loader, dr_error *err);

/* Writes what the ops cost, each by itself, as an event; without a trace, nothing.  When no thread works any more. */
void dr__loader_trace_ops(dr_loader *loader);

/* dr_loader_profile, which ends at end_ns with the sample that it is at. */
dr_status dr__loader_profile(dr_loader *loader, uint64_t samples, uint64_t end_ns, char **text, dr_error *err);

/* null, or {"path", "state": "writing" | "limit" | "failed", "error"}. */
json_t *dr__loader_trace_json(const dr_loader *loader);

#endif
