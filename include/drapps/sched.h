/* sched.h: who turns the knobs of a pipeline, when, and why.
 *
 * A controller looks at a monitor and at one pipeline, and once a second a policy decides how the pipeline's knobs
 * should stand.  A guard keeps that within the budgets and goes back to a safe setting where a change made things
 * worse. Every decision has a reason that people can read.
 *
 *   pipeline ─ flow ──► controller ◄── snapshot ─ monitor
 *                         │ observation
 *                       policy ─ proposals ──► guard ─ set ──► knobs of the pipeline
 *
 * Loaders make their own controller (dr_loader_options.policy); this header is for those who bring another kind of
 * pipeline, and for tools that read what controllers say.
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

/* X(id, name, unit, least, most, cooldown in ms, doc).  Cooldown: how long a policy leaves a knob alone after a change.
 * New knobs are added at the end: numbers stay. */
#define DR_KNOB_MAP(X)                                                                                                 \
    X(WORKERS, "workers", "threads or processes", 0, 256, 1000, "threads or processes that decode and augment")        \
    X(READERS, "readers", "threads", 0, 64, 1000, "threads that only read ahead of the workers; 0: workers read")      \
    X(PREFETCH, "prefetch", "batches", 1, 64, 1000, "prefetch window: batches in flight or ready")                     \
    X(PREFETCH_BYTES, "prefetch_bytes", "bytes", 0, 1e15, 1000, "memory of these batches; 0: the memory limit alone")  \
    X(LANE_SHARE, "lane_share", "share", 0, 1, 1000, "share of the workers for slow samples; 0: their share of work")  \
    X(LANE_THRESHOLD, "lane_threshold", "times", 1, 1000, 5000,                                                        \
      "multiple of the median cost that makes a sample slow")                                                          \
    X(CPU_CEILING, "cpu_ceiling", "cpus", 0, 512, 1000, "CPUs that the workers may use together; 0: no limit")         \
    X(PRIORITY, "priority", "level", -1, 1, 5000, "-1: runs when nothing else wants the CPU; 0: as others; 1: first")

typedef enum dr_knob {
#define DR_KNOB_ENUM(id, name, unit, least, most, cooldown, doc) DR_KNOB_##id,
    DR_KNOB_MAP(DR_KNOB_ENUM)
#undef DR_KNOB_ENUM
        DR_N_KNOBS
} dr_knob;

/* The table as JSON: [{"name", "unit", "least", "most", "cooldown_ms", "whole", "doc"}, ...]; not to be freed. */
DR_API const char *dr_knobs_json(void);
DR_API const char *dr_knob_name(int knob); /* NULL for a number that is none */
DR_API int dr_knob_find(const char *name); /* -1: none */
DR_API bool dr_knob_is_whole(int knob);    /* a count, which takes whole numbers alone */

/* --- flow: what a pipeline did and where it stands --- */

/* X(id, name, kind, unit, doc).  SUM: grows from 0 on; rates are differences.  GAUGE: as it is now. */
#define DR_FLOW_MAP(X)                                                                                                 \
    X(SAMPLES, "samples", SUM, "samples", "delivered to the consumer")                                                 \
    X(BATCHES, "batches", SUM, "batches", "delivered to the consumer")                                                 \
    X(WAIT, "wait", SUM, "s", "the consumer waited for a batch")                                                       \
    X(STEP, "step", SUM, "s", "the consumer did something else between two batches")                                   \
    X(WORKED, "worked", SUM, "samples", "finished by workers")                                                         \
    X(READ, "read", SUM, "s", "reading samples, summed over threads")                                                  \
    X(WORK, "work", SUM, "s", "decoding and augmenting, summed over workers")                                          \
    X(CPU, "cpu", SUM, "s", "CPU time of the workers, reading included")                                               \
    X(DELAY, "delay", SUM, "s", "workers could run and had no CPU; where the plant tells it")                          \
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
    X(CONSUMERS, "consumers", GAUGE, "threads", "waiting for a batch now")

typedef enum dr_flow {
#define DR_FLOW_ENUM(id, name, kind, unit, doc) DR_FLOW_##id,
    DR_FLOW_MAP(DR_FLOW_ENUM)
#undef DR_FLOW_ENUM
        DR_N_FLOWS
} dr_flow;

/* The table as JSON: [{"name", "kind": "sum" | "gauge", "unit", "doc"}, ...]; not to be freed. */
DR_API const char *dr_flows_json(void);

/* --- spreads: how long single waits and batches took --- */

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

/* A histogram: bin i counts times from 2^(16 + 2i) to 2^(18 + 2i) ns (0.26 ms, 1 ms, 4.2 ms, ... 17 s); the first has
 * all that are shorter, the last all that are longer. */
typedef struct dr_spread {
    double sum; /* s */
    uint64_t n[DR_SPREAD_BINS];
} dr_spread;

/* --- what is wanted --- */

/* X(id, name, doc).  Each term is in [0, 1]; the reward of a decision is the sum of weight * term, with the sign that
 * the table of terms in docs/scheduler.md says. */
#define DR_TERM_MAP(X)                                                                                                 \
    X(THROUGHPUT, "throughput", "samples delivered, of what is asked for and the CPUs can make: counts for")           \
    X(LATENCY, "latency", "time from a batch's begin to its end, as part of lat_ref: counts against")                  \
    X(BALANCE, "balance", "1 - standard deviation of the use of CPU, memory, storage and accelerator: counts for")     \
    X(ENERGY, "energy", "power, as part of the machine's: counts against")                                             \
    X(IDLE, "idle", "time in which the consumer waited: counts against")                                               \
    X(HOST, "host", "CPU that the pipeline uses, as part of what it may: counts against")                              \
    X(CHANGE, "change", "knobs turned, as part of all: counts against")

typedef enum dr_term {
#define DR_TERM_ENUM(id, name, doc) DR_TERM_##id,
    DR_TERM_MAP(DR_TERM_ENUM)
#undef DR_TERM_ENUM
        DR_N_TERMS
} dr_term;

typedef struct dr_weights {
    double of[DR_N_TERMS]; /* 0 or more each */
} dr_weights;

/* "step" (default: the training step: throughput, waiting, and a little host cost), "draadp" (throughput, latency,
 * balance, energy), "drapps" (throughput, latency, idle, balance), or "name=number,..." over "step" or over a preset
 * named first ("draadp,energy=0.5").  DR_ERR_ARG names what is not known. */
DR_API dr_status dr_weights_parse(const char *text, dr_weights *out, dr_error *err);

/* --- decisions --- */

/* X(id, name, doc): what limits a pipeline, as a policy sees it. */
#define DR_BOUND_MAP(X)                                                                                                \
    X(UNKNOWN, "unknown", "too little is known yet")                                                                   \
    X(TRAINER, "trainer", "the trainer: it does not wait for batches")                                                 \
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

DR_API const char *dr_bound_name(int bound);

enum { DR_MAX_REASON = 320 };

typedef struct dr_decision {
    uint64_t time_ns;
    uint64_t number;           /* 1, 2, ... */
    int32_t bound;             /* dr_bound */
    uint32_t changed;          /* bit (1 << dr_knob): was turned */
    double before[DR_N_KNOBS]; /* knobs that the pipeline lacks: 0 */
    double after[DR_N_KNOBS];
    double term[DR_N_TERMS];   /* of the time since the decision before */
    double weight[DR_N_TERMS]; /* as they were then */
    double reward;
    bool guarded;               /* the guard, not the policy, had the last word */
    char reason[DR_MAX_REASON]; /* sentences: "The trainer waits 12 % of its time and could take 640 samples/s. ..." */
} dr_decision;

/* The reward again, from the terms and weights: equal to d->reward to 1e-6. */
DR_API double dr_decision_reward(const dr_decision *d);

/* --- policies --- */

enum { DR_MAX_POLICY = 512 };

/* The table as JSON: [{"name", "doc", "params": [{"name", "least", "most", "default", "doc"}, ...]}, ...]: "fixed",
 * "rules", "climb", "stages", "analytic".  Static; not to be freed. */
DR_API const char *dr_policies_json(void);

/* Checks the text by which a policy is chosen: "name" or "name:param=value,param=value".  Names, parameters and their
 * ranges are those of dr_policies_json; "off" is "fixed"; `load=PATH` starts with a state that
 * dr_controller_save_policy has written.
 *
 * @param text  up to DR_MAX_POLICY - 1 bytes; NULL checks the variable DRAPPS_POLICY
 * @return DR_OK, or DR_ERR_ARG with what is allowed.  The file of `load` is not looked at. */
DR_API dr_status dr_policy_check(const char *text, dr_error *err);

/* --- controllers --- */

enum { DR_MAX_WHERE = 96 };

/* A pipeline as a controller sees it.  The callbacks run in the monitor's thread, without a lock held, and must not
 * wait for anything: what takes time is done later by the pipeline itself. */
typedef struct dr_plant {
    void *user;
    uint32_t knobs;                                    /* bit (1 << dr_knob): it has the knob */
    bool tells_delay;                                  /* its flow has the delay: work that is neither CPU time nor
                                                          delay is blocked */
    double least[DR_N_KNOBS], most[DR_N_KNOBS];        /* within the table's */
    void (*flow)(void *user, double flow[DR_N_FLOWS]); /* finds zeros; fills what it knows */
    double (*get)(void *user, int knob);
    dr_status (*set)(void *user, int knob, double value, dr_error *err);
    void (*spreads)(void *user, dr_spread spreads[DR_N_SPREADS]); /* finds zeros, fills; NULL: not known */
    void (*waits_in)(void *user, char where[DR_MAX_WHERE]); /* the function in which workers are blocked most, finds "";
                                                                NULL: not known */
} dr_plant;

typedef struct dr_controller_options {
    size_t size;           /* sizeof(dr_controller_options) */
    const char *policy;    /* as dr_policy_check allows; NULL: "analytic" */
    uint32_t pinned;       /* bit (1 << dr_knob): the user's, never turned */
    int period_ms;         /* between decisions, 100..60000; 0: 1000 */
    uint64_t decided;      /* decisions before this controller, of another one: numbers go on from there */
    double cpu_limit;      /* CPUs that the pipeline may use, to which its cpu_ceiling is turned; 0: the container's */
    uint64_t memory_limit; /* bytes; 0: what the plant's flow says */
    dr_weights weights;
    dr_trace *trace; /* where it writes snapshots, flow and decisions; NULL: nowhere.  Borrowed */
    dr_live *live;   /* what others see of it; NULL: nothing.  Borrowed */
} dr_controller_options;

typedef struct dr_controller dr_controller;

DR_API void dr_controller_defaults(dr_controller_options *options);

/* Starts a controller.  Refs the monitor.  The plant's struct is copied; `user` must outlive the controller. */
DR_API dr_status dr_controller_open(dr_monitor *monitor, const dr_controller_options *options, const dr_plant *plant,
                                    dr_controller **out, dr_error *err);

/* When it returns, no callback of the plant runs any more. */
DR_API void dr_controller_close(dr_controller **controller);

/* While it is held (between epochs, with a consumer that pauses), it watches and does not decide. */
DR_API void dr_controller_hold(dr_controller *controller, bool held);

/* What the user turned himself: never again turned by the policy, or free again. */
DR_API dr_status dr_controller_pin(dr_controller *controller, int knob, bool pinned, dr_error *err);

DR_API void dr_controller_set_weights(dr_controller *controller, const dr_weights *weights);

/* Writes the state of the policy to a file, from which `load=PATH` of a later run begins.  Any thread.
 *
 * @param path  replaced if it exists, by renaming a temporary file beside it
 * @return DR_OK; DR_ERR_IO, DR_ERR_NOT_FOUND or DR_ERR_NOMEM where it cannot be written */
DR_API dr_status dr_controller_save_policy(dr_controller *controller, const char *path, dr_error *err);

/* The newest decisions, at most `cap`, with numbers above `after`, oldest first; returns how many.  64 are kept; one
 * that changed nothing, but the first, only until the next, so that their numbers have gaps. */
DR_API size_t dr_controller_decisions(dr_controller *controller, uint64_t after, dr_decision *out, size_t cap);

#ifdef __cplusplus
}
#endif
#endif
