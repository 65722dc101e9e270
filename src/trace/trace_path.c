/* trace_path.c: the names of traces: for DRAPPS_TRACE=run.drtrace, run.drtrace, run-2.drtrace, ...; in a forked child
 * run-PID.drtrace, run-PID-2.drtrace, ... */
#include "trace/trace_path.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"

static atomic_int n_traces;
static atomic_uint counted_for; /* generation */

bool dr__trace_path_is_set(void)
{
    const char *path = getenv("DRAPPS_TRACE");
    return path && *path;
}

/* Counts the traces of this process, from 1.  A forked child starts at 1 again. */
static int count(unsigned generation)
{
    if (atomic_exchange(&counted_for, generation) != generation)
        atomic_store(&n_traces, 0);
    return atomic_fetch_add(&n_traces, 1) + 1;
}

/* Replaces each %p by the process id. */
static char *expand_pid(const char *path)
{
    size_t room = strlen(path) + 1;
    for (const char *at = path; (at = strstr(at, "%p")) != NULL; at += 2)
        room += 20;
    char *out = dr__alloc(room), *to = out;
    while (out && *path) {
        if (path[0] == '%' && path[1] == 'p') {
            to += sprintf(to, "%d", (int)getpid());
            path += 2;
        } else {
            *to++ = *path++;
        }
    }
    if (out)
        *to = '\0';
    return out;
}

/* The offset of the suffix in a path; its length if it has none. */
static size_t suffix_offset(const char *path)
{
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    const char *dot = strrchr(name, '.');
    return dot && dot > name ? (size_t)(dot - path) : strlen(path);
}

/* A copy with `extra` before the suffix. */
static char *insert_suffix(const char *path, const char *extra)
{
    const size_t room = strlen(path) + strlen(extra) + 1, suffix = suffix_offset(path);
    char *out = dr__alloc(room);
    if (out)
        snprintf(out, room, "%.*s%s%s", (int)suffix, path, extra, path + suffix);
    return out;
}

char *dr__trace_path_of_process(const char *path, int i)
{
    char extra[32];
    const int used = snprintf(extra, sizeof extra, "-%d", (int)getpid());
    if (i > 1)
        snprintf(extra + used, sizeof extra - (size_t)used, "-%d", i);
    return insert_suffix(path, extra);
}

char *dr__trace_path_next(void)
{
    const unsigned generation = dr__fork_generation();
    const int n = count(generation);
    char *path = expand_pid(getenv("DRAPPS_TRACE")), extra[64] = "";
    if (!path)
        return NULL;
    int used = generation ? snprintf(extra, sizeof extra, "-%d", (int)getpid()) : 0;
    if (n > 1)
        snprintf(extra + used, sizeof extra - (size_t)used, "-%d", n);
    char *out = insert_suffix(path, extra);
    dr__free(path);
    return out;
}
