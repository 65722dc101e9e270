/* sampler.h: runs all probes; has no thread and no clock. */
#ifndef DR_MONITOR_SAMPLER_H
#define DR_MONITOR_SAMPLER_H

#include "base/error.h"
#include "monitor/probe.h"

enum { DR__MAX_PROBES = 32 };

typedef struct dr__sampler {
    dr__host host;
    char *root; /* owned; host.root */
    void *states[DR__MAX_PROBES];
    uint64_t last_ns, n_ticks;
} dr__sampler;

/* Opens a sampler for the tree below root ("": this machine).  Call dr__sampler_close also after a failure. */
dr_status dr__sampler_open(dr__sampler *s, const char *root, dr_error *err);
void dr__sampler_close(dr__sampler *s);

/* Runs all probes.  The first call opens them, which takes milliseconds; later calls allocate nothing.
 *
 * @param now_ns  must not decrease from call to call. */
void dr__sampler_tick(dr__sampler *s, uint64_t now_ns, dr_snapshot *out);

#endif
