/* prefetch_rule.h: the constants and the rule behind every prefetch window, native or in worker processes.
 *
 * A prefetch window is how many batches may be in flight.  Where neither the user nor a policy says how many, it is
 * PREFETCH_LEAST; of cheap batches, so many more that every worker has PREFETCH_SAMPLES_PER_WORKER samples in flight.
 */
#ifndef DR_SCHED_PREFETCH_RULE_H
#define DR_SCHED_PREFETCH_RULE_H

#include <stdint.h>

#include "base/compiler.h"

enum {
    DR__PREFETCH_LEAST = 2, /* one being filled, one ready: in measurements more of them only took memory */
    DR__PREFETCH_MOST = 64,
    DR__PREFETCH_CHEAP_BYTES = 64 << 20,  /* cheap batches: all in flight take no more memory than this */
    DR__PREFETCH_SAMPLES_PER_WORKER = 12, /* evens out that some samples take much longer than others */
};

/* The window to start with.  batch_bytes: of one batch, 0: not known; limit_bytes: of all batches in flight. */
static inline uint64_t dr__prefetch_default(uint64_t batch_size, uint64_t batch_bytes, uint64_t limit_bytes,
                                            uint64_t workers)
{
    if (!batch_bytes)
        return DR__PREFETCH_LEAST;
    const uint64_t spread = (DR__PREFETCH_SAMPLES_PER_WORKER * workers + batch_size - 1) / batch_size;
    const uint64_t cheap = DR_MIN((uint64_t)DR__PREFETCH_CHEAP_BYTES, limit_bytes) / batch_bytes;
    return DR_MIN(DR_MAX(DR_MIN(spread, cheap), (uint64_t)DR__PREFETCH_LEAST), (uint64_t)DR__PREFETCH_MOST);
}

#endif
