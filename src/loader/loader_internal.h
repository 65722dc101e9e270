/* loader_internal.h: the loader's struct, and functions that the files of loader/ share. */
#ifndef DR_LOADER_LOADER_INTERNAL_H
#define DR_LOADER_LOADER_INTERNAL_H

#include "exec/exec.h"
#include "loader/adapt.h"
#include "loader/seek_share.h"

struct dr_loader {
    dr__exec exec;
    char *graph_text;     /* canonical JSON */
    uint64_t graph_hash;  /* xxh3 of dr__graph_identity */
    dr__seek_share *seek; /* NULL: none */

    pthread_mutex_t lock; /* starting and saving; outside the pool lock, never held while waiting for a batch */
    dr__cond caller_left; /* a thread has left dr_loader_next */
    int callers;          /* lock: threads in dr_loader_next */
    bool begun;           /* lock: an epoch was started */
    /* lock: where the next call of dr_loader_next starts, if not begun */
    uint64_t epoch, position, batch;
    uint8_t *done; /* unordered: delivered before the resume; one byte per sample of this rank */

    dr__adapt adapt;
};

/* DR_ERR_FORKED if the loader belongs to the parent process. */
dr_status dr__loader_check(const dr_loader *loader, dr_error *err);

/* The memory limit in bytes: memory_limit, or the default of the machine. */
uint64_t dr__loader_memory(const dr_loader *loader, const dr__limits *limits);

/* Opens the trace that the options or the environment ask for. */
dr_status dr__loader_trace(dr_loader *loader, dr_error *err);

/* Measures the ops one by one and writes the result to the trace, if there is one.  No thread may work on the loader.
 */
void dr__loader_trace_ops(dr_loader *loader);

/* As dr_loader_profile, but begins no sample after end_ns. */
dr_status dr__loader_profile(dr_loader *loader, uint64_t samples, uint64_t end_ns, char **text, dr_error *err);

/* null, or {"path", "state": "writing" | "limit" | "failed", "error"}. */
json_t *dr__loader_trace_json(const dr_loader *loader);

#endif
