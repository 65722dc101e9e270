/* Workers that are killed: at every single step, and at random; every sample is there exactly once. */
#include "unit/shmpool/shmpool_helper.h"

#include <signal.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "shmpool/shared.h"

enum { N_SLOTS = 4, SLAB = N_SLOTS * 16, HEAD = 24, SAMPLE = 40 };

/* --- a worker: each sample is written to the slab, and to a block of its own --- */

static void text_of(char *out, uint64_t tag, uint32_t slot)
{
    snprintf(out, 16, "%llu/%u", (unsigned long long)tag, slot);
}

static void finish(dr_shmpool *shmpool, int worker, const dr_shmpool_claim *c)
{
    dr_error err;
    dr_shmpool_block head;
    for (uint32_t i = 0; i < c->n_slots; i++) {
        char text[16];
        text_of(text, c->samples[i].tag, c->samples[i].slot);
        if (c->samples[i].state == DR_SHMPOOL_OK &&
            strcmp(dr_shmpool_block_data(shmpool, c->samples[i].block), text) != 0)
            _exit(3);
    }
    if (dr_shmpool_block_new(shmpool, worker, HEAD, &head, &err) != DR_OK)
        _exit(4);
    if (dr_shmpool_finish(shmpool, worker, c->batch, head, HEAD, false, &err) != DR_OK)
        _exit(5);
}

static void make_sample(dr_shmpool *shmpool, int worker, const dr_shmpool_claim *c, uint32_t i)
{
    dr_error err;
    dr_shmpool_block slab, block;
    uint32_t place;
    char text[16];
    dr_shmpool_begin(shmpool, worker, i);
    text_of(text, c->tag, c->first + i);
    if (dr_shmpool_block_new(shmpool, worker, SAMPLE, &block, &err) != DR_OK)
        _exit(6);
    strcpy(dr_shmpool_block_data(shmpool, block), text);
    if (dr_shmpool_place(shmpool, worker, i, SLAB, &place, &slab, &err) != DR_OK)
        _exit(7);
    if (slab)
        strcpy((char *)dr_shmpool_block_data(shmpool, slab) + (size_t)place * 16, text);
    bool ready;
    dr_shmpool_claim next_claim;
    if (dr_shmpool_done(shmpool, worker, i, 1, block, false, &ready, &next_claim, &err) != DR_OK)
        _exit(8);
    if (ready)
        finish(shmpool, worker, &next_claim);
}

static void work(dr_shmpool *shmpool, int worker)
{
    dr_error err;
    dr_shmpool_claim c;
    if (dr_shmpool_attach(shmpool, worker, getpid(), &err) != DR_OK)
        _exit(2);
    while (dr_shmpool_claim_next(shmpool, worker, -1, &c, &err) == DR_OK && c.kind != DR_SHMPOOL_LEAVE)
        if (c.kind == DR_SHMPOOL_FINISH)
            finish(shmpool, worker, &c);
        else
            for (uint32_t i = 0; i < c.n; i++)
                make_sample(shmpool, worker, &c, i);
    _exit(0);
}

static pid_t start(dr_shmpool *shmpool, int worker, long die_at)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(60);
        dr__step_die_at(die_at);
        work(shmpool, worker);
    }
    return pid;
}

/* --- what the main process checks --- */

static void check_result(dr_shmpool *shmpool, const dr_shmpool_result *r, uint8_t *seen)
{
    const char *slab = dr_shmpool_block_data(shmpool, r->slab);
    assert_false(r->failed);
    for (uint32_t i = 0; i < r->n_samples; i++) {
        const dr_shmpool_sample *s = &r->samples[i];
        char text[16];
        text_of(text, s->tag, s->slot);
        assert_int_equal(s->state, DR_SHMPOOL_OK);
        assert_string_equal(slab + i * 16, text);
        assert_int_equal(seen[s->tag * N_SLOTS + s->slot]++, 0);
    }
}

static dr_shmpool *open_patient(int workers, bool in_order)
{
    dr_error err;
    dr_shmpool *shmpool;
    dr_shmpool_options o;
    dr_shmpool_defaults(&o);
    o.max_workers = workers;
    o.max_batches = 8;
    o.address_space = 4 << 20;
    o.in_order = in_order;
    o.max_attempts = 200;
    assert_ok(dr_shmpool_open(&o, &shmpool, &err));
    return shmpool;
}

static void leave(dr_shmpool *shmpool, const pid_t *pids, int n)
{
    dr_shmpool_close(shmpool);
    for (int i = 0; i < n; i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
}

/* --- at every step --- */

/* Two batches; a worker dies at its n-th step, the next one goes on.  False: it had fewer steps. */
static bool dies_at(long n, bool in_order, double ceiling)
{
    dr_error err;
    dr_shmpool *shmpool = open_patient(1, in_order);
    assert_ok(dr_shmpool_set_ceiling(shmpool, ceiling, &err));
    uint8_t seen[2 * N_SLOTS] = { 0 };
    post(shmpool, 0, N_SLOTS);
    post(shmpool, 1, N_SLOTS);
    pid_t pid = start(shmpool, 0, n);
    int status = 0;
    bool died = false;
    for (int taken = 0; taken < 2;) {
        dr_shmpool_result r;
        dr_status got = dr_shmpool_next(shmpool, 1, &r, &err);
        if (got == DR_OK) {
            check_result(shmpool, &r, seen);
            release(shmpool, &r);
            taken++;
        }
        if (!died && waitpid(pid, &status, WNOHANG) == pid) {
            assert_true(WIFSIGNALED(status));
            died = true;
            dr_shmpool_reap(shmpool, 0, NULL, 0);
            pid = start(shmpool, 0, 0);
        }
    }
    dr_shmpool_close(shmpool);
    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status)) { /* at its way out */
        dr_shmpool_reap(shmpool, 0, NULL, 0);
        died = true;
    }
    assert_true(shmpool->workers[0].reserved_ns == 0);
    end_shmpool(shmpool);
    return died;
}

static void a_death_at_any_step_loses_nothing(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        long n = 1;
        while (dies_at(n, kind & 1, kind & 2 ? 100 : 0))
            n++;
        assert_true(n > 50);
    }
}

/* Two workers die, each at a step of its own: one of them may be at repairing what the other left. */
static void both_die(long first, long second, bool in_order)
{
    enum { WORKERS = 2, BATCHES = 3 };
    dr_error err;
    dr_shmpool *shmpool = open_patient(WORKERS, in_order);
    uint8_t seen[BATCHES * N_SLOTS] = { 0 };
    for (uint64_t tag = 0; tag < BATCHES; tag++)
        post(shmpool, tag, N_SLOTS);
    pid_t pids[WORKERS] = { start(shmpool, 0, first), start(shmpool, 1, second) };
    for (int taken = 0; taken < BATCHES;) {
        dr_shmpool_result r;
        if (dr_shmpool_next(shmpool, 1, &r, &err) == DR_OK) {
            check_result(shmpool, &r, seen);
            release(shmpool, &r);
            taken++;
        }
        for (int i = 0; i < WORKERS; i++)
            if (waitpid(pids[i], NULL, WNOHANG) == pids[i]) {
                dr_shmpool_reap(shmpool, i, NULL, 0);
                pids[i] = start(shmpool, i, 0);
            }
    }
    dr_shmpool_close(shmpool);
    for (int i = 0; i < WORKERS; i++) {
        waitpid(pids[i], NULL, 0);
        dr_shmpool_reap(shmpool, i, NULL, 0);
    }
    end_shmpool(shmpool);
}

static void two_deaths_lose_nothing(void **state)
{
    (void)state;
    for (long n = 1; n < 150; n += 4)
        both_die(n, n * 61 % 149 + 1, n % 8 < 4);
}

/* --- at random --- */

static void kill_one(dr_shmpool *shmpool, pid_t *pids, int worker)
{
    int status;
    kill(pids[worker], SIGKILL);
    assert_int_equal(waitpid(pids[worker], &status, 0), pids[worker]);
    dr_shmpool_reap(shmpool, worker, NULL, 0);
    pids[worker] = start(shmpool, worker, 0);
}

static void killed_at_random(bool in_order)
{
    enum { WORKERS = 3, BATCHES = 2000 };
    dr_error err;
    dr_shmpool *shmpool = open_patient(WORKERS, in_order);
    static uint8_t seen[BATCHES * N_SLOTS];
    memset(seen, 0, sizeof seen);
    pid_t pids[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        pids[i] = start(shmpool, i, 0);
    uint64_t posted = 0, taken = 0, next_kill = 0, kills = 0;
    while (taken < BATCHES) {
        dr_shmpool_result r;
        dr_shmpool_post_options o = a_post(posted, N_SLOTS);
        while (posted < BATCHES && dr_shmpool_post(shmpool, &o, &err) == DR_OK)
            o.tag = ++posted;
        if (dr_shmpool_next(shmpool, 100, &r, &err) == DR_OK) {
            check_result(shmpool, &r, seen);
            assert_true(!in_order || r.tag == taken);
            release(shmpool, &r);
            taken++;
        }
        if (dr__now_ns() >= next_kill) {
            kill_one(shmpool, pids, (int)(kills++ * 7919 % WORKERS));
            next_kill = dr__now_ns() + 1000000 + kills * 104729 % 3000000;
        }
    }
    assert_true(kills > 5);
    leave(shmpool, pids, WORKERS);
    end_shmpool(shmpool);
}

static void random_deaths_lose_nothing(void **state)
{
    (void)state;
    killed_at_random(true);
    killed_at_random(false);
}

/* --- what cannot be made --- */

static void the_slot_that_kills_is_failed(void **state)
{
    (void)state;
    dr_error err;
    dr_shmpool *shmpool = open_shmpool(1, 4, true);
    dr_shmpool_redo redone[4];
    dr_shmpool_post_options o = a_post(8, 3);
    const float costs[] = { 1, 1, 1 };
    o.cost_ns = costs;
    o.min_claim_ns = 100;
    assert_ok(dr_shmpool_post(shmpool, &o, &err));
    for (int i = 0; i < 3; i++) {
        assert_ok(dr_shmpool_attach(shmpool, 0, 100 + i, &err));
        assert_int_equal(claim(shmpool, 0).n, 3);
        dr_shmpool_begin(shmpool, 0, 1);
        assert_int_equal(dr_shmpool_reap(shmpool, 0, redone, 4), i < 2 ? 3 : 2);
        assert_int_equal(redone[0].tag, 8);
        assert_int_equal(redone[0].slot, i < 2 ? 1 : 0);
    }
    assert_int_equal(claim(shmpool, 0).n, 1);
    done(shmpool, 0, 0, 1);
    assert_int_equal(claim(shmpool, 0).first, 2);
    done(shmpool, 0, 0, 1);
    dr_shmpool_result r = next(shmpool);
    assert_int_equal(r.samples[0].state, DR_SHMPOOL_OK);
    assert_int_equal(r.samples[0].attempts, 1);
    assert_int_equal(r.samples[1].state, DR_SHMPOOL_DIED);
    assert_int_equal(r.samples[1].attempts, 3);
    release(shmpool, &r);
    end_shmpool(shmpool);
}

static void a_stuck_slot_is_given_up(void **state)
{
    (void)state;
    dr_error err;
    dr_shmpool_worker_state at;
    for (int in_order = 0; in_order < 2; in_order++) {
        dr_shmpool *shmpool = open_shmpool(1, 4, in_order);
        assert_ok(dr_shmpool_attach(shmpool, 0, 100, &err));
        post(shmpool, 8, 2);
        claim(shmpool, 0);
        dr_shmpool_begin(shmpool, 0, 0);
        assert_ok(dr_shmpool_worker_at(shmpool, 0, &at, &err));
        assert_int_equal(at.pid, 100);
        assert_int_equal(at.kind, DR_SHMPOOL_WORK);
        assert_int_equal(at.tag, 8);
        assert_int_equal(at.slot, 0);
        dr_shmpool_give_up(shmpool, 0);
        assert_int_equal(dr_shmpool_reap(shmpool, 0, NULL, 0), 0);
        claim(shmpool, 0);
        assert_true(done(shmpool, 0, 0, 1));
        dr_shmpool_result r = next(shmpool);
        assert_int_equal(r.samples[0].state, DR_SHMPOOL_STUCK);
        assert_int_equal(r.samples[1].state, DR_SHMPOOL_OK);
        release(shmpool, &r);
        end_shmpool(shmpool);
    }
}

static void a_batch_made_at_once_fails_at_once(void **state)
{
    (void)state;
    dr_error err;
    dr_shmpool *shmpool = open_shmpool(2, 4, false);
    dr_shmpool_post_options o = a_post(8, 3);
    o.min_claim_ns = UINT32_MAX;
    assert_ok(dr_shmpool_post(shmpool, &o, &err));
    assert_true(claim(shmpool, 0).whole);
    dr_shmpool_give_up(shmpool, 0);
    dr_shmpool_reap(shmpool, 0, NULL, 0);
    dr_shmpool_claim c = claim(shmpool, 1);
    assert_int_equal(c.kind, DR_SHMPOOL_FINISH);
    assert_ok(dr_shmpool_finish(shmpool, 1, c.batch, 0, 0, false, &err));
    dr_shmpool_result r = next(shmpool);
    for (int i = 0; i < 3; i++)
        assert_int_equal(r.samples[i].state, DR_SHMPOOL_STUCK);
    release(shmpool, &r);
    end_shmpool(shmpool);
}

static void a_batch_that_kills_its_finishers_is_failed(void **state)
{
    (void)state;
    dr_error err;
    dr_shmpool *shmpool = open_shmpool(1, 4, true);
    dr_shmpool_claim c;
    bool ready;
    post(shmpool, 8, 1);
    claim(shmpool, 0);
    assert_ok(dr_shmpool_done(shmpool, 0, 0, 1, 0, false, &ready, &c, &err));
    for (int i = 0; i < 2; i++) {
        dr_shmpool_reap(shmpool, 0, NULL, 0);
        assert_int_equal(claim(shmpool, 0).kind, DR_SHMPOOL_FINISH);
    }
    dr_shmpool_reap(shmpool, 0, NULL, 0);
    dr_shmpool_result r = next(shmpool);
    assert_true(r.failed);
    assert_int_equal(r.head, 0);
    release(shmpool, &r);
    end_shmpool(shmpool);
}

static void what_a_dead_worker_had_placed_can_be_given_up(void **state)
{
    (void)state;
    dr_error err;
    uint32_t slot;
    dr_shmpool_block slab;
    for (int in_order = 0; in_order < 2; in_order++)
        for (int dropped_first = 0; dropped_first < 2; dropped_first++) {
            dr_shmpool *shmpool = open_shmpool(1, 4, in_order);
            post(shmpool, 7, 2);
            post(shmpool, 8, 2);
            claim(shmpool, 0);
            assert_ok(dr_shmpool_place(shmpool, 0, 0, 4096, &slot, &slab, &err));
            if (dropped_first)
                assert_int_equal(dr_shmpool_clear(shmpool, 0, &err), DR_AGAIN);
            assert_int_equal(dr_shmpool_reap(shmpool, 0, NULL, 0), !dropped_first);
            assert_ok(dr_shmpool_clear(shmpool, 0, &err));
            end_shmpool(shmpool);
        }
}

/* A worker that ends a batch, because its last sample came after it was taken, may die before it is freed. */
static void what_was_ended_is_freed_by_the_next(void **state)
{
    (void)state;
    dr_shmpool *shmpool = open_shmpool(1, 4, false);
    post(shmpool, 7, 2);
    assert_true(counter(shmpool, "bytes") > 0 && shmpool->entries[0].live);
    shmpool->entries[0].live = 0;
    dr__shmpool_lock(shmpool);
    dr__repair(shmpool);
    dr__repair(shmpool); /* it is not freed twice */
    dr__shmpool_unlock(shmpool);
    end_shmpool(shmpool);
}

static void blocks_that_were_not_handed_over_are_freed(void **state)
{
    (void)state;
    dr_error err;
    dr_shmpool *shmpool = open_shmpool(1, 4, true);
    dr_shmpool_block block;
    pid_t pid = fork();
    if (pid == 0) {
        dr_shmpool_attach(shmpool, 0, getpid(), &err);
        dr_shmpool_block_new(shmpool, 0, 100000, &block, &err);
        dr_shmpool_block_new(shmpool, -1, 100000, &block, &err);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    assert_true(counter(shmpool, "bytes") >= 200000);
    dr_shmpool_reap(shmpool, 0, NULL, 0);
    end_shmpool(shmpool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_death_at_any_step_loses_nothing),
        cmocka_unit_test(two_deaths_lose_nothing),
        cmocka_unit_test(random_deaths_lose_nothing),
        cmocka_unit_test(the_slot_that_kills_is_failed),
        cmocka_unit_test(a_stuck_slot_is_given_up),
        cmocka_unit_test(a_batch_made_at_once_fails_at_once),
        cmocka_unit_test(a_batch_that_kills_its_finishers_is_failed),
        cmocka_unit_test(what_a_dead_worker_had_placed_can_be_given_up),
        cmocka_unit_test(what_was_ended_is_freed_by_the_next),
        cmocka_unit_test(blocks_that_were_not_handed_over_are_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
