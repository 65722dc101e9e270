/* shmpool_stats.c: counters of a shmpool as JSON. */
#include "shmpool/shared.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/error.h"

enum { TEXT_BYTES = 1024 };

static void count_workers(const dr_shmpool *c, unsigned *n_workers, unsigned *n_slow)
{
    *n_workers = *n_slow = 0;
    for (uint32_t i = 0; i < c->board->max_workers; i++) {
        *n_workers += c->workers[i].pid != 0;
        *n_slow += c->workers[i].pid && c->workers[i].kind && c->workers[i].slow;
    }
}

dr_status dr_shmpool_stats(dr_shmpool *c, char **text, dr_error *err)
{
    *text = dr__alloc(TEXT_BYTES);
    if (!*text)
        return dr__fail(err, DR_ERR_NOMEM, "shmpool: out of memory");
    struct dr__board *b = c->board;
    unsigned n_workers, n_slow;
    dr__shmpool_lock(c);
    count_workers(c, &n_workers, &n_slow);
    uint64_t threshold = dr__threshold(b);
    snprintf(*text, TEXT_BYTES,
             "{\"batches\": %" PRIu64 ", \"samples\": %" PRIu64 ", \"slow_samples\": %" PRIu64 ", \"redone\": %" PRIu64
             ", \"workers\": %u, \"slow_workers\": %u, \"threshold_ns\": %" PRIu64 ", \"mean_ns\": %" PRIu64
             ", \"bytes\": %" PRIu64 ", \"peak_bytes\": %" PRIu64 ", \"free_bytes\": %" PRIu64 "}",
             b->n_batches, b->n_samples, b->n_slow_samples, b->n_redone, n_workers, n_slow,
             threshold == UINT64_MAX ? 0 : threshold, dr__times_mean(&b->times), b->arena.used, b->arena.peak,
             b->arena.warm);
    dr__shmpool_unlock(c);
    return DR_OK;
}
