/* thread.h: threads, locks and waiting, over pthreads. */
#ifndef DR_BASE_THREAD_H
#define DR_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* A condition variable that waits by the monotonic clock. */
typedef struct dr__cond {
    pthread_cond_t c;
} dr__cond;

void dr__cond_init(dr__cond *cond);
void dr__cond_destroy(dr__cond *cond);

/* Waits until signalled or, with deadline_ns != UINT64_MAX, until that monotonic time; false: the time is over. */
bool dr__cond_wait(dr__cond *cond, pthread_mutex_t *lock, uint64_t deadline_ns);
void dr__cond_signal(dr__cond *cond);
void dr__cond_broadcast(dr__cond *cond);

/* Starts a thread with all signals blocked: they belong to the program's own threads.  name: up to 15 characters. */
bool dr__thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *arg);

/* The calling thread gets the CPU when hardly anything else wants it, from now on: there may be no way back. */
void dr__thread_stand_back(void);

/* How often the process forked before this point: objects keep it, and a child sees by it that they are not its own.
 * The child of a fork has a higher number than its parent. */
unsigned dr__fork_generation(void);

/* Calls `reset` in the child of each later fork, before anything else runs there.  At most 8 callers. */
void dr__fork_in_child(void (*reset)(void));

/* DRAPPS_STALL=<percent>: sleeps now and then for up to a millisecond, to shake races out in tests. */
void dr__stall(void);

/* Monotonic time without that in which this thread was ready to run and had no CPU, as far as the kernel reports it:
 * what a read takes, whatever else runs.  Costs some microseconds.  dr__busy_since: from such a time on, at least 1. */
uint64_t dr__busy_ns(void);
uint64_t dr__busy_since(uint64_t start_ns);

/* How much longer than its CPU time this thread took while it did not sleep, since it last asked (and had a millisecond
 * of CPU time): 1 and more, as others use the CPUs or a quota is used up.  0: not known.  Costs as much. */
double dr__thread_slowdown(void);

#endif
