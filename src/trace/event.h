/* event.h: calls by which other folders of the library write to a trace, besides the public ones. */
#ifndef DR_TRACE_EVENT_H
#define DR_TRACE_EVENT_H

#include <drapps/trace.h>

#include "base/compiler.h"

/* Writes the text {"event": event, <format>} with the present time.  The format gives short members, without braces.
 * Does nothing without a trace. */
void dr__trace_event(dr_trace *trace, const char *event, const char *format, ...) DR_PRINTF(3, 4);

/* Writes that a knob was set; the number is valid JSON in every locale. */
void dr__trace_set(dr_trace *trace, const char *knob, double value);

/* Whether n spans are to be written, of which the main one has this kind and duration; if not, counts them as left out.
 * To be called before making a span that takes time to make. */
bool dr__trace_wants_span(dr_trace *trace, int kind, uint64_t duration_ns, int n);

/* Writes a span, without dr__trace_wants_span. */
void dr__trace_put_span(dr_trace *trace, const dr_span *span);

#endif
