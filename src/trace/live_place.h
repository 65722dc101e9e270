/* live_place.h: the folders in which live files lie, and whether the process that writes one is alive. */
#ifndef DR_TRACE_LIVE_PLACE_H
#define DR_TRACE_LIVE_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/live_layout.h"

#define DR__LIVE_SUFFIX ".live"

/* The folder that this process writes to, made if need be, as a descriptor; -1: there is none. */
int dr__live_folder_make(void);

/* The folders in which files may lie: the i-th, from 0 on.  -1: not there, not ours, or the same as one before. */
enum { DR__LIVE_FOLDERS = 4 };
int dr__live_folder_open(int i);

/* When a process began, in clock ticks since boot; 0: it is not there, or it is dead and not yet buried. */
uint64_t dr__live_start_ticks(int pid);

/* The pid namespace that this process is in; 0: not known. */
uint64_t dr__live_pid_space(void);

/* Whether the writer of an open file lives.  It holds a lock on it; but so do children that it forked, for which the
 * process itself is looked for where its pid means something here. */
bool dr__live_is_alive(int fd, const dr__live_head *head);

/* Removes what dead processes left in a folder. */
void dr__live_sweep(int folder);

#endif
