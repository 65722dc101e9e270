/* The arithmetic of ranks and batches, for many sizes, against counting one by one. */
#include "unit/cm.h"

#include "exec/exec.h"

/* Positions that this rank takes, one after the other, by the definition alone. */
static uint64_t count(const dr__exec *e, uint64_t base, uint64_t *first_pad)
{
    uint64_t n = e->set->n_places, per = e->o.world_size * e->o.batch_size, mine = 0;
    *first_pad = UINT64_MAX;
    for (uint64_t start = base; start < n; start += per) {
        if (e->o.last == DR_LAST_DROP && n - start < per)
            break;
        for (uint64_t p = start; p < start + per; p++) {
            if ((p - start) % e->o.world_size != e->o.rank || (p >= n && e->o.last != DR_LAST_PAD))
                continue;
            bool padding;
            assert_int_equal(dr__order_position(e, mine, &padding), p);
            assert_int_equal(padding, p >= n);
            if (p >= n && *first_pad == UINT64_MAX)
                *first_pad = mine;
            mine++;
        }
    }
    return mine;
}

static void counts_are_right(void **state)
{
    (void)state;
    dr_dataset set = { 0 };
    dr__exec *e = calloc(1, sizeof *e);
    e->set = &set;
    uint64_t x = 7;
    for (int i = 0; i < 4000; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        set.n_places = 1 + (x >> 20) % 90;
        e->o.world_size = 1 + (x >> 30) % 7;
        e->o.rank = (x >> 36) % e->o.world_size;
        e->o.batch_size = 1 + (x >> 40) % 12;
        e->o.last = (dr_last)((x >> 50) % 3);
        e->order.base = (x >> 53) % (set.n_places + 1);
        uint64_t n_local, n_batches, first_pad;
        dr__order_count(e, e->order.base, &n_local, &n_batches);
        uint64_t want = count(e, e->order.base, &first_pad);
        assert_int_equal(n_local, want);
        assert_int_equal(n_batches, (want + e->o.batch_size - 1) / e->o.batch_size);
    }
    free(e);
}

static void an_epoch_is_a_permutation(void **state)
{
    (void)state;
    static const dr_dataset_def def = { 0 };
    for (uint64_t n = 1; n < 70; n += 4) {
        dr_dataset set = { .def = &def, .n_places = n, .most_times = 1 };
        uint8_t seen[80] = { 0 };
        for (uint64_t p = 0; p < 2 * n; p++) {
            dr__sample_ref ref = dr__order_sample(&set, 3, 1, true, p);
            assert_true(ref.id < n);
            assert_int_equal(ref.occurrence, p / n); /* a repeat by padding has draws of its own */
            assert_int_equal(seen[ref.id]++, p / n);
            assert_int_equal(dr__order_sample(&set, 3, 1, false, p).id, p % n);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(counts_are_right),
                                        cmocka_unit_test(an_epoch_is_a_permutation) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
