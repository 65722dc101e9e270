/* event.h: what the layers above write into a trace besides the public calls. */
#ifndef DR_TRACE_EVENT_H
#define DR_TRACE_EVENT_H

#include <drapps/trace.h>

#include "base/compiler.h"

/* Writes the text {"event": event, <format>} with the present time; the format gives members without braces, short
 * ones. NULL trace: nothing. */
void dr__trace_event(dr_trace *trace, const char *event, const char *format, ...) DR_PRINTF(3, 4);

/* A knob was turned; the number is JSON in every locale. */
void dr__trace_set(dr_trace *trace, const char *knob, double value);

/* Are n spans to be written of which the main one has this kind and duration?  Counts them as left out if not.  For
 * those who have work with making the span. */
bool dr__trace_takes(dr_trace *trace, int kind, uint64_t duration_ns, int n);

/* Writes a span without asking whether. */
void dr__trace_put_span(dr_trace *trace, const dr_span *span);

#endif
