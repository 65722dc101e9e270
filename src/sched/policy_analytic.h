/* policy_analytic.h: the state of `analytic` and its parts, for policies that begin with what it proposes. */
#ifndef DR_SCHED_POLICY_ANALYTIC_H
#define DR_SCHED_POLICY_ANALYTIC_H

#include "base/compiler.h"
#include "sched/plant_model.h"
#include "sched/policy.h"
#include "sched/prefetch_cover.h"

typedef struct dr__analytic {
    dr__costs costs;
    dr__cover cover;
    double tried, tried_rate; /* threads that read before there were more, and the rate with these; 0: none */
    double most_readers;      /* more of these brought nothing; 0: not known */
    int reader_memory, reader_pause;
} dr__analytic;

/* Its proposal with its own parameters as they are by default.  False: too little is known yet. */
bool dr__analytic_propose(dr__analytic *s, const dr__observation *o, dr__proposal *proposal);

/* The model by which it chose.  split: readers read. */
dr__plant_model dr__analytic_model(const dr__costs *costs, const dr__observation *o, bool split);

/* Workers that want no more of the CPUs than twice what there is; at least 1. */
double dr__analytic_most_workers(const dr__plant_model *m, const dr__observation *o);

void dr__analytic_shift_time(dr__analytic *s, int64_t by_ns);

/* Adds to the reason of a proposal. */
void dr__append_reason(dr__proposal *proposal, const char *format, ...) DR_PRINTF(2, 3);

#endif
