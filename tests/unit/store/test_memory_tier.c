/* The tier in memory: what is kept and evicted, by several threads and processes, and what is left when they die.
 *
 * DRAPPS_TEST_SEED=n draws other sequences. */
#include "unit/store/scratch.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/compiler.h"
#include "codec/bytes/byte_codec.h"
#include "store/data_file.h"
#include "store/memory_parts.h"
#include "store/store_parts.h"

static dr_error err;
static _Thread_local uint64_t x;

static uint64_t dice(uint64_t n)
{
    x = x * 6364136223846793005u + 1442695040888963407u;
    return (x >> 33) % n;
}

static int setup(void **state)
{
    const char *text = getenv("DRAPPS_TEST_SEED");
    x = text ? strtoull(text, NULL, 10) : 1;
    const int status = scratch_make(state);
    setenv("DRAPPS_SHM", scratch, 1);
    return status;
}

static dr__memory_tier *open_tier(uint64_t identity, uint64_t limit)
{
    dr__memory_tier *t;
    assert_int_equal(dr__memory_open(&(dr_store_key){ identity, 7 }, limit, &t, &err), DR_OK);
    return t;
}

/* Sample i: `size` bytes that depend on i alone. */
static void make_bytes(uint64_t i, uint8_t *data, size_t size)
{
    for (size_t k = 0; k < size; k++)
        data[k] = (uint8_t)(i * 31 + k * (i % 7 + 1));
}

static size_t size_of(uint64_t i)
{
    return 1 + (i * 7919) % 30000;
}

static dr_store_key key(uint64_t i)
{
    return (dr_store_key){ XXH3_64bits(&i, sizeof i), i };
}

static dr__memory_kept put(dr__memory_tier *t, uint64_t i, size_t size, uint64_t next)
{
    static _Thread_local uint8_t data[300000];
    make_bytes(i, data, size);
    dr_stored s = { .n_fields = 1, .key = key(i) };
    s.fields[0] = (dr_desc){ .dtype = DR_U8, .n_dims = 1, .dims = { (int64_t)size } };
    assert_true(dr__data_layout(&s));
    s.payload_bytes = s.bytes;
    memset(data + size, 0, s.bytes - size);
    return dr__memory_put(t, &s, data, &(dr__use){ .next = next });
}

/* Is it there?  If so, to the bit; *torn counts those whose checksum was wrong, which never count as there. */
static bool has(dr__memory_tier *t, uint64_t i, uint64_t next, unsigned *torn)
{
    static _Thread_local uint8_t data[300000], want[300000];
    dr_stored f;
    dr_store_key k = key(i);
    if (!dr__memory_find(t, &k, &f))
        return false;
    assert_int_equal(f.n_fields, 1);
    if (!dr__memory_read(t, &f, data))
        return false;
    if (XXH3_64bits(data, f.payload_bytes) != f.payload_sum) {
        ++*torn;
        return false;
    }
    make_bytes(i, want, (size_t)f.fields[0].dims[0]);
    assert_memory_equal(data, want, (size_t)f.fields[0].dims[0]);
    if (next)
        dr__memory_touch(t, &f, &(dr__use){ .next = next });
    return true;
}

static void what_is_kept_comes_back(void **state)
{
    (void)state;
    unsigned torn = 0;
    dr__memory_tier *t = open_tier(1, 4 << 20);
    dr__memory_stats stats;
    for (uint64_t i = 0; i < 100; i++) {
        assert_false(has(t, i, 0, &torn));
        assert_int_equal(put(t, i, size_of(i), i + 1), DR__MEMORY_KEPT);
        assert_int_equal(put(t, i, size_of(i), i + 1), DR__MEMORY_THERE);
    }
    for (uint64_t i = 0; i < 100; i++)
        assert_true(has(t, i, 0, &torn));
    dr__memory_get_stats(t, &stats);
    assert_int_equal(stats.records, 100);
    assert_true(stats.shared);
    assert_int_equal(put(t, 1000, 290000, 1), DR__MEMORY_KEPT);
    assert_true(has(t, 1000, 0, &torn));
    assert_int_equal(torn, 0);
    dr__memory_close(&t);
    t = open_tier(1, 1 << 20);
    assert_int_equal(put(t, 1, 290000, 1), DR__MEMORY_TOO_BIG);
    assert_false(has(t, 0, 0, &torn)); /* who left last has deleted it */
    dr__memory_close(&t);
    assert_int_equal(dr__memory_open(&(dr_store_key){ 1, 1 }, 1000, &t, &err), DR_ERR_ARG);
    assert_null(t);
}

/* --- limits --- */

static void the_limit_is_kept(void **state)
{
    (void)state;
    static const uint64_t limits[] = { 1 << 20, 3000001, 20 << 20 };
    for (size_t k = 0; k < DR_COUNT(limits); k++) {
        unsigned torn = 0, n = 0;
        struct stat s;
        dr__memory_stats stats;
        dr__memory_tier *t = open_tier(2, limits[k]);
        for (uint64_t i = 0; i < 3000; i++) {
            put(t, i, size_of(i), 0);
            if (i % 100 == 0) {
                dr__memory_get_stats(t, &stats);
                assert_true(stats.bytes <= limits[k]);
            }
        }
        assert_int_equal(fstat(t->fd, &s), 0);
        assert_true((uint64_t)s.st_blocks * 512 <= limits[k] && (uint64_t)s.st_size <= limits[k]);
        for (uint64_t i = 0; i < 3000; i++)
            n += has(t, i, 0, &torn);
        dr__memory_get_stats(t, &stats);
        assert_int_equal(n, stats.records);
        assert_int_equal(stats.evicted + stats.records, 3000);
        assert_true(stats.bytes > limits[k] - limits[k] / 10 || k == 2);
        assert_true(has(t, 2999, 0, &torn) && (k == 2 || !has(t, 0, 0, &torn))); /* the least recently used went */
        dr__memory_close(&t);
    }
}

/* --- eviction --- */

enum { EPOCHS = 6, SAMPLES = 700 };

static void shuffle(uint32_t *order)
{
    for (uint32_t i = 0; i < SAMPLES; i++)
        order[i] = i;
    for (uint32_t i = SAMPLES - 1; i > 0; i--) {
        const uint32_t k = (uint32_t)dice(i + 1), swap = order[i];
        order[i] = order[k];
        order[k] = swap;
    }
}

/* Epochs in shuffled orders, samples of one block: at each step the tier holds what Belady's rule, carried out by
 * looking at everything, holds. */
static void eviction_is_beladys(void **state)
{
    (void)state;
    static uint32_t order[EPOCHS + 1][SAMPLES], place[EPOCHS + 1][SAMPLES];
    uint64_t kept[SAMPLES] = { 0 }; /* next use; 0: not kept */
    unsigned torn = 0, hits = 0, n = 0;
    dr__memory_tier *t = open_tier(3, 1 << 20);
    const unsigned room = t->head->n_blocks;
    assert_true(room > 200 && room < SAMPLES / 2);
    for (int e = 0; e <= EPOCHS; e++) {
        shuffle(order[e]);
        for (uint32_t i = 0; i < SAMPLES; i++)
            place[e][order[e][i]] = i;
    }
    for (uint64_t at = 0; at < (uint64_t)EPOCHS * SAMPLES; at++) {
        const uint32_t id = order[at / SAMPLES][at % SAMPLES];
        const uint64_t next = (at / SAMPLES + 1) * SAMPLES + place[at / SAMPLES + 1][id] + 1;
        const bool hit = has(t, id, next, &torn);
        assert_int_equal(hit, kept[id] != 0);
        hits += hit;
        uint32_t latest = id;
        for (uint32_t i = 0; i < SAMPLES && !hit && n == room; i++)
            latest = kept[i] > (latest == id ? next : kept[latest]) ? i : latest;
        if (!hit)
            assert_int_equal(put(t, id, 1000, next), n == room && latest == id ? DR__MEMORY_LATER : DR__MEMORY_KEPT);
        if (!hit && n == room)
            kept[latest] = 0;
        if (hit || n < room || latest != id)
            kept[id] = next;
        n += !hit && n < room;
    }
    /* A sample that is found was kept from its use in one epoch to that in the next, so over the end of an epoch, where
     * there is room for so many: no rule finds more. */
    assert_int_equal(hits, (EPOCHS - 1) * room);
    dr__memory_close(&t);
}

/* Where the order is not known, only what was not used for so long gives way. */
static void recent_samples_stay_where_asked(void **state)
{
    (void)state;
    static uint8_t data[1024];
    unsigned torn = 0;
    dr__memory_tier *t = open_tier(4, 1 << 20);
    const unsigned room = t->head->n_blocks;
    for (uint64_t i = 0; i < room; i++)
        assert_int_equal(put(t, i, 1000, 0), DR__MEMORY_KEPT);
    const uint64_t since = dr__memory_tick(t) / 2;
    dr_stored s = { .n_fields = 1, .key = key(room) };
    s.fields[0] = (dr_desc){ .dtype = DR_U8, .n_dims = 1, .dims = { 1024 } };
    assert_true(dr__data_layout(&s));
    make_bytes(room, data, sizeof data);
    s.payload_bytes = s.bytes;
    assert_true(dr__memory_may_keep(t, 1024, &(dr__use){ .since = since }));
    assert_int_equal(dr__memory_put(t, &s, data, &(dr__use){ .since = since }), DR__MEMORY_KEPT);
    assert_false(has(t, 0, 0, &torn));
    s.key = key(room + 1);
    assert_false(dr__memory_may_keep(t, 1024, &(dr__use){ .since = 1 }));
    assert_int_equal(dr__memory_put(t, &s, data, &(dr__use){ .since = 1 }), DR__MEMORY_LATER);
    assert_true(has(t, 1, 0, &torn));
    dr__memory_close(&t);
}

/* --- damage --- */

static void damage_costs_a_sample(void **state)
{
    (void)state;
    unsigned torn = 0, n = 0;
    dr__memory_tier *t = open_tier(5, 1 << 20);
    for (uint64_t i = 0; i < 10; i++)
        assert_int_equal(put(t, i, 5000, i + 1), DR__MEMORY_KEPT);
    const uint64_t used = atomic_load(&t->head->blocks) * t->head->block_bytes;
    for (int i = 0; i < 2000; i++) { /* values are compared by `has` */
        const uint64_t at = t->head->data_at + dice(used);
        uint8_t byte, other;
        assert_int_equal(pread(t->fd, &byte, 1, (off_t)at), 1);
        other = (uint8_t)(byte ^ 1u << dice(8));
        assert_int_equal(pwrite(t->fd, &other, 1, (off_t)at), 1);
        for (uint64_t k = 0; k < 10; k++)
            n += has(t, k, 0, &torn);
        assert_int_equal(pwrite(t->fd, &byte, 1, (off_t)at), 1);
    }
    assert_true(n >= 2000 * 9 && n < 2000 * 10 && torn > 0);
    for (int i = 0; i < 2000; i++) { /* what follows a block: anything */
        _Atomic uint32_t *next = &t->blocks[dice(t->head->n_blocks)];
        const uint32_t was = *next;
        *next = (uint32_t)(dice(2) ? dice(t->head->n_blocks) : dice(UINT32_MAX));
        for (uint64_t k = 0; k < 10; k++)
            has(t, k, 0, &torn);
        *next = was;
    }
    dr__memory_close(&t);
}

/* --- many users --- */

static void work(dr__memory_tier *t, unsigned n, unsigned *torn)
{
    for (unsigned i = 0; i < n; i++) {
        const uint64_t id = dice(400);
        if (!has(t, id, dice(2) ? dice(1000) + 1 : 0, torn))
            put(t, id, size_of(id), dice(2) ? dice(1000) + 1 : 0);
    }
}

struct user {
    pthread_t thread;
    dr__memory_tier *tier;
    uint64_t seed;
    unsigned torn;
};

static void *in_thread(void *arg)
{
    struct user *user = arg;
    x = user->seed;
    work(user->tier, 3000, &user->torn);
    return NULL;
}

static void threads_find_nothing_wrong(void **state)
{
    (void)state;
    struct user users[4] = { 0 };
    dr__memory_tier *t = open_tier(6, 2 << 20);
    for (size_t i = 0; i < DR_COUNT(users); i++) {
        users[i].tier = t;
        users[i].seed = x + i;
        assert_int_equal(pthread_create(&users[i].thread, NULL, in_thread, &users[i]), 0);
    }
    for (size_t i = 0; i < DR_COUNT(users); i++) {
        pthread_join(users[i].thread, NULL);
        assert_int_equal(users[i].torn, 0);
    }
    dr__memory_stats stats;
    dr__memory_get_stats(t, &stats);
    assert_true(stats.records > 20 && stats.evicted > 0 && stats.bytes <= stats.limit);
    dr__memory_close(&t);
}

static pid_t user(uint64_t seed)
{
    const pid_t pid = fork();
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dr__memory_tier *t = NULL;
    unsigned torn = 0;
    x = seed;
    if (dr__memory_open(&(dr_store_key){ 8, 7 }, 2 << 20, &t, &err) != DR_OK || !t->path[0])
        _exit(1);
    for (;;)
        work(t, 100, &torn);
}

static size_t n_files(void)
{
    char command[160];
    snprintf(command, sizeof command, "exit $(find '%s' -name '*.memory' | wc -l)", scratch);
    return (size_t)WEXITSTATUS(system(command));
}

/* One of several users after the other is killed, at any moment; the others go on, and nothing wrong is ever found. */
static void users_may_be_killed(void **state)
{
    (void)state;
    pid_t pids[3];
    unsigned torn = 0;
    dr__memory_tier *t = open_tier(8, 2 << 20);
    for (uint64_t i = 0; i < DR_COUNT(pids); i++)
        pids[i] = user(i + 10);
    for (uint64_t round = 0; round < 40; round++) {
        const size_t which = dice(DR_COUNT(pids));
        work(t, 200, &torn);
        int status;
        assert_int_equal(waitpid(pids[which], &status, WNOHANG), 0); /* no check of its own has failed */
        kill(pids[which], SIGKILL);
        waitpid(pids[which], &status, 0);
        assert_true(WIFSIGNALED(status));
        pids[which] = user(round + 100);
    }
    assert_int_equal(n_files(), 1);
    dr__memory_close(&t);
    assert_int_equal(n_files(), 1); /* the others have it open, unless they were about to */
    for (size_t i = 0; i < DR_COUNT(pids); i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
    t = open_tier(9, 1 << 20); /* another one: what they left is deleted */
    assert_int_equal(n_files(), 1);
    dr__memory_close(&t);
    assert_int_equal(n_files(), 0);
}

/* Whoever dies with the lock leaves an empty tier, not a locked one. */
static void the_owner_of_the_lock_may_be_killed(void **state)
{
    (void)state;
    unsigned torn = 0;
    dr__memory_tier *t = open_tier(11, 1 << 20);
    for (uint64_t i = 0; i < 20; i++)
        assert_int_equal(put(t, i, 5000, i + 1), DR__MEMORY_KEPT);
    const pid_t pid = fork();
    if (!pid) {
        dr__memory_lock(t);
        t->head->n_heap = 12345; /* in the middle of something */
        kill(getpid(), SIGKILL);
    }
    waitpid(pid, NULL, 0);
    assert_int_equal(put(t, 100, 5000, 1), DR__MEMORY_KEPT);
    assert_true(has(t, 100, 0, &torn));
    assert_false(has(t, 1, 0, &torn));
    dr__memory_stats stats;
    dr__memory_get_stats(t, &stats);
    assert_int_equal(stats.records, 1);
    dr__memory_close(&t);
}

/* A held lock costs samples, never time; a record that its writer never finished makes way for a new one. */
static void nobody_waits(void **state)
{
    (void)state;
    unsigned torn = 0;
    dr__memory_tier *t = open_tier(12, 1 << 20), *same = open_tier(12, 1 << 20);
    assert_int_equal(put(t, 1, 5000, 1), DR__MEMORY_KEPT);
    assert_true(dr__memory_lock(t));
    assert_int_equal(put(same, 2, 5000, 1), DR__MEMORY_BUSY);
    assert_true(has(same, 1, 5, &torn)); /* its next use is not noted */
    dr__memory_unlock(t);
    assert_int_equal(t->entries[0].next_use, 1);
    atomic_fetch_sub(&t->entries[0].stamp, DR__MEMORY_READY - DR__MEMORY_WRITING);
    assert_false(has(same, 1, 0, &torn));
    assert_int_equal(put(same, 1, 5000, 1), DR__MEMORY_THERE);
    t->entries[0].since_ns -= DR__MEMORY_STALE_NS + 1000000000;
    assert_int_equal(put(same, 1, 5000, 1), DR__MEMORY_KEPT);
    assert_true(has(t, 1, 0, &torn));
    dr__memory_close(&t);
    dr__memory_close(&same);
}

/* It is deleted in use: its users keep what they have, later ones begin with nothing. */
static void it_may_be_deleted(void **state)
{
    (void)state;
    char command[160];
    unsigned torn = 0;
    dr__memory_tier *t = open_tier(13, 1 << 20);
    assert_int_equal(put(t, 1, 5000, 1), DR__MEMORY_KEPT);
    snprintf(command, sizeof command, "rm -r '%s'/drapps-cache-*", scratch);
    assert_int_equal(system(command), 0);
    assert_true(has(t, 1, 0, &torn));
    assert_int_equal(put(t, 2, 5000, 1), DR__MEMORY_KEPT);
    dr__memory_tier *later = open_tier(13, 1 << 20);
    assert_false(has(later, 1, 0, &torn));
    dr__memory_close(&t);
    assert_int_equal(n_files(), 1);
    dr__memory_close(&later);
    setenv("DRAPPS_SHM", "/proc/none", 1); /* no place: in memory of this process */
    t = open_tier(13, 1 << 20);
    dr__memory_stats stats;
    dr__memory_get_stats(t, &stats);
    assert_false(stats.shared);
    assert_int_equal(put(t, 1, 5000, 1), DR__MEMORY_KEPT);
    assert_true(has(t, 1, 0, &torn));
    dr__memory_close(&t);
    setenv("DRAPPS_SHM", scratch, 1);
}

/* --- in a store --- */

static void a_store_has_both_tiers(void **state)
{
    (void)state;
    for (int disk = 0; disk < 2; disk++)
        for (int i = -1; i < 0 || dr__byte_codecs[i]; i++) {
            dr_store *s, *other;
            dr_store_stats stats;
            char name[32];
            snprintf(name, sizeof name, "both %d %d", disk, i);
            const char *folder = disk ? scratch : NULL;
            assert_int_equal(dr_store_open_tiers(folder, name, 0, 4 << 20, &s, &err), DR_OK);
            assert_int_equal(dr_store_open_tiers(folder, name, 0, 4 << 20, &other, &err), DR_OK);
            assert_true(dr__store_force_codec(s, i < 0 ? DR__CODEC_AUTO : dr__byte_codecs[i]->wire_id));
            for (unsigned k = 0; k < 50; k++)
                assert_true(store_put(s, k));
            for (unsigned k = 0; k < 50; k++)
                assert_true(store_has(s, k) && store_has(other, k));
            dr_store_get_stats(other, &stats);
            assert_int_equal(stats.memory_hits, 50);
            assert_int_equal(stats.hits, 50);
            assert_int_equal(stats.memory_records, 50);
            assert_true(stats.memory_limit_bytes == 4 << 20 && stats.memory_bytes <= 4 << 20);
            dr_store_get_stats(s, &stats);
            assert_int_equal(stats.written, disk ? 50 : 0);
            assert_int_equal(stats.memory_written, 50);
            dr_store_close(&s);
            dr_store_close(&other);
            if (!disk)
                continue;
            assert_int_equal(dr_store_open_tiers(folder, name, 0, 4 << 20, &s, &err), DR_OK);
            for (unsigned k = 0; k < 100; k++) /* first from the disk, then from memory */
                assert_true(store_has(s, k % 50));
            dr_store_get_stats(s, &stats);
            assert_int_equal(stats.memory_hits, 50);
            assert_int_equal(stats.hits, 100);
            dr_store_close(&s);
        }
}

/* With less room than samples, and samples that take long to make, compression is chosen: more of them find room. */
static void compression_makes_room(void **state)
{
    (void)state;
    enum { N = 300 };
    static uint8_t data[20000];
    uint64_t kept[2];
    if (!dr__byte_codec_find(DR__BYTES_LZ4))
        skip();
    for (int adaptive = 0; adaptive < 2; adaptive++) {
        dr_store *s;
        dr_store_stats stats;
        assert_int_equal(dr_store_open_tiers(NULL, "room", 0, 1 << 20, &s, &err), DR_OK);
        assert_true(dr__store_force_codec(s, adaptive ? DR__CODEC_AUTO : DR__BYTES_NONE));
        dr__store_tell(s, &(dr__store_facts){ .cores = 1, .n_samples = N, .make_s = 1e-6 });
        for (unsigned i = 0; i < N; i++) {
            for (size_t k = 0; k < sizeof data; k++)
                data[k] = (uint8_t)(k % 2 || k < sizeof data / 2 ? i : dice(256));
            const dr_view field = { data, 0, { .dtype = DR_U8, .n_dims = 1, .dims = { sizeof data } }, { 0 } };
            const dr_store_key k = key_of(s, i);
            dr__store_put(s, &k, &field, 1, &(dr__use){ .next = i + 1 });
        }
        dr_store_get_stats(s, &stats);
        kept[adaptive] = stats.memory_records;
        assert_true(stats.memory_bytes <= 1 << 20);
        dr_store_close(&s);
    }
    assert_true(kept[0] > 30 && 2 * kept[1] >= 3 * kept[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_kept_comes_back),
        cmocka_unit_test(the_limit_is_kept),
        cmocka_unit_test(eviction_is_beladys),
        cmocka_unit_test(recent_samples_stay_where_asked),
        cmocka_unit_test(damage_costs_a_sample),
        cmocka_unit_test(threads_find_nothing_wrong),
        cmocka_unit_test(users_may_be_killed),
        cmocka_unit_test(the_owner_of_the_lock_may_be_killed),
        cmocka_unit_test(nobody_waits),
        cmocka_unit_test(it_may_be_deleted),
        cmocka_unit_test(a_store_has_both_tiers),
        cmocka_unit_test(compression_makes_room),
    };
    return cmocka_run_group_tests(tests, setup, scratch_remove);
}
