/* sim.h: a simulator of a loader, its machine and its consumer, for trying and training policies.
 *
 * A simulation is a twin of the executor on a virtual clock: workers and readers as fluids, batches, steps of the
 * consumer and the quota's periods as events.  It goes on in ticks of 10 ms; every tenth makes a snapshot as a monitor
 * does.  Policies drive it by the knobs of a real loader.
 *
 *   machine x workload x model x scenario ─ seed ──► instance ─ ticks ──► snapshot, flow ──► policy ─ knobs ─┐
 *                                                       ▲───────────────────────────────────────────────────┘
 *
 * The same options and seed give the same numbers on a machine.  A simulation is used by one thread at a time; several
 * may run side by side.  After dr_sim_open nothing is allocated.
 */
#ifndef DRAPPS_SIM_H
#define DRAPPS_SIM_H

#include <stddef.h>
#include <stdint.h>

#include <drapps/monitor.h>
#include <drapps/sched.h>
#include <drapps/status.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DR_SIM_TICK_MS = 10, DR_SIM_SNAPSHOT_MS = 100 };

typedef struct dr_sim dr_sim;

typedef struct dr_sim_options {
    size_t size;          /* sizeof(dr_sim_options) */
    const char *machine;  /* names of rows of dr_sim_json; NULL: the first row of each table.  Borrowed for the call */
    const char *workload; /* */
    const char *model;    /* NULL: scenarios that vary loads draw what is asked for; else the model's step counts */
    const char *scenario; /* */
    const char *set;      /* "field=value,...": overrides presets and what scenarios draw; NULL: nothing */
    const char *weights;  /* as for dr_weights_parse; NULL: the scenario's */
    uint64_t seed;
} dr_sim_options;

/**
 * Get the tables of fields, signals, machines, workloads, models and scenarios.
 *
 * @return A static JSON text: {"fields": [{"name", "group", "unit", "least", "most", "default", "doc"}], "signals":
 *         [{"name", "doc"}], "machines": [{"name", "doc", "set"}], "workloads": [...], "models": [...], "scenarios":
 *         [{"name", "doc", "weights", "varied"}]}.  NULL where memory is short.
 */
DR_API const char *dr_sim_json(void);

/**
 * Fill in the defaults.
 *
 * @param options Overwritten, its `size` included.
 */
DR_API void dr_sim_defaults(dr_sim_options *options);

/**
 * Open a simulation at time 0 of the instance that the seed draws.
 *
 * @param options What to simulate; NULL: the defaults.
 * @param out     The simulation, which the caller closes by dr_sim_close.  NULL after a failure.
 * @param err     The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG where an option is wrong; DR_ERR_NOMEM.
 */
DR_API dr_status dr_sim_open(const dr_sim_options *options, dr_sim **out, dr_error *err);

/**
 * Close a simulation and free it.
 *
 * @param sim The simulation; set to NULL.  A pointer to NULL is allowed.
 */
DR_API void dr_sim_close(dr_sim **sim);

/**
 * Begin again at time 0, with the instance that another seed draws.
 *
 * @param sim  The simulation.
 * @param seed The seed.
 */
DR_API void dr_sim_reset(dr_sim *sim, uint64_t seed);

/**
 * Let time pass.
 *
 * @param sim     The simulation.
 * @param seconds Virtual time, in whole ticks: rounded up.
 */
DR_API void dr_sim_advance(dr_sim *sim, double seconds);

/**
 * Get the virtual time.
 *
 * @param sim The simulation.
 *
 * @return Seconds since the begin.
 */
DR_API double dr_sim_time(const dr_sim *sim);

/**
 * Get a field of the instance, as presets, draws and `set` made it.
 *
 * @param sim   The simulation.
 * @param field A name of dr_sim_json's fields.
 * @param value Receives the value.
 * @param err   The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG where no field has that name.
 */
DR_API dr_status dr_sim_field(const dr_sim *sim, const char *field, double *value, dr_error *err);

/**
 * Get the pipeline as controllers see it, with its knobs and their ranges.
 *
 * @param sim The simulation; must stay valid while the plant is used.
 *
 * @return The plant.  Its `set` takes effect after the instance's action delay.
 */
DR_API dr_plant dr_sim_plant(dr_sim *sim);

/**
 * Get the newest snapshot, with the instance's noise and delay.
 *
 * @param sim The simulation.
 * @param out Receives the snapshot; cpu[] is 0.  Its time is the virtual time plus one second.
 */
DR_API void dr_sim_snapshot(const dr_sim *sim, dr_snapshot *out);

/* What happened since the begin, as it was, without noise. */
typedef struct dr_sim_result {
    double seconds, samples, batches;
    double wait;       /* share of the time in which the consumer waited */
    double cpus;       /* mean of the CPUs that workers and consumer used */
    double watts;      /* mean power of the CPU packages */
    double latency;    /* mean seconds from the begin of a batch to its end */
    double throttled;  /* share of the time in which the quota stopped the loader */
    double cache_hits; /* share of the samples */
    double reward;     /* mean over seconds, by the true terms and the weights of each second, without `change` */
    double term[DR_N_TERMS];
    double knob[DR_N_KNOBS]; /* mean over time */
    uint64_t decisions, changes, ticks;
} dr_sim_result;

/**
 * Get what happened so far.
 *
 * @param sim The simulation.
 * @param out Receives the results.
 */
DR_API void dr_sim_look(const dr_sim *sim, dr_sim_result *out);

/* Is called after each decision, which was carried out. */
typedef void dr_sim_decided(void *user, const dr_decision *decision);

/**
 * Run a policy, as a controller does: a decision each second, with the guard, and none in pauses of the consumer.
 *
 * @param sim     The simulation; begins where it is.
 * @param policy  As for dr_policy_check; NULL: "analytic".
 * @param seconds Virtual time.
 * @param decided Called after each decision; NULL: none.
 * @param user    Its argument.
 * @param err     The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG where the policy is wrong; DR_ERR_NOMEM.
 */
DR_API dr_status dr_sim_run(dr_sim *sim, const char *policy, double seconds, dr_sim_decided *decided, void *user,
                            dr_error *err);

/* --- environments for reinforcement learning --- */

/* Several simulations in step, for an agent.  An action is a small change of each knob; a step is a second. */
typedef struct dr_sim_env dr_sim_env;

typedef struct dr_sim_env_options {
    size_t size;       /* sizeof(dr_sim_env_options) */
    dr_sim_options of; /* each environment's; its seed is of.seed + number of the environment */
    size_t n;          /* environments, at least 1 */
    double seconds;    /* length of an episode */
    const char *base;  /* policy on whose decisions actions are added; NULL: on the knobs as they are */
} dr_sim_env_options;

/**
 * Get the observation's and the actions' tables.
 *
 * @return A static JSON text: {"observation": [{"name", "doc"}], "actions": [{"name", "choices": [text, ...]}]}.  NULL
 *         where memory is short.
 */
DR_API const char *dr_sim_env_json(void);

/**
 * Fill in the defaults: one environment, episodes of 120 s.
 *
 * @param options Overwritten, its `size` included.
 */
DR_API void dr_sim_env_defaults(dr_sim_env_options *options);

/**
 * Open environments; each is to be reset before its first step.
 *
 * @param options What to simulate.
 * @param out     The environments, which the caller closes by dr_sim_env_close.  NULL after a failure.
 * @param err     The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG where an option is wrong; DR_ERR_NOMEM.
 */
DR_API dr_status dr_sim_env_open(const dr_sim_env_options *options, dr_sim_env **out, dr_error *err);

/**
 * Close environments.
 *
 * @param env The environments; set to NULL.  A pointer to NULL is allowed.
 */
DR_API void dr_sim_env_close(dr_sim_env **env);

/**
 * Get how many numbers an observation has.
 *
 * @return The number, the same for all environments.
 */
DR_API size_t dr_sim_env_observation(void);

/**
 * Get how many actions a step has, and how many choices each.
 *
 * @param choices Receives a number for each action; NULL: not wanted.
 * @param cap     Room in `choices`.
 *
 * @return How many actions there are.
 */
DR_API size_t dr_sim_env_actions(int *choices, size_t cap);

/**
 * Begin an episode of one environment.  A second passes with the knobs as they are before it is observed.
 *
 * @param env         The environments.
 * @param i           Which, from 0.
 * @param seed        Of the instance.
 * @param observation Receives as many numbers as dr_sim_env_observation says.
 */
DR_API void dr_sim_env_reset(dr_sim_env *env, size_t i, uint64_t seed, float *observation);

/**
 * Carry out an action in one environment, let a second pass, and observe.
 *
 * @param env         The environments.
 * @param i           Which, from 0.
 * @param action      A choice for each action; those out of range, or of knobs that the instance lacks, change nothing.
 * @param observation Receives as many numbers as dr_sim_env_observation says.
 * @param reward      Receives the reward of that second.
 *
 * @return Whether the episode is over: by its length, which is a truncation.
 */
DR_API bool dr_sim_env_step(dr_sim_env *env, size_t i, const int32_t *action, float *observation, double *reward);

/**
 * Get the mask of the choices that change something: 1 for allowed, all actions' choices one after another.
 *
 * @param env  The environments.
 * @param i    Which, from 0.
 * @param mask Receives a byte for each choice of each action.
 */
DR_API void dr_sim_env_mask(const dr_sim_env *env, size_t i, uint8_t *mask);

/**
 * Get the simulation of an environment, for its results.
 *
 * @param env The environments.
 * @param i   Which, from 0.
 *
 * @return The simulation, borrowed until the environments are closed.
 */
DR_API dr_sim *dr_sim_env_sim(dr_sim_env *env, size_t i);

#ifdef __cplusplus
}
#endif
#endif
