/* sampler.h: all probes together, without a thread or a clock of their own. */
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

/* For the tree below root ("": this machine).  dr__sampler_close also after a failure. */
dr_status dr__sampler_open(dr__sampler *s, const char *root, dr_error *err);
void dr__sampler_close(dr__sampler *s);

/* Reads everything; now_ns must not go back.  The first time it opens the probes, which takes milliseconds; after that
 * it allocates nothing. */
void dr__sampler_tick(dr__sampler *s, uint64_t now_ns, dr_snapshot *out);

#endif
