/* thread.c: pthreads wrapped once, and what a fork does to us. */
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"

void dr__cond_init(dr__cond *cond)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&cond->c, &attr);
    pthread_condattr_destroy(&attr);
}

void dr__cond_destroy(dr__cond *cond)
{
    pthread_cond_destroy(&cond->c);
}

bool dr__cond_wait(dr__cond *cond, pthread_mutex_t *lock, uint64_t deadline_ns)
{
    if (deadline_ns == UINT64_MAX) {
        pthread_cond_wait(&cond->c, lock);
        return true;
    }
    struct timespec t = { .tv_sec = (time_t)(deadline_ns / 1000000000u), .tv_nsec = (long)(deadline_ns % 1000000000u) };
    return pthread_cond_timedwait(&cond->c, lock, &t) != ETIMEDOUT;
}

void dr__cond_signal(dr__cond *cond)
{
    pthread_cond_signal(&cond->c);
}

void dr__cond_broadcast(dr__cond *cond)
{
    pthread_cond_broadcast(&cond->c);
}

bool dr__thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *arg)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code == 0)
        pthread_setname_np(*thread, name);
    return code == 0;
}

void dr__thread_stand_back(void)
{
    /* Not SCHED_IDLE: such a thread may be off the CPU for a second while it holds a lock. */
    setpriority(PRIO_PROCESS, 0, 19); /* on Linux that of the thread */
}

static atomic_uint generation;
static void (*_Atomic resets[8])(void); /* NULL: about to be set */
static atomic_uint n_resets;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void in_child(void)
{
    atomic_fetch_add(&generation, 1);
    for (unsigned i = 0; i < DR_MIN(atomic_load(&n_resets), DR_COUNT(resets)); i++) {
        void (*reset)(void) = atomic_load(&resets[i]);
        if (reset)
            reset();
    }
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

unsigned dr__fork_generation(void)
{
    pthread_once(&fork_once, watch_forks);
    return atomic_load(&generation);
}

void dr__fork_in_child(void (*reset)(void))
{
    pthread_once(&fork_once, watch_forks);
    unsigned i = atomic_fetch_add(&n_resets, 1);
    if (i < DR_COUNT(resets))
        atomic_store(&resets[i], reset);
}

void dr__stall(void)
{
    static atomic_int percent = -1;
    static _Thread_local unsigned state = 1;
    int p = atomic_load_explicit(&percent, memory_order_relaxed); /* every thread finds the same value */
    if (p < 0) {
        const char *text = getenv("DRAPPS_STALL");
        p = text ? atoi(text) : 0;
        atomic_store(&percent, p);
    }
    if (!p)
        return;
    state = state * 1664525u + 1013904223u + (unsigned)(uintptr_t)&state;
    if ((int)(state >> 16) % 100 < p) {
        struct timespec t = { .tv_nsec = (long)(state >> 12) % 1000000 };
        nanosleep(&t, NULL);
    }
}

/* --- time --- */

enum { SLOWDOWN_OF_NS = 1000000 }; /* CPU time that a slow-down is of, at least */

/* Time that the calling thread has run, and has waited for a CPU; false, and 0: not known. */
static bool times(uint64_t *ran_ns, uint64_t *waited_ns)
{
    char text[96], *second;
    const int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    *ran_ns = strtoull(text, &second, 10);
    *waited_ns = *ran_ns ? strtoull(second, NULL, 10) : 0;
    return *ran_ns > 0;
}

uint64_t dr__busy_ns(void)
{
    uint64_t ran, waited;
    times(&ran, &waited);
    const uint64_t now = dr__now_ns();
    return now > waited ? now - waited : 0;
}

double dr__thread_slowdown(void)
{
    static _Thread_local struct {
        uint64_t ran, waited;
        double found;
    } last;
    uint64_t ran, waited;
    if (!times(&ran, &waited))
        return 0;
    if (ran < last.ran + SLOWDOWN_OF_NS)
        return last.found;
    last.found = 1 + (double)(waited - last.waited) / (double)(ran - last.ran);
    last.ran = ran;
    last.waited = waited;
    return last.found;
}

uint64_t dr__busy_since(uint64_t start_ns)
{
    const uint64_t now = dr__busy_ns(); /* two clocks of the kernel, which may differ a little */
    return now > start_ns ? now - start_ns : 1;
}
