/* When samples are used next, against a search through the orders of later epochs. */
#include "unit/loader/toy.h"

#include "exec/next_use.h"

enum { N = 37, EPOCHS = 17 };

static uint64_t search(const dr__exec *e, uint64_t position, uint64_t local_world)
{
    const uint64_t id = dr__order_sample(e->set, e->o.seed, e->order.epoch, e->o.shuffle, position).id;
    for (uint64_t epoch = e->order.epoch + 1; epoch < e->order.epoch + EPOCHS; epoch++)
        for (uint64_t at = 0; at < N; at++)
            if (dr__order_sample(e->set, e->o.seed, epoch, e->o.shuffle, at).id == id &&
                at % e->o.world_size / local_world == e->o.rank / local_world)
                return epoch * N + at + 1;
    return 0;
}

static void it_is_where_the_order_says(void **state)
{
    (void)state;
    static dr__exec e;
    static const struct {
        uint64_t world, local, rank;
    } rows[] = { { 1, 1, 0 }, { 4, 4, 2 }, { 4, 2, 3 }, { 8, 2, 5 }, { 64, 1, 60 } };
    e.set = toy_set(&(toy){ .n = N });
    e.o.seed = 9;
    unsigned found = 0, none = 0;
    for (size_t i = 0; i < DR_COUNT(rows); i++)
        for (int shuffle = 0; shuffle < 2; shuffle++)
            for (uint64_t at = 0; at < N; at++) {
                e.o.shuffle = shuffle;
                e.o.world_size = rows[i].world;
                e.o.rank = rows[i].rank;
                e.order.epoch = i * 3;
                assert_true(dr__next_use_is_known(&e));
                const uint64_t next = dr__next_use(&e, at, rows[i].local);
                assert_int_equal(next, search(&e, at, rows[i].local));
                found += next > 0;
                none += !next;
            }
    assert_true(found > 100 && none > 10);
    e.o.pushed_order = true;
    assert_false(dr__next_use_is_known(&e));
    e.o.pushed_order = false;
    e.order.epoch = UINT64_MAX - 20; /* any number that a caller chooses */
    assert_int_equal(dr__next_use(&e, 0, 1), 0);
    dr_dataset_unref(&e.set);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(it_is_where_the_order_says) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
