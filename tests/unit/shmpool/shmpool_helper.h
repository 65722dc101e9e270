/* shmpool_helper.h: shmpools for tests, small, and the steps of a worker that always works. */
#ifndef DR_TESTS_SHMPOOL_HELPER_H
#define DR_TESTS_SHMPOOL_HELPER_H

#include "unit/cm.h"

#include <sys/wait.h>
#include <unistd.h>

#include <drapps/shmpool.h>
#include <drapps/graph.h>

static inline dr_shmpool *open_shmpool(int workers, int batches, bool in_order)
{
    dr_error err;
    dr_shmpool *shmpool;
    dr_shmpool_options o;
    dr_shmpool_defaults(&o);
    o.max_workers = workers;
    o.max_batches = batches;
    o.address_space = 16 << 20;
    o.in_order = in_order;
    assert_ok(dr_shmpool_open(&o, &shmpool, &err));
    return shmpool;
}

static inline dr_shmpool_post_options a_post(uint64_t tag, uint32_t n_slots)
{
    return (dr_shmpool_post_options){
        .size = sizeof(dr_shmpool_post_options), .tag = tag, .n_slots = n_slots, .worker = -1
    };
}

static inline void post(dr_shmpool *shmpool, uint64_t tag, uint32_t n_slots)
{
    dr_error err;
    dr_shmpool_post_options o = a_post(tag, n_slots);
    assert_ok(dr_shmpool_post(shmpool, &o, &err));
}

static inline dr_shmpool_claim claim(dr_shmpool *shmpool, int worker)
{
    dr_error err;
    dr_shmpool_claim c;
    assert_ok(dr_shmpool_claim_next(shmpool, worker, 0, &c, &err));
    return c;
}

static inline void assert_nothing(dr_shmpool *shmpool, int worker)
{
    dr_error err;
    dr_shmpool_claim c;
    assert_int_equal(dr_shmpool_claim_next(shmpool, worker, 0, &c, &err), DR_AGAIN);
}

/* Done with slots of a claim; whether there is a batch to finish, which is then finished without a head. */
static inline bool done(dr_shmpool *shmpool, int worker, uint32_t i, uint32_t n)
{
    dr_error err;
    dr_shmpool_claim c;
    bool finish;
    assert_ok(dr_shmpool_done(shmpool, worker, i, n, 0, false, &finish, &c, &err));
    if (finish)
        assert_ok(dr_shmpool_finish(shmpool, worker, c.batch, 0, 0, false, &err));
    return finish;
}

static inline dr_shmpool_result next(dr_shmpool *shmpool)
{
    dr_error err;
    dr_shmpool_result r;
    assert_ok(dr_shmpool_next(shmpool, 0, &r, &err));
    return r;
}

static inline void release(dr_shmpool *shmpool, const dr_shmpool_result *r)
{
    for (uint32_t i = 0; i < r->n_samples; i++)
        dr_shmpool_block_release(shmpool, r->samples[i].block);
    dr_shmpool_block_release(shmpool, r->head);
    dr_shmpool_block_release(shmpool, r->slab);
    dr_shmpool_block_release(shmpool, r->items);
}

/* A counter of dr_shmpool_stats. */
static inline unsigned long long counter(dr_shmpool *shmpool, const char *name)
{
    dr_error err;
    char *text, key[64];
    assert_ok(dr_shmpool_stats(shmpool, &text, &err));
    snprintf(key, sizeof key, "\"%s\": ", name);
    const char *found = strstr(text, key);
    assert_non_null(found);
    unsigned long long value = strtoull(found + strlen(key), NULL, 10);
    dr_text_free(&text);
    return value;
}

/* Everything was released: nothing may be left in the shared memory. */
static inline void end_shmpool(dr_shmpool *shmpool)
{
    assert_int_equal(counter(shmpool, "bytes"), 0);
    dr_shmpool_unref(&shmpool);
}

#endif
