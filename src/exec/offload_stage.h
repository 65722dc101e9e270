/* offload_stage.h: reads samples of a drapps server, of which the server has run the first ops where that pays.
 *
 * For each sample a plan says how many ops the server runs (remote/offload_plan.h).  The stage asks for the sample with
 * these, and the worker runs the rest of the program.  The server may answer with fewer ops, mostly none: then the
 * client runs more.  Where a server fails at an op, the client asks for the sample as it is stored and fails as with
 * local data.  So samples and errors are the same whatever is planned.
 *
 * Modes:
 *   "off"        every sample as it is stored
 *   "all", "resize", or the number of ops: a cut that is the same for all samples, from the first sample on
 *   "auto" (which is "sophon+"), "sophon+", "sophon", "fastflow": two stages.  First, samples come as they are stored,
 *                and the rates of link, client and consumer are measured.  While the link is not the slowest of them,
 *                nothing else happens.  Once it is, a few samples are cut at each place, to learn what that costs, and
 *                a plan is made; another one in each epoch, and whenever a rate has changed by a tenth.
 *
 * "sophon+" also reads segments of samples as they are stored (segment_stage.h), from the first sample on that can be;
 * other modes do where ranges of images are asked for in so many words (the option `ranges`).
 */
#ifndef DR_EXEC_OFFLOAD_STAGE_H
#define DR_EXEC_OFFLOAD_STAGE_H

#include "exec/exec.h"

typedef struct dr__offload dr__offload;

/* Whether there is such a mode; else an error that lists them.  NULL: "auto". */
dr_status dr__offload_check(const char *mode, dr_error *err);

/* Opens the stage where e->set is a set on a server, or a selection of one; else e->offload stays NULL.
 *
 * @param options  those of e->program. */
dr_status dr__offload_open(dr__exec *e, const char *mode, const dr__program_options *options, dr_error *err);
void dr__offload_close(dr__exec *e);

/* Reads the sample of a job into bench->record and sets job->program to what is left to run.
 *
 * @return true: *status says whether it was read; false: there is no stage, or the server takes no such requests: the
 *         sample is to be read as any other. */
bool dr__offload_read(dr__exec *e, dr__workbench *bench, dr__job *job, dr_status *status, dr_error *err);

/* The same, as it is stored and whole, after a sample that was read in segments could not be planned or run. */
bool dr__offload_read_whole(dr__exec *e, dr__workbench *bench, dr__job *job, dr_status *status, dr_error *err);

/* Learns from a finished sample, and plans when it is time.
 *
 * @param cost  what was predicted of it (dr__workbench.cost). */
void dr__offload_learn(dr__exec *e, const dr__job *job, double cost);

/* The knob `offload`: the share of the planned samples that the server prepares. */
void dr__offload_set_share(dr__exec *e, double share);

/* Adds the members "offload_..." to a loader's statistics. */
void dr__offload_stats(dr__exec *e, json_t *stats);

/* Writes to the trace what became of the samples. */
void dr__offload_trace(dr__exec *e);

/* Writes a line for people, or nothing without a stage. */
void dr__offload_explain(dr__exec *e, char *text, size_t size);

#endif
