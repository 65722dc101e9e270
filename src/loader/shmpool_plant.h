/* shmpool_plant.h: a shmpool of worker processes as the plant of a controller.
 *
 * Knobs that only the main process can change (workers, priority) are kept here as proposals; the shmpool applies the
 * others at once.
 */
#ifndef DR_LOADER_SHMPOOL_PLANT_H
#define DR_LOADER_SHMPOOL_PLANT_H

#include <drapps/shmpool_controller.h>

#include "base/thread.h"
#include "monitor/pipeline_facts.h"

enum { DR__SHMPOOL_WORKERS = 256 };

/* CPU time and delay of a worker process at the last reading, in seconds. */
struct dr__process_usage {
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
    struct dr__process_usage usage[DR__SHMPOOL_WORKERS];
    double cpu, delay; /* s, summed over all worker processes, ended ones included */
    bool tells_delay;
    double before[DR_N_FLOWS];
    uint64_t before_ns;
} dr__shmpool_plant;

void dr__shmpool_plant_init(dr__shmpool_plant *plant, dr_shmpool *shmpool, const dr_shmpool_adapt_options *options);
void dr__shmpool_plant_free(dr__shmpool_plant *plant);

dr_plant dr__shmpool_plant_of(dr__shmpool_plant *plant);

/* Sets a knob.  by_user: pins it, and makes no proposal. */
dr_status dr__shmpool_plant_set(dr__shmpool_plant *plant, int knob, double value, bool by_user, dr_error *err);
double dr__shmpool_plant_get(dr__shmpool_plant *plant, int knob);

/* As dr__shmpool_plant_get, but takes no lock: the caller holds it, or there is no other thread. */
double dr__shmpool_plant_get_locked(const dr__shmpool_plant *plant, int knob);

/* Fills in what the monitor reads; to be called by a dr__pipeline_fn. */
void dr__shmpool_plant_facts(dr__shmpool_plant *plant, dr__pipeline_facts *out);

/* Whether the consumer pauses: its step is far longer than usual, not only long. */
bool dr__shmpool_plant_consumer_pauses(dr__shmpool_plant *plant);

#endif
