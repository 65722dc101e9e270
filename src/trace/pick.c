/* pick.c: a fair sample of the spans, and the slowest. */
#include "trace/pick.h"

#include <math.h>

#include "base/compiler.h"

enum {
    SLOW_TIMES = 4,  /* the mean: by Markov's inequality at most a quarter of all, and mostly very few */
    ENOUGH = 16,     /* spans until the mean means something */
    MEAN_OVER = 256, /* spans that the running mean remembers */
    WINDOW_MS = 100,
    NS_PER_MS = 1000000,
};

void dr__picker_init(dr__picker *p, double per_s, uint64_t seed)
{
    *p = (dr__picker){ .per_s = per_s, .chance = 1, .times_mean = SLOW_TIMES, .random = seed | 1 };
}

static double random_unit(dr__picker *p)
{
    p->random ^= p->random << 13;
    p->random ^= p->random >> 7;
    p->random ^= p->random << 17;
    return (double)(p->random >> 11) * 0x1p-53;
}

/* Spans that a time is worth. */
static double worth(const dr__picker *p, uint64_t ns)
{
    return p->per_s * (double)ns * 1e-9;
}

static void turn_window(dr__picker *p, uint64_t now_ns)
{
    const uint64_t length = now_ns - p->window_ns;
    if (p->window_ns && length < (uint64_t)WINDOW_MS * NS_PER_MS)
        return;
    if (p->window_ns) {
        p->chance = DR_MIN(1, worth(p, length) / DR_MAX(p->seen, 1));
        p->times_mean = DR_MAX(p->times_mean * 0.95, SLOW_TIMES); /* seldom as low that there are too many again */
    }
    p->window_ns = now_ns;
    p->seen = p->kept = p->slow = 0;
}

/* Far above the mean of those before. */
static bool is_slow(dr__picker *p, int kind, uint64_t duration_ns)
{
    const double ns = (double)duration_ns, mean = p->mean[kind];
    const bool slow = p->n_mean[kind] >= ENOUGH && ns > p->times_mean * mean;
    p->n_mean[kind] += p->n_mean[kind] < MEAN_OVER;
    p->mean[kind] += (ns - mean) / p->n_mean[kind];
    return slow;
}

/* Too many of them: only slower ones from here on. */
static void take_slow(dr__picker *p, int n, double most)
{
    p->slow += n;
    if (p->slow <= DR_MAX(most, n))
        return;
    p->times_mean *= 2;
    p->slow = 0;
}

bool dr__picker_takes(dr__picker *p, uint64_t now_ns, int kind, uint64_t duration_ns, int n)
{
    if (p->per_s == HUGE_VAL)
        return true;
    turn_window(p, now_ns);
    p->seen += n;
    const double of_window = worth(p, (uint64_t)WINDOW_MS * NS_PER_MS);
    if (is_slow(p, kind, duration_ns)) {
        take_slow(p, n, of_window);
        return true;
    }
    /* A sudden flood is cut off at twice the number; the next window is fair again. */
    if (random_unit(p) < p->chance && p->kept + n <= DR_MAX(2 * of_window, n)) {
        p->kept += n;
        return true;
    }
    p->left_out += (uint64_t)n;
    return false;
}
