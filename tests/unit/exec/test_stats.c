/* Histograms of times: quantiles against sorted values. */
#include "unit/cm.h"

#include "base/spread.h"
#include "exec/stats.h"

static uint64_t get(json_t *o, const char *name)
{
    return (uint64_t)json_integer_value(json_object_get(o, name));
}

static int by_value(const void *a, const void *b)
{
    return (*(const uint64_t *)a > *(const uint64_t *)b) - (*(const uint64_t *)a < *(const uint64_t *)b);
}

/* At least the true quantile, and no more than an eighth above it. */
static void check(uint64_t got, const uint64_t *sorted, size_t n, double q)
{
    uint64_t want = sorted[(size_t)(q * (double)n)];
    if (got < want || got > want + want / 8 + 1)
        fail_msg("quantile %g is %llu, the values say %llu", q, (unsigned long long)got, (unsigned long long)want);
}

static void quantiles(void **state)
{
    (void)state;
    enum { N = 5000 };
    static uint64_t v[N];
    for (int shape = 0; shape < 40; shape++) {
        static dr__histogram h;
        memset(&h, 0, sizeof h);
        uint64_t x = (uint64_t)shape + 1, sum = 0;
        for (int i = 0; i < N; i++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            v[i] = x >> 33 >> (shape % 31); /* from nanoseconds to seconds */
            sum += v[i];
            dr__histogram_add(&h, v[i]);
        }
        qsort(v, N, sizeof v[0], by_value);
        json_t *o = dr__histogram_json(&h);
        assert_int_equal(get(o, "count"), N);
        assert_int_equal(get(o, "mean_ns"), sum / N);
        assert_int_equal(get(o, "max_ns"), v[N - 1]);
        check(get(o, "p50_ns"), v, N, 0.50);
        check(get(o, "p95_ns"), v, N, 0.95);
        check(get(o, "p99_ns"), v, N, 0.99);
        json_decref(o);
    }
}

static void ends_of_the_scale(void **state)
{
    (void)state;
    static dr__histogram h;
    json_t *o = dr__histogram_json(&h);
    assert_int_equal(get(o, "count"), 0);
    assert_int_equal(get(o, "p99_ns"), 0);
    json_decref(o);
    for (uint64_t v = 0; v < 16; v++) { /* small values are told exactly */
        memset(&h, 0, sizeof h);
        dr__histogram_add(&h, v);
        dr__histogram_add(&h, v);
        dr__histogram_add(&h, 1000);
        o = dr__histogram_json(&h);
        assert_int_equal(get(o, "p50_ns"), v);
        json_decref(o);
    }
    dr__histogram_add(&h, (uint64_t)1 << 62);
    o = dr__histogram_json(&h);
    assert_true(get(o, "max_ns") == (uint64_t)1 << 62);
    json_decref(o);
}

/* Coarse bins have what the values say, at their borders too. */
static void spreads(void **state)
{
    (void)state;
    static dr__histogram h;
    dr_spread want = { 0 }, got = { 0 };
    for (int power = 0; power < 40; power++)
        for (int off = -1; off <= 1; off++) {
            const uint64_t ns = ((uint64_t)1 << power) + (uint64_t)(int64_t)off;
            dr__histogram_add(&h, ns);
            int bin = 0;
            while (bin < DR_SPREAD_BINS - 1 && (double)ns * 1e-9 >= dr__spread_end(bin))
                bin++;
            want.n[bin]++;
            want.sum += (double)ns * 1e-9;
        }
    dr__histogram_spread(&h, &got);
    for (int i = 0; i < DR_SPREAD_BINS; i++)
        assert_int_equal(got.n[i], want.n[i]);
    assert_float_equal(got.sum, want.sum, 1e-6 * want.sum);
    assert_int_equal(want.n[1], 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(quantiles), cmocka_unit_test(ends_of_the_scale),
                                        cmocka_unit_test(spreads) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
