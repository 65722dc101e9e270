/* twin.h: the state of a simulation, and how its parts divide it.
 *
 *   instance.c    fields and disturbances of a seed
 *   twin.c        a tick: batches, consumer, quota, time
 *   sim_rates.c   how fast workers, readers and consumer are, between two events
 *   supply.c      what a sample costs now: storage, link, server, caches (every 100 ms)
 *   sense.c       snapshots with noise and delay, flow
 *   score.c       what really happened, and its reward
 *   simulation.c  the public calls, policies
 *
 * Positions are counted in samples since the begin and are fractions: a fluid.  `delivered` <= `working` <= `begun`
 * number batches: taken by the consumer, where the workers are, of which some sample was begun.
 */
#ifndef DR_SIM_TWIN_H
#define DR_SIM_TWIN_H

#include "sched/observation.h"
#include "sim/sim_presets.h"

enum { DR__SIM_RING = 256, DR__SIM_DELAYED = 12 }; /* a power of two, above the most batches in flight */

#define DR__SIM_TICK_S 0.01
#define DR__SIM_SNAPSHOT_S 0.1

/* A batch in flight. */
typedef struct dr__sim_batch {
    double factor;    /* of the mean CPU time of an ordinary sample */
    double begun_s;   /* */
    double ready_s;   /* INFINITY: not known yet */
    double slow_mark; /* ready not before so much slow work is done */
} dr__sim_batch;

/* What a sample costs at the present conditions; made by dr__sim_supply. */
typedef struct dr__sim_costs {
    double cpu, slow_cpu;          /* CPU seconds of an ordinary and a slow sample, with nothing else running */
    double read;                   /* seconds for which a thread is blocked in a read */
    double most_rate;              /* samples a second that storage, link and server allow; INFINITY: any */
    double hits, page_hits;        /* shares of the samples */
    double disk_bytes, link_bytes; /* of a sample */
    double step_s, step_cpu;       /* of the consumer: all of it, and the part on CPUs, at full speed */
    double quota;                  /* CPUs; INFINITY: none */
} dr__sim_costs;

typedef struct dr__sim_pending {
    double value, at_s; /* at_s < 0: none */
} dr__sim_pending;

typedef struct dr__sim_reading {
    double value[DR_N_SENSORS], level[DR_N_SENSORS];
} dr__sim_reading;

struct dr_sim {
    /* of all instances */
    dr__sim_fields base; /* of the presets */
    const dr__sim_scenario *scenario;
    char *set; /* owned; may be NULL */
    dr_weights weights;
    int any_machine, keeps_model;

    /* the instance */
    dr__sim_fields f;
    uint64_t seed;
    uint32_t has_knob;
    double most[DR_N_KNOBS];
    double batch; /* samples */
    dr__disturb disturb[DR__MAX_DISTURBS];
    double signal[DR__N_SIGNALS];
    dr__sim_rng rng, outside; /* outside: of the disturbances, so that they do not depend on what a policy does */
    dr__sim_costs costs;

    /* time */
    uint64_t ticks;
    double time;

    /* knobs */
    double knob[DR_N_KNOBS], first[DR_N_KNOBS];
    dr__sim_pending pending[DR_N_KNOBS];
    double window; /* batches: prefetch, as far as memory allows */

    /* the fluid */
    double read, done; /* samples; `read` counts only with readers */
    uint64_t delivered, working, begun;
    dr__sim_batch ring[DR__SIM_RING];
    double slow_in, slow_out; /* CPU seconds of slow samples: all that were begun, all that is done */
    double offloaded;         /* share: follows the knob */

    /* the consumer */
    double step_left, pause_left; /* seconds at full speed */
    double step_all;              /* of the present step */
    double trained;               /* samples, those of the present step in part */
    double delivered_s;           /* when it took the newest batch */
    double delivered_step, mean_step;

    /* CPUs */
    double want, rate; /* threads that want a CPU, samples a second: of the last substep */
    double peak;       /* most threads that wanted a CPU at once since the newest batch was taken */
    double slowdown;   /* by crowd, switches and memory bandwidth: 0 or more */
    double budget;     /* CPU seconds left of the quota's period */

    /* caches */
    double pages, kept;             /* bytes; of samples before they are compressed */
    double kept_before;             /* 100 ms ago */
    double kept_ratio, kept_decode; /* of what is kept: compressed share, seconds for a sample */

    /* counted */
    double flow[DR_N_FLOWS];
    double used_workers, used_consumer, used_tenants, throttled, read_bytes, link_bytes, accel_s; /* since a snapshot */
    double busy_reads;
    dr__sim_reading readings[DR__SIM_DELAYED];
    uint64_t n_readings, present;

    /* score */
    dr_sim_result all;      /* sums */
    double all_used_before; /* CPU seconds since the snapshot, a tick ago */
    double second_begun;    /* of the present second of the reward */
    double trained_before;  /* then */
    double second_samples, second_wait, second_cpu, second_joule, second_latency, second_batches, second_asked;
    uint64_t n_seconds;
};

/* instance.c */
void dr__sim_instance(dr_sim *s, uint64_t seed);

/* twin.c */
void dr__sim_tick(dr_sim *s);

/* sim_rates.c: part of a CPU that each thread which wants one gets: n threads that compute `cpu` seconds and are
 * blocked for `block` in turn, and others that always want one. */
double dr__sim_share(double cpus, double n, double cpu, double block, double others);

/* Threads of others that want a CPU now. */
static inline double dr__sim_tenants(const dr_sim *s)
{
    return s->f.tenants + s->signal[DR__SIGNAL_TENANT] * s->f.cpus;
}

/* supply.c: every 100 ms. */
void dr__sim_supply(dr_sim *s);
void dr__sim_window(dr_sim *s); /* after knobs or memory changed */

/* sense.c */
void dr__sim_sense(dr_sim *s); /* every 100 ms */
void dr__sim_flow(const dr_sim *s, double flow[DR_N_FLOWS]);

/* score.c */
void dr__sim_score(dr_sim *s); /* after each tick */
double dr__sim_watts(const dr_sim *s, double busy_cpus);
dr_weights dr__sim_weights(const dr_sim *s); /* at this time */

/* simulation.c */
dr__terms_of_use dr__sim_terms(const dr_sim *s);
bool dr__sim_pauses(const dr_sim *s); /* as a loader notices it */

/* env.c: the text of a choice, and the name of its action. */
const char *dr__sim_action(size_t action, int choice, const char **name);

#endif
