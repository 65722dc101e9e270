/* pick.h: which spans are written, where there are more than the trace is to hold.
 *
 * Time is cut into windows.  Within one, each span is kept with the chance that last window's number asks for, so that
 * the kept ones are a fair sample.  Besides, each that took far longer than the others is kept: those are what people
 * look for.  How much longer follows from how many there are, so that the slowest are always among them.
 */
#ifndef DR_TRACE_PICK_H
#define DR_TRACE_PICK_H

#include <stdbool.h>
#include <stdint.h>

#include <drapps/trace.h>

typedef struct dr__picker {
    double per_s; /* spans to keep; HUGE_VAL: all */
    double chance;
    double times_mean;       /* what takes so many times the mean is slow */
    double mean[DR_N_SPANS]; /* ns, running; of each kind */
    uint32_t n_mean[DR_N_SPANS];
    uint64_t window_ns; /* when it began */
    double seen, kept, slow;
    uint64_t random;
    uint64_t left_out; /* spans, in all */
} dr__picker;

void dr__picker_init(dr__picker *p, double per_s, uint64_t seed);

/* Are n spans that belong together written, the main one of this kind and duration?  Left out ones are counted. */
bool dr__picker_takes(dr__picker *p, uint64_t now_ns, int kind, uint64_t duration_ns, int n);

#endif
