/* loader_knobs.h: the knobs of a loader, by number (dr_knob). */
#ifndef DR_LOADER_KNOBS_H
#define DR_LOADER_KNOBS_H

#include <drapps/sched.h>

#include "loader/loader_internal.h"

/* Sets a knob.  Does not wait for samples in flight.
 *
 * @return DR_OK; DR_ERR_ARG: out of range; DR_ERR_LIMIT or DR_ERR_NOMEM: no thread could be started.  After an error
 *         nothing has changed. */
dr_status dr__knob_set(dr_loader *loader, int knob, double value, dr_error *err);
double dr__knob_get(dr_loader *loader, int knob);

#endif
