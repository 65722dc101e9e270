/* The table of keys against a plain list. */
#include "unit/store/scratch.h"

#include "store/key_table.h"

static dr_store_key key(uint64_t i)
{
    return (dr_store_key){ i % 50, i }; /* long rows of equal places */
}

static void it_keeps_what_it_is_told(void **state)
{
    (void)state;
    enum { MOST = 3000 };
    static uint64_t want[MOST]; /* 0: not there */
    dr__key_table t = { 0 };
    uint64_t x = 1, n = 0;
    for (int i = 0; i < 40000; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        uint64_t k = (x >> 33) % MOST;
        dr_store_key at = key(k);
        if (x >> 62 == 3) {
            n -= want[k] != 0;
            dr__key_table_drop(&t, &at, (dr__key_location){ (uint32_t)want[k] % 7, want[k] * 64 });
            want[k] = 0;
        } else {
            n += want[k] == 0;
            want[k] = 1 + (x >> 40) % 100000;
            assert_true(dr__key_table_set(&t, &at, (dr__key_location){ (uint32_t)want[k] % 7, want[k] * 64 }));
        }
    }
    assert_int_equal(t.n, n);
    for (uint64_t k = 0; k < MOST; k++) {
        dr__key_location p;
        dr_store_key at = key(k);
        assert_int_equal(dr__key_table_find(&t, &at, &p), want[k] != 0);
        if (want[k]) {
            assert_int_equal(p.file, want[k] % 7);
            assert_int_equal(p.offset, want[k] * 64);
        }
    }
    dr__key_table_free(&t);
}

static void places_have_bounds(void **state)
{
    (void)state;
    dr__key_table t = { 0 };
    dr_store_key k = key(1);
    dr__key_location p, far = { DR__MOST_DATA_FILES - 3, (UINT64_C(1) << 50) - 64 };
    assert_true(dr__key_table_set(&t, &k, far));
    assert_true(dr__key_table_find(&t, &k, &p));
    assert_true(p.file == far.file && p.offset == far.offset);
    assert_false(dr__key_table_set(&t, &k, (dr__key_location){ DR__MOST_DATA_FILES, 64 }));
    assert_false(dr__key_table_set(&t, &k, (dr__key_location){ 1, UINT64_C(1) << 50 }));
    dr__key_table_drop(&t, &k, (dr__key_location){ 1, 64 }); /* lies elsewhere: stays */
    assert_true(dr__key_table_find(&t, &k, &p));
    dr__key_table_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_keeps_what_it_is_told),
        cmocka_unit_test(places_have_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
