/* Container limits from trees written by hand: cgroup v1, v2, nested groups, none. */
#include "unit/cm.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"

static char root[64];

static int setup(void **state)
{
    (void)state;
    strcpy(root, "/tmp/drapps-limits-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

/* Writes a file below the root, making its folders. */
static void put(const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        mkdir(full, 0700);
        *p = '/';
    }
    FILE *f = fopen(full, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void machine_without_limits(void **state)
{
    (void)state;
    put("/proc/meminfo", "MemTotal:       16000 kB\nMemFree:  10 kB\nMemAvailable:    9000 kB\n");
    put("/proc/self/cgroup", "0::/user.slice\n");
    dr__limits l;
    dr__limits_read(root, &l);
    assert_int_equal(dr__limits_page_cache(root, &l), 9000 * 1024);
    l.memory_limit = 5000; /* of the group */
    assert_int_equal(dr__limits_page_cache(root, &l), 5000);
    l.memory_limit = 16000 * 1024;
    assert_true(l.quota_cpus == 0);
    assert_int_equal(l.memory_limit, 16000 * 1024);
    assert_true(l.cpus == l.affinity_cpus);
}

static void version_2_takes_the_tightest_on_the_way_up(void **state)
{
    (void)state;
    put("/proc/meminfo", "MemTotal:       16000 kB\n");
    put("/proc/self/cgroup", "0::/a/b\n");
    put("/sys/fs/cgroup/a/cpu.max", "50000 100000\n");
    put("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/a/b/memory.max", "1000000\n");
    put("/sys/fs/cgroup/a/memory.max", "max\n");
    dr__limits l;
    dr__limits_read(root, &l);
    assert_true(l.quota_cpus == 0.5);
    assert_true(l.cpus == 0.5);
    assert_int_equal(l.memory_limit, 1000000);
    assert_int_equal(dr__limits_workers(&l), 1);
}

static void version_1_by_controller(void **state)
{
    (void)state;
    put("/proc/meminfo", "MemTotal:       16000 kB\n");
    put("/proc/self/cgroup", "4:memory:/x\n3:cpu,cpuacct:/x\n");
    put("/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "150000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "2000000\n");
    dr__limits l;
    dr__limits_read(root, &l);
    assert_true(l.quota_cpus == 1.5);
    assert_int_equal(l.memory_limit, 2000000);
}

static void ranks_share(void **state)
{
    (void)state;
    dr__limits l = { .cpus = 8, .local_world = 4 };
    assert_int_equal(dr__limits_workers(&l), 2);
    l.cpus = 2.5;
    l.local_world = 1;
    assert_int_equal(dr__limits_workers(&l), 3);
    setenv("LOCAL_WORLD_SIZE", "3", 1);
    dr__limits_read(root, &l);
    assert_int_equal(l.local_world, 3);
    unsetenv("LOCAL_WORLD_SIZE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(machine_without_limits, setup, teardown),
        cmocka_unit_test_setup_teardown(version_2_takes_the_tightest_on_the_way_up, setup, teardown),
        cmocka_unit_test_setup_teardown(version_1_by_controller, setup, teardown),
        cmocka_unit_test_setup_teardown(ranks_share, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
