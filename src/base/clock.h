/* clock.h: monotonic time and CPU time in nanoseconds. */
#ifndef DR_BASE_CLOCK_H
#define DR_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t dr__clock_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t dr__now_ns(void)
{
    return dr__clock_ns(CLOCK_MONOTONIC);
}

/* Of all threads of the process. */
static inline uint64_t dr__process_cpu_ns(void)
{
    return dr__clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static inline uint64_t dr__thread_cpu_ns(void)
{
    return dr__clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

#endif
