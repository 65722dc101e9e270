/* seek_share.c: the open stores of seek points by data set, and the threads that save them. */
#include "loader/seek_share.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"

struct dr__seek_share {
    char *name; /* mode and identity of the data; NULL: not shared */
    int refs;   /* registry lock */
    dr__seek_store *store;
    dr__seek_share *next;

    pthread_mutex_t lock; /* the fields below */
    bool started;         /* the thread was started and not joined */
    atomic_bool done;
    pthread_t thread;
};

static struct {
    pthread_mutex_t lock; /* outside that of a share */
    dr__seek_share *first;
    bool ready;
} registry = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void reset_in_child(void)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    registry.lock = fresh;
    registry.first = NULL; /* the parent's */
}

bool dr__seek_mode_is_known(const char *mode)
{
    return !strcmp(mode, "auto") || !strcmp(mode, "memory") || !strcmp(mode, "off");
}

static void share_free(dr__seek_share *s)
{
    dr__seek_store_close(&s->store);
    pthread_mutex_destroy(&s->lock);
    dr__free(s->name);
    dr__free(s);
}

static dr_status share_new(const dr_dataset *set, bool with_file, size_t limit, dr__seek_share **out, dr_error *err)
{
    dr__seek_share *s = *out = dr__alloc_zero(1, sizeof *s);
    if (!s)
        return dr__fail(err, DR_ERR_NOMEM, "seek points: out of memory");
    s->refs = 1;
    pthread_mutex_init(&s->lock, NULL);
    return dr__seek_store_open(with_file ? set->keep_beside : NULL, with_file ? set->keep_identity : NULL, limit,
                               &s->store, err);
}

/* The name by which loaders of the same data share a store; NULL: the data set has no identity, or out of memory. */
static char *name_of(const dr_dataset *set, const char *mode)
{
    if (!set->keep_identity)
        return NULL;
    size_t size = strlen(set->keep_identity) + strlen(mode) + 2;
    char *name = dr__alloc(size);
    if (name)
        snprintf(name, size, "%s %s", mode, set->keep_identity);
    return name;
}

/* registry lock */
static dr__seek_share *find(const char *name)
{
    dr__seek_share *s = registry.first;
    while (s && !(name && !strcmp(s->name, name)))
        s = s->next;
    return s;
}

/* registry lock; takes *name if it succeeds. */
static dr_status find_or_open(const dr_dataset *set, const char *mode, size_t limit, char **name, dr__seek_share **out,
                              dr_error *err)
{
    *out = find(*name);
    if (*out) {
        (*out)->refs++;
        return DR_OK;
    }
    dr_status status = share_new(set, !strcmp(mode, "auto"), limit, out, err);
    if (status != DR_OK) {
        if (*out)
            share_free(*out);
        *out = NULL;
        return status;
    }
    (*out)->name = *name;
    if (*name) {
        (*out)->next = registry.first;
        registry.first = *out;
    }
    *name = NULL;
    return DR_OK;
}

dr_status dr__seek_share_open(const dr_dataset *set, const char *mode, size_t limit, dr__seek_share **out,
                              dr_error *err)
{
    char *name = name_of(set, mode);
    pthread_mutex_lock(&registry.lock);
    if (!registry.ready)
        dr__fork_in_child(reset_in_child);
    registry.ready = true;
    dr_status status = find_or_open(set, mode, limit, &name, out, err);
    pthread_mutex_unlock(&registry.lock);
    dr__free(name);
    return status;
}

dr__seek_store *dr__seek_share_store(dr__seek_share *share)
{
    return share->store;
}

/* --- saving --- */

static void *save(void *arg)
{
    dr__seek_share *s = arg;
    dr__seek_store_save(s->store, false);
    atomic_store(&s->done, true);
    return NULL;
}

void dr__seek_share_save(dr__seek_share *s)
{
    pthread_mutex_lock(&s->lock);
    if (s->started && atomic_load(&s->done)) {
        pthread_join(s->thread, NULL);
        s->started = false;
    }
    if (!s->started) {
        atomic_store(&s->done, false);
        s->started = dr__thread_start(&s->thread, "drapps-seek", save, s);
    }
    pthread_mutex_unlock(&s->lock);
}

/* Drops a reference; after the last one, removes the share from the registry and returns true. */
static bool release(dr__seek_share *s)
{
    pthread_mutex_lock(&registry.lock);
    bool last = --s->refs == 0;
    for (dr__seek_share **at = &registry.first; last && *at; at = &(*at)->next)
        if (*at == s) {
            *at = s->next;
            break;
        }
    pthread_mutex_unlock(&registry.lock);
    return last;
}

void dr__seek_share_close(dr__seek_share **share)
{
    dr__seek_share *s = *share;
    *share = NULL;
    if (!s || !release(s))
        return;
    if (s->started)
        pthread_join(s->thread, NULL);
    dr__seek_store_save(s->store, true);
    share_free(s);
}
