/* retry.h: when a request is tried again, and when it is sent twice: pure functions, and the times of a server's
 * answers. */
#ifndef DR_SOURCE_RETRY_H
#define DR_SOURCE_RETRY_H

#include <stdbool.h>
#include <stdint.h>

enum {
    DR__RETRY_FIRST_MS = 100,
    DR__RETRY_MOST_MS = 10000,
    DR__RETRY_STRANGERS = 4, /* tries for a server that was never reached */
    DR__RETRY_BROKEN = 8,    /* tries where the server fails (HTTP 500), which a request itself may be the cause of */
    DR__HEDGE_MIN_MS = 50,
    DR__HEDGE_ANSWERS = 16, /* answers that must be known before anything is sent twice */
};

/* The time until the next try, after `tries` of them: doubles from 100 ms to 10 s, and a random share of half of it is
 * left off (random: any 32 bits), so that many clients do not come back at once.  Never before retry_after_ns. */
uint64_t dr__retry_wait_ns(unsigned tries, uint32_t random, uint64_t retry_after_ns);

/* May an answer of this status be different the next time, after so many tries? */
bool dr__retry_http(int status, unsigned tries);

/* Does an answer of this status say that nothing was done? */
bool dr__retry_http_refused(int status);

/* How long a server's answers take to begin: mean and mean deviation, both decaying. */
typedef struct dr__answer_times {
    uint64_t n;
    double mean_ns, deviation_ns;
} dr__answer_times;

void dr__answer_times_add(dr__answer_times *times, uint64_t ns);

/* After which time an answer is a straggler, which is asked for again; UINT64_MAX: not known yet. */
uint64_t dr__answer_times_late_ns(const dr__answer_times *times);

#endif
