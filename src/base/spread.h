/* spread.h: the bins of a dr_spread (sched.h): powers of four, so that finer histograms over powers of two fit in. */
#ifndef DR_BASE_SPREAD_H
#define DR_BASE_SPREAD_H

#include <math.h>
#include <stdint.h>

#include <drapps/sched.h>

enum { DR__SPREAD_LEAST = 18 }; /* the first bin ends at 2^18 ns: 0.26 ms */

static inline int dr__spread_bin(uint64_t ns)
{
    int bin = 0;
    while (bin < DR_SPREAD_BINS - 1 && ns >> (DR__SPREAD_LEAST + 2 * bin))
        bin++;
    return bin;
}

/* Where a bin ends, in s. */
static inline double dr__spread_end(int bin)
{
    return bin < DR_SPREAD_BINS - 1 ? (double)(UINT64_C(1) << (DR__SPREAD_LEAST + 2 * bin)) * 1e-9 : INFINITY;
}

#endif
