/* ceiling.c: a bucket of CPU time. */
#include "base/ceiling.h"

#include "base/compiler.h"

enum {
    HOLDS_NS = 20000000,    /* times the ceiling */
    LEAST_WAIT_NS = 500000, /* waking up for less costs more than it uses */
    NEW_WEIGHS = 8,         /* an eighth */
};

void dr__ceiling_set(dr__ceiling *c, double cpus, uint64_t now_ns)
{
    if (c->cpus <= 0) { /* what happened without a ceiling does not count */
        c->left_ns = 0;
        c->filled_ns = now_ns;
    }
    c->cpus = cpus;
}

static void fill(dr__ceiling *c, uint64_t now_ns)
{
    if (now_ns <= c->filled_ns)
        return;
    const double more = (double)(now_ns - c->filled_ns) * c->cpus;
    c->left_ns = DR_MIN(c->left_ns + more, HOLDS_NS * c->cpus);
    c->filled_ns = now_ns;
}

uint64_t dr__ceiling_opens(dr__ceiling *c, uint64_t now_ns)
{
    fill(c, now_ns);
    if (c->left_ns > 0)
        return now_ns;
    const double wait = DR_MAX(-c->left_ns / c->cpus, LEAST_WAIT_NS);
    return now_ns + (uint64_t)DR_MIN(wait, 1e15);
}

double dr__ceiling_take(dr__ceiling *c)
{
    c->left_ns -= c->mean_ns;
    return c->mean_ns;
}

void dr__ceiling_book(dr__ceiling *c, double taken_ns, uint64_t used_ns)
{
    c->left_ns += taken_ns - (double)used_ns;
}

void dr__ceiling_settle(dr__ceiling *c, double taken_ns, uint64_t used_ns)
{
    dr__ceiling_book(c, taken_ns, used_ns);
    c->mean_ns += ((double)used_ns - c->mean_ns) / NEW_WEIGHS;
}
