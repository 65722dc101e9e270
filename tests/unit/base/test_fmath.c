/* Elementary functions against libm: close to it, and with bits that never change. */
#include "unit/cm.h"

#include <math.h>

#include "base/fmath.h"
#include "base/rng.h"

static double ulps(double got, double want)
{
    return fabs(got - want) / (nextafter(fabs(want), INFINITY) - fabs(want));
}

static void close_to_libm(void **state)
{
    (void)state;
    dr__rng_name name = { .seed = 1 };
    dr_rng rng = dr__rng_open(&name, 1);
    for (int i = 0; i < 200000; i++) {
        double x = dr__rng_uniform(&rng, -40, 40), y = dr__rng_uniform(&rng, 1e-9, 1e6);
        assert_true(ulps(dr__exp(x), exp(x)) <= 2);
        assert_true(ulps(dr__log(y), log(y)) <= 2);
        assert_true(fabs(dr__sin(x) - sin(x)) <= 2.3e-16);
        assert_true(fabs(dr__cos(x) - cos(x)) <= 2.3e-16);
    }
}

static void ends_of_the_range(void **state)
{
    (void)state;
    assert_true(dr__exp(-1000) == 0);
    assert_true(isinf(dr__exp(1000)));
    assert_true(isnan(dr__exp(NAN)));
    assert_true(dr__log(1) == 0);
    assert_true(dr__exp(0) == 1);
    assert_true(dr__pow(0, 2) == 0);
    assert_true(dr__pow(5, 0) == 1);
    assert_true(dr__sin(0) == 0);
    assert_true(dr__cos(0) == 1);
}

static void halves_round_to_even(void **state)
{
    (void)state;
    static const double cases[][2] = { { 0.5, 0 },   { 1.5, 2 },    { 2.5, 2 },       { -0.5, 0 },
                                       { -2.5, -2 }, { 2.4999, 2 }, { 1e300, 1e300 }, { 7, 7 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_true(dr__round_even(cases[i][0]) == cases[i][1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(close_to_libm),
        cmocka_unit_test(ends_of_the_range),
        cmocka_unit_test(halves_round_to_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
