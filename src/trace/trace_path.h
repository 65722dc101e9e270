/* trace_path.h: paths of traces by the environment variable DRAPPS_TRACE. */
#ifndef DR_TRACE_TRACE_PATH_H
#define DR_TRACE_TRACE_PATH_H

#include <stdbool.h>

/* Whether DRAPPS_TRACE is set and not empty. */
bool dr__trace_path_is_set(void);

/* The path of the next trace by DRAPPS_TRACE; free with dr__free.  NULL: out of memory. */
char *dr__trace_path_next(void);

/* For run.drtrace: run-PID.drtrace (i = 1), run-PID-2.drtrace (2), ...; free with dr__free.  NULL: out of memory. */
char *dr__trace_path_of_process(const char *path, int i);

#endif
