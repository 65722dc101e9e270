/* live.h: what a running pipeline shows to other programs, as `drapps top` and the metrics endpoint read it.
 *
 * Each pipeline has one small file in memory that it maps and others may map too: writing costs some hundred
 * nanoseconds, needs no reader, and nothing of it stays after the process: what a killed one left is removed by the
 * next who looks.  They lie in $DRAPPS_LIVE ("off": nowhere), else $XDG_RUNTIME_DIR/drapps, else /dev/shm/drapps-<uid>,
 * else /tmp/drapps-<uid>, a folder that only its user may read.  Where that cannot be made, nothing is shown and
 * nothing fails.
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

/* name: of the data set.  Never fails: without a place it returns NULL, and NULL may be given to the calls below. After
 * a fork, the child neither writes nor removes the file. */
DR_API dr_live *dr_live_open(const char *name, const char *policy);
DR_API void dr_live_close(dr_live **live);

/* One writer at a time.  snapshot, flow, knobs: NULL leaves what was there.  A knob that is NAN is one that the
 * pipeline does not have: it is not shown. */
DR_API void dr_live_put(dr_live *live, const dr_snapshot *snapshot, const double *flow, int n_flow, const double *knobs,
                        int n_knobs);

/* As dr_live_put; DR_N_SPREADS of them. */
DR_API void dr_live_spreads(dr_live *live, const struct dr_spread *spreads, int n);

/* For every decision, so that "bounds", "turns" and "last" are true; those that turned nothing are not kept in the
 * list. */
DR_API void dr_live_decision(dr_live *live, const struct dr_decision *decision);

/* All pipelines of this user that are alive (pid 0), or of one process, oldest first, as JSON (free with dr_text_free):
 *
 *     [{"pid", "loader", "command", "version", "name", "policy", "started_ns", "time_ns",
 *       "sensors": {name: value}, "levels": {name: value}, "modelled": [name, ...], "cpu": [...],
 *       "flow": {name: value}, "knobs": {name: value}, "bounds": {name: decisions so far},
 *       "turns": {knob: decisions so far that turned it},
 *       "spreads": {name: {"sum": s, "bins": [[end in s, or null: none, count], ...]}},
 *       "decisions": [decision, ...], "last": decision}, ...]
 *     a decision: {"number", "time_ns", "bound", "reward", "guarded", "reason", "changes": {knob: [from, to]}}
 *
 * "loader" counts those of a process, from 1 on.  "decisions" are the last 16 that turned something or that the guard
 * made, oldest first; "last" is the last of all, or null.  A file of another version is read by the names in it; one in
 * another format has "pid", "loader", "command", "version" and "unreadable", a text, alone.  DR_ERR_ARG, DR_ERR_NOMEM.
 */
DR_API dr_status dr_live_read(int pid, char **json, dr_error *err);

#ifdef __cplusplus
}
#endif
#endif
