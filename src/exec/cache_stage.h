/* cache_stage.h: the deterministic beginning of a program, kept in a store.
 *
 * A sample is looked for in the store.  If it is not there, it is read, and the first part of the program is what is
 * planned, predicted and run; its results are put there.  Then the second part runs on them.  Whatever fails on the
 * way, the whole program runs as without a store, so that samples and errors are the same with it and without.
 *
 * In "auto" mode the first samples go both ways in turn, and are timed.  Keeping pays where
 *
 *     2 x (time of the second part + time to check and unpack + bytes x workers / DR__DISK_BYTES_PER_S)
 *
 * is no more than the time of a sample without the store: workers compute side by side, but share the disk.  Else what
 * was put is deleted.
 */
#ifndef DR_EXEC_CACHED_H
#define DR_EXEC_CACHED_H

#include <drapps/store.h>

#include "exec/exec.h"
#include "graph/prefix.h"

typedef struct dr__cache dr__cache;

/* folder, limit: as in dr_loader_options.  options: those of e->program. */
dr_status dr__cache_open(dr__exec *e, const char *folder, uint64_t limit, const dr__program_options *options,
                         dr_error *err);
void dr__cache_close(dr__exec *e);

/* Looks for a sample in the store and sets job->program: what follows on it, if it was found; what is to be kept, if it
 * is to be made; else the whole.  True: its fields are in bench->record; false: it is to be read. */
bool dr__cache_look(dr__exec *e, dr__workbench *bench, dr__job *job);

/* Is what is to be kept still to be made? */
bool dr__cache_makes(const dr__exec *e, const dr__job *job);

/* The sample was planned: makes what is kept, puts it into the store and sets job->program to what follows on it. Where
 * that fails, to the whole, and bench->record is as it was. */
void dr__cache_make(dr__exec *e, dr__workbench *bench, dr__job *job);

/* Books the times of a sample that was run. */
void dr__cache_note(dr__exec *e, const dr__job *job);

/* What a sample was measured to take, in microseconds: as a whole without the store, and with it. */
typedef struct dr__cache_costs {
    double plain_us, rest_us, unpack_us, disk_us;
} dr__cache_costs;

/* Time of one worker to read so many bytes from the disk that all share. */
double dr__cache_disk_us(uint64_t bytes, int workers);
bool dr__cache_pays(const dr__cache_costs *costs);

/* How much of what it may take is taken, 0 .. 1; 0 without a cache.  Waits for nothing. */
double dr__cache_fill(const dr__exec *e);

/* Counters, as members "cache_..." of a loader's statistics. */
void dr__cache_stats(dr__exec *e, json_t *stats);

/* A line for people: what is kept, where, how, and why or why not. */
void dr__cache_explain(dr__exec *e, char *text, size_t size);

#endif
