/* pick.c: picks a random sample of the spans, and the slowest. */
#include "trace/pick.h"

#include <math.h>

#include "base/compiler.h"

enum {
    SLOW_FACTOR = 4, /* times the mean is slow: at most 1/4 of all spans (Markov's inequality), mostly far fewer */
    MIN_SPANS = 16,  /* before any span is slow */
    MEAN_OVER = 256, /* spans in the running mean */
    WINDOW_MS = 100,
    NS_PER_MS = 1000000,
};

void dr__picker_init(dr__picker *p, double per_s, uint64_t seed)
{
    *p = (dr__picker){ .per_s = per_s, .chance = 1, .times_mean = SLOW_FACTOR, .random = seed | 1 };
}

static double random_unit(dr__picker *p)
{
    p->random ^= p->random << 13;
    p->random ^= p->random >> 7;
    p->random ^= p->random << 17;
    return (double)(p->random >> 11) * 0x1p-53;
}

/* The number of spans to write in a time. */
static double spans_in(const dr__picker *p, uint64_t ns)
{
    return p->per_s * (double)ns * 1e-9;
}

static void advance_window(dr__picker *p, uint64_t now_ns)
{
    const uint64_t length = now_ns - p->window_ns;
    if (p->window_ns && length < (uint64_t)WINDOW_MS * NS_PER_MS)
        return;
    if (p->window_ns) {
        p->chance = DR_MIN(1, spans_in(p, length) / DR_MAX(p->seen, 1));
        p->times_mean = DR_MAX(p->times_mean * 0.95, SLOW_FACTOR); /* slowly back after count_slow has raised it */
    }
    p->window_ns = now_ns;
    p->seen = p->kept = p->slow = 0;
}

/* Whether a span is far above the mean of earlier ones. */
static bool is_slow(dr__picker *p, int kind, uint64_t duration_ns)
{
    const double ns = (double)duration_ns, mean = p->mean[kind];
    const bool slow = p->n_mean[kind] >= MIN_SPANS && ns > p->times_mean * mean;
    p->n_mean[kind] += p->n_mean[kind] < MEAN_OVER;
    p->mean[kind] += (ns - mean) / p->n_mean[kind];
    return slow;
}

/* Counts slow spans; beyond `most` in a window, the threshold doubles. */
static void count_slow(dr__picker *p, int n, double most)
{
    p->slow += n;
    if (p->slow <= DR_MAX(most, n))
        return;
    p->times_mean *= 2;
    p->slow = 0;
}

bool dr__picker_wants(dr__picker *p, uint64_t now_ns, int kind, uint64_t duration_ns, int n)
{
    if (p->per_s == HUGE_VAL)
        return true;
    advance_window(p, now_ns);
    p->seen += n;
    const double of_window = spans_in(p, (uint64_t)WINDOW_MS * NS_PER_MS);
    if (is_slow(p, kind, duration_ns)) {
        count_slow(p, n, of_window);
        return true;
    }
    /* A sudden burst is cut off at twice the number; the chance is adjusted in the next window. */
    if (random_unit(p) < p->chance && p->kept + n <= DR_MAX(2 * of_window, n)) {
        p->kept += n;
        return true;
    }
    p->left_out += (uint64_t)n;
    return false;
}
