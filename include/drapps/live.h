/* live.h: the state of running pipelines, for other programs such as `drapps top` and the metrics endpoint.
 *
 * Each pipeline writes to a small file that it maps into memory: the live file.  A write takes some hundred
 * nanoseconds, whether or not a program reads.  The file is removed when the pipeline ends; that of a killed process is
 * removed by the next process that opens or reads live files.
 *
 * Live files are in $DRAPPS_LIVE ("off": there are none), else in $XDG_RUNTIME_DIR/drapps, /dev/shm/drapps-<uid> or
 * /tmp/drapps-<uid>; only their user may read them.  If the folder cannot be made, pipelines run without live files.
 */
#ifndef DRAPPS_LIVE_H
#define DRAPPS_LIVE_H

#include <stddef.h>
#include <stdint.h>

#include <drapps/monitor.h>
#include <drapps/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dr_decision; /* sched.h */
struct dr_spread;

typedef struct dr_live dr_live;

/**
 * Make the live file of a pipeline.
 *
 * @param name   Name of the data set; copied.
 * @param policy Name of the policy; copied.
 *
 * @return The live file, which the caller closes by dr_live_close.  NULL where no file can be made; the calls below
 *         then do nothing.
 *
 * @note May be called from any thread.  In the child of a fork, the calls below do nothing.
 */
DR_API dr_live *dr_live_open(const char *name, const char *policy);

/**
 * Remove a live file.
 *
 * @param live The live file, which no other thread may be using; set to NULL.  A pointer to NULL is allowed.
 */
DR_API void dr_live_close(dr_live **live);

/**
 * Write the present state.
 *
 * @param live     The live file, or NULL.
 * @param snapshot The newest snapshot; NULL keeps the last one.
 * @param flow     The flow (DR_FLOW_MAP); NULL keeps the last one.
 * @param n_flow   Number of values of flow.
 * @param knobs    The knobs (DR_KNOB_MAP), NAN for those that the pipeline lacks; NULL keeps the last ones.
 * @param n_knobs  Number of knobs.
 *
 * @note One thread at a time may write: this call and the two below.
 */
DR_API void dr_live_put(dr_live *live, const dr_snapshot *snapshot, const double *flow, int n_flow, const double *knobs,
                        int n_knobs);

/**
 * Write the spreads.
 *
 * @param live    The live file, or NULL.
 * @param spreads The spreads (DR_SPREAD_MAP).
 * @param n       Their number, DR_N_SPREADS.
 */
DR_API void dr_live_spreads(dr_live *live, const struct dr_spread *spreads, int n);

/**
 * Write a decision.  To be called for every decision: "bounds", "turns" and "last" count all of them, while "decisions"
 * lists only those that changed a knob or that the guard made.
 *
 * @param live     The live file, or NULL.
 * @param decision The decision, borrowed for the call; NULL is ignored.
 */
DR_API void dr_live_decision(dr_live *live, const struct dr_decision *decision);

/**
 * Read the live files of this user.
 *
 * The result is a JSON array of the running pipelines, oldest first:
 *
 *     [{"pid", "loader", "command", "version", "name", "policy", "started_ns", "time_ns",
 *       "sensors": {name: value}, "levels": {name: value}, "modelled": [name, ...], "cpu": [...],
 *       "flow": {name: value}, "knobs": {name: value}, "bounds": {name: decisions so far},
 *       "turns": {knob: decisions so far that changed it},
 *       "spreads": {name: {"sum": s, "bins": [[end in s, or null: none, count], ...]}},
 *       "decisions": [decision, ...], "last": decision}, ...]
 *     a decision: {"number", "time_ns", "bound", "reward", "guarded", "reason", "changes": {knob: [from, to]}}
 *
 * "loader" numbers the pipelines of a process, from 1.  "decisions" are the last 16 that changed a knob or that the
 * guard made, oldest first; "last" is the last of all, or null.  A file of another version is read by the names in it;
 * one in another format has "pid", "loader", "command", "version" and "unreadable", a text, alone.
 *
 * @param pid  Pipelines of this process only; 0: of all processes.
 * @param json Receives the text, which the caller frees by dr_text_free (graph.h).
 * @param err The reason of a failure.  May be NULL.
 *
 * @return DR_OK; DR_ERR_ARG where pid is negative; DR_ERR_NOMEM.
 *
 * @note May be called from any thread.
 */
DR_API dr_status dr_live_read(int pid, char **json, dr_error *err);

#ifdef __cplusplus
}
#endif
#endif
