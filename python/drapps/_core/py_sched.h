/* py_sched.h: decisions and knobs of a controller, for the files whose objects have one. */
#ifndef DRAPPS_PY_SCHED_H
#define DRAPPS_PY_SCHED_H

#include "py_core.h"

/* (number, time_ns, bound, {knob: (from, to)} of those turned, reward, {term: value}, {term: weight}, guarded, reason):
 * what drapps.sched.Decision.of takes. */
PyObject *py_decision(const dr_decision *decision);

/* A list of them, oldest first. */
PyObject *py_decisions(const dr_decision *decisions, size_t n);

/* The value of a knob: an int where it is a count. */
PyObject *py_knob_value(int knob, double value);

/* What happened in a simulation, as a dict. */
PyObject *py_sim_result(const dr_sim_result *result);

#endif
