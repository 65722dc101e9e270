/* Blocks between processes: who may release them, and until when they are there. */
#include "unit/crew/crew_helper.h"

#include <sys/resource.h>

static void wait_ok(pid_t pid)
{
    int status;
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
}

static dr_crew_block new_block(dr_crew *crew, int worker, size_t bytes)
{
    dr_error err;
    dr_crew_block block;
    assert_ok(dr_crew_block_new(crew, worker, bytes, &block, &err));
    return block;
}

static void a_child_does_not_release_its_parents_blocks(void **state)
{
    (void)state;
    dr_crew *crew = open_crew(1, 4, true);
    dr_crew_block block = new_block(crew, -1, 1000);
    pid_t pid = fork();
    if (pid == 0) {
        dr_crew_block_release(crew, block);
        dr_crew_unref(&crew);
        _exit(0);
    }
    wait_ok(pid);
    assert_int_equal(dr_crew_block_bytes(crew, block), 1000);
    dr_crew_block_release(crew, block);
    end_crew(crew);
}

static void a_childs_own_blocks_are_its_own(void **state)
{
    (void)state;
    dr_crew *crew = open_crew(1, 4, true);
    pid_t pid = fork();
    if (pid == 0) {
        dr_crew_block block = new_block(crew, 0, 1000);
        dr_crew_block_release(crew, block);
        _exit(dr_crew_block_data(crew, block) != NULL);
    }
    wait_ok(pid);
    end_crew(crew);
}

static void memory_stays_until_the_last_holder_lets_go(void **state)
{
    (void)state;
    dr_crew *crew = open_crew(1, 4, true), *holder = dr_crew_ref(crew);
    dr_crew_block block = new_block(crew, -1, 1000);
    char *data = dr_crew_block_data(crew, block);
    dr_crew_unref(&crew);
    assert_null(crew);
    data[999] = 1;
    dr_crew_block_release(holder, block);
    end_crew(holder);
}

static void another_process_joins_by_the_descriptor(void **state)
{
    (void)state;
    dr_error err;
    dr_crew *crew = open_crew(1, 4, true), *joined;
    dr_crew_block block = new_block(crew, -1, 6);
    memcpy(dr_crew_block_data(crew, block), "hello", 6);
    assert_ok(dr_crew_join(dr_crew_fd(crew), &joined, &err));
    assert_ptr_not_equal(dr_crew_block_data(joined, block), dr_crew_block_data(crew, block));
    assert_string_equal(dr_crew_block_data(joined, block), "hello");
    dr_crew_unref(&joined);
    dr_crew_block_release(crew, block);
    end_crew(crew);
}

static void what_is_no_crew_is_not_joined(void **state)
{
    (void)state;
    dr_error err;
    dr_crew *crew;
    FILE *file = tmpfile();
    for (int i = 0; i < 65536; i++)
        fputc(i, file);
    fflush(file);
    assert_fails(dr_crew_join(fileno(file), &crew, &err), DR_ERR_FORMAT, "not the memory of a crew");
    fclose(file);
    assert_fails(dr_crew_join(-1, &crew, &err), DR_ERR_ARG, "descriptor -1");
}

static void options_are_checked(void **state)
{
    (void)state;
    dr_error err;
    dr_crew *crew;
    dr_crew_options o;
    dr_crew_defaults(&o);
    o.max_workers = 257;
    assert_fails(dr_crew_open(&o, &crew, &err), DR_ERR_ARG, "257");
    dr_crew_defaults(&o);
    o.max_batches = 0;
    assert_fails(dr_crew_open(&o, &crew, &err), DR_ERR_ARG, "max_batches is 0");
    dr_crew_defaults(&o);
    o.size = 3;
    assert_fails(dr_crew_open(&o, &crew, &err), DR_ERR_ARG, "3 bytes");
}

static void a_full_arena_says_so(void **state)
{
    (void)state;
    dr_error err;
    dr_crew *crew = open_crew(1, 4, true);
    dr_crew_block block = new_block(crew, -1, 10 << 20), other;
    assert_fails(dr_crew_block_new(crew, -1, 10 << 20, &other, &err), DR_ERR_NOMEM, "10485760 of 16777216 bytes");
    dr_crew_block_release(crew, block);
    block = new_block(crew, -1, 16 << 20);
    dr_crew_block_release(crew, block);
    end_crew(crew);
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
        dr_crew_options o;
        dr_crew *crew;
        dr_error err;
        dr_crew_block block;
        dr_crew_defaults(&o);
        o.address_space = UINT64_C(1) << 34;
        bool opened = dr_crew_open(&o, &crew, &err) == DR_OK;
        _exit(!opened || dr_crew_block_new(crew, -1, 1 << 20, &block, &err) != DR_OK);
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
        cmocka_unit_test(what_is_no_crew_is_not_joined),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(a_full_arena_says_so),
        cmocka_unit_test(less_address_space_is_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
