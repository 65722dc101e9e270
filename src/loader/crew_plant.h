/* crew_plant.h: a crew of worker processes as the plant of a pilot.
 *
 * Knobs that take the owner's hands are kept here as wishes; the others the crew turns at once.
 */
#ifndef DR_LOADER_CREW_PLANT_H
#define DR_LOADER_CREW_PLANT_H

#include <drapps/crew_pilot.h>

#include "base/thread.h"
#include "monitor/pipeline_facts.h"

enum { DR__CREW_WORKERS = 256 };

/* What a process has used, as far as it was seen. */
struct dr__cpu_seen {
    int pid;
    double s, delay;
};

typedef struct dr__crew_plant {
    dr_crew *crew; /* a reference */
    dr_monitor *monitor;
    double memory_limit, most_workers;

    pthread_mutex_t lock;
    dr__cond wished;
    double workers, prefetch, priority;
    uint64_t wishes;
    uint32_t pinned;
    dr_trace *trace; /* borrowed; NULL: none, or stopped */
    bool stopped;

    /* the monitor's thread */
    struct dr__cpu_seen seen[DR__CREW_WORKERS];
    double cpu, delay; /* s, of all processes that there were */
    bool tells_delay;
    double before[DR_N_FLOWS];
    uint64_t before_ns;
} dr__crew_plant;

void dr__crew_plant_init(dr__crew_plant *plant, dr_crew *crew, const dr_crew_adapt_options *options);
void dr__crew_plant_free(dr__crew_plant *plant);

dr_plant dr__crew_plant_of(dr__crew_plant *plant);

/* Turns a knob; by_user: it is his from then on, and no wish is made of it. */
dr_status dr__crew_plant_set(dr__crew_plant *plant, int knob, double value, bool by_user, dr_error *err);
double dr__crew_plant_get(dr__crew_plant *plant, int knob);
double dr__crew_plant_peek(const dr__crew_plant *plant, int knob); /* without the lock: where no other thread is */

/* What the monitor is told: a dr__pipeline_fn but for its user. */
void dr__crew_plant_facts(dr__crew_plant *plant, dr__pipeline_facts *out);

/* Does the consumer stay away, longer than its steps are? */
bool dr__crew_plant_pauses(dr__crew_plant *plant);

#endif
