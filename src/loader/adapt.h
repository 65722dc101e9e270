/* adapt.h: a loader's controller: who turns its knobs while it runs.
 *
 * The controller and what it needs (a monitor, a live view) are made when the loader has run for a moment, or at once
 * where a trace is written or a monitor was given: short runs cost nothing.  They stay until the loader is closed.
 * While no consumer is there, or one pauses, the controller is held.  Nothing here ever fails a run: without a
 * controller the settings stay as they are, and explain says why.
 */
#ifndef DR_LOADER_ADAPT_H
#define DR_LOADER_ADAPT_H

#include <drapps/sched.h>

#include "base/limits.h"
#include "exec/facts.h"

typedef struct dr__adapt {
    /* fixed when the loader is opened */
    const char *policy;              /* its name; static */
    char policy_text[DR_MAX_POLICY]; /* with its parameters */
    dr_weights weights;
    dr_monitor *given; /* the user's, a reference; NULL: the one that the process shares */
    double cpu_limit;  /* 0: what the controller finds out */
    uint64_t memory_limit;
    double most_workers;
    double least_prefetch; /* 0: any */
    int period_ms;         /* between decisions; 0: the controller's standard */

    pthread_mutex_t knobs; /* held while one is turned; after the loader's lock, before the pool's */
    uint32_t pinned;       /* bit (1 << dr_knob): the user's */

    /* the loader's lock */
    uint64_t begun_ns; /* when the first epoch began; 0: none did */
    bool tried;
    char why[160]; /* why there is no controller; "" */
    dr_monitor *monitor;
    dr_live *live;
    dr_controller *controller;

    /* the monitor's thread */
    dr__facts facts;
    int token; /* of the facts */
} dr__adapt;

/* Checks and keeps the options of a loader that is being opened.  limits: what the machine allows. */
dr_status dr__adapt_open(dr_loader *loader, const dr__limits *limits, dr_error *err);

/* The loader's lock: an epoch runs. */
void dr__adapt_run(dr_loader *loader);

/* Threads to begin with, where the user did not say. */
int dr__adapt_workers(const dr_loader *loader, const dr__limits *limits);

/* Sets a knob for the user: it stays so. */
dr_status dr__adapt_set(dr_loader *loader, int knob, double value, dr_error *err);

void dr__adapt_close(dr_loader *loader);

/* "policy", "knobs", "decisions" for the statistics. */
void dr__adapt_stats(dr_loader *loader, json_t *stats);

/* A line for people. */
void dr__adapt_explain(dr_loader *loader, char *text, size_t size);

#endif
