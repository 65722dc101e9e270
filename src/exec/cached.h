/* cached.h: the deterministic beginning of a program, kept in a store.
 *
 * A sample is fetched: from the store, or read, run through the first part of the program and put there.  Then the
 * second part runs on it.  Whatever fails on the way, the whole program runs as without a store, so that samples and
 * errors are the same with it and without.
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

/* The fields of sample `id` into bench->record, and the program that goes on from them into *program; false: nothing
 * was fetched, the sample is to be read, and *program is the whole. */
bool dr__cache_fetch(dr__exec *e, dr__workbench *bench, uint64_t id, const dr__program **program);

/* Books the times of a sample: fetching or reading, and running `program`. */
void dr__cache_note(dr__exec *e, const dr__program *program, uint64_t read_ns, uint64_t run_ns);

/* Counters, as members "cache_..." of a loader's statistics. */
void dr__cache_stats(dr__exec *e, json_t *stats);

/* A line for people: what is kept, where, how, and why or why not. */
void dr__cache_explain(dr__exec *e, char *text, size_t size);

#endif
