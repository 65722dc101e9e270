/* team.c: threads that wait for a task, take parts until none is left, and say that they are done.
 *
 * The lock guards all fields but `next`.  A task is done when each thread has said so, so the next one cannot begin while
 * one still looks for parts.
 */
#include "rl/team.h"

#include <stdatomic.h>

#include "base/alloc.h"
#include "base/thread.h"

struct dr__rl_team {
    int n_helpers, n_parts;
    void (*run)(void *owner, int part);
    void *owner;
    atomic_int next;
    pthread_mutex_t lock;
    dr__cond begin, done;
    unsigned task; /* number of the current one */
    int busy;      /* helpers that are not done with it */
    bool stop;
    pthread_t *helpers;
};

static void take_parts(dr__rl_team *t)
{
    for (int part; (part = atomic_fetch_add(&t->next, 1)) < t->n_parts;)
        t->run(t->owner, part);
}

static void *help(void *arg)
{
    dr__rl_team *t = arg;
    unsigned seen = 0;
    pthread_mutex_lock(&t->lock);
    for (;;) {
        while (!t->stop && t->task == seen)
            dr__cond_wait(&t->begin, &t->lock, UINT64_MAX);
        if (t->stop)
            break;
        seen = t->task;
        pthread_mutex_unlock(&t->lock);
        take_parts(t);
        pthread_mutex_lock(&t->lock);
        if (!--t->busy)
            dr__cond_signal(&t->done);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

dr_status dr__rl_team_new(int n_threads, dr__rl_team **out, dr_error *err)
{
    *out = NULL;
    dr__rl_team *t = dr__alloc_zero(1, sizeof *t);
    pthread_t *helpers = dr__alloc_zero((size_t)n_threads, sizeof *helpers);
    if (!t || !helpers) {
        dr__free(t);
        dr__free(helpers);
        return dr__fail(err, DR_ERR_NOMEM, "no memory for %d threads", n_threads);
    }
    t->helpers = helpers;
    pthread_mutex_init(&t->lock, NULL);
    dr__cond_init(&t->begin);
    dr__cond_init(&t->done);
    for (; t->n_helpers < n_threads - 1; t->n_helpers++)
        if (!dr__thread_start(&helpers[t->n_helpers], "drapps-rl", help, t)) {
            dr__rl_team_free(&t);
            return dr__fail(err, DR_ERR_NOMEM, "could not start %d threads", n_threads);
        }
    *out = t;
    return DR_OK;
}

void dr__rl_team_free(dr__rl_team **team)
{
    dr__rl_team *t = *team;
    *team = NULL;
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    t->stop = true;
    dr__cond_broadcast(&t->begin);
    pthread_mutex_unlock(&t->lock);
    for (int i = 0; i < t->n_helpers; i++)
        pthread_join(t->helpers[i], NULL);
    dr__cond_destroy(&t->begin);
    dr__cond_destroy(&t->done);
    pthread_mutex_destroy(&t->lock);
    dr__free(t->helpers);
    dr__free(t);
}

void dr__rl_team_run(dr__rl_team *t, void (*run)(void *owner, int part), void *owner, int n_parts)
{
    if (!t->n_helpers || n_parts < 2) {
        for (int part = 0; part < n_parts; part++)
            run(owner, part);
        return;
    }
    pthread_mutex_lock(&t->lock);
    t->run = run;
    t->owner = owner;
    t->n_parts = n_parts;
    atomic_store(&t->next, 0);
    t->busy = t->n_helpers;
    t->task++;
    dr__cond_broadcast(&t->begin);
    pthread_mutex_unlock(&t->lock);
    take_parts(t);
    pthread_mutex_lock(&t->lock);
    while (t->busy)
        dr__cond_wait(&t->done, &t->lock, UINT64_MAX);
    pthread_mutex_unlock(&t->lock);
}
