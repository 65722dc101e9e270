/* trace.h: what happened, as JSON lines: one event a line, times in ns of the monotonic clock. */
#ifndef DR_EXEC_TRACE_H
#define DR_EXEC_TRACE_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"

typedef struct dr__trace dr__trace;

/* Begins the file anew.  An unwritable path is an error; a disk that fills later ends the trace, not the training. */
dr_status dr__trace_open(const char *path, dr__trace **out, dr_error *err);
void dr__trace_close(dr__trace **trace);

/* Writes {"t": now, "event": event, <format>}; the format gives members without braces.  NULL trace: nothing. */
void dr__trace_event(dr__trace *trace, const char *event, const char *format, ...) DR_PRINTF(3, 4);

#endif
