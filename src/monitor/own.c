/* own.c: see own.h. */
#include "monitor/own.h"

#include "base/clock.h"

void dr__own_cpu_init(dr__own_cpu *own)
{
    *own = (dr__own_cpu){ 0 };
    pthread_mutex_init(&own->lock, NULL);
}

void dr__own_cpu_destroy(dr__own_cpu *own)
{
    pthread_mutex_destroy(&own->lock);
}

static int find(const dr__own_cpu *own, int pid)
{
    for (int i = 0; i < own->n_watched; i++)
        if (own->watched[i].pid == pid)
            return i;
    return -1;
}

static bool read_clock(clockid_t clock, uint64_t *out)
{
    struct timespec t;
    if (clock_gettime(clock, &t) != 0)
        return false;
    *out = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    return true;
}

dr__watch_result dr__own_cpu_watch(dr__own_cpu *own, int pid)
{
    struct dr__watched w = { .pid = pid };
    if (pid <= 0 || clock_getcpuclockid(pid, &w.clock) != 0 || !read_clock(w.clock, &w.seen_ns))
        return DR__WATCH_GONE;
    dr__watch_result result = DR__WATCHED;
    pthread_mutex_lock(&own->lock);
    if (find(own, pid) < 0) {
        if (own->n_watched < DR__MAX_WATCHED)
            own->watched[own->n_watched++] = w;
        else
            result = DR__WATCH_FULL;
    }
    pthread_mutex_unlock(&own->lock);
    return result;
}

void dr__own_cpu_unwatch(dr__own_cpu *own, int pid)
{
    pthread_mutex_lock(&own->lock);
    int i = find(own, pid);
    if (i >= 0)
        own->watched[i] = own->watched[--own->n_watched];
    pthread_mutex_unlock(&own->lock);
}

uint64_t dr__own_cpu_ns(dr__own_cpu *own)
{
    uint64_t now;
    pthread_mutex_lock(&own->lock);
    for (int i = 0; i < own->n_watched;) {
        struct dr__watched *w = &own->watched[i];
        if (!read_clock(w->clock, &now)) { /* it ended */
            *w = own->watched[--own->n_watched];
            continue;
        }
        own->past_ns += now > w->seen_ns ? now - w->seen_ns : 0;
        w->seen_ns = now;
        i++;
    }
    uint64_t sum = own->past_ns + dr__process_cpu_ns();
    pthread_mutex_unlock(&own->lock);
    return sum;
}
