/* crew_helper.h: crews for tests, small, and the steps of a worker that always works. */
#ifndef DR_TESTS_CREW_HELPER_H
#define DR_TESTS_CREW_HELPER_H

#include "unit/cm.h"

#include <sys/wait.h>
#include <unistd.h>

#include <drapps/crew.h>
#include <drapps/graph.h>

static inline dr_crew *open_crew(int workers, int batches, bool in_order)
{
    dr_error err;
    dr_crew *crew;
    dr_crew_options o;
    dr_crew_defaults(&o);
    o.max_workers = workers;
    o.max_batches = batches;
    o.address_space = 16 << 20;
    o.in_order = in_order;
    assert_ok(dr_crew_open(&o, &crew, &err));
    return crew;
}

static inline dr_crew_post_options a_post(uint64_t tag, uint32_t n_slots)
{
    return (dr_crew_post_options){ .size = sizeof(dr_crew_post_options), .tag = tag, .n_slots = n_slots, .worker = -1 };
}

static inline void post(dr_crew *crew, uint64_t tag, uint32_t n_slots)
{
    dr_error err;
    dr_crew_post_options o = a_post(tag, n_slots);
    assert_ok(dr_crew_post(crew, &o, &err));
}

static inline dr_crew_claim claim(dr_crew *crew, int worker)
{
    dr_error err;
    dr_crew_claim c;
    assert_ok(dr_crew_claim_next(crew, worker, 0, &c, &err));
    return c;
}

static inline void assert_nothing(dr_crew *crew, int worker)
{
    dr_error err;
    dr_crew_claim c;
    assert_int_equal(dr_crew_claim_next(crew, worker, 0, &c, &err), DR_AGAIN);
}

/* Done with slots of a claim; whether there is a batch to finish, which is then finished without a head. */
static inline bool done(dr_crew *crew, int worker, uint32_t i, uint32_t n)
{
    dr_error err;
    dr_crew_claim c;
    bool finish;
    assert_ok(dr_crew_done(crew, worker, i, n, 0, false, &finish, &c, &err));
    if (finish)
        assert_ok(dr_crew_finish(crew, worker, c.batch, 0, 0, false, &err));
    return finish;
}

static inline dr_crew_result next(dr_crew *crew)
{
    dr_error err;
    dr_crew_result r;
    assert_ok(dr_crew_next(crew, 0, &r, &err));
    return r;
}

static inline void release(dr_crew *crew, const dr_crew_result *r)
{
    for (uint32_t i = 0; i < r->n_samples; i++)
        dr_crew_block_release(crew, r->samples[i].block);
    dr_crew_block_release(crew, r->head);
    dr_crew_block_release(crew, r->slab);
    dr_crew_block_release(crew, r->items);
}

/* A counter of dr_crew_stats. */
static inline unsigned long long counter(dr_crew *crew, const char *name)
{
    dr_error err;
    char *text, key[64];
    assert_ok(dr_crew_stats(crew, &text, &err));
    snprintf(key, sizeof key, "\"%s\": ", name);
    const char *found = strstr(text, key);
    assert_non_null(found);
    unsigned long long value = strtoull(found + strlen(key), NULL, 10);
    dr_text_free(&text);
    return value;
}

/* Everything was released: nothing may be left in the shared memory. */
static inline void end_crew(dr_crew *crew)
{
    assert_int_equal(counter(crew, "bytes"), 0);
    dr_crew_unref(&crew);
}

#endif
