/* event.c: writes events as JSON texts. */
#include "trace/event.h"

#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
        return; /* members are short; a truncated object would make the text invalid */
    text[n] = '}';
    text[n + 1] = '\0';
    dr_trace_text(trace, dr__now_ns(), text);
}

void dr__trace_set(dr_trace *trace, const char *knob, double value)
{
    char number[40];
    if (!trace)
        return;
    snprintf(number, sizeof number, "%.17g", value);
    const char *point = localeconv()->decimal_point;
    char *at = strstr(number, point);
    if (at && *point) {
        *at = '.';
        memmove(at + 1, at + strlen(point), strlen(at + strlen(point)) + 1);
    }
    dr__trace_event(trace, "set", "\"knob\":\"%s\",\"value\":%s", knob, number);
}
