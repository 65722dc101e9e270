/* test_normals.c: the numbers of the ziggurat are normal, and the same everywhere. */
#include "unit/cm.h"

#include <math.h>
#include <stdlib.h>

#include "base/normals.h"

enum { N = 400000 };

static double numbers[N];

static int by_value(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static void draw_numbers(void)
{
    dr__normals tables;
    dr_rng rng = dr__rng_open(&(dr__rng_name){ .seed = 3 }, 1);
    dr__normals_init(&tables);
    for (int i = 0; i < N; i++)
        numbers[i] = dr__normals_next(&tables, &rng);
}

static void layers_have_equal_areas(void **state)
{
    dr__normals t;
    (void)state;
    dr__normals_init(&t);
    for (int i = 1; i < DR__NORMAL_LAYERS; i++) {
        double height = exp(-0.5 * t.x[i + 1] * t.x[i + 1]) - exp(-0.5 * t.x[i] * t.x[i]);
        assert_true(fabs(t.x[i] * height - 9.91256303526217e-3) < 1e-10);
    }
}

/* Each power's mean is within five of its own deviations. */
static void moments_are_right(void **state)
{
    static const double want[] = { 0, 1, 0, 3 }, variance[] = { 1, 2, 15, 96 };
    (void)state;
    draw_numbers();
    for (int k = 0; k < 4; k++) {
        double sum = 0;
        for (int i = 0; i < N; i++)
            sum += pow(numbers[i], k + 1);
        if (fabs(sum / N - want[k]) > 5 * sqrt(variance[k] / N))
            fail_msg("moment %d is %g, wanted %g", k + 1, sum / N, want[k]);
    }
}

/* Kolmogorov and Smirnov: 1.95 / sqrt(n) is passed once in a thousand. */
static void distribution_is_normal(void **state)
{
    double worst = 0;
    (void)state;
    draw_numbers();
    qsort(numbers, N, sizeof numbers[0], by_value);
    for (int i = 0; i < N; i++) {
        double p = 0.5 * erfc(-numbers[i] / sqrt(2));
        worst = fmax(worst, fmax(fabs(p - (double)i / N), fabs(p - (double)(i + 1) / N)));
    }
    assert_true(worst < 1.95 / sqrt(N));
    int tail = 0;
    for (int i = 0; i < N; i++)
        tail += fabs(numbers[i]) > 3.442619855899;
    assert_true(abs(tail - 230) < 5 * 15); /* 0.000576 of them */
}

static void same_bits_everywhere(void **state)
{
    static const double want[] = { 0x1.7d02e6efb91dep-2, 0x1.2e32878bb4531p+0, -0x1.19b8b5c9a4cf1p+0,
                                   -0x1.78b9ad25cbf1cp-2 };
    (void)state;
    draw_numbers();
    for (int i = 0; i < 4; i++)
        assert_memory_equal(&numbers[i], &want[i], sizeof want[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_have_equal_areas),
        cmocka_unit_test(moments_are_right),
        cmocka_unit_test(distribution_is_normal),
        cmocka_unit_test(same_bits_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
