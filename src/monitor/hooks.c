/* hooks.c: see hooks.h.  A callback may remove another one, which is then not called any more. */
#include "monitor/hooks.h"

void dr__hooks_init(dr__hooks *h)
{
    *h = (dr__hooks){ 0 };
    pthread_mutex_init(&h->lock, NULL);
    dr__cond_init(&h->idle);
}

void dr__hooks_destroy(dr__hooks *h)
{
    dr__cond_destroy(&h->idle);
    pthread_mutex_destroy(&h->lock);
}

static dr__hook *find(dr__hooks *h, int token)
{
    for (int i = 0; i < DR__MAX_HOOKS; i++)
        if (h->slots[i].token == token)
            return &h->slots[i];
    return NULL;
}

int dr__hooks_add(dr__hooks *h, dr__hook hook)
{
    pthread_mutex_lock(&h->lock);
    dr__hook *slot = find(h, 0);
    if (slot) {
        *slot = hook;
        slot->token = ++h->last_token;
    }
    int token = slot ? slot->token : 0;
    pthread_mutex_unlock(&h->lock);
    return token;
}

void dr__hooks_remove(dr__hooks *h, int token)
{
    pthread_mutex_lock(&h->lock);
    dr__hook *slot = token > 0 ? find(h, token) : NULL;
    if (slot)
        *slot = (dr__hook){ 0 };
    while (h->calling && !pthread_equal(h->caller, pthread_self()))
        dr__cond_wait(&h->idle, &h->lock, UINT64_MAX);
    pthread_mutex_unlock(&h->lock);
}

int dr__hooks_begin(dr__hooks *h, dr__hook *out)
{
    int n = 0;
    pthread_mutex_lock(&h->lock);
    for (int i = 0; i < DR__MAX_HOOKS; i++)
        if (h->slots[i].token)
            out[n++] = h->slots[i];
    h->calling = true;
    h->caller = pthread_self();
    pthread_mutex_unlock(&h->lock);
    return n;
}

bool dr__hooks_has(dr__hooks *h, int token)
{
    pthread_mutex_lock(&h->lock);
    bool has = find(h, token) != NULL;
    pthread_mutex_unlock(&h->lock);
    return has;
}

void dr__hooks_end(dr__hooks *h)
{
    pthread_mutex_lock(&h->lock);
    h->calling = false;
    dr__cond_broadcast(&h->idle);
    pthread_mutex_unlock(&h->lock);
}
