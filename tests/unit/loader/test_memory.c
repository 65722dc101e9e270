/* Memory: every allocation may fail, budgets hold, and batches that the user keeps leave them. */
#include "unit/loader/toy.h"

#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "loader/loader_internal.h"

static dr_error err;

static const char *const ops =
    "{\"op\":\"random_crop\",\"params\":{\"size\":[5,5]}},{\"op\":\"random_horizontal_flip\"},{\"op\":"
    "\"to_dtype\"},{\"op\":\"mixup\",\"params\":{\"num_classes\":40},\"fields\":[\"image\","
    "\"label\"]}";

static dr_status push_all(dr_loader *l, uint64_t n, dr_error *e)
{
    dr_status status = dr_loader_start(l, 0, e);
    for (uint64_t id = 0; status == DR_OK && id + 1 < n; id += 2) /* each second one twice */
        status = dr_loader_push(l, (const uint64_t[]){ id, id + 1, id }, 3, e);
    return status == DR_OK ? dr_loader_push_end(l, e) : status;
}

static int readers; /* of the loaders that live */

/* One whole life of a loader, to which every sample is slow; the first failure ends it.  Returns the status. */
static dr_status live(dr_dataset *set, dr_graph *g, const dr_loader_options *o)
{
    dr_loader *l = NULL;
    char *text = NULL;
    dr_error e = { 0 };
    dr_status status = dr_loader_open(set, g, o, &l, &e);
    if (status == DR_OK) {
        atomic_store(&l->exec.lanes.predict.slow_units, 0);
        status = dr_loader_set(l, "readers", readers, &e);
    }
    if (status == DR_OK && o->pushed_order)
        status = push_all(l, 40, &e);
    for (dr_batch *b = NULL; status == DR_OK; dr_batch_unref(&b))
        status = dr_loader_next(l, -1, &b, &e);
    if (status == DR_END)
        status = o->pushed_order ? dr_loader_stats(l, &text, &e) : dr_loader_state(l, &text, &e);
    if (status != DR_OK) {
        assert_int_equal(status, e.status);
        assert_true(e.text[0]);
    }
    dr_text_free(&text);
    dr_loader_close(&l);
    return status;
}

static void fail_each(const dr_loader_options *o, bool sticky)
{
    dr_dataset *set = toy_set(&(toy){ .n = 40 });
    dr_graph *g = graph_of(ops);
    int good = 0, failed = 0;
    for (long n = 1; n < 2000 && good < 3; n++) {
        dr__alloc_fail_at(n, sticky);
        dr_status status = live(set, g, o);
        long calls = dr__alloc_fail_at(0, false);
        if (status == DR_OK) {
            good += calls < n; /* with several threads a run may need fewer than another */
            continue;
        }
        good = 0;
        failed++;
        if (status != DR_ERR_NOMEM)
            fail_msg("allocation %ld: %s", n, dr_status_name(status));
    }
    assert_int_equal(good, 3);
    assert_true(failed > 20);
    assert_int_equal(live(set, g, o), DR_OK);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    for (int workers = 0; workers <= 2; workers += 2)
        for (int in_order = 0; in_order < 2; in_order++) {
            dr_loader_options o = options_of(8, workers);
            o.in_order = in_order;
            o.keep_draws = true;
            o.outputs = "image,label,text,boxes,tokens";
            o.collate = "boxes=pad,tokens=ragged";
            fail_each(&o, true);
            if (workers == 0)
                fail_each(&o, false);
            o.pushed_order = true;
            fail_each(&o, true);
            readers = 2;
            if (workers && in_order)
                fail_each(&o, true);
            readers = 0;
        }
}

/* After a failed start the loader can be asked again. */
static void a_failed_start_is_no_end(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 40 });
    dr_graph *g = graph_of(NULL);
    for (int in_order = 0; in_order < 2; in_order++)
        for (int workers = 0; workers <= 2; workers++) {
            dr_loader_options o = options_of(8, workers);
            o.in_order = in_order;
            dr_loader *l = open_loader(set, g, &o);
            dr_batch *b = NULL;
            dr__alloc_fail_at(1, true);
            dr_status status = dr_loader_start(l, 2, &err);
            dr__alloc_fail_at(0, false);
            if (workers > 0 || !in_order)
                assert_int_equal(status, DR_ERR_NOMEM);
            tape t = { 0 };
            dr_status first = dr_loader_next(l, 5000, &b, &err);
            assert_ok(first);
            assert_int_equal(dr_batch_epoch(b), 2);
            tape_add(&t, b);
            dr_batch_unref(&b);
            finish_epoch(&t, &l, 40);
        }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* A knob that cannot be turned stays where it was. */
static void a_failed_knob_is_no_change(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 40 });
    dr_graph *g = graph_of(NULL);
    dr_loader_options o = options_of(8, 0);
    dr_loader *l = open_loader(set, g, &o);
    tape t = { 0 };
    double workers = -1;
    tape_read(&t, l, 1);
    dr__alloc_fail_at(1, true);
    dr_status status = dr_loader_set(l, "workers", 4, &err);
    dr__alloc_fail_at(0, false);
    assert_int_equal(status, DR_ERR_NOMEM);
    assert_ok(dr_loader_get(l, "workers", &workers, &err));
    assert_true(workers == 0);
    assert_ok(dr_loader_set(l, "workers", 2, &err));
    while (stat_of(l, "ready_batches") < 2) /* then the workers rest, and no batch needs memory */
        usleep(1000);
    dr__alloc_fail_at(1, true); /* other threads are needed for another priority, and the first stay */
    status = dr_loader_set(l, "priority", -1, &err);
    dr__alloc_fail_at(0, false);
    assert_int_equal(status, DR_ERR_NOMEM);
    assert_ok(dr_loader_get(l, "priority", &workers, &err));
    assert_true(workers == 0);
    finish_epoch(&t, &l, 40);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

static void small_limits_are_named(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 40 });
    dr_graph *g = graph_of("{\"op\":\"resize\",\"params\":{\"size\":[200,200]}},{\"op\":\"gaussian_blur\",\"params\":{"
                           "\"kernel_size\":3}},{\"op\":\"random_crop\",\"params\":{\"size\":[4,4]}}");
    dr_loader_options o = options_of(100, 0);
    dr_loader *l = NULL;
    dr_batch *b = NULL;
    o.memory_limit = 1000; /* a batch has 100 x (48 + 8) bytes */
    assert_fails(dr_loader_open(set, g, &o, &l, &err), DR_ERR_LIMIT,
                 "a batch needs 5600 bytes; the memory limit of 1000");
    o.memory_limit = 20000; /* enough for a batch, not for the intermediate image */
    l = open_loader(set, g, &o);
    assert_fails(dr_loader_next(l, -1, &b, &err), DR_ERR_LIMIT,
                 "the limit is 5000, 1/4 of memory_limit: memory_limit must be");
    dr_loader_close(&l);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* What a worker holds of a sample's pixels after an epoch of large photographs. */
static size_t arena_after(dr_dataset *set, const char *nodes, bool in_order)
{
    dr_graph *g = graph_of(nodes);
    dr_loader_options o = options_of(2, 0);
    o.in_order = in_order;
    o.outputs = "image";
    dr_loader *l = open_loader(set, g, &o);
    tape t = { 0 };
    tape_read(&t, l, -1);
    assert_each_once(&t, dr_dataset_size(set));
    size_t bytes = l->exec.caller.bench->arena_cap;
    tape_free(&t);
    dr_loader_close(&l);
    dr_graph_free(&g);
    return bytes;
}

#define DECODED(op, params) "{\"op\":\"decode\"},{\"op\":\"" op "\",\"params\":{" params "}}"

/* 2400 x 1800 pixels are 13 MB; on their way they need room for some dozens of rows. */
static void large_photographs_are_never_whole(void **state)
{
    (void)state;
    char folder[64];
    dr_dataset *set = jpeg_set_sized(folder, 4, 2400, 1800);
    const size_t whole = 2400u * 1800u * 3u, few = 1u << 20;
    assert_in_range(arena_after(set, DECODED("resize", "\"size\":[224,224]"), true), 1, few);
    assert_in_range(arena_after(set, DECODED("resize", "\"size\":[90,2400]"), true), 1, few); /* rows are kept */
    assert_in_range(arena_after(set, DECODED("resize", "\"size\":[90,2300]"), true), 1, few);
    assert_in_range(arena_after(set, DECODED("random_resized_crop", "\"size\":[224,224],\"scale\":[0.9,1]"), true), 1,
                    few);
    assert_in_range(arena_after(set, DECODED("center_crop", "\"size\":[1700,2300]"), true), 1, few);
    /* out of order the slot is not known while decoding; a border has to see the image */
    assert_true(arena_after(set, DECODED("resize", "\"size\":[224,224]"), false) >= whole);
    assert_true(arena_after(set, DECODED("center_crop", "\"size\":[1900,2300]"), true) >= whole / 2);
    dr_dataset_unref(&set);
    remove_folder(folder);
}

static uint64_t open_batches(dr_loader *l)
{
    uint64_t before = 0, now = toy_reads();
    while (now != before) { /* until the workers rest */
        struct timespec t = { .tv_nsec = 20000000 };
        before = now;
        nanosleep(&t, NULL);
        now = toy_reads();
    }
    return (uint64_t)stat_of(l, "open_batches");
}

/* Batches made ahead stay within the budget, in both orders. */
static void the_budget_bounds_what_is_ahead(void **state)
{
    (void)state;
    dr_dataset *set = toy_set(&(toy){ .n = 400 });
    dr_graph *g = graph_of(NULL);
    for (int in_order = 0; in_order < 2; in_order++) {
        dr_loader_options o = options_of(10, 3); /* 10 x (144 + 8) bytes */
        o.in_order = in_order;
        o.prefetch = 64;
        o.memory_limit = 2 * 3 * 1520; /* half of it for batches: three of them */
        dr_loader *l = open_loader(set, g, &o);
        dr_batch *b = NULL;
        assert_ok(dr_loader_next(l, -1, &b, &err));
        assert_int_equal(open_batches(l), 3);
        dr_batch_unref(&b);
        dr_loader_close(&l);
    }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* Batches that are in flight come to be so many; never more. */
static void wait_open(dr_loader *l, uint64_t want)
{
    for (uint64_t open = 0, tries = 0; open < want; tries++) {
        const struct timespec t = { .tv_nsec = 200000 };
        nanosleep(&t, NULL);
        dr__pool_lock();
        open = l->exec.progress.opened - l->exec.progress.delivered;
        dr__pool_unlock();
        if (open > want || tries > 100000)
            fail_msg("%llu batches in flight, wanted %llu", (unsigned long long)open, (unsigned long long)want);
    }
}

/* prefetch_bytes bounds it further: never below one batch, and never above what the budget leaves. */
static void prefetch_bytes_bound_what_is_ahead(void **state)
{
    (void)state;
    static const struct {
        double bytes;
        uint64_t batches;
    } rows[] = { { 4 * 1520, 4 }, { 2 * 1520 + 1519, 2 }, { 1, 1 }, { 1e15, 6 }, { 0, 6 }, { 5 * 1520, 5 } };
    dr_dataset *set = toy_set(&(toy){ .n = 400 });
    dr_graph *g = graph_of(NULL);
    for (int in_order = 0; in_order < 2; in_order++)
        for (size_t i = 0; i < DR_COUNT(rows); i++) {
            dr_loader_options o = options_of(10, 3); /* 10 x (144 + 8) bytes */
            o.in_order = in_order;
            o.prefetch = 64;
            o.memory_limit = 2 * 6 * 1520; /* half of it for batches: six of them */
            dr_loader *l = open_loader(set, g, &o);
            tape t = { 0 };
            assert_ok(dr_loader_set(l, "prefetch_bytes", rows[i].bytes, &err));
            for (int k = 0; k < 10; k++) {
                tape_read(&t, l, 1);
                wait_open(l, rows[i].batches);
            }
            finish_epoch(&t, &l, 400);
        }
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* Every depth is honoured, as far as the budget reaches. */
static void each_depth_is_honoured(void **state)
{
    (void)state;
    enum { AFFORD = 40 };
    dr_dataset *set = toy_set(&(toy){ .n = 30000 });
    dr_graph *g = graph_of(NULL);
    dr_loader_options o = options_of(10, 2);
    o.memory_limit = 2 * AFFORD * 1520;
    dr_loader *l = open_loader(set, g, &o);
    tape t = { 0 };
    for (int i = 0; i < 64; i++) {
        const int depth = 1 + i * 37 % 64;
        const uint64_t want = (uint64_t)DR_MIN(depth, AFFORD);
        assert_ok(dr_loader_set(l, "prefetch", depth, &err));
        tape_read(&t, l, AFFORD); /* whatever was begun before is taken */
        wait_open(l, want);
    }
    assert_true(t.n < 3000 - AFFORD);
    tape_free(&t);
    dr_loader_close(&l);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

/* Loaders without a limit of their own share one: what the first has ahead, the second cannot have. */
static void loaders_share_a_budget(void **state)
{
    (void)state;
    dr__limits limits;
    dr__limits_read("", &limits);
    char ranks[32]; /* so many ranks on this node that a share is worth ten batches */
    snprintf(ranks, sizeof ranks, "%llu", (unsigned long long)(limits.memory_limit / (4 * 2 * 10 * 1520)));
    setenv("LOCAL_WORLD_SIZE", ranks, 1);
    dr_dataset *set = toy_set(&(toy){ .n = 400 });
    dr_graph *g = graph_of(NULL);
    dr_loader_options o = options_of(10, 2);
    o.prefetch = 8;
    dr_loader *a = open_loader(set, g, &o), *b = open_loader(set, g, &o);
    dr_batch *batch = NULL;
    assert_ok(dr_loader_next(a, -1, &batch, &err));
    dr_batch_unref(&batch);
    assert_int_equal(open_batches(a), 8);
    assert_ok(dr_loader_next(b, -1, &batch, &err));
    dr_batch_unref(&batch);
    assert_true(open_batches(b) <= 2);
    dr_loader_close(&a);
    assert_ok(dr_loader_next(b, -1, &batch, &err));
    dr_batch_unref(&batch);
    assert_int_equal(open_batches(b), 8);
    dr_loader_close(&b);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
    unsetenv("LOCAL_WORLD_SIZE");
}

static void held_batches_leave_the_budget(void **state)
{
    (void)state;
    enum { HELD = 50 };
    dr_dataset *set = toy_set(&(toy){ .n = HELD * 10 });
    dr_graph *g = graph_of(NULL);
    dr_loader_options o = options_of(10, 2);
    o.memory_limit = 2 * 2 * 1520;
    dr_loader *l = open_loader(set, g, &o);
    dr_batch *held[HELD] = { 0 };
    uint64_t hash[HELD];
    for (int i = 0; i < HELD; i++) {
        assert_ok(dr_loader_next(l, 10000, &held[i], &err));
        hash[i] = batch_hash(held[i]);
    }
    for (int i = 0; i < HELD; i++)
        assert_true(batch_hash(held[i]) == hash[i]); /* nobody wrote into them since */
    dr_loader_close(&l);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
    for (int i = 0; i < HELD; i++) { /* valid after everything else is gone */
        assert_true(batch_hash(held[i]) == hash[i]);
        dr_batch *second = dr_batch_ref(held[i]);
        dr_batch_unref(&held[i]);
        assert_null(held[i]);
        assert_true(batch_hash(second) == hash[i]);
        dr_batch_unref(&second);
    }
}

/* Reads an epoch of 40 batches of 64; `keep` batches are held at a time.  Returns a hash of them all. */
static uint64_t read_holding(int workers, size_t keep, uint64_t slow_every)
{
    enum { BATCHES = 40, BATCH = 64 };
    dr_dataset *set =
        toy_set(&(toy){ .n = BATCHES * BATCH, .h = 80, .w = 80, .slow_every = slow_every, .slow_us = 30000 });
    dr_graph *g = graph_of(NULL);
    dr_loader_options o;
    dr_loader_defaults(&o);
    o.batch_size = BATCH, o.workers = workers;
    dr_loader *l = NULL;
    assert_int_equal(dr_loader_open(set, g, &o, &l, &err), DR_OK);
    dr_batch *held[BATCHES] = { NULL }, *b = NULL;
    bool seen[BATCHES * BATCH] = { false };
    size_t n = 0;
    uint64_t hash = 0;
    for (; dr_loader_next(l, -1, &b, &err) == DR_OK; b = NULL) {
        for (uint64_t i = 0; i < dr_batch_samples(b); i++) {
            assert_false(seen[dr_batch_ids(b)[i]]);
            seen[dr_batch_ids(b)[i]] = true;
        }
        dr_batch_unref(&held[n % keep]); /* as a loop's variable does: after the next one is there */
        held[n++ % keep] = b;
        hash = hash * 31 + batch_hash(b);
    }
    assert_int_equal(n, BATCHES);
    for (size_t i = 0; i < keep; i++)
        dr_batch_unref(&held[i]);
    dr_loader_close(&l);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
    return hash;
}

/* The memory of a batch is put off for a moment where that saves it; whatever the consumer does, all batches come, and
 * are the same. */
static void batches_that_are_put_off_come(void **state)
{
    (void)state;
    const uint64_t want = read_holding(0, 1, 0); /* a caller that works itself does not wait for its own batch */
    for (int workers = 1; workers <= 2; workers++) {
        assert_true(read_holding(workers, 1, 0) == want);  /* a consumer that always waits */
        assert_true(read_holding(workers, 40, 0) == want); /* kept for good: waiting for them is in vain */
    }
    assert_true(read_holding(2, 1, 150) == want); /* samples that take longer than a batch is put off */
}

/* Claims one sample, as a worker does that then makes it. */
static dr__claim claim_one(dr__exec *e)
{
    dr__claim claim;
    dr__pool_lock();
    assert_true(dr__claim_for_reader(e, &claim));
    dr__pool_unlock();
    assert_int_equal(claim.n, 1);
    return claim;
}

/* The claims of a run without threads: workers are counted, and none is there. */
static void staging_ends_as_soon_as_there_is_memory(void **state)
{
    (void)state;
    enum { BATCH = 64 };
    dr_dataset *set = toy_set(&(toy){ .n = 5 * BATCH, .h = 80, .w = 80 });
    dr_graph *g = graph_of(NULL);
    dr_loader_options o;
    dr_loader_defaults(&o);
    o.batch_size = BATCH, o.workers = 0;
    dr_loader *l = open_loader(set, g, &o);
    dr__exec *e = &l->exec;
    assert_ok(dr_loader_start(l, 0, &err));
    e->knobs.workers = 1;
    dr__claim claim = { 0 };
    for (int i = 0; i < BATCH; i++)
        claim = claim_one(e);
    dr__slots_done(e, claim.batch, BATCH, 1);
    for (int i = 0; i < BATCH; i++)
        claim_one(e);
    dr_batch *held = NULL;
    assert_ok(dr_loader_next(l, 0, &held, &err)); /* the consumer keeps the first and waits for the second */
    e->consumers.waiting = 1;
    claim = claim_one(e);
    assert_true(claim.batch->is_staged);
    assert_true(claim.batch->n_staged > 1);
    dr_batch_unref(&held);
    claim = claim_one(e);
    assert_int_equal(claim.slot, 1);
    assert_false(claim.batch->is_staged); /* there is a place for another, but why copy it? */
    assert_int_equal(claim.batch->n_staged, 1);
    e->consumers.waiting = e->knobs.workers = 0;
    dr_loader_close(&l);
    dr_graph_free(&g);
    dr_dataset_unref(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_allocation_may_fail),           cmocka_unit_test(a_failed_start_is_no_end),
        cmocka_unit_test(a_failed_knob_is_no_change),         cmocka_unit_test(small_limits_are_named),
        cmocka_unit_test(prefetch_bytes_bound_what_is_ahead), cmocka_unit_test(each_depth_is_honoured),
        cmocka_unit_test(the_budget_bounds_what_is_ahead),    cmocka_unit_test(loaders_share_a_budget),
        cmocka_unit_test(held_batches_leave_the_budget),      cmocka_unit_test(large_photographs_are_never_whole),
        cmocka_unit_test(batches_that_are_put_off_come),      cmocka_unit_test(staging_ends_as_soon_as_there_is_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
