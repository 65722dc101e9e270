/* hooks.h: callbacks that are added and removed while another thread calls them; no lock is held during a call. */
#ifndef DR_MONITOR_HOOKS_H
#define DR_MONITOR_HOOKS_H

#include <stdbool.h>

#include <drapps/monitor.h>

#include "base/thread.h"

enum { DR__MAX_HOOKS = 64 };

struct dr__pipeline_facts;
typedef void dr__pipeline_fn(void *user, struct dr__pipeline_facts *out);

typedef struct dr__hook {
    int token; /* 0: free */
    void *user;
    dr_monitor_fn *tick;       /* either this */
    dr__pipeline_fn *pipeline; /* or this; the other is NULL */
} dr__hook;

typedef struct dr__hooks {
    pthread_mutex_t lock;
    dr__cond idle;
    dr__hook slots[DR__MAX_HOOKS];
    int last_token;
    bool calling; /* between dr__hooks_begin and dr__hooks_end */
    pthread_t caller;
} dr__hooks;

void dr__hooks_init(dr__hooks *h);
void dr__hooks_destroy(dr__hooks *h);

/* Adds a hook and returns its token; 0: there are DR__MAX_HOOKS already. */
int dr__hooks_add(dr__hooks *h, dr__hook hook);

/* Removes a hook.  Waits until no call is in progress, except in the calling thread itself. */
void dr__hooks_remove(dr__hooks *h, int token);

/* Calls the hooks: dr__hooks_begin copies them; the caller calls each one for which dr__hooks_has is still true, and
 * ends with dr__hooks_end.  Only one thread may do so. */
int dr__hooks_begin(dr__hooks *h, dr__hook *out);
bool dr__hooks_has(dr__hooks *h, int token);
void dr__hooks_end(dr__hooks *h);

#endif
