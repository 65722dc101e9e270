/* shmpool_plant.h: a shmpool of worker processes as the plant of a controller.
 *
 * Knobs that take the main process's hands are kept here as proposals; the others the shmpool turns at once.
 */
#ifndef DR_LOADER_SHMPOOL_PLANT_H
#define DR_LOADER_SHMPOOL_PLANT_H

#include <drapps/shmpool_controller.h>

#include "base/thread.h"
#include "monitor/pipeline_facts.h"

enum { DR__SHMPOOL_WORKERS = 256 };

/* What a process has used, as far as it was seen. */
struct dr__cpu_seen {
    int pid;
    double s, delay;
};

typedef struct dr__shmpool_plant {
    dr_shmpool *shmpool; /* a reference */
    dr_monitor *monitor;
    double memory_limit, most_workers;

    pthread_mutex_t lock;
    dr__cond proposed;
    double workers, prefetch, priority;
    uint64_t proposals;
    uint32_t pinned;
    dr_trace *trace; /* borrowed; NULL: none, or stopped */
    bool stopped;

    /* the monitor's thread */
    struct dr__cpu_seen seen[DR__SHMPOOL_WORKERS];
    double cpu, delay; /* s, of all processes that there were */
    bool tells_delay;
    double before[DR_N_FLOWS];
    uint64_t before_ns;
} dr__shmpool_plant;

void dr__shmpool_plant_init(dr__shmpool_plant *plant, dr_shmpool *shmpool, const dr_shmpool_adapt_options *options);
void dr__shmpool_plant_free(dr__shmpool_plant *plant);

dr_plant dr__shmpool_plant_of(dr__shmpool_plant *plant);

/* Turns a knob; by_user: it is his from then on, and no proposal is made of it. */
dr_status dr__shmpool_plant_set(dr__shmpool_plant *plant, int knob, double value, bool by_user, dr_error *err);
double dr__shmpool_plant_get(dr__shmpool_plant *plant, int knob);
double dr__shmpool_plant_peek(const dr__shmpool_plant *plant,
                              int knob); /* without the lock: where no other thread is */

/* What the monitor is told: a dr__pipeline_fn but for its user. */
void dr__shmpool_plant_facts(dr__shmpool_plant *plant, dr__pipeline_facts *out);

/* Does the consumer stay away, longer than its steps are? */
bool dr__shmpool_plant_pauses(dr__shmpool_plant *plant);

#endif
