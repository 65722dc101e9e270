/* pick.h: chooses which spans are written if there are more than the trace is to hold.
 *
 * Time is divided into windows.  Within a window each span is kept with a probability that follows from the number of
 * spans in the last window, so that the kept ones are a fair sample.  Spans that took far longer than the mean are kept
 * as well.  That threshold rises with their number, so that the slowest spans are always kept.
 */
#ifndef DR_TRACE_PICK_H
#define DR_TRACE_PICK_H

#include <stdbool.h>
#include <stdint.h>

#include <drapps/trace.h>

typedef struct dr__picker {
    double per_s;            /* spans to keep; HUGE_VAL: all */
    double chance;           /* probability of keeping a span in this window */
    double times_mean;       /* a span that takes this multiple of the mean is slow */
    double mean[DR_N_SPANS]; /* ns, running; of each kind */
    uint32_t n_mean[DR_N_SPANS];
    uint64_t window_ns; /* when the window began */
    double seen, kept, slow;
    uint64_t random;
    uint64_t left_out; /* spans left out so far */
} dr__picker;

void dr__picker_init(dr__picker *p, double per_s, uint64_t seed);

/* Whether n spans that belong together are to be written, given the kind and duration of the main one; if not, they are
 * counted in left_out. */
bool dr__picker_wants(dr__picker *p, uint64_t now_ns, int kind, uint64_t duration_ns, int n);

#endif
