/* fetchers.h: threads that wait for a store behind the server, so that those that answer requests need not. */
#ifndef DR_SERVE_FETCHERS_H
#define DR_SERVE_FETCHERS_H

#include <stdatomic.h>

#include "base/error.h"

typedef struct dr__fetchers dr__fetchers;

/* What a thread is to do.  Callers put their own struct around it, which lives until `run` returns. */
typedef struct dr__fetch {
    void (*run)(struct dr__fetch *fetch);
    struct dr__fetch *next;
} dr__fetch;

/* cancel: while it is true, transfers of the threads end at once. */
dr_status dr__fetchers_new(int n_threads, const atomic_bool *cancel, dr__fetchers **out, dr_error *err);

/* Has a thread run it, in the order in which they come. */
void dr__fetchers_add(dr__fetchers *fetchers, dr__fetch *fetch);

/* Nothing is waiting or running any more.  NULL is fine. */
void dr__fetchers_free(dr__fetchers **fetchers);

#endif
