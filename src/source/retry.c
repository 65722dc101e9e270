/* retry.c: intervals of tries, and what a late answer is. */
#include "source/retry.h"

#include "base/compiler.h"

uint64_t dr__retry_wait_ns(unsigned tries, uint32_t random, uint64_t retry_after_ns)
{
    const unsigned doubled = DR_MIN(tries ? tries - 1 : 0, 20);
    const uint64_t ms = DR_MIN((uint64_t)DR__RETRY_FIRST_MS << doubled, DR__RETRY_MOST_MS), ns = ms * 1000000;
    const uint64_t jitter = (ns / 2 >> 16) * (random >> 16);
    /* Where the server said when to come back, the jitter is added: all clients were told the same time. */
    return retry_after_ns ? DR_MAX(ns, retry_after_ns) + jitter : ns - jitter;
}

bool dr__retry_http(int status, unsigned tries)
{
    if (status == 500)
        return tries < DR__RETRY_BROKEN;
    return status == 408 || status == 425 || status == 429 || status == 502 || status == 503 || status == 504;
}

bool dr__retry_http_refused(int status)
{
    return status == 425 || status == 429 || status == 503;
}

/* As TCP does for its round trips (RFC 6298). */
void dr__answer_times_add(dr__answer_times *t, uint64_t ns)
{
    const double x = (double)ns, error = x > t->mean_ns ? x - t->mean_ns : t->mean_ns - x;
    if (t->n++ == 0) {
        t->mean_ns = x;
        t->deviation_ns = x / 2;
        return;
    }
    t->deviation_ns += (error - t->deviation_ns) / 4;
    t->mean_ns += (x - t->mean_ns) / 8;
}

uint64_t dr__answer_times_late_ns(const dr__answer_times *t)
{
    if (t->n < DR__HEDGE_ANSWERS)
        return UINT64_MAX;
    const double late = 2 * t->mean_ns + 6 * t->deviation_ns;
    return late < DR__HEDGE_MIN_MS * 1e6 ? (uint64_t)DR__HEDGE_MIN_MS * 1000000 : (uint64_t)late;
}
