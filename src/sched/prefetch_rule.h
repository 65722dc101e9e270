/* prefetch_rule.h: the default of the prefetch window, the number of batches that may be in flight.
 *
 * The default is DR__PREFETCH_LEAST.  For cheap batches it is larger, so that every worker has
 * DR_PREFETCH_SAMPLES_PER_WORKER samples in flight.  The constants that worker processes share are in drapps/sched.h;
 * Python reads them from drapps._core.
 */
#ifndef DR_SCHED_PREFETCH_RULE_H
#define DR_SCHED_PREFETCH_RULE_H

#include <stdint.h>

#include <drapps/sched.h>

#include "base/compiler.h"

enum {
    DR__PREFETCH_LEAST = 2, /* one being filled, one ready: more only take memory, as measured */
    DR__PREFETCH_MOST = 64,
};

/* The default window in batches.  batch_bytes: of one batch, 0: not known; limit_bytes: of all batches in flight. */
static inline uint64_t dr__prefetch_default(uint64_t batch_size, uint64_t batch_bytes, uint64_t limit_bytes,
                                            uint64_t workers)
{
    if (!batch_bytes)
        return DR__PREFETCH_LEAST;
    const uint64_t spread = (DR_PREFETCH_SAMPLES_PER_WORKER * workers + batch_size - 1) / batch_size;
    const uint64_t cheap = DR_MIN((uint64_t)DR_PREFETCH_CHEAP_BYTES, limit_bytes) / batch_bytes;
    return DR_MIN(DR_MAX(DR_MIN(spread, cheap), (uint64_t)DR__PREFETCH_LEAST), (uint64_t)DR__PREFETCH_MOST);
}

#endif
