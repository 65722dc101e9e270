/* tables.h: rows of the tables of knobs, flow and terms, for those inside the library. */
#ifndef DR_SCHED_TABLES_H
#define DR_SCHED_TABLES_H

#include <drapps/sched.h>

typedef struct dr__knob_row {
    const char *name, *unit, *doc;
    double least, most;
    int cooldown_ms;
} dr__knob_row;

const dr__knob_row *dr__knob_row_of(int knob);

/* CPUs that a user sets as the limit of a pipeline: 0 for none, else from a hundredth on. */
dr_status dr__cpu_limit_check(double cpus, dr_error *err);

bool dr__flow_is_sum(int flow);

/* "name=number,..." over *out, which is unchanged after a failure.  preset: one may come first. */
dr_status dr__weights_change(const char *text, bool preset, dr_weights *out, dr_error *err);

const char *dr__term_name(int term);
double dr__term_sign(int term); /* 1: counts for, -1: against */

#endif
