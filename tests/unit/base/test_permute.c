/* The keyed permutation: a bijection for every size, and no visible order. */
#include "unit/cm.h"

#include "base/permute.h"

static void is_a_bijection(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 3000; n += 1 + n / 7) {
        uint8_t *seen = calloc(n, 1);
        for (uint64_t i = 0; i < n; i++) {
            uint64_t to = dr__permute(n, 99 + n, i);
            assert_true(to < n);
            assert_int_equal(seen[to]++, 0);
            assert_int_equal(dr__permute_inverse(n, 99 + n, to), i);
        }
        free(seen);
    }
}

static void keys_give_unrelated_orders(void **state)
{
    (void)state;
    enum { N = 10000 };
    int same = 0;
    for (uint64_t i = 0; i < N; i++)
        same += dr__permute(N, dr__permute_key(1, 0, 0), i) == dr__permute(N, dr__permute_key(1, 1, 0), i);
    assert_true(same < 10); /* one is expected; ten has a chance of 1e-7 */
}

/* Every place is as likely for a sample as any other: chi-square over keys. */
static void places_are_uniform(void **state)
{
    (void)state;
    enum { N = 20, KEYS = 20000 };
    int count[N] = { 0 };
    for (uint64_t k = 0; k < KEYS; k++)
        count[dr__permute(N, dr__permute_key(7, k, 0), 3)]++;
    double chi = 0, want = (double)KEYS / N;
    for (int i = 0; i < N; i++)
        chi += (count[i] - want) * (count[i] - want) / want;
    assert_true(chi < 50.8); /* 19 degrees of freedom: exceeded once in 10,000 */
}

static void huge_sets_work(void **state)
{
    (void)state;
    uint64_t n = (uint64_t)1 << 40;
    for (uint64_t i = 0; i < 100; i++)
        assert_int_equal(dr__permute_inverse(n + 17, 5, dr__permute(n + 17, 5, i * 1234567)), i * 1234567);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_a_bijection),
        cmocka_unit_test(keys_give_unrelated_orders),
        cmocka_unit_test(places_are_uniform),
        cmocka_unit_test(huge_sets_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
