/* Blocks between processes: who may release them, and until when they are there. */
#include "unit/shmpool/shmpool_helper.h"

#include <sys/resource.h>

static void wait_ok(pid_t pid)
{
    int status;
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
}

static dr_shmpool_block new_block(dr_shmpool *shmpool, int worker, size_t bytes)
{
    dr_error err;
    dr_shmpool_block block;
    assert_ok(dr_shmpool_block_new(shmpool, worker, bytes, &block, &err));
    return block;
}

static void a_child_does_not_release_its_parents_blocks(void **state)
{
    (void)state;
    dr_shmpool *shmpool = open_shmpool(1, 4, true);
    dr_shmpool_block block = new_block(shmpool, -1, 1000);
    pid_t pid = fork();
    if (pid == 0) {
        dr_shmpool_block_release(shmpool, block);
        dr_shmpool_unref(&shmpool);
        _exit(0);
    }
    wait_ok(pid);
    assert_int_equal(dr_shmpool_block_bytes(shmpool, block), 1000);
    dr_shmpool_block_release(shmpool, block);
    end_shmpool(shmpool);
}

static void a_childs_own_blocks_are_its_own(void **state)
{
    (void)state;
    dr_shmpool *shmpool = open_shmpool(1, 4, true);
    pid_t pid = fork();
    if (pid == 0) {
        dr_shmpool_block block = new_block(shmpool, 0, 1000);
        dr_shmpool_block_release(shmpool, block);
        _exit(dr_shmpool_block_data(shmpool, block) != NULL);
    }
    wait_ok(pid);
    end_shmpool(shmpool);
}

static void memory_stays_until_the_last_holder_lets_go(void **state)
{
    (void)state;
    dr_shmpool *shmpool = open_shmpool(1, 4, true), *holder = dr_shmpool_ref(shmpool);
    dr_shmpool_block block = new_block(shmpool, -1, 1000);
    char *data = dr_shmpool_block_data(shmpool, block);
    dr_shmpool_unref(&shmpool);
    assert_null(shmpool);
    data[999] = 1;
    dr_shmpool_block_release(holder, block);
    end_shmpool(holder);
}

static void another_process_joins_by_the_descriptor(void **state)
{
    (void)state;
    dr_error err;
    dr_shmpool *shmpool = open_shmpool(1, 4, true), *joined;
    dr_shmpool_block block = new_block(shmpool, -1, 6);
    memcpy(dr_shmpool_block_data(shmpool, block), "hello", 6);
    assert_ok(dr_shmpool_join(dr_shmpool_fd(shmpool), &joined, &err));
    assert_ptr_not_equal(dr_shmpool_block_data(joined, block), dr_shmpool_block_data(shmpool, block));
    assert_string_equal(dr_shmpool_block_data(joined, block), "hello");
    dr_shmpool_unref(&joined);
    dr_shmpool_block_release(shmpool, block);
    end_shmpool(shmpool);
}

static void what_is_no_shmpool_is_not_joined(void **state)
{
    (void)state;
    dr_error err;
    dr_shmpool *shmpool;
    FILE *file = tmpfile();
    for (int i = 0; i < 65536; i++)
        fputc(i, file);
    fflush(file);
    assert_fails(dr_shmpool_join(fileno(file), &shmpool, &err), DR_ERR_FORMAT, "not the memory of a shmpool");
    fclose(file);
    assert_fails(dr_shmpool_join(-1, &shmpool, &err), DR_ERR_ARG, "descriptor -1");
}

static void options_are_checked(void **state)
{
    (void)state;
    dr_error err;
    dr_shmpool *shmpool;
    dr_shmpool_options o;
    dr_shmpool_defaults(&o);
    o.max_workers = 257;
    assert_fails(dr_shmpool_open(&o, &shmpool, &err), DR_ERR_ARG, "257");
    dr_shmpool_defaults(&o);
    o.max_batches = 0;
    assert_fails(dr_shmpool_open(&o, &shmpool, &err), DR_ERR_ARG, "max_batches must be 1 to 1024, got 0");
    dr_shmpool_defaults(&o);
    o.size = 3;
    assert_fails(dr_shmpool_open(&o, &shmpool, &err), DR_ERR_ARG, "got 3:");
}

static void a_full_arena_says_so(void **state)
{
    (void)state;
    dr_error err;
    dr_shmpool *shmpool = open_shmpool(1, 4, true);
    dr_shmpool_block block = new_block(shmpool, -1, 10 << 20), other;
    assert_fails(dr_shmpool_block_new(shmpool, -1, 10 << 20, &other, &err), DR_ERR_NOMEM, "10485760 of 16777216 bytes");
    dr_shmpool_block_release(shmpool, block);
    block = new_block(shmpool, -1, 16 << 20);
    dr_shmpool_block_release(shmpool, block);
    end_shmpool(shmpool);
}

enum { MAY_LIMIT = !DR_TEST_ASAN && !DR_TEST_TSAN }; /* sanitizers need much address space themselves */

static void less_address_space_is_enough(void **state)
{
    (void)state;
    if (!MAY_LIMIT)
        skip();
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit limit = { 1 << 30, 1 << 30 };
        setrlimit(RLIMIT_AS, &limit);
        dr_shmpool_options o;
        dr_shmpool *shmpool;
        dr_error err;
        dr_shmpool_block block;
        dr_shmpool_defaults(&o);
        o.address_space = UINT64_C(1) << 34;
        bool opened = dr_shmpool_open(&o, &shmpool, &err) == DR_OK;
        _exit(!opened || dr_shmpool_block_new(shmpool, -1, 1 << 20, &block, &err) != DR_OK);
    }
    wait_ok(pid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_does_not_release_its_parents_blocks),
        cmocka_unit_test(a_childs_own_blocks_are_its_own),
        cmocka_unit_test(memory_stays_until_the_last_holder_lets_go),
        cmocka_unit_test(another_process_joins_by_the_descriptor),
        cmocka_unit_test(what_is_no_shmpool_is_not_joined),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(a_full_arena_says_so),
        cmocka_unit_test(less_address_space_is_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
