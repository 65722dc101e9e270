/* stopped_clock.c: clock_gettime of a test program, which comes before that of the C library. */
#include "unit/stopped_clock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static atomic_bool stopped;
static atomic_uint_fast64_t moved_ns; /* while stopped: what the clocks show; else what they are ahead by */

static uint64_t real_ns(clockid_t id)
{
    struct timespec t = { 0 };
    syscall(SYS_clock_gettime, id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
    if (id == CLOCK_REALTIME)
        return (int)syscall(SYS_clock_gettime, id, t);
    const uint64_t now = atomic_load(&moved_ns) + (atomic_load(&stopped) ? 0 : real_ns(id));
    *t = (struct timespec){ .tv_sec = (time_t)(now / 1000000000u), .tv_nsec = (long)(now % 1000000000u) };
    return 0;
}

void stop_clock(void)
{
    atomic_fetch_add(&moved_ns, real_ns(CLOCK_MONOTONIC));
    atomic_store(&stopped, true);
}

void move_clock(uint64_t ns)
{
    atomic_fetch_add(&moved_ns, ns);
}

void start_clock(void)
{
    const uint64_t now = real_ns(CLOCK_MONOTONIC), shown = atomic_load(&moved_ns);
    atomic_store(&stopped, false);
    atomic_store(&moved_ns, shown > now ? shown - now : 0);
}
