/* fetchers.c: a queue and its threads. */
#include "serve/fetchers.h"

#include <pthread.h>
#include <stdbool.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "source/transfer.h"

enum { MOST = 64 };

struct dr__fetchers {
    pthread_mutex_t lock;
    dr__cond work;
    const atomic_bool *cancel;
    dr__fetch *first, **last; /* lock */
    bool stopping;            /* lock */
    pthread_t threads[MOST];
    int n_threads;
};

static dr__fetch *take(dr__fetchers *f)
{
    pthread_mutex_lock(&f->lock);
    while (!f->first && !f->stopping)
        dr__cond_wait(&f->work, &f->lock, UINT64_MAX);
    dr__fetch *task = f->first;
    if (task) {
        f->first = task->next;
        if (!f->first)
            f->last = &f->first;
    }
    pthread_mutex_unlock(&f->lock);
    return task;
}

static void *run(void *arg)
{
    dr__fetchers *f = arg;
    dr__transfer_watch(f->cancel);
    for (dr__fetch *task; (task = take(f)) != NULL;)
        task->run(task);
    return NULL;
}

dr_status dr__fetchers_new(int n_threads, const atomic_bool *cancel, dr__fetchers **out, dr_error *err)
{
    dr__fetchers *f = *out = dr__alloc_zero(1, sizeof *f);
    if (!f)
        return dr__fail(err, DR_ERR_NOMEM, "serve: out of memory");
    f->last = &f->first;
    f->cancel = cancel;
    pthread_mutex_init(&f->lock, NULL);
    dr__cond_init(&f->work);
    for (; f->n_threads < n_threads && f->n_threads < MOST; f->n_threads++)
        if (!dr__thread_start(&f->threads[f->n_threads], "dr-serve-fetch", run, f)) {
            dr__fetchers_free(out);
            return dr__fail(err, DR_ERR_NOMEM, "serve: no memory or no threads");
        }
    return DR_OK;
}

void dr__fetchers_add(dr__fetchers *f, dr__fetch *fetch)
{
    fetch->next = NULL;
    pthread_mutex_lock(&f->lock);
    *f->last = fetch;
    f->last = &fetch->next;
    dr__cond_signal(&f->work);
    pthread_mutex_unlock(&f->lock);
}

void dr__fetchers_free(dr__fetchers **fetchers)
{
    dr__fetchers *f = *fetchers;
    *fetchers = NULL;
    if (!f)
        return;
    pthread_mutex_lock(&f->lock);
    f->stopping = true;
    dr__cond_broadcast(&f->work);
    pthread_mutex_unlock(&f->lock);
    for (int i = 0; i < f->n_threads; i++)
        pthread_join(f->threads[i], NULL);
    dr__cond_destroy(&f->work);
    pthread_mutex_destroy(&f->lock);
    dr__free(f);
}
