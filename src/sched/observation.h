/* observation.h: what a policy sees: the machine and one pipeline, over the time since the decision before.
 *
 * A window collects ticks; an observation is what it says at its end.  Neither knows a monitor or a thread: a simulator
 * fills them just as well.
 */
#ifndef DR_SCHED_OBSERVATION_H
#define DR_SCHED_OBSERVATION_H

#include <drapps/sched.h>

/* What does not change, or seldom: how the pipeline may be turned and what it may use. */
typedef struct dr__terms_of_use {
    uint32_t knobs, pinned; /* bit (1 << dr_knob) */
    bool tells_delay;       /* the flow says for how long workers had no CPU */
    bool works_ahead;       /* batches are begun without the consumer */
    char waits_in[DR_MAX_WHERE];
    double least[DR_N_KNOBS], most[DR_N_KNOBS];
    double affinity_cpus; /* 0: all of the machine */
    double cpu_limit;     /* 0: the container's */
    double cpu_share;     /* what is fair among processes that share the machine; 0: all */
    double memory_limit;  /* bytes; 0: what the flow says */
    bool memory_granted;  /* the limit is the user's: batches may fill it */
    dr_weights weights, next_weights;
    double next_weights_in; /* seconds until they change to next_weights; 0: no change is known */
} dr__terms_of_use;

typedef struct dr__tick {
    uint64_t time_ns;
    uint64_t present;
    uint32_t n_cpus;
    double quota_cpus; /* 0: none known */
    double value[DR_N_SENSORS], level[DR_N_SENSORS];
    double flow[DR_N_FLOWS];
} dr__tick;

typedef struct dr__window {
    dr__tick first, last;
    int n_ticks; /* after the first */
    double value[DR_N_SENSORS], level[DR_N_SENSORS];
    int n_sensed[DR_N_SENSORS];
    double gauge[DR_N_FLOWS]; /* sums over ticks */
    double least_ready, most_ready;
} dr__window;

typedef struct dr__observation {
    uint64_t time_ns;
    double span;      /* seconds that it covers */
    bool sudden;      /* conditions changed just now: what was known before counts little */
    uint64_t present; /* bit (1 << dr_sensor) */
    double sensor[DR_N_SENSORS], level[DR_N_SENSORS]; /* means */
    double flow[DR_N_FLOWS];                          /* SUM: a second; GAUGE: mean */
    double least_ready, most_ready;                   /* batches */
    double batches;                                   /* delivered in that time */
    dr__terms_of_use use;
    double knob[DR_N_KNOBS]; /* as they stand */

    /* made of these by dr__observation_derive */
    double machine_cpus;     /* CPUs of the machine that we may run on */
    double quota_cpus;       /* the container's; machine_cpus without one */
    double cpus;             /* what the pipeline may use: the least of these and cpu_limit */
    double foreign_cpus;     /* on machine_cpus, stolen ones too */
    double consumer_cpus;    /* of our process and its watched ones, beside the workers */
    double memory_limit;     /* bytes; 0: not known */
    double consumer_threads; /* of it, that want a CPU while it computes; at least 1 */
    double rate;             /* samples a second to the consumer */
    double wait;             /* share of its time in which the consumer waits */
    double demand;           /* samples a second that it would take if it waited neither for us nor, because
                                of us, for a CPU; 0: not known */
    double work_rate;        /* samples a second finished by workers */
    double cpu_each, read_each, work_each; /* seconds for a sample; 0: not known */
    double delay_each;                     /* the same, in which it had no CPU; 0 where that is not told */
    double latency;                        /* seconds for a batch; 0: not known */
    double batch_samples;                  /* at least 1 */
    double stretch;                        /* time of work over its CPU time, as far as CPUs were lacking; least 1 */
    double busy;                           /* share of the time in which workers are at a sample */
    double wanting;                        /* the same in which they have a CPU or want one, as far as that is known */
    double cpu_load;                       /* of the machine, 0..1 */

    /* what the last decision led to: of the time that is observed here; set by the control step */
    double term[DR_N_TERMS]; /* each in [0, 1] */
    double reward;           /* their sum by use.weights */
} dr__observation;

/* *quota_cpus is what was known before (0: nothing), and what is known now. */
void dr__tick_fill(dr__tick *t, const dr_snapshot *snapshot, const double flow[DR_N_FLOWS], double *quota_cpus);

void dr__window_begin(dr__window *w, const dr__tick *first);
void dr__window_add(dr__window *w, const dr__tick *tick);
double dr__window_seconds(const dr__window *w);
double dr__window_went(const dr__window *w, int flow); /* by how much a SUM grew */

void dr__window_observe(const dr__window *w, const dr__terms_of_use *use, const double knob[DR_N_KNOBS],
                        dr__observation *out);
void dr__observation_derive(dr__observation *o, double n_cpus);

/* The policy may turn it. */
static inline bool dr__may_turn(const dr__observation *o, int knob)
{
    return (o->use.knobs & ~o->use.pinned) >> knob & 1;
}

static inline bool dr__has_knob(const dr__observation *o, int knob)
{
    return o->use.knobs >> knob & 1;
}

static inline bool dr__senses(const dr__observation *o, int sensor)
{
    return o->present >> sensor & 1;
}

#endif
