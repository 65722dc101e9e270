/* live_place.h: the folders of live files, and whether the writer of a file is alive. */
#ifndef DR_TRACE_LIVE_PLACE_H
#define DR_TRACE_LIVE_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/live_layout.h"

#define DR__LIVE_SUFFIX ".live"

/* Opens the folder that this process writes to, and makes it if it is missing; -1: there is none. */
int dr__live_folder_make(void);

/* Opens the i-th folder in which live files may be, from 0.  -1: it is missing, not this user's, or the same as an
 * earlier one. */
enum { DR__LIVE_FOLDERS = 4 };
int dr__live_folder_open(int i);

/* When a process started, in clock ticks since boot; 0: there is no such process, or it is a zombie. */
uint64_t dr__live_start_ticks(int pid);

/* The inode of this process's pid namespace; 0: not known. */
uint64_t dr__live_pid_namespace(void);

/* Whether the writer of an open file is alive.  The writer holds a lock on it, but its forked children hold the lock as
 * well; so in the same pid namespace the process itself is checked, too. */
bool dr__live_is_alive(int fd, const dr__live_head *head);

/* Removes the files of dead processes from a folder. */
void dr__live_sweep(int folder);

#endif
