/* some_records.h: records with random content, and whether what came back is what was written. */
#ifndef DR_TESTS_SOME_RECORDS_H
#define DR_TESTS_SOME_RECORDS_H

#include "unit/cm.h"

#include <drapps/sched.h>
#include <drapps/trace.h>

#include "base/rng.h"

dr_rng random_of(uint64_t seed);

dr_snapshot random_snapshot(dr_rng *rng, uint64_t time_ns);
dr_decision random_decision(dr_rng *rng, uint64_t time_ns);
dr_span random_span(dr_rng *rng, uint64_t time_ns);
double random_number(dr_rng *rng); /* whole, small, large, negative or none */

/* Times, numbers and what is present are the same; values to float's precision, levels and CPUs to their steps. */
void assert_snapshot(const dr_snapshot *got, const dr_snapshot *want);
void assert_decision(const dr_decision *got, const dr_decision *want); /* every bit */
void assert_span(const dr_span *got, const dr_span *want);
void assert_same_double(double got, double want); /* every bit, NaN too */

/* A file of its own for a test; removed by remove_file. */
void make_path(char path[64]);
void remove_file(const char *path);
size_t file_size(const char *path);
uint8_t *read_whole(const char *path, size_t *size); /* free() */
void write_whole(const char *path, const uint8_t *data, size_t size);

#endif
