/* Damage: whatever happens to the bytes of a store, a wrong value never comes out of it. */
#include "unit/store/scratch.h"

#include <unistd.h>

enum { N = 4 };

/* A store of a few samples, as the bytes of its file; `ends`: where each record ends. */
static uint8_t *small_store(char path[512], size_t *size, size_t ends[N])
{
    dr_store *s = store_open("a", 0);
    for (unsigned i = 0; i < N; i++) {
        size_t now;
        assert_true(store_put(s, i));
        data_path(path);
        free(load_file(path, &now));
        ends[i] = now;
    }
    dr_store_close(&s);
    return load_file(path, size);
}

/* store_has fails the test where a value is wrong. */
static unsigned count(void)
{
    unsigned n = 0;
    dr_store *s = store_open("a", 0);
    for (unsigned i = 0; i < N; i++)
        n += store_has(s, i);
    dr_store_close(&s);
    return n;
}

static void a_torn_tail_costs_its_record_alone(void **state)
{
    (void)state;
    char path[512];
    size_t size, ends[N];
    uint8_t *data = small_store(path, &size, ends);
    for (size_t cut = 0; cut <= size; cut++) {
        unsigned whole = 0;
        while (whole < N && ends[whole] <= cut)
            whole++;
        save_file(path, data, cut);
        assert_int_equal(count(), whole);
    }
    free(data);
}

static void a_flipped_bit_costs_records_never_values(void **state)
{
    (void)state;
    char path[512];
    size_t size, ends[N];
    uint8_t *data = small_store(path, &size, ends);
    unsigned unnoticed = 0;
    for (size_t at = 0; at < size; at++) {
        data[at] ^= (uint8_t)(1u << at % 8);
        save_file(path, data, size);
        unnoticed += count() == N; /* in the zeros that fill up */
        data[at] ^= (uint8_t)(1u << at % 8);
    }
    assert_true(unnoticed < size / 2);
    free(data);
}

static void a_damaged_sample_is_made_again(void **state)
{
    (void)state;
    char path[512];
    size_t size, ends[N];
    uint8_t *data = small_store(path, &size, ends);
    data[ends[N - 1] - 64] ^= 1; /* in the payload of the last record */
    save_file(path, data, size);
    dr_store *s = store_open("a", 0);
    dr_store_stats stats;
    assert_false(store_has(s, N - 1));
    assert_true(store_put(s, N - 1));
    assert_true(store_has(s, N - 1));
    dr_store_get_stats(s, &stats);
    assert_int_equal(stats.damaged, 1);
    assert_int_equal(stats.misses, 1);
    dr_store_close(&s);
    free(data);
}

static void a_file_that_shrinks_while_it_is_read_is_survived(void **state)
{
    (void)state;
    char path[512];
    size_t size, ends[N];
    uint8_t *data = small_store(path, &size, ends);
    dr_store *s = store_open("a", 0);
    assert_int_equal(truncate(path, (off_t)ends[0] + 70), 0);
    assert_true(store_has(s, 0));
    for (unsigned i = 1; i < N; i++)
        assert_false(store_has(s, i));
    dr_store_close(&s);
    free(data);
}

#define with_folder(test) cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_folder(a_torn_tail_costs_its_record_alone),
        with_folder(a_flipped_bit_costs_records_never_values),
        with_folder(a_damaged_sample_is_made_again),
        with_folder(a_file_that_shrinks_while_it_is_read_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
