/* Buffers: warm ones come back, the pool may go first, a forked child is safe. */
#include "unit/cm.h"

#include <sys/wait.h>
#include <unistd.h>

#include "data/bufpool.h"

static void freed_buffers_come_back(void **state)
{
    (void)state;
    dr__bufpool *pool = dr__bufpool_new(1);
    dr__buf *a = dr__buf_new(pool, 100000);
    uint8_t *data = a->data;
    dr__buf_free(&a);
    assert_null(a);
    a = dr__buf_new(pool, 90000);
    assert_ptr_equal(a->data, data);
    dr__buf *small = dr__buf_new(pool, 10); /* not the memory of a far larger one */
    dr__buf_free(&a);
    dr__buf *tiny = dr__buf_new(pool, 10);
    assert_ptr_not_equal(tiny->data, data);
    dr__buf_free(&small);
    dr__buf_free(&tiny);
    dr__bufpool_close(&pool);
}

static void buffers_outlive_their_pool(void **state)
{
    (void)state;
    dr__bufpool *pool = dr__bufpool_new(4);
    dr__buf *a = dr__buf_new(pool, 5000);
    dr__bufpool_close(&pool);
    memset(a->data, 1, a->size);
    dr__buf_free(&a);
}

static void a_child_may_free(void **state)
{
    (void)state;
    dr__bufpool *pool = dr__bufpool_new(4);
    dr__buf *a = dr__buf_new(pool, 5000);
    pid_t pid = fork();
    if (pid == 0) {
        dr__buf_free(&a);
        _exit(a ? 1 : 0);
    }
    int status;
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    memset(a->data, 1, a->size);
    dr__buf_free(&a);
    dr__bufpool_close(&pool);
}

static void absurd_sizes_fail(void **state)
{
    (void)state;
    dr__bufpool *pool = dr__bufpool_new(1);
    assert_null(dr__buf_new(pool, SIZE_MAX - 5));
    assert_null(dr__buf_new(pool, SIZE_MAX / 2));
    dr__bufpool_close(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(freed_buffers_come_back),
        cmocka_unit_test(buffers_outlive_their_pool),
        cmocka_unit_test(a_child_may_free),
        cmocka_unit_test(absurd_sizes_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
