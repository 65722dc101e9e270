/* The ceiling of CPU time, by a clock that the test turns. */
#include "unit/cm.h"

#include "base/ceiling.h"
#include "base/compiler.h"

enum { MS = 1000000 };

/* Threads that burn CPU in pieces of `piece_ns` whenever they may, on as many CPUs, for `span_ns`: the CPU time used;
 * *most: in any window of 100 ms. */
static uint64_t burn(dr__ceiling *c, int threads, uint64_t piece_ns, uint64_t span_ns, uint64_t *most)
{
    static uint64_t used_at[20000]; /* each millisecond */
    uint64_t ends[64] = { 0 }, used = 0;
    double taken[64];
    for (uint64_t now = 1; now <= span_ns; now += MS / 10) {
        for (int i = 0; i < threads; i++) {
            if (ends[i] && ends[i] <= now) {
                dr__ceiling_settle(c, taken[i], piece_ns);
                used += piece_ns;
                ends[i] = 0;
            }
            if (!ends[i] && dr__ceiling_opens(c, now) <= now) {
                taken[i] = dr__ceiling_take(c);
                ends[i] = now + piece_ns;
            }
        }
        used_at[now / MS] = used;
    }
    *most = 0;
    for (uint64_t ms = 100; ms < span_ns / MS; ms++)
        *most = DR_MAX(*most, used_at[ms] - used_at[ms - 100]);
    return used;
}

/* What is used is what is allowed, whoever uses it and however large the pieces are; steadily, but for a piece of each
 * thread. */
static void cpu_time_follows_the_ceiling(void **state)
{
    (void)state;
    static const double cpus[] = { 0.1, 0.5, 1.0, 2.5 };
    static const uint64_t pieces[] = { MS / 2, 3 * MS, 40 * MS };
    for (size_t i = 0; i < DR_COUNT(cpus); i++)
        for (size_t k = 0; k < DR_COUNT(pieces); k++)
            for (int threads = 3; threads <= 8; threads += 5) {
                dr__ceiling c = { 0 };
                uint64_t most;
                dr__ceiling_set(&c, cpus[i], 1);
                const double span = 10000.0 * MS, used = (double)burn(&c, threads, pieces[k], 10000ull * MS, &most);
                const double slack = 0.02 * span * cpus[i] + (double)threads * (double)pieces[k];
                if (used > span * cpus[i] + slack || used < span * cpus[i] - slack)
                    fail_msg("%g CPUs: %g used by %d threads in pieces of %g ms", cpus[i], used / span, threads,
                             (double)pieces[k] / MS);
                assert_true((double)most <= 120.0 * MS * cpus[i] + slack);
            }
}

static void nothing_is_saved_up(void **state)
{
    (void)state;
    dr__ceiling c = { 0 };
    dr__ceiling_set(&c, 0.5, 1);
    assert_int_equal(dr__ceiling_opens(&c, 60000ull * MS), 60000ull * MS); /* idle for a minute */
    assert_true(c.left_ns <= 0.5 * 20 * MS);
    dr__ceiling_settle(&c, 0, 50 * MS); /* 40 ms too much: 80 ms at half a CPU */
    assert_int_equal(dr__ceiling_opens(&c, 60000ull * MS), 60080ull * MS);
    dr__ceiling_set(&c, 4, 60000ull * MS); /* what was used too early is still owed */
    assert_int_equal(dr__ceiling_opens(&c, 60000ull * MS), 60010ull * MS);
    dr__ceiling_set(&c, 0, 60000ull * MS);
    dr__ceiling_set(&c, 1, 60005ull * MS); /* but not for a time without a ceiling */
    assert_int_equal(dr__ceiling_opens(&c, 60006ull * MS), 60006ull * MS);
}

/* What broke off gives back what it took; what is of another kind is paid for: neither is expected of those to come. */
static void only_what_was_begun_and_done_is_expected_again(void **state)
{
    (void)state;
    dr__ceiling c = { 0 };
    dr__ceiling_set(&c, 0.5, 1);
    dr__ceiling_settle(&c, dr__ceiling_take(&c), 8 * MS);
    const double mean = c.mean_ns, left = c.left_ns, taken = dr__ceiling_take(&c);
    assert_true(mean > 0 && taken == mean && c.left_ns == left - mean);
    dr__ceiling_book(&c, taken, 0);
    assert_true(c.left_ns == left);
    dr__ceiling_book(&c, 0, 3 * MS);
    assert_true(c.left_ns == left - 3 * MS && c.mean_ns == mean);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpu_time_follows_the_ceiling),
        cmocka_unit_test(nothing_is_saved_up),
        cmocka_unit_test(only_what_was_begun_and_done_is_expected_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
