/* The allocator against a model: blocks never overlap, what is freed comes together again, counts hold. */
#include "unit/cm.h"

#include <sys/mman.h>

#include "shmpool/arena.h"

enum { N_NODES = 600, SPACE = 1 << 20, MAX_BLOCKS = 400, LARGE_SPACE = 1 << 29, LARGE_BLOCK = 40 << 20 };

static char *base;
static struct dr__arena arena;

static int make_arena(size_t space)
{
    size_t table = N_NODES * sizeof(struct dr__node) / 4096 * 4096 + 4096;
    base = mmap(NULL, table + space, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return -1;
    arena = (struct dr__arena){ .n_nodes = N_NODES, .begin = table, .end = table + space };
    dr__arena_init(base, &arena);
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    return make_arena(SPACE);
}

static int set_up_large(void **state)
{
    (void)state;
    return make_arena(LARGE_SPACE);
}

static int tear_down(void **state)
{
    (void)state;
    return munmap(base, arena.end);
}

static uint64_t make(size_t bytes)
{
    return dr__arena_new(base, &arena, bytes, DR__BY_OWNER, 1);
}

static struct dr__node *node(uint64_t block)
{
    return dr__arena_find(base, &arena, block);
}

/* --- the model: the blocks that are there, filled with a byte each --- */

struct held {
    uint64_t block;
    size_t bytes;
    uint8_t mark;
};

static uint32_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33);
}

static size_t random_size(uint64_t *seed)
{
    static const size_t most[] = { 64, 300, 5000, 60000, 200000 };
    return 1 + next_random(seed) % most[next_random(seed) % 5];
}

static void check_marks(const struct held *held, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint8_t *data = (uint8_t *)base + node(held[i].block)->offset;
        assert_int_equal(node(held[i].block)->bytes, held[i].bytes);
        assert_int_equal((uintptr_t)data % 64, 0);
        for (size_t k = 0; k < held[i].bytes; k += 61)
            assert_int_equal(data[k], held[i].mark);
        assert_int_equal(data[held[i].bytes - 1], held[i].mark);
    }
}

static void check_counts(const struct held *held, size_t n)
{
    uint64_t used = 0;
    for (size_t i = 0; i < n; i++)
        used += (held[i].bytes + 63) / 64 * 64;
    assert_true(arena.used >= used && arena.used <= used + n * 64 * 16); /* whole extents when nodes ran out */
    assert_true(arena.warm <= SPACE - arena.used);
}

static void add(struct held *held, size_t *n, uint64_t *seed)
{
    struct held h = { .bytes = random_size(seed), .mark = (uint8_t)next_random(seed) };
    h.block = *n < MAX_BLOCKS ? make(h.bytes) : 0;
    if (!h.block)
        return;
    memset(base + node(h.block)->offset, h.mark, h.bytes);
    held[(*n)++] = h;
}

static void take(struct held *held, size_t *n, uint64_t *seed)
{
    if (!*n)
        return;
    size_t i = next_random(seed) % *n;
    dr__arena_free(base, &arena, held[i].block);
    assert_null(node(held[i].block));
    held[i] = held[--*n];
}

static void random_blocks_keep_their_bytes(void **state)
{
    (void)state;
    static struct held held[MAX_BLOCKS];
    size_t n = 0;
    uint64_t seed = 20261;
    for (int step = 0; step < 6000; step++) {
        if (next_random(&seed) % 100 < (step / 1000 % 2 ? 40 : 60))
            add(held, &n, &seed);
        else
            take(held, &n, &seed);
        if (step % 500 == 0)
            dr__arena_rebuild(base, &arena);
        if (step % 50 == 0) {
            check_marks(held, n);
            check_counts(held, n);
        }
    }
    while (n)
        take(held, &n, &seed);
    assert_int_equal(arena.used, 0);
    assert_int_not_equal(make(SPACE), 0); /* all came together again */
}

/* --- single properties --- */

static void a_rebuild_changes_nothing(void **state)
{
    (void)state;
    uint64_t blocks[50];
    for (int i = 0; i < 50; i++)
        blocks[i] = make(100u * (unsigned)i + 1);
    for (int i = 0; i < 50; i += 3)
        dr__arena_free(base, &arena, blocks[i]);
    struct dr__arena before = arena;
    dr__arena_rebuild(base, &arena);
    assert_int_equal(arena.used, before.used);
    assert_int_equal(arena.held, before.held);
    assert_int_equal(arena.warm, before.warm);
    assert_memory_equal(arena.bin_bits, before.bin_bits, sizeof arena.bin_bits);
}

static void the_best_fit_is_taken(void **state)
{
    (void)state;
    uint64_t large = make(10000), wall = make(64), small = make(5000), end = make(64);
    uint64_t offset = node(small)->offset;
    dr__arena_free(base, &arena, large);
    dr__arena_free(base, &arena, small);
    assert_int_equal(node(make(4990))->offset, offset);
    assert_non_null(node(wall));
    assert_non_null(node(end));
}

static void a_stale_number_is_nobodys(void **state)
{
    (void)state;
    uint64_t old = make(100);
    dr__arena_free(base, &arena, old);
    uint64_t now = make(100);
    assert_int_equal(node(now)->offset, arena.begin);
    dr__arena_free(base, &arena, old); /* once more: must not free the new one */
    assert_non_null(node(now));
    assert_null(node(0));
    assert_null(node(2)); /* the end of the chain */
    assert_null(node(UINT64_MAX));
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    assert_int_equal(make(SPACE + 1), 0);
    assert_int_equal(make(SIZE_MAX), 0);
    assert_int_not_equal(make(SPACE), 0);
    assert_int_equal(make(1), 0);
}

/* Without a node for what is left over, only a block that fills an extent gets it. */
static void with_a_full_table_small_blocks_do_not_take_all(void **state)
{
    (void)state;
    uint64_t blocks[N_NODES], wall;
    int n = 0;
    uint64_t hole = make(10000);
    while (n < N_NODES && (blocks[n] = make(64)) != 0)
        n++;
    assert_int_equal(n, N_NODES - 4); /* nobody's, the hole's, the last, what is free */
    assert_true(arena.used < SPACE / 2);
    dr__arena_free(base, &arena, hole);
    assert_int_equal(make(3000), 0);
    hole = make(9800);
    assert_int_not_equal(hole, 0);
    dr__arena_free(base, &arena, blocks[n - 1]); /* joins what is free: a node is left again */
    wall = make(3000);
    assert_int_not_equal(wall, 0);
    for (int i = 0; i < n - 1; i++)
        dr__arena_free(base, &arena, blocks[i]);
    dr__arena_free(base, &arena, wall);
    dr__arena_free(base, &arena, hole);
    assert_int_equal(arena.used, 0);
    assert_int_not_equal(make(SPACE), 0);
}

static void blocks_of_a_dead_worker_are_freed(void **state)
{
    (void)state;
    uint64_t mine = make(1000), its = dr__arena_new(base, &arena, 1000, 7, 99);
    uint64_t given = dr__arena_new(base, &arena, 1000, 7, 99);
    dr__arena_give(base, &arena, given, DR__BY_BOARD, 0);
    dr__arena_free_of(base, &arena, 7, 99);
    assert_null(node(its));
    assert_non_null(node(mine));
    assert_non_null(node(given));
}

/* --- pages --- */

static size_t warm_pages(void)
{
    unsigned char in[SPACE / 4096];
    size_t n = 0;
    assert_int_equal(mincore(base + arena.begin, SPACE, in), 0);
    for (size_t i = 0; i < sizeof in; i++)
        n += in[i] & 1;
    return n;
}

static void cool_all(void)
{
    for (uint64_t block; (block = dr__arena_take_warm(base, &arena, 1)) != 0;) {
        dr__arena_cool(base, &arena, block);
        dr__arena_free(base, &arena, block);
    }
}

static void pages_above_the_limit_go_back(void **state)
{
    (void)state;
    arena.keep_free = 100 * 4096;
    uint64_t blocks[8];
    for (int i = 0; i < 8; i++) {
        blocks[i] = make(30 * 4096);
        memset(base + node(blocks[i])->offset, 1, 30 * 4096);
    }
    assert_true(warm_pages() >= 240);
    for (int i = 0; i < 8; i += 2) /* apart from each other */
        dr__arena_free(base, &arena, blocks[i]);
    uint64_t used = arena.used;
    cool_all();
    assert_true(warm_pages() >= 120 + 60 && warm_pages() <= 240 - 30 + 2);
    assert_int_equal(arena.used, used);
    for (int i = 1; i < 8; i += 2)
        dr__arena_free(base, &arena, blocks[i]);
    cool_all();
    assert_true(warm_pages() <= 100);
    assert_int_not_equal(make(SPACE), 0);
}

/* A free extent whose beginning has no pages: its end is not forgotten, nor taken for its beginning. */
static void warm_pages_behind_cold_ones_count(void **state)
{
    (void)state;
    enum { SIZE = 16 * 4096 };
    uint64_t cold = make(SIZE), warm = make(SIZE), wall = make(64);
    uint64_t offset = node(cold)->offset;
    arena.keep_free = 1;
    dr__arena_free(base, &arena, cold);
    cool_all();
    dr__arena_free(base, &arena, warm);
    assert_int_equal(arena.warm, SIZE);
    assert_false(dr__arena_has_warm(base, &arena, SIZE));
    assert_int_equal(node(make(SIZE))->offset, offset);
    assert_int_equal(arena.warm, SIZE);
    assert_true(dr__arena_has_warm(base, &arena, SIZE));
    assert_non_null(node(wall));
}

/* Warm, cold, warm: what is used again and again at the beginning is counted once. */
static void use_over_and_over_warms_nothing_else(void **state)
{
    (void)state;
    enum { PAGE = 4096, FRONT = 10 * PAGE, GAP = 64 * PAGE, BACK = 8 * PAGE };
    uint64_t front = make(FRONT), gap = make(GAP), back = make(BACK), wall = make(64);
    arena.keep_free = 1;
    dr__arena_free(base, &arena, gap);
    cool_all();
    dr__arena_free(base, &arena, back);
    dr__arena_free(base, &arena, front);
    assert_true(dr__arena_has_warm(base, &arena, FRONT));
    assert_false(dr__arena_has_warm(base, &arena, FRONT + BACK));
    for (int i = 0; i < 20; i++) {
        assert_int_equal(arena.warm, FRONT + BACK);
        uint64_t block = make(FRONT);
        assert_int_equal(node(block)->offset, arena.begin);
        assert_int_equal(arena.warm, BACK);
        dr__arena_free(base, &arena, block);
    }
    dr__arena_free(base, &arena, make(2 * FRONT)); /* that has touched some of the gap */
    assert_int_equal(arena.warm, 2 * FRONT + BACK);
    assert_true(dr__arena_has_warm(base, &arena, 2 * FRONT));
    assert_non_null(node(wall));
}

static uint8_t touched[SPACE / 64]; /* since its pages were last given back */

static void touch(uint64_t block, uint8_t value)
{
    const struct dr__node *n = node(block);
    memset(touched + (n->offset - arena.begin) / 64, value, (n->bytes + 63) / 64);
}

static uint64_t touched_and_free(const struct held *held, size_t n)
{
    uint64_t grains = 0;
    for (size_t i = 0; i < sizeof touched; i++)
        grains += touched[i];
    for (size_t i = 0; i < n; i++)
        grains -= (held[i].bytes + 63) / 64;
    return grains * 64;
}

/* Whatever is made, freed and cooled: pages that nobody knows of would stay for ever. */
static void no_warm_page_is_forgotten(void **state)
{
    (void)state;
    static struct held held[MAX_BLOCKS];
    size_t n = 0;
    uint64_t seed = 20262;
    memset(touched, 0, sizeof touched);
    arena.keep_free = 20 * 4096;
    for (int step = 0; step < 6000; step++) {
        const uint32_t what = next_random(&seed) % 100;
        const size_t before = n;
        uint64_t cool = what < 5 ? dr__arena_take_warm(base, &arena, 1) : 0;
        if (cool) {
            touch(cool, 0);
            dr__arena_free(base, &arena, cool);
        } else if (what < (step / 1000 % 2 ? 45 : 60)) {
            add(held, &n, &seed);
        } else {
            take(held, &n, &seed);
        }
        if (n > before)
            touch(held[n - 1].block, 1);
        if (step % 500 == 0)
            dr__arena_rebuild(base, &arena);
        assert_true(arena.warm >= touched_and_free(held, n));
    }
}

static void large_blocks_stay_warm_as_far_as_they_were_needed(void **state)
{
    (void)state;
    uint64_t blocks[3];
    for (int i = 0; i < 3; i++)
        blocks[i] = make(LARGE_BLOCK);
    arena.largest = LARGE_BLOCK;
    dr__arena_free(base, &arena, blocks[2]);
    assert_int_equal(dr__arena_take_warm(base, &arena, 1), 0); /* three were needed */
    dr__arena_next_row(&arena);
    dr__arena_next_row(&arena);
    cool_all(); /* two */
    assert_int_equal(arena.warm, 0);
    dr__arena_free(base, &arena, blocks[1]);
    assert_int_equal(dr__arena_take_warm(base, &arena, 1), 0);
    assert_int_equal(arena.warm, LARGE_BLOCK);
}

static void the_latest_block_is_used_again(void **state)
{
    (void)state;
    uint64_t a = make(4096), wall = make(64), b = make(4096), end = make(64);
    uint64_t offset = node(b)->offset;
    dr__arena_free(base, &arena, a);
    dr__arena_free(base, &arena, b);
    assert_int_equal(node(make(4096))->offset, offset);
    assert_non_null(node(wall));
    assert_non_null(node(end));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(random_blocks_keep_their_bytes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_rebuild_changes_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_best_fit_is_taken, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_stale_number_is_nobodys, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(with_a_full_table_small_blocks_do_not_take_all, set_up, tear_down),
        cmocka_unit_test_setup_teardown(blocks_of_a_dead_worker_are_freed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pages_above_the_limit_go_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(warm_pages_behind_cold_ones_count, set_up, tear_down),
        cmocka_unit_test_setup_teardown(use_over_and_over_warms_nothing_else, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_warm_page_is_forgotten, set_up, tear_down),
        cmocka_unit_test_setup_teardown(large_blocks_stay_warm_as_far_as_they_were_needed, set_up_large, tear_down),
        cmocka_unit_test_setup_teardown(the_latest_block_is_used_again, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
