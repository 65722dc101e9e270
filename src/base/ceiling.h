/* ceiling.h: how much CPU time the workers of a loader, threads or processes, may use together.
 *
 * A bucket of CPU time fills at the rate of the ceiling and holds 20 ms of it at most, so that what was not used does
 * not become a burst.  A worker that begins a task takes out the mean cost of such tasks, and settles the difference
 * when the task is done; while the bucket is empty, no task is begun.  Times are arguments: no function reads a clock.
 * The owner of a ceiling protects it with a lock.
 */
#ifndef DR_BASE_CEILING_H
#define DR_BASE_CEILING_H

#include <stdint.h>

typedef struct dr__ceiling {
    double cpus;        /* 0: no ceiling */
    double left_ns;     /* below 0: so much was used too early */
    double mean_ns;     /* of what was begun and settled; new ones weigh an eighth */
    uint64_t filled_ns; /* when it was filled last */
} dr__ceiling;

void dr__ceiling_set(dr__ceiling *ceiling, double cpus, uint64_t now_ns);

/* When something may be begun: `now_ns` or before: now; else a time at which to ask again. */
uint64_t dr__ceiling_opens(dr__ceiling *ceiling, uint64_t now_ns);

/* Something is begun; what it took out in advance. */
double dr__ceiling_take(dr__ceiling *ceiling);

/* It is done. */
void dr__ceiling_settle(dr__ceiling *ceiling, double taken_ns, uint64_t used_ns);

/* The same for what says nothing of those that come: it broke off, or is of another kind. */
void dr__ceiling_book(dr__ceiling *ceiling, double taken_ns, uint64_t used_ns);

#endif
