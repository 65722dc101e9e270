/* Data files: heads of records of every shape and type, and heads that lie. */
#include "unit/store/scratch.h"

#include <fcntl.h>
#include <unistd.h>

#include "store/data_file.h"

static const dr_store_key identity = { 1, 2 };

static int folder(void)
{
    int fd = open(scratch, O_RDONLY | O_DIRECTORY);
    assert_true(fd >= 0);
    return fd;
}

static void every_type_and_rank_comes_back(void **state)
{
    (void)state;
    dr__data_file f;
    dr_stored out;
    int fd = folder();
    uint64_t next = DR__DATA_HEAD, offset;
    uint8_t payload[4096] = { 0 };
    assert_true(dr__data_create(fd, "data-one.drst", &identity, &f));
    for (int dtype = 1; dr_dtype_size((dr_dtype)dtype); dtype++)
        for (int rank = 0; rank <= DR_MAX_DIMS; rank++) {
            dr_stored s = { .n_fields = 2, .key = { (uint64_t)dtype, (uint64_t)rank } };
            s.fields[0] = (dr_desc){ .kind = DR_KIND_BYTES, .dtype = DR_U8, .n_dims = 1, .dims = { 0 } };
            s.fields[1] = (dr_desc){ .dtype = (dr_dtype)dtype, .layout = DR_LAYOUT_HWC, .n_dims = rank };
            for (int i = 0; i < rank; i++)
                s.fields[1].dims[i] = 1 + i % 2;
            assert_true(dr__data_layout(&s));
            s.payload_bytes = s.bytes;
            assert_true(dr__data_append(&f, &s, payload, &offset));
            assert_int_equal(offset, next);
            assert_true(dr__data_read_head(&f, offset, &out, &next));
            assert_memory_equal(&out.key, &s.key, sizeof s.key);
            assert_memory_equal(out.fields, s.fields, sizeof s.fields);
            assert_int_equal(out.bytes, s.bytes);
            assert_int_equal(out.payload_at % 64, 0);
        }
    assert_false(dr__data_read_head(&f, next, &out, &next));
    assert_false(dr__data_create(fd, "data-one.drst", &identity, &f)); /* is there */
    close(fd);
}

static void only_files_of_the_identity_are_opened(void **state)
{
    (void)state;
    dr__data_file f;
    dr_store_key other = { 1, 3 };
    int fd = folder();
    assert_true(dr__data_create(fd, "data-one.drst", &identity, &f));
    dr__data_close(&f);
    assert_true(dr__data_open(fd, "data-one.drst", &identity, &f));
    dr__data_close(&f);
    assert_false(dr__data_open(fd, "data-one.drst", &other, &f));
    assert_false(dr__data_open(fd, "data-two.drst", &identity, &f));
    close(fd);
}

static void sizes_that_overflow_are_refused(void **state)
{
    (void)state;
    dr_stored s = { .n_fields = 2 };
    s.fields[0] = (dr_desc){ .dtype = DR_F64, .n_dims = 2, .dims = { INT64_MAX / 2, 2 } };
    assert_false(dr__data_layout(&s));
    s.fields[0] = s.fields[1] = (dr_desc){ .dtype = DR_U8, .n_dims = 1, .dims = { INT64_MAX } };
    assert_true(!dr__data_layout(&s) || s.bytes > INT64_MAX);
    s.fields[0] = (dr_desc){ .dtype = DR_U8, .n_dims = 1, .dims = { DR_UNKNOWN } };
    assert_false(dr__data_layout(&s));
}

#define with_folder(test) cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_folder(every_type_and_rank_comes_back),
        with_folder(only_files_of_the_identity_are_opened),
        cmocka_unit_test(sizes_that_overflow_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
