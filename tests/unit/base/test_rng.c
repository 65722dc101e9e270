/* Randomness: the published Philox vectors, names that keep streams apart, distributions. */
#include "unit/cm.h"

#include <math.h>

#include "base/rng.h"

static void meets_published_vectors(void **state)
{
    (void)state;
    static const uint32_t cases[3][10] = {
        { 0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 },
        { ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd },
        { 0xa4093822, 0x299f31d0, 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xd16cfe09, 0x94fdcceb, 0x5001e420,
          0x24126ea1 },
    };
    for (int i = 0; i < 3; i++) {
        uint32_t out[4];
        dr__philox(cases[i], cases[i] + 2, out);
        assert_memory_equal(out, cases[i] + 6, sizeof out);
    }
}

static uint64_t first(uint64_t seed, uint64_t epoch, uint64_t sample, uint32_t occurrence, uint32_t op)
{
    dr__rng_name name = { seed, epoch, sample, occurrence };
    dr_rng rng = dr__rng_open(&name, op);
    return (uint64_t)dr__rng_u32(&rng) << 32 | dr__rng_u32(&rng);
}

static void every_part_of_the_name_counts(void **state)
{
    (void)state;
    uint64_t base = first(1, 2, 3, 0, 4);
    assert_int_equal(base, first(1, 2, 3, 0, 4));
    assert_int_not_equal(base, first(2, 2, 3, 0, 4));
    assert_int_not_equal(base, first(1, 3, 3, 0, 4));
    assert_int_not_equal(base, first(1, 2, 4, 0, 4));
    assert_int_not_equal(base, first(1, 2, 3, 1, 4));
    assert_int_not_equal(base, first(1, 2, 3, 0, 5));
    assert_int_not_equal(first(1, (uint64_t)1 << 32, 0, 0, 1), first(1, 0, 0, 0, 1));
    dr__rng_name name = { 1, 2, 3, 0 };
    dr_rng rng = dr__rng_open(&name, 4), a = dr__rng_child(&rng, 0), b = dr__rng_child(&rng, 1);
    assert_int_not_equal(dr__rng_u32(&a), dr__rng_u32(&b));
}

/* Mean and variance of n draws lie within five standard errors of what they should be. */
static void check_moments(double (*draw)(dr_rng *), double mean, double variance, double fourth)
{
    enum { N = 100000 };
    dr__rng_name name = { .seed = 12 };
    dr_rng rng = dr__rng_open(&name, 3);
    double sum = 0, squares = 0;
    for (int i = 0; i < N; i++) {
        double v = draw(&rng) - mean;
        sum += v;
        squares += v * v;
    }
    assert_true(fabs(sum / N) < 5 * sqrt(variance / N));
    assert_true(fabs(squares / N - variance) < 5 * sqrt((fourth - variance * variance) / N));
}

static double unit(dr_rng *r)
{
    return dr__rng_unit(r);
}

static double below_ten(dr_rng *r)
{
    return (double)dr__rng_below(r, 10);
}

static double gamma_half(dr_rng *r)
{
    return dr__rng_gamma(r, 0.5);
}

static double beta_2_3(dr_rng *r)
{
    return dr__rng_beta(r, 2, 3);
}

static void distributions_have_their_moments(void **state)
{
    (void)state;
    check_moments(unit, 0.5, 1.0 / 12, 1.0 / 80);
    check_moments(below_ten, 4.5, 8.25, 120.8625);
    check_moments(dr__rng_normal, 0, 1, 3);
    check_moments(gamma_half, 0.5, 0.5, 3 * 0.5 * 0.5 + 6 * 0.5);
    check_moments(beta_2_3, 0.4, 0.04, 0.04 * 0.04 * 2.3571428571428572);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(meets_published_vectors),
        cmocka_unit_test(every_part_of_the_name_counts),
        cmocka_unit_test(distributions_have_their_moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
