/* open_each.c: a counter, and threads that take numbers from it. */
#include "format/open_each.h"

#include <stdatomic.h>

#include "base/thread.h"
#include "source/transfer.h"

enum { THREADS = 16 };

struct opening {
    size_t n;
    dr_status (*open)(void *user, size_t i, dr_error *err);
    void *user;
    atomic_size_t next;
    atomic_bool stop;
    pthread_mutex_t lock;
    dr_status status; /* of the first failure; lock */
    dr_error err;     /* lock */
};

static void take_some(struct opening *o)
{
    for (size_t i; !atomic_load(&o->stop) && (i = atomic_fetch_add(&o->next, 1)) < o->n;) {
        dr_error err = { 0 };
        const dr_status status = o->open(o->user, i, &err);
        if (status == DR_OK)
            continue;
        pthread_mutex_lock(&o->lock);
        if (o->status == DR_OK) {
            o->status = status;
            o->err = err;
        }
        atomic_store(&o->stop, true);
        pthread_mutex_unlock(&o->lock);
    }
}

static void *run(void *arg)
{
    struct opening *o = arg;
    dr__transfer_watch(&o->stop);
    take_some(o);
    return NULL;
}

dr_status dr__open_each(size_t n, bool together, dr_status (*open)(void *user, size_t i, dr_error *err), void *user,
                        dr_error *err)
{
    struct opening o = { .n = n, .open = open, .user = user };
    pthread_t threads[THREADS - 1];
    size_t n_threads = 0;
    atomic_init(&o.next, 0);
    atomic_init(&o.stop, false);
    pthread_mutex_init(&o.lock, NULL);
    while (together && n_threads + 1 < n && n_threads < THREADS - 1 &&
           dr__thread_start(&threads[n_threads], "dr-open", run, &o))
        n_threads++;
    take_some(&o);
    for (size_t i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&o.lock);
    if (o.status != DR_OK && err)
        *err = o.err;
    return o.status;
}
