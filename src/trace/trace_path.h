/* trace_path.h: where traces go that the environment asks for. */
#ifndef DR_TRACE_TRACE_PATH_H
#define DR_TRACE_TRACE_PATH_H

#include <stdbool.h>

/* Is DRAPPS_TRACE set, and not empty? */
bool dr__trace_path_wanted(void);

/* The next path by DRAPPS_TRACE; to be freed with dr__free, NULL: out of memory. */
char *dr__trace_path_next(void);

/* run-PID.drtrace, and from 2 on run-PID-2.drtrace, ... of run.drtrace; as above. */
char *dr__trace_path_of_process(const char *path, int i);

#endif
