/* The ledger of sample costs: what it predicts, remembers and survives. */
#include "unit/cm.h"

#include <drapps/ledger.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

enum { N = 200 };

static dr_error err;

static double cost_of(uint64_t id)
{
    return id % 10 ? 1e6 : 20e6;
}

static dr_ledger *open_ledger(const char *path)
{
    dr_ledger *l;
    assert_ok(dr_ledger_open(path, N, &l, &err));
    return l;
}

static void note_range(dr_ledger *l, uint64_t first, uint64_t end, double scale)
{
    uint64_t ids[N];
    double ns[N];
    for (uint64_t id = first; id < end; id++) {
        ids[id - first] = id;
        ns[id - first] = scale * cost_of(id);
    }
    dr_ledger_note(l, ids, ns, NULL, end - first);
}

static double predict(dr_ledger *l, uint64_t id)
{
    float ns;
    dr_ledger_predict(l, &id, 1, &ns);
    return ns;
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 0.01 * b;
}

static void remembers(void **state)
{
    (void)state;
    dr_ledger *l = open_ledger(NULL);
    assert_true(predict(l, 3) == 0 && dr_ledger_look(l).n_seen == 0 && dr_ledger_look(l).median_ns == 0);
    note_range(l, 0, N / 2, 1);
    for (uint64_t id = 0; id < N + 5; id++)
        assert_true(id < N / 2 ? near(predict(l, id), cost_of(id)) : predict(l, id) == 0);
    const dr_ledger_facts f = dr_ledger_look(l);
    assert_true(f.n_seen == N / 2 && f.differs && near(f.median_ns, 1e6) && near(f.mean_ns, 2.9e6));
    assert_true(near(f.longest_ns, 20e6));
    const uint64_t ids[] = { N, UINT64_MAX, 1, 2, 3 };
    const double ns[] = { 1e6, 1e6, NAN, -1, INFINITY };
    dr_ledger_note(l, ids, ns, NULL, 5); /* none of these is sound */
    assert_true(dr_ledger_look(l).n_seen == N / 2 && near(predict(l, 1), 1e6));
    assert_true(dr_ledger_save(l)); /* nowhere */
    dr_ledger_close(&l);
    assert_null(l);
    dr_ledger_close(&l);
    assert_fails(dr_ledger_open(NULL, DR_LEDGER_MAX_SAMPLES + 1ull, &l, &err), DR_ERR_LIMIT, "at most 10000000");
}

/* A machine that is four times as fast changes the unit, not the ranking. */
static void follows_the_machine(void **state)
{
    (void)state;
    dr_ledger *l = open_ledger(NULL);
    note_range(l, 0, N, 1);
    for (int i = 0; i < 12; i++)
        note_range(l, 0, N, 0.25);
    for (uint64_t id = 0; id < N; id++)
        assert_true(fabs(predict(l, id) - cost_of(id) / 4) < 0.05 * cost_of(id) / 4);
    dr_ledger_close(&l);
}

static void estimates_from_hints(void **state)
{
    (void)state;
    double hints[N];
    float ns[2];
    dr_ledger *l = open_ledger(NULL);
    for (int i = 0; i < N; i++)
        hints[i] = i % 10 ? 1000 : 3000;
    assert_int_equal(dr_ledger_estimates_by(l), DR_LEDGER_NOTHING);
    dr_ledger_guess(l, hints, N);
    assert_int_equal(dr_ledger_estimates_by(l), DR_LEDGER_GUESS);
    dr_ledger_estimate(l, hints, 2, ns);
    assert_true(near(ns[0], 3 * (double)ns[1]) && near(dr_ledger_look(l).median_ns, (double)ns[1]));
    uint64_t ids[100];
    double costs[100];
    for (uint64_t i = 0; i < 100; i++)
        ids[i] = i, hints[i] = (double)i, costs[i] = 5e5 + 1e5 * (double)i;
    dr_ledger_note(l, ids, costs, hints, 100);
    assert_int_equal(dr_ledger_estimates_by(l), DR_LEDGER_MODEL);
    hints[0] = 900, hints[1] = NAN;
    dr_ledger_estimate(l, hints, 2, ns);
    assert_true(near(ns[0], 9.05e7) && ns[1] == 0);
    dr_ledger_guess(l, hints, 2); /* one of them is not a number */
    dr_ledger_guess(l, NULL, 0);
    dr_ledger_close(&l);
}

/* --- the file --- */

static void file_of(char path[128])
{
    snprintf(path, 128, "/tmp/drapps-ledger-%ld/below/it", (long)getpid());
}

static void remove_file(void)
{
    char path[128];
    file_of(path);
    unlink(path);
    for (int i = 0; i < 2; i++) {
        *strrchr(path, '/') = 0;
        rmdir(path);
    }
}

static void two_processes_merge(void **state)
{
    (void)state;
    char path[128];
    file_of(path);
    dr_ledger *one = open_ledger(path), *other = open_ledger(path);
    note_range(one, 0, N / 2, 1);
    note_range(other, N / 2, N, 2);
    assert_true(dr_ledger_save(one) && dr_ledger_save(other));
    dr_ledger_close(&one);
    dr_ledger_close(&other);
    dr_ledger *again = open_ledger(path);
    for (uint64_t id = 0; id < N; id++)
        assert_true(near(predict(again, id), cost_of(id) * (id < N / 2 ? 1 : 2)));
    dr_ledger_close(&again);
    dr_ledger *larger;
    assert_ok(dr_ledger_open(path, N + 1, &larger, &err)); /* another data set */
    assert_int_equal(dr_ledger_look(larger).n_seen, 0);
    dr_ledger_close(&larger);
    remove_file();
}

static void save_known(const char *path)
{
    dr_ledger *l = open_ledger(path);
    note_range(l, 0, N, 1);
    assert_true(dr_ledger_save(l));
    dr_ledger_close(&l);
}

/* Any byte of the head that differs, any length that differs, counts as no file; cells are judged one by one. */
static void damage(void **state)
{
    (void)state;
    char path[128];
    file_of(path);
    save_known(path);
    for (long at = 0; at < 40; at++) {
        FILE *f = fopen(path, "r+b");
        fseek(f, at, SEEK_SET);
        const int byte = fgetc(f);
        fseek(f, at, SEEK_SET);
        fputc(byte ^ 1, f);
        fclose(f);
        dr_ledger *l = open_ledger(path);
        assert_int_equal(dr_ledger_look(l).n_seen, 0);
        dr_ledger_close(&l);
        save_known(path); /* over it */
    }
    FILE *f = fopen(path, "r+b");
    fseek(f, 40, SEEK_SET);
    for (int i = 0; i < 8; i++)
        fputc(0xff, f); /* two cells */
    fclose(f);
    dr_ledger *l = open_ledger(path);
    assert_int_equal(dr_ledger_look(l).n_seen, N - 2);
    assert_int_equal(truncate(path, 41), 0); /* while it is open */
    note_range(l, 5, 8, 1);
    assert_true(near(predict(l, 7), cost_of(7)) && dr_ledger_save(l));
    dr_ledger_close(&l);
    l = open_ledger(path);
    assert_int_equal(dr_ledger_look(l).n_seen, N - 2);
    dr_ledger_close(&l);
    assert_int_equal(truncate(path, 41), 0);
    l = open_ledger(path);
    assert_int_equal(dr_ledger_look(l).n_seen, 0);
    dr_ledger_close(&l);
    remove_file();
}

static void cannot_be_written(void **state)
{
    (void)state;
    dr_ledger *l = open_ledger("/dev/null/no/file");
    note_range(l, 0, N, 1);
    assert_false(dr_ledger_save(l));
    assert_true(dr_ledger_save(l)); /* not tried again */
    note_range(l, 0, N, 1);
    dr_ledger_close(&l);
}

/* Equal costs are of no use, and not written. */
static void equal_costs(void **state)
{
    (void)state;
    char path[128];
    struct stat st;
    file_of(path);
    dr_ledger *l = open_ledger(path);
    for (uint64_t id = 0; id < N; id++)
        dr_ledger_note(l, &id, (double[]){ 1e6 }, NULL, 1);
    assert_true(dr_ledger_save(l) && stat(path, &st) != 0 && !dr_ledger_look(l).differs);
    dr_ledger_close(&l);
}

/* --- threads --- */

static void *add_all(void *arg)
{
    for (uint64_t i = 0; i < 20 * N; i++)
        dr_ledger_add(arg, i % (N + 1), (uint64_t)cost_of(i % (N + 1)));
    return NULL;
}

static void many_threads_add(void **state)
{
    (void)state;
    dr_ledger *l = open_ledger(NULL);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_all, l), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_true(dr_ledger_look(l).n_seen > N / 2);
    for (uint64_t id = 0; id < N; id++)
        assert_true(predict(l, id) == 0 || near(predict(l, id), cost_of(id)));
    dr_ledger_close(&l);
}

static void no_memory(void **state)
{
    (void)state;
    for (int at = 1; at < 20; at++) {
        dr_ledger *l;
        dr__alloc_fail_at(at, false);
        dr_status status = dr_ledger_open("/dev/null/x", N, &l, &err);
        if (status == DR_OK) {
            note_range(l, 0, N, 1);
            dr_ledger_look(l);
        }
        dr__alloc_fail_at(0, false);
        assert_true(status == DR_OK || status == DR_ERR_NOMEM);
        dr_ledger_close(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(remembers),
        cmocka_unit_test(follows_the_machine),
        cmocka_unit_test(estimates_from_hints),
        cmocka_unit_test(two_processes_merge),
        cmocka_unit_test(damage),
        cmocka_unit_test(cannot_be_written),
        cmocka_unit_test(equal_costs),
        cmocka_unit_test(many_threads_add),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
