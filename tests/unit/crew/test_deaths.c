/* Workers that are killed: at every single step, and at random; every sample is there exactly once. */
#include "unit/crew/crew_helper.h"

#include <signal.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "crew/shared.h"

enum { N_SLOTS = 4, SLAB = N_SLOTS * 16, HEAD = 24, SAMPLE = 40 };

/* --- a worker: each sample is written to the slab, and to a block of its own --- */

static void text_of(char *out, uint64_t tag, uint32_t slot)
{
    snprintf(out, 16, "%llu/%u", (unsigned long long)tag, slot);
}

static void finish(dr_crew *crew, int worker, const dr_crew_claim *c)
{
    dr_error err;
    dr_crew_block head;
    for (uint32_t i = 0; i < c->n_slots; i++) {
        char text[16];
        text_of(text, c->samples[i].tag, c->samples[i].slot);
        if (c->samples[i].state == DR_CREW_OK && strcmp(dr_crew_block_data(crew, c->samples[i].block), text) != 0)
            _exit(3);
    }
    if (dr_crew_block_new(crew, worker, HEAD, &head, &err) != DR_OK)
        _exit(4);
    if (dr_crew_finish(crew, worker, c->batch, head, HEAD, false, &err) != DR_OK)
        _exit(5);
}

static void make_sample(dr_crew *crew, int worker, const dr_crew_claim *c, uint32_t i)
{
    dr_error err;
    dr_crew_block slab, block;
    uint32_t place;
    char text[16];
    dr_crew_begin(crew, worker, i);
    text_of(text, c->tag, c->first + i);
    if (dr_crew_block_new(crew, worker, SAMPLE, &block, &err) != DR_OK)
        _exit(6);
    strcpy(dr_crew_block_data(crew, block), text);
    if (dr_crew_place(crew, worker, i, SLAB, &place, &slab, &err) != DR_OK)
        _exit(7);
    if (slab)
        strcpy((char *)dr_crew_block_data(crew, slab) + (size_t)place * 16, text);
    bool ready;
    dr_crew_claim next_claim;
    if (dr_crew_done(crew, worker, i, 1, block, false, &ready, &next_claim, &err) != DR_OK)
        _exit(8);
    if (ready)
        finish(crew, worker, &next_claim);
}

static void work(dr_crew *crew, int worker)
{
    dr_error err;
    dr_crew_claim c;
    if (dr_crew_enlist(crew, worker, getpid(), &err) != DR_OK)
        _exit(2);
    while (dr_crew_claim_next(crew, worker, -1, &c, &err) == DR_OK && c.kind != DR_CREW_LEAVE)
        if (c.kind == DR_CREW_FINISH)
            finish(crew, worker, &c);
        else
            for (uint32_t i = 0; i < c.n; i++)
                make_sample(crew, worker, &c, i);
    _exit(0);
}

static pid_t start(dr_crew *crew, int worker, long die_at)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(60);
        dr__step_die_at(die_at);
        work(crew, worker);
    }
    return pid;
}

/* --- what the owner checks --- */

static void check_result(dr_crew *crew, const dr_crew_result *r, uint8_t *seen)
{
    const char *slab = dr_crew_block_data(crew, r->slab);
    assert_false(r->failed);
    for (uint32_t i = 0; i < r->n_samples; i++) {
        const dr_crew_sample *s = &r->samples[i];
        char text[16];
        text_of(text, s->tag, s->slot);
        assert_int_equal(s->state, DR_CREW_OK);
        assert_string_equal(slab + i * 16, text);
        assert_int_equal(seen[s->tag * N_SLOTS + s->slot]++, 0);
    }
}

static dr_crew *open_patient(int workers, bool in_order)
{
    dr_error err;
    dr_crew *crew;
    dr_crew_options o;
    dr_crew_defaults(&o);
    o.max_workers = workers;
    o.max_batches = 8;
    o.address_space = 4 << 20;
    o.in_order = in_order;
    o.max_attempts = 200;
    assert_ok(dr_crew_open(&o, &crew, &err));
    return crew;
}

static void leave(dr_crew *crew, const pid_t *pids, int n)
{
    dr_crew_close(crew);
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
    dr_crew *crew = open_patient(1, in_order);
    assert_ok(dr_crew_set_ceiling(crew, ceiling, &err));
    uint8_t seen[2 * N_SLOTS] = { 0 };
    post(crew, 0, N_SLOTS);
    post(crew, 1, N_SLOTS);
    pid_t pid = start(crew, 0, n);
    int status = 0;
    bool died = false;
    for (int taken = 0; taken < 2;) {
        dr_crew_result r;
        dr_status got = dr_crew_next(crew, 1, &r, &err);
        if (got == DR_OK) {
            check_result(crew, &r, seen);
            release(crew, &r);
            taken++;
        }
        if (!died && waitpid(pid, &status, WNOHANG) == pid) {
            assert_true(WIFSIGNALED(status));
            died = true;
            dr_crew_bury(crew, 0, NULL, 0);
            pid = start(crew, 0, 0);
        }
    }
    dr_crew_close(crew);
    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status)) { /* at its way out */
        dr_crew_bury(crew, 0, NULL, 0);
        died = true;
    }
    assert_true(crew->workers[0].reserved_ns == 0);
    end_crew(crew);
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
    dr_crew *crew = open_patient(WORKERS, in_order);
    uint8_t seen[BATCHES * N_SLOTS] = { 0 };
    for (uint64_t tag = 0; tag < BATCHES; tag++)
        post(crew, tag, N_SLOTS);
    pid_t pids[WORKERS] = { start(crew, 0, first), start(crew, 1, second) };
    for (int taken = 0; taken < BATCHES;) {
        dr_crew_result r;
        if (dr_crew_next(crew, 1, &r, &err) == DR_OK) {
            check_result(crew, &r, seen);
            release(crew, &r);
            taken++;
        }
        for (int i = 0; i < WORKERS; i++)
            if (waitpid(pids[i], NULL, WNOHANG) == pids[i]) {
                dr_crew_bury(crew, i, NULL, 0);
                pids[i] = start(crew, i, 0);
            }
    }
    dr_crew_close(crew);
    for (int i = 0; i < WORKERS; i++) {
        waitpid(pids[i], NULL, 0);
        dr_crew_bury(crew, i, NULL, 0);
    }
    end_crew(crew);
}

static void two_deaths_lose_nothing(void **state)
{
    (void)state;
    for (long n = 1; n < 150; n += 4)
        both_die(n, n * 61 % 149 + 1, n % 8 < 4);
}

/* --- at random --- */

static void kill_one(dr_crew *crew, pid_t *pids, int worker)
{
    int status;
    kill(pids[worker], SIGKILL);
    assert_int_equal(waitpid(pids[worker], &status, 0), pids[worker]);
    dr_crew_bury(crew, worker, NULL, 0);
    pids[worker] = start(crew, worker, 0);
}

static void killed_at_random(bool in_order)
{
    enum { WORKERS = 3, BATCHES = 2000 };
    dr_error err;
    dr_crew *crew = open_patient(WORKERS, in_order);
    static uint8_t seen[BATCHES * N_SLOTS];
    memset(seen, 0, sizeof seen);
    pid_t pids[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        pids[i] = start(crew, i, 0);
    uint64_t posted = 0, taken = 0, next_kill = 0, kills = 0;
    while (taken < BATCHES) {
        dr_crew_result r;
        dr_crew_post_options o = a_post(posted, N_SLOTS);
        while (posted < BATCHES && dr_crew_post(crew, &o, &err) == DR_OK)
            o.tag = ++posted;
        if (dr_crew_next(crew, 100, &r, &err) == DR_OK) {
            check_result(crew, &r, seen);
            assert_true(!in_order || r.tag == taken);
            release(crew, &r);
            taken++;
        }
        if (dr__now_ns() >= next_kill) {
            kill_one(crew, pids, (int)(kills++ * 7919 % WORKERS));
            next_kill = dr__now_ns() + 1000000 + kills * 104729 % 3000000;
        }
    }
    assert_true(kills > 5);
    leave(crew, pids, WORKERS);
    end_crew(crew);
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
    dr_crew *crew = open_crew(1, 4, true);
    dr_crew_redo redone[4];
    dr_crew_post_options o = a_post(8, 3);
    const float costs[] = { 1, 1, 1 };
    o.cost_ns = costs;
    o.min_claim_ns = 100;
    assert_ok(dr_crew_post(crew, &o, &err));
    for (int i = 0; i < 3; i++) {
        assert_ok(dr_crew_enlist(crew, 0, 100 + i, &err));
        assert_int_equal(claim(crew, 0).n, 3);
        dr_crew_begin(crew, 0, 1);
        assert_int_equal(dr_crew_bury(crew, 0, redone, 4), i < 2 ? 3 : 2);
        assert_int_equal(redone[0].tag, 8);
        assert_int_equal(redone[0].slot, i < 2 ? 1 : 0);
    }
    assert_int_equal(claim(crew, 0).n, 1);
    done(crew, 0, 0, 1);
    assert_int_equal(claim(crew, 0).first, 2);
    done(crew, 0, 0, 1);
    dr_crew_result r = next(crew);
    assert_int_equal(r.samples[0].state, DR_CREW_OK);
    assert_int_equal(r.samples[0].attempts, 1);
    assert_int_equal(r.samples[1].state, DR_CREW_DIED);
    assert_int_equal(r.samples[1].attempts, 3);
    release(crew, &r);
    end_crew(crew);
}

static void a_stuck_slot_is_given_up(void **state)
{
    (void)state;
    dr_error err;
    dr_crew_at at;
    for (int in_order = 0; in_order < 2; in_order++) {
        dr_crew *crew = open_crew(1, 4, in_order);
        assert_ok(dr_crew_enlist(crew, 0, 100, &err));
        post(crew, 8, 2);
        claim(crew, 0);
        dr_crew_begin(crew, 0, 0);
        assert_ok(dr_crew_worker_at(crew, 0, &at, &err));
        assert_int_equal(at.pid, 100);
        assert_int_equal(at.kind, DR_CREW_WORK);
        assert_int_equal(at.tag, 8);
        assert_int_equal(at.slot, 0);
        dr_crew_give_up(crew, 0);
        assert_int_equal(dr_crew_bury(crew, 0, NULL, 0), 0);
        claim(crew, 0);
        assert_true(done(crew, 0, 0, 1));
        dr_crew_result r = next(crew);
        assert_int_equal(r.samples[0].state, DR_CREW_STUCK);
        assert_int_equal(r.samples[1].state, DR_CREW_OK);
        release(crew, &r);
        end_crew(crew);
    }
}

static void a_batch_made_at_once_fails_at_once(void **state)
{
    (void)state;
    dr_error err;
    dr_crew *crew = open_crew(2, 4, false);
    dr_crew_post_options o = a_post(8, 3);
    o.min_claim_ns = UINT32_MAX;
    assert_ok(dr_crew_post(crew, &o, &err));
    assert_true(claim(crew, 0).whole);
    dr_crew_give_up(crew, 0);
    dr_crew_bury(crew, 0, NULL, 0);
    dr_crew_claim c = claim(crew, 1);
    assert_int_equal(c.kind, DR_CREW_FINISH);
    assert_ok(dr_crew_finish(crew, 1, c.batch, 0, 0, false, &err));
    dr_crew_result r = next(crew);
    for (int i = 0; i < 3; i++)
        assert_int_equal(r.samples[i].state, DR_CREW_STUCK);
    release(crew, &r);
    end_crew(crew);
}

static void a_batch_that_kills_its_finishers_is_failed(void **state)
{
    (void)state;
    dr_error err;
    dr_crew *crew = open_crew(1, 4, true);
    dr_crew_claim c;
    bool ready;
    post(crew, 8, 1);
    claim(crew, 0);
    assert_ok(dr_crew_done(crew, 0, 0, 1, 0, false, &ready, &c, &err));
    for (int i = 0; i < 2; i++) {
        dr_crew_bury(crew, 0, NULL, 0);
        assert_int_equal(claim(crew, 0).kind, DR_CREW_FINISH);
    }
    dr_crew_bury(crew, 0, NULL, 0);
    dr_crew_result r = next(crew);
    assert_true(r.failed);
    assert_int_equal(r.head, 0);
    release(crew, &r);
    end_crew(crew);
}

static void what_a_dead_worker_had_placed_can_be_given_up(void **state)
{
    (void)state;
    dr_error err;
    uint32_t slot;
    dr_crew_block slab;
    for (int in_order = 0; in_order < 2; in_order++)
        for (int dropped_first = 0; dropped_first < 2; dropped_first++) {
            dr_crew *crew = open_crew(1, 4, in_order);
            post(crew, 7, 2);
            post(crew, 8, 2);
            claim(crew, 0);
            assert_ok(dr_crew_place(crew, 0, 0, 4096, &slot, &slab, &err));
            if (dropped_first)
                assert_int_equal(dr_crew_clear(crew, 0, &err), DR_AGAIN);
            assert_int_equal(dr_crew_bury(crew, 0, NULL, 0), !dropped_first);
            assert_ok(dr_crew_clear(crew, 0, &err));
            end_crew(crew);
        }
}

/* A worker that ends a batch, because its last sample came after it was taken, may die before it is freed. */
static void what_was_ended_is_freed_by_the_next(void **state)
{
    (void)state;
    dr_crew *crew = open_crew(1, 4, false);
    post(crew, 7, 2);
    assert_true(counter(crew, "bytes") > 0 && crew->entries[0].live);
    crew->entries[0].live = 0;
    dr__crew_lock(crew);
    dr__repair(crew);
    dr__repair(crew); /* it is not freed twice */
    dr__crew_unlock(crew);
    end_crew(crew);
}

static void blocks_that_were_not_handed_over_are_freed(void **state)
{
    (void)state;
    dr_error err;
    dr_crew *crew = open_crew(1, 4, true);
    dr_crew_block block;
    pid_t pid = fork();
    if (pid == 0) {
        dr_crew_enlist(crew, 0, getpid(), &err);
        dr_crew_block_new(crew, 0, 100000, &block, &err);
        dr_crew_block_new(crew, -1, 100000, &block, &err);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    assert_true(counter(crew, "bytes") >= 200000);
    dr_crew_bury(crew, 0, NULL, 0);
    end_crew(crew);
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
