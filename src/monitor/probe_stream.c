/* probe_stream.c: how fast memory can be read at the moment, by a timed pass over 1 MB, at most twice a second and 0.2
 * % of a CPU.
 *
 * The pass is slower while other streams load the memory.  Each pass reads another of 4 pieces, so that a piece has
 * left the caches of the core when its turn comes again, seconds later.  This is a proxy: it shows "slower than at
 * best", not the machine's memory traffic.
 */
#include "monitor/probe.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

enum { STREAM_BYTES = 1 << 20, N_PIECES = 4, PAUSE_PER_NS = 500, MIN_PAUSE_NS = 500000000 };

struct state {
    uint64_t *words; /* NULL: absent */
    unsigned piece;
    uint64_t next_ns;
    double rate, best;
    volatile uint64_t sum; /* so that the compiler keeps the pass */
};

static void open_memory(void *state, dr__host *host)
{
    struct state *s = state;
    if (host->redirected)
        return;
    s->words = dr__alloc_aligned((size_t)N_PIECES * STREAM_BYTES);
    if (s->words)
        memset(s->words, 1, (size_t)N_PIECES * STREAM_BYTES); /* maps real pages, not the shared zero page */
}

/* Timed by the thread's CPU time: wall time would include other tasks. */
static uint64_t time_pass(struct state *s)
{
    const size_t n = STREAM_BYTES / sizeof *s->words;
    const uint64_t *words = s->words + n * (s->piece++ % N_PIECES);
    uint64_t begin = dr__thread_cpu_ns(), sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += words[i];
    s->sum = sum;
    return dr__thread_cpu_ns() - begin;
}

static void tick(void *state, dr__host *host, uint64_t now_ns, uint64_t elapsed_ns, dr_snapshot *out)
{
    (void)host, (void)elapsed_ns;
    struct state *s = state;
    if (!s->words)
        return;
    if (now_ns >= s->next_ns) {
        uint64_t took_ns = DR_MAX(time_pass(s), 1);
        s->next_ns = now_ns + DR_MAX(took_ns * PAUSE_PER_NS, MIN_PAUSE_NS);
        s->rate = STREAM_BYTES * 1e9 / (double)took_ns;
        s->best = DR_MAX(s->best, s->rate);
    }
    dr__sense(out, DR_SENSOR_MEM_BANDWIDTH, s->rate, s->best);
}

static void close_memory(void *state)
{
    struct state *s = state;
    dr__free_aligned(s->words);
}

const dr__probe_def dr__probe_stream = {
    .name = "stream",
    .summary = "speed of a short stream from memory",
    .state_size = sizeof(struct state),
    .open = open_memory,
    .read = tick,
    .close = close_memory,
};
