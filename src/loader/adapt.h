/* adapt.h: the controller that sets a loader's knobs while it runs.
 *
 * The controller and what it needs (a monitor, a live view) are made once the loader has run for a moment, so that
 * short runs cost nothing; or at once if a trace is written or the user gave a monitor.  They stay until the loader is
 * closed. The controller is held while there is no consumer or the consumer pauses.  An error here never fails a run:
 * the knobs then stay as they are, and dr_loader_explain says why.
 */
#ifndef DR_LOADER_ADAPT_H
#define DR_LOADER_ADAPT_H

#include <stdatomic.h>

#include <drapps/sched.h>

#include "base/limits.h"
#include "exec/facts.h"

typedef struct dr__adapt {
    /* fixed when the loader is opened */
    const char *policy;              /* name of the policy; static */
    char policy_text[DR_MAX_POLICY]; /* with its parameters */
    dr_monitor *user_monitor;        /* a reference; NULL: the monitor that the loaders of the process share */
    double cpu_limit;                /* 0: the controller finds it out */
    uint64_t memory_limit;
    double most_workers;
    double least_prefetch; /* 0: any */
    atomic_int pauses;     /* of which the consumer has told, one in another */
    int period_ms;         /* between decisions; 0: the controller's default */

    pthread_mutex_t knobs_lock; /* held while a knob is set; after the loader's lock, before the pool's */
    uint32_t pinned;            /* bit (1 << dr_knob): set by the user */

    /* the loader's lock */
    dr_weights_schedule weights;
    uint64_t first_epoch_ns; /* when the first epoch began; 0: not yet */
    bool start_tried;
    char why[160]; /* why there is no controller; "" */
    dr_monitor *monitor;
    dr_live *live;
    dr_controller *controller;

    /* the monitor's thread */
    dr__facts facts;
    int token; /* of the facts' registration with the monitor */
} dr__adapt;

/* Checks and copies the options of a loader that is being opened.  limits: of the machine. */
dr_status dr__adapt_open(dr_loader *loader, const dr__limits *limits, dr_error *err);

/* The loader's lock, an epoch runs: starts the controller if it is time to. */
void dr__adapt_start_if_due(dr_loader *loader);

/* The default number of workers. */
int dr__adapt_workers(const dr_loader *loader, const dr__limits *limits);

/* Sets a knob for the user and pins it. */
dr_status dr__adapt_set(dr_loader *loader, int knob, double value, dr_error *err);

void dr__adapt_close(dr_loader *loader);

/* Adds "policy", "knobs" and "decisions" to the statistics. */
void dr__adapt_stats(dr_loader *loader, json_t *stats);

/* Writes a line for people. */
void dr__adapt_explain(dr_loader *loader, char *text, size_t size);

#endif
