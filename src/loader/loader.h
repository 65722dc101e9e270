/* loader.h: what the files of the front door share. */
#ifndef DR_LOADER_LOADER_H
#define DR_LOADER_LOADER_H

#include "exec/exec.h"

struct dr_loader {
    dr__exec exec;
    char *graph_text;    /* canonical JSON */
    uint64_t graph_hash; /* xxh3 of it */
    bool begun;          /* an epoch was started */
    /* what the next start takes up, set by dr_loader_restore */
    bool restored;
    uint64_t epoch, position, batch;
    uint8_t *done; /* out of order: delivered before; one byte a sample of this rank */
};

/* An object of the parent process is not ours to use. */
dr_status dr__loader_check(const dr_loader *loader, dr_error *err);

/* Starts the epoch that restore left, or epoch 0, if none was begun. */
dr_status dr__loader_begin(dr_loader *loader, dr_error *err);

#endif
