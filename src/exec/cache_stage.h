/* cache_stage.h: the deterministic beginning of a program, kept in a store on disk and in memory.
 *
 * A program is split before its first random op.  A sample is looked up in the store.  On a miss it is read, the first
 * part is planned, predicted and run, and its results are stored.  The second part then runs on these results.  If
 * anything of this fails, the whole program runs as without a store, so that samples and errors are the same with and
 * without a cache.
 *
 * In "auto" mode the first samples run alternately with and without the store and are timed.  The cache is kept if
 *
 *     2 x (time of the second part + time to check and unpack + bytes x workers / DR__DISK_BYTES_PER_S)
 *
 * is at most the time of a sample without the store: workers compute in parallel, but share the disk.  Otherwise the
 * stored samples are deleted.
 */
#ifndef DR_EXEC_CACHE_STAGE_H
#define DR_EXEC_CACHE_STAGE_H

#include <drapps/store.h>

#include "exec/exec.h"
#include "graph/prefix.h"

typedef struct dr__cache dr__cache;

/* As in dr_loader_options; borrowed for the call. */
typedef struct dr__cache_options {
    const char *folder; /* NULL: nothing on disk */
    uint64_t limit, memory;
    const char *at; /* NULL: chosen */
    int local_world;
} dr__cache_options;

/* options: those of e->program. */
dr_status dr__cache_open(dr__exec *e, const dr__cache_options *cache, const dr__program_options *options,
                         dr_error *err);

/* The knob `codec`: whether this build has a codec, by its wire id (-1: chosen by measurement), and obeying it from the
 * next sample that is kept. */
bool dr__cache_has_codec(int wire_id);
void dr__cache_set_codec(dr__exec *e, int wire_id);
void dr__cache_close(dr__exec *e);

/* Looks up the job's sample and sets job->program: the second part on a hit, the first part on a miss, the whole
 * program without a cache.
 *
 * @return true: the fields that job->program starts with are in bench->record; false: the sample must be read. */
bool dr__cache_lookup(dr__exec *e, dr__workbench *bench, dr__job *job);

/* Whether the job missed the cache, so that dr__cache_run_head must run. */
bool dr__cache_must_fill(const dr__exec *e, const dr__job *job);

/* Runs the planned first part, stores its results, leaves them in bench->record, and sets job->program to the second
 * part.  On failure job->program is the whole program and bench->record is unchanged. */
void dr__cache_run_head(dr__exec *e, dr__workbench *bench, dr__job *job);

/* While measuring: adds the times of a finished sample, and decides when there are enough. */
void dr__cache_record_times(dr__exec *e, const dr__job *job);

/* Measured times of a sample in microseconds: plain is the whole program without the store; the sum of the others is
 * the time with it. */
typedef struct dr__cache_costs {
    double plain_us, rest_us, unpack_us, disk_us;
} dr__cache_costs;

/* Time of one worker to read `bytes` from the disk that all workers share. */
double dr__cache_disk_us(uint64_t bytes, int workers);
bool dr__cache_pays(const dr__cache_costs *costs);

/* Used share of the disk limit, 0 .. 1; 0 without a cache.  Takes no lock. */
double dr__cache_usage(const dr__exec *e);

/* Adds the members "cache_..." to a loader's statistics. */
void dr__cache_stats(dr__exec *e, json_t *stats);

/* Writes one line for people: what is stored, where, how compressed, and why or why not. */
void dr__cache_explain(dr__exec *e, char *text, size_t size);

#endif
