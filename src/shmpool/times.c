/* times.c: how long samples take: their mean, and above which time one counts as slow.
 *
 * A histogram with four buckets for each doubling.  Old times count less: all is halved now and then.
 */
#include "shmpool/shared.h"

#include "base/compiler.h"

enum { HALVE_AT = 8192, ENOUGH = 32, SLOW_TIMES = 4 };

static unsigned bucket_of(uint64_t ns)
{
    if (ns < 4)
        return (unsigned)ns;
    unsigned log = 63 - (unsigned)__builtin_clzll(ns);
    return DR_MIN((log - 1) * 4 + (unsigned)(ns >> (log - 2) & 3), (unsigned)DR__TIME_BUCKETS - 1);
}

/* The least time of a bucket. */
static uint64_t bucket_begin(unsigned bucket)
{
    return bucket < 4 ? bucket : (uint64_t)(4 + bucket % 4) << (bucket / 4 - 1);
}

static uint64_t median(const struct dr__times *t)
{
    uint64_t below = 0;
    for (unsigned i = 0; i < DR__TIME_BUCKETS; i++) {
        below += t->bucket[i];
        if (below * 2 >= t->count)
            return bucket_begin(i);
    }
    return 0;
}

static void halve(struct dr__times *t)
{
    t->count = 0;
    for (unsigned i = 0; i < DR__TIME_BUCKETS; i++)
        t->count += t->bucket[i] /= 2;
    t->sum_ns /= 2;
}

double dr__times_slow(const struct dr__times *t)
{
    return t->slow_times > 0 ? t->slow_times : SLOW_TIMES;
}

static void find_threshold(struct dr__times *t)
{
    bool known = t->count >= ENOUGH || t->expected_ns;
    uint64_t typical = t->count >= ENOUGH ? median(t) : t->expected_ns;
    double slow = DR_MIN((double)typical * dr__times_slow(t), 1e18);
    t->threshold_ns = known ? DR_MAX((uint64_t)slow, 1) : 0;
}

void dr__times_expect(struct dr__times *t, uint64_t ns)
{
    t->expected_ns = ns;
    find_threshold(t);
}

void dr__times_add(struct dr__times *t, uint64_t ns, uint32_t n)
{
    t->bucket[bucket_of(ns)] += n;
    t->sum_ns += ns * n;
    uint64_t before = t->count / ENOUGH;
    t->count += n;
    if (t->count >= HALVE_AT)
        halve(t);
    if (t->count / ENOUGH != before) /* now and then: the median moves slowly */
        find_threshold(t);
}

void dr__times_set_slow(struct dr__times *t, double times)
{
    t->slow_times = times;
    find_threshold(t);
}

uint64_t dr__times_mean(const struct dr__times *t)
{
    return t->count ? DR_MAX(t->sum_ns / t->count, 1) : 0;
}

uint64_t dr__threshold(const struct dr__board *b)
{
    if (b->set_threshold_ns)
        return b->set_threshold_ns;
    return b->times.threshold_ns ? b->times.threshold_ns : UINT64_MAX;
}
