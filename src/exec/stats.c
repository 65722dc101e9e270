/* stats.c: histograms of times on a logarithmic scale. */
#include "exec/stats.h"

#include "base/spread.h"

/* Bins 0 .. 7 hold one value each; above, an octave has eight bins: bin 8 is 8, bin 15 is 15, bin 16 is 16 and 17. */
static int bin_of(uint64_t ns)
{
    int octave = 0;
    for (uint64_t v = ns; v > 15; v >>= 1)
        octave++;
    int bin = ns < 8 ? (int)ns : (octave + 1) * 8 + (int)((ns >> octave) & 7);
    return bin < DR__HISTOGRAM ? bin : DR__HISTOGRAM - 1;
}

/* The largest value of a bin. */
static uint64_t bin_top(int bin)
{
    if (bin < 8)
        return (uint64_t)bin;
    int octave = bin / 8 - 1;
    return ((uint64_t)(8 + bin % 8 + 1) << octave) - 1;
}

void dr__histogram_add(dr__histogram *h, uint64_t ns)
{
    atomic_fetch_add(&h->n[bin_of(ns)], 1);
    atomic_fetch_add(&h->count, 1);
    atomic_fetch_add(&h->sum_ns, ns);
    uint64_t most = atomic_load(&h->max_ns);
    while (ns > most && !atomic_compare_exchange_weak(&h->max_ns, &most, ns))
        ;
}

void dr__histogram_fade(dr__histogram *h)
{
    uint64_t count = 0;
    for (int i = 0; i < DR__HISTOGRAM; i++) {
        const uint64_t half = atomic_load(&h->n[i]) / 2;
        atomic_store(&h->n[i], half);
        count += half;
    }
    atomic_store(&h->count, count);
    atomic_store(&h->sum_ns, atomic_load(&h->sum_ns) / 2);
}

static uint64_t quantile(const dr__histogram *h, uint64_t count, double q)
{
    uint64_t want = (uint64_t)(q * (double)count), seen = 0, most = atomic_load(&h->max_ns);
    for (int i = 0; i < DR__HISTOGRAM; i++) {
        seen += atomic_load(&h->n[i]);
        if (seen > want)
            return bin_top(i) < most ? bin_top(i) : most;
    }
    return most;
}

uint64_t dr__histogram_quantile(const dr__histogram *h, double q)
{
    return quantile(h, atomic_load(&h->count), q);
}

/* Each bin lies within one bin of the spread, since those end at powers of two. */
void dr__histogram_spread(const dr__histogram *h, dr_spread *out)
{
    out->sum = (double)atomic_load(&h->sum_ns) * 1e-9;
    for (int i = 0; i < DR__HISTOGRAM; i++)
        out->n[dr__spread_bin(bin_top(i))] += atomic_load(&h->n[i]);
}

json_t *dr__histogram_json(const dr__histogram *h)
{
    uint64_t count = atomic_load(&h->count);
    uint64_t mean = count ? atomic_load(&h->sum_ns) / count : 0;
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "count", (json_int_t)count, "mean_ns", (json_int_t)mean,
                     "p50_ns", (json_int_t)quantile(h, count, 0.50), "p95_ns", (json_int_t)quantile(h, count, 0.95),
                     "p99_ns", (json_int_t)quantile(h, count, 0.99), "max_ns", (json_int_t)atomic_load(&h->max_ns));
}
