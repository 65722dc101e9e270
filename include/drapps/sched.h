/* sched.h: controllers and policies, which set the knobs of a running pipeline.
 *
 * A controller reads a monitor and one pipeline.  Once a second a policy proposes values for the pipeline's knobs.  A
 * guard keeps them within the budgets and reverts a change that made things worse.  Every decision has a reason that
 * people can read.
 *
 *   pipeline ─ flow ──► controller ◄── snapshot ─ monitor
 *                         │ observation
 *                       policy ─ proposals ──► guard ─ set ──► knobs of the pipeline
 *
 * Loaders make their own controller (dr_loader_options.policy); this header is for other kinds of pipelines, and for
 * tools that read decisions.
 *
 * The environment variable DRAPPS_POLICY overrides every setting: the name of a policy; "off" is "fixed".
 */
#ifndef DRAPPS_SCHED_H
#define DRAPPS_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drapps/live.h>
#include <drapps/monitor.h>
#include <drapps/status.h>
#include <drapps/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- knobs --- */

/* X(id, name, unit, least, most, cooldown in ms, doc).  Cooldown: how long a policy leaves a knob alone after a change
 * at least; lane_threshold, codec and offload also until what was in flight has been delivered.  New knobs are added at
 * the end: numbers stay. */
#define DR_KNOB_MAP(X)                                                                                                 \
    X(WORKERS, "workers", "threads or processes", 0, 256, 1000, "threads or processes that decode and augment")        \
    X(READERS, "readers", "threads", 0, 64, 1000, "threads that only read ahead of the workers; 0: workers read")      \
    X(PREFETCH, "prefetch", "batches", 1, 64, 1000, "prefetch window: batches in flight or ready")                     \
    X(PREFETCH_BYTES, "prefetch_bytes", "bytes", 0, 1e15, 1000, "memory of these batches; 0: the memory limit alone")  \
    X(LANE_SHARE, "lane_share", "share", 0, 1, 1000, "share of the workers for slow samples; 0: their share of work")  \
    X(LANE_THRESHOLD, "lane_threshold", "times", 1, 1000, 1000,                                                        \
      "multiple of the median cost that makes a sample slow")                                                          \
    X(CPU_CEILING, "cpu_ceiling", "cpus", 0, 512, 1000, "CPUs that the workers may use together; 0: no limit")         \
    X(PRIORITY, "priority", "level", -1, 1, 1000, "-1: runs when nothing else wants the CPU; 0: as others; 1: first")  \
    X(CODEC, "codec", "number", -1, 255, 1000,                                                                         \
      "codec of what a cache keeps, by its number; -1: the one that suits best")                                       \
    X(OFFLOAD, "offload", "share", 0, 1, 1000, "share of the samples planned for a server that it prepares; 0: none")

typedef enum dr_knob {
#define DR_KNOB_ENUM(id, name, unit, least, most, cooldown, doc) DR_KNOB_##id,
    DR_KNOB_MAP(DR_KNOB_ENUM)
#undef DR_KNOB_ENUM
        DR_N_KNOBS
} dr_knob;

/**
 * Get the table of knobs.
 *
 * @return A static JSON text: [{"name", "unit", "least", "most", "cooldown_ms", "whole", "doc"}, ...].  Never NULL.
 */
DR_API const char *dr_knobs_json(void);

/**
 * Get the name of a knob.
 *
 * @param knob A dr_knob.
 *
 * @return A static text; NULL for a number that is no knob.
 */
DR_API const char *dr_knob_name(int knob);

/**
 * Find a knob by its name.
 *
 * @param name The name.
 *
 * @return The dr_knob, or -1 where no knob has that name.
 */
DR_API int dr_knob_find(const char *name);

/**
 * Ask whether a knob is a count, which takes only whole numbers.
 *
 * @param knob A dr_knob.
 *
 * @return Whether it is.
 */
DR_API bool dr_knob_is_whole(int knob);

/* --- the default prefetch window --- */

/* A prefetch window that neither the user nor a policy has set grows while batches are cheap: up to
 * DR_PREFETCH_SAMPLES_PER_WORKER samples in flight for each worker, which evens out that some samples take much longer
 * than others, and as long as all batches in flight take no more than DR_PREFETCH_CHEAP_BYTES. */
enum { DR_PREFETCH_CHEAP_BYTES = 64 << 20, DR_PREFETCH_SAMPLES_PER_WORKER = 12 };

/* --- flow: what a pipeline has done, and its present state --- */

/* X(id, name, kind, unit, doc).  SUM: a counter from 0; rates are differences.  GAUGE: the present value. */
#define DR_FLOW_MAP(X)                                                                                                 \
    X(SAMPLES, "samples", SUM, "samples", "delivered to the consumer")                                                 \
    X(BATCHES, "batches", SUM, "batches", "delivered to the consumer")                                                 \
    X(WAIT, "wait", SUM, "s", "the consumer waited for a batch")                                                       \
    X(STEP, "step", SUM, "s", "the consumer did something else between two batches")                                   \
    X(WORKED, "worked", SUM, "samples", "finished by workers")                                                         \
    X(READ, "read", SUM, "s", "reading samples, summed over threads")                                                  \
    X(WORK, "work", SUM, "s", "decoding and augmenting, summed over workers")                                          \
    X(CPU, "cpu", SUM, "s", "CPU time of the workers, reading included")                                               \
    X(DELAY, "delay", SUM, "s", "workers could run and had no CPU; where the plant knows it")                          \
    X(BYTES_READ, "bytes_read", SUM, "bytes", "encoded bytes")                                                         \
    X(LATENCY, "latency", SUM, "s", "from a batch's first sample begun to the batch ready, summed over batches")       \
    X(SLOW, "slow", SUM, "samples", "that went through the slow lane")                                                 \
    X(SLOW_WORK, "slow_work", SUM, "s", "work on these")                                                               \
    X(CACHE_HITS, "cache_hits", SUM, "samples", "whose beginning came from the cache")                                 \
    X(CACHE_MISSES, "cache_misses", SUM, "samples", "looked for there in vain")                                        \
    X(BAD, "bad", SUM, "samples", "left out or replaced")                                                              \
    X(DEATHS, "deaths", SUM, "workers", "that died and were replaced")                                                 \
    X(READY, "ready", GAUGE, "batches", "finished, not taken")                                                         \
    X(OPEN, "open", GAUGE, "batches", "begun, not taken")                                                              \
    X(ACTIVE, "active", GAUGE, "workers", "at a sample")                                                               \
    X(FETCHED, "fetched", GAUGE, "samples", "read ahead, waiting for a worker")                                        \
    X(PARKED, "parked", GAUGE, "samples", "slow ones that wait for a worker")                                          \
    X(BYTES, "bytes", GAUGE, "bytes", "samples and batches in flight")                                                 \
    X(BYTES_LIMIT, "bytes_limit", GAUGE, "bytes", "what these may take")                                               \
    X(BATCH_BYTES, "batch_bytes", GAUGE, "bytes", "one batch")                                                         \
    X(BATCH_SAMPLES, "batch_samples", GAUGE, "samples", "one batch")                                                   \
    X(CACHE_FILL, "cache_fill", GAUGE, "share", "of what the cache may take")                                          \
    X(CONSUMERS, "consumers", GAUGE, "threads", "waiting for a batch now")                                             \
    X(CODEC, "codec", GAUGE, "number", "codec of the sample that the cache kept last")                                 \
    X(CODEC_V, "codec_v", GAUGE, "share", "its speed, of the fastest codec's")                                         \
    X(CODEC_RHO, "codec_rho", GAUGE, "share", "its ratio, of the densest codec's")                                     \
    X(CODEC_COMPAT, "codec_compat", GAUGE, "share", "how well it fits the machine as it is")                           \
    X(CODEC_U, "codec_u", GAUGE, "utility", "its utility, the sum of these with their weights")

typedef enum dr_flow {
#define DR_FLOW_ENUM(id, name, kind, unit, doc) DR_FLOW_##id,
    DR_FLOW_MAP(DR_FLOW_ENUM)
#undef DR_FLOW_ENUM
        DR_N_FLOWS
} dr_flow;

/**
 * Get the table of flows.
 *
 * @return A static JSON text: [{"name", "kind": "sum" | "gauge", "unit", "doc"}, ...].  Never NULL.
 */
DR_API const char *dr_flows_json(void);

/* --- spreads: histograms of single waits and batches --- */

/* X(id, name, doc). */
#define DR_SPREAD_MAP(X)                                                                                               \
    X(WAIT, "wait", "the consumer waited for a batch")                                                                 \
    X(LATENCY, "latency", "from a batch's first sample begun to the batch ready")

typedef enum dr_spread_of {
#define DR_SPREAD_ENUM(id, name, doc) DR_SPREAD_##id,
    DR_SPREAD_MAP(DR_SPREAD_ENUM)
#undef DR_SPREAD_ENUM
        DR_N_SPREADS
} dr_spread_of;

enum { DR_SPREAD_BINS = 10 };

/* A histogram: bin i counts times from 2^(16 + 2i) to 2^(18 + 2i) ns (ends at 0.26 ms, 1 ms, 4.2 ms, ...).  The first
 * bin also counts all shorter times, the last one all longer times. */
typedef struct dr_spread {
    double sum; /* s */
    uint64_t n[DR_SPREAD_BINS];
} dr_spread;

/* --- the reward --- */

/* X(id, name, doc).  Each term is in [0, 1].  The reward of a decision is the sum of weight * term; terms that count
 * against have a negative sign. */
#define DR_TERM_MAP(X)                                                                                                 \
    X(THROUGHPUT, "throughput", "samples delivered, of what is asked for and the CPUs can make: counts for")           \
    X(LATENCY, "latency", "time from a batch's begin to its end, as part of lat_ref: counts against")                  \
    X(BALANCE, "balance", "1 - standard deviation of the use of CPU, memory, storage and accelerator: counts for")     \
    X(ENERGY, "energy", "power, as part of the machine's: counts against")                                             \
    X(IDLE, "idle", "time in which the consumer waited: counts against")                                               \
    X(HOST, "host", "CPU that the pipeline uses, as part of what it may: counts against")                              \
    X(CHANGE, "change", "knobs changed, as part of all: counts against")

typedef enum dr_term {
#define DR_TERM_ENUM(id, name, doc) DR_TERM_##id,
    DR_TERM_MAP(DR_TERM_ENUM)
#undef DR_TERM_ENUM
        DR_N_TERMS
} dr_term;

typedef struct dr_weights {
    double of[DR_N_TERMS]; /* 0 or more each */
} dr_weights;

/**
 * Parse weights.
 *
 * @param text "step" (the default: throughput, waiting, and a little host cost), "draadp" (throughput, latency,
 *             balance, energy), "drapps" (throughput, latency, idle, balance), or "name=number,...", which changes
 *             weights of "step" or of a preset that comes first ("draadp,energy=0.5").
 * @param out  Receives the weights.
 * @param err  The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG where a preset, a term or a number is wrong.
 */
DR_API dr_status dr_weights_parse(const char *text, dr_weights *out, dr_error *err);

enum { DR_MAX_SPANS = 16 };

/* Weights that change with the time of day: prices of electricity, of CPUs, hours of a shared machine. */
typedef struct dr_weights_schedule {
    dr_weights otherwise; /* in no span */
    int n_spans;
    struct {
        double from, to; /* seconds since midnight, local time; from > to: over midnight */
        dr_weights weights;
    } spans[DR_MAX_SPANS]; /* of those that overlap the last one counts */
} dr_weights_schedule;

/**
 * Parse weights that may change with the time of day: "step,energy=0.3; 22:00-06:00 energy=0.05; 12:00-14:00 energy=1".
 *
 * @param text As for dr_weights_parse; then up to DR_MAX_SPANS times ";", a span of local time HH:MM-HH:MM or
 *             HH:MM:SS-HH:MM:SS, and what changes in it: "name=number,...".  24:00 is the end of the day.
 * @param out  Receives the schedule.
 * @param err  The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG where a preset, a term, a number or a time is wrong.
 */
DR_API dr_status dr_weights_schedule_parse(const char *text, dr_weights_schedule *out, dr_error *err);

/**
 * Look up weights.
 *
 * @param schedule The schedule.
 * @param second   Seconds since midnight, local time.
 * @param now      Receives the weights of that time.
 * @param next     Receives the weights after the next change; those of `now` where they never change.  May be NULL.
 *
 * @return Seconds until that change; 0 where they never change.
 */
DR_API double dr_weights_at(const dr_weights_schedule *schedule, double second, dr_weights *now, dr_weights *next);

/* --- decisions --- */

/* X(id, name, doc): what limits a pipeline, as a policy sees it. */
#define DR_BOUND_MAP(X)                                                                                                \
    X(UNKNOWN, "unknown", "too little is known yet")                                                                   \
    X(CONSUMER, "consumer", "the consumer: it does not wait for batches")                                              \
    X(CPU, "cpu", "the CPUs that the pipeline may use are busy")                                                       \
    X(WORKERS, "workers", "workers are busy, CPUs are not")                                                            \
    X(STORAGE, "storage", "workers wait for reads")                                                                    \
    X(MEMORY, "memory", "the memory limit keeps batches from being begun")                                             \
    X(PREFETCH, "prefetch", "too few batches are made ahead for how much their times vary")                            \
    X(QUOTA, "quota", "the container's CPU quota")                                                                     \
    X(OTHERS, "others", "other programs use the CPUs")                                                                 \
    X(BLOCKED, "blocked", "workers' code waits for something other than a CPU or a read: a sleep, a lock, a network")

typedef enum dr_bound {
#define DR_BOUND_ENUM(id, name, doc) DR_BOUND_##id,
    DR_BOUND_MAP(DR_BOUND_ENUM)
#undef DR_BOUND_ENUM
        DR_N_BOUNDS
} dr_bound;

/**
 * Get the name of a bound.
 *
 * @param bound A dr_bound.
 *
 * @return A static text; NULL for a number that is no bound.
 */
DR_API const char *dr_bound_name(int bound);

enum { DR_MAX_REASON = 320 };

typedef struct dr_decision {
    uint64_t time_ns;
    uint64_t number;           /* 1, 2, ... */
    int32_t bound;             /* dr_bound */
    uint32_t changed;          /* bit (1 << dr_knob): the knob was changed */
    double before[DR_N_KNOBS]; /* 0 for knobs that the pipeline lacks */
    double after[DR_N_KNOBS];
    double term[DR_N_TERMS];   /* over the time since the previous decision */
    double weight[DR_N_TERMS]; /* at that time */
    double reward;
    bool guarded;               /* the guard overrode the policy */
    char reason[DR_MAX_REASON]; /* sentences: "The consumer waits 12 % of its time and could take 640 samples/s. ..." */
} dr_decision;

/**
 * Compute the reward of a decision from its terms and weights.
 *
 * @param d The decision.
 *
 * @return The reward, equal to d->reward to 1e-6.
 */
DR_API double dr_decision_reward(const dr_decision *d);

/* --- policies --- */

enum { DR_MAX_POLICY = 512 };

/**
 * Get the table of policies: "fixed", "rules", "climb", "stages", "analytic", "mpc".
 *
 * @return A static JSON text: [{"name", "doc", "params": [{"name", "least", "most", "default", "doc"}, ...]}, ...].
 *         Never NULL.
 */
DR_API const char *dr_policies_json(void);

/**
 * Check the text by which a policy is chosen: "name" or "name:param=value,param=value".
 *
 * Names, parameters and their ranges are those of dr_policies_json.  "off" is "fixed".  `load=PATH` starts with a state
 * that dr_controller_save_policy has written.
 *
 * @param text Up to DR_MAX_POLICY - 1 bytes; NULL checks the variable DRAPPS_POLICY.
 * @param err  The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG where the text is wrong.  The file of `load` is not read.
 */
DR_API dr_status dr_policy_check(const char *text, dr_error *err);

/* --- controllers --- */

enum { DR_MAX_WHERE = 96 };

/* A pipeline as a controller sees it.  The callbacks run in the monitor's thread, with no lock held, and must not
 * block: the pipeline does slow work later, in its own threads. */
typedef struct dr_plant {
    void *user;
    uint32_t knobs;                                    /* bit (1 << dr_knob): it has the knob */
    bool tells_delay;                                  /* its flow has DELAY: work that is neither CPU time nor delay
                                                          is blocked */
    double least[DR_N_KNOBS], most[DR_N_KNOBS];        /* within the ranges of DR_KNOB_MAP */
    void (*flow)(void *user, double flow[DR_N_FLOWS]); /* sets the values that it knows; all are 0 before */
    double (*get)(void *user, int knob);
    dr_status (*set)(void *user, int knob, double value, dr_error *err);
    void (*spreads)(void *user, dr_spread spreads[DR_N_SPREADS]); /* sets the spreads, which are 0 before; NULL: not
                                                                     known */
    void (*waits_in)(void *user, char where[DR_MAX_WHERE]); /* sets the function in which workers are blocked most,
                                                               which is "" before; NULL: not known */
    bool works_ahead; /* batches are begun without the consumer: in a pause of it, too */
} dr_plant;

typedef struct dr_controller_options {
    size_t size;           /* sizeof(dr_controller_options) */
    const char *policy;    /* as for dr_policy_check; NULL: "analytic" */
    uint32_t pinned;       /* bit (1 << dr_knob): set by the user, never changed */
    int period_ms;         /* between decisions, 100 .. 60000; 0: 1000 */
    uint64_t decided;      /* decisions of an earlier controller of this pipeline: numbers continue from there */
    double cpu_limit;      /* CPUs that the pipeline may use: the limit of cpu_ceiling; 0: the container's limit */
    uint64_t memory_limit; /* bytes; 0: BYTES_LIMIT of the flow */
    bool memory_granted;   /* the limit was chosen for this pipeline: batches made ahead may fill it */
    dr_weights weights;
    const dr_weights_schedule *schedule; /* in their place; copied.  NULL: they do not change with the time of day */
    dr_trace *trace; /* receives snapshots, flow and decisions; NULL: none.  Borrowed until the controller is closed */
    dr_live *live;   /* receives them, too; NULL: none.  Borrowed until the controller is closed */
} dr_controller_options;

typedef struct dr_controller dr_controller;

/**
 * Fill in the defaults.
 *
 * @param options Overwritten, its `size` included.
 */
DR_API void dr_controller_defaults(dr_controller_options *options);

/**
 * Start a controller.
 *
 * @param monitor The monitor; the controller keeps a reference.
 * @param options The settings, borrowed for the call.
 * @param plant   The pipeline; copied.  plant->user must stay valid until dr_controller_close.
 * @param out     The controller, which the caller closes by dr_controller_close.  NULL after a failure.
 * @param err     The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG where an option or the plant is wrong; DR_ERR_LIMIT where the monitor has no room for
 *         another callback; DR_ERR_FORKED; DR_ERR_NOMEM.
 *
 * @note The calls below may be made from any thread, but not from a callback of the plant.
 */
DR_API dr_status dr_controller_open(dr_monitor *monitor, const dr_controller_options *options, const dr_plant *plant,
                                    dr_controller **out, dr_error *err);

/**
 * Stop a controller and free it.  When this returns, no callback of the plant runs.
 *
 * @param controller The controller; set to NULL.  A pointer to NULL is allowed.
 */
DR_API void dr_controller_close(dr_controller **controller);

/**
 * Hold a controller, or let it continue.  While it is held (between epochs, while the consumer pauses), it observes and
 * does not decide.
 *
 * @param controller The controller.
 * @param held       Whether it is held.
 */
DR_API void dr_controller_hold(dr_controller *controller, bool held);

/**
 * Tell a controller that the consumer pauses (an evaluation, a checkpoint), or goes on.  In a pause no policy decides,
 * and its time counts nowhere.  Where plant->works_ahead, batches are made meanwhile as far as memory allows: seven
 * tenths of a memory limit with memory_granted, else half of that.  Afterwards all knobs are what they were at once;
 * the prefetch window shrinks as these batches are taken.
 *
 * A pause that nobody tells of is noticed where it is a single step over 1 s and over eight mean steps long; then
 * nothing is made ahead.
 *
 * @param controller The controller.
 * @param paused     Whether it pauses.
 */
DR_API void dr_controller_pause(dr_controller *controller, bool paused);

/**
 * Pin a knob that the user has set, so that the policy does not change it; or unpin it.
 *
 * @param controller The controller.
 * @param knob       A dr_knob.
 * @param pinned     Whether it is pinned.
 * @param err        The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG where there is no such knob.
 */
DR_API dr_status dr_controller_pin(dr_controller *controller, int knob, bool pinned, dr_error *err);

/**
 * Change the weights of the reward, from the next decision on; a schedule ends.
 *
 * @param controller The controller.
 * @param weights    The weights; copied.
 */
DR_API void dr_controller_set_weights(dr_controller *controller, const dr_weights *weights);

/**
 * The same with weights that change with the time of day.
 *
 * @param controller The controller.
 * @param schedule   The weights; copied.
 */
DR_API void dr_controller_set_schedule(dr_controller *controller, const dr_weights_schedule *schedule);

/**
 * Write the state of the policy to a file, with which a later run can start (`load=PATH`).
 *
 * @param controller The controller.
 * @param path       The file; replaced by renaming a temporary file beside it.
 * @param err        The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_IO, DR_ERR_NOT_FOUND or DR_ERR_NOMEM where it cannot be written.
 */
DR_API dr_status dr_controller_save_policy(dr_controller *controller, const char *path, dr_error *err);

/**
 * Copy the newest decisions, oldest first.
 *
 * The last 64 are kept.  A decision that changed nothing, except the first, is kept only until the next one, so that
 * numbers have gaps.
 *
 * @param controller The controller.
 * @param after      Only decisions with higher numbers.
 * @param out        Room for `cap` decisions.
 * @param cap        How many to copy at most.
 *
 * @return How many were copied.
 */
DR_API size_t dr_controller_decisions(dr_controller *controller, uint64_t after, dr_decision *out, size_t cap);

#ifdef __cplusplus
}
#endif
#endif
