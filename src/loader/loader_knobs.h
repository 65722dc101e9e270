/* loader_knobs.h: settings that change while a loader runs, by their numbers (dr_knob). */
#ifndef DR_LOADER_KNOBS_H
#define DR_LOADER_KNOBS_H

#include <drapps/sched.h>

#include "loader/loader_internal.h"

/* Never waits for a sample.  DR_ERR_ARG names the range; DR_ERR_LIMIT or DR_ERR_NOMEM: not one thread could be started,
 * and all is as it was. */
dr_status dr__knob_set(dr_loader *loader, int knob, double value, dr_error *err);
double dr__knob_get(dr_loader *loader, int knob);

#endif
