/* event.c: texts made of members. */
#include "trace/event.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"

enum { LONGEST = 2048 };

void dr__trace_event(dr_trace *trace, const char *event, const char *format, ...)
{
    if (!trace)
        return;
    char text[LONGEST];
    int n = snprintf(text, sizeof text, "{\"event\":\"%s\",", event);
    va_list args;
    va_start(args, format);
    n += vsnprintf(text + n, sizeof text - (size_t)n, format, args);
    va_end(args);
    if ((size_t)n + 2 > sizeof text)
        return; /* events have a fixed set of short members: half an object would only spoil the file */
    text[n] = '}';
    text[n + 1] = '\0';
    dr_trace_text(trace, dr__now_ns(), text);
}
